"""Scores of a rank compared: what they reward, which separates models best, which tokens are easy; figures."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray
from scipy import stats
from scipy.optimize import nnls

from shannon_game.estimators import rankings
from shannon_game.estimators.documents.corpus import clustered_mean
from shannon_game.estimators.documents.tokens import TOKEN_CLASSES, token_class
from shannon_game.estimators.errors import InputError
from shannon_game.experiments.harness.figures import Series, new_figure, player_colours, player_label
from shannon_game.experiments.harness.marks import curve, label_below, light_grid, mark, named, titled
from shannon_game.experiments.harness.plots import bars, forest_figure, length_axis, styled
from shannon_game.experiments.harness.questions import one_panel
from shannon_game.experiments.rankings.ranks.settings import RanksSettings
from shannon_game.experiments.rankings.windows import SCORE_COLUMNS

_CHARACTERS = (1, 2, 3, 4, 5, 7, 9)
_WINDOW = ["text", "context_length", "window"]
_PIECES = ("whole", "first", "later")
"""Of a word: all of it in one token, its first token of several, a later one."""


def token_scores_by_name(rank: NDArray[np.float64], k: int, settings: RanksSettings) -> dict[str, NDArray[np.float64]]:
    """Every score of every token, the weighted average last."""
    single = {"linear": rankings.linear_score(rank, k), "reciprocal": rankings.reciprocal_score(rank)}
    for decay in settings.decays:
        single[f"exponential_{f'{decay:g}'.replace('.', '')}"] = rankings.exponential_score(rank, decay)
    weights: Mapping[str, float] = settings.weights or dict.fromkeys(single, 1.0)
    known = [*single, "top_1"]
    for name in weights:
        if name not in known:
            raise InputError(f"names {name!r}; scores are {', '.join(known)}", field="weights")
    if not sum(weights.values()) > 0:
        raise InputError("are all 0, at least one should be above 0", field="weights")
    scores = {**single, "top_1": rankings.top_k_accuracy(rank, 1)}
    scores["average"] = np.average([scores[name] for name in weights], axis=0, weights=list(weights.values()))
    return scores


def score_curves(k: int, settings: RanksSettings) -> pd.DataFrame:
    """Every score of the ranks 1 to `k`; a token beyond has 0 in all of them."""
    rank = np.arange(1.0, k + 1)
    return pd.DataFrame({"rank": rank, **token_scores_by_name(rank, k, settings)})


def separations(tokens: pd.DataFrame, scores: list[str], *, level: float, power: float) -> pd.DataFrame:
    """Compare every two models in every score, on the windows that both scored; ``place`` 1 separates them best."""
    means = tokens.groupby(["model", *_WINDOW])[scores].mean()
    found = []
    for pair in combinations(means.index.get_level_values("model").unique(), 2):
        first, second = sorted(pair, key=lambda name: -means.loc[name, "average"].mean())
        both = means.loc[first].add_suffix("|1").join(means.loc[second].add_suffix("|2"), how="inner")
        if len(both) < 2:
            continue
        rows = []
        for score in scores:
            its = rankings.paired_separation(both[f"{score}|1"], both[f"{score}|2"], level=level, power=power)
            rows.append({"first": first, "second": second, "score": score, **vars(its)})
        own = pd.DataFrame(rows).drop(columns="sd")
        size = own["effect"].abs().where(np.isfinite(own["effect"]), 0)
        own = own.loc[size.sort_values(ascending=False, kind="stable").index]
        found.append(own.assign(place=np.arange(1, len(own) + 1)))
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame()


def easy_tokens(tokens: pd.DataFrame, scores: list[str]) -> pd.DataFrame:
    """Mean scores by a token's number of characters, its class and its piece of a word, at each length and at all.

    Standard errors are over windows; ``context_length`` is missing where the row is of all lengths.
    """
    shown = tokens["reference_token"].astype(str)
    length = np.maximum([len(text.strip()) for text in shown], 1)
    ends = np.array(_CHARACTERS)
    names = [*(f"{a}" if b == a + 1 else f"{a}-{b - 1}" for a, b in pairwise(ends)), f"{ends[-1]}+"]
    of_length = np.array(names, dtype=object)[np.searchsorted(ends, length, side="right") - 1]
    factors = {"characters": (of_length, names), "class": (shown.map(token_class).to_numpy(), list(TOKEN_CLASSES))}
    factors["piece"] = (_pieces(tokens), list(_PIECES))
    every = pd.concat([tokens, tokens.assign(at=tokens["context_length"])], ignore_index=True)
    rows = []
    for factor, (levels, order) in factors.items():
        known = every.assign(level=pd.Categorical([*levels, *levels], order)).dropna(subset="level")
        for (level, model, at), own in known.groupby(["level", "model", "at"], observed=True, dropna=False):
            window = own.groupby(_WINDOW).ngroup().to_numpy()
            for score in scores:
                mean = clustered_mean(own[score].to_numpy(dtype=float), window)
                row = {"factor": factor, "level": level, "context_length": at, "model": model, "score": score}
                n_windows = len(np.unique(window))
                rows.append({**row, "n_tokens": len(own), "n_windows": n_windows, "mean": mean.mean, "se": mean.se})
    return pd.DataFrame(rows).astype({"context_length": "Int64", "level": str})


def _pieces(tokens: pd.DataFrame) -> NDArray[np.object_]:
    """Name each token's piece of a word; None where it is of none, or a neighbour that decides stands outside."""
    text = tokens["reference_token"].astype(str)
    in_window = text.groupby([tokens[name] for name in ("model", *_WINDOW)], sort=False)
    before, after = in_window.shift(1), in_window.shift(-1)
    joined, goes_on = before.str[-1:].str.isalpha().eq(True), after.str[:1].str.isalpha().eq(True)
    begins, ends = text.str[:1].str.isalpha(), text.str[-1:].str.isalpha()
    starts = ends & (~begins | (before.notna() & ~joined))
    cases = {"later": begins & joined, "first": starts & goes_on, "whole": starts & after.notna() & ~goes_on}
    pieces = pd.Series(None, text.index, dtype=object)
    for name, those in cases.items():
        pieces[those] = name
    return pieces.to_numpy()


def fitted_weights(windows: pd.DataFrame) -> pd.DataFrame:
    """Fit weights, none below 0, with which the scores of a window follow its mean log-probability.

    They are fitted on every other window; correlations are over the rest, ``r_equal`` with equal weights.
    """
    scores = list(SCORE_COLUMNS[:4])
    windows = windows[np.isfinite(windows["perplexity"])]
    half = windows.groupby(["part", *_WINDOW]).ngroup() % 2 == 0
    x, target = windows[scores], -np.log(windows["perplexity"])
    weights = nnls(x[half] - x[half].mean(), target[half] - target[half].mean())[0] if half.any() else np.zeros(4)
    weights /= weights.sum() or np.nan
    with np.errstate(invalid="ignore", divide="ignore"):
        found = {"r_fitted": (x @ weights)[~half].corr(target), "r_equal": x.mean(axis=1)[~half].corr(target)}
    return pd.DataFrame({"score": scores, "weight": weights, **found})


def said_of_scores(separation: pd.DataFrame) -> str:
    """Say in which score each two models differ most clearly."""
    if separation.empty:
        return ""
    best = separation[separation["place"] == 1]
    pairs = [
        f"{first} and {second} in {score} (effect size {effect:.2f})"
        for first, second, score, effect in best[["first", "second", "score", "effect"]].itertuples(index=False)
    ]
    return (
        f"Pairs of models differ most clearly in these scores: {'; '.join(pairs)} (`separation.csv`). The best of "
        "several scores is too large by chance: choose on one half of the windows and report on the other."
    )


def _score_label(name: str) -> str:
    exponential = re.fullmatch(r"exponential_0(\d+)", name)
    return f"exponential, rate 0.{exponential[1]}" if exponential else name.replace("top_1", "first guess right")


def curves_figure(curves: pd.DataFrame) -> Figure:
    """Draw every score of every rank."""
    names = sorted(str(name) for name in curves.columns if name != "rank")
    with one_panel(5.0, 3.4, "What a rank is worth") as (fig, axes):
        for name, colour in player_colours(names).items():
            axes.plot(curves["rank"], curves[name], color=colour, marker="o", markersize=2.5, label=_score_label(name))
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set(xlabel="rank of the token of the text", ylabel="score", ylim=(-0.03, 1.05))
        named(fig, axes.get_legend_handles_labels()[0])
    return fig


def separation_figure(table: pd.DataFrame) -> Figure:
    """Draw the effect size of every score, a row per pair of models."""
    scores = sorted(set(table["score"]))
    colours = player_colours(scores)
    finite = table.assign(effect=table["effect"].replace([np.inf, -np.inf], np.nan))
    wide = finite.pivot_table(index=["first", "second"], columns="score", values="effect", dropna=False, sort=False)
    wide = wide.dropna(how="all").reset_index()
    rows = wide.assign(label=wide["first"].map(player_label) + " - " + wide["second"].map(player_label))
    series = [
        Series(
            name,
            label=_score_label(name),
            marker="osD^vPX"[at % 7],
            colour=colours[name],
            size=5,
            offset=0.1 * (len(scores) / 2 - at),
        )
        for at, name in enumerate(scores)
    ]
    xlabel = "difference between models, in s.d."
    return forest_figure(rows, series, xlabel, "Which score tells two models apart?", row_height=0.42, columns=2)


@styled
def easy_figure(easy: pd.DataFrame) -> Figure:
    """Draw the share of first guesses that are right, by a token's length, class and piece of a word."""
    shown = easy[(easy["score"] == "top_1") & easy["context_length"].isna()]
    models = [str(name) for name in shown["model"].unique()]
    colours = player_colours(models)
    groups = list(shown.groupby("factor", sort=False))
    fig = new_figure(3.1 * len(groups), 3.3)
    for axes, (factor, rows) in zip(fig.subplots(1, len(groups), sharey=True, squeeze=False)[0], groups, strict=True):
        levels = list(dict.fromkeys(rows["level"]))
        for at, model in enumerate(models):
            own = rows[rows["model"] == model]
            x, se = own["level"].map(levels.index) + 0.12 * (at - (len(models) - 1) / 2), own["se"].fillna(0)
            bars(axes, x, own["mean"] - se, own["mean"], own["mean"] + se, color=colours[model], capsize=0)
        axes.set_xticks(range(len(levels)), levels, rotation=35 if factor == "class" else 0)
        axes.set(xlabel="piece of a word" if factor == "piece" else f"{factor} of the token", ylim=(-0.02, 1.02))
        light_grid(axes, "y")
    fig.axes[0].set_ylabel("first guess right")
    named(fig, [mark(player_label(model), colours[model], "o") for model in models], 4)
    titled(fig, "Which tokens are easy, with standard errors")
    return fig


_SCORE_LABELS = {"average": "average rank score", "linear": "linear score", "reciprocal": "reciprocal score"}


def _label(score: str) -> str:
    return _SCORE_LABELS.get(score, "top-1 accuracy")


@styled
def scores_figure(windows: pd.DataFrame, dataset: xr.Dataset, score: str = "average", interval: float = 0.9) -> Figure:
    """Score of every window against length, a panel per model, with their mean, or the regression's expected score."""
    models = [str(name) for name in dataset["model"].to_numpy()]
    texts = dict(zip(dict.fromkeys(windows["text"]), "os^Dv" * len(windows), strict=False))
    fitted, columns = "expected_score" in dataset, min(2, len(models))
    n_rows = -(-len(models) // columns)
    fig = new_figure(4.5, 1.7 + 1.7 * n_rows)
    grid = fig.subplots(n_rows, columns, sharex=True, sharey=True, squeeze=False)
    for axes, (model, colour) in zip(grid.flat, player_colours(models).items(), strict=False):
        own = windows[windows["model"] == model]
        if fitted:
            curve(axes, dataset["length"], dataset["expected_score"].sel(model=model), colour, alpha=0.18)
        else:
            axes.plot(own.groupby("context_length")[score].mean(), color=colour)
        for text, marker in texts.items():
            _window_points(axes, own[own["text"] == text], score, interval, color=colour, marker=marker)
        length_axis(axes, windows["context_length"], most_ticks=4)
        axes.set(ylim=(0, 1), xlabel="", title=player_label(model))
        light_grid(axes, "y")
    for axes in grid[:, 0]:
        axes.set_ylabel(_label(score))
    label_below(grid, len(models), "tokens of context", size=10)
    titled(fig, "Does a longer context improve the ranks?")
    line = f"expected in a new window, {interval:.0%} band" if fitted else "mean of the windows"
    names = [
        mark(f"window of {text}, {interval:.0%} interval", marker=marker, line="-") for text, marker in texts.items()
    ]
    named(fig, [*names[:4], mark(line)], 1)
    return fig


def _window_points(axes: Axes, mine: pd.DataFrame, score: str, interval: float, **look: Any) -> None:
    """Draw windows with intervals over their tokens; those of one length stand side by side."""
    of_length = mine.groupby("context_length")["text"]
    turn = of_length.cumcount() - (of_length.transform("size") - 1) / 2
    reach = stats.t.ppf((1 + interval) / 2, mine["n_tokens"] - 1) * mine[f"{score}_se"]
    x = mine["context_length"] * 2 ** (0.13 * turn)
    axes.errorbar(x, mine[score], yerr=reach, linestyle="", markersize=3, elinewidth=0.8, alpha=0.6, **look)


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
