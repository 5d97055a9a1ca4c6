"""Figures of ``+exp=bet_perplexity``, each from tables alone."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from shannon_game.experiments.harness.figures import Series, forest, new_figure, player_label
from shannon_game.experiments.harness.marks import light_grid, mark, named, percent, titled
from shannon_game.experiments.harness.plots import diagonal, styled
from shannon_game.experiments.harness.questions import half_width, one_panel
from shannon_game.experiments.harness.settings import rows_of
from shannon_game.experiments.harness.tables import short_names

_HUMAN, _MODEL, _RECALIBRATED, _BRACKET = "#000000", "#D55E00", "#0072B2", "0.6"
_MARKERS = "osD^vP"
_LABELS = {
    "recalibrated": "humans, recalibrated,\nheld out",
    "floor": "humans, the least\nthat a back-off can give",
    "committee": "mean of all stakes",
}
_COLOURS = {"model": _MODEL, "recalibrated": _RECALIBRATED}


@styled
def loss_figure(
    table: pd.DataFrame, participants: pd.DataFrame, back_offs: Sequence[str], study_name: str = "", *, interval: float
) -> Figure:
    """Losses of people under every back-off, of recalibrated stakes and of models; and everybody's own bracket."""
    shown = table[table["kind"].isin(["bets", "recalibrated", "floor", "committee", "model"])]
    labels = {"bets": "humans, unnamed words\nby {}", **_LABELS}
    shown = shown.assign(
        label=[labels.get(row.kind, player_label(row.player)).format(row.back_off) for row in rows_of(shown)],
        colour=[_COLOURS.get(kind, _HUMAN) for kind in shown["kind"]],
        group=np.where(shown["kind"] == "model", "model", "people"),
    )
    fig = new_figure(7.6, max(3.4, 1.5 + 0.19 * len(participants), 1.5 + 0.45 * len(shown)))
    left, right = fig.subplots(1, 2, width_ratios=[1, 1])
    forest(left, shown, [Series("loss_nats", "loss_lower_nats", "loss_upper_nats")])
    left.set_xlabel(f"loss, nats per word ({interval:.0%})")
    left.set_title("a  All answers")
    columns = [f"loss_nats_{name}" for name in back_offs]
    own = _named(participants.sort_values(columns[0], ignore_index=True))
    own[columns] = own[columns].replace([np.inf, -np.inf], np.nan)
    low, high = own[columns].min(axis=1), own[columns].max(axis=1)
    series = [
        Series(column, label=f"b: unnamed words by {name}", marker=marker, colour=_HUMAN, hollow=True, size=3.6)
        for column, name, marker in zip(columns, back_offs, cycle(_MARKERS), strict=False)
    ]
    forest(right, own, series)
    known = own[columns].notna().all(axis=1)
    right.hlines(-np.flatnonzero(known), low[known], high[known], color=_BRACKET, linewidth=1.4)
    right.tick_params(axis="y", labelsize=7.5)
    right.set_xlabel("loss, nats per word")
    right.set_title("b  Everybody's own")
    for axes in (left, right):
        light_grid(axes, "x")
    named(fig, [*(each.handle() for each in series), mark("b: between them", _BRACKET)])
    titled(fig, "What bets on the next word cost", study_name)
    return fig


def _named(participants: pd.DataFrame) -> pd.DataFrame:
    return participants.assign(label=participants["participant"].map(short_names(participants["participant"])))


def calibration_figure(bins: pd.DataFrame, study_name: str = "", *, interval: float) -> Figure:
    """How often a word came, against what was staked on it."""
    half = half_width(bins["share_se"], interval)
    low, high = (bins["share_came"] - half).clip(0, 1), (bins["share_came"] + half).clip(0, 1)
    with one_panel(4.4, 4.2, "What stakes are worth", study_name, grid=None) as (fig, axes):
        diagonal(axes, margin=0.03)
        axes.vlines(bins["mean_stake"], low, high, color=_HUMAN, linewidth=1.2)
        sizes = 10 + 70 * bins["n_stakes"] / bins["n_stakes"].max()
        axes.scatter(bins["mean_stake"], bins["share_came"], s=sizes, facecolor="white", edgecolor=_HUMAN, zorder=3)
        for axis in (axes.xaxis, axes.yaxis):
            percent(axis)
        axes.set(xlabel="mean stake in a bin", ylabel="how often it came")
        stakes = mark(f"stakes of a bin (area: number), {interval:.0%}", _HUMAN, "o", line="-", hollow=True)
        named(fig, [stakes, mark("calibrated", "0.7", line="--")], 2)
    return fig


@styled
def recalibration_figure(participants: pd.DataFrame, study_name: str = "", *, interval: float) -> Figure:
    """Exponent of the stakes of every participant, and share of what is mixed in."""
    own = _named(participants).dropna(subset=["exponent_median"]).sort_values("exponent_median", ascending=False)
    fig = new_figure(6.6, max(2.6, 1.1 + 0.2 * len(own)))
    left, right = fig.subplots(1, 2, sharey=True)
    for axes, name in ((left, "exponent"), (right, "mixing_share")):
        columns = (f"{name}_median", f"{name}_lower", f"{name}_upper")
        forest(axes, own, [Series(*columns, colour=_RECALIBRATED, size=4, capsize=0)])
        light_grid(axes, "x")
    left.axvline(1, color="0.55", linewidth=0.8)
    left.set_xlabel(f"exponent of the stakes ({interval:.0%})\nbelow 1: too bold")
    right.set(xlabel=f"share mixed in ({interval:.0%})", xlim=(0, None))
    percent(right.xaxis)
    titled(fig, "How stakes are recalibrated", study_name)
    return fig
