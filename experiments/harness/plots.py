"""Shapes that the figures of questions share, over :mod:`figures` and :mod:`marks`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, Literal

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from shannon_game.experiments.harness.figures import STYLE, Series, forest, new_figure, player_colours, player_label
from shannon_game.experiments.harness.marks import arms, light_grid, mark, named, number_ticks, titled
from shannon_game.experiments.harness.rows import Column, columns_in
from shannon_game.experiments.harness.views import axis_of, headline_of, keys_of, parts_of

_PALE = 0.45

styled = mpl.rc_context(STYLE)
"""Decorator of a function that draws a figure: the house style."""


@styled
def forest_figure(
    rows: pd.DataFrame,
    series: Sequence[Series],
    xlabel: str,
    title: str,
    about: str = "",
    *,
    width: float = 4.5,
    row_height: float = 0.34,
    zero: bool = True,
    start: float | None = None,
    scale: Literal["linear", "log"] = "linear",
    handles: Sequence[Any] | None = None,
    columns: int = 3,
) -> Figure:
    """Draw :func:`forest` alone in a figure, with a legend of labels; `start` is the left end of a linear axis."""
    fig = new_figure(width, max(1.4 + row_height * len(rows), 2))
    axes = fig.add_subplot()
    if len(rows):
        forest(axes, rows, series, scale=scale)
    axes.set_xlabel(xlabel)
    if scale == "linear":
        if zero:
            axes.axvline(0, color="0.55", linewidth=0.8)
        axes.set_xlim(left=start)
        # numbers of several decimals run into each other where there are more
        axes.locator_params(axis="x", nbins=7)
        light_grid(axes, "x")
    handles = [each.handle() for each in series if each.label] if handles is None else handles
    if handles:
        named(fig, handles, columns)
    titled(fig, title, about)
    return fig


def declared_forest(
    table: pd.DataFrame,
    declared: Sequence[Column],
    title: str,
    about: str = "",
    *,
    bars: str = "estimate with its interval",
    truth: str = "truth",
    more: Sequence[Series] = (),
    **look: Any,
) -> Figure:
    """Draw the headline of declared rows, a line a row, with its truth and `more` marks."""
    columns = columns_in(table, declared)
    main, keys = headline_of(columns), keys_of(table, columns)
    if main is None:
        raise ValueError("these rows declare no estimate")
    who = next((one for one in columns if one.players), None)
    labels = [_row_label(row, keys, who) for row in table.to_dict("records")]
    others = [one for one in keys if one is not who and one.usual]
    hollow = np.zeros(len(table), dtype=bool)
    for one in others:
        hollow |= (table[one.name] != one.usual).to_numpy()
    doubts = [
        [str(row[one.name]) for one in columns if one.role == "flag" and str(row[one.name]) in one.bad]
        for row in table.to_dict("records")
    ]
    bars += f"; pale: {' or '.join(dict.fromkeys(chain.from_iterable(doubts)))}" * any(doubts)
    rows = table.assign(label=labels, hollow=hollow, alpha=[_PALE if of else 1.0 for of in doubts])
    if who:
        colours = player_colours(table[who.name].unique().tolist())
        rows = rows.assign(colour=table[who.name].map(colours), group=table[who.name])
    ends = [next((one.name for one in parts_of(columns, main, role)), None) for role in ("lower", "upper")]
    series = [Series(main.name, *ends, label=bars)]
    truths = [one.name for one in parts_of(columns, main, "truth")]
    series += [Series(name, marker="|", size=13, alpha=0.55, label=truth) for name in truths]
    shown = [each for each in (*series, *more) if each.is_in(rows)]
    options: dict[str, Any] = {"scale": main.scale, "columns": 2, "row_height": 0.3} | look
    return forest_figure(rows, shown, axis_of(main), title, about, **options)


def _row_label(row: Mapping[Any, Any], keys: Sequence[Column], who: Column | None) -> str:
    """Name of a player, or what differs from what goes without saying."""
    own = [one for one in keys if one is not who and str(row[one.name]) != one.usual]
    said = [one.words(row[one.name]) if one.words else str(row[one.name]) for one in own]
    if who is not None and not (said and any(one.usual for one in own)):
        said.insert(0, player_label(str(row[who.name])))
    return ", ".join(said)


def bars(axes: Axes, x: ArrayLike, low: ArrayLike, middle: ArrayLike, high: ArrayLike, **look: Any) -> None:
    """Draw points with upright intervals; a `linestyle` joins them."""
    its: dict[str, Any] = {"marker": "o", "markersize": 4, "linestyle": "", "capsize": 2} | look
    axes.errorbar(x, middle, yerr=arms(low, middle, high), **its)


def length_axis(axes: Axes, lengths: ArrayLike, *, most_ticks: int = 9) -> None:
    """Set a log axis of the tokens of context."""
    each = np.unique(lengths)
    axes.set_xscale("log", base=2)
    number_ticks(axes.xaxis, each[:: max(1, round(each.size / most_ticks))])
    axes.set_xlim(each[0] / 1.5, each[-1] * 1.5)
    axes.set_xlabel("tokens of context")


def diagonal(axes: Axes, *, margin: float = 0.0) -> None:
    """Make a square of two shares, with a line where they are equal."""
    axes.plot([0, 1], [0, 1], color="0.55", linewidth=0.8, linestyle="--", zorder=1)
    axes.set(xlim=(-margin, 1 + margin), ylim=(-margin, 1 + margin), aspect="equal")


def without_y(axes: Axes) -> None:
    """Hide the axis of a density, whose height says nothing."""
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.set_ylim(0, None)


HELD, MISSED = "0.6", "#D55E00"
"""Colours of intervals with the truth and without it."""


def against_truth(
    axes: Axes, truth: NDArray[np.float64], lower: NDArray[np.float64], upper: NDArray[np.float64]
) -> float:
    """Draw intervals upright at the truth, and return the share that hold it."""
    held = (lower <= truth) & (truth <= upper)
    for mask, colour in ((held, HELD), (~held, MISSED)):
        axes.vlines(truth[mask], lower[mask], upper[mask], color=colour, linewidth=0.8)
    return float(held.mean())


def truth_handles(interval: float) -> list[Any]:
    """Entries of a legend for :func:`against_truth`."""
    return [mark(f"{interval:.0%} interval with the truth", HELD), mark("without it", MISSED)]
