"""``+exp=recovery``: how far every estimator falls from a known truth over many fresh studies."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import PercentFormatter
from omegaconf import DictConfig, OmegaConf

from estimators.comparison import RoundingScheme, rounding_scheme
from estimators.errors import InputError, unknown_choice
from experiments.comparison.recovery.participants import participants
from experiments.comparison.recovery.settings import (
    Population,
    decisive_settings,
    language_models,
    sampler_settings,
    study_of,
)
from experiments.harness.bayes import require_bayes
from experiments.harness.figures import STYLE, new_figure, player_label
from experiments.harness.outputs import ExperimentResult
from experiments.harness.replication import n_jobs, progress_bar, replicates_path
from experiments.harness.settings import chosen_rounding, numbers_of, rows_of, tail_probability, whole_numbers

if TYPE_CHECKING:
    from inference.posterior.replicates import Row, Task

__all__ = ["POPULATIONS", "RECOVERY_COLUMNS", "Population", "run"]

SUMMARY_COLUMNS = (
    "n_studies",
    "truth_mean_nats",
    "bias_nats",
    "rmse_nats",
    "rmse_se_nats",
    "coverage",
    "coverage_lower",
    "coverage_upper",
    "width_mean_nats",
    "n_unconverged",
)
RECOVERY_COLUMNS = ("population", "player", "rounding", "n", "estimator", *SUMMARY_COLUMNS)
"""Columns of the table of the population ``players``."""

_ASKED = {
    "draws": "n candidates of each item are asked about, as they were drawn",
    "distinct": "n distinct tokens of each item other than the target are asked about, or as many as were drawn",
}
_BAND = 0.05
_COLOURS = {"importance": "#D55E00", "jackknife": "#E69F00", "assumed": "#56B4E9"}
_OURS_COLOUR = "#0072B2"
_MARKERS = {"importance": "s", "jackknife": "D"}
_ESTIMATOR_LABELS = {
    "importance": "equation 5",
    "jackknife": "jackknife",
    "belief": "belief model",
    "outcomes": "participant model, outcomes",
    "assumed": "participant model, k0 known",
}


def run(cfg: DictConfig, study: xr.Dataset) -> ExperimentResult:
    """Make many fresh studies, estimate each in every way, and summarise the errors by cell."""
    require_bayes()
    from inference.comparison.recovery import summarise_rows  # noqa: PLC0415 - seconds of imports
    from inference.posterior.replicates import run_replicates  # noqa: PLC0415

    name = cfg.experiment.population
    if name not in POPULATIONS:
        raise unknown_choice("population", name, POPULATIONS, source="experiment.population")
    population = POPULATIONS[name](cfg, study)
    rows = run_replicates(
        population.work,
        population.tasks,
        path=replicates_path(cfg),
        settings=population.settings,
        n_jobs=n_jobs(cfg),
        progress=progress_bar("fresh studies"),
        set_aside=cfg.experiment.replicates is None,
    )
    found = summarise_rows(rows, (*population.cell, "estimator"))
    table = pd.DataFrame([{**cell, **_in_nats(asdict(summary))} for cell, summary in found])
    return ExperimentResult(
        table=table,
        dataset=_dataset(rows),
        figures={"recovery": figure(table, cfg, population)},
        summary=summary_text(table, cfg, population),
        warnings=_warnings(table, population.label),
    )


def players(cfg: DictConfig, study: xr.Dataset) -> Population:
    """Language models without noise, asked about items that nobody was asked."""
    from inference.comparison.recovery import ASKS, fresh_items  # noqa: PLC0415
    from inference.posterior.convergence import GateThresholds  # noqa: PLC0415
    from models.comparison.belief import BeliefPriors  # noqa: PLC0415

    settings = cfg.experiment
    tail_probability(cfg)
    counts = {key: whole_numbers(cfg, key) for key in ("n_studies", "n_items", "n")}
    for key in ("n_studies", "n_items"):
        if len(counts[key]) > 1:
            raise InputError(f"is {counts[key]}, should be one whole number", field=f"experiment.{key}")
    ask = str(settings.ask)
    if ask not in ASKS:
        raise unknown_choice("ask", ask, ASKS, source="experiment.ask")
    free = len(fresh_items(study))
    source = f"study {study.attrs['name']!r}"
    if counts["n_items"][0] > free:
        raise InputError(
            f"is {counts['n_items'][0]}, but only {free} items have no response; a fresh study is made of those",
            source=source,
            field="experiment.n_items",
        )
    if max(counts["n"]) > study.sizes["candidate"]:
        raise InputError(
            f"is {max(counts['n'])}, but an item has {study.sizes['candidate']} candidates",
            source=source,
            field="experiment.n",
        )
    priors = numbers_of(cfg, "priors", BeliefPriors)
    thresholds = numbers_of(cfg, "gate", GateThresholds)
    scheme = chosen_rounding(cfg)
    schemes = {each.name: each for each in (rounding_scheme("none"), scheme)}
    chosen = language_models(cfg, study)
    generator = study.attrs["generator"]
    # all cells of one study after the other, so that a run that stops early has something of every cell
    tasks: tuple[Task, ...] = tuple(
        {"population": "players", "player": player, "rounding": rounding, "n": n, "seed": seed}
        for seed in range(counts["n_studies"][0])
        for player in chosen
        for rounding in schemes
        for n in counts["n"]
        if not (player == generator and rounding == "none")  # its answers give the gap without error
    )
    if not tasks:
        raise InputError(
            f"leaves only the generator {generator!r} without rounding, whose gap every estimator finds exactly",
            field="players",
        )
    decisive = {
        **decisive_settings(cfg, study),
        "n_items": counts["n_items"][0],
        "ask": ask,
        "rounding": asdict(scheme),
        "priors": asdict(priors),
        "gate": asdict(thresholds),
    }
    config = json.dumps(OmegaConf.to_container(cfg, resolve=True), sort_keys=True)
    study_of(config, study)
    return Population(
        tasks=tasks,
        work=partial(_player_work, config=config, rounding=scheme),
        settings=decisive,
        about=(
            f"Every fresh study has {counts['n_items'][0]} of the {free} items of {study.attrs['name']} that nobody "
            f"was asked, drawn without replacement; {_ASKED[ask]}. Players are language "
            "models without noise, whose true gap to the generator on those very items is known; the same studies "
            "serve every player. "
            + (
                f"{player_label(generator)} drew the candidates: unrounded it has a gap of 0 that every estimator "
                "finds, so that this cell is left out. "
                if generator in chosen
                else ""
            )
            + (
                "Equation 5 and the jackknife come without an interval for this purpose: theirs is the normal one, "
                f"estimate \N{PLUS-MINUS SIGN} {_normal_quantile(settings.interval):.3f} standard errors over items, "
                "source (i) of the paper. "
                if ask == "draws"
                else "Equation 5 and the jackknife need draws, and are left out. "
            )
            + "The belief model's interval is its posterior's, with equal tails."
        ),
        each=f"{counts['n_items'][0]} items each" + (", distinct tokens asked" if ask == "distinct" else ""),
        label=lambda row: f"{player_label(row.player)}, {_rounding_label(row.rounding)}, n = {row.n}",
    )


POPULATIONS: Mapping[str, Callable[[DictConfig, xr.Dataset], Population]] = MappingProxyType(
    {"players": players, "participants": participants}
)
"""What ``experiment.population`` can be."""


def _player_work(task: Task, *, config: str, rounding: RoundingScheme) -> Sequence[Row]:
    """One fresh study of one player."""
    from inference.comparison.recovery import fresh_study, player_rows  # noqa: PLC0415
    from inference.posterior.convergence import GateThresholds  # noqa: PLC0415
    from models.comparison.belief import BeliefPriors  # noqa: PLC0415

    cfg = OmegaConf.create(json.loads(config))
    seed = int(task["seed"])
    which = zlib.crc32("/".join(str(task[name]) for name in ("player", "rounding", "n")).encode())
    n_items = whole_numbers(cfg, "n_items")[0]
    return player_rows(
        fresh_study(
            study_of(config),
            n_items=n_items,
            n=int(task["n"]),
            ask=str(cfg.experiment.ask),
            rng=np.random.default_rng(np.random.SeedSequence(int(cfg.seed), spawn_key=(seed, 0))),
        ),
        str(task["player"]),
        rounding if task["rounding"] == rounding.name else rounding_scheme(str(task["rounding"])),
        interval=float(cfg.experiment.interval),
        sampler=sampler_settings(cfg),
        thresholds=GateThresholds(**cfg.experiment.gate),
        priors=BeliefPriors(**cfg.experiment.priors),
        rng=np.random.default_rng(np.random.SeedSequence(int(cfg.seed), spawn_key=(seed, 1, which))),
        classical=cfg.experiment.ask == "draws",
    )


def _in_nats(summary: Mapping[str, Any]) -> dict[str, Any]:
    plain = {"n_studies", "coverage", "coverage_lower", "coverage_upper", "n_unconverged"}
    return {name if name in plain else f"{name}_nats": value for name, value in summary.items()}


def _normal_quantile(interval: float) -> float:
    from scipy.special import ndtri  # noqa: PLC0415

    return float(ndtri((1 + interval) / 2))


def _rounding_label(rounding: str) -> str:
    return "raw" if rounding == "none" else f"rounded: {rounding}"


def _dataset(rows: list[Row]) -> xr.Dataset:
    """Every estimate of every study, from which table and figure can be made again."""
    table = pd.DataFrame(rows)
    nats = {"estimate", "lower", "upper", "truth"}
    variables: dict[str, Any] = {}
    for name in table:
        column = table[name]
        if name == "converged":
            # 1 and 0 for yes and no, -1 where nothing had to converge
            variables[str(name)] = ("row", np.array([-1 if v is None else int(v) for v in column], dtype=np.int8))
        elif column.map(lambda value: isinstance(value, str)).all():
            variables[str(name)] = ("row", column.to_numpy(dtype=object))
        elif pd.api.types.is_integer_dtype(column):
            variables[str(name)] = ("row", column.to_numpy())
        else:
            attrs = {"units": "nats"} if name in nats else {}
            variables[str(name)] = ("row", column.to_numpy(dtype=float, na_value=np.nan), attrs)
    return xr.Dataset(variables)


def _warnings(table: pd.DataFrame, label: Callable[[Any], str]) -> tuple[str, ...]:
    cells = [
        f"{label(row)} ({row.n_unconverged} of {row.n_studies})" for row in rows_of(table) if row.n_unconverged > 0
    ]
    if not cells:
        return ()
    return (f"posteriors that did not converge are in the numbers of these cells: {'; '.join(cells)}",)


def summary_text(table: pd.DataFrame, cfg: DictConfig, population: Population) -> str:
    """Say in words how every estimator did, cell by cell."""
    nominal = float(cfg.experiment.interval)
    lines = []
    for cell, part in table.groupby(list(population.cell), sort=False):
        first = next(iter(part.itertuples(index=False)))
        texts = [
            f"{_ESTIMATOR_LABELS.get(row.estimator, row.estimator)} {row.rmse_nats:.3f} "
            f"(bias {row.bias_nats:+.3f}, covers {row.coverage:.0%})"
            for row in rows_of(part)
        ]
        del cell
        lines.append(f"- **{population.label(first)}**, {first.n_studies} studies: RMSE in nats: {'; '.join(texts)}.")
    return (
        f"{population.about}\n\nIntervals are nominal {nominal:.0%} intervals. A study's truth is that of its own "
        "items, so that no error comes from which items it has; standard errors over items also carry how items "
        "differ, and are too wide for this question where an estimator has little error of its own.\n\n"
        + "\n".join(lines)
    )


def _estimator_style(estimator: str) -> dict[str, Any]:
    return {"color": _COLOURS.get(estimator, _OURS_COLOUR), "marker": _MARKERS.get(estimator, "o"), "markersize": 4.5}


def figure(table: pd.DataFrame, cfg: DictConfig, population: Population) -> Figure:
    """RMSE, bias and coverage of every estimator, a line a cell."""
    nominal = float(cfg.experiment.interval)
    estimators = list(dict.fromkeys(table["estimator"]))
    labels = [population.label(row) for row in rows_of(table)]
    cells = list(dict.fromkeys(labels))
    offsets = dict(zip(estimators, np.linspace(0.2, -0.2, len(estimators)), strict=True))
    with mpl.rc_context(STYLE):
        fig = new_figure(8.4, 1.9 + 0.4 * len(cells))
        axes = fig.subplots(1, 3, sharey=True)
        for row, text in zip(rows_of(table), labels, strict=True):
            height = -cells.index(text) + offsets[row.estimator]
            style = _estimator_style(row.estimator)
            # a root mean square of zero has no place on a log axis
            if row.rmse_nats > 0:
                low = max(row.rmse_nats - 2 * np.nan_to_num(row.rmse_se_nats), row.rmse_nats / 3)
                high = row.rmse_nats + 2 * np.nan_to_num(row.rmse_se_nats)
                _point(axes[0], row.rmse_nats, low, high, height=height, style=style)
            half = 2 * np.sqrt(max(row.rmse_nats**2 - row.bias_nats**2, 0) / row.n_studies)
            _point(axes[1], row.bias_nats, row.bias_nats - half, row.bias_nats + half, height=height, style=style)
            _point(axes[2], row.coverage, row.coverage_lower, row.coverage_upper, height=height, style=style)
        axes[0].set_xscale("log")
        axes[0].set_xlabel("RMSE, nats (log scale)")
        axes[1].axvline(0, color="0.6", linewidth=1, zorder=0)
        axes[1].set_xlabel("bias, nats")
        axes[2].axvspan(nominal - _BAND, min(nominal + _BAND, 1), color="0.88", zorder=0, linewidth=0)
        axes[2].set_xlim(-0.03, 1.03)
        axes[2].xaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        axes[2].set_xlabel(f"coverage of {nominal:.0%} intervals")
        axes[0].set_yticks(-np.arange(len(cells)), cells)
        axes[0].set_ylim(-len(cells) + 0.5, 0.5)
        for each in axes:
            each.tick_params(axis="y", length=0)
            each.grid(axis="x", color="0.93", linewidth=0.6)
            each.set_axisbelow(True)
            for line in range(1, len(cells)):
                each.axhline(-line + 0.5, color="0.9", linewidth=0.6, zorder=0)
        n_studies = sorted({int(count) for count in table["n_studies"]})
        counts = str(n_studies[0]) if len(n_studies) == 1 else f"{n_studies[0]} to {n_studies[-1]}"
        fig.suptitle(
            f"Recovery of a known loss gap: {counts} fresh studies a line, {population.each} ({cfg.study.name})",
            x=0.01,
            ha="left",
            fontsize=10,
        )
        handles: list[Any] = [
            Line2D([], [], linestyle="", label=_ESTIMATOR_LABELS.get(name, name), **_estimator_style(name))
            for name in estimators
        ]
        handles.append(
            Patch(color="0.88", label=f"{nominal - _BAND:.0%} to {min(nominal + _BAND, 1):.0%}", linewidth=0)
        )
        handles.append(Line2D([], [], color="0.3", label="2 Monte-Carlo se; 95% for coverage"))
        fig.legend(handles=handles, loc="outside lower center", ncols=min(3, len(handles)))
    return fig


def _point(axes: Axes, value: float, low: float, high: float, *, height: float, style: Mapping[str, Any]) -> None:
    axes.errorbar(
        value, height, xerr=[[max(value - low, 0)], [max(high - value, 0)]], linestyle="", capsize=0, zorder=3, **style
    )
