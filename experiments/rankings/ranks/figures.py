"""Figures of ``+exp=ranks``."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy import stats

from shannon_game.experiments.harness.figures import Series, new_figure, player_colours, player_label
from shannon_game.experiments.harness.marks import curve, label_below, light_grid, mark, named, titled
from shannon_game.experiments.harness.plots import forest_figure, length_axis, styled

_SCORE_LABELS = {"average": "average rank score", "linear": "linear score", "reciprocal": "reciprocal score"}


def _label(score: str) -> str:
    return _SCORE_LABELS.get(score, "top-1 accuracy")


@styled
def scores_figure(windows: pd.DataFrame, dataset: xr.Dataset, score: str = "average", interval: float = 0.9) -> Figure:
    """Mean score of every window against length, by model and text; the regression's expected score if there is one."""
    models = [str(name) for name in dataset["model"].to_numpy()]
    texts = list(dict.fromkeys(windows["text"]))
    colours = player_colours(models)
    lengths, fitted = dataset["length"].to_numpy(), "expected_score" in dataset
    fig = new_figure(max(2.0 * len(models), 4.0), 1.1 + 2.0 * len(texts))
    grid = fig.subplots(len(texts), len(models), sharex=True, sharey=True, squeeze=False)
    for (text, model), axes in zip(product(texts, models), grid.flat, strict=True):
        if fitted:
            curve(axes, lengths, dataset["expected_score"].sel(model=model), colours[model], alpha=0.18)
        mine = windows[(windows["text"] == text) & (windows["model"] == model)]
        _window_points(axes, mine, score, interval, colours[model])
        length_axis(axes, lengths)
        axes.tick_params(axis="x", labelrotation=60)
        axes.set(ylim=(0, 1), xlabel="")
        light_grid(axes, "y")
    for axes, model in zip(grid[0], models, strict=True):
        axes.set_title(player_label(model))
    for axes, text in zip(grid[:, 0], texts, strict=True):
        axes.set_ylabel(f"{text}\n{_label(score)}")
    label_below(grid, grid.size, "tokens of context\n(log scale)")
    titled(fig, f"{_label(score).capitalize()} by the length of the context")
    handles = [mark(f"a window, {interval:.0%} interval over its tokens", marker="o", line="-")]
    if windows.duplicated(["text", "model", "context_length"]).any():
        handles.append(mark("windows of one length, side by side", marker="o", line="-", markersize=2.6))
    if fitted:
        handles.append(mark(f"expected in a new window, {interval:.0%} band"))
    named(fig, handles)
    return fig


def _window_points(axes: Axes, mine: pd.DataFrame, score: str, interval: float, colour: str) -> None:
    """Draw windows with intervals over their tokens; those of one length stand side by side."""
    of_length = mine.groupby("context_length")["text"]
    turn = of_length.cumcount() - (of_length.transform("size") - 1) / 2
    x = mine["context_length"] * 2 ** (0.13 * turn)
    reach = stats.t.ppf((1 + interval) / 2, mine["n_tokens"] - 1) * mine[f"{score}_se"]
    axes.errorbar(x, mine[score], yerr=reach, fmt="none", ecolor=colour, elinewidth=0.8, alpha=0.6)
    axes.scatter(x, mine[score], s=np.where(of_length.transform("size") > 1, 7, 14), color=colour, zorder=3)


def slopes_figure(table: pd.DataFrame, score: str = "average", interval: float = 0.9) -> Figure:
    """Slope of every model with its interval."""
    models = table["model"].tolist()
    rows = table.assign(
        label=table["model"].map(player_label) + [f"  (best: {p:.2f})" for p in table["p_best"]],
        colour=table["model"].map(player_colours(models)),
    )
    name, xlabel = "score_per_doubling", f"{_label(score)} per doubling of the context ({interval:.0%})"
    series = [Series(f"{name}_median", f"{name}_lower", f"{name}_upper")]
    return forest_figure(rows, series, xlabel, "What a longer context brings, and which model is best")
