"""The density of the model of free answers as it is written out, against the PyMC model that states it."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pymc as pm
import pytest
from numpy.typing import NDArray

from estimators.comparison.examples import designed_study
from models.comparison.free_answer_data import FreeAnswerData, free_answer_data
from models.comparison.free_answer_density import free_answer_density, layout
from models.comparison.free_answers import FreeAnswerPriors, bent, free_answer_model, spread_of, two_slopes
from models.comparison.kernels import FREE_ANSWER_NUMBERS as NUMBERS
from models.comparison.participants import ParticipantPriors
from models.density import WrittenDensity

FloatArray = NDArray[np.float64]

PRIORS = FreeAnswerPriors(
    log_k0=0.8,
    tail=1.5,
    spread_slope=0.15,
    target_level=0.7,
    people=ParticipantPriors(half_alpha=3.0, slope_spread=0.5),
)
TYPICAL = {"narrow": 1.3, "upper": 0.5, "lower": 2.0, "spread_slope": 0.05, "target_upper": 1.0, "target_lower": 2.0}
LOGARITHMS = NUMBERS[NUMBERS.index("narrow") : NUMBERS.index("half")]


@cache
def data_of() -> FreeAnswerData:
    return free_answer_data(designed_study())


@cache
def model_of(equation_6: bool) -> pm.Model:
    return free_answer_model(data_of(), PRIORS, equation_6=equation_6)


@cache
def log_p_of(equation_6: bool) -> Any:
    # PyTensor's Python mode compiles nothing, and cannot add up more than 32 terms
    return model_of(equation_6).compile_logp(sum=False, mode="FAST_COMPILE")


@cache
def density_of(equation_6: bool) -> WrittenDensity:
    data = data_of()
    n = data.participant.size
    about = TYPICAL | {
        "slope": np.geomspace(0.3, 2, n),
        "noise": np.full(n, 0.8),
        "divergence": np.ones(data.item.size),
    }
    return free_answer_density(data, PRIORS, equation_6=equation_6, typical=about if equation_6 else None)


def given(equation_6: bool) -> dict[str, NDArray[Any]]:
    model, density = model_of(equation_6), density_of(equation_6)
    return {name: model[name].get_value() for name in density.data}


def written(equation_6: bool, x: FloatArray) -> tuple[float, FloatArray, dict[str, Any]]:
    density, answers = density_of(equation_6), given(equation_6)
    return *density.evaluate(x, **answers), dict(density.expand(x, **answers))


def where(equation_6: bool) -> dict[str, slice]:
    data = data_of()
    return layout(data.item.size, data.token_item.size, data.participant.size, equation_6=equation_6)


def point(equation_6: bool, x: FloatArray) -> dict[str, Any]:
    """Where PyMC's parameters are for a vector of ours."""
    expanded = written(equation_6, x)[2]
    found = {variable.name: expanded[variable.name] for variable in model_of(equation_6).free_RVs}
    found |= {name: np.log(found[name]) for name in LOGARITHMS} | {"half": x[where(equation_6)["half"]][0]}
    renamed = {name: f"{name}_log__" for name in LOGARITHMS} | {"half": "half_logodds__"}
    return {renamed.get(name, name): np.asarray(value) for name, value in found.items()}


def log_step(equation_6: bool, x: FloatArray) -> float:
    """How far a step in our coordinates moves PyMC's, as a logarithm; every factor by differences."""
    data, found, small = data_of(), written(equation_6, x)[2], 1e-6
    pools = density_of(equation_6).arguments(**given(equation_6))[0]
    c_target, c_token = np.split(pools.centring, [data.item.size])

    def steep(law: Any, unit: FloatArray, *shape: Any) -> FloatArray:
        slope: FloatArray = (law(unit + small, *shape) - law(unit - small, *shape)) / (2 * small)
        return slope

    sides = found["target_upper"], found["target_lower"]
    of_target = found["divergence"] * steep(two_slopes, found["target_unit"], *sides)
    own = found["divergence"][data.token_item] * spread_of(data.token_log_g, found["spread_slope"])
    of_token = own * steep(bent, found["residual_unit"], found["narrow"], found["upper"], found["lower"])
    total = -np.log(1 - c_target + c_target * of_target).sum() - np.log(1 - c_token + c_token * of_token).sum()
    total -= pools.noise_centring.sum() * np.log(found["noise_spread"])
    total -= data.participant.size * np.log(found["slope_spread"])
    return float(total + np.log(np.abs(found["bias_unit"] / np.tanh(x[where(equation_6)["bias_turned"]]))).sum())


def vectors(equation_6: bool, n: int = 12) -> FloatArray:
    """From the middle of the priors outwards, until tokens are far off and log-odds leave the scale."""
    rng = np.random.default_rng(7)
    scale = np.geomspace(0.1, 1.5, n)[:, None]
    start = density_of(equation_6).start
    found: FloatArray = start + rng.normal(0, 1, (n, start.size)) * scale
    # where tokens differ by a thousand nats, PyTensor's Python mode adds up to infinity
    found[:, where(equation_6)["divergence_spread"]] = -1.0 + 0.3 * scale
    found[:, where(equation_6)["spread_slope"]] *= 0.15
    return found


@pytest.mark.parametrize("equation_6", [True, False])
def test_the_density_is_that_of_the_model(equation_6: bool) -> None:
    ours, theirs = [], []
    for x in vectors(equation_6):
        terms = log_p_of(equation_6)(point(equation_6, x))
        ours.append(written(equation_6, x)[0] - log_step(equation_6, x))
        theirs.append(sum(term.sum() for term in terms))
    # constants of PyTensor's log-gamma are good to seven digits only: what remains is the same everywhere
    constant = ours[0] - theirs[0]
    assert abs(constant) < 1e-6
    np.testing.assert_allclose(ours, np.array(theirs) + constant, rtol=1e-9)


@pytest.mark.parametrize("equation_6", [True, False])
def test_the_gradient_is_the_slope_of_the_density(equation_6: bool) -> None:
    rng = np.random.default_rng(3)
    for x in vectors(equation_6)[:8]:
        gradient = written(equation_6, x)[1]
        for direction in rng.normal(0, 1, (8, x.size)):
            step = 1e-5 * direction / np.linalg.norm(direction)
            rise = written(equation_6, x + step)[0] - written(equation_6, x - step)[0]
            expected = gradient @ direction / np.linalg.norm(direction)
            assert rise / 2e-5 == pytest.approx(expected, rel=1e-5, abs=1e-4)


def test_the_two_ways_to_turn_parameters_differ() -> None:
    """Or the tests above would see one of them only."""
    ways = [density_of(each).arguments(**given(each))[0].centring for each in (True, False)]
    assert np.ptp(ways[0]) > 0.1
    assert abs(ways[0] - ways[1]).max() > 0.05


def test_every_number_has_its_own_slope() -> None:
    """One parameter of each kind at a time: a direction through all could hide a small one."""
    x = vectors(True)[3]
    gradient = written(True, x)[1]
    for name, part in where(True).items():
        for at in range(part.start, min(part.stop, part.start + 3)):
            step = np.zeros_like(x)
            step[at] = 1e-5
            rise = written(True, x + step)[0] - written(True, x - step)[0]
            assert rise / 2e-5 == pytest.approx(gradient[at], rel=1e-6, abs=1e-5), name


@pytest.mark.parametrize("equation_6", [True, False])
def test_the_variables_are_those_of_the_model(equation_6: bool) -> None:
    x, model = vectors(equation_6)[5], model_of(equation_6)
    there, found = point(equation_6, x), written(equation_6, x)[2]
    names = [variable.name for variable in model.deterministics]
    inner = model.replace_rvs_by_values([model[name] for name in names])
    values = model.compile_fn(inner, inputs=model.value_vars, mode="FAST_COMPILE", on_unused_input="ignore")(there)
    for name, value in zip(names, values, strict=True):
        np.testing.assert_allclose(found[name], value, rtol=1e-9, atol=1e-12, err_msg=name)
    assert set(found) == {variable.name for variable in (*model.free_RVs, *model.deterministics)}


@pytest.mark.mcmc
def test_the_gradient_is_that_of_pytensor() -> None:
    """By the chain rule, whose Jacobian is made by differences: along directions of ours."""
    model, equation_6 = model_of(True), True
    log_p = model.compile_logp()
    rng = np.random.default_rng(5)
    for x in vectors(equation_6, 4):
        gradient = written(equation_6, x)[1]
        for direction in rng.normal(0, 1, (5, x.size)):
            step = 1e-5 * direction / np.linalg.norm(direction)
            ends = [
                float(log_p(point(equation_6, x + sign * step))) + log_step(equation_6, x + sign * step)
                for sign in (1, -1)
            ]
            expected = gradient @ direction / np.linalg.norm(direction)
            assert (ends[0] - ends[1]) / 2e-5 == pytest.approx(expected, rel=1e-4, abs=1e-3)
