"""Samplers, what a posterior carries besides its draws, and interruption."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pymc as pm
import pytest
import xarray as xr
from scipy.stats import norm

from shannon_game.estimators.errors import InputError
from shannon_game.inference.posterior.arviz_adapter import from_groups, group, group_names
from shannon_game.inference.posterior.predictive import complete, log_likelihood, prior_simulator
from shannon_game.inference.posterior.sampling import SAMPLERS, compile_model, sample, whole_or_not_at_all
from shannon_game.inference.posterior.storage import load_posterior, save_posterior
from tests.same import assert_same

SHORT = {"draws": 150, "tune": 200, "chains": 2}
GROUPS = ("posterior", "sample_stats", "log_likelihood", "prior", "prior_predictive", "posterior_predictive")
GROUPS += ("observed_data", "constant_data")
COMMON = ("diverging", "energy", "lp", "tree_depth", "n_steps", "acceptance_rate")


def small_model() -> pm.Model:
    """Centres depend on data, a scale is transformed, the answers are data, coords are strings."""
    with pm.Model(coords={"town": ["Åre", "Bo", "Chur"], "answer": np.arange(6)}) as model:
        height = pm.Data("height", [1.0, 0.0, 2.0], dims="town")
        answers = pm.Data("answers", [1.0, 1.2, 8.0, 8.4, 3.0, 3.1], dims="answer")
        where = pm.Data("where", np.repeat(np.arange(3), 2), dims="answer")
        slope = pm.Normal("slope", 0, 1)
        spread = pm.HalfNormal("spread", 2)
        mean = pm.Normal("mean", slope * height, 3, dims="town")
        pm.Normal("y", mean[where], spread, observed=answers, dims="answer")
    return model


@pytest.fixture(scope="module")
def fit(seed_offset: int) -> tuple[pm.Model, Any]:
    model = small_model()
    compiled = compile_model(model)
    first = sample(compiled, seed=3 + seed_offset, cores=1, **SHORT)
    second = sample(compiled, seed=3 + seed_offset, cores=2, **SHORT)
    for name in first.posterior:
        np.testing.assert_allclose(first.posterior[name], second.posterior[name], rtol=1e-6, atol=1e-6)
    other = sample(compiled, seed=4 + seed_offset, **SHORT)
    assert not np.allclose(first.posterior["mean"], other.posterior["mean"])
    return model, complete(first, compiled, seed=1 + seed_offset, n_prior=400, n_predictive=200)


@pytest.mark.mcmc
def test_predictive_draws_come_from_the_posterior_and_prior_ones_from_the_prior(fit: tuple[pm.Model, Any]) -> None:
    """The town means have priors that depend on data: PyMC must not draw them anew."""
    idata = fit[1]
    found = idata.posterior_predictive["y"].mean(("chain", "draw")).values.reshape(3, 2).mean(axis=1)
    np.testing.assert_allclose(found, idata.posterior["mean"].mean(("chain", "draw")), atol=0.5)
    assert abs(found[1] - 8) < 2  # the prior's mean is 0, its sd 3
    assert abs(float(idata.prior["mean"].sel(town="Bo").mean())) < 0.6
    assert float(idata.prior_predictive["y"].std()) > 3
    assert set(group(idata, "posterior_predictive")) == {"y"}


@pytest.mark.mcmc
def test_stored_without_loss(fit: tuple[pm.Model, Any], tmp_path: Path) -> None:
    idata = fit[1]
    idata.posterior.attrs["note"] = "naïve"
    idata.posterior["slope"].attrs["units"] = "nats"
    back = load_posterior(save_posterior(idata, tmp_path / "fit.nc"))
    assert set(group_names(back)) == set(GROUPS)
    for name in GROUPS:
        before, after = group(idata, name), group(back, name)
        xr.testing.assert_identical(after, before)
        for key, value in before.variables.items():
            # text is text, whether NumPy holds it as objects or at a fixed width
            # (and messages that nobody wrote are missing values)
            both = {after[key].dtype.kind, value.dtype.kind}
            unwritten = value.dtype.kind == "O" and not any(value.to_numpy().ravel())
            assert after[key].dtype == value.dtype or both == {"O", "U"} or unwritten, key


def test_log_likelihood_follows_the_data() -> None:
    model = small_model()
    compiled = log_likelihood(model)
    point = {"slope": 0.0, "spread": 2.0, "mean": np.zeros(3)}
    np.testing.assert_allclose(compiled.at(point)["y"], norm.logpdf(model["answers"].get_value(), 0, 2.0))
    with model:
        pm.set_data({"answers": np.zeros(6)})
    np.testing.assert_allclose(compiled.at(point)["y"], norm.logpdf(0, 0, 2.0))


def test_prior_simulator_repeats_itself_and_has_the_prior_s_moments() -> None:
    model = small_model()
    simulator = prior_simulator(model)
    first = simulator(np.random.default_rng(0))
    simulator(np.random.default_rng(1))
    again = simulator(np.random.default_rng(0))
    for name, value in first.items():
        assert_same(value, again[name])
    rng = np.random.default_rng(2)
    draws = [simulator(rng) for _ in range(2000)]
    slope, mean = (np.array([draw[name] for draw in draws]) for name in ("slope", "mean"))
    assert abs(slope.mean()) < 0.1
    np.testing.assert_allclose(mean.std(axis=0), np.sqrt(9 + np.array([1.0, 0, 4])), rtol=0.08)
    np.testing.assert_allclose(np.corrcoef(slope, mean[:, 2])[0, 1], 2 / np.sqrt(13), atol=0.07)


def test_a_potential_needs_a_generative_model() -> None:
    with pm.Model(coords={"row": [0, 1]}) as model:
        x = pm.Normal("x")
        pm.Potential("box", pm.math.log1pexp(x * np.array([1.0, 2.0])), dims="row")
        pm.Potential("soft", -(x**2))
    rows = log_likelihood(model)
    assert rows.outputs == ("box",)
    np.testing.assert_allclose(rows.at({"x": 0.5})["box"], np.log1p(np.exp([0.5, 1.0])))
    with pytest.raises(InputError, match=r"potentials.*box"):
        prior_simulator(model)
    posterior = xr.Dataset({"x": (("chain", "draw"), np.zeros((1, 3)))})
    with pytest.raises(InputError, match="potentials"):
        complete(from_groups({"posterior": posterior}), model, seed=0)
    assert rows.of_draws(posterior)["box"].shape == (1, 3, 2)
    with pytest.raises(InputError, match="lacks x"):
        rows.of_draws(posterior.drop_vars("x"))


def test_an_interrupt_is_not_swallowed() -> None:
    def swallowing(end: Callable[[], Any]) -> None:
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(5)
        except KeyboardInterrupt:
            end()  # as a sampler does, which goes on with what it has

    def no_draws() -> None:
        raise ValueError("no draws")

    before = signal.getsignal(signal.SIGINT)
    reached = []
    with pytest.raises(KeyboardInterrupt), whole_or_not_at_all():
        swallowing(lambda: reached.append(True))
    assert reached
    with pytest.raises(KeyboardInterrupt), whole_or_not_at_all():
        swallowing(no_draws)
    with pytest.raises(ValueError, match="another"), whole_or_not_at_all():
        raise ValueError("another one")
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.slow
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_every_sampler_gives_the_same_posterior(sampler: str, seed_offset: int) -> None:
    """Each in turn; numpyro and blackjax only where the extra is installed."""
    pytest.importorskip(sampler)
    settings = {"sampler": sampler, "draws": 2000, "tune": 500, "chains": 2}
    first = sample(small_model(), seed=1 + seed_offset, cores=1, **settings)
    second = sample(small_model(), seed=1 + seed_offset, cores=2, **settings)
    np.testing.assert_allclose(first.posterior["mean"], second.posterior["mean"], rtol=1e-6)
    other = sample(small_model(), seed=2 + seed_offset, **settings)
    assert not np.allclose(first.posterior["mean"], other.posterior["mean"])
    assert set(COMMON) <= set(group(first, "sample_stats"))
    assert {"posterior", "sample_stats", "observed_data", "constant_data"} <= set(group_names(first))
    assert not [name for name in group(first, "posterior") if str(name).endswith("__")]
    # a town's mean has a standard deviation of about 1, and more than 500 of the 4,000 draws are effective
    np.testing.assert_allclose(
        first.posterior["mean"].mean(("chain", "draw")), other.posterior["mean"].mean(("chain", "draw")), atol=0.25
    )
