"""``+exp=rank_scores``: what scores of a rank reward, which separates models best, and which tokens are easy."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations, pairwise
from typing import Annotated

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from pydantic import Field

from shannon_game.estimators.documents.tokens import TOKEN_CLASSES, token_class
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.rankings import (
    exponential_score,
    linear_score,
    paired_separation,
    reciprocal_score,
    score_study,
    top_k_accuracy,
)
from shannon_game.experiments.harness.result import ExperimentResult, experiment
from shannon_game.experiments.harness.settings import rows_of
from shannon_game.experiments.harness.tables import table_variables
from shannon_game.experiments.rankings.rank_scores.figures import curves_figure, easy_figure, separation_figure
from shannon_game.experiments.rankings.settings import ListSettings
from shannon_game.inference.settings import Probability

SEPARATION_COLUMNS = (
    *("first", "second", "score", "n_windows", "difference", "se", "effect", "windows_needed", "place"),
)
"""Columns of the table; ``place`` 1 is the score with the largest effect of its pair."""

EASY_COLUMNS = ("factor", "level", "model", "score", "n_tokens", "n_windows", "mean", "se")
"""Columns of ``easy_tokens.csv``; standard errors are over windows."""

_CHARACTERS = (1, 2, 3, 4, 5, 7, 9)
_WINDOW = ["text", "context_length", "window"]


class RankScoresSettings(ListSettings):
    """Settings of :func:`rank_scores`."""

    decays: tuple[Annotated[float, Field(gt=0)], ...] = (0.1, 0.3)
    """Rates of the exponential scores."""
    weights: dict[str, Annotated[float, Field(ge=0)]] | None = None
    """Weights of scores in their average, as {linear: 1, reciprocal: 2}; null: the same for linear, reciprocal and
    exponential ones (the thesis's, with its two rates)."""
    power: Probability = 0.8
    """Power of the test whose windows are counted."""
    level: Probability = 0.05
    """Level of that test, two-sided."""


@experiment(RankScoresSettings)
def rank_scores(study: xr.Dataset, settings: RankScoresSettings) -> ExperimentResult:
    """Compare scores of ranks: the curves, how well each separates every two models, and what is easy.

    Parameters
    ----------
    study : xarray.Dataset
        A ranking study. Models are compared on the windows that both scored.

    Returns
    -------
    ExperimentResult
        :data:`SEPARATION_COLUMNS`, a row a pair of models and score; ``easy_tokens.csv`` has :data:`EASY_COLUMNS`,
        ``score_curves.csv`` every score of every rank.

    Raises
    ------
    InputError
        If a weight names no score, or all are 0.

    Examples
    --------
    >>> from shannon_game import rank_scores
    >>> from shannon_game.estimators.rankings.examples import ranking_study
    >>> found = rank_scores(ranking_study())
    >>> found.table[["score", "n_windows", "place"]].head(2)
             score  n_windows  place
    0  exponential_01          6      1
    1          linear          6      2
    """
    scored = score_study(study, match=settings.match, tie=settings.tie, top_k=settings.top_k)
    curves = score_curves(scored.k, settings)
    tokens = pd.DataFrame({name: study[name].to_numpy() for name in ["model", *_WINDOW, "reference_token"]})
    tokens = tokens.join(pd.DataFrame(_scores(scored.rank, scored.k, settings)))
    names = [str(name) for name in curves.columns if name != "rank"]
    table = separations(tokens, names, level=settings.level, power=settings.power)
    easy = easy_tokens(tokens, ["average", "top_1"])
    name = str(study.attrs.get("name", ""))
    figures = {"score_curves": curves_figure(curves), "easy_tokens": easy_figure(easy, name)}
    if len(table):
        figures["separation"] = separation_figure(table, name)
    return ExperimentResult(
        table=table,
        dataset=xr.Dataset(
            table_variables(table, "row")
            | table_variables(easy.add_prefix("easy_"), "easy_row")
            | table_variables(curves.add_prefix("curve_"), "curve_rank")
        ),
        figures=figures,
        text=_summary(table, easy),
        warnings=() if len(table) else ("there is one model, or no two scored the same windows: nothing to separate",),
        tables={"easy_tokens": easy, "score_curves": curves},
    )


def _scores(rank: NDArray[np.float64], k: int, settings: RankScoresSettings) -> dict[str, NDArray[np.float64]]:
    """Every score of every token, the weighted average last."""
    single = {"linear": linear_score(rank, k), "reciprocal": reciprocal_score(rank)}
    for decay in settings.decays:
        single[f"exponential_{f'{decay:g}'.replace('.', '')}"] = exponential_score(rank, decay)
    weights: Mapping[str, float] = settings.weights or dict.fromkeys(single, 1.0)
    known = [*single, "top_1"]
    for name in weights:
        if name not in known:
            raise InputError(f"names {name!r}; scores are {', '.join(known)}", field="weights")
    if not sum(weights.values()) > 0:
        raise InputError("are all 0, at least one should be above 0", field="weights")
    scores = {**single, "top_1": top_k_accuracy(rank, 1)}
    scores["average"] = np.average([scores[name] for name in weights], axis=0, weights=list(weights.values()))
    return scores


def score_curves(k: int, settings: RankScoresSettings) -> pd.DataFrame:
    """Every score of the ranks 1 to `k`; a token beyond has 0 in all of them."""
    rank = np.arange(1.0, k + 1)
    return pd.DataFrame({"rank": rank, **_scores(rank, k, settings)})


def separations(tokens: pd.DataFrame, scores: list[str], *, level: float, power: float) -> pd.DataFrame:
    """Compare every two models in every score, on the windows that both scored."""
    means = tokens.groupby(["model", *_WINDOW])[scores].mean()
    rows = []
    for pair in combinations(means.index.get_level_values("model").unique(), 2):
        first, second = sorted(pair, key=lambda name: -means.loc[name, "average"].mean())
        both = means.loc[first].add_suffix("|1").join(means.loc[second].add_suffix("|2"), how="inner")
        if len(both) < 2:
            continue
        own = []
        for score in scores:
            found = paired_separation(both[f"{score}|1"], both[f"{score}|2"], level=level, power=power)
            own.append({"first": first, "second": second, "score": score, **_fields(found)})
        effects = [-abs(row["effect"]) if np.isfinite(row["effect"]) else 0.0 for row in own]
        for place, at in enumerate(np.argsort(effects, kind="stable"), start=1):
            rows.append({**own[at], "place": place})
    return pd.DataFrame(rows, columns=list(SEPARATION_COLUMNS))


def _fields(found: object) -> dict[str, float]:
    return {name: getattr(found, name) for name in ("n_windows", "difference", "se", "effect", "windows_needed")}


def easy_tokens(tokens: pd.DataFrame, scores: list[str]) -> pd.DataFrame:
    """Mean scores by a token's number of characters and by its class."""
    shown = tokens["reference_token"].astype(str)
    length = np.maximum([len(text.strip()) for text in shown], 1)
    ends = np.array(_CHARACTERS)
    at = np.searchsorted(ends, length, side="right") - 1
    names = [*(f"{a}" if b == a + 1 else f"{a}-{b - 1}" for a, b in pairwise(ends)), f"{ends[-1]}+"]
    factors = {
        "characters": (np.array(names, dtype=object)[at], names),
        "class": (np.array([token_class(text) for text in shown], dtype=object), list(TOKEN_CLASSES)),
    }
    rows = []
    for factor, (levels, order) in factors.items():
        for level in order:
            of_level = tokens[levels == level]
            for model, own in of_level.groupby("model", sort=True):
                for score in scores:
                    mean, se, n_windows = _mean_over_windows(own, score)
                    rows.append((factor, level, model, score, len(own), n_windows, mean, se))
    return pd.DataFrame(rows, columns=list(EASY_COLUMNS))


def _mean_over_windows(tokens: pd.DataFrame, score: str) -> tuple[float, float, int]:
    """Mean of tokens, its linearised standard error over windows, and the number of these."""
    mean = float(tokens[score].mean())
    sums = (tokens[score] - mean).groupby([tokens[name] for name in _WINDOW]).sum().to_numpy()
    n = len(sums)
    se = float(np.sqrt(n / (n - 1) * np.sum(sums**2)) / len(tokens)) if n > 1 else float("nan")
    return mean, se, n


def _summary(table: pd.DataFrame, easy: pd.DataFrame) -> str:
    lines = []
    for row in rows_of(table[table["place"] == 1]):
        worst = table[(table["first"] == row.first) & (table["second"] == row.second)].iloc[-1]
        needed = "no number of windows" if np.isnan(row.windows_needed) else f"{row.windows_needed:,.0f} windows"
        lines.append(
            f"- **{row.first}** and **{row.second}** differ most clearly in {row.score} ({row.difference:+.3f}, se "
            f"{row.se:.3f}; effect size {row.effect:.2f}; {needed} would do), least in {worst['score']} (effect size "
            f"{worst['effect']:.2f})."
        )
    shown = easy[(easy["score"] == "top_1") & (easy["factor"] == "characters")]
    means = shown.groupby("level", sort=False)["mean"].mean()
    easiest = ", ".join(f"{level}: {mean:.0%}" for level, mean in means.items())
    return (
        "\n".join(lines) + "\n\nThe effect size is the mean difference of windows that both models scored, over its "
        f"standard deviation. First guesses that are right, by the token's number of characters: {easiest}. The "
        "best of several scores is too large by chance: choose on one half of the windows and report on the other."
    )
