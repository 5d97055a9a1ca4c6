"""What the posterior of ranks says: scores at a length, slopes on the score's scale, ranking, predictions, power."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.errors import InputError
from shannon_game.inference.posterior.item_draws import flat
from shannon_game.models.rankings.slopes import RankData, log_category_probability

# nodes of the Gauss-Hermite rule over a new window's effect; nine are exact to far more digits than draws have
_NODES = 9


@dataclass(frozen=True, eq=False)
class RankDraws:
    """Draws of a posterior, chains one after the other; ``model_window_spread`` is 0 for a single model."""

    # (draw, category)
    baseline: FloatArray
    # (draw, model)
    intercept: FloatArray
    slope: FloatArray
    # (draw,)
    window_spread: FloatArray
    model_window_spread: FloatArray
    # (draw, cell): of the windows of the study
    log_odds: FloatArray


def rank_draws(posterior: xr.Dataset, n_draws: int | None = None) -> RankDraws:
    """Take draws out of a posterior of :func:`shannon_game.models.rank_slope_model`, evenly thinned to `n_draws`."""
    total = posterior.sizes["chain"] * posterior.sizes["draw"]
    n = total if n_draws is None else min(n_draws, total)
    at = np.floor((np.arange(n) + 0.5) * total / n).astype(int)
    names = ("baseline", "intercept", "slope", "window_spread", "model_window_spread", "log_odds")
    found = {name: np.asarray(flat(posterior, name), dtype=float)[at] for name in names if name in posterior}
    return RankDraws(**{"model_window_spread": 0 * found["window_spread"]} | found)


def expected_scores(draws: RankDraws, data: RankData, score: ArrayLike, length: ArrayLike) -> FloatArray:
    """Expected score of a token in a new window, at the mean of the texts; shape (draw, model, length).

    `score` is of every category, `length` in tokens; windows' effects are integrated by Gauss-Hermite quadrature.
    """
    node, weight = np.polynomial.hermite_e.hermegauss(_NODES)
    spread = np.hypot(draws.window_spread, draws.model_window_spread)
    centre = _log_odds(draws, data, length)
    eta = centre[..., None] + spread[:, None, None, None] * node
    probability = np.exp(log_category_probability(eta, draws.baseline[:, None, None, None, :]))
    found: FloatArray = (probability @ np.asarray(score, dtype=float)) @ (weight / weight.sum())
    return found


def _log_odds(draws: RankDraws, data: RankData, length: ArrayLike) -> FloatArray:
    x = np.log2(np.asarray(length, dtype=float)) - data.centre
    found: FloatArray = draws.intercept[..., None] + draws.slope[..., None] * x
    return found


def score_slopes(scores: FloatArray, length: ArrayLike) -> FloatArray:
    """Score gained by a doubling of the context, (draw, model): least-squares slope of scores on log2 length."""
    x = np.log2(np.asarray(length, dtype=float))
    x = x - x.mean()
    slope: FloatArray = scores @ (x / (x @ x))
    return slope


def share_best(values: FloatArray) -> FloatArray:
    """Probability of every place of every model, best first: (model, place) from draws (draw, model)."""
    place = (-values).argsort(axis=1).argsort(axis=1)
    share: FloatArray = np.stack([(place == at).mean(axis=0) for at in range(values.shape[1])], axis=1)
    return share


def replicated_counts(draws: RankDraws, data: RankData, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw the counts of the same windows again, once for every draw: (draw, cell, category)."""
    probability = np.exp(log_category_probability(draws.log_odds, draws.baseline[:, None, :]))
    probability /= probability.sum(axis=-1, keepdims=True)
    drawn: NDArray[np.int64] = rng.multinomial(data.count.sum(axis=1), probability)
    return drawn


@dataclass(frozen=True)
class PredictiveCheck:
    """One statistic of the data beside its posterior predictive distribution."""

    statistic: str
    observed: float
    median: float
    lower: float
    upper: float
    p_value: float


def predictive_checks(
    replicated: NDArray[np.int64], data: RankData, score: ArrayLike, *, tail: float = 0.05
) -> list[PredictiveCheck]:
    """Compare what the model does not fit directly: shares of ranks by model, spreads of window means, agreement."""
    score = np.asarray(score, dtype=float)

    def means(count: NDArray[np.int64]) -> FloatArray:
        found: FloatArray = (count @ score) / count.sum(axis=-1)
        return found

    def share(category: int, model: int, count: NDArray[np.int64]) -> FloatArray:
        mine = count[..., data.cell_model == model, :].sum(axis=-2)
        found: FloatArray = mine[..., category] / mine.sum(axis=-1)
        return found

    observed = data.count[None]
    statistics = {}
    for at, name in enumerate(data.model):
        for category, what in ((data.k, "rank 1"), (data.k - 1, "rank 2"), (0, f"ranks over {data.k}")):
            statistics[f"{what}, {name}"] = tuple(share(category, at, count) for count in (observed, replicated))
        mine = data.cell_model == at
        statistics[f"sd of window means, {name}"] = tuple(
            means(count[:, mine]).std(axis=1, ddof=1) for count in (observed, replicated)
        )
    if data.model.size > 1:
        statistics["correlation between models"] = tuple(
            _agreement(means(count), data) for count in (observed, replicated)
        )
    found = []
    for name, (one, many) in statistics.items():
        value = float(one[0])
        lower, median, upper = np.quantile(many, [tail, 0.5, 1 - tail])
        above, below = float((many >= value).mean()), float((many <= value).mean())
        p_value = min(1.0, 2 * min(above, below))
        found.append(PredictiveCheck(name, value, float(median), float(lower), float(upper), p_value))
    return found


def _agreement(mean: FloatArray, data: RankData) -> FloatArray:
    """Mean correlation over pairs of models of their means in the windows that all have scored."""
    table = np.full((len(mean), data.model.size, data.window.size), np.nan)
    table[:, data.cell_model, data.cell_window] = mean
    table = table[:, :, ~np.isnan(table[0]).any(axis=0)]
    if table.shape[2] < 3:
        return np.full(len(mean), np.nan)
    centred = table - table.mean(axis=2, keepdims=True)
    centred /= np.linalg.norm(centred, axis=2, keepdims=True)
    correlation = np.einsum("dmw,dnw->dmn", centred, centred)
    upper = np.triu_indices(data.model.size, 1)
    found: FloatArray = correlation[:, upper[0], upper[1]].mean(axis=1)
    return found


def power_to_tell_apart(
    draws: RankDraws,
    data: RankData,
    score: ArrayLike,
    *,
    n_windows: ArrayLike,
    n_tokens: int,
    rng: np.random.Generator,
    level: float = 0.05,
) -> dict[str, FloatArray]:
    """Probability that a new study tells two models apart; (pair in the order of ``numpy.triu_indices``, `n_windows`).

    A study scores the same windows with both models, as many at every length of this study, fits a least-squares line
    on log2 length to the differences of window means, and tests its height at the mean log2 length, or its slope, by a
    two-sided t test. The power (noncentral t distribution) is averaged over draws of the models.
    """
    number = np.asarray(n_windows, dtype=float)
    if data.model.size < 2:
        raise InputError("are fewer than two, so that there is no pair to tell apart", field="models")
    if n_tokens < 1 or number.min() < 3:
        raise InputError("needs windows of at least 1 token and at least 3 of them", field="n_windows")
    mean, variance = _window_moments(draws, data, np.asarray(score, dtype=float), n_tokens, rng)
    x = np.log2(np.unique(data.window_length).astype(float))
    x = x - x.mean()
    first, second = np.triu_indices(data.model.size, 1)
    difference = mean[:, first] - mean[:, second]
    spread = np.sqrt(variance[:, first, second].mean(axis=-1))
    effects = {
        "mean": (difference.mean(axis=-1), spread[..., None] / np.sqrt(number), number - 2),
        "slope": (
            difference @ (x / (x @ x)),
            spread[..., None] / np.sqrt(number * (x @ x) / x.size),
            number - 2,
        ),
    }
    found: dict[str, FloatArray] = {}
    for name, (effect, error, freedom) in effects.items():
        noncentral = np.abs(effect)[..., None] / error
        critical = stats.t.ppf(1 - level / 2, freedom)
        # beyond 37 standard errors the power is 1 to every digit, and the distribution's series no longer converges
        power: FloatArray = np.asarray(stats.nct.sf(critical, freedom, np.minimum(noncentral, 37.0)), dtype=np.float64)
        found[name] = np.asarray(power.mean(axis=0), dtype=np.float64)
    return found


def _window_moments(
    draws: RankDraws, data: RankData, score: FloatArray, n_tokens: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Mean of window means (draw, model, length), variance of their differences (draw, model, model, length)."""
    length = np.unique(data.window_length)
    n_windows = 64
    n_draws, n_models = draws.slope.shape
    shape = (n_draws, n_models, length.size, n_windows)
    common = draws.window_spread[:, None, None, None] * rng.normal(size=(n_draws, 1, length.size, n_windows))
    own = draws.model_window_spread[:, None, None, None] * rng.normal(size=shape)
    eta = _log_odds(draws, data, length)[..., None] + common + own
    probability = np.exp(log_category_probability(eta, draws.baseline[:, None, None, None, :]))
    expected = probability @ score
    noise = (probability @ score**2 - expected**2) / n_tokens
    difference = expected[:, :, None] - expected[:, None]
    variance = difference.var(axis=-1, ddof=1) + noise.mean(axis=-1)[:, :, None] + noise.mean(axis=-1)[:, None]
    return expected.mean(axis=-1), variance
