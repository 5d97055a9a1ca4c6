"""What a posterior of the relevance regression says: sizes on the scale of the distance, checks, prediction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike
from scipy.special import expit, gammaln, log_ndtr, logit

from shannon_game.estimators.arrays import FloatArray
from shannon_game.inference.posterior.arviz_adapter import from_groups
from shannon_game.inference.posterior.item_draws import flat, thinned
from shannon_game.inference.posterior.model_comparison import LooByGroup, loo_by
from shannon_game.models.cloze.ard_data import ArdData, check_likelihood, recording_limits
from shannon_game.models.cloze.ard_likelihood import censored_logit_normal_random, ordered_beta_random

_Property = Callable[[FloatArray], FloatArray]

_PER_ROW = ("eta", "latent_unit")
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(15)


def small_posterior(posterior: Any) -> xr.Dataset:
    """Leave out what has a value for every row or item at every draw."""
    # a group of a DataTree is a tree itself
    draws = posterior if isinstance(posterior, xr.Dataset) else posterior.to_dataset()
    small: xr.Dataset = draws.drop_vars([name for name in _PER_ROW if name in draws])
    return small


def expected_target(eta: ArrayLike, posterior: xr.Dataset, likelihood: str) -> FloatArray:
    """Mean of the target at linear predictors `eta`, shape (draw, ...), whose draws are those of `posterior`."""
    check_likelihood(likelihood)
    eta = np.asarray(eta, dtype=float)
    if likelihood == "gaussian":
        return eta

    def of_draw(name: str) -> FloatArray:
        return flat(posterior, name).reshape(-1, *[1] * (eta.ndim - 1))

    if likelihood == "beta":
        one = expit(eta - of_draw("edge_high"))
        between = 1 - one - expit(-eta - of_draw("edge_low"))
        mean: FloatArray = one + between * expit(eta)
        return mean
    noise = of_draw("noise")
    total = np.zeros_like(eta)
    for node, weight in zip(_NODES, _WEIGHTS / _WEIGHTS.sum(), strict=True):
        total += weight * expit(eta + noise * node)
    return total


def average_effects(posterior: xr.Dataset, likelihood: str, *, n_draws: int = 1000) -> FloatArray:
    """Change of the expected target by a step of one sd around each row's value, mean over rows; (draw, predictor)."""
    taken = thinned(posterior, n_draws)
    eta, coefficient = flat(taken, "eta"), flat(taken, "coefficient")
    changes = []
    for k in range(coefficient.shape[1]):
        step = coefficient[:, k, None] / 2
        up, down = (expected_target(eta + s, taken, likelihood) for s in (step, -step))
        changes.append((up - down).mean(axis=1))
    return np.stack(changes, axis=1)


def largest_probability(coefficient: ArrayLike) -> FloatArray:
    """Posterior probability of each coefficient to be the largest in size; (predictor,) from draws (..., predictor)."""
    draws = np.abs(np.asarray(coefficient, dtype=float))
    draws = draws.reshape(-1, draws.shape[-1])
    return np.bincount(draws.argmax(axis=1), minlength=draws.shape[1]) / len(draws)


def row_log_likelihood(posterior: xr.Dataset, data: ArdData, likelihood: str) -> FloatArray:
    """Log-likelihood of every row's target at every draw, nats, without a compiler; shape (chain, draw, row)."""
    check_likelihood(likelihood)
    eta: FloatArray = posterior["eta"].transpose("chain", "draw", "row").to_numpy()
    found: FloatArray
    y = data.target
    inside = np.clip(y, 1e-9, 1 - 1e-9)
    if likelihood == "beta":
        phi, low, high = (posterior[name].to_numpy()[..., None] for name in ("concentration", "edge_low", "edge_high"))
        mu = expit(eta)
        a, b = mu * phi, (1 - mu) * phi
        density = (a - 1) * np.log(inside) + (b - 1) * np.log1p(-inside) + gammaln(phi) - gammaln(a) - gammaln(b)
        zero, one = -np.logaddexp(0, eta + low), -np.logaddexp(0, high - eta)
        between = np.log1p(-np.minimum(np.exp(zero) + np.exp(one), 1 - 1e-16))
        found = np.where(y <= 0, zero, np.where(y >= 1, one, between + density))
        return found
    noise = posterior["noise"].to_numpy()[..., None]
    if likelihood == "gaussian":
        found = -0.5 * ((y - eta) / noise) ** 2 - np.log(noise) - 0.5 * np.log(2 * np.pi)
        return found
    normal = -0.5 * ((logit(inside) - eta) / noise) ** 2 - np.log(noise) - 0.5 * np.log(2 * np.pi)
    low, high = logit(recording_limits(y))
    zero, one = log_ndtr((low - eta) / noise), log_ndtr((eta - high) / noise)
    found = np.where(y <= 0, zero, np.where(y >= 1, one, normal - np.log(inside) - np.log1p(-inside)))
    return found


def loo_of_targets(posterior: xr.Dataset, data: ArdData, likelihood: str) -> LooByGroup:
    """Leave out one item's targets at a time, its predictors as measured."""
    rows = xr.Dataset(
        {"target": (("chain", "draw", "row"), row_log_likelihood(posterior, data, likelihood))},
        coords={"chain": posterior["chain"], "draw": posterior["draw"]},
    )
    idata = from_groups({"posterior": small_posterior(posterior), "log_likelihood": rows})
    return loo_by(idata, data.item[data.item_of_row])


def draw_targets(
    posterior: xr.Dataset, likelihood: str, *, target: FloatArray, n_draws: int, rng: np.random.Generator
) -> FloatArray:
    """Targets that the model would have given for the same rows; shape (draw, row)."""
    check_likelihood(likelihood)
    taken = thinned(posterior, n_draws)
    eta = flat(taken, "eta")
    if likelihood == "beta":
        phi, low, high = (flat(taken, name)[:, None] for name in ("concentration", "edge_low", "edge_high"))
        return ordered_beta_random(eta, phi, low, high, rng)
    noise = flat(taken, "noise")[:, None]
    if likelihood == "gaussian":
        return rng.normal(eta, noise)
    first, last = logit(recording_limits(target))
    return censored_logit_normal_random(eta, noise, first, last, rng)


def predictive_checks(drawn: FloatArray, data: ArdData, *, tail: float) -> pd.DataFrame:
    """Compare properties of the targets with those of targets drawn from the model."""
    n_text = np.bincount(data.text_of_row)

    def spread_of_texts(values: FloatArray) -> FloatArray:
        means = np.stack([np.bincount(data.text_of_row, weights=row) / n_text for row in np.atleast_2d(values)])
        spread: FloatArray = means.std(axis=1)
        return spread

    def correlation(column: FloatArray) -> _Property:
        def of(values: FloatArray) -> FloatArray:
            centred = values - values.mean(axis=1, keepdims=True)
            size = np.sqrt((centred**2).sum(axis=1) * ((column - column.mean()) ** 2).sum())
            found: FloatArray = centred @ (column - column.mean()) / np.maximum(size, 1e-300)
            return found

        return of

    properties: dict[str, _Property] = {
        "mean": lambda v: v.mean(axis=1),
        "standard deviation": lambda v: v.std(axis=1),
        "10% quantile": lambda v: np.quantile(v, 0.1, axis=1),
        "90% quantile": lambda v: np.quantile(v, 0.9, axis=1),
        "smallest": lambda v: v.min(axis=1),
        "largest": lambda v: v.max(axis=1),
        "share outside [0, 1]": lambda v: ((v < 0) | (v > 1)).mean(axis=1),
    }
    if data.text.size > 1:
        properties["standard deviation of the texts' means"] = spread_of_texts
    for name, column in zip(data.predictor, data.x.T, strict=True):
        properties[f"correlation with {name} as measured"] = correlation(column)
    rows = []
    for name, function in properties.items():
        observed, predicted = float(function(data.target[None, :])[0]), function(drawn)
        median, lower, upper = np.quantile(predicted, [0.5, tail, 1 - tail])
        above = float((predicted > observed).mean() + 0.5 * (predicted == observed).mean())
        rows.append(
            {
                "property": name,
                "observed": observed,
                "predicted_median": median,
                "predicted_lower": lower,
                "predicted_upper": upper,
                "p_value": 2 * min(above, 1 - above),
                "inside": bool(lower <= observed <= upper),
            }
        )
    return pd.DataFrame(rows)


def comparable(likelihoods: Mapping[str, str], target: FloatArray) -> list[str]:
    """Models whose predictive densities of the targets can be compared."""
    # a Gaussian gives no mass to the single values 0 and 1, the other likelihoods do
    at_ends = bool(((target <= 0) | (target >= 1)).any())
    return [name for name, likelihood in likelihoods.items() if not (at_ends and likelihood == "gaussian")]
