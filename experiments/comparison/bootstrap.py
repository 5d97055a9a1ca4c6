"""``+exp=bootstrap``: how the estimate leans on who took part and on which items were asked (figure 7)."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure
from omegaconf import DictConfig

from estimators.comparison import (
    BootstrapGap,
    cluster_bootstrap,
    control_model,
    half_sample_bootstrap,
    log_terms,
    response_pairs,
)
from estimators.errors import InputError
from experiments.comparison.perplexity import sampling_warnings
from experiments.harness.figures import (
    STYLE,
    finite_range,
    log_perplexity_axis,
    new_figure,
    player_colours,
    player_label,
)
from experiments.harness.outputs import ExperimentResult
from experiments.harness.settings import (
    TABLE_COLUMNS,
    chosen_players,
    chosen_rounding,
    estimate,
    rng_for,
    rows_of,
    table_row,
    tail_probability,
    whole_numbers,
    with_n_responses,
)

__all__ = ["run"]

_KINDS = {
    "half_sample": "half of the participants dropped",
    "cluster_participants": "participants resampled",
    "cluster": "participants and items resampled",
}
_OF_THE_WEIGHTS = ("pareto_k", "kl_nats", "n_required", "share_starved", "verdict")
_LOST_ITEMS_SHARE = 0.05  # beyond it the replicates estimate another set of items


def run(cfg: DictConfig, study: xr.Dataset) -> ExperimentResult:
    """Bootstrap eq. 5 for every player, three ways; the other estimators' log-means are not resampled here."""
    if cfg.estimator.name != "importance":
        raise InputError(
            f"is {cfg.estimator.name!r}; the bootstrap resamples the terms of eq. 5: use estimator=importance",
            field="estimator",
        )
    tail = tail_probability(cfg)
    study = with_n_responses(cfg, study)
    control = control_model(study, cfg.generator.name, control_only=cfg.generator.control_only)
    scheme = chosen_rounding(cfg)
    pairs = response_pairs(study, control=control)
    rows: list[dict[str, Any]] = []
    full_rows: list[dict[str, Any]] = []
    replicates: list[np.ndarray] = []
    warnings: list[str] = []
    for player in chosen_players(cfg, study):
        full = estimate(cfg, study, player, scheme)
        full_rows.append(table_row(full, control))
        arrays = (log_terms(pairs, player, scheme), pairs.item, pairs.participant)
        # the same resampled people and items for every player, so that players are compared like with like
        n_half, n_cluster = (whole_numbers(cfg, key)[0] for key in ("half_samples", "cluster_replicates"))
        kinds: dict[str, BootstrapGap] = {
            "half_sample": half_sample_bootstrap(*arrays, n_replicates=n_half, rng=rng_for(cfg, "half_sample")),
            "cluster_participants": cluster_bootstrap(
                *arrays, n_replicates=n_cluster, rng=rng_for(cfg, "cluster_participants"), resample_items=False
            ),
            "cluster": cluster_bootstrap(*arrays, n_replicates=n_cluster, rng=rng_for(cfg, "cluster")),
        }
        for kind, result in kinds.items():
            perplexity = np.exp(result.gap_nats + full.reference_loss_nats)
            lower, upper = np.quantile(perplexity, [tail, 1 - tail])
            rows.append(
                {
                    **table_row(full, control),
                    "bootstrap": kind,
                    "n_replicates": result.gap_nats.size,
                    "perplexity_full": full.perplexity,
                    "gap_full_nats": full.gap.gap_nats,
                    "gap_nats": result.gap_nats.mean(),
                    "se_bootstrap_nats": result.gap_nats.std(ddof=1) if result.gap_nats.size > 1 else np.nan,
                    "perplexity": perplexity.mean(),
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
    extra = ["n_replicates", "perplexity_full", "gap_full_nats", "se_bootstrap_nats", "items_lost"]
    # the weights' diagnostics are those of all responses: they stand in +exp=perplexity
    kept = [name for name in TABLE_COLUMNS[1:] if name not in _OF_THE_WEIGHTS]
    table = pd.DataFrame(rows, columns=["player", "bootstrap", *kept, *extra])
    return ExperimentResult(
        table=table,
        dataset=_dataset(table, replicates),
        figures={"bootstrap": figure(table, cfg)},
        summary=summary(table, cfg),
        warnings=(*sampling_warnings(pd.DataFrame(full_rows)), *warnings),
    )


def _dataset(table: pd.DataFrame, replicates: list[np.ndarray]) -> xr.Dataset:
    gaps = np.full((len(replicates), max(len(one) for one in replicates)), np.nan)
    for row, one in enumerate(replicates):
        gaps[row, : one.size] = one
    numbers = table.select_dtypes("number").drop(columns="gap_nats")
    return xr.Dataset(
        {
            "gap_nats": (("estimate", "replicate"), gaps, {"units": "nats", "comment": "NaN beyond n_replicates"}),
            **{str(name): ("estimate", numbers[name].to_numpy()) for name in numbers},
        },
        coords={name: ("estimate", table[name].to_numpy(dtype=object)) for name in ("player", "rounding", "bootstrap")},
    )


def summary(table: pd.DataFrame, cfg: DictConfig) -> str:
    """Say what the intervals are and what they leave out."""
    interval = float(cfg.experiment.interval)
    lines = [
        f"- **{player_label(row.player)}**, {_KINDS[row.bootstrap]}: mean {row.perplexity:.1f} "
        f"[{row.perplexity_lower:.1f}, {row.perplexity_upper:.1f}] (all responses: {row.perplexity_full:.1f})"
        for row in rows_of(table)
    ]
    return (
        f"Mean and central {interval:.0%} of the perplexity over replicates; se_items and se_samples in the table are "
        "those of all responses, se_bootstrap that of the replicates. Dropping half of the participants (as the "
        "paper does) holds the items fixed; the cluster bootstrap resamples participants and items. Replicates hold "
        "fewer distinct answers an item than the study, so eq. 5's downward bias grows in them: their mean lies below "
        "the full estimate where the tail is heavy.\n\n" + "\n".join(lines)
    )


def figure(table: pd.DataFrame, cfg: DictConfig) -> Figure:
    """Bootstrap intervals, one panel line a player and kind."""
    players = list(dict.fromkeys(table["player"]))
    colours = player_colours(players)
    styles = {"half_sample": ("o", 1.0), "cluster_participants": ("s", 0.75), "cluster": ("D", 0.5)}
    with mpl.rc_context(STYLE):
        fig = new_figure(6.8, 1.5 + 0.68 * len(players))
        axes = fig.add_subplot()
        ticks = []
        for position, player in enumerate(players):
            rows = table[table["player"] == player]
            ticks.append(-position)
            for offset, row in zip((0.25, 0.0, -0.25), rows_of(rows), strict=True):
                marker, alpha = styles[row.bootstrap]
                axes.errorbar(
                    row.perplexity,
                    -position + offset,
                    # the mean of equal replicates can differ from their quantiles in the last bit
                    xerr=np.maximum(
                        [[row.perplexity - row.perplexity_lower], [row.perplexity_upper - row.perplexity]], 0
                    ),
                    fmt=marker,
                    color=colours[player],
                    alpha=alpha,
                    markersize=5,
                    capsize=2.5,
                    label=_KINDS[row.bootstrap] if position == 0 else None,
                )
            full = rows["perplexity_full"].iloc[0]
            axes.plot(
                [full, full],
                [-position - 0.38, -position + 0.38],
                color=colours[player],
                linewidth=1,
                linestyle=":",
                label="all responses" if position == 0 else None,
            )
        axes.set_yticks(ticks, [player_label(name) for name in players])
        axes.tick_params(axis="y", length=0)
        axes.set_ylim(-len(players) + 0.45, 0.55)
        log_perplexity_axis(axes, "x", *finite_range(table["perplexity_lower"], table["perplexity_upper"]))
        axes.set_xlabel("perplexity per token (log scale)")
        interval = float(cfg.experiment.interval)
        rounding = table["rounding"].iloc[0]
        axes.set_title(f"Bootstrap mean and central {interval:.0%} ({cfg.study.name}, rounding {rounding})")
        legend = fig.legend(loc="outside lower center", ncols=2)
        for handle in legend.legend_handles:
            if handle is not None:
                handle.set_alpha(1.0)
    return fig
