"""The regression behind ``+exp=ranks``: the fit, and what it says in tables and in numbers for figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from shannon_game.estimators.rankings import average_score, linear_score, reciprocal_score, top_k_accuracy
from shannon_game.estimators.rankings.perplexity import approximate_perplexity
from shannon_game.estimators.rankings.study import TokenScores, match_in_study
from shannon_game.experiments.harness.bayes import (
    convergence_columns,
    fit_model,
    interval_columns,
    several_fits,
    with_all_groups,
)
from shannon_game.experiments.harness.settings import rng_for
from shannon_game.experiments.rankings.ranks.settings import RanksSettings
from shannon_game.experiments.rankings.windows import window_variables
from shannon_game.inference.posterior.arviz_adapter import InferenceData
from shannon_game.inference.posterior.convergence import Convergence
from shannon_game.inference.rankings.slopes import (
    RankDraws,
    expected_scores,
    power_to_tell_apart,
    predictive_checks,
    rank_draws,
    replicated_counts,
    score_slopes,
    share_best,
)
from shannon_game.models.rankings.slopes import RankData, rank_data, rank_slope_model

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Regression:
    """One fit and what it says."""

    convergence: Convergence
    posteriors: dict[str, InferenceData]
    table: pd.DataFrame
    checks: pd.DataFrame
    pairs: pd.DataFrame | None
    dataset: xr.Dataset
    n_windows: int
    window_spread: float
    model_window_spread: float


def fit_regression(
    settings: RanksSettings, study: xr.Dataset, scores: TokenScores, windows: pd.DataFrame
) -> Regression:
    """Sample, check and summarise the regression."""
    data = rank_data(study, scores.rank, scores.k)
    model = rank_slope_model(data, settings.priors)
    with several_fits(1, settings.sampler):
        fit = fit_model(settings, model, "ranks")
    value = _score_of_category(settings, data)
    every, some = rank_draws(fit.posterior), rank_draws(fit.posterior, settings.n_draws)
    length = np.unique(data.window_length)
    expected = expected_scores(every, data, value, length)
    table = _table(settings, study, scores, data=data, draws=every, expected=expected).assign(
        **convergence_columns(fit.convergence)
    )
    replicated = replicated_counts(some, data, rng_for(settings.seed, "replicated ranks"))
    checks = predictive_checks(replicated, data, value, tail=settings.tail)
    n_tokens = settings.power_tokens or round(data.count.sum() / len(data.count))
    numbers = list(settings.power_windows)
    power: Mapping[str, FloatArray] = {}
    if data.model.size > 1:
        rng = rng_for(settings.seed, "power")
        power = power_to_tell_apart(some, data, value, n_windows=numbers, n_tokens=n_tokens, rng=rng)
    dataset = _dataset(settings, data, windows, draws=every, expected=expected, power=power)
    posteriors = {}
    if settings.save_posterior:
        posteriors["ranks"] = with_all_groups(fit.idata, model, settings.seed, "ranks")
    return Regression(
        convergence=fit.convergence,
        posteriors=posteriors,
        table=table,
        checks=pd.DataFrame([asdict(check) for check in checks]),
        pairs=_pairs(data, expected, length, power, numbers) if power else None,
        dataset=dataset.assign_attrs(n_tokens_of_power=int(n_tokens)),
        n_windows=data.window.size,
        window_spread=float(np.median(every.window_spread)),
        model_window_spread=float(np.median(every.model_window_spread)),
    )


def _score_of_category(settings: RanksSettings, data: RankData) -> FloatArray:
    rank, k = data.category_rank, data.k
    if settings.score in ("reciprocal", "top_1"):
        return reciprocal_score(rank) if settings.score == "reciprocal" else top_k_accuracy(rank, 1)
    return average_score(rank, k) if settings.score == "average" else linear_score(rank, k)


def _table(
    settings: RanksSettings,
    study: xr.Dataset,
    scores: TokenScores,
    *,
    data: RankData,
    draws: RankDraws,
    expected: FloatArray,
) -> pd.DataFrame:
    level = expected.mean(axis=2)
    slope = score_slopes(expected, np.unique(data.window_length))
    best, steepest = share_best(level), share_best(slope)
    hit = match_in_study(study, settings.match)[:, : scores.k]
    logprob = np.minimum(study["ranked_logprob"].to_numpy()[:, : scores.k], 0)
    means = {"linear": scores.linear, "reciprocal": scores.reciprocal, "average": scores.average}
    means |= {"top_1": top_k_accuracy(scores.rank, 1), "share_censored": scores.censored.astype(float)}
    rows = []
    for at, model in enumerate(data.model):
        mine = study["model"].to_numpy() == model
        perplexity = np.exp(-scores.logprob_nats[mine].mean())
        bound = approximate_perplexity(logprob[mine], hit[mine], censoring="bound").perplexity
        rows.append(
            {
                "model": model,
                "n_tokens": int(mine.sum()),
                "n_windows": int((data.cell_model == at).sum()),
                **{name: float(values[mine].mean()) for name, values in means.items()},
                "approximate_perplexity": float(perplexity),
                "perplexity_bound": bound,
                **interval_columns("expected_score", level[:, at], settings.tail),
                **interval_columns("score_per_doubling", slope[:, at], settings.tail),
                **interval_columns("log_odds_per_doubling", draws.slope[:, at], settings.tail),
                "p_slope_positive": float((draws.slope[:, at] > 0).mean()),
                "p_best": float(best[at, 0]),
                "p_steepest": float(steepest[at, 0]),
            }
        )
    return pd.DataFrame(rows)


def _pairs(
    data: RankData,
    expected: FloatArray,
    length: NDArray[np.int64],
    power: Mapping[str, FloatArray],
    number: Sequence[int],
) -> pd.DataFrame:
    level, slope = expected.mean(axis=2), score_slopes(expected, length)
    rows = []
    for at, (first, second) in enumerate(zip(*np.triu_indices(data.model.size, 1), strict=True)):
        enough = {name: [n for n, share in zip(number, power[name][at], strict=True) if share >= 0.8] for name in power}
        rows.append(
            {
                "first": data.model[first],
                "second": data.model[second],
                "p_first_better": float((level[:, first] > level[:, second]).mean()),
                "p_first_steeper": float((slope[:, first] > slope[:, second]).mean()),
                "difference_median": float(np.median(level[:, first] - level[:, second])),
                "slope_difference_median": float(np.median(slope[:, first] - slope[:, second])),
                **{f"windows_for_{name}": min(enough[name], default=np.nan) for name in power},
            }
        )
    return pd.DataFrame(rows)


def _dataset(
    settings: RanksSettings,
    data: RankData,
    windows: pd.DataFrame,
    *,
    draws: RankDraws,
    expected: FloatArray,
    power: Mapping[str, FloatArray],
) -> xr.Dataset:
    quantile = [settings.tail, 0.5, 1 - settings.tail]
    length = np.unique(data.window_length)
    level, slope = expected.mean(axis=2), score_slopes(expected, length)
    n_models = data.model.size
    variables: dict[str, Any] = {
        "expected_score": (("quantile", "model", "length"), np.quantile(expected, quantile, axis=0)),
        "level_draws": (("draw", "model"), level),
        "slope_draws": (("draw", "model"), slope),
        "log_odds_slope_draws": (("draw", "model"), draws.slope),
        "p_place": (("model", "place"), share_best(level)),
        "p_place_slope": (("model", "place"), share_best(slope)),
        "window_spread_draws": ("draw", draws.window_spread),
        "model_window_spread_draws": ("draw", draws.model_window_spread),
        **window_variables(windows),
    }
    coords: dict[str, Any] = {
        "model": data.model.astype(object),
        "length": length,
        "quantile": quantile,
        "place": np.arange(1, n_models + 1),
    }
    if power:
        first, second = np.triu_indices(n_models, 1)
        variables |= {f"power_{name}": (("pair", "n_windows"), values) for name, values in power.items()}
        coords |= {
            "pair": np.array(
                [f"{data.model[a]} / {data.model[b]}" for a, b in zip(first, second, strict=True)], object
            ),
            "n_windows": list(settings.power_windows),
        }
    return xr.Dataset(variables, coords=coords)
