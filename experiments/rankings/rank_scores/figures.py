"""Figures of the scores of ranks."""

from __future__ import annotations

import re

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments.harness.figures import STYLE, new_figure, player_colours, player_label
from experiments.harness.marks import light_grid, mark, named, number_ticks, titled

__all__ = ["curves_figure", "easy_figure", "separation_figure"]


def _score_label(name: str) -> str:
    """Name of a score for a reader: ``exponential_03`` falls by the factor e^-.3 a rank."""
    exponential = re.fullmatch(r"exponential_0(\d+)", name)
    return f"exponential, rate .{exponential[1]}" if exponential else name.replace("top_1", "first guess right")


def curves_figure(curves: pd.DataFrame) -> Figure:
    """Draw every score of every rank: what a token gives that stands there."""
    names = sorted(str(name) for name in curves.columns if name != "rank")
    colours = player_colours(names)
    with mpl.rc_context(STYLE):
        fig = new_figure(5.0, 3.4)
        axes = fig.add_subplot()
        for name in names:
            axes.plot(curves["rank"], curves[name], color=colours[name], marker="o", markersize=2.5, linewidth=1.2)
        axes.set_ylim(-0.03, 1.05)
        number_ticks(axes.xaxis, np.unique(np.linspace(1, len(curves), min(len(curves), 6)).round()))
        axes.set_xlabel("rank of the token of the text")
        axes.set_ylabel("score")
        light_grid(axes, "y")
        named(fig, [mark(_score_label(name), colours[name], "o", line="-") for name in names], 3)
        titled(fig, "What a rank is worth")
    return fig


def separation_figure(table: pd.DataFrame, study_name: str = "") -> Figure:
    """Effect size of every score, a row a pair of models."""
    pairs = list(dict.fromkeys(zip(table["first"], table["second"], strict=True)))
    scores = list(dict.fromkeys(sorted(table["score"])))
    colours = player_colours(scores)
    with mpl.rc_context(STYLE):
        fig = new_figure(6.0, 1.5 + 0.42 * len(pairs))
        axes = fig.add_subplot()
        for at, (first, second) in enumerate(pairs):
            own = table[(table["first"] == first) & (table["second"] == second)]
            offset = (np.arange(len(own)) - (len(own) - 1) / 2) * 0.1
            axes.scatter(
                own["effect"].replace([np.inf, -np.inf], np.nan),
                -at + offset,
                color=[colours[name] for name in own["score"]],
                s=16,
                zorder=3,
            )
        axes.axvline(0, color="0.55", linewidth=0.8)
        axes.set_yticks(-np.arange(len(pairs)), [f"{player_label(a)} - {player_label(b)}" for a, b in pairs])
        axes.set_xlabel("effect size: mean difference of windows / its standard deviation")
        light_grid(axes, "x")
        named(fig, [mark(_score_label(name), colours[name], "o") for name in scores], 3)
        titled(fig, "Which score separates two models", study_name)
    return fig


def easy_figure(easy: pd.DataFrame, study_name: str = "") -> Figure:
    """Share of first guesses that are right, by a token's length and class."""
    shown = easy[easy["score"] == "top_1"]
    models = [str(name) for name in shown["model"].unique()]
    colours = player_colours(models)
    factors = list(dict.fromkeys(shown["factor"]))
    with mpl.rc_context(STYLE):
        fig = new_figure(7.2, 3.3)
        for axes, factor in zip(np.atleast_1d(fig.subplots(1, len(factors), sharey=True)), factors, strict=True):
            rows = shown[shown["factor"] == factor]
            levels = list(dict.fromkeys(rows["level"]))
            for at, model in enumerate(models):
                own = rows[rows["model"] == model].set_index("level")
                x = np.array([levels.index(level) for level in own.index]) + 0.12 * (at - (len(models) - 1) / 2)
                axes.errorbar(x, own["mean"], yerr=own["se"].fillna(0), fmt="o", markersize=3.5, color=colours[model])
            axes.set_xticks(range(len(levels)), levels, rotation=35 if factor == "class" else 0)
            axes.set_xlabel("characters of the token" if factor == "characters" else "class of the token")
            axes.set_ylim(-0.02, 1.02)
            light_grid(axes, "y")
        fig.axes[0].set_ylabel("first guess right")
        named(fig, [mark(player_label(model), colours[model], "o") for model in models], 4)
        titled(fig, "Which tokens are easy, with standard errors", study_name)
    return fig
