"""PyMC beside scikit-learn where both are exact, the NumPy likelihoods beside the model's, coverage from ranks."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pymc as pm
import pytest
import xarray as xr

from shannon_game.estimators.errors import InputError
from shannon_game.inference.cloze.ard import (
    average_effects,
    comparable,
    draw_targets,
    expected_target,
    largest_probability,
    loo_of_targets,
    predictive_checks,
    row_log_likelihood,
)
from shannon_game.inference.cloze.ard_sbc import interval_coverage
from shannon_game.inference.cloze.sklearn_ard import sklearn_ard
from shannon_game.inference.posterior.arviz_adapter import ess_bulk, group
from shannon_game.inference.posterior.sampling import sample
from shannon_game.models.cloze.ard import ard_model
from shannon_game.models.cloze.ard_data import ard_data
from shannon_game.models.cloze.ard_priors import ArdPriors
from tests.models.cloze.test_ard import log_densities, some_data, values_of


@pytest.mark.mcmc
def test_pymc_agrees_with_scikit_learn_where_both_are_exact(seed_offset: int) -> None:
    """Gaussian, standardised predictors, scales and noise as scikit-learn found them: one normal posterior.

    All bounds are 4.5 standard errors of Monte Carlo or more, three times: a seed in 10,000 is outside.
    """
    rng = np.random.default_rng(seed_offset)
    x = rng.normal(size=(120, 3)) * [1.0, 2.0, 0.2] + [2.0, -1.0, 0.5]
    y = 0.5 + x @ [0.04, 0.02, 0.2] - 0.15 + rng.normal(0, 0.05, 120)
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    found = sklearn_ard(x, y)
    assert (found.coefficient != 0).all()  # scikit-learn prunes what it believes to be below .01
    columns = dict(zip("abc", x.T, strict=True))
    data = ard_data(y, columns, text=["t"] * 120)
    free = ard_model(data, likelihood="gaussian", priors=ArdPriors(intercept=40.0))
    model = pm.do(free, {"relevance_precision": found.precision, "noise": found.noise_precision**-0.5})
    settings = {"draws": 3000, "tune": 500, "chains": 2, "cores": 1, "progress": False}
    posterior = group(sample(model, seed=1 + seed_offset, **settings), "posterior")
    draws = posterior["coefficient"].to_numpy()
    for k in range(3):
        mc = found.sd[k] / np.sqrt(ess_bulk(draws[..., k]))
        assert draws[..., k].mean() == pytest.approx(found.coefficient[k], abs=4.5 * mc)
        assert draws[..., k].std() == pytest.approx(found.sd[k], rel=0.07)
    flat = draws.reshape(-1, 3)
    expected = found.covariance / np.outer(found.sd, found.sd)
    np.testing.assert_allclose(np.corrcoef(flat.T), expected, atol=0.07)
    # the intercept is that of centred predictors, the mean of the target
    assert float(posterior["intercept"].mean()) == pytest.approx(y.mean(), abs=0.001)


def test_scikit_learn_prunes_and_its_sd_stays_in_place() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(200, 3))
    found = sklearn_ard(x, x[:, 2] + rng.normal(0, 0.1, 200))
    assert found.coefficient[2] == pytest.approx(1, abs=0.05)
    assert found.sd[2] == pytest.approx(0.1 / np.sqrt(200), rel=0.3)
    assert ((found.sd > 0) == (found.coefficient != 0)).all()
    np.testing.assert_allclose(found.two_over_precision, 2 / found.precision)


def posterior_of(point: dict[str, np.ndarray], eta: np.ndarray) -> xr.Dataset:
    """A posterior of two chains and a draw, both at one point."""
    dims = {"coefficient": ("predictor",), "scale": ("predictor",)}
    named = {
        name: (("chain", "draw", *dims.get(name, ())), np.broadcast_to(value, (2, 3, *np.shape(value))))
        for name, value in point.items()
        if np.ndim(value) == 0 or name in dims
    }
    return xr.Dataset({**named, "eta": (("chain", "draw", "row"), np.broadcast_to(eta, (2, 3, eta.size)))})


@pytest.mark.parametrize("likelihood", ["beta", "logit_normal", "gaussian"])
def test_rows_have_the_model_s_likelihood_and_draws_its_mean(likelihood: str) -> None:
    data = some_data(np.random.default_rng(7), noisy=0, ends=likelihood != "gaussian")
    model = ard_model(data, likelihood=likelihood)
    point = values_of(model, 4)
    from tests.models.cloze.test_ard import at

    eta = at(model, [model["eta"]], point)[0]
    posterior = posterior_of(point, eta)
    found = row_log_likelihood(posterior, data, likelihood)
    assert found.shape == (2, 3, data.target.size)
    np.testing.assert_allclose(found[1, 2], log_densities(model, point)["target"], rtol=1e-8, atol=1e-9)
    many = posterior.isel(draw=np.zeros(4000, dtype=int))
    drawn = draw_targets(many, likelihood, target=data.target, n_draws=8000, rng=np.random.default_rng(0))
    mean = expected_target(eta[None, :], posterior.isel(chain=[0], draw=[0]), likelihood)[0]
    error = drawn.std(axis=0) / np.sqrt(len(drawn))
    # logit-normal values beyond the limits are recorded as 0 and 1, which the mean leaves out: at most .01
    assert (np.abs(drawn.mean(axis=0) - mean) < 4.5 * error + (0.012 if likelihood == "logit_normal" else 1e-9)).all()


def test_effects_are_those_of_a_step_of_one() -> None:
    eta = np.linspace(-1, 1, 5)
    point = {"intercept": np.array(0.0), "noise": np.array(0.3), "coefficient": np.array([0.2, -0.1])}
    posterior = posterior_of(point, eta)
    np.testing.assert_allclose(average_effects(posterior, "gaussian"), np.tile([0.2, -0.1], (6, 1)))
    bent = average_effects(posterior.assign(noise=posterior["noise"] * 1e-6), "logit_normal")
    step = 1 / (1 + np.exp(-(eta + 0.1))) - 1 / (1 + np.exp(-(eta - 0.1)))
    assert bent[0, 0] == pytest.approx(step.mean(), rel=1e-6)


def test_leave_one_out_is_by_item() -> None:
    data = some_data(np.random.default_rng(1), noisy=0, ends=False)
    rng = np.random.default_rng(2)
    eta = rng.normal(0.5, 0.02, (2, 300, data.target.size))
    posterior = xr.Dataset(
        {"eta": (("chain", "draw", "row"), eta), "noise": (("chain", "draw"), rng.uniform(0.25, 0.3, (2, 300)))},
        coords={"chain": [0, 1], "draw": np.arange(300)},
    )
    found = loo_of_targets(posterior, data, "gaussian")
    assert found.label.tolist() == data.item.tolist()
    assert not found.is_bad.any()
    rows = row_log_likelihood(posterior, data, "gaussian")
    assert found.total_nats < np.log(np.exp(rows).mean(axis=(0, 1))).sum() + 1e-9


def test_coverage_from_ranks() -> None:
    ranks = pd.DataFrame({"quantity": ["b"] * 100 + ["log_likelihood"] * 100, "rank": [*range(100)] * 2})
    found = interval_coverage(ranks, 99, 0.9)
    assert found["quantity"].tolist() == ["b"]
    assert found["coverage"].iloc[0] == pytest.approx(0.9)
    with pytest.raises(InputError, match="99 ranks make those"):
        interval_coverage(ranks, 63, 0.9)


def test_largest_is_the_largest_in_size() -> None:
    draws = np.array([[[1.0, -2.0, 0.0], [3.0, 0.1, 0.2]], [[0.0, -1.0, 0.5], [0.0, 0.1, -0.5]]])
    np.testing.assert_allclose(largest_probability(draws), [0.25, 0.5, 0.25])


def test_checks_find_what_a_model_cannot_give() -> None:
    rng = np.random.default_rng(0)
    data = some_data(rng, noisy=0, ends=False)
    drawn = rng.uniform(0.05, 0.95, (500, data.target.size))
    good = predictive_checks(drawn, data, tail=0.01).set_index("property")
    assert good["inside"].all()
    bad = predictive_checks(drawn * 0.2, data, tail=0.01).set_index("property")
    assert not bad.loc[["mean", "largest", "90% quantile"], "inside"].any()
    assert bad.loc["mean", "p_value"] == 0


def test_a_gaussian_is_not_compared_where_there_are_ends() -> None:
    names = {"a": "beta", "b": "gaussian"}
    assert comparable(names, np.array([0.2, 0.4])) == ["a", "b"]
    assert comparable(names, np.array([0.2, 1.0])) == ["a"]
