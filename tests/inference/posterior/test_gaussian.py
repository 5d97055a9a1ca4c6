"""The Gaussian around a mode: exact where the posterior is one, and refused where it is not."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytest

from inference.posterior.arviz_adapter import group
from inference.posterior.gaussian import Program, fit_gaussian, posterior_of

pytestmark = pytest.mark.mcmc
X = np.array([[1.0, 0.2, -1.0], [1.0, 1.3, 0.4], [1.0, -0.7, 2.0], [1.0, 0.1, 0.3]])
Y = np.array([0.5, 2.0, -1.0, 0.7])


def regression() -> pm.Model:
    with pm.Model(coords={"term": ["a", "b", "c"]}) as model:
        beta = pm.Normal("beta", 1.0, 2.0, dims="term")
        pm.Deterministic("twice", 2 * beta, dims="term")
        pm.Normal("y", X @ beta, 0.5, observed=Y)
    return model


def test_a_normal_posterior_is_exact() -> None:
    program = Program(regression())
    found = fit_gaussian(program)
    precision = X.T @ X / 0.25 + np.eye(3) / 4
    mean = np.linalg.solve(precision, X.T @ Y / 0.25 + np.ones(3) / 4)
    assert found.convergence.passed
    np.testing.assert_allclose((found.mode - mean) / np.sqrt(np.diag(np.linalg.inv(precision))), 0, atol=1e-4)
    np.testing.assert_allclose(found.directions @ found.directions.T, np.linalg.inv(precision), rtol=1e-6)
    np.testing.assert_allclose(found.scales, 1, rtol=1e-4)
    points = found.points(40_000, np.random.default_rng(0))
    sd = np.sqrt(np.diag(np.linalg.inv(precision)))
    np.testing.assert_allclose((points.mean(axis=0) - mean) / sd, 0, atol=4 / 200)
    np.testing.assert_allclose(np.cov(points.T), np.linalg.inv(precision), atol=0.03 * sd.max() ** 2)
    np.testing.assert_array_equal(points[:5], found.points(40_000, np.random.default_rng(0))[:5])
    posterior = group(posterior_of(program, points[:8], {})[0], "posterior")
    assert posterior["twice"].dims == ("chain", "draw", "term")
    np.testing.assert_allclose(np.ravel(posterior["twice"]), 2 * points[:8].ravel())


def test_a_posterior_far_from_normal_fails_the_check() -> None:
    with pm.Model() as flat:
        x = pm.Flat("x")
        pm.Potential("quartic", -(x**4))
    with pm.Model() as wall:
        x = pm.Normal("x", 0, 1)
        pm.Potential("steep", -20 * pm.math.maximum(x - 1, 0) ** 2)
    for model in (flat, wall):
        program = Program(model)
        convergence = fit_gaussian(program, start=np.full_like(program.start, 0.3)).convergence
        assert not convergence.passed


def test_skew_splits_the_gaussian() -> None:
    """Two standard deviations up a log-gamma the density has fallen further than down: it is narrower there."""
    with pm.Model() as model:
        pm.Gamma("x", 4, 1)
    found = fit_gaussian(Program(model))
    down, up = found.scales[0] if found.directions[0, 0] > 0 else found.scales[0, ::-1]
    assert up < 1 < down
    points = found.points(20_000, np.random.default_rng(1))
    # the median of the gamma distribution is 3.672; its mode in the logarithm is 4
    assert np.exp(np.median(points)) == pytest.approx(3.672, rel=0.02)
