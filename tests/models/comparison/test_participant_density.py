"""The participant model's density as it is written out, against the PyMC model that states it."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pymc as pm
import pytest
from numpy.typing import NDArray

from models.comparison.kernels import PARTICIPANT_NUMBERS as NUMBERS
from models.comparison.kernels import TURN, answers_log_density
from models.comparison.participant_data import ParticipantData, participant_data, without_participants
from models.comparison.participant_density import layout, participant_density
from models.comparison.participants import (
    ITEM_SCALE_BOUND,
    SCALE_FLOOR,
    SLOPE_BOUND,
    ParticipantPriors,
    added_noise,
    participant_model,
    set_participant_data,
)
from models.comparison.two_piece import probability_inside
from tests.estimators.comparison.comparison_studies import small_study

FloatArray = NDArray[np.float64]

PRIORS = ParticipantPriors(mu=0.8, kap_mean=0.4, ga_mean=-0.1, half_alpha=3.0, sigma=0.9, nu=7.0)
K0 = 0.7
LOGARITHMS = NUMBERS[10:18]
SIGNED = dict(zip(NUMBERS[12:18], ("z", "zeta", "slope_unit", "bias_unit", "noise_unit", "lapse_unit"), strict=True))


@cache
def study_data(shared: bool) -> ParticipantData:
    """Answers on pairs of which some, or none, have several."""
    data = participant_data(small_study(n_items=6))
    if shared:
        return data
    alone = np.isin(data.row_pair, np.flatnonzero(np.bincount(data.row_pair) == 1))
    kept = np.unique(data.row_pair[alone])
    pairs = {name: getattr(data, name)[kept] for name in ("pair_item", "pair_log_g", "pair_column", "pair_n_shown")}
    rows = {name: getattr(data, name)[alone] for name in ("row_participant", "row_box", "row_response")}
    return replace(data, **pairs, **rows, row_pair=np.searchsorted(kept, data.row_pair[alone]), n_shared=0)


@cache
def model_of(shared: bool) -> pm.Model:
    """The PyMC model, without one of its participants."""
    data = study_data(shared)
    model = participant_model(data, PRIORS, scale=K0)
    set_participant_data(model, without_participants(data, [data.participant[1]]), scale=K0)
    return model


@cache
def log_p_of(shared: bool) -> Any:
    # PyTensor's Python mode compiles nothing, and cannot add up more than 32 terms
    return model_of(shared).compile_logp(sum=False, mode="FAST_COMPILE")


def written(shared: bool, x: FloatArray) -> tuple[float, FloatArray, dict[str, FloatArray]]:
    model, density = model_of(shared), participant_density(study_data(shared), PRIORS)
    answers = {name: model[name].get_value() for name in density.data}
    return *density.evaluate(x, **answers), dict(density.expand(x, **answers))


def where(shared: bool) -> dict[str, slice]:
    data = study_data(shared)
    return layout(data.item.size, data.n_shared, data.participant.size)


def spread_of(shared: bool, found: dict[str, Any]) -> FloatArray:
    """Squared spread of every item, with its floor and without."""
    own = ITEM_SCALE_BOUND * np.tanh(PRIORS.omega * found["omega"] * found["z"] / ITEM_SCALE_BOUND)
    free = np.exp(2 * (found["sigma"] + own + found["c"] * (study_data(shared).surprisal - 4)))
    return np.stack([free + SCALE_FLOOR**2, free])


def point(shared: bool, x: FloatArray) -> dict[str, Any]:
    """Where PyMC's parameters are for a vector of ours."""
    found = {name: x[part][0] if name in NUMBERS else x[part] for name, part in where(shared).items()}
    slope_spread = PRIORS.slope_spread * found["slope_spread"]
    deviation = SLOPE_BOUND * np.tanh(slope_spread * found["slope_unit"] / SLOPE_BOUND)
    found["bias_unit"] = np.sinh(found.pop("bias_turned")) / np.exp(deviation)
    present = model_of(shared)["present"].get_value()
    mean_bias = PRIORS.bias_spread * found["bias_spread"] * (present * found["bias_unit"]).sum() / present.sum()
    found["mu"] = found.pop("mu_turned") - mean_bias + found["kap"] * spread_of(shared, found)[0].mean() / 2
    found["A_unit"] = TURN * np.sinh(found.pop("A_turned") / TURN)
    for name, unit in SIGNED.items():
        found[unit] = np.sign(found[name]) * found[unit]
        found[name] = np.log(getattr(PRIORS, name) * abs(found[name]))
    renamed = {name: f"{name}_log__" for name in LOGARITHMS} | {"half": "half_logodds__"}
    return {renamed.get(name, name): np.asarray(value) for name, value in found.items()}


def vectors(shared: bool, n: int = 12) -> FloatArray:
    """Some near the middle of the priors, some where log-odds leave the scale and boxes have no probability."""
    rng = np.random.default_rng(7)
    scale = np.geomspace(0.1, 2.5, n)[:, None]
    return rng.normal(0, 1, (n, where(shared)["lapse_unit"].stop)) * scale


@pytest.mark.parametrize("shared", [True, False])
def test_the_density_is_that_of_the_model(shared: bool) -> None:
    ours, theirs = [], []
    for x in vectors(shared):
        ours.append(written(shared, x)[0])
        there = point(shared, x)
        turned = x[where(shared)["bias_turned"]]
        # how far a step in our coordinate moves the bias
        jacobian = np.log(np.abs(there["bias_unit"] / np.tanh(turned))).sum()
        jacobian += np.log(np.cosh(x[where(shared)["A_turned"]] / TURN)).sum()
        # PyMC has the logarithm of a scale; of ours the half with this sign
        jacobian -= sum(np.log(2 * abs(x[where(shared)[name]][0])) for name in SIGNED)
        theirs.append(sum(term.sum() for term in log_p_of(shared)(there)) + jacobian)
    # constants of PyTensor's log-gamma are good to seven digits only: what remains is the same everywhere
    constant = ours[0] - theirs[0]
    assert abs(constant) < 1e-6
    np.testing.assert_allclose(ours, np.array(theirs) + constant, rtol=1e-10)


@pytest.mark.mcmc
def test_the_gradient_is_that_of_the_model() -> None:
    shared, model = True, model_of(True)
    gradient = model.compile_dlogp(vars=model.free_RVs)
    for x in vectors(shared):
        there, at = point(shared, x), where(shared)
        sizes = [there[model.rvs_to_values[rv].name].size for rv in model.free_RVs]
        parts = np.split(gradient(there), np.cumsum(sizes))
        theirs = {rv.name: part for rv, part in zip(model.free_RVs, parts[:-1], strict=True)}
        found = {name: x[part][0] if name in NUMBERS else x[part] for name, part in at.items()}
        sign = {name: np.sign(found[name]) for name in SIGNED}
        scale = {name: getattr(PRIORS, name) * abs(found[name]) for name in SIGNED}
        # mu has kap times half the mean of s^2 in it
        square, free = spread_of(shared, found)
        of_mu = theirs["mu"] * found["kap"] * free / free.size
        bent_item = 1 - np.tanh(scale["omega"] * there["z"] / ITEM_SCALE_BOUND) ** 2
        theirs["kap"] += theirs["mu"] * square.mean() / 2
        theirs["sigma"] += of_mu.sum()
        theirs["c"] += (of_mu * (study_data(shared).surprisal - 4)).sum()
        theirs["omega"] += (of_mu * bent_item * scale["omega"] * there["z"]).sum()
        theirs["z"] += of_mu * bent_item * scale["omega"]
        # the mean of the biases is taken from mu
        present, by_mu = model["present"].get_value(), theirs.pop("mu")
        theirs["bias_spread"] -= by_mu * scale["bias_spread"] * (present * there["bias_unit"]).sum() / present.sum()
        theirs["bias_unit"] -= by_mu * scale["bias_spread"] * present / present.sum()
        theirs["mu_turned"] = by_mu
        intercept = x[at["A_turned"]] / TURN
        theirs["A_turned"] = theirs.pop("A_unit") * np.cosh(intercept) + np.tanh(intercept) / TURN
        # chain rule of bias_unit = sinh(turned) / e^deviation, and of the log of that step
        by_deviation = -theirs["bias_unit"] * there["bias_unit"] - 1
        turned, by_bias = x[at["bias_turned"]], theirs.pop("bias_unit") * sign["bias_spread"]
        unit, spread = there["slope_unit"], scale["slope_spread"]
        bent = 1 - np.tanh(spread * unit / SLOPE_BOUND) ** 2
        theirs["slope_unit"] += by_deviation * bent * spread
        theirs["slope_spread"] += (by_deviation * bent * spread * unit).sum()
        theirs["bias_turned"] = by_bias * np.cosh(turned) / np.exp(SLOPE_BOUND * np.tanh(spread * unit / SLOPE_BOUND))
        theirs["bias_turned"] += np.tanh(turned)
        for name, unit_name in SIGNED.items():
            theirs[name] = (theirs[name] - 1) / found[name]
            if unit_name in theirs:
                theirs[unit_name] = theirs[unit_name] * sign[name]
        ours = written(shared, x)[1]
        for name, part in at.items():
            np.testing.assert_allclose(ours[part], theirs[name], rtol=1e-7, atol=1e-7, err_msg=name)


@pytest.mark.parametrize("shared", [True, False])
def test_the_variables_are_those_of_the_model(shared: bool) -> None:
    x, model = vectors(shared)[5], model_of(shared)
    there, found = point(shared, x), written(shared, x)[2]
    names = ("s", "A", "slope", "bias", "noise", "lapse")
    inner = model.replace_rvs_by_values([model[name] for name in names])
    values = model.compile_fn(inner, inputs=model.value_vars, mode="FAST_COMPILE", on_unused_input="ignore")(there)
    for name, value in zip(names, values, strict=True):
        np.testing.assert_allclose(found[name], value, rtol=1e-12, err_msg=name)
    for name in ("bias_unit", "A_unit"):
        np.testing.assert_allclose(found[name], there[name], rtol=1e-12, err_msg=name)
    np.testing.assert_allclose(found["sigma"], np.exp(there["sigma_log__"]))
    np.testing.assert_allclose(found["half"], 1 / (1 + np.exp(-there["half_logodds__"])))
    assert set(found) == {variable.name for variable in (*model.free_RVs, *model.deterministics)}


@pytest.mark.parametrize("shared", [True, False])
def test_the_gradient_is_the_slope_of_the_density(shared: bool) -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(0, 0.7, where(shared)["lapse_unit"].stop)
    gradient = written(shared, x)[1]
    for direction in rng.normal(0, 1, (20, x.size)):
        step = 1e-6 * direction / np.linalg.norm(direction)
        rise = written(shared, x + step)[0] - written(shared, x - step)[0]
        assert rise / 2e-6 == pytest.approx(gradient @ direction / np.linalg.norm(direction), rel=1e-5, abs=1e-5)


def test_answers_of_possible_people_equal_the_plain_sum() -> None:
    """The kernel of leave-one-out against box probabilities by numpy, answer by answer."""
    rng = np.random.default_rng(8)
    n_draws, n_points, n_rows, n_boxes = 3, 4, 47, 11
    people = np.stack([np.exp(rng.normal(0, 0.5, (n_draws, n_points))) for _ in range(4)])
    people[1], people[3] = rng.normal(0, 2, (n_draws, n_points)), rng.random((n_draws, n_points))
    shared = np.stack([rng.random(n_draws), rng.normal(0, 0.2, n_draws)])
    log_odds = rng.normal(0, 4, (n_draws, n_rows))
    spread = np.where(np.arange(n_rows) % 3 == 0, 0.0, np.exp(rng.normal(0, 0.5, (n_draws, n_rows))))
    edge = np.concatenate([[-1e4], np.linspace(-4.6, 4.6, n_boxes - 1), [1e4]])
    box = rng.integers(n_boxes, size=n_rows)
    edges = np.stack([edge[box], edge[box + 1]], axis=1)
    found = answers_log_density(people, shared, log_odds, spread, edges, box == 5, n_boxes)
    expected = np.zeros((n_draws, n_points))
    for row in range(n_rows):
        slope, bias, noise, lapse = people
        half, ga = shared[0][:, None], shared[1][:, None]
        wide = slope * spread[:, [row]]
        left, right = added_noise(wide * np.exp(-ga), wide * np.exp(ga), noise)
        centre = slope * (bias - log_odds[:, [row]])
        inside = probability_inside(left, right, edges[row, 0] - centre, edges[row, 1] - centre)
        slip = half * (box[row] == 5) + (1 - half) / n_boxes
        expected += np.log((1 - lapse) * inside + lapse * slip + 1e-12)
    np.testing.assert_allclose(found, expected, rtol=1e-10)
