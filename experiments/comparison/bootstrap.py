"""How the estimate leans on who took part and on which items were asked (figure 7 of the paper)."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from shannon_game.estimators.comparison import (
    BootstrapGap,
    cluster_bootstrap,
    half_sample_bootstrap,
    log_terms,
    response_pairs,
)
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.perplexity import perplexity_of_loss
from shannon_game.experiments.comparison.estimates import (
    TABLE_COLUMNS,
    ComparisonSettings,
    RoundingSettings,
    asked_for,
    chosen_players,
    estimate,
    table_row,
)
from shannon_game.experiments.comparison.perplexity import sampling_warnings
from shannon_game.experiments.harness.figures import STYLE, Series, forest, new_figure, player_colours, player_label
from shannon_game.experiments.harness.marks import named
from shannon_game.experiments.harness.result import ExperimentResult, experiment
from shannon_game.experiments.harness.settings import rng_for, rows_of
from shannon_game.experiments.harness.tables import table_variables
from shannon_game.inference.settings import Count, Probability

__all__ = ["BootstrapSettings", "bootstrap", "bootstrap_figure"]

_KINDS = {
    "half_sample": "half of the participants dropped",
    "cluster_participants": "participants resampled",
    "cluster": "participants and items resampled",
}
_OF_THE_WEIGHTS = ("pareto_k", "kl_nats", "n_required", "share_starved", "verdict")
_LOST_ITEMS_SHARE = 0.05  # beyond it the replicates estimate another set of items


class BootstrapSettings(ComparisonSettings):
    """Settings of :func:`bootstrap`."""

    rounding: RoundingSettings = RoundingSettings(name="none")
    """The grid to which reports are rounded."""
    half_samples: Count = 100
    """Replicates that leave out a random half of the participants, as in the paper."""
    cluster_replicates: Count = 2000
    """Replicates that resample participants and items with replacement."""
    interval: Probability = 0.9
    """Probability inside the reported interval (equal tails)."""


@experiment(BootstrapSettings)
def bootstrap(study: xr.Dataset, settings: BootstrapSettings) -> ExperimentResult:
    """Bootstrap equation 5 for every player, three ways.

    Parameters
    ----------
    study : xarray.Dataset
        A comparison study.
    settings : BootstrapSettings, optional
        Or its fields by name.

    Returns
    -------
    ExperimentResult
        One row a player and kind of bootstrap.

    Raises
    ------
    InputError
        For another estimator than ``importance``, whose log-mean is not resampled here.

    Examples
    --------
    >>> from shannon_game import bootstrap, simulated
    >>> study = simulated(n_items=12, n_reference_items=30, vocab_size=300, n_candidates=40, n_participants=8)
    >>> bootstrap(study, players="lm-weak", cluster_replicates=50).table[["bootstrap", "n_replicates"]]
                  bootstrap  n_replicates
    0           half_sample           100
    1  cluster_participants            50
    2               cluster            50
    """
    if settings.estimator.name != "importance":
        raise InputError(
            f"is {settings.estimator.name!r}; the bootstrap resamples the terms of eq. 5: use estimator=importance",
            field="estimator",
        )
    tail = (1 - settings.interval) / 2
    study, control = asked_for(study, settings)
    scheme = settings.rounding.scheme
    pairs = response_pairs(study, control=control)
    rows: list[dict[str, Any]] = []
    full_rows: list[dict[str, Any]] = []
    replicates: list[np.ndarray] = []
    warnings: list[str] = []
    for player in chosen_players(study, settings.players):
        full = estimate(settings, study, player, scheme)
        full_rows.append(table_row(full, control))
        for kind, result in _replicates(
            (log_terms(pairs, player, scheme), pairs.item, pairs.participant),
            settings.half_samples,
            settings.cluster_replicates,
            settings.seed,
        ).items():
            perplexity = perplexity_of_loss(result.gap_nats + full.reference_loss_nats)
            # of one item nobody knows how much items differ
            known = result.gap_nats.size > 1 and (kind != "cluster" or full.gap.n_items > 1)
            lower, upper = np.quantile(perplexity, [tail, 1 - tail]) if known else (np.nan, np.nan)
            rows.append(
                {
                    **table_row(full, control),
                    "bootstrap": kind,
                    "n_replicates": result.gap_nats.size,
                    "perplexity_full": full.perplexity,
                    "gap_full_nats": full.gap.gap_nats,
                    "gap_nats": result.gap_nats.mean(),
                    "se_bootstrap_nats": result.gap_nats.std(ddof=1) if known else np.nan,
                    "perplexity": perplexity.mean(),
                    "perplexity_median": np.median(perplexity),
                    "perplexity_lower": lower,
                    "perplexity_upper": upper,
                    "error_nats": result.gap_nats.mean() - full.true_gap_nats,
                    "items_lost": result.mean_items_lost,
                }
            )
            replicates.append(result.gap_nats)
            if result.n_empty:
                warnings.append(f"{player}, {kind}: {result.n_empty} replicates without any answer were left out")
            if result.mean_items_lost > _LOST_ITEMS_SHARE * full.gap.n_items:
                warnings.append(
                    f"{player}, {kind}: {result.mean_items_lost:.1f} of {full.gap.n_items} items a replicate had no "
                    "answer left and were left out"
                )
    extra = ["n_replicates", "perplexity_median", "perplexity_full", "gap_full_nats", "se_bootstrap_nats", "items_lost"]
    # the weights' diagnostics are those of all responses: they stand in +exp=perplexity
    kept = [name for name in TABLE_COLUMNS[1:] if name not in _OF_THE_WEIGHTS]
    table = pd.DataFrame(rows, columns=["player", "bootstrap", *kept, *extra])
    return ExperimentResult(
        table=table,
        dataset=_dataset(table, replicates),
        figures={"bootstrap": bootstrap_figure(table, study.attrs["name"], settings.interval)},
        text=summary(table, settings.interval),
        warnings=(*sampling_warnings(pd.DataFrame(full_rows)), *warnings),
    )


def _replicates(arrays: tuple[Any, Any, Any], n_half: int, n_cluster: int, seed: int) -> dict[str, BootstrapGap]:
    """Resample three ways; the same people and items for every player, so that players are compared like with like."""
    return {
        "half_sample": half_sample_bootstrap(*arrays, n_replicates=n_half, rng=rng_for(seed, "half_sample")),
        "cluster_participants": cluster_bootstrap(
            *arrays, n_replicates=n_cluster, rng=rng_for(seed, "cluster_participants"), resample_items=False
        ),
        "cluster": cluster_bootstrap(*arrays, n_replicates=n_cluster, rng=rng_for(seed, "cluster")),
    }


def _dataset(table: pd.DataFrame, replicates: list[np.ndarray]) -> xr.Dataset:
    gaps = np.full((len(replicates), max(len(one) for one in replicates)), np.nan)
    for row, one in enumerate(replicates):
        gaps[row, : one.size] = one
    return xr.Dataset(
        {
            "gap_nats": (("estimate", "replicate"), gaps, {"units": "nats", "comment": "NaN beyond n_replicates"}),
            **table_variables(table, "estimate", but=["gap_nats"]),
        }
    ).set_coords(["player", "rounding", "bootstrap"])


def summary(table: pd.DataFrame, interval: float = 0.9) -> str:
    """Say what the intervals are and what they leave out."""
    lines = [
        f"- **{player_label(row.player)}**, {_KINDS[row.bootstrap]}: mean {row.perplexity:.1f}, median "
        f"{row.perplexity_median:.1f} [{row.perplexity_lower:.1f}, {row.perplexity_upper:.1f}] "
        f"(all responses: {row.perplexity_full:.1f})"
        for row in rows_of(table)
    ]
    return (
        f"Mean, median and central {interval:.0%} of the perplexity over replicates; se_items and se_samples in the "
        "table are those of all responses, se_bootstrap that of the replicates. Dropping half of the participants (as "
        "the paper does, which shows the median) holds the items fixed; the cluster bootstrap resamples participants "
        "and items. Replicates hold fewer distinct answers an item than the study, so eq. 5's downward bias grows in "
        "them: their mean lies below the full estimate where the tail is heavy.\n\n" + "\n".join(lines)
    )


def bootstrap_figure(table: pd.DataFrame, study_name: str = "", interval: float = 0.9) -> Figure:
    """Bootstrap intervals of every player, the three kinds below each other."""
    players = list(dict.fromkeys(table["player"]))
    ends = ["perplexity", "perplexity_lower", "perplexity_upper"]
    wide = table.pivot_table(index="player", columns="bootstrap", values=ends, dropna=False).loc[players]
    wide.columns = [" ".join(pair) for pair in wide.columns]
    half = table[table["bootstrap"] == "half_sample"]
    rows = wide.assign(
        label=[player_label(name) for name in players],
        colour=list(player_colours(players).values()),
        perplexity_full=table.drop_duplicates("player")["perplexity_full"].to_numpy(),
        perplexity_median=half.set_index("player").loc[players, "perplexity_median"].to_numpy(),
    )
    series = [
        Series(
            f"perplexity {kind}",
            f"perplexity_lower {kind}",
            f"perplexity_upper {kind}",
            label=_KINDS[kind],
            marker=marker,
            alpha=alpha,
            size=5,
            capsize=2.5,
            offset=offset,
        )
        for kind, marker, alpha, offset in (
            ("half_sample", "o", 1.0, 0.25),
            ("cluster_participants", "s", 0.75, 0.0),
            ("cluster", "D", 0.5, -0.25),
        )
    ]
    # the paper's figure shows the median
    median = Series("perplexity_median", label="median of the halves", marker="x", size=5, offset=0.25)
    everyone = Series("perplexity_full", label="all responses", marker="|", size=30)
    with mpl.rc_context(STYLE):
        fig = new_figure(6.8, 1.5 + 0.68 * len(players))
        axes = fig.add_subplot()
        forest(axes, rows, [*series, median, everyone], scale="log")
        axes.set_xlabel("perplexity per token (log scale)")
        rounding = table["rounding"].iloc[0]
        axes.set_title(f"Bootstrap mean and central {interval:.0%} ({study_name}, rounding {rounding})")
        named(fig, [each.handle() for each in [*series, median, everyone]], 2)
    return fig
