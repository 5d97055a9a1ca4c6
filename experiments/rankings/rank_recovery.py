"""``+exp=recovery of=ranks``: how often the intervals of the regression of ranks hold the truth.

Studies are simulated in the design of a ranking study (its models, texts, windows and tokens), with true slopes drawn
anew for each, and fitted. Every finished study is on disk at once, so that a stopped run goes on.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import combinations
from typing import Annotated, Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure
from numpy.typing import NDArray
from pydantic import Field

from shannon_game.estimators.content import content_digest
from shannon_game.estimators.messages import Set
from shannon_game.estimators.rankings.study import score_study
from shannon_game.experiments.harness import rows as column
from shannon_game.experiments.harness.bayes import BayesianSettings, SamplerSettings
from shannon_game.experiments.harness.figures import new_figure
from shannon_game.experiments.harness.marks import mark, named, titled
from shannon_game.experiments.harness.plots import against_truth, styled, truth_handles
from shannon_game.experiments.harness.questions import bullets
from shannon_game.experiments.harness.replication import ReplicationSettings, replicates_path
from shannon_game.experiments.harness.result import ExperimentResult, experiment
from shannon_game.experiments.harness.tables import table_variables
from shannon_game.inference.posterior.arviz_adapter import group
from shannon_game.inference.posterior.convergence import check_convergence
from shannon_game.inference.posterior.item_draws import flat
from shannon_game.inference.posterior.replicates import Row, Task, run_replicates
from shannon_game.inference.posterior.sampling import compile_model, sample
from shannon_game.inference.posterior.thresholds import GateThresholds
from shannon_game.inference.progress import stage
from shannon_game.models.rankings import slopes

# populations that true values are drawn from, log-odds (slopes per doubling); close to the thesis's data
TRUTH = {
    "slope_mean": 0.08,
    "slope_spread": 0.08,
    "model_spread": 0.2,
    "text_spread": 0.1,
    "window_spread": 0.25,
    "model_window_spread": 0.1,
}


class RankRecoveryRow(column.Row):
    """Slopes, or differences of two, in log-odds per doubling of the context."""

    what: str = column.key("slope, or difference of slopes")
    n_studies: int = column.context("simulated studies")
    n_values: int = column.context("true values")
    coverage: float = column.headline("share of intervals that hold the truth", se="coverage_se")
    bias: float = column.estimate("mean error")
    rmse: float = column.estimate("root of the mean squared error")
    mean_width: float = column.estimate("mean width of the intervals")
    share_converged: float = column.detail("share of fits that converged")


class RankRecoverySettings(BayesianSettings, ReplicationSettings):
    n_studies: Annotated[int, Field(ge=2)] = 200
    """Simulated studies."""
    sampler: SamplerSettings = SamplerSettings(draws=500, tune=400, chains=2, cores=1)
    """What draws from the posteriors: short chains, one at a time."""


# one program a process and design; the counts are exchanged
_programs: dict[tuple[object, ...], Any] = {}


def simulate_ranks(
    design: slopes.RankData, baseline: NDArray[np.float64], rng: np.random.Generator
) -> tuple[slopes.RankData, NDArray[np.float64]]:
    """Simulate counts in a design."""
    slope = rng.normal(TRUTH["slope_mean"], TRUTH["slope_spread"], design.model.size)
    level = rng.normal(0, TRUTH["model_spread"], design.model.size)
    text = rng.normal(0, TRUTH["text_spread"], design.text.size)
    window = rng.normal(0, TRUTH["window_spread"], design.window.size) + text[design.window_text]
    x = np.log2(design.window_length) - design.centre
    log_odds = (
        level[design.cell_model]
        + slope[design.cell_model] * x[design.cell_window]
        + window[design.cell_window]
        + rng.normal(0, TRUTH["model_window_spread"], design.cell_model.size)
    )
    probability = np.exp(slopes.log_category_probability(log_odds, baseline))
    count = rng.multinomial(design.count.sum(axis=1), probability / probability.sum(axis=-1, keepdims=True))
    return design.with_counts(count), slope


@experiment(RankRecoverySettings, row=RankRecoveryRow)
def rank_recovery(study: xr.Dataset, settings: RankRecoverySettings) -> ExperimentResult:
    """Simulate studies, fit them, and count the intervals that hold the truth: of slopes, and differences of two."""
    scores = score_study(study)
    design = slopes.rank_data(study, scores.rank, scores.k)
    total = design.count.sum(axis=0) + 0.5
    sampler = settings.sampler.arguments
    decisive = {
        "study": content_digest(design),
        "interval": settings.interval,
        "truth": TRUTH,
        "seed": settings.seed,
        "sampler": {name: value for name, value in sampler.items() if name != "cores"},
    }
    with stage("studies", announced=True) as show:
        rows = run_replicates(
            partial(fit_one, design=design, baseline=total / total.sum(), settings=decisive, sampler=sampler),
            [{"seed": seed} for seed in range(settings.n_studies)],
            path=replicates_path(settings),
            settings=decisive,
            n_jobs=settings.n_jobs,
            progress=show,
            set_aside=settings.set_aside,
        )
    return _result(pd.DataFrame(rows), settings.interval)


def _program(design: slopes.RankData, *, compiled: bool) -> Any:
    arrays = (design.window_text, design.window_length, design.cell_model, design.cell_window)
    names = (design.model, design.text, design.window)
    key = (*(array.tobytes() for array in arrays), *(tuple(name.tolist()) for name in names), design.k, compiled)
    if key not in _programs:
        model = slopes.rank_slope_model(design)
        _programs[key] = compile_model(model) if compiled else model
    return _programs[key]


def fit_one(
    task: Task,
    *,
    design: slopes.RankData,
    baseline: NDArray[np.float64],
    settings: Mapping[str, Any],
    sampler: Mapping[str, Any],
) -> list[Row]:
    """Simulate and fit one study; a row per model's slope, and a row per difference of two."""
    rng = np.random.default_rng(np.random.SeedSequence(int(settings["seed"]), spawn_key=(int(task["seed"]),)))
    data, true = simulate_ranks(design, baseline, rng)
    program = _program(data, compiled=sampler["sampler"] == "nutpie")
    slopes.set_counts(getattr(program, "model", program), data)
    idata = sample(program, seed=int(rng.integers(2**31)), progress=False, **sampler)
    found = check_convergence(idata, GateThresholds(r_hat=1.05, ess_bulk=0, ess_tail=0, divergent=1_000_000, bfmi=0))
    slope = flat(group(idata, "posterior"), "slope")
    values = [("slope", str(name), slope[:, at], true[at]) for at, name in enumerate(design.model)]
    for a, b in combinations(range(design.model.size), 2):
        name = f"{design.model[a]} - {design.model[b]}"
        values.append(("difference of slopes", name, slope[:, a] - slope[:, b], true[a] - true[b]))
    tail = (1 - float(settings["interval"])) / 2
    rows: list[Row] = []
    for what, name, draws, truth in values:
        lower, median, upper = np.quantile(draws, [tail, 0.5, 1 - tail]).tolist()
        row = {"what": what, "name": name, "true": float(truth), "median": median, "lower": lower, "upper": upper}
        rows.append({**row, "converged": found.passed, "n_divergent": found.n_divergent})
    return rows


def _result(rows: pd.DataFrame, interval: float) -> ExperimentResult:
    rows = rows.assign(covered=rows["true"].between(rows["lower"], rows["upper"]), error=rows["median"] - rows["true"])
    table = pd.DataFrame([_cell(str(what), mine) for what, mine in rows.groupby("what", sort=False)])
    line = (
        f"**{interval:.0%} intervals hold {{coverage:.1%}} of the true values of the {{what}}** ({{n_values}} values "
        "in {n_studies} studies, standard error {coverage_se:.1%}); bias {bias:+.4f}, RMSE {rmse:.4f}."
    )
    shown = rows[["seed", "true", "median", "lower", "upper", "what", "name"]]
    dataset = xr.Dataset(table_variables(shown, "row"), attrs={f"true_{name}": value for name, value in TRUTH.items()})
    poor = int((~rows.groupby("seed")["converged"].first()).sum())
    return ExperimentResult(
        table=table,
        dataset=dataset,
        figures={"recovery": recovery_figure(rows, interval)},
        text=f"{bullets(table, line)}\n\nBias and RMSE are in log-odds per doubling of the context.",
        warnings=(f"{poor} of the posteriors did not converge: raise {Set('sampler.draws')}",) if poor else (),
    )


def _cell(what: str, mine: pd.DataFrame) -> dict[str, Any]:
    by_study = mine.groupby("seed")["covered"].mean()
    return {
        "what": what,
        "n_studies": int(by_study.size),
        "n_values": len(mine),
        "coverage": float(mine["covered"].mean()),
        "coverage_se": float(np.asarray(by_study.sem())),
        "bias": float(mine["error"].mean()),
        "rmse": float(np.sqrt((mine["error"] ** 2).mean())),
        "mean_width": float((mine["upper"] - mine["lower"]).mean()),
        "share_converged": float(mine["converged"].mean()),
    }


@styled
def recovery_figure(rows: pd.DataFrame, interval: float = 0.9) -> Figure:
    """Posterior medians and intervals against the truth, a panel a kind of value."""
    kinds = list(dict.fromkeys(rows["what"]))
    fig = new_figure(4.5, 3.6)
    for axes, what in zip(fig.subplots(1, len(kinds), squeeze=False)[0], kinds, strict=True):
        mine = rows[rows["what"] == what]
        held = against_truth(axes, *(mine[name].to_numpy() for name in ("true", "lower", "upper")))
        axes.plot(mine["true"], mine["median"], ".", color="black", markersize=4)
        axes.axline((0, 0), slope=1, color="#0072B2", linewidth=0.9)
        axes.set_title(f"{what}: {held:.0%}", fontsize=10)
        axes.set_xlabel("true")
    fig.supylabel("posterior, log-odds per doubling", fontsize=10)
    handles = [mark("posterior median", "black", ".", markersize=6), *truth_handles(interval)]
    named(fig, [*handles, mark("median at the truth", "#0072B2")], 2)
    titled(fig, "Do intervals of the slopes hold the truth?")
    return fig
