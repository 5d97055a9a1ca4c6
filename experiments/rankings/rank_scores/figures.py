"""Figures of the scores of ranks."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from shannon_game.experiments.harness.figures import Series, new_figure, player_colours, player_label
from shannon_game.experiments.harness.marks import light_grid, mark, named, number_ticks, titled
from shannon_game.experiments.harness.plots import bars, forest_figure, styled


def _score_label(name: str) -> str:
    """Name of a score for a reader: ``exponential_03`` falls by the factor e^-0.3 a rank."""
    exponential = re.fullmatch(r"exponential_0(\d+)", name)
    return f"exponential, rate 0.{exponential[1]}" if exponential else name.replace("top_1", "first guess right")


@styled
def curves_figure(curves: pd.DataFrame) -> Figure:
    """Draw every score of every rank: what a token gives that stands there."""
    names = sorted(str(name) for name in curves.columns if name != "rank")
    colours = player_colours(names)
    fig = new_figure(5.0, 3.4)
    axes = fig.add_subplot()
    for name in names:
        axes.plot(curves["rank"], curves[name], color=colours[name], marker="o", markersize=2.5, linewidth=1.2)
    number_ticks(axes.xaxis, np.unique(np.linspace(1, len(curves), min(len(curves), 6)).round()))
    axes.set(xlabel="rank of the token of the text", ylabel="score", ylim=(-0.03, 1.05))
    light_grid(axes, "y")
    named(fig, [mark(_score_label(name), colours[name], "o", line="-") for name in names])
    titled(fig, "What a rank is worth")
    return fig


def separation_figure(table: pd.DataFrame, study_name: str = "") -> Figure:
    """Effect size of every score, a row a pair of models."""
    scores = sorted(set(table["score"]))
    colours = player_colours(scores)
    finite = table.assign(effect=table["effect"].replace([np.inf, -np.inf], np.nan))
    wide = finite.pivot_table(index=["first", "second"], columns="score", values="effect", dropna=False, sort=False)
    wide = wide.dropna(how="all").reset_index()
    rows = wide.assign(label=wide["first"].map(player_label) + " - " + wide["second"].map(player_label))
    series = [
        Series(name, label=_score_label(name), colour=colours[name], size=4, offset=0.1 * (len(scores) / 2 - at))
        for at, name in enumerate(scores)
    ]
    xlabel = "effect size: mean difference of windows / its standard deviation"
    return forest_figure(rows, series, xlabel, "Which score separates two models", study_name, row_height=0.42)


@styled
def easy_figure(easy: pd.DataFrame, study_name: str = "") -> Figure:
    """Share of first guesses that are right, by a token's length and class."""
    shown = easy[easy["score"] == "top_1"]
    models = [str(name) for name in shown["model"].unique()]
    colours = player_colours(models)
    factors = list(dict.fromkeys(shown["factor"]))
    fig = new_figure(7.2, 3.3)
    for axes, factor in zip(np.atleast_1d(fig.subplots(1, len(factors), sharey=True)), factors, strict=True):
        rows = shown[shown["factor"] == factor]
        levels = list(dict.fromkeys(rows["level"]))
        for at, model in enumerate(models):
            own, se = rows[rows["model"] == model], rows.loc[rows["model"] == model, "se"].fillna(0)
            x = own["level"].map(levels.index) + 0.12 * (at - (len(models) - 1) / 2)
            bars(axes, x, own["mean"] - se, own["mean"], own["mean"] + se, color=colours[model], capsize=0)
        axes.set_xticks(range(len(levels)), levels, rotation=35 if factor == "class" else 0)
        axes.set_xlabel("characters of the token" if factor == "characters" else "class of the token")
        axes.set_ylim(-0.02, 1.02)
        light_grid(axes, "y")
    fig.axes[0].set_ylabel("first guess right")
    named(fig, [mark(player_label(model), colours[model], "o") for model in models], 4)
    titled(fig, "Which tokens are easy, with standard errors", study_name)
    return fig
