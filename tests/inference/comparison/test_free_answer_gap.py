"""The gap at another temperature, and the temperature that outcomes want, against loops over tokens."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from estimators.comparison.examples import designed_study
from estimators.errors import InputError
from inference.comparison.free_answer_gap import answered_temperature, tempered_gap
from inference.examples import stand_in_posterior
from models.comparison.free_answer_data import FreeAnswerData, free_answer_data
from models.comparison.free_answers import NODE, WEIGHT, free_answer_model


@pytest.fixture(scope="module")
def fitted() -> tuple[Any, FreeAnswerData]:
    data = free_answer_data(designed_study())
    return stand_in_posterior(free_answer_model(data), n_draws=3).posterior, data


def one_draw(posterior: Any, name: str, chain: int = 1, draw: int = 2) -> NDArray[np.float64]:
    values: NDArray[np.float64] = posterior[name].to_numpy()[chain, draw]
    return values


def log_total(posterior: Any, data: FreeAnswerData, item: int, power: float) -> float:
    """S(c) of an item at one draw, token by token and bin by bin."""
    scalar = {name: float(one_draw(posterior, name)) for name in posterior if posterior[name].ndim == 2}
    level, divergence = one_draw(posterior, "item_level")[item], one_draw(posterior, "divergence")[item]
    total = math.exp(power * (data.target_log_g[item] - one_draw(posterior, "item_gap_nats")[item]))
    for x in np.flatnonzero(data.token_item == item):
        total += math.exp(power * (data.token_log_g[x] + one_draw(posterior, "token_log_ratio")[x]))
    for log_g, log_mass in zip(data.bin_log_g[item], data.bin_log_mass[item], strict=True):
        middle = level + scalar["g_slope"] * (log_g + 4) + scalar["rare_g_slope"] * max(-log_g - 7, 0)
        scale = divergence * math.exp(-scalar["spread_slope"] * (min(max(log_g, -12), 0) + 4))
        for node, weight in zip(NODE, WEIGHT, strict=True):
            rise, fall = (side * node - 1 + math.sqrt((side * node - 1) ** 2 + 0.25) for side in (1, -1))
            r = scale * (scalar["narrow"] * node + scalar["upper"] * rise / 2 - scalar["lower"] * fall / 2)
            total += weight * math.exp(power * (middle + r) + log_mass + (power - 1) * log_g)
    return math.log(total)


@pytest.mark.parametrize("power", [0.5, 1.0, 1.7])
def test_the_gap_is_the_sum_over_tokens_and_bins(fitted: tuple[Any, FreeAnswerData], power: float) -> None:
    posterior, data = fitted
    found = tempered_gap(posterior, data, power).reshape(2, 3, -1)[1, 2]
    for item in range(data.item.size):
        log_f = data.target_log_g[item] - one_draw(posterior, "item_gap_nats")[item]
        wanted = data.target_log_g[item] - power * log_f
        wanted += log_total(posterior, data, item, power) - log_total(posterior, data, item, 1.0)
        assert found[item] == pytest.approx(wanted, abs=1e-4)


def test_at_one_the_gap_is_the_model_s(fitted: tuple[Any, FreeAnswerData]) -> None:
    posterior, data = fitted
    gap = posterior["item_gap_nats"].to_numpy().reshape(6, -1)
    np.testing.assert_allclose(tempered_gap(posterior, data, 1), gap, atol=1e-12)
    # every draw has a temperature of its own
    mixed = tempered_gap(posterior, data, [1, 0.7, 1, 1, 1, 1])
    np.testing.assert_allclose(mixed[2:], gap[2:], atol=1e-12)
    np.testing.assert_allclose(mixed[1], tempered_gap(posterior, data, 0.7)[1], atol=1e-12)
    assert abs(mixed[1] - gap[1]).max() > 0.01


def test_outcomes_are_fitted_best(fitted: tuple[Any, FreeAnswerData]) -> None:
    posterior, data = fitted
    weight = np.random.default_rng(0).exponential(size=data.item.size)
    found = answered_temperature(posterior, data, weight).reshape(2, 3)[1, 2]

    def loss(log_c: float) -> float:
        total = 0.0
        for item in range(data.item.size):
            mine = np.flatnonzero((data.token_item == item) & (data.token_drawn > 0))
            terms = [1.0 + data.target_drawn[item]]
            for x in mine:
                log_g_ratio = data.token_log_g[x] - data.target_log_g[item]
                d = one_draw(posterior, "token_log_ratio")[x] + one_draw(posterior, "item_gap_nats")[item] + log_g_ratio
                terms.append(data.token_drawn[x] * math.exp(math.exp(log_c) * d - log_g_ratio))
            total += weight[item] * math.log(sum(terms))
        return total

    best = minimize_scalar(loss, bounds=(math.log(1e-3), math.log(30)), method="bounded", options={"xatol": 1e-9})
    assert loss(math.log(found)) <= best.fun + 1e-9


def test_the_draws_of_the_generator_are_counted() -> None:
    data = free_answer_data(designed_study())
    for at in range(data.item.size):
        drawn = data.token_drawn[data.token_item == at].sum() + data.target_drawn[at]
        assert drawn == data.n_drawn[at]
    assert data.token_drawn[data.token_answers > 0].min() == 0  # an answer that nobody drew


def test_mistakes_are_named(fitted: tuple[Any, FreeAnswerData]) -> None:
    posterior, data = fitted
    with pytest.raises(InputError, match="temperature: should be positive"):
        tempered_gap(posterior, data, 0.0)
    with pytest.raises(InputError, match="item: are not those"):
        tempered_gap(posterior, replace(data, item=data.item[::-1]), 1.0)
    with pytest.raises(InputError, match="no draws of the generator"):
        answered_temperature(posterior, replace(data, token_drawn=np.zeros_like(data.token_drawn)), [1.0])
