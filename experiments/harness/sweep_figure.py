"""The figure of a sweep: the estimate against the swept settings, one colour a player."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import ScaledTranslation
from pandas.api.types import is_numeric_dtype

from shannon_game.experiments.harness.figures import (
    finite_range,
    log_perplexity_axis,
    new_figure,
    player_colours,
    player_label,
)
from shannon_game.experiments.harness.marks import arms, light_grid, mark, named, number_ticks, titled
from shannon_game.experiments.harness.plots import styled
from shannon_game.experiments.harness.rows import Column, columns_in
from shannon_game.experiments.harness.views import axis_of, ends_of, headline_of, keys_of, parts_of, spread_key

_MARKERS = "osD^vPX*" * 20
_MAX_COLUMNS = 3
_MAX_PANELS = 12
_MAX_TICKS = 10
_UNITS = {"perplexity": "perplexity (log scale)"}
# between the marks of two series at one place, and of all of them
_STEP_INCHES, _SPREAD_INCHES = 0.08, 0.5


@styled
def draw_summary(table: pd.DataFrame, value: str, title: str) -> Figure:
    """Draw a sweep's summary.

    One swept setting is the horizontal axis; of more, the one with the fewest values makes the panels.
    """
    swept = [name for name in map(str, table.columns) if name.startswith("sweep.")]
    table = table[np.isfinite(table[value].astype(float))]
    counts = {name: table[name].nunique() for name in swept}
    panel = min(counts, key=lambda name: (is_numeric_dtype(table[name]), counts[name])) if len(swept) > 1 else None
    panel = panel if panel and counts[panel] <= _MAX_PANELS else None
    across = [name for name in swept if name != panel] or ["job"]
    style = _style_key(table, value)
    table = table.assign(_player=table.get("player", ""), _style=table[style] if style else "")
    players, styles = (table[name].unique().tolist() for name in ("_player", "_style"))
    colours = player_colours(players) if "player" in table else {"": "black"}
    series = [(player, each) for player in players for each in styles]
    panels = table[panel].unique().tolist() if panel else [None]
    columns = min(len(panels), _MAX_COLUMNS)
    rows = -(-len(panels) // columns)
    figure = new_figure(2.2 + (5.2 if columns == 1 else 3.3 * columns), 0.7 + 3.3 * rows)
    grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    # a seed is a number without an order: there is nothing to read between two of them
    is_scale = len(across) == 1 and is_numeric_dtype(table[across[0]]) and not across[0].endswith(("seed", "job"))
    places = table[across[0]].astype(float) if is_scale else table[across].astype(str).agg(", ".join, axis=1)
    labels = None if is_scale else places.unique().tolist()
    x = places if labels is None else places.map(labels.index)
    step = min(_STEP_INCHES, _SPREAD_INCHES / len(series))
    for axes, at in zip(grid.flat, panels, strict=False):
        here = table[panel] == at if panel else table["job"].notna()
        for number, (player, each) in enumerate(series):
            shift = ScaledTranslation(step * (number - (len(series) - 1) / 2), 0, figure.dpi_scale_trans)
            mine = table[here & (table["_player"] == player) & (table["_style"] == each)]
            marker = _MARKERS[styles.index(each)]
            look = {"color": colours[player], "marker": marker, "transform": axes.transData + shift}
            _draw_series(axes, mine.assign(x=x).sort_values("x"), value, connect=is_scale, **look)
        if panel:
            axes.set_title(f"{panel.removeprefix('sweep.')} = {at}")
        _finish_axis(axes, labels, np.unique(x))
    for axes in list(grid.flat)[len(panels) :]:
        axes.set_axis_off()
    if value == "perplexity":
        ends = [table[name].astype(float) for name in (value, f"{value}_lower", f"{value}_upper") if name in table]
        log_perplexity_axis(grid.flat[0], "y", *finite_range(*ends))
    figure.supylabel(_UNITS.get(value, value))
    figure.supxlabel(", ".join(name.removeprefix("sweep.") for name in across))
    titled(figure, title)
    handles = [mark(player_label(name), colours[name], linewidth=3) for name in players if name]
    named = zip(_MARKERS, styles if style else (), strict=False)
    handles += [mark(f"{style} {each}", marker=marker, hollow=marker != _MARKERS[0]) for marker, each in named]
    figure.legend(handles=handles, loc="outside right upper")
    return figure


def _style_key(table: pd.DataFrame, value: str) -> str | None:
    """Column that tells apart the rows of one player in one job, for example the rounding."""
    group = ["job", "player"] if "player" in table else ["job"]
    for name in map(str, table.columns):
        is_key = name not in (*group, value, "status", "error", "verdict") and not name.startswith("sweep.")
        if is_key and not is_numeric_dtype(table[name]) and table.groupby(group)[name].nunique().max() > 1:
            return name
    return None


def _draw_series(axes: Axes, rows: pd.DataFrame, value: str, *, connect: bool, **look: object) -> None:
    """Draw the rows of a player; the marks of the first style are filled."""
    ends = [f"{value}_lower", value, f"{value}_upper"]
    known = set(ends) <= set(rows)
    bars = np.nan_to_num(arms(*(rows[name].to_numpy(dtype=float) for name in ends))) if known else None
    face = look["color"] if look["marker"] == _MARKERS[0] else "white"
    # several values at one place are no line
    look |= {"linestyle": "-" if connect and rows["x"].is_unique else "none", "markerfacecolor": face}
    y = rows[value].to_numpy(dtype=float)
    # marks that are shifted do not count for matplotlib's limits
    low, high = (y, y) if bars is None else (y - bars[0], y + bars[1])
    axes.update_datalim(np.column_stack([np.tile(rows["x"], 2), np.concatenate([low, high])]))
    axes.autoscale_view(scalex=False)
    axes.errorbar(rows["x"], y, yerr=bars, markersize=4.5, linewidth=0.9, elinewidth=1, capsize=2, **look)  # type: ignore[arg-type]


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


@styled
def draw_sweep(table: pd.DataFrame, declared: Sequence[Column], title: str) -> Figure | None:
    """Draw the headline of declared rows against what was swept, a colour a player, with the truth where known."""
    columns = columns_in(table, declared)
    main = headline_of(columns)
    if main is None or not np.isfinite(table[main.name].astype(float)).any():
        return None
    keys = keys_of(table, columns)
    colour = next((one for one in columns if one.players and one in keys), None)
    across, facets = _places(table, [one for one in keys if one is not colour], columns)
    players = table[colour.name].unique().tolist() if colour else [""]
    colours = player_colours(players) if colour else {"": "black"}
    positions, labels = _positions(table, across)
    grids = [table[one.name].unique().tolist() for one in facets[:2]]
    wide, high = [*grids, [None], [None]][:2]
    figure = new_figure(1.6 + 2.3 * max(len(wide), 2), 1.3 + 2.4 * len(high))
    grid = figure.subplots(len(high), len(wide), sharex=True, sharey=True, squeeze=False)
    styles = table[[one.name for one in facets[2:]]].astype(str).agg(", ".join, axis=1) if facets[2:] else None
    names = ["" if styles is None else one for one in (styles.unique() if styles is not None else [""])]
    series = [(player, each) for player in players for each in names]
    room = 0.7 if labels is not None else 0.0
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
                _draw_rows(axes, table[mine], columns, positions[mine] + shift, colour=colours[player], room=room)
            shown = zip(facets, (level, upright), strict=False)
            axes.set_title(", ".join(f"{one.name} {value}" for one, value in shown), fontsize=9.5)
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
    titled(figure, title)
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
    axes: Axes, rows: pd.DataFrame, columns: Sequence[Column], x: np.ndarray, *, colour: str, room: float
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
        half = max(room / 12, 0.02)
        axes.hlines(rows[one.name], x - half, x + half, color=colour, linewidth=2.2, alpha=0.55)
