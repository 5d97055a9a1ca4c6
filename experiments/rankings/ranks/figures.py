"""Figures of ``+exp=ranks``."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator
from scipy import stats

from experiments.harness.figures import STYLE, Series, forest, new_figure, player_colours, player_label
from experiments.harness.marks import curve, label_below, light_grid, mark, named, number_ticks, percent, titled

__all__ = ["power_figure", "predictive_figure", "scores_figure", "slopes_figure"]

_SCORE_LABELS = {"average": "average rank score", "linear": "linear score", "reciprocal": "reciprocal score"}
_MOST_TICKS = 9


def _label(score: str) -> str:
    return _SCORE_LABELS.get(score, "top-1 accuracy")


def _length_axis(axes: Axes, lengths: np.ndarray) -> None:
    axes.set_xscale("log", base=2)
    step = max(1, round(lengths.size / _MOST_TICKS))
    number_ticks(axes.xaxis, lengths[::step])
    axes.tick_params(axis="x", labelrotation=60)


def scores_figure(windows: pd.DataFrame, dataset: xr.Dataset, score: str = "average", interval: float = 0.9) -> Figure:
    """Mean score of every window against length, by model and text; the regression's expected score if there is one."""
    models = [str(name) for name in dataset["model"].to_numpy()]
    texts = list(dict.fromkeys(windows["text"]))
    colours = player_colours(models)
    lengths = dataset["length"].to_numpy()
    fitted = "expected_score" in dataset
    several = windows.duplicated(["text", "model", "context_length"]).any()
    with mpl.rc_context(STYLE):
        fig = new_figure(max(2.0 * len(models), 4.0), 1.1 + 2.0 * len(texts))
        grid = fig.subplots(len(texts), len(models), sharex=True, sharey=True, squeeze=False)
        for row, text in enumerate(texts):
            for column, model in enumerate(models):
                axes = grid[row, column]
                if fitted:
                    curve(axes, lengths, dataset["expected_score"].sel(model=model), colours[model], alpha=0.18)
                mine = windows[(windows["text"] == text) & (windows["model"] == model)]
                reach = stats.t.ppf((1 + interval) / 2, mine["n_tokens"] - 1) * mine[f"{score}_se"]
                repeated = mine.duplicated("context_length", keep=False).to_numpy()
                # windows of one length stand side by side
                turn = (
                    mine.groupby("context_length").cumcount()
                    - (mine.groupby("context_length")["text"].transform("size") - 1) / 2
                )
                axes.errorbar(
                    mine["context_length"] * 2 ** (0.13 * turn),
                    mine[score],
                    yerr=reach,
                    fmt="none",
                    ecolor=colours[model],
                    elinewidth=0.8,
                    alpha=0.6,
                )
                axes.scatter(
                    mine["context_length"] * 2 ** (0.13 * turn),
                    mine[score],
                    s=np.where(repeated, 7, 14),
                    color=colours[model],
                    zorder=3,
                )
                if row == 0:
                    axes.set_title(player_label(model))
                if column == 0:
                    axes.set_ylabel(f"{text}\n{_label(score)}")
                if row == len(texts) - 1:
                    _length_axis(axes, lengths)
                axes.set_ylim(0, 1)
                axes.set_xlim(lengths[0] / 1.5, lengths[-1] * 1.5)
                light_grid(axes, "y")
        label_below(grid, grid.size, "tokens of context\n(log scale)")
        titled(fig, f"{_label(score).capitalize()} by the length of the context")
        handles = [mark(f"a window, {interval:.0%} interval over its tokens", marker="o", line="-")]
        if several:
            handles.append(mark("windows of one length, side by side", marker="o", line="-", markersize=2.6))
        if fitted:
            handles.append(mark(f"expected in a new window, {interval:.0%} band"))
        named(fig, handles)
    return fig


def slopes_figure(table: pd.DataFrame, dataset: xr.Dataset, score: str = "average", interval: float = 0.9) -> Figure:
    """Slope of every model, and the probability of every place in the rankings by level and by slope."""
    models = [str(name) for name in dataset["model"].to_numpy()]
    colours = player_colours(models)
    with mpl.rc_context(STYLE):
        fig = new_figure(7.2, 1.8 + 0.38 * len(models))
        left, middle, right = fig.subplots(1, 3, width_ratios=[1.35, 1, 1], sharey=True)
        name = "score_per_doubling"
        slopes = table.assign(label=[player_label(each) for each in models], colour=[colours[each] for each in models])
        height = forest(left, slopes, [Series(f"{name}_median", f"{name}_lower", f"{name}_upper")])
        left.axvline(0, color="0.55", linewidth=0.8)
        left.set_xlabel(f"{_label(score)}\nper doubling of the context ({interval:.0%})")
        left.set_title("slope")
        shades = [str(0.25 + 0.6 * place / max(len(models) - 1, 1)) for place in range(len(models))]
        for axes, name, title in ((middle, "p_place", "place by score"), (right, "p_place_slope", "place by slope")):
            start = np.zeros(len(models))
            for place, shade in enumerate(shades):
                share = dataset[name].to_numpy()[:, place]
                axes.barh(height, share, left=start, color=shade, edgecolor="white", linewidth=0.6, height=0.62)
                for y, x, width in zip(height, start, share, strict=True):
                    if width > 0.12:
                        axes.text(
                            x + width / 2,
                            y,
                            f"{place + 1}",
                            ha="center",
                            va="center",
                            fontsize=8,
                            color="white" if place < len(shades) / 2 else "black",
                        )
                start = start + share
            axes.set_xlim(0, 1)
            percent(axes.xaxis)
            axes.set_title(title)
            axes.set_xlabel("posterior probability of the\nplace (numbers; 1 is best)")
            axes.tick_params(axis="y", length=0)
        titled(fig, "What a longer context brings, and which model is best")
    return fig


def predictive_figure(dataset: xr.Dataset, checks: pd.DataFrame, interval: float = 0.9) -> Figure:
    """Shares of ranks observed and predicted, and statistics that the regression does not fit directly."""
    models = [str(name) for name in dataset["model"].to_numpy()]
    colours = player_colours(models)
    # tokens outside the list stand apart
    rank = dataset["rank"].to_numpy() + 1.5 * (dataset["rank"].to_numpy() == dataset.sizes["rank"])
    k = dataset.sizes["rank"] - 1
    with mpl.rc_context(STYLE):
        fig = new_figure(7.4, max(3.2, 1.0 + 0.21 * len(checks)))
        left, right = fig.subplots(1, 2, width_ratios=[1, 1])
        offset = np.linspace(-0.3, 0.3, len(models)) if len(models) > 1 else np.zeros(1)
        for shift, model in zip(offset, models, strict=True):
            lower, _, upper = dataset["predicted_rank_share"].sel(model=model).to_numpy()
            left.vlines(rank + shift, np.maximum(lower, 1e-4), upper, color=colours[model], linewidth=2.2, alpha=0.4)
            observed = dataset["rank_share"].sel(model=model).to_numpy()
            left.plot(rank + shift, np.where(observed > 0, observed, np.nan), "o", markersize=2.4, color=colours[model])
        left.set_yscale("log")
        left.set_ylim(8e-4, 1)
        left.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:g}%"))
        left.yaxis.set_minor_locator(NullLocator())
        ticks = [1, *range(5, k, 5), rank[-1]]
        left.set_xticks(ticks, [*map(str, ticks[:-1]), "none"])
        left.set_xlabel("rank of the reference token")
        left.set_ylabel("share of tokens (log scale)")
        left.set_title("dots observed, bars predicted")
        left.legend(handles=[mark(player_label(name), colours[name], "o") for name in models], loc="upper center")
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


def power_figure(dataset: xr.Dataset, n_tokens: int) -> Figure:
    """Power to tell two models apart against the number of windows, by mean and by slope."""
    number = dataset["n_windows"].to_numpy()
    pairs = [str(name) for name in dataset["pair"].to_numpy()]
    shades = player_colours([f"pair {at}" for at in range(len(pairs))])
    styles = ["-", "--", ":", "-."] * len(pairs)
    with mpl.rc_context(STYLE):
        fig = new_figure(7.2, 3.4)
        for axes, name, title in zip(
            fig.subplots(1, 2, sharey=True),
            ("mean", "slope"),
            ("difference in score", "difference in slope"),
            strict=True,
        ):
            for pair, colour, style in zip(pairs, shades.values(), styles, strict=False):
                axes.plot(
                    number,
                    dataset[f"power_{name}"].sel(pair=pair),
                    color=colour,
                    linestyle=style,
                    marker="o",
                    markersize=3,
                )
            axes.axhline(0.8, color="0.55", linewidth=0.8)
            axes.set_xscale("log", base=2)
            number_ticks(axes.xaxis, number)
            axes.set_ylim(0, 1)
            axes.set_title(title)
            axes.set_xlabel(f"windows of {n_tokens} tokens, over all lengths")
            light_grid(axes, "y")
        fig.axes[0].set_ylabel("power of a 5% test")
        handles = [
            mark(" / ".join(map(player_label, pair.split(" / "))), colour, line=style)
            for pair, colour, style in zip(pairs, shades.values(), styles, strict=False)
        ]
        named(fig, handles)
        titled(fig, "How many windows tell two models apart")
    return fig
