"""The figure of a sweep: the estimate against the swept settings, one colour per player."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pandas.api.types import is_numeric_dtype

from shannon_game.experiments.harness.figures import (
    finite_range,
    log_perplexity_axis,
    new_figure,
    player_colours,
    player_label,
)
from shannon_game.experiments.harness.marks import light_grid, mark, named, number_ticks, titled
from shannon_game.experiments.harness.plots import styled
from shannon_game.experiments.harness.questions import listed
from shannon_game.experiments.harness.rows import Column, columns_in
from shannon_game.experiments.harness.views import axis_of, ends_of, headline_of, keys_of, parts_of, spread_key

_MAX_TICKS, _MAX_PANELS, _MAX_ROWS = 10, 12, 4


def _finish_axis(axes: Axes, labels: Sequence[str] | None, values: np.ndarray) -> None:
    if labels is not None:
        crowded = len(labels) > 8 or max(map(len, labels)) > 12
        axes.set_xticks(range(len(labels)), labels, rotation=60 if crowded else 0, ha="right" if crowded else "center")
        axes.set_xlim(-0.6, len(labels) - 0.4)
        return
    if values[0] > 0 and values[-1] / values[0] >= 20:
        axes.set_xscale("log")
        axes.set_xlim(values[0] / 1.3, values[-1] * 1.3)
    else:
        pad = 0.08 * float(np.ptp(values)) or 0.5
        axes.set_xlim(values[0] - pad, values[-1] + pad)
    number_ticks(axes.xaxis, values[:: -(-len(values) // _MAX_TICKS)])


def _name_panel(
    axes: Axes, facets: Sequence[Column], levels: tuple[object, object], *, above: bool, beside: bool
) -> None:
    if above and facets:
        axes.set_title(f"{facets[0].name} {levels[0]}", fontsize=9.5)
    if beside and len(facets) > 1:
        at: dict[str, Any] = {"rotation": 270, "ha": "left", "va": "center", "fontsize": 9.5}
        axes.text(1.03, 0.5, f"{facets[1].name} {levels[1]}", transform=axes.transAxes, **at)


@styled
def draw_sweep(table: pd.DataFrame, declared: Sequence[Column], title: str, about: str = "") -> Figure | None:
    """Draw the headline of declared rows against what was swept, a colour per player, with the truth where known."""
    columns = columns_in(table, declared)
    main = headline_of(columns)
    if main is None or not np.isfinite(table[main.name].astype(float)).any():
        return None
    keys = keys_of(table, columns)
    colour = next((one for one in columns if one.players and one in keys), None)
    across, rest = _places(table, [one for one in keys if one is not colour], columns)
    facets = [one for one in rest if table[one.name].nunique() <= _MAX_PANELS][:2]
    # a narrow figure can be read in one column of a page
    facets = facets[::-1] if facets and table[facets[0].name].nunique() <= _MAX_ROWS else facets
    others = [one.name for one in rest if one not in facets]
    players = table[colour.name].unique().tolist() if colour else [""]
    colours = player_colours(players) if colour else {"": "black"}
    positions, labels = _positions(table, across)
    grids = [table[one.name].unique().tolist() for one in facets]
    wide, high = [*grids, [None], [None]][:2]
    figure = new_figure(1.1 + 1.95 * max(len(wide), 2), 1.3 + 1.95 * len(high))
    grid = figure.subplots(len(high), len(wide), sharex=True, sharey=True, squeeze=False)
    styles = table[others].astype(str).agg(", ".join, axis=1) if others else None
    names = ["" if styles is None else one for one in (styles.unique() if styles is not None else [""])]
    series = [(player, each) for player in players for each in names]
    room = 0.7 if labels is not None else 0.0
    half = max(min(room / 12, 0.45 * room / len(series)), 0.02)
    for row, upright in enumerate(high):
        for at, level in enumerate(wide):
            axes = grid[row, at]
            here = np.ones(len(table), dtype=bool)
            for one, value in zip(facets, (level, upright), strict=False):
                here &= (table[one.name] == value).to_numpy()
            for number, (player, each) in enumerate(series):
                mine = here & (table[colour.name] == player).to_numpy() if colour else here
                mine = mine & (styles == each).to_numpy() if styles is not None else mine
                shift = room * ((number + 0.5) / len(series) - 0.5)
                _draw_rows(axes, table[mine], columns, positions[mine] + shift, colour=colours[player], half=half)
            _name_panel(axes, facets, (level, upright), above=row == 0, beside=at == len(wide) - 1)
            axes.set_xlabel(across.name if across and row == len(high) - 1 else "")
            light_grid(axes, "y")
            _finish_axis(axes, labels, np.unique(positions))
    truths = [one.name for one in parts_of(columns, main, "truth")[:1]]
    low, top = finite_range(table[main.name], *ends_of(table, columns, main), *(table[name] for name in truths))
    if main.scale == "log":
        log_perplexity_axis(grid.flat[0], "y", low, top)
    else:
        pad = 0.05 * (top - low) or 0.5
        grid.flat[0].set_ylim(low - pad, top + pad)
    figure.supylabel(axis_of(main), fontsize=10)
    beside = [f"side by side in a colour: {listed(others)}"] if others else []
    titled(figure, title, "; ".join([*([about] if about else []), *beside]))
    handles = [mark(player_label(name), colours[name], "o", line="-") for name in players if name]
    if truths and table[truths[0]].notna().any():
        handles.append(mark("truth", "0.4", "_", markersize=12, markeredgewidth=2))
    doubtful = {value for one in columns if one.role == "flag" for value in one.bad if (table[one.name] == value).any()}
    handles += [mark(f"hollow: {', '.join(sorted(doubtful))}", "0.4", "o", hollow=True)] if doubtful else []
    if handles:
        named(figure, handles, 4)
    return figure


def _places(
    table: pd.DataFrame, keys: Sequence[Column], columns: Sequence[Column]
) -> tuple[Column | None, list[Column]]:
    """Key of the horizontal axis, and those of the panels, the one with most levels first."""
    numbers = [one for one in keys if is_numeric_dtype(table[one.name]) and table[one.name].nunique() > 2]
    ordered = [one for one in numbers if not one.name.endswith("seed")]
    across = next(iter(ordered), None) or spread_key(table, columns) or (keys[-1] if keys else None)
    rest = sorted((one for one in keys if one is not across), key=lambda one: -table[one.name].nunique())
    return across, rest


def _positions(table: pd.DataFrame, across: Column | None) -> tuple[np.ndarray, list[str] | None]:
    """Places along the axis: numbers of many levels as they are, all others side by side."""
    if across is None:
        return np.zeros(len(table)), [""]
    levels = table[across.name].unique().tolist()
    if is_numeric_dtype(table[across.name]):
        levels = sorted(levels)
        if len(levels) > _MAX_TICKS:
            return table[across.name].to_numpy(dtype=float), None
    return table[across.name].map(levels.index).to_numpy(dtype=float), [str(level) for level in levels]


def _draw_rows(
    axes: Axes, rows: pd.DataFrame, columns: Sequence[Column], x: np.ndarray, *, colour: str, half: float
) -> None:
    """Draw the headline of some rows with its ends and truths; hollow where a flag is bad."""
    main = headline_of(columns)
    assert main is not None  # noqa: S101 - there is a figure only of a headline
    y = rows[main.name].to_numpy(dtype=float)
    axes.vlines(x, *ends_of(rows, columns, main), color=colour, linewidth=1)
    bad = np.zeros(len(rows), dtype=bool)
    for one in columns:
        if one.role == "flag":
            bad |= rows[one.name].isin(list(one.bad)).to_numpy()
    axes.plot(x[~bad], y[~bad], "o", color=colour, markersize=4.5)
    axes.plot(x[bad], y[bad], "o", color=colour, markersize=4.5, markerfacecolor="white")
    for one in parts_of(columns, main, "truth")[:1]:
        axes.hlines(rows[one.name], x - half, x + half, color=colour, linewidth=2.2, alpha=0.55)
