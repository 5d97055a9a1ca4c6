"""``+exp=shared_belief``: whether people share one belief, and what it means for their loss if they do not."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.comparison import PrivateBelief, private_belief, scaled_bridge
from shannon_game.estimators.comparison.study_sources import has_free_answers
from shannon_game.estimators.comparison.token_pool import study_pool
from shannon_game.experiments.comparison.estimates import RoundingSettings
from shannon_game.experiments.harness import rows as column
from shannon_game.experiments.harness.figures import new_figure
from shannon_game.experiments.harness.marks import light_grid, titled
from shannon_game.experiments.harness.plots import styled
from shannon_game.experiments.harness.result import ExperimentResult, experiment
from shannon_game.inference.settings import Positive, Probability, Settings


class SharedBeliefRow(column.Row):
    """The one row."""

    variance_nats2: float = column.headline("variance between people", unit="nats2", se="se_nats2", interval="{}_nats2")
    sd_nats: float = column.estimate("its square root", unit="nats")
    p_shared: float = column.beside("variance_nats2", "probability of one as large if people share a belief")
    loss_most_nats: float = column.estimate("what one person loses more than the shared belief, at most", unit="nats")
    token_sd_nats: float = column.detail("standard deviation between tokens", unit="nats")
    noise_sd_nats: float = column.detail("standard deviation of noise", unit="nats")
    slope: float = column.context("k, by which reports were divided")
    slope_from: str = column.context("where the slope comes from")
    n_reports: int = column.context("reports")
    n_repeated: int = column.context("repeated comparisons")
    n_participants: int = column.context("people")
    n_items: int = column.context("items")
    true_variance_nats2: float = column.truth("variance_nats2", "that of a simulated study", unit="nats2")


class SharedBeliefSettings(Settings):
    rounding: RoundingSettings = RoundingSettings(name="none")
    """What reports are rounded to first."""
    slope: Positive | None = None
    """How large the log-odds of reports are beside those of belief. null: what the free answers say (the scaled
    bridge), or 1 where nobody answered freely; the variance is then that of reports."""
    interval: Probability = 0.9
    """Probability inside the interval."""


@experiment(SharedBeliefSettings, row=SharedBeliefRow)
def shared_belief(study: xr.Dataset, settings: SharedBeliefSettings) -> ExperimentResult:
    """Estimate how far people's beliefs differ from each other, from tokens of one item that one person compared.

    An error if fewer than three people compared two tokens of one item.

    Examples
    --------
    >>> from shannon_game import designed_simulated, shared_belief
    >>> study = designed_simulated(n_items=30, vocab_size=200, design={"n_comparisons_each": 2})
    >>> shared_belief(study).table[["slope_from", "n_participants"]]
         slope_from  n_participants
    0  free answers              29
    """
    rounding = settings.rounding.scheme
    slope, source = settings.slope, "settings"
    if slope is None and has_free_answers(study):
        slope, source = scaled_bridge(study_pool(study, rounding=rounding)[0]).slope, "free answers"
    elif slope is None:
        slope, source = 1.0, "reports"
    found = private_belief(study, rounding=rounding, slope=slope, probability=settings.interval)
    row = {f"{name}_nats2": getattr(found, name) for name in ("variance", "se", "lower", "upper")}
    row |= {"slope_from": source, "true_variance_nats2": study.attrs.get("true_private_variance_nats2", np.nan)}
    table = SharedBeliefRow.table([SharedBeliefRow.of(found, **row)])
    return ExperimentResult(
        table=table,
        dataset=xr.Dataset(SharedBeliefRow.variables(table, "row")),
        figures={"shared_belief": shared_belief_figure(found, str(study.attrs.get("name", "")))},
        text=_summary(found, settings.interval, source),
    )


def _summary(found: PrivateBelief, interval: float, source: str) -> str:
    scale = {
        "free answers": f"on the scale of the free answers (slope of reports {found.slope:.2f})",
        "settings": f"slope of reports {found.slope:g}, as set",
        "reports": "on the scale of reports, as nothing says what that is",
    }[source]
    differ = f"People's beliefs differ by a standard deviation of {found.sd_nats:.2f} nats per token**"
    same = f"People may share one belief: nothing beyond chance differs (sd {found.sd_nats:.2f} nats per token)**"
    return (
        f"**{differ if found.lower > 0 else same} (p = {found.p_shared:.3f} if they share one). A single person "
        f"loses up to {found.loss_most_nats:.2f} nats more than the shared belief. The variance between people "
        f"of the log-probability of a token is {found.variance:.2f} [{found.lower:.2f}, {found.upper:.2f}] square nats "
        f"({interval:.0%} interval, {scale}), from {found.n_repeated:,} repeated comparisons by "
        f"{found.n_participants} people."
    )


@styled
def shared_belief_figure(found: PrivateBelief, study_name: str) -> Figure:
    """What one person reports of two tokens of an item, beside what two people report."""
    own, others = _pairs(found)
    # as many of two people, who are many more
    others = others[:: max(1, len(others) // max(len(own), 1))]
    limit = float(np.quantile(np.abs(own), 0.99)) if own.size else 1.0
    fig = new_figure(4.5, 3.1)
    grid = fig.subplots(1, 2, sharex=True, sharey=True)
    for axes, pairs, title in zip(grid, (own, others), ("one person", "two people"), strict=True):
        axes.plot(*pairs.T, "o", markersize=3, alpha=0.3, color="black", markeredgewidth=0)
        slope = float(np.sum(pairs[:, 0] * pairs[:, 1]) / max(np.sum(pairs[:, 0] ** 2), 1e-9))
        axes.axline((0, 0), slope=slope, color="#D55E00", linewidth=1.5)
        axes.set_title(f"{title}: r = {slope:+.2f}", loc="left", fontsize=10)
        axes.set(xlim=(-limit, limit), ylim=(-limit, limit), aspect="equal", xlabel="report on a token, nats")
        light_grid(axes, "both")
    grid[0].set_ylabel("report on another, nats")
    titled(fig, "Do people share one belief?", study_name)
    return fig


def _pairs(found: PrivateBelief) -> tuple[FloatArray, FloatArray]:
    """Two reports on different tokens of an item, in both orders, less others' mean on the same: of one person, of two.

    Tokens that one person compared are left out.
    """
    n = np.bincount(found.token)[found.token] - 1
    total = np.bincount(found.token, found.residual_nats)[found.token]
    known = n > 0
    unlike = found.residual_nats - (total - found.residual_nats) / np.maximum(n, 1)
    own, others = [np.empty((0, 2))], [np.empty((0, 2))]
    for rows in np.split(np.arange(found.item.size), np.flatnonzero(np.diff(found.item)) + 1):
        i, j = np.meshgrid(rows[known[rows]], rows[known[rows]])
        different, same = found.token[i] != found.token[j], found.person[i] == found.person[j]
        for pairs, keep in ((own, different & same), (others, different & ~same)):
            pairs.append(np.column_stack([unlike[i[keep]], unlike[j[keep]]]))
    return np.concatenate(own), np.concatenate(others)
