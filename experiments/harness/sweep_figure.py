"""The figure of a sweep: the estimate against the swept settings, one colour a player."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from shannon_game.experiments.harness.figures import (
    STYLE,
    finite_range,
    log_perplexity_axis,
    new_figure,
    plain_log,
    player_colours,
    player_label,
)
from shannon_game.experiments.harness.marks import arms, mark, number_ticks, titled

__all__ = ["draw_summary"]

_MARKERS = "osD^vPX*"
_MAX_COLUMNS = 3
_MAX_PANELS = 12
_MAX_TICKS = 10
_UNITS = {"perplexity": "perplexity (log scale)"}


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
    spacing = _spacing(positions, is_log=is_log)

    columns = min(len(panels), _MAX_COLUMNS)
    rows = -(-len(panels) // columns)
    with mpl.rc_context(STYLE):
        many_labels = labels is not None and (len(labels) > 8 or max(map(len, labels)) > 12)
        figure = new_figure(2.2 + (5.2 if columns == 1 else 3.3 * columns), 0.7 + (2.9 + 0.6 * many_labels) * rows)
        grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
        for axes, panel in zip(grid.flat, panels, strict=False):
            for number, (player, style) in enumerate(series):
                mine = (table["_panel"] == panel) & (table["_player"] == player) & (table["_style"] == style)
                offset = 0.5 * spacing * (number - (len(series) - 1) / 2) / len(series)
                x = table["_x"][mine].to_numpy()
                x = x * np.exp(offset) if is_log else x + offset
                look = _look(colours[player], styles.index(style), connect=labels is None)
                _draw_series(axes, x, table[mine], value, look)
            if panel_key:
                axes.set_title(f"{panel_key.removeprefix('sweep.')} = {panel}")
            _finish_axis(axes, labels, np.unique(positions), is_log=is_log, rotate=many_labels)
        for axes in list(grid.flat)[len(panels) :]:
            axes.set_axis_off()
        if value == "perplexity":
            bars = [table[name].astype(float) for name in (value, f"{value}_lower", f"{value}_upper") if name in table]
            for axes in grid.flat:
                log_perplexity_axis(axes, "y", *finite_range(*bars))
        figure.supylabel(_UNITS.get(value, value), fontsize=9)
        figure.supxlabel(", ".join(name.removeprefix("sweep.") for name in across) or "job", fontsize=9)
        titled(figure, title, size=10)
        handles = [mark(player_label(name), colours[name], linewidth=3) for name in players if name]
        handles += [
            mark(
                f"{style_key} {style}", marker=_MARKERS[at % len(_MARKERS)], hollow=at % len(_MARKERS) > 0, markersize=6
            )
            for at, style in enumerate(styles)
            if style_key
        ]
        figure.legend(handles=handles, loc="outside right upper")
    return figure


def _look(colour: str, style: int, *, connect: bool) -> dict[str, Any]:
    """Arguments of Matplotlib for a series; the marks of the first style are filled."""
    face = "white" if style % len(_MARKERS) else colour
    line = "-" if connect else "none"
    return {"color": colour, "marker": _MARKERS[style % len(_MARKERS)], "markerfacecolor": face, "linestyle": line}


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


def _spacing(positions: NDArray[np.float64], *, is_log: bool) -> float:
    distinct = np.unique(np.log(positions) if is_log else positions)
    return float(np.diff(distinct).min()) if distinct.size > 1 else 1.0


def _draw_series(axes: Axes, x: NDArray[np.float64], rows: pd.DataFrame, value: str, look: Mapping[str, Any]) -> None:
    ends = [f"{value}_lower", value, f"{value}_upper"]
    known = set(ends) <= set(rows)
    bars = np.nan_to_num(arms(*(rows[name].to_numpy(dtype=float) for name in ends))) if known else None
    # several values at one place are no line
    alone = {} if len(np.unique(x)) == len(x) else {"linestyle": "none"}
    y = rows[value].to_numpy(dtype=float)
    axes.errorbar(x, y, yerr=bars, **{**look, **alone}, markersize=4.5, linewidth=0.9, elinewidth=1, capsize=2)


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
