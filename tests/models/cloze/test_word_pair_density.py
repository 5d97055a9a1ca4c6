"""The density of two samples of words as it is written out, against the PyMC model that states it."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from shannon_game.models.cloze.tvd import WordPairPriors, set_word_pairs, word_pair_data, word_pair_model
from shannon_game.models.cloze.word_pair_density import word_pair_density
from tests.models.cloze.test_tvd import OTHER, PLAIN, TWO, values_of

PRIORS = WordPairPriors(population_df=4.0, population_scale=0.7, equal_alpha=0.4, equal_beta=1.5, unseen=0.5)
NAMES = ("population_mean", "population_variance", "share_equal")


@cache
def compiled(pooled: bool) -> Any:
    """Model, its log-density and gradient, and its deterministic variables."""
    model = word_pair_model(word_pair_data(*TWO), pooled=pooled, priors=PRIORS)
    names = ("theta", "log_u", "log_u_equal", "log_odds_equal")
    return (model, model.compile_logp(mode=PLAIN), model.compile_dlogp(mode=PLAIN), values_of(model, *names))


def point_of(x: np.ndarray, pooled: bool) -> dict[str, np.ndarray]:
    """Where PyMC's parameters are for a vector of ours, in our order."""
    first = 13 if pooled else 0
    population = {
        "population_mean": x[:6],
        "population_variance_log__": x[6:12],
        "share_equal_logodds__": np.asarray(x[12]),
    }
    rest = x[first:-1].reshape(8, -1)
    return (population if pooled else {}) | {"unit": rest[:6], "scale": rest[6:], "unseen": np.asarray(x[-1])}


def vectors(size: int) -> np.ndarray:
    return np.random.default_rng(3).normal(size=(6, size)) * np.array([0.1, 0.3, 0.6, 1.0, 1.5, 2.0])[:, None]


@pytest.mark.parametrize("pooled", [True, False])
@pytest.mark.parametrize("counts", [TWO, OTHER], ids=["few answers", "many"])
def test_density_and_gradient_are_those_of_the_model(pooled: bool, counts: Any) -> None:
    model, log_density, gradient, deterministic = compiled(pooled)
    data = word_pair_data(*counts)
    set_word_pairs(model, data)
    density = word_pair_density(data, pooled=pooled, priors=PRIORS)
    given = {name: model[name].get_value() for name in density.data}
    # PyMC has some constants in single precision: differences between points are compared
    middle = density.evaluate(density.start, **given)[0] - log_density(point_of(density.start, pooled))
    assert abs(middle) < 1e-5
    for x in vectors(density.start.size):
        point = point_of(x, pooled)
        value, found = density.evaluate(x, **given)
        assert value - log_density(point) - middle == pytest.approx(0, abs=1e-10 * abs(value) + 1e-9)
        by_name, at = {}, 0
        for variable in model.continuous_value_vars:
            by_name[variable.name] = gradient(point)[at : at + point[variable.name].size]
            at += point[variable.name].size
        wanted = np.concatenate([by_name[name] for name in point])
        np.testing.assert_allclose(found, wanted, rtol=1e-7, atol=1e-7)
        expanded = density.expand(x, **given)
        for name, values in zip(("theta", "log_u", "log_u_equal", "log_odds_equal"), deterministic(point), strict=True):
            np.testing.assert_allclose(expanded[name], values, rtol=1e-8, atol=1e-8)
        assert set(NAMES) <= set(expanded) or not pooled


@pytest.mark.parametrize("log_sigma", [5.3, 5.9, 20.0])
def test_ratios_too_large_for_a_float_leave_the_equal_distributions(log_sigma: float) -> None:
    data = word_pair_data(*TWO)
    density = word_pair_density(data, pooled=False)
    model = word_pair_model(data, pooled=False)
    given = {name: model[name].get_value() for name in density.data}
    prior = WordPairPriors()
    x = density.start.copy()
    n = data.n_contexts
    # log sigma of the first context, in units of its prior
    x[5 * n] = (log_sigma - prior.mean["log_sigma"]) / prior.sd["log_sigma"]
    value, gradient = density.evaluate(x, **given)
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()
    # nothing but its prior pulls at what the counts cannot tell of any more
    assert gradient[5 * n] == pytest.approx(-x[5 * n])
