"""What is said against what is believed: closed forms, a slow least squares, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shannon_game.estimators.comparison.stated import both_orders, stated_belief


def logistic(x):
    return 1 / (1 + np.exp(-np.asarray(x)))


@given(st.lists(st.tuples(st.floats(-8, 8), st.floats(-3, 3)), min_size=1, max_size=20))
def test_the_order_comes_out_of_what_is_said(pairs) -> None:
    said, lean = map(np.array, zip(*pairs, strict=True))
    found_said, found_lean = both_orders(logistic(lean + said), logistic(lean - said))
    np.testing.assert_allclose(found_said, said, atol=1e-9)
    np.testing.assert_allclose(found_lean, lean, atol=1e-9)


def slow_slope(said, believed, item):
    """Least squares by the normal equations, and a sandwich by loops over items."""
    x = np.column_stack([np.ones_like(believed), believed])
    inverse = np.linalg.inv(x.T @ x)
    coefficient = inverse @ x.T @ said
    meat = np.zeros((2, 2))
    groups = sorted(set(item))
    for group in groups:
        score = np.zeros(2)
        for row, (y, its) in enumerate(zip(said, item, strict=True)):
            if its == group:
                score += x[row] * (y - x[row] @ coefficient)
        meat += np.outer(score, score)
    variance = inverse @ meat @ inverse * len(groups) / (len(groups) - 1)
    return coefficient[1], coefficient[0], np.sqrt(variance[1, 1])


@pytest.mark.parametrize("seed", range(5))
def test_slope_and_standard_error_are_those_of_the_normal_equations(seed: int) -> None:
    rng = np.random.default_rng(seed)
    item = rng.integers(0, 8, 60)
    believed = rng.normal(0, 3, 60)
    said = 0.3 + 0.4 * believed + rng.normal(0, 0.5, 8)[item] + rng.normal(0, 1, 60)
    found = stated_belief(said, believed, item)
    np.testing.assert_allclose((found.slope, found.intercept_nats, found.slope_se), slow_slope(said, believed, item))
    assert found.correlation == pytest.approx(np.corrcoef(said, believed)[0, 1])
    assert found.agreement == pytest.approx(np.mean(np.sign(said) == np.sign(believed)))
    assert found.distance_nats == pytest.approx(np.abs(said - believed).mean())
    # pairs without an answer change nothing
    more = stated_belief(np.append(said, np.nan), np.append(believed, 1.0), np.append(item, 99))
    assert repr(more) == repr(found)
