"""Curves from a posterior, and recovery of a known population."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from scipy.special import expit, logit

from shannon_game.estimators.errors import InputError
from shannon_game.inference.comparison.calibration_curves import outcome_log_likelihood, reliability_curves
from shannon_game.inference.posterior.arviz_adapter import group
from shannon_game.inference.posterior.sampling import sample
from shannon_game.models.comparison.calibration import calibration_model
from tests.oracles.calibration import outcome_log_likelihood as reference
from tests.oracles.calibration import outcomes


def test_curves_of_known_coefficients():
    values = {"bias": 0.2, "slope": 0.5}
    posterior = xr.Dataset(
        {
            **{f"{name}_mean": (("chain", "draw"), [[value, value]]) for name, value in values.items()},
            **{name: (("chain", "draw", "participant"), [[[value], [2 * value]]]) for name, value in values.items()},
        }
    )
    report = np.array([0.3, 0.5, 0.9])
    typical, own = reliability_curves(posterior, "llo", report)
    np.testing.assert_allclose(typical[1], expit(0.2 + 0.5 * logit(report)))
    np.testing.assert_allclose(own[1, 0], expit(0.4 + logit(report)))
    with pytest.raises(InputError, match="slope_low"):
        reliability_curves(posterior, "beta", report)
    with pytest.raises(InputError, match="platt"):
        reliability_curves(posterior, "platt", report)


@pytest.mark.parametrize("family", ["llo", "beta"])
def test_pointwise_log_likelihood_is_the_reference_s(family):
    rng = np.random.default_rng(8)
    data = outcomes(["a", "b", "a", "b"], rng.uniform(0.1, 0.9, 4), [1, 0, 0, 1])
    names = ("bias", "slope") if family == "llo" else ("bias", "slope_low", "slope_high")
    posterior = xr.Dataset({name: (("chain", "draw", "participant"), rng.normal(size=(1, 3, 2))) for name in names})
    found = outcome_log_likelihood(posterior, data, family).log_likelihood["outcome"]
    for draw in range(3):
        point = {name: posterior[name].values[0, draw] for name in names}
        np.testing.assert_allclose(found.values[0, draw], reference(data, family, point), rtol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("family", ["llo", "beta"])
def test_the_curve_of_a_population_is_recovered(family, seed_offset):
    """40 people with 60 answers: the typical slope to .1, the curve to three points of probability."""
    rng = np.random.default_rng(5 + seed_offset)
    slope, bias = rng.normal(0.6, 0.2, 40), rng.normal(0.3, 0.2, 40)
    person = np.repeat(np.arange(40), 60)
    report = np.clip(expit(rng.normal(0, 1.5, person.size)), 0.01, 0.99)
    outcome = rng.random(person.size) < expit(bias[person] + slope[person] * logit(report))
    data = outcomes([f"p{k:02d}" for k in person], report, outcome)
    settings = {"draws": 500, "tune": 500, "chains": 4, "target_accept": 0.9}
    idata = sample(calibration_model(data, family), seed=1 + seed_offset, **settings)
    shown = np.linspace(0.05, 0.95, 10)
    typical, _ = reliability_curves(group(idata, "posterior"), family, shown)
    np.testing.assert_allclose(np.median(typical, axis=0), expit(bias.mean() + slope.mean() * logit(shown)), atol=0.05)
    if family == "llo":
        assert float(group(idata, "posterior")["slope_mean"].median()) == pytest.approx(slope.mean(), abs=0.1)
