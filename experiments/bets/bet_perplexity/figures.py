"""Figures of ``+exp=bet_perplexity``, each from tables alone."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.harness.figures import STYLE, Series, forest, new_figure, player_label
from experiments.harness.marks import light_grid, mark, named, percent, titled
from experiments.harness.settings import rows_of
from experiments.harness.tables import short_names

__all__ = ["calibration_figure", "loss_figure", "recalibration_figure"]

_HUMAN, _MODEL, _RECALIBRATED, _BRACKET = "#000000", "#D55E00", "#0072B2", "0.6"
_MARKERS = "osD^vP"
_LABELS = {
    "recalibrated": "humans, recalibrated,\nheld out",
    "floor": "humans, the least\nthat a back-off can give",
    "committee": "mean of all stakes",
}
_COLOURS = {"model": _MODEL, "recalibrated": _RECALIBRATED}


def loss_figure(
    table: pd.DataFrame, participants: pd.DataFrame, back_offs: Sequence[str], study_name: str = "", *, interval: float
) -> Figure:
    """Losses of people under every back-off, of recalibrated stakes and of models; and everybody's own bracket."""
    shown = table[table["kind"].isin(["bets", "recalibrated", "floor", "committee", "model"])].copy()
    shown["label"] = [
        f"humans, unnamed words\nby {row.back_off}"
        if row.kind == "bets"
        else _LABELS.get(row.kind, player_label(row.player))
        for row in rows_of(shown)
    ]
    shown["colour"] = [_COLOURS.get(kind, _HUMAN) for kind in shown["kind"]]
    shown["group"] = np.where(shown["kind"] == "model", "model", "people")
    with mpl.rc_context(STYLE):
        fig = new_figure(7.6, max(3.4, 1.5 + 0.19 * len(participants), 1.5 + 0.45 * len(shown)))
        left, right = fig.subplots(1, 2, width_ratios=[1, 1])
        forest(left, shown, [Series("loss_nats", "loss_lower_nats", "loss_upper_nats")])
        left.set_xlabel(f"loss, nats a word ({interval:.0%})")
        left.set_title("a  All answers")
        light_grid(left, "x")
        _brackets(right, participants, back_offs)
        handles = [
            mark(f"b: unnamed words by {name}", _HUMAN, _MARKERS[at % 6], hollow=True)
            for at, name in enumerate(back_offs)
        ]
        handles.append(mark("b: between them", _BRACKET, line="-"))
        named(fig, handles, 3)
        titled(fig, "What bets on the next word cost", study_name)
    return fig


def _brackets(axes: Axes, participants: pd.DataFrame, back_offs: Sequence[str]) -> None:
    columns = [f"loss_nats_{name}" for name in back_offs]
    own = participants.sort_values(columns[0], ignore_index=True)
    values = own[columns].to_numpy(dtype=float)
    values = np.where(np.isfinite(values), values, np.nan)
    height = -np.arange(len(own), dtype=float)
    known = ~np.isnan(values).any(axis=1)
    axes.hlines(height[known], values[known].min(axis=1), values[known].max(axis=1), color=_BRACKET, linewidth=1.4)
    for at in range(len(columns)):
        axes.plot(values[:, at], height, _MARKERS[at % 6], color=_HUMAN, markersize=3.6, markerfacecolor="white")
    names = short_names(own["participant"].tolist())
    axes.set_yticks(height, [names[name] for name in own["participant"]], fontsize=7.5)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("loss, nats a word")
    axes.set_title("b  Everybody's own")
    light_grid(axes, "x")


def calibration_figure(bins: pd.DataFrame, study_name: str = "", *, interval: float) -> Figure:
    """How often a word came, against what was staked on it."""
    half = NormalDist().inv_cdf((1 + interval) / 2) * bins["share_se"].fillna(0)
    with mpl.rc_context(STYLE):
        fig = new_figure(4.4, 4.2)
        axes = fig.add_subplot()
        axes.plot([0, 1], [0, 1], color="0.55", linewidth=0.8)
        low, high = (bins["share_came"] - half).clip(0, 1), (bins["share_came"] + half).clip(0, 1)
        axes.vlines(bins["mean_stake"], low, high, color=_HUMAN, linewidth=1.2)
        sizes = 10 + 70 * bins["n_stakes"] / bins["n_stakes"].max()
        axes.scatter(bins["mean_stake"], bins["share_came"], s=sizes, facecolor="white", edgecolor=_HUMAN, zorder=3)
        for axis in (axes.xaxis, axes.yaxis):
            percent(axis)
        axes.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), aspect="equal")
        axes.set_xlabel("mean stake in a bin")
        axes.set_ylabel("how often it came")
        bars = mark(f"stakes of a bin (area: number), {interval:.0%}", _HUMAN, "o", line="-", hollow=True)
        named(fig, [bars, mark("calibrated", "0.7", line="-")], 2)
        titled(fig, "What stakes are worth", study_name)
    return fig


def recalibration_figure(participants: pd.DataFrame, study_name: str = "", *, interval: float) -> Figure:
    """Exponent of the stakes of every participant, and share of what is mixed in."""
    own = participants.dropna(subset=["exponent_median"]).sort_values("exponent_median", ascending=False)
    own = own.assign(label=[short_names(participants["participant"])[name] for name in own["participant"]])
    with mpl.rc_context(STYLE):
        fig = new_figure(6.6, max(2.6, 1.1 + 0.2 * len(own)))
        left, right = fig.subplots(1, 2, sharey=True)
        for axes, name in ((left, "exponent"), (right, "mixing_share")):
            columns = (f"{name}_median", f"{name}_lower", f"{name}_upper")
            forest(axes, own, [Series(*columns, colour=_RECALIBRATED, size=4, capsize=0)])
            light_grid(axes, "x")
        left.axvline(1, color="0.55", linewidth=0.8)
        left.set_xlabel(f"exponent of the stakes ({interval:.0%})\nbelow 1: too bold")
        right.set_xlabel(f"share mixed in ({interval:.0%})")
        right.set_xlim(left=0)
        percent(right.xaxis)
        titled(fig, "How stakes are recalibrated", study_name)
    return fig
