"""``+exp=recovery of=tvd``: how often the Bayesian TVD's interval holds the truth, and how far off the raw one is."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Annotated, Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from shannon_game.estimators import cloze
from shannon_game.experiments.cloze.tvd.posterior import WordPairFits
from shannon_game.experiments.harness import bayes
from shannon_game.experiments.harness.figures import new_figure
from shannon_game.experiments.harness.marks import mark, named, titled
from shannon_game.experiments.harness.plots import against_truth, styled, truth_handles
from shannon_game.experiments.harness.result import ExperimentResult, experiment
from shannon_game.experiments.harness.settings import rng_for, rows_of
from shannon_game.experiments.studies.cloze.simulated import simulation_of
from shannon_game.inference.posterior.thresholds import GateThresholds
from shannon_game.inference.settings import Counts, numbers_of

_RAW = "#0072B2"
_FAMILY = {
    "mixture": "own words",
    "factors": "other probabilities",
    "ranks": "other ranks",
    "tail": "other tail",
    "sharper": "sharper",
    "same": "the same (TVD 0)",
}


class TvdCoverageSettings(bayes.BayesianSettings):
    """Settings of :func:`tvd_coverage`."""

    n: Counts = (20, 40, 1000)
    """Answers of people, and samples of the model, in each context."""
    sampler: bayes.SamplerSettings = bayes.SamplerSettings(draws=500, tune=500, chains=2)
    """What draws from the posterior; intervals of one context settle long before the population does."""
    gate: Annotated[GateThresholds, numbers_of(GateThresholds)] = GateThresholds(
        r_hat=1.1, ess_bulk=50.0, ess_tail=50.0
    )
    """What a posterior must reach; the run ends with exit code 3 where one misses it."""


@experiment(TvdCoverageSettings)
def tvd_coverage(study: xr.Dataset, settings: TvdCoverageSettings) -> ExperimentResult:
    """Count how often the Bayesian TVD's interval holds a known truth: a row per size and family."""
    base = simulation_of(study)
    fits, verdicts = WordPairFits(settings), {}
    rows: list[dict[str, Any]] = []
    points: list[xr.Dataset] = []
    cases = list(product(settings.n, base.families))
    with bayes.several_fits(len(cases), settings.sampler):
        for n, family in cases:
            rng = rng_for(settings.seed, f"coverage {n} {family}")
            one = cloze.simulate_cloze_study(replace(base, n_answers=n, n_samples=n, families=(family,)), rng)
            none = cloze.WORD_RULES["none"]
            words = cloze.study_words(one, human=none, model=none, corpus=none)
            human, model = words.answers(), words.models[family].counts
            truth = one["true_tvd"].to_numpy()[0]
            raw = cloze.total_variation(cloze.relative_frequencies(human), cloze.relative_frequencies(model))
            corrected = cloze.tvd_with_baseline(human, model).corrected
            fit = fits.fit(human, model, f"coverage fit {n} {family} True")
            verdicts[f"{n} answers, {_FAMILY[family]}"] = fit.convergence
            lower, upper = fit.posterior.interval(settings.interval)
            middle, share = fit.posterior.mean(), float(((lower <= truth) & (truth <= upper)).mean())
            row = {"n": n, "family": family, "n_contexts": len(truth)}
            row |= {"true_tvd": truth.mean(), "tvd": raw.mean(), "tvd_corrected": np.nanmean(corrected)}
            row |= {"tvd_bayes": middle.mean(), "coverage": share}
            row |= {"se_coverage": np.sqrt(share * (1 - share) / len(truth)) if len(truth) > 1 else np.nan}
            row |= {"share_truth_below": (truth < lower).mean(), "width": (upper - lower).mean()}
            rows.append(row | bayes.convergence_columns(fit.convergence))
            point = {"truth": truth, "raw": raw, "mean": middle, "lower": lower, "upper": upper}
            points.append(xr.Dataset({name: ("item", values) for name, values in point.items()}))
    table = pd.DataFrame(rows)
    sizes, families = zip(*cases, strict=True)
    dataset = xr.concat(points, "case").assign_coords(
        case=[f"{family}, {n}" for n, family in cases],
        n=("case", list(sizes)),
        family=("case", list(families)),
        item=study["item"].to_numpy(),
    )
    return ExperimentResult(
        table,
        dataset,
        {"tvd_coverage": tvd_coverage_figure(dataset, interval=settings.interval)},
        _summary(table, settings.interval),
        warnings=bayes.unconverged(verdicts),
        gate_failed=bayes.gate_failed(settings, verdicts),
    )


def _summary(table: pd.DataFrame, interval: float) -> str:
    lines = []
    for n, rows in table.groupby("n", sort=False):
        each = ", ".join(f"{_FAMILY[row.family]} {row.coverage:.0%}" for row in rows_of(rows))
        raw, mean = ((rows[name] - rows["true_tvd"]).mean() for name in ("tvd", "tvd_bayes"))
        lines.append(
            f"- **With {n} answers and {n} samples per context, the {interval:.0%} interval holds the true TVD in "
            f"{rows['coverage'].mean():.0%} of the contexts** ({each}); the raw TVD is off by {raw:+.3f} on average, "
            f"the posterior mean by {mean:+.3f}."
        )
    return "\n".join(lines)


@styled
def tvd_coverage_figure(dataset: xr.Dataset, *, interval: float = 0.9) -> Figure:
    """Draw raw TVD and posterior intervals against the truth, a panel a family and size."""
    sizes = list(dict.fromkeys(dataset["n"].to_numpy().tolist()))
    families = list(dict.fromkeys(dataset["family"].to_numpy().tolist()))
    fig = new_figure(1.9 * len(families) + 0.6, 1.95 * len(sizes) + 0.8)
    grid = fig.subplots(len(sizes), len(families), sharex=True, sharey=True, squeeze=False)
    # cases are in the order of the grid
    for case, ax in enumerate(grid.flat):
        truth, raw, lower, upper = (dataset[name][case].to_numpy() for name in ("truth", "raw", "lower", "upper"))
        ax.plot([0, 1], [0, 1], color="0.55", linewidth=0.8, linestyle="--")
        ax.scatter(truth, raw, s=5, color=_RAW, clip_on=False, zorder=3)
        held = against_truth(ax, truth, lower, upper)
        ax.text(0.97, 0.04, f"covers {held:.0%}", transform=ax.transAxes, ha="right", fontsize=8)
        ax.set(xlim=(-0.04, 1), ylim=(0, 1))
    for column, family in zip(grid.T, families, strict=True):
        column[0].set_title(_FAMILY[family])
        column[-1].set_xlabel("true TVD")
    for ax, n in zip(grid[:, 0], sizes, strict=True):
        ax.set_ylabel(f"{n} answers\nestimate")
    named(fig, [mark("raw TVD", _RAW, "o"), *truth_handles(interval)])
    titled(fig, f"{interval:.0%} posterior intervals of the TVD where it is known", size=10)
    return fig
