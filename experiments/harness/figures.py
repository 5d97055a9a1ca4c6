"""One look for all figures: sizes, fonts, and a colour-blind-safe colour that a player keeps everywhere."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from textwrap import fill
from typing import Any, Literal

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullFormatter
from numpy.typing import ArrayLike, NDArray

from shannon_game.estimators.layout import HUMAN
from shannon_game.experiments.harness.marks import arms, light_grid, mark, number_ticks, shown_title
from shannon_game.experiments.harness.settings import GIVEN_WIDTH

STYLE = {
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "axes.labelsize": 10,
    "xtick.labelsize": 9.5,
    "ytick.labelsize": 10,
    "legend.fontsize": 9.5,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": False,
    "lines.linewidth": 1.4,
    "svg.fonttype": "none",
    "svg.hashsalt": "shannon-game",
    "figure.constrained_layout.use": True,
    # a name such as "$x" is no formula; what is one is written in Unicode
    "text.parse_math": False,
}
"""rcParams of every figure (a fixed SVG salt makes equal figures equal files)."""

# Okabe & Ito (2008): told apart with any kind of colour vision.
_HUMAN_COLOUR = "#000000"
_MODEL_COLOURS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#C38700", "#4A9BC8")
_KNOWN = {
    "14M": "#D55E00",
    "gpt2-small": "#0072B2",
    "gpt2-medium": "#009E73",
    "lm-weak": "#D55E00",
    "lm-medium": "#0072B2",
    "lm-strong": "#009E73",
}
_LABELS = {"human": "humans", "14M": "14M model", "gpt2-small": "GPT-2 small", "gpt2-medium": "GPT-2 medium"}
_GROUP_GAP = 0.45
# share of a figure's own width that a narrower one keeps
_LEAST_WIDTH = 0.6
# letters of a row's label, in a line
_LABEL = 24
_TICK_STEPS = ((1,), (1, 2, 5), (1, 2, 3, 5, 7), (1, 1.5, 2, 3, 4, 5, 6, 7, 8))

LOG_MARGIN = 1.15
"""What a log axis of perplexities leaves beside the lowest and the highest, as a ratio."""

TRUTH_ASKED = "truth on the items asked"
TRUTH_REFERENCE = "truth on the reference items"


class _ShownFigure(Figure):
    def _repr_png_(self) -> bytes:
        # without pyplot a notebook does not know how to show a figure
        return png_of(self)


def png_of(figure: Figure) -> bytes:
    """Draw a figure as a notebook shows it."""
    stream = io.BytesIO()
    with shown_title(figure):
        figure.savefig(stream, format="png", dpi=100, bbox_inches="tight")
    return stream.getvalue()


def new_figure(width: float, height: float) -> Figure:
    """Empty figure in the house style, in inches; no pyplot, so nothing is kept in global state."""
    # panels beside each other need room
    width = max(GIVEN_WIDTH.get() or width, width * _LEAST_WIDTH)
    with mpl.rc_context(STYLE):
        return _ShownFigure(figsize=(width, height), layout="constrained")


def player_label(player: str) -> str:
    """Name of a player as a reader of a paper expects it."""
    return _LABELS.get(player, player.replace("majority_", "people, majority of "))


def player_colours(players: Sequence[str]) -> dict[str, str]:
    """Colour of every player: black for humans, the known models always the same, the others in order."""
    free = iter([colour for colour in _MODEL_COLOURS if colour not in {_KNOWN.get(name) for name in players}] * 50)
    return {name: _HUMAN_COLOUR if name == HUMAN else _KNOWN.get(name) or next(free) for name in players}


def log_perplexity_axis(axes: Axes, which: Literal["x", "y"], low: float, high: float, *, least: int = 5) -> None:
    """Log axis with at least so many plain round numbers (1, 2, 5, 10, ...) instead of powers of ten."""
    axis = axes.xaxis if which == "x" else axes.yaxis
    low, high = low / LOG_MARGIN, high * LOG_MARGIN
    scale: dict[str, Any] = {f"{which}scale": "log", f"{which}lim": (low, high)}
    axes.set(**scale)
    for steps in _TICK_STEPS:  # as few round numbers as are enough
        ticks = [step * 10**power for power in range(-3, 20) for step in steps if low <= step * 10**power <= high]
        if len(ticks) >= least:
            break
    if len(ticks) >= 2:
        most = min(8, int(1.8 * axes.get_figure(root=True).get_figwidth()))  # type: ignore[union-attr]
        number_ticks(axis, ticks[:: 1 + len(ticks) // most])
    axis.set_minor_formatter(NullFormatter())
    light_grid(axes, which)


def finite_range(*columns: ArrayLike) -> tuple[float, float]:
    """Smallest and largest finite value of some columns."""
    values = np.concatenate([np.asarray(column, dtype=float) for column in columns])
    values = values[np.isfinite(values)]
    return float(values.min()), float(values.max())


@dataclass(frozen=True)
class Series:
    """One mark that a forest plot shows in every row: the columns of the table that hold it, and its look.

    A row in which `value` is not finite has no such mark; `offset` is the height above the middle of a row, 1 high.
    """

    value: str
    lower: str | None = None
    upper: str | None = None
    _: KW_ONLY
    label: str = ""
    marker: str | None = "o"
    colour: str | None = None
    hollow: bool = False
    size: float = 5.5
    alpha: float = 1.0
    capsize: float = 3.0
    linewidth: float = 1.4
    offset: float = 0.0

    @property
    def look(self) -> dict[str, Any]:
        """What point and legend share."""
        thick = {"markeredgewidth": 2} if self.marker in {"|", "_"} else {}
        return {"marker": self.marker or "o", "markersize": self.size, "alpha": self.alpha, **thick}

    def is_in(self, rows: pd.DataFrame) -> bool:
        """Whether any row has such a mark, so that a legend has to explain it."""
        return bool(np.isfinite(rows[self.value].to_numpy(dtype=float)).any())

    def handle(self, *, hollow: bool = False, label: str | None = None, colour: str | None = None) -> Line2D:
        """Entry of a legend."""
        look = self.look | {"markersize": min(self.size, 14), "linewidth": self.linewidth}
        style = "" if self.lower is None or hollow else "-"
        look["hollow"] = hollow or self.hollow
        return mark(label or self.label, colour or self.colour or "0.3", line=style, **look)


def forest(
    axes: Axes, rows: pd.DataFrame, series: Sequence[Series], *, scale: Literal["linear", "log"] = "linear"
) -> NDArray[np.float64]:
    """Draw estimates with their intervals one below the other."""
    heights = _row_heights(rows)
    colours = rows.get("colour", pd.Series("#0072B2", rows.index))
    hollow = rows.get("hollow", pd.Series(False, rows.index))
    markers = rows.get("marker", pd.Series("o", rows.index))
    alphas = rows.get("alpha", pd.Series(1.0, rows.index))
    for number, each in enumerate(series):
        value = rows[each.value].to_numpy(dtype=float)
        low, high = (value if name is None else rows[name].to_numpy(dtype=float) for name in (each.lower, each.upper))
        for at in np.flatnonzero(np.isfinite(value)):
            colour = each.colour or colours.iloc[at]
            look = each.look | {
                "marker": each.marker or markers.iloc[at],
                "alpha": each.alpha * (alphas.iloc[at] if each.lower else 1),
            }
            axes.errorbar(
                value[at],
                heights[at] + each.offset,
                xerr=None if each.lower is None else arms([low[at]], [value[at]], [high[at]]),
                color=colour,
                markerfacecolor="white" if each.hollow or (number == 0 and hollow.iloc[at]) else colour,
                capsize=each.capsize,
                linewidth=each.linewidth,
                linestyle="",
                elinewidth=each.linewidth,
                zorder=3,
                **look,
            )
    axes.set_yticks(heights, [fill(label, _LABEL) if "\n" not in label else label for label in rows["label"]])
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(heights[-1] - 0.7, heights[0] + 0.7)
    if scale == "log":
        drawn = {name for each in series for name in (each.value, each.lower, each.upper) if name is not None}
        log_perplexity_axis(axes, "x", *finite_range(*(rows[name] for name in drawn)))
    return heights


def _row_heights(rows: pd.DataFrame) -> NDArray[np.float64]:
    """Middles of the rows, downwards from 0."""
    room = rows.get("height", pd.Series(1.0, rows.index)).to_numpy(dtype=float)
    group = rows.get("group", pd.Series("", rows.index)).to_numpy()
    steps = room[:-1] + _GROUP_GAP * (group[1:] != group[:-1])
    heights: NDArray[np.float64] = np.concatenate([[0.0], -np.cumsum(steps)])
    return heights
