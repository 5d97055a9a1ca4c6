"""``+exp=perplexity vary=bootstrap``: how the estimate leans on who took part and on the items (figure 7)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure
from numpy.typing import NDArray

from shannon_game.estimators.comparison import (
    BootstrapGap,
    PerplexityEstimate,
    cluster_bootstrap,
    half_sample_bootstrap,
)
from shannon_game.estimators.comparison.terms import log_terms, response_pairs
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.perplexity import perplexity_of_loss
from shannon_game.experiments.comparison import estimates
from shannon_game.experiments.comparison.perplexity import sampling_warnings
from shannon_game.experiments.harness import rows as column
from shannon_game.experiments.harness.figures import Series, player_colours, player_label
from shannon_game.experiments.harness.plots import forest_figure
from shannon_game.experiments.harness.questions import listed
from shannon_game.experiments.harness.result import ExperimentResult, experiment
from shannon_game.experiments.harness.settings import rng_for
from shannon_game.inference.settings import Count, Probability

_KINDS = {
    "half_sample": ("half of the participants dropped", "o", 1.0, 0.25),
    "cluster_participants": ("participants resampled", "s", 0.75, 0.0),
    "cluster": ("participants and items resampled", "D", 0.5, -0.25),
}
"""Kind of bootstrap -> its label, marker, opacity and height in the figure."""
_OF_THE_WEIGHTS = ("pareto_k", "kl_nats", "n_required", "share_starved", "verdict")
_CLUSTER_REPLICATES = 2000
_LOST_ITEMS_SHARE = 0.05  # beyond it the replicates estimate another set of items


class BootstrapRow(estimates.EstimateRow):
    """One player and one way to resample; estimates are means over replicates."""

    bootstrap: str = column.key("what is resampled")
    n_replicates: int = column.context("replicates")
    perplexity_median: float = column.detail("median over replicates")
    perplexity_full: float = column.beside("perplexity", "that of all responses")
    gap_full_nats: float = column.beside("gap_nats", "that of all responses", unit="nats")
    se_bootstrap_nats: float = column.detail("standard deviation of gap_nats over replicates", unit="nats")
    items_lost: float = column.detail("mean number of items without any answer left")


class BootstrapSettings(estimates.ComparisonSettings):
    rounding: estimates.RoundingSettings = estimates.RoundingSettings(name="none")
    """The grid to which reports are rounded."""
    half_samples: Count = 100
    """Replicates that leave out a random half of the participants, as in the paper."""
    interval: Probability = 0.9
    """Probability inside the reported interval (equal tails)."""


@experiment(BootstrapSettings, row=BootstrapRow)
def bootstrap(study: xr.Dataset, settings: BootstrapSettings) -> ExperimentResult:
    """Bootstrap equation 5 for every player, three ways: one row per player and way."""
    if settings.estimator.name != "importance":
        raise InputError(
            f"is {settings.estimator.name!r}; the bootstrap resamples the terms of eq. 5: use estimator=importance",
            field="estimator",
        )
    study, control = estimates.asked_for(study, settings)
    scheme = settings.rounding.scheme
    pairs = response_pairs(study, control=control)
    rows, full_rows, replicates, warnings = [], [], [], []
    for player in estimates.chosen_players(study, settings.players):
        full = estimates.estimate(settings, study, player, scheme)
        full_rows.append(vars(estimates.estimate_row(full, control, estimates.EstimateRow)))
        arrays = log_terms(pairs, player, scheme), pairs.item, pairs.participant
        for kind, found in _replicates(arrays, settings).items():
            rows.append({**full_rows[-1], "bootstrap": kind, **_row(kind, found, full, settings.interval)})
            replicates.append(found.gap_nats)
            warnings += [f"{player}, {kind}: {text}" for text in _losses(found, full.gap.n_items)]
    # the weights' diagnostics are those of all responses: they stand in +exp=perplexity
    kept = [one.name for one in BootstrapRow.columns if one.name not in _OF_THE_WEIGHTS]
    table = pd.DataFrame(rows, columns=list(dict.fromkeys(["player", "bootstrap", *kept])))
    return ExperimentResult(
        table=table,
        row=BootstrapRow,
        dataset=_dataset(table, replicates),
        figures={"bootstrap": bootstrap_figure(table, study.attrs["name"], settings.interval)},
        text=summary(table, settings.interval),
        warnings=(*sampling_warnings(pd.DataFrame(full_rows)), *warnings),
    )


def _replicates(arrays: tuple[Any, Any, Any], settings: BootstrapSettings) -> dict[str, BootstrapGap]:
    """Resample three ways; the same people and items for every player, so that players are compared like with like."""
    seed, n = settings.seed, _CLUSTER_REPLICATES
    half, people, both = (rng_for(seed, kind) for kind in _KINDS)
    return {
        "half_sample": half_sample_bootstrap(*arrays, n_replicates=settings.half_samples, rng=half),
        "cluster_participants": cluster_bootstrap(*arrays, n_replicates=n, rng=people, resample_items=False),
        "cluster": cluster_bootstrap(*arrays, n_replicates=n, rng=both),
    }


def _row(kind: str, found: BootstrapGap, full: PerplexityEstimate, interval: float) -> dict[str, Any]:
    gap = found.gap_nats
    perplexity = perplexity_of_loss(gap + full.reference_loss_nats)
    # of one item nobody knows how much items differ
    known = gap.size > 1 and (kind != "cluster" or full.gap.n_items > 1)
    lower, upper = np.quantile(perplexity, [(1 - interval) / 2, (1 + interval) / 2]) if known else (np.nan, np.nan)
    return {
        "n_replicates": gap.size,
        "perplexity_full": full.perplexity,
        "gap_full_nats": full.gap.gap_nats,
        "gap_nats": gap.mean(),
        "se_bootstrap_nats": gap.std(ddof=1) if known else np.nan,
        "perplexity": perplexity.mean(),
        "perplexity_median": np.median(perplexity),
        "perplexity_lower": lower,
        "perplexity_upper": upper,
        "error_nats": gap.mean() - full.true_gap_nats,
        "items_lost": found.mean_items_lost,
    }


def _losses(found: BootstrapGap, n_items: int) -> list[str]:
    said = [f"{found.n_empty} replicates without any answer were left out"] if found.n_empty else []
    if found.mean_items_lost > _LOST_ITEMS_SHARE * n_items:
        lost = f"{found.mean_items_lost:.1f} of {n_items}"
        said.append(f"{lost} items a replicate had no answer left and were left out")
    return said


def _dataset(table: pd.DataFrame, replicates: list[NDArray[np.float64]]) -> xr.Dataset:
    gaps = np.full((len(replicates), max(len(one) for one in replicates)), np.nan)
    for row, one in enumerate(replicates):
        gaps[row, : one.size] = one
    return xr.Dataset(
        {
            "gap_nats": (("estimate", "replicate"), gaps, {"units": "nats", "comment": "NaN beyond n_replicates"}),
            **BootstrapRow.variables(table, "estimate", but=["gap_nats"]),
        }
    ).set_coords(["player", "rounding", "bootstrap"])


def summary(table: pd.DataFrame, interval: float = 0.9) -> str:
    """Say how wide the widest intervals are, and what they leave out."""
    widest = table[table["bootstrap"] == "cluster"]
    ends = zip(widest["player"], widest["perplexity_lower"], widest["perplexity_upper"], strict=True)
    said = listed(f"from {low:.1f} to {high:.1f} for {player_label(player)}" for player, low, high in ends)
    return (
        f"**With other participants and items, {interval:.0%} of perplexities would be {said}.** Dropping half of the "
        "participants, as the paper does, keeps the items and gives narrower intervals. A replicate has fewer distinct "
        "answers per item, so that equation 5 is lower in replicates than in the whole study."
    )


def bootstrap_figure(table: pd.DataFrame, study_name: str = "", interval: float = 0.9) -> Figure:
    """Bootstrap intervals of every player, the three kinds below each other."""
    ends = ["perplexity", "perplexity_lower", "perplexity_upper"]
    rows = table[table["bootstrap"] == "half_sample"].set_index("player")
    players = rows.index.tolist()
    rows["label"], rows["colour"] = list(map(player_label, players)), list(player_colours(players).values())
    series = []
    for kind, (label, marker, alpha, offset) in _KINDS.items():
        own = table[table["bootstrap"] == kind].set_index("player")[ends].add_suffix(f" {kind}")
        rows = rows.join(own)
        look: dict[str, Any] = {"label": label, "marker": marker, "alpha": alpha, "offset": offset}
        series.append(Series(*own.columns, size=5, capsize=2.5, **look))
    # the paper's figure shows the median
    series.append(Series("perplexity_median", label="median of the halves", marker="x", size=5, offset=0.25))
    series.append(Series("perplexity_full", label="all responses", marker="|", size=30))
    xlabel = f"perplexity per token; bars: central {interval:.0%}"
    shape: dict[str, Any] = {"row_height": 0.68, "scale": "log", "columns": 2}
    return forest_figure(rows, series, xlabel, "How much depends on who took part?", study_name, **shape)
