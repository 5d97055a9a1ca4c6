"""One look for all figures: sizes, fonts, and a colour-blind-safe colour that a player keeps everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator
from numpy.typing import ArrayLike

from estimators.layout import HUMAN

__all__ = [
    "STYLE",
    "TRUTH_ASKED",
    "TRUTH_REFERENCE",
    "finite_range",
    "log_perplexity_axis",
    "new_figure",
    "player_colours",
    "player_label",
]

STYLE = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.labelsize": 9,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 9,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": False,
    "lines.linewidth": 1.4,
    "svg.fonttype": "none",
    "svg.hashsalt": "shannon-game",
    "figure.constrained_layout.use": True,
}
"""rcParams of every figure (a fixed SVG salt makes equal figures equal files)."""

# Okabe & Ito (2008): told apart with any kind of colour vision.
_HUMAN_COLOUR = "#000000"
_MODEL_COLOURS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_KNOWN = {
    "14M": "#D55E00",
    "gpt2-small": "#0072B2",
    "gpt2-medium": "#009E73",
    "lm-weak": "#D55E00",
    "lm-medium": "#0072B2",
    "lm-strong": "#009E73",
}
_LABELS = {"human": "humans", "14M": "14M model", "gpt2-small": "GPT-2 small", "gpt2-medium": "GPT-2 medium"}
_TICK_STEPS = ((1, 2, 5), (1, 2, 3, 5, 7), (1, 1.5, 2, 3, 4, 5, 6, 7, 8))


TRUTH_ASKED = "truth on the items asked"
TRUTH_REFERENCE = "truth on the reference items"


def new_figure(width: float, height: float) -> Figure:
    """Empty figure in the house style, in inches; no pyplot, so nothing is kept in global state."""
    with mpl.rc_context(STYLE):
        return Figure(figsize=(width, height), layout="constrained")


def player_label(player: str) -> str:
    """Name of a player as a reader of a paper expects it."""
    return _LABELS.get(player, player)


def player_colours(players: Sequence[str]) -> dict[str, str]:
    """Colour of every player: black for humans, the known models always the same, the others in order."""
    free = iter([colour for colour in _MODEL_COLOURS if colour not in {_KNOWN.get(name) for name in players}] * 50)
    return {name: _HUMAN_COLOUR if name == HUMAN else _KNOWN.get(name) or next(free) for name in players}


def log_perplexity_axis(axes: Axes, which: Literal["x", "y"], low: float, high: float) -> None:
    """Log axis with plain round numbers (1, 2, 5, 10, ...) instead of powers of ten."""
    axis = axes.xaxis if which == "x" else axes.yaxis
    low, high = low / 1.15, high * 1.15
    if which == "x":
        axes.set_xscale("log")
        axes.set_xlim(low, high)
    else:
        axes.set_yscale("log")
        axes.set_ylim(low, high)
    for steps in _TICK_STEPS:  # as few round numbers as give five of them
        ticks = [step * 10**power for power in range(5) for step in steps if low <= step * 10**power <= high]
        if len(ticks) >= 5:
            break
    if len(ticks) >= 2:
        axis.set_major_locator(FixedLocator(ticks))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_locator(NullLocator())
    axis.set_minor_formatter(NullFormatter())
    axes.grid(axis=which, color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)


def finite_range(*columns: ArrayLike) -> tuple[float, float]:
    """Smallest and largest finite value of some columns."""
    values = np.concatenate([np.asarray(column, dtype=float) for column in columns])
    values = values[np.isfinite(values)]
    return float(values.min()), float(values.max())
