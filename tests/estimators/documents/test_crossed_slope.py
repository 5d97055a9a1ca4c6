"""Slopes within people: against a regression with dummies, and errors when both people and items are drawn."""

from __future__ import annotations

import numpy as np
import pytest

from shannon_game.estimators.documents import crossed_slope
from shannon_game.estimators.errors import InputError


def dummies(y: np.ndarray, x: np.ndarray, *codes: np.ndarray) -> float:
    """Slope of a regression with a column for every level."""
    columns = [x, *(code == level for code in codes for level in np.unique(code))]
    return float(np.linalg.lstsq(np.stack(columns, axis=1).astype(float), y, rcond=None)[0][0])


def study(rng: np.random.Generator, slope: float = 0.0) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """30 people answer 40 items in an order of their own, with levels of both."""
    person, place = (each.ravel() for each in np.indices((30, 40)))
    x = np.log2(1 + rng.permuted(np.tile(np.arange(40.0), (30, 1)), axis=1).ravel())
    y = slope * x + rng.normal(size=30)[person] + rng.normal(size=40)[place] + rng.normal(size=person.size)
    return y, x, person, place


@pytest.mark.parametrize("item_levels", [False, True])
def test_the_slope_of_a_regression_with_dummies(item_levels: bool) -> None:
    rng = np.random.default_rng(0)
    y, x, person, place = study(rng, 0.3)
    keep = rng.uniform(size=y.size) < 0.4
    y, x, person, place = y[keep], x[keep], person[keep], place[keep]
    codes = (person, place) if item_levels else (person,)
    found = crossed_slope(y, x, person, place, item_levels=item_levels)
    assert found.slope == pytest.approx(dummies(y, x, *codes), abs=1e-8)


def test_one_order_for_all_is_seen() -> None:
    y = np.random.default_rng(2).normal(size=20)
    x, person, place = np.tile(np.arange(10.0), 2), np.repeat([0, 1], 10), np.tile(np.arange(10), 2)
    assert crossed_slope(y, x, person, place).item_share == pytest.approx(1)
    with pytest.raises(InputError, match="x: is the same in all answers of every person, once items have levels"):
        crossed_slope(y, x, person, place, item_levels=True)


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    rng = np.random.default_rng(1)
    inside = []
    for _ in range(400):
        y, x, person, place = study(rng, 0.2)
        found = crossed_slope(y, x, person, place, item_levels=True)
        inside.append(found.lower <= 0.2 <= found.upper)
    # 400 studies: a standard error of .015; two-way clusters err on the wide side
    assert 0.85 < np.mean(inside) <= 0.98
