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
from shannon_game.experiments.harness import rows as column
from shannon_game.experiments.harness.figures import Series
from shannon_game.experiments.harness.plots import forest_figure
from shannon_game.experiments.harness.result import ExperimentResult, experiment
from shannon_game.experiments.harness.settings import rng_for, rows_of
from shannon_game.experiments.studies.cloze.simulated import simulation_of
from shannon_game.inference.posterior.thresholds import GateThresholds
from shannon_game.inference.settings import Counts, numbers_of

_FAMILY = {
    "mixture": "other words",
    "factors": "other weights",
    "ranks": "other ranks",
    "tail": "other tail",
    "sharper": "sharper",
    "same": "the same words",
}


class TvdCoverageRow(column.Row, last=bayes.ConvergenceRow):
    """One size and one family of models."""

    n: int = column.key("answers of people, and samples of the model, per context", setting="experiment.n")
    family: str = column.key("how the model differs from people", words=_FAMILY.__getitem__)
    n_contexts: int = column.context("contexts")
    true_tvd: float = column.truth("tvd_bayes", "mean true TVD")
    tvd: float = column.estimate("TVD of the samples")
    tvd_corrected: float = column.estimate("TVD with the baseline of its sample size taken out")
    tvd_bayes: float = column.estimate("Bayesian TVD")
    coverage: float = column.headline("share of intervals that hold the truth", se="se_coverage")
    share_truth_below: float = column.detail("share of the truths below their intervals")
    width: float = column.estimate("mean width of the intervals")


class TvdCoverageSettings(bayes.BayesianSettings):
    n: Counts = (20, 40, 1000)
    """Answers of people, and samples of the model, in each context."""
    sampler: bayes.SamplerSettings = bayes.SamplerSettings(draws=500, tune=500, chains=2)
    """What draws from the posterior; intervals of one context settle long before the population does."""
    gate: Annotated[GateThresholds, numbers_of(GateThresholds)] = GateThresholds(
        r_hat=1.1, ess_bulk=50.0, ess_tail=50.0
    )
    """What a posterior must reach; the run ends with exit code 3 where one misses it."""


@experiment(TvdCoverageSettings, row=TvdCoverageRow)
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
        {"recovery_tvd": tvd_coverage_figure(dataset, interval=settings.interval)},
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


def tvd_coverage_figure(dataset: xr.Dataset, *, interval: float = 0.9) -> Figure:
    """Draw means over contexts of raw TVD, posterior interval and truth, a row a family and size."""
    rows = dataset[["truth", "raw", "mean", "lower", "upper", "n", "family"]].mean("item").to_dataframe()
    held = ((dataset["lower"] <= dataset["truth"]) & (dataset["truth"] <= dataset["upper"])).mean("item")
    rows["label"] = [f"n = {row.n}, {_FAMILY[row.family]}" for row in rows_of(rows)]
    series = [
        Series("raw", label="raw TVD", marker="s", colour="#D55E00"),
        Series("mean", "lower", "upper", label=f"Bayesian TVD, {interval:.0%} interval", colour="#0072B2", capsize=0),
        Series("truth", label="truth", marker="|", colour="0", size=14),
    ]
    title = "Do intervals of the Bayesian TVD hold the truth?"
    about = "n answers; right: share of contexts where they do"
    fig = forest_figure(rows.assign(group=rows["n"]), series, "TVD, mean over contexts", title, about, start=-0.02)
    axes = fig.axes[0]
    for height, part in zip(axes.get_yticks(), held.to_numpy(), strict=True):
        axes.text(1.02, height, f"{part:.0%}", transform=axes.get_yaxis_transform(), va="center")
    return fig
