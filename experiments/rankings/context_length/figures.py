"""Figures of ``+exp=context_length``."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from shannon_game.experiments.harness.figures import (
    finite_range,
    log_perplexity_axis,
    new_figure,
    player_colours,
    player_label,
)
from shannon_game.experiments.harness.marks import light_grid, mark, named, titled
from shannon_game.experiments.harness.plots import bars, length_axis, styled
from shannon_game.experiments.harness.questions import INTERVAL_SE

_DASHES = {"growing": "-", "sliding": "--"}


@styled
def scores_figure(table: pd.DataFrame) -> Figure:
    """Average rank score and perplexity against the length of the context, with 2 SE."""
    score = next(str(name) for name in table.columns if str(name).startswith("average_"))
    figure = new_figure(4.5, 3.6)
    left, right = _curves(figure, table, "context_length", score)
    for axes in (left, right):
        length_axis(axes, table["context_length"], most_ticks=99)
    left.set_ylabel(f"average rank score (top {score.removeprefix('average_top')})")
    first = table.iloc[0]
    what = f"{first['n_characters']} characters" if "n_characters" in table else f"{first['n_tokens']} tokens"
    titled(figure, "Does a longer context help?", f"{what} at {first['n_windows']} places")
    return figure


@styled
def temperatures_figure(table: pd.DataFrame, length: int) -> Figure:
    """Perplexity and average score at several temperatures: one moves, the other does not."""
    figure = new_figure(4.5, 3.6)
    left, right = _curves(figure, table[table["window"] == table["window"].iloc[0]], "temperature", "average_score")
    for axes in (left, right):
        axes.set_xlabel("temperature")
    left.set(ylabel="average rank score", ylim=(0, 1))
    titled(figure, "What does the temperature change?", f"{length} tokens of context")
    return figure


def _curves(figure: Figure, table: pd.DataFrame, x: str, score: str) -> tuple[Axes, Axes]:
    """Draw a score on the left and perplexity on the right, a line per model and window, with a legend."""
    left, right = figure.subplots(1, 2)
    colours = player_colours(list(dict.fromkeys(table["model"])))
    several = len(set(table["window"])) > 1
    for (name, kind), rows in table.groupby(["model", "window"], sort=False):
        label = player_label(str(name)) + (f", {kind} window" if several else "")
        look: dict[str, Any] = {"color": colours[str(name)], "linestyle": _DASHES[str(kind)], "label": label}
        middle, reach = rows[score], INTERVAL_SE * rows[f"{score}_se"]
        bars(left, rows[x], middle - reach, middle, middle + reach, **look | {"label": None})
        bars(right, rows[x], rows["perplexity_lower"], rows["perplexity"], rows["perplexity_upper"], **look)
    light_grid(left, "y")
    log_perplexity_axis(right, "y", *finite_range(table["perplexity_lower"], table["perplexity_upper"]))
    right.set_ylabel("perplexity per token")
    named(figure, [*right.get_legend_handles_labels()[0], mark("bar: 90% interval over places")])
    return left, right
