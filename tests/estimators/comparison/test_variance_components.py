"""Variances by restricted maximum likelihood: closed forms, a slow reference, one unbiased step."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize

from shannon_game.estimators.comparison.variance_components import variance_components

Floats = NDArray[np.float64]


def crossed(
    seed: int, theta: tuple[float, float, float]
) -> tuple[Floats, Floats, list[tuple[Floats, NDArray[np.intp]]], NDArray[np.intp]]:
    """People who meet two tokens of every item, each with a weight; a level of items and one of people are fixed."""
    rng = np.random.default_rng(seed)
    item = np.repeat(np.arange(12), 8)
    person = np.tile(np.repeat(np.arange(4), 2), 12)
    token = item * 5 + rng.integers(0, 5, item.size)
    cell, token = (np.unique(each, return_inverse=True)[1] for each in (item * 4 + person, token))
    weight = np.array([0.6, 0.9, 1.2, 1.5])[person]
    fixed = np.column_stack([np.eye(12)[item] * weight[:, None], np.eye(4)[person]])
    drawn = [np.sqrt(t) * rng.normal(size=n) for t, n in zip(theta, (48, token.max() + 1, item.size), strict=True)]
    values = weight * (drawn[0][cell] + drawn[1][token]) + drawn[2]
    return values, fixed, [(weight, cell), (weight, token), (np.ones(item.size), np.arange(item.size))], item


def test_restricted_likelihood_has_its_maximum_there() -> None:
    values, fixed, effects, item = crossed(3, (1.5, 1.0, 0.5))
    found = variance_components(values, fixed, effects, item, max_steps=200)
    basis = np.linalg.svd(fixed, full_matrices=True)
    rank = int((basis[1] > 1e-9).sum())
    outside = basis[0][:, rank:]
    projected = outside.T @ values
    covariances = []
    for weight, number in effects:
        z = np.zeros((values.size, number.max() + 1))
        z[np.arange(values.size), number] = weight
        covariances.append(outside.T @ z @ z.T @ outside)

    def minus(log_theta: Floats) -> float:
        v = sum(np.exp(t) * each for t, each in zip(log_theta, covariances, strict=True))
        return float(np.linalg.slogdet(v)[1] + projected @ np.linalg.solve(v, projected)) / 2

    best = minimize(minus, np.zeros(3), method="BFGS", options={"gtol": 1e-7})
    assert (found > 0).all()
    assert found == pytest.approx(np.exp(best.x), rel=5e-3)


def test_one_step_is_unbiased_whatever_its_weights() -> None:
    theta = (0.0, 1.0, 0.5)
    found = []
    for seed in range(400):
        values, fixed, effects, item = crossed(seed, theta)
        found.append(variance_components(values, fixed, effects, item, start=np.array([1.0, 0.2, 1.0]), max_steps=1))
    # 400 estimates: within 4 of their standard errors, which a bias of .1 is not
    error = np.std(found, axis=0) / np.sqrt(len(found))
    assert (error < 0.025).all()
    assert np.mean(found, axis=0) == pytest.approx(theta, abs=float(4 * error.max()))
    assert np.mean(np.array(found)[:, 0] < 0) > 0.3
