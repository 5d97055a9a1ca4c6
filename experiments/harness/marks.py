"""Pieces that figures share: titles, entries of legends, ticks, curves with bands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from textwrap import fill, wrap
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator, PercentFormatter
from numpy.typing import ArrayLike, NDArray

_STUDIES = {
    "designed": "simulated",
    "cloze_simulated": "simulated",
    "rules": "texts with a rule",
    "estimates": "",
    "lm_game": "public data of the comparison game",
    "lm_game_top1": "public data of the top-1 game",
    "provo": "public data on Provo",
    "rank_perplexity": "public data on ranks",
}
"""What a figure calls the studies that come with the project."""


def titled(figure: Figure | SubFigure, text: str, about: str = "", *, size: float = 11) -> None:
    """Title a whole figure at its left: what it shows, and below it of which study or models.

    A paper has captions instead: unless it is asked for (:func:`shown_title`), the title is kept but not drawn.
    """
    # about 12 letters an inch
    room = int(12 * figure.bbox.width / figure.get_dpi())
    study, semicolon, rest = about.partition(";")
    about = (_STUDIES.get(study, study) + semicolon + rest).removeprefix(";")
    lines = [line for part in (text, about) if part for line in wrap(part, room)]
    title = figure.suptitle("\n".join(lines), x=0.01, ha="left", fontsize=size)
    if isinstance(figure, Figure):
        title.set(visible=False, in_layout=False)


@contextmanager
def shown_title(figure: Figure, *, shown: bool = True) -> Iterator[None]:
    """Draw the title of a figure inside the block."""
    title = figure._suptitle  # type: ignore[attr-defined]
    if title is not None and shown:
        title.set(visible=True, in_layout=True)
    try:
        yield
    finally:
        if title is not None and shown:
            title.set(visible=False, in_layout=False)


def mark(
    label: str, colour: str = "0.3", marker: str | None = None, *, line: Any = None, hollow: bool = False, **look: Any
) -> Line2D:
    """Entry of a legend: a line, or a mark, with a line through it where one is asked for."""
    style = line if line is not None else "" if marker else "-"
    face = {"markerfacecolor": "white"} if hollow else {}
    return Line2D([], [], color=colour, marker=marker, linestyle=style, label=label, **{"markersize": 4} | face | look)


def named(figure: Figure, handles: Sequence[Any], columns: int = 3) -> None:
    """Put a legend below the figure, in as many columns as its width has room for; longer entries are broken."""
    letters = int(13 * figure.get_figwidth())
    for each in handles:
        each.set_label(fill(str(each.get_label()), letters - 5))
    longest = max((len(line) for each in handles for line in str(each.get_label()).splitlines()), default=0)
    room = letters // (longest + 5)
    figure.legend(handles=handles, loc="outside lower center", ncols=max(1, min(columns, len(handles), room)))


def name_ends(axes: Axes, ends: Sequence[tuple[float, str, str]], *, size: float = 9.5) -> None:
    """Name lines right of the axes, at the heights where they end: (height, name, colour); call it last."""
    line = 1.7 * size * axes.get_figure(root=True).dpi / 72 / axes.bbox.height  # type: ignore[union-attr]
    place = axes.transData + axes.transAxes.inverted()
    top = 1.0
    for height, text, colour in sorted(ends, reverse=True):
        name = fill(text, 18)
        half = line * (name.count("\n") + 1) / 2
        at = min(float(place.transform((1, height))[1]), top - half)
        axes.text(1.02, at, name, color=colour, fontsize=size, va="center", transform=axes.transAxes)
        top = at - half


def percent(axis: Axis) -> None:
    """Let an axis count in whole percent."""
    axis.set_major_formatter(PercentFormatter(1, decimals=0))


def label_below(grid: NDArray[Any], n_panels: int, label: str, *, size: float = 9) -> None:
    """Hide the panels of a grid that nothing is drawn in, and label the lowest of every column that is left."""
    for axes in grid.flat[n_panels:]:
        axes.set_visible(False)
    for column in grid.T:
        for axes in [each for each in column if each.get_visible()][-1:]:
            axes.tick_params(labelbottom=True)
            axes.set_xlabel(label, fontsize=size)


def light_grid(axes: Axes, which: Literal["x", "y", "both"]) -> None:
    """Draw light lines across an axis, behind everything."""
    axes.grid(axis=which, color="0.91", linewidth=0.6)
    axes.set_axisbelow(True)


def number_ticks(axis: Axis, ticks: ArrayLike) -> None:
    """Put ticks at some numbers only, and write them in full, on a log axis too."""
    axis.set_major_locator(FixedLocator(np.asarray(ticks, dtype=float).tolist()))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())
    axis.set_minor_formatter(NullFormatter())


def arms(low: ArrayLike, middle: ArrayLike, high: ArrayLike) -> NDArray[np.float64]:
    """Lengths of error bars; none is negative, as the mean of equal draws can differ from their quantiles."""
    centre = np.asarray(middle, dtype=float)
    lengths: NDArray[np.float64] = np.maximum([centre - np.asarray(low), np.asarray(high) - centre], 0)
    return lengths


def curve(axes: Axes, x: ArrayLike, quantiles: ArrayLike, colour: str, *, alpha: float = 0.25, **look: Any) -> None:
    """Draw a line with its band: lower end, middle, upper end; or the line alone."""
    lines = np.atleast_2d(np.asarray(quantiles, dtype=float))
    if len(lines) == 3:
        axes.fill_between(np.asarray(x), lines[0], lines[2], color=colour, alpha=alpha, linewidth=0, zorder=2)
    axes.plot(x, lines[len(lines) // 2], color=colour, **{"zorder": 3} | look)
