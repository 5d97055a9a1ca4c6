"""``+exp=rank_recovery``: how often the intervals of the regression of ranks hold the truth.

Studies are simulated in the design of a ranking study (its models, texts, windows and tokens), with true slopes drawn
anew for each, and fitted. Every finished study is on disk at once, so that a stopped run goes on.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import xarray as xr
from hydra.core.hydra_config import HydraConfig
from matplotlib.figure import Figure
from numpy.typing import NDArray
from omegaconf import DictConfig
from tqdm import tqdm

from estimators.errors import InputError
from estimators.rankings.study import score_study
from experiments.comparison.recovery.settings import sampler_settings
from experiments.harness.bayes import check_bayesian
from experiments.harness.figures import STYLE, new_figure
from experiments.harness.outputs import ExperimentResult
from experiments.harness.settings import tail_probability
from inference.posterior.arviz_adapter import group

if TYPE_CHECKING:
    from inference.posterior.replicates import Row, Task
    from models.rankings.slopes import RankData

__all__ = ["TRUTH", "run", "simulate_ranks"]

TRUTH: Mapping[str, float] = {
    "slope_mean": 0.08,
    "slope_spread": 0.08,
    "model_spread": 0.2,
    "text_spread": 0.1,
    "window_spread": 0.25,
    "model_window_spread": 0.1,
}
"""Populations that true values are drawn from, log-odds (slopes per doubling); close to the thesis's data."""

# one compiled program a process; the counts are exchanged
_programs: dict[str, Any] = {}


def simulate_ranks(
    design: RankData, baseline: NDArray[np.float64], truth: Mapping[str, float], rng: np.random.Generator
) -> tuple[RankData, NDArray[np.float64]]:
    """Simulate counts in a design.

    Parameters
    ----------
    design : RankData
    baseline : ndarray, shape (category,)
        Probabilities of the categories at log-odds 0.
    truth : mapping of str to float
        As :data:`TRUTH`.
    rng : numpy.random.Generator

    Returns
    -------
    data : RankData
    slope : ndarray, shape (model,)
        The true slopes.
    """
    from models.rankings.slopes import log_category_probability  # noqa: PLC0415 - pymc comes with it

    slope = rng.normal(truth["slope_mean"], truth["slope_spread"], design.model.size)
    level = rng.normal(0, truth["model_spread"], design.model.size)
    text = rng.normal(0, truth["text_spread"], design.text.size)
    window = rng.normal(0, truth["window_spread"], design.window.size) + text[design.window_text]
    x = np.log2(design.window_length) - design.centre
    log_odds = (
        level[design.cell_model]
        + slope[design.cell_model] * x[design.cell_window]
        + window[design.cell_window]
        + rng.normal(0, truth["model_window_spread"], design.cell_model.size)
    )
    probability = np.exp(log_category_probability(log_odds, baseline))
    count = rng.multinomial(design.count.sum(axis=1), probability / probability.sum(axis=-1, keepdims=True))
    return design.with_counts(count), slope


def run(cfg: DictConfig, study: xr.Dataset) -> ExperimentResult:
    """Simulate, fit and count."""
    from inference.posterior.replicates import run_replicates  # noqa: PLC0415
    from models.rankings.slopes import rank_data  # noqa: PLC0415

    check_bayesian(cfg, {})
    tail_probability(cfg)
    n_studies = cfg.experiment.n_studies
    if not isinstance(n_studies, int) or isinstance(n_studies, bool) or n_studies < 2:
        raise InputError(f"is {n_studies!r}, should be a whole number of at least 2", field="experiment.n_studies")
    truth = {**TRUTH, **_changes(cfg)}
    scores = score_study(study)
    design = rank_data(study, scores.rank, scores.k)
    total = design.count.sum(axis=0) + 0.5
    sampler = sampler_settings(cfg)
    settings = {
        "study": study.attrs.get("data_sha256", study.attrs.get("name")),
        "interval": float(cfg.experiment.interval),
        "truth": truth,
        "seed": int(cfg.seed),
        "sampler": {name: value for name, value in sampler.items() if name != "cores"},
    }
    path = cfg.experiment.replicates or Path(HydraConfig.get().runtime.output_dir) / "replicates.jsonl"
    with tqdm(total=n_studies, desc="studies", unit="study", disable=None) as bar:

        def shown(done: int, _: int) -> None:
            bar.update(done - bar.n)

        rows = run_replicates(
            partial(fit_one, design=design, baseline=total / total.sum(), settings=settings, sampler=sampler),
            [{"seed": seed} for seed in range(n_studies)],
            path=Path(path),
            settings=settings,
            n_jobs=int(cfg.experiment.n_jobs),
            progress=shown,
            set_aside=cfg.experiment.replicates is None,
        )
    return _result(pd.DataFrame(rows), float(cfg.experiment.interval), truth)


def _changes(cfg: DictConfig) -> dict[str, float]:
    changes: dict[str, float] = {}
    for name, value in cfg.experiment.truth.items():
        if name not in TRUTH or not isinstance(value, int | float) or isinstance(value, bool):
            raise InputError(f"is {value!r}; numbers by the names {', '.join(TRUTH)}", field=f"experiment.truth.{name}")
        changes[str(name)] = float(value)
    return changes


def fit_one(
    task: Task,
    *,
    design: RankData,
    baseline: NDArray[np.float64],
    settings: Mapping[str, Any],
    sampler: Mapping[str, Any],
) -> list[Row]:
    """Simulate and fit one study; a row a model's slope, and a row a difference of two."""
    from inference.posterior.convergence import GateThresholds, check_convergence  # noqa: PLC0415
    from inference.posterior.sampling import compile_model, sample  # noqa: PLC0415
    from models.rankings.slopes import rank_slope_model, set_counts  # noqa: PLC0415

    rng = np.random.default_rng(np.random.SeedSequence(int(settings["seed"]), spawn_key=(int(task["seed"]),)))
    data, true = simulate_ranks(design, baseline, settings["truth"], rng)
    if "ranks" not in _programs:
        model = rank_slope_model(data)
        _programs["ranks"] = compile_model(model) if sampler["sampler"] == "nutpie" else model
    program = _programs["ranks"]
    set_counts(getattr(program, "model", program), data)
    idata = sample(program, seed=int(rng.integers(2**31)), progress=False, **sampler)
    found = check_convergence(idata, GateThresholds(r_hat=1.05, ess_bulk=0, ess_tail=0, divergent=1_000_000, bfmi=0))
    drawn = group(idata, "posterior")["slope"].transpose("chain", "draw", "model").to_numpy()
    slope = drawn.reshape(-1, design.model.size)
    tail = (1 - float(settings["interval"])) / 2
    rows: list[Row] = []

    def add(what: str, name: str, draws: NDArray[np.float64], truth: float) -> None:
        lower, median, upper = np.quantile(draws, [tail, 0.5, 1 - tail])
        rows.append(
            {
                "what": what,
                "name": name,
                "true": float(truth),
                "median": float(median),
                "lower": float(lower),
                "upper": float(upper),
                "converged": found.passed,
                "n_divergent": found.n_divergent,
            }
        )

    for at, name in enumerate(design.model):
        add("slope", str(name), slope[:, at], true[at])
    for first, second in zip(*np.triu_indices(design.model.size, 1), strict=True):
        label = f"{design.model[first]} - {design.model[second]}"
        add("difference of slopes", label, slope[:, first] - slope[:, second], true[first] - true[second])
    return rows


def _result(rows: pd.DataFrame, interval: float, truth: Mapping[str, float]) -> ExperimentResult:
    rows = rows.assign(
        covered=(rows["lower"] <= rows["true"]) & (rows["true"] <= rows["upper"]), error=rows["median"] - rows["true"]
    )
    table = pd.DataFrame([_cell(str(what), mine) for what, mine in rows.groupby("what", sort=False)])
    lines = [
        f"- {row['what']}: the {interval:.0%} intervals hold {row['coverage']:.1%} of {row['n_values']} true values in "
        f"{row['n_studies']} studies (standard error {row['coverage_se']:.1%}, studies as clusters); "
        f"bias {row['bias']:+.4f}, RMSE {row['rmse']:.4f} log-odds per doubling."
        for row in table.to_dict("records")
    ]
    numbers = {name: ("row", rows[name].to_numpy()) for name in ("seed", "true", "median", "lower", "upper")}
    dataset = xr.Dataset(
        {
            **numbers,
            "what": ("row", rows["what"].to_numpy(dtype=object)),
            "name": ("row", rows["name"].to_numpy(dtype=object)),
        },
        attrs={f"true_{name}": value for name, value in truth.items()},
    )
    poor = int((~rows.groupby("seed")["converged"].first()).sum())
    return ExperimentResult(
        table=table,
        dataset=dataset,
        figures={"recovery": _figure(rows, interval)},
        summary="Log-odds per doubling of the context.\n\n" + "\n".join(lines),
        warnings=(f"{poor} of the posteriors did not converge; they are in all numbers",) if poor else (),
    )


def _cell(what: str, mine: pd.DataFrame) -> dict[str, Any]:
    by_study = mine.groupby("seed")["covered"].mean()
    return {
        "what": what,
        "n_studies": int(by_study.size),
        "n_values": len(mine),
        "coverage": float(mine["covered"].mean()),
        "coverage_se": float(by_study.std(ddof=1) / np.sqrt(by_study.size)),
        "bias": float(mine["error"].mean()),
        "rmse": float(np.sqrt((mine["error"] ** 2).mean())),
        "mean_width": float((mine["upper"] - mine["lower"]).mean()),
        "share_converged": float(mine["converged"].mean()),
    }


def _figure(rows: pd.DataFrame, interval: float) -> Figure:
    kinds = list(dict.fromkeys(rows["what"]))
    with mpl.rc_context(STYLE):
        fig = new_figure(3.5 * len(kinds), 3.4)
        for axes, what in zip(np.ravel(fig.subplots(1, len(kinds), squeeze=False)), kinds, strict=True):
            mine = rows[rows["what"] == what]
            for covered, colour in ((True, "0.6"), (False, "#D55E00")):
                some = mine[mine["covered"] == covered]
                axes.vlines(some["true"], some["lower"], some["upper"], color=colour, linewidth=0.5, alpha=0.6)
            axes.plot(mine["true"], mine["median"], ".", color="black", markersize=2)
            ends = [mine["true"].min(), mine["true"].max()]
            axes.plot(ends, ends, color="#0072B2", linewidth=0.9)
            axes.set_title(f"{what}: {mine['covered'].mean():.0%} of {interval:.0%} intervals")
            axes.set_xlabel("true (log-odds per doubling)")
            axes.set_ylabel("posterior")
    return fig
