"""The figure of a sweep: the estimate against the swept settings, one colour a player."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from shannon_game.experiments.harness.figures import (
    finite_range,
    log_perplexity_axis,
    new_figure,
    plain_log,
    player_colours,
    player_label,
)
from shannon_game.experiments.harness.marks import arms, mark, number_ticks, titled
from shannon_game.experiments.harness.plots import styled

_MARKERS = "osD^vPX*"
_MAX_COLUMNS = 3
_MAX_PANELS = 12
_MAX_TICKS = 10
_UNITS = {"perplexity": "perplexity (log scale)"}


@styled
def draw_summary(table: pd.DataFrame, value: str, title: str) -> Figure:
    """Draw a sweep's summary.

    One swept setting: it is the horizontal axis. Two: the second one makes the panels. More: what is neither is told
    apart on the horizontal axis too.
    """
    swept = [name for name in map(str, table.columns) if name.startswith("sweep.")]
    table = table[np.isfinite(table[value].astype(float))]
    panel_key, across = _layout(table, swept)
    positions, labels, is_log = _horizontal(table, across)
    style_key = _style_key(table, value)
    table = table.assign(
        _x=positions,
        _player=table.get("player", ""),
        _style=table[style_key] if style_key else "",
        _panel=table[panel_key] if panel_key else "",
    ).sort_values("_x", kind="stable")
    panels = list(dict.fromkeys(table["_panel"].sort_index()))
    players, styles = (list(dict.fromkeys(table[name].sort_index())) for name in ("_player", "_style"))
    colours = player_colours(players) if "player" in table else {"": "black"}
    series = [(player, style) for player in players for style in styles]
    distinct = np.unique(np.log(positions) if is_log else positions)
    spacing = float(np.diff(distinct).min()) if distinct.size > 1 else 1.0
    columns = min(len(panels), _MAX_COLUMNS)
    rows = -(-len(panels) // columns)
    many_labels = labels is not None and (len(labels) > 8 or max(map(len, labels)) > 12)
    figure = new_figure(2.2 + (5.2 if columns == 1 else 3.3 * columns), 0.7 + (2.9 + 0.6 * many_labels) * rows)
    grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    for axes, panel in zip(grid.flat, panels, strict=False):
        for number, (player, style) in enumerate(series):
            mine = (table["_panel"] == panel) & (table["_player"] == player) & (table["_style"] == style)
            offset = 0.5 * spacing * (number - (len(series) - 1) / 2) / len(series)
            x = table["_x"][mine].to_numpy()
            x = x * np.exp(offset) if is_log else x + offset
            marker = _MARKERS[styles.index(style) % len(_MARKERS)]
            _draw_series(axes, x, table[mine], value, colours[player], marker, connect=labels is None)
        if panel_key:
            axes.set_title(f"{panel_key.removeprefix('sweep.')} = {panel}")
        _finish_axis(axes, labels, np.unique(positions), is_log=is_log, rotate=many_labels)
    for axes in list(grid.flat)[len(panels) :]:
        axes.set_axis_off()
    if value == "perplexity":
        ends = [table[name].astype(float) for name in (value, f"{value}_lower", f"{value}_upper") if name in table]
        for axes in grid.flat:
            log_perplexity_axis(axes, "y", *finite_range(*ends))
    figure.supylabel(_UNITS.get(value, value), fontsize=9)
    figure.supxlabel(", ".join(name.removeprefix("sweep.") for name in across) or "job", fontsize=9)
    titled(figure, title, size=10)
    handles = [mark(player_label(name), colours[name], linewidth=3) for name in players if name]
    for marker, style in zip(cycle(_MARKERS), styles if style_key else (), strict=False):
        handles.append(mark(f"{style_key} {style}", marker=marker, hollow=marker != _MARKERS[0], markersize=6))
    figure.legend(handles=handles, loc="outside right upper")
    return figure


def _layout(table: pd.DataFrame, swept: Sequence[str]) -> tuple[str | None, list[str]]:
    """Choose the setting that makes the panels (if any) and those along the horizontal axis."""
    if len(swept) < 2:
        return None, list(swept)
    counts = {name: table[name].nunique() for name in swept}
    # the finest setting is the axis, because a line or a trend can be read there; a text setting makes panels first
    candidates = [name for name in swept if counts[name] <= _MAX_PANELS]
    if not candidates:
        return None, list(swept)
    panel = min(candidates, key=lambda name: (pd.api.types.is_numeric_dtype(table[name]), counts[name]))
    return panel, [name for name in swept if name != panel]


def _horizontal(table: pd.DataFrame, across: Sequence[str]) -> tuple[NDArray[np.float64], list[str] | None, bool]:
    """Positions of the rows, labels of the ticks (None for a numeric axis), and whether the axis is logarithmic."""
    # a seed is a number without an order: there is nothing to read between two of them
    is_scale = len(across) == 1 and not across[0].endswith("seed") and pd.api.types.is_numeric_dtype(table[across[0]])
    if is_scale and table[across[0]].notna().all():
        values = table[across[0]].to_numpy(dtype=float)
        distinct = np.unique(values)
        return values, None, bool(distinct.min() > 0 and distinct.max() / distinct.min() >= 20)
    keys = list(across) or ["job"]
    texts = table[keys].astype(str).agg(", ".join, axis=1)
    labels = list(dict.fromkeys(texts))
    return texts.map({text: place for place, text in enumerate(labels)}).to_numpy(dtype=float), labels, False


def _style_key(table: pd.DataFrame, value: str) -> str | None:
    """Column that tells apart the rows of one player in one job, for example the rounding."""
    group = ["job", "player"] if "player" in table else ["job"]
    for name in map(str, table.columns):
        is_text = not pd.api.types.is_numeric_dtype(table[name])
        is_key = name not in (*group, value, "status", "error", "verdict", "_x") and not name.startswith("sweep.")
        if is_text and is_key and table.groupby(group)[name].nunique().max() > 1:
            return name
    return None


def _draw_series(  # noqa: PLR0917 - what a series is drawn from
    axes: Axes, x: NDArray[np.float64], rows: pd.DataFrame, value: str, colour: str, marker: str, *, connect: bool
) -> None:
    """Draw the rows of a player; the marks of the first style are filled."""
    ends = [f"{value}_lower", value, f"{value}_upper"]
    known = set(ends) <= set(rows)
    bars = np.nan_to_num(arms(*(rows[name].to_numpy(dtype=float) for name in ends))) if known else None
    # several values at one place are no line
    line = "-" if connect and len(np.unique(x)) == len(x) else "none"
    look: dict[str, Any] = {"markersize": 4.5, "linewidth": 0.9, "elinewidth": 1, "capsize": 2}
    face = colour if marker == _MARKERS[0] else "white"
    y = rows[value].to_numpy(dtype=float)
    axes.errorbar(x, y, yerr=bars, color=colour, marker=marker, markerfacecolor=face, linestyle=line, **look)


def _finish_axis(
    axes: Axes, labels: list[str] | None, values: NDArray[np.float64], *, is_log: bool, rotate: bool
) -> None:
    if labels is not None:
        axes.set_xticks(range(len(labels)), labels, rotation=60 if rotate else 0, ha="right" if rotate else "center")
        axes.set_xlim(-0.6, len(labels) - 0.4)
        return
    if is_log:
        axes.set_xscale("log")
        plain_log(axes.xaxis)
    if len(values) <= _MAX_TICKS:
        number_ticks(axes.xaxis, values)
