"""The belief model's density as it is written out, against the PyMC model that states it."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pymc as pm
import pytest
from numpy.typing import NDArray

from models.comparison.belief import BeliefData, BeliefPriors, belief_data, belief_model, set_answers
from models.comparison.belief_density import belief_density, layout
from models.comparison.kernels import BELIEF_NUMBERS, TURN
from tests.estimators.comparison.comparison_studies import small_study

FloatArray = NDArray[np.float64]

PRIORS = BeliefPriors(mu=0.8, kap_mean=0.4, sigma=0.9, nu=7.0, t_b=0.3, t_d=0.1)
ROUNDINGS = ("none", "interface")


def player_data(rounding: str, seed: int = 0) -> BeliefData:
    return belief_data(small_study(seed=seed), "weak", rounding)


@cache
def model_of(rounding: str) -> pm.Model:
    """Built for one study, with the answers of another."""
    model = belief_model(player_data(rounding), PRIORS)
    set_answers(model, player_data(rounding, seed=5))
    return model


def written(rounding: str, x: FloatArray) -> tuple[float, FloatArray, dict[str, FloatArray]]:
    model, density = model_of(rounding), belief_density(player_data(rounding), PRIORS)
    values = {name: model[name].get_value() for name in density.data}
    return *density.evaluate(x, **values), dict(density.expand(x, **values))


def where(rounding: str) -> dict[str, slice]:
    return layout(player_data(rounding).item.size, rounding == "none")


def point(rounding: str, x: FloatArray) -> dict[str, Any]:
    """Where PyMC's parameters are for a vector of ours."""
    found = {name: x[part][0] if name in BELIEF_NUMBERS else x[part] for name, part in where(rounding).items()}
    if "A_turned" in found:
        found["A_unit"] = TURN * np.sinh(found.pop("A_turned") / TURN)
    logarithms = ("rho", "sigma", "omega", "t_b", "t_d")
    return {f"{name}_log__" if name in logarithms else name: np.asarray(value) for name, value in found.items()}


def vectors(rounding: str, n: int = 12) -> FloatArray:
    """Some near the middle of the priors, some where boxes have no probability."""
    rng = np.random.default_rng(7)
    length = next(reversed(where(rounding).values())).stop
    return rng.normal(0, 1, (n, length)) * np.geomspace(0.1, 2, n)[:, None]


def turn(rounding: str, x: FloatArray) -> FloatArray:
    """Derivative of A_unit by A_turned; none where A is sampled."""
    return np.cosh(x[where(rounding).get("A_turned", slice(0, 0))] / TURN)


@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_the_density_is_that_of_the_model(rounding: str) -> None:
    # PyTensor's Python mode compiles nothing, and cannot add up more than 32 terms
    log_p = model_of(rounding).compile_logp(sum=False, mode="FAST_COMPILE")
    ours = [written(rounding, x)[0] - np.log(turn(rounding, x)).sum() for x in vectors(rounding)]
    theirs = [sum(term.sum() for term in log_p(point(rounding, x))) for x in vectors(rounding)]
    # constants of PyTensor's log-gamma are good to seven digits only: what remains is the same everywhere
    constant = ours[0] - theirs[0]
    assert abs(constant) < 1e-6
    np.testing.assert_allclose(ours, np.array(theirs) + constant, rtol=1e-10)


@pytest.mark.mcmc
@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_the_gradient_is_that_of_the_model(rounding: str) -> None:
    model = model_of(rounding)
    gradient = model.compile_dlogp(vars=model.free_RVs)
    for x in vectors(rounding):
        there = point(rounding, x)
        sizes = [there[model.rvs_to_values[rv].name].size for rv in model.free_RVs]
        parts = np.split(gradient(there), np.cumsum(sizes))
        theirs = {rv.name: part for rv, part in zip(model.free_RVs, parts[:-1], strict=True)}
        ours = written(rounding, x)[1]
        if "A_unit" in theirs:
            turned = x[where(rounding)["A_turned"]]
            theirs["A_turned"] = theirs["A_unit"] * np.cosh(turned / TURN) + np.tanh(turned / TURN) / TURN
        for name, part in where(rounding).items():
            np.testing.assert_allclose(ours[part], theirs[name], rtol=1e-7, atol=1e-7, err_msg=name)


@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_the_variables_are_those_of_the_model(rounding: str) -> None:
    x, model = vectors(rounding)[5], model_of(rounding)
    there, found = point(rounding, x), written(rounding, x)[2]
    deterministic = [variable.name for variable in model.deterministics]
    inner = model.replace_rvs_by_values([model[name] for name in deterministic])
    values = model.compile_fn(inner, inputs=model.value_vars, mode="FAST_COMPILE", on_unused_input="ignore")(there)
    for name, value in zip(deterministic, values, strict=True):
        np.testing.assert_allclose(found[name], value, rtol=1e-12, err_msg=name)
    np.testing.assert_allclose(found["t_b"], np.exp(there["t_b_log__"]))
    assert set(found) == {variable.name for variable in (*model.free_RVs, *model.deterministics)}


@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_the_gradient_is_the_slope_of_the_density(rounding: str) -> None:
    rng = np.random.default_rng(3)
    x = vectors(rounding)[6]
    gradient = written(rounding, x)[1]
    for direction in rng.normal(0, 1, (20, x.size)):
        step = 1e-6 * direction / np.linalg.norm(direction)
        rise = written(rounding, x + step)[0] - written(rounding, x - step)[0]
        assert rise / 2e-6 == pytest.approx(gradient @ direction / np.linalg.norm(direction), rel=1e-5, abs=1e-4)
