"""Cost curves: the width of the interval against people's time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from shannon_game.experiments.harness.figures import new_figure
from shannon_game.experiments.harness.marks import light_grid, mark, named, number_ticks, titled
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

COVERS_TOO_LITTLE = 0.1
"""How far below the stated coverage a design's is drawn hollow."""


@styled
def cost_figure(table: pd.DataFrame, study_name: str = "", interval: float = 0.9) -> Figure:
    """Width of the interval against minutes of people's time, one line a game through its cheapest designs."""
    share = table["game"].isin(SHARE_GAMES)
    parts = [(part, unit) for part, unit in ((table[~share], "nats"), (table[share], "share")) if len(part)]
    fig = new_figure(2.2 + 4.0 * len(parts), 4.4)
    for number, (part, unit) in enumerate(parts):
        axes = fig.add_subplot(1, len(parts), number + 1)
        _panel(axes, part, unit, interval)
    titled(fig, "What a narrower interval costs", study_name)
    games = [game for game in GAME_LABELS if game in set(table["game"])]
    handles = [mark(GAME_LABELS[game], _COLOURS[game], "o", line="-") for game in games]
    handles += [
        mark(f"covers less than {interval - COVERS_TOO_LITTLE:.0%}", "0.3", "o", hollow=True),
        mark("recommended", "0.3", "*", markersize=11),
        mark("wanted width", "0.3", line="--"),
    ]
    named(fig, handles, 3)
    return fig


def _panel(axes: Axes, table: pd.DataFrame, unit: str, interval: float) -> None:
    for game in dict.fromkeys(table["game"]):
        own = table[table["game"] == game].sort_values(["minutes", "width"])
        colour = _COLOURS[game]
        # no other design of the game is both cheaper and narrower
        frontier = own[own["width"] <= own["width"].cummin()].drop_duplicates("minutes")
        axes.plot(frontier["minutes"], frontier["width"], color=colour, zorder=2)
        covers = (own["coverage"] >= interval - COVERS_TOO_LITTLE).to_numpy()
        for these, face in ((covers, colour), (~covers, "white")):
            look: dict[str, Any] = {"markerfacecolor": face, "markersize": 4, "zorder": 3}
            axes.plot(own["minutes"][these], own["width"][these], "o", color=colour, **look)
        best = own[own["recommended"]]
        axes.plot(best["minutes"], best["width"], "*", color=colour, markersize=15, markeredgecolor="white", zorder=4)
    axes.axhline(float(table["wanted_width"].iloc[0]), color="0.3", linestyle="--", linewidth=1, zorder=1)
    axes.set_xscale("log")
    axes.set_yscale("log")
    light_grid(axes, "both")
    axes.set_xlabel("people's time, minutes (log scale)")
    axes.set_ylabel(f"width of the {interval:.0%} interval, {unit} (log scale)")
    axes.set_ylim(table["width"].min() / 1.3, table[["width", "wanted_width"]].max().max() * 1.3)
    for axis, ends in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
        number_ticks(axis, _round_numbers(*ends))


def _round_numbers(low: float, high: float) -> list[float]:
    """Numbers 1, 2 and 5 times a power of ten; 1 alone where they would be many."""
    steps = (1, 2, 5) if high / low < 1000 else (1,)
    powers = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    return [step * 10.0**power for power in powers for step in steps if low <= step * 10.0**power <= high]
