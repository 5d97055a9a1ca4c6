"""Figures of ``+exp=ranks``."""

from __future__ import annotations

from itertools import cycle, product
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator
from scipy import stats

from shannon_game.experiments.harness.figures import Series, forest, new_figure, player_colours, player_label
from shannon_game.experiments.harness.marks import (
    curve,
    label_below,
    light_grid,
    mark,
    named,
    number_ticks,
    percent,
    titled,
)
from shannon_game.experiments.harness.plots import length_axis, styled

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


@styled
def slopes_figure(table: pd.DataFrame, dataset: xr.Dataset, score: str = "average", interval: float = 0.9) -> Figure:
    """Slope of every model, and the probability of every place in the rankings by level and by slope."""
    models = [str(name) for name in dataset["model"].to_numpy()]
    colours = player_colours(models)
    fig = new_figure(7.2, 1.8 + 0.38 * len(models))
    left, middle, right = fig.subplots(1, 3, width_ratios=[1.35, 1, 1], sharey=True)
    name = "score_per_doubling"
    slopes = table.assign(label=[player_label(each) for each in models], colour=[colours[each] for each in models])
    height = forest(left, slopes, [Series(f"{name}_median", f"{name}_lower", f"{name}_upper")])
    left.axvline(0, color="0.55", linewidth=0.8)
    left.set_xlabel(f"{_label(score)}\nper doubling of the context ({interval:.0%})")
    left.set_title("slope")
    for axes, name, title in ((middle, "p_place", "place by score"), (right, "p_place_slope", "place by slope")):
        start = np.zeros(len(models))
        for place, share in enumerate(dataset[name].to_numpy().T):
            shade = str(0.25 + 0.6 * place / max(len(models) - 1, 1))
            blocks = axes.barh(height, share, left=start, color=shade, edgecolor="white", linewidth=0.6, height=0.62)
            numbers = [f"{place + 1}" if width > 0.12 else "" for width in share]
            dark = place < len(models) / 2
            axes.bar_label(blocks, numbers, label_type="center", fontsize=8, color="white" if dark else "black")
            start = start + share
        axes.set_xlim(0, 1)
        percent(axes.xaxis)
        axes.set_title(title)
        axes.set_xlabel("posterior probability of the\nplace (numbers; 1 is best)")
        axes.tick_params(axis="y", length=0)
    titled(fig, "What a longer context brings, and which model is best")
    return fig


@styled
def predictive_figure(dataset: xr.Dataset, checks: pd.DataFrame, interval: float = 0.9) -> Figure:
    """Shares of ranks observed and predicted, and statistics that the regression does not fit directly."""
    fig = new_figure(7.4, max(3.2, 1.0 + 0.21 * len(checks)))
    left, right = fig.subplots(1, 2, width_ratios=[1, 1])
    _rank_shares(left, dataset)
    known = checks[np.isfinite(checks["observed"])]
    height = np.arange(len(known))[::-1]
    # every statistic on its own scale: half the width of its interval
    half = np.maximum((known["upper"] - known["lower"]).to_numpy() / 2, 1e-12)
    place = np.clip((known["observed"] - known["median"]).to_numpy() / half, -4, 4)
    right.axvspan(-1, 1, color="0.9", linewidth=0)
    right.axvline(0, color="0.55", linewidth=0.8)
    outside = known["p_value"].to_numpy() < 1 - interval
    right.scatter(place, height, s=16, color=np.where(outside, "#D55E00", "#000000"), zorder=3)
    right.set_yticks(height, known["statistic"].tolist(), fontsize=7.5)
    right.tick_params(axis="y", length=0)
    right.set_xlim(-4.2, 4.2)
    right.set_xlabel(f"observed - predicted\n(1: end of the {interval:.0%} interval)")
    right.set_title("statistics")
    titled(fig, "Ranks, observed and predicted")
    return fig


def _rank_shares(axes: Axes, dataset: xr.Dataset) -> None:
    """Draw how many tokens stand at each rank; those outside the list stand apart."""
    models = [str(name) for name in dataset["model"].to_numpy()]
    colours, k = player_colours(models), dataset.sizes["rank"] - 1
    rank = dataset["rank"].to_numpy() + 1.5 * (dataset["rank"].to_numpy() == k + 1)
    for shift, model in zip(np.linspace(-0.3, 0.3, len(models)) * (len(models) > 1), models, strict=True):
        lower, _, upper = dataset["predicted_rank_share"].sel(model=model).to_numpy()
        axes.vlines(rank + shift, np.maximum(lower, 1e-4), upper, color=colours[model], linewidth=2.2, alpha=0.4)
        observed = dataset["rank_share"].sel(model=model).to_numpy()
        axes.plot(rank + shift, np.where(observed > 0, observed, np.nan), "o", markersize=2.4, color=colours[model])
    axes.set_yscale("log")
    axes.set_ylim(8e-4, 1)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:g}%"))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_xticks([1, *range(5, k, 5), rank[-1]], ["1", *map(str, range(5, k, 5)), "none"])
    axes.set(xlabel="rank of the reference token", ylabel="share of tokens (log scale)")
    axes.set_title("dots observed, bars predicted")
    axes.legend(handles=[mark(player_label(name), colours[name], "o") for name in models], loc="upper center")


@styled
def power_figure(dataset: xr.Dataset, n_tokens: int) -> Figure:
    """Power to tell two models apart against the number of windows, by mean and by slope."""
    number = dataset["n_windows"].to_numpy()
    pairs = [str(name) for name in dataset["pair"].to_numpy()]
    shades = player_colours([f"pair {at}" for at in range(len(pairs))]).values()
    looks: list[dict[str, Any]] = [
        {"color": colour, "linestyle": style}
        for colour, style in zip(shades, cycle(["-", "--", ":", "-."]), strict=False)
    ]
    fig = new_figure(7.2, 3.4)
    for axes, name in zip(fig.subplots(1, 2, sharey=True), ("mean", "slope"), strict=True):
        for power, look in zip(dataset[f"power_{name}"].transpose("pair", "n_windows"), looks, strict=True):
            axes.plot(number, power, marker="o", markersize=3, **look)
        axes.axhline(0.8, color="0.55", linewidth=0.8)
        axes.set_xscale("log", base=2)
        number_ticks(axes.xaxis, number)
        axes.set_ylim(0, 1)
        axes.set_title(f"difference in {'score' if name == 'mean' else name}")
        axes.set_xlabel(f"windows of {n_tokens} tokens, over all lengths")
        light_grid(axes, "y")
    fig.axes[0].set_ylabel("power of a 5% test")
    shown = [" / ".join(map(player_label, pair.split(" / "))) for pair in pairs]
    named(fig, [mark(name, look["color"], line=look["linestyle"]) for name, look in zip(shown, looks, strict=True)])
    titled(fig, "How many windows tell two models apart")
    return fig
