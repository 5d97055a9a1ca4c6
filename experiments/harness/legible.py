"""Figures that can be read in one column of a journal: the least size of their text, and its contrast."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any, TypeVar, cast

import numpy as np
from matplotlib.axis import Axis
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure, FigureBase
from matplotlib.text import Text
from numpy.typing import NDArray

__all__ = ["COLUMN_MM", "LEAST_POINTS", "contrast", "legible", "points_in_column", "texts"]

COLUMN_MM = 85.0
"""Width of a column, to which a figure is scaled down."""
LEAST_POINTS = 5.0
"""What journals ask of the smallest text then."""
WIDEST_IN = 7.6
"""A figure that is wider has several panels, and is printed wider in proportion."""

_MM_IN = 25.4
_Kind = TypeVar("_Kind", Text, Axis)


def contrast(colour: object, background: object = "white") -> float:
    """Contrast ratio of two colours, by WCAG 2.2: 4.5 for text and 3 for what else has to be seen is level AA.

    Examples
    --------
    >>> round(contrast("black"), 1), round(contrast("#0072B2"), 2)
    (21.0, 5.19)
    """
    lighter, darker = sorted((_luminance(colour), _luminance(background)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: object) -> float:
    channel: NDArray[np.float64] = np.asarray(to_rgb(cast("Any", colour)))
    linear = np.where(channel <= 0.04045, channel / 12.92, ((channel + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def _found(figure: FigureBase, kind: type[_Kind]) -> list[_Kind]:
    return cast("list[_Kind]", figure.findobj(kind))


def _points(text: Text) -> float:
    return float(text.get_fontsize())


def texts(figure: FigureBase) -> Iterator[Text]:
    """All texts of a figure that say something."""
    for each in _found(figure, Text):
        if each.get_text().strip() and each.get_visible():
            yield each


def points_in_column(points: float, width_in: float) -> float:
    """Size of a text in points once its figure is as wide as a column; wider, if it is wider than :data:`WIDEST_IN`.

    Examples
    --------
    >>> round(points_in_column(9, 6.8), 2)
    4.43
    """
    return points * COLUMN_MM / _MM_IN / min(width_in, WIDEST_IN)


def legible(figure: Figure) -> Figure:
    """Enlarge every text of a figure that would be smaller than :data:`LEAST_POINTS` in one column.

    Examples
    --------
    >>> from experiments.harness.figures import new_figure
    >>> figure = new_figure(6.8, 3)
    >>> title = figure.add_subplot().set_title("small", fontsize=6)
    >>> round(legible(figure).axes[0].title.get_fontsize(), 1)
    10.2
    """
    least = LEAST_POINTS / points_in_column(1, figure.get_figwidth())
    for axis in _found(figure, Axis):
        ticks = [*axis.get_major_ticks(1), *axis.get_minor_ticks(1)]
        # ticks that a drawing makes later take this size too
        if ticks and min(_points(tick.label1) for tick in ticks) < least:
            axis.set_tick_params(which="both", labelsize=least)
    for each in _found(figure, Text):
        if _points(each) < least:
            each.set_fontsize(least)
    _break_lines(figure)
    return figure


def _break_lines(figure: Figure) -> None:
    """Break titles and labels that end beyond the figure: a figure made wider for them has smaller text."""
    heads = [getattr(axes, name) for axes in figure.axes for name in ("title", "_left_title")]
    long: list[Text] = [each for each in (*heads, getattr(figure, "_suptitle", None)) if each is not None]
    long += [axes.xaxis.label for axes in figure.axes]
    # to lay a figure out takes a tenth of a second: only where a text may be too long
    width = figure.get_figwidth()
    if not any(max(map(len, each.get_text().split("\n"))) * _points(each) > 60 * width for each in long):
        return
    figure.draw_without_rendering()
    whole = figure.bbox.width
    for each in long:
        box = each.get_window_extent()
        middle = (box.x0 + box.x1) / 2
        room = 2 * min(middle, whole - middle) if each.get_horizontalalignment() == "center" else whole - box.x0
        if 0 < room < box.width:
            lines = each.get_text().split("\n")
            most = max(int(max(map(len, lines)) * 0.97 * room / box.width), 20)
            each.set_text("\n".join(textwrap.fill(line, most) for line in lines))
