"""Pooled studies: closed forms, a general solver, and how often intervals hold the truth."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize, stats

from shannon_game.estimators.documents import pooled_mean


def test_studies_of_equal_errors_are_their_mean() -> None:
    y = np.array([1.0, 1.2, 1.5, 0.9])
    found = pooled_mean(y, np.full(4, 0.1), probability=0.95)
    assert found.mean == pytest.approx(y.mean())
    # the estimates' variance is that of the errors and tau together
    assert found.tau == pytest.approx(np.sqrt(y.var(ddof=1) - 0.01))
    half = stats.t.ppf(0.975, 3) * y.std(ddof=1) / 2
    assert found.upper == pytest.approx(y.mean() + half)
    assert found.new_upper > found.upper


def test_studies_that_agree_have_no_spread() -> None:
    found = pooled_mean([1.0, 1.05], [0.1, 0.2])
    assert found.tau == 0
    assert found.share_between == 0
    assert found.mean == pytest.approx((100 * 1.0 + 25 * 1.05) / 125)
    assert found.se == pytest.approx(1 / np.sqrt(125))
    assert np.isnan(found.new_lower)


def test_the_variance_solves_its_equation() -> None:
    rng = np.random.default_rng(0)
    y, s = rng.normal(0, 1, 9), rng.uniform(0.1, 0.5, 9)

    def excess(tau2: float) -> float:
        weight = 1 / (s**2 + tau2)
        return float(weight @ (y - weight @ y / weight.sum()) ** 2) - 8

    assert pooled_mean(y, s).tau ** 2 == pytest.approx(optimize.brentq(excess, 0, 50), rel=1e-9)
