"""Figures of ``+exp=context_length``."""

from __future__ import annotations

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.harness.figures import (
    STYLE,
    finite_range,
    log_perplexity_axis,
    new_figure,
    player_colours,
    player_label,
)
from experiments.harness.marks import arms, light_grid, number_ticks, titled

__all__ = ["scores_figure", "temperatures_figure"]

_DASHES = {"growing": "-", "sliding": "--"}


def scores_figure(table: pd.DataFrame, study: str = "the texts") -> Figure:
    """Average rank score and perplexity against the length of the context, with 2 SE."""
    score = next(str(name) for name in table.columns if str(name).startswith("average_"))
    top_k = score.removeprefix("average_top")
    colours = player_colours(list(dict.fromkeys(table["model"])))
    several = len(set(table["window"])) > 1
    with mpl.rc_context(STYLE):
        figure = new_figure(8.6, 3.3)
        left, right = figure.subplots(1, 2)
        for (name, kind), rows in table.groupby(["model", "window"], sort=False):
            label = player_label(str(name)) + (f", {kind} window" if several else "")
            style = {"color": colours[str(name)], "linestyle": _DASHES[str(kind)], "marker": "o", "markersize": 4}
            left.errorbar(rows["context_length"], rows[score], yerr=2 * rows[f"{score}_se"], capsize=2, **style)
            bars = arms(rows["perplexity_lower"], rows["perplexity"], rows["perplexity_upper"])
            right.errorbar(rows["context_length"], rows["perplexity"], yerr=bars, capsize=2, label=label, **style)
        lengths = sorted(set(table["context_length"]))
        for axes in (left, right):
            _length_axis(axes, lengths)
        left.set_ylabel(f"average rank score (top {top_k})")
        light_grid(left, "y")
        log_perplexity_axis(right, "y", *finite_range(table["perplexity_lower"], table["perplexity_upper"]))
        right.set_ylabel("perplexity (log scale)")
        figure.legend(title="bars: ± 2 SE over places", alignment="left", loc="outside right upper")
        first = table.iloc[0]
        what = f"{first['n_characters']} characters" if "n_characters" in table else f"{first['n_tokens']} tokens"
        places = f"{what} at {first['n_windows']} places of {study}"
        titled(figure, f"{places}, the same at every length", size=10)
    return figure


def _length_axis(axes: Axes, lengths: list[int]) -> None:
    axes.set_xscale("log", base=2)
    number_ticks(axes.xaxis, lengths)
    axes.set_xlabel("tokens of context (log scale)")
    axes.set_axisbelow(True)


def temperatures_figure(table: pd.DataFrame, length: int) -> Figure:
    """Perplexity and average score at several temperatures: one moves, the other does not."""
    table = table[table["window"] == table["window"].iloc[0]]
    colours = player_colours(list(dict.fromkeys(table["model"])))
    with mpl.rc_context(STYLE):
        figure = new_figure(8.6, 3.2)
        left, right = figure.subplots(1, 2)
        for name, rows in table.groupby("model", sort=False):
            style = {"color": colours[str(name)], "marker": "o", "markersize": 4}
            bars = arms(rows["perplexity_lower"], rows["perplexity"], rows["perplexity_upper"])
            left.errorbar(rows["temperature"], rows["perplexity"], yerr=bars, capsize=2, **style)
            right.errorbar(
                rows["temperature"],
                rows["average_score"],
                yerr=2 * rows["average_score_se"],
                capsize=2,
                label=player_label(str(name)),
                **style,
            )
        for axes in (left, right):
            axes.set_xlabel("temperature")
            axes.set_axisbelow(True)
        log_perplexity_axis(left, "y", *finite_range(table["perplexity_lower"], table["perplexity_upper"]))
        left.set_ylabel("perplexity (log scale)")
        right.set_ylabel("average rank score")
        right.set_ylim(0, 1)
        light_grid(right, "y")
        figure.legend(title="bars: ± 2 SE over places", alignment="left", loc="outside right upper")
        titled(figure, f"The same tokens at several temperatures, {length} tokens of context", size=10)
    return figure
