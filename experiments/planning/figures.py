"""Cost curves: the width of the interval against people's time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from shannon_game.experiments.harness.figures import new_figure
from shannon_game.experiments.harness.marks import light_grid, mark, name_ends, named, number_ticks, titled
from shannon_game.experiments.harness.plots import styled
from shannon_game.experiments.planning.settings import ADAPTIVE, GAMES, SHARE_GAMES

GAME_LABELS = {
    "comparison": "comparisons, equation 5",
    "bridge": "bridge, scale from free answers",
    ADAPTIVE: "the same, adaptive questions",
    "bets": "bets: what was really lost",
    "mixed": "bridge and bets",
    "cloze": "cloze answers: TVD",
    "accuracy": "one guess: accuracy",
    "ranks": "guesses until right: upper bound",
}
"""What figures and words call the games."""

_COLOURS = dict(zip(GAMES, ("#D55E00", "#0072B2", "#009E73", "#4A9BC8", "#CC79A7", "#000000", "0.5"), strict=True)) | {
    ADAPTIVE: "#8C564B"
}

_MARKERS = dict(zip(GAMES, "os^DvPX", strict=True)) | {ADAPTIVE: "<"}

COVERS_TOO_LITTLE = 0.1
"""How far below the stated coverage a design's is drawn hollow."""


@styled
def cost_figure(table: pd.DataFrame, study_name: str = "", interval: float = 0.9) -> Figure:
    """Width of the interval against minutes of people's time, one line per game through its cheapest designs."""
    share = table["game"].isin(SHARE_GAMES)
    parts = [(part, unit) for part, unit in ((table[~share], "nats"), (table[share], "share")) if len(part)]
    fig = new_figure(4.5, 0.9 + 3.0 * len(parts))
    for number, (part, unit) in enumerate(parts, start=1):
        _panel(fig.add_subplot(len(parts), 1, number), part, unit, interval)
    titled(fig, "What does a narrower interval cost?", study_name)
    few = f"interval holds the truth in less than {interval - COVERS_TOO_LITTLE:.0%}"
    named(fig, [mark("recommended", "0.3", "*", markersize=11), mark(few, "0.3", "o", hollow=True)], 1)
    return fig


def _panel(axes: Axes, table: pd.DataFrame, unit: str, interval: float) -> None:
    ends: list[tuple[float, str, str]] = []
    for game, own in table.sort_values(["minutes", "width"]).groupby("game"):
        name = str(game)
        # no other design of the game is both cheaper and narrower
        shown = own[(own["width"] <= own["width"].cummin()) & ~own.duplicated("minutes") | own["recommended"]]
        look: dict[str, Any] = {"color": _COLOURS[name], "marker": _MARKERS[name], "markersize": 6}
        axes.plot(shown["minutes"], shown["width"], zorder=2, **look)
        few = shown[shown["coverage"] < interval - COVERS_TOO_LITTLE]
        axes.plot(few["minutes"], few["width"], linestyle="", markerfacecolor="white", zorder=3, **look)
        best = shown[shown["recommended"]]
        axes.plot(best["minutes"], best["width"], "*", color=_COLOURS[name], markersize=16, zorder=4)
        ends.append((float(shown["width"].iloc[-1]), GAME_LABELS[name], _COLOURS[name]))
    ends.append((float(table["wanted_width"].iloc[0]), "wanted width", "0.3"))
    axes.axhline(ends[-1][0], color="0.3", linestyle="--", linewidth=1, zorder=1)
    axes.set(xscale="log", yscale="log", xlabel="people's time, minutes")
    axes.set_ylabel(f"width of the {interval:.0%} interval, {unit}")
    light_grid(axes, "both")
    axes.set_ylim(table["width"].min() / 1.3, table[["width", "wanted_width"]].max().max() * 1.3)
    for axis, limits in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
        number_ticks(axis, _round_numbers(*limits))
    name_ends(axes, ends)


def _round_numbers(low: float, high: float) -> list[float]:
    """Numbers 1, 2 and 5 times a power of ten; fewer where they would be many."""
    steps = (1, 2, 5) if high / low < 100 else (1, 3) if high / low < 1000 else (1,)
    powers = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    return [step * 10.0**power for power in powers for step in steps if low <= step * 10.0**power <= high]
