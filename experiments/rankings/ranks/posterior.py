"""The regression behind ``+exp=ranks``: the fit, and what it says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.rankings import average_score, linear_score, reciprocal_score, top_k_accuracy
from shannon_game.estimators.rankings.perplexity import approximate_perplexity
from shannon_game.estimators.rankings.study import TokenScores, match_in_study
from shannon_game.experiments.harness import bayes
from shannon_game.experiments.harness.result import ExperimentResult
from shannon_game.experiments.harness.settings import rng_for, rows_of
from shannon_game.experiments.rankings.ranks.scores import scores_figure, slopes_figure
from shannon_game.experiments.rankings.ranks.settings import RanksSettings
from shannon_game.inference.rankings import slopes
from shannon_game.models.rankings.slopes import RankData, rank_data, rank_slope_model


def regression(
    settings: RanksSettings, study: xr.Dataset, scores: TokenScores, windows: pd.DataFrame
) -> ExperimentResult:
    """Sample, check and summarise the regression."""
    data = rank_data(study, scores.rank, scores.k)
    model = rank_slope_model(data, settings.priors)
    with bayes.several_fits(1, settings.sampler):
        fit = bayes.fit_model(settings, model, "ranks")
    value = _score_of_category(settings, data)
    every, some = slopes.rank_draws(fit.posterior), slopes.rank_draws(fit.posterior, settings.n_draws)
    expected = slopes.expected_scores(every, data, value, np.unique(data.window_length))
    table = _table(settings, study, scores, data, every, expected).assign(**bayes.convergence_columns(fit.convergence))
    replicated = slopes.replicated_counts(some, data, rng_for(settings.seed, "replicated ranks"))
    checks = pd.DataFrame(map(asdict, slopes.predictive_checks(replicated, data, value, tail=settings.tail)))
    power: Mapping[str, FloatArray] = {}
    tables = {"checks": checks}
    if data.model.size > 1:
        n_tokens = round(data.count.sum() / len(data.count))
        rng, numbers = rng_for(settings.seed, "power"), list(settings.power_windows)
        power = slopes.power_to_tell_apart(some, data, value, n_windows=numbers, n_tokens=n_tokens, rng=rng)
        tables["pairs"] = _pairs(data, expected, power, numbers)
    dataset = _dataset(settings, data, expected=expected, power=power)
    posteriors = {}
    if settings.save_posterior:
        posteriors["ranks"] = bayes.with_all_groups(fit.idata, model, settings.seed, "ranks")
    verdict = {"ranks": fit.convergence}
    return ExperimentResult(
        table=table,
        dataset=dataset,
        figures={
            "scores": scores_figure(windows, dataset, settings.score, settings.interval),
            "slopes": slopes_figure(table, settings.score, settings.interval),
        },
        text=_summary(table, settings, scores, data, every),
        warnings=(*bayes.unconverged(verdict), *_unlike(checks)),
        gate_failed=bayes.gate_failed(settings, verdict),
        posteriors=posteriors,
        tables=tables,
    )


def _summary(
    table: pd.DataFrame, settings: RanksSettings, scores: TokenScores, data: RankData, draws: slopes.RankDraws
) -> str:
    best = rows_of(table.sort_values("p_best", ascending=False))[0]
    return (
        f"**{best.model} is best with probability {best.p_best:.2f}: its expected score is "
        f"{best.expected_score_median:.3f} [{best.expected_score_lower:.3f}, {best.expected_score_upper:.3f}]** "
        f"({settings.score}), {best.score_per_doubling_median:+.4f} per doubling of the context. There are "
        f"{int(scores.rank.size):,} tokens in {data.window.size} windows. Windows are random effects that models share "
        f"(sd {np.median(draws.window_spread):.2f} log-odds), beside one of each model (sd "
        f"{np.median(draws.model_window_spread):.2f}). The regression leaves out that models agree on single tokens, "
        "so that intervals of their differences are rather too wide."
    )


def _unlike(checks: pd.DataFrame) -> tuple[str, ...]:
    unlike = [
        f"{row.statistic} ({row.observed:.3f}, p {row.p_value:.3f})" for row in rows_of(checks) if row.p_value < 0.01
    ]
    problem = f"the regression does not predict {', '.join(unlike)}: do not use its intervals there"
    return (problem,) if unlike else ()


def _score_of_category(settings: RanksSettings, data: RankData) -> FloatArray:
    rank, k = data.category_rank, data.k
    if settings.score in ("reciprocal", "top_1"):
        return reciprocal_score(rank) if settings.score == "reciprocal" else top_k_accuracy(rank, 1)
    return average_score(rank, k) if settings.score == "average" else linear_score(rank, k)


def _table(  # noqa: PLR0917
    settings: RanksSettings,
    study: xr.Dataset,
    scores: TokenScores,
    data: RankData,
    draws: slopes.RankDraws,
    expected: FloatArray,
) -> pd.DataFrame:
    level = expected.mean(axis=2)
    slope = slopes.score_slopes(expected, np.unique(data.window_length))
    best, steepest = slopes.share_best(level), slopes.share_best(slope)
    hit = match_in_study(study, settings.match)[:, : scores.k]
    logprob = np.minimum(study["ranked_logprob"].to_numpy()[:, : scores.k], 0)
    means = {"linear": scores.linear, "reciprocal": scores.reciprocal, "average": scores.average}
    means |= {"top_1": top_k_accuracy(scores.rank, 1), "share_censored": scores.censored.astype(float)}
    rows: list[dict[str, Any]] = []
    for at, model in enumerate(data.model):
        mine = study["model"].to_numpy() == model
        perplexity = np.exp(-scores.logprob_nats[mine].mean())
        bound = approximate_perplexity(logprob[mine], hit[mine], censoring="bound").perplexity
        row = {"model": model, "n_tokens": int(mine.sum()), "n_windows": int((data.cell_model == at).sum())}
        row |= {name: float(values[mine].mean()) for name, values in means.items()}
        row |= {"approximate_perplexity": float(perplexity), "perplexity_bound": bound}
        row |= bayes.interval_columns("expected_score", level[:, at], settings.tail)
        row |= bayes.interval_columns("score_per_doubling", slope[:, at], settings.tail)
        row |= bayes.interval_columns("log_odds_per_doubling", draws.slope[:, at], settings.tail)
        row |= {"p_slope_positive": float((draws.slope[:, at] > 0).mean())}
        rows.append(row | {"p_best": float(best[at, 0]), "p_steepest": float(steepest[at, 0])})
    return pd.DataFrame(rows)


def _pairs(
    data: RankData, expected: FloatArray, power: Mapping[str, FloatArray], number: Sequence[int]
) -> pd.DataFrame:
    level, slope = expected.mean(axis=2), slopes.score_slopes(expected, np.unique(data.window_length))
    rows = []
    for at, (first, second) in enumerate(combinations(range(data.model.size), 2)):
        better, steeper = (draws[:, first] - draws[:, second] for draws in (level, slope))
        row = {"first": data.model[first], "second": data.model[second]}
        row |= {"p_first_better": float((better > 0).mean()), "p_first_steeper": float((steeper > 0).mean())}
        row |= {"difference_median": float(np.median(better)), "slope_difference_median": float(np.median(steeper))}
        for name, shares in power.items():
            enough = (n for n, share in zip(number, shares[at], strict=True) if share >= 0.8)
            row[f"windows_for_{name}"] = min(enough, default=np.nan)
        rows.append(row)
    return pd.DataFrame(rows)


def _dataset(
    settings: RanksSettings, data: RankData, *, expected: FloatArray, power: Mapping[str, FloatArray]
) -> xr.Dataset:
    quantile = [settings.tail, 0.5, 1 - settings.tail]
    curves = ("quantile", "model", "length"), np.quantile(expected, quantile, axis=0)
    coords: dict[str, Any] = {"model": data.model.astype(object), "length": np.unique(data.window_length)}
    if power:
        pairs = [" / ".join(pair) for pair in combinations(data.model, 2)]
        coords |= {"pair": np.array(pairs, object), "n_windows": list(settings.power_windows)}
    of_pairs = {f"power_{name}": (("pair", "n_windows"), values) for name, values in power.items()}
    return xr.Dataset({"expected_score": curves, **of_pairs}, coords={**coords, "quantile": quantile})
