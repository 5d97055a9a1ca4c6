"""Our own Hamiltonian Monte Carlo: known distributions, the same draws again, how it ends, what it refuses.

A test that samples compares a mean with its truth in standard errors of its effective draws: 5 of them are exceeded
once in two million such comparisons.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from math import exp, log
from typing import Any

import numpy as np
import pymc as pm
import pytest
import xarray as xr
from numba import njit
from numpy.typing import NDArray

from shannon_game.estimators.errors import InputError
from shannon_game.inference import progress
from shannon_game.inference.examples import normal_model
from shannon_game.inference.posterior.arviz_adapter import diagnostics, ess_bulk, group_names
from shannon_game.inference.posterior.hamiltonian import Chain, chain
from shannon_game.inference.posterior.sampling import CompiledModel, sample, written_model
from shannon_game.models.density import WrittenDensity

FloatArray = NDArray[np.float64]

FAR_SDS = 5.0
ANSWERS = (0.1, -0.3, 0.4, 0.2)
"""Of the model of the examples."""

# a division by zero far out is no density, not an exception
compiled = njit(error_model="numpy")


def drawn(density: Any, arguments: tuple[Any, ...], size: int, seed: int, **settings: Any) -> Chain:
    lengths = {"draws": 3000, "tune": 400, "target_accept": 0.8, "tell": lambda _: None} | settings
    return chain(density, arguments, np.zeros(size), rng=np.random.default_rng(seed), **lengths)


def far(draws: FloatArray, truth: float) -> float:
    """Standard errors from the truth to the mean of one chain's draws."""
    return float(abs(draws.mean() - truth) / draws.std() * np.sqrt(ess_bulk(draws[None])))


@compiled
def normal(x: Any, gradient: Any, mean: Any, precision: Any) -> float:
    gradient[:] = -precision @ (x - mean)
    density: float = 0.5 * (x - mean) @ gradient
    return density


@compiled
def half_line(x: Any, gradient: Any) -> float:
    """An exponential number as it stands: no density below 0."""
    gradient[0] = -1.0
    density: float = -x[0] if x[0] > 0 else np.nan
    return density


@pytest.mark.mcmc
def test_a_correlated_normal_is_recovered_whatever_its_units(seed_offset: int) -> None:
    unit, mean = np.array([1e-3, 1.0, 50.0]), np.array([2e-3, -1.0, 300.0])
    covariance = (0.7 * np.ones((3, 3)) + 0.3 * np.eye(3)) * np.outer(unit, unit)
    found = drawn(normal, (mean, np.linalg.inv(covariance)), 3, 1 + seed_offset)
    off = (found.draws - mean) / unit
    for i in range(3):
        assert far(off[:, i], 0) < FAR_SDS
        assert far(off[:, i] ** 2, 1) < FAR_SDS
    assert far(off[:, 0] * off[:, 2], 0.7) < FAR_SDS
    assert not found.stats["diverging"].any()
    # dual averaging ends near what was wanted; .1 is more than it is off by after 400 draws
    assert abs(found.stats["acceptance_rate"].mean() - 0.8) < 0.15


@pytest.mark.mcmc
def test_an_edge_is_counted_and_never_crossed(seed_offset: int) -> None:
    found = chain(
        half_line,
        (),
        np.ones(1),
        draws=2000,
        tune=300,
        target_accept=0.8,
        rng=np.random.default_rng(3 + seed_offset),
        tell=lambda _: None,
    )
    assert np.isfinite(found.draws).all()
    assert (found.draws > 0).all()
    assert far(found.draws[:, 0], 1) < FAR_SDS
    lost = found.stats["diverging"]
    assert lost.any()
    assert (found.stats["acceptance_rate"][lost] == 0).all()


@compiled
def small_density(x: Any, gradient: Any, answers: Any) -> float:
    """That of :func:`shannon_game.inference.examples.normal_model`: the mean, and the logarithm of the spread."""
    mean, spread = x[0], exp(x[1])
    off = answers - mean
    gradient[0] = -mean + off.sum() / spread**2
    gradient[1] = 1 - spread**2 - answers.size + (off**2).sum() / spread**2
    density: float = -0.5 * mean**2 - 0.5 * spread**2 + x[1] - answers.size * x[1] - 0.5 * (off**2).sum() / spread**2
    return density


def small(model: pm.Model) -> CompiledModel:
    answers = np.array(ANSWERS)

    def expand(x: FloatArray) -> dict[str, Any]:
        return {"mean": x[0], "spread": np.exp(x[1])}

    return written_model(model, WrittenDensity(np.zeros(2), small_density, lambda: (answers,), expand, ()))


SHORT: dict[str, Any] = {"sampler": "hmc", "draws": 60, "tune": 50, "chains": 2, "progress": False}


@pytest.mark.mcmc
def test_the_posterior_is_the_exact_one(seed_offset: int) -> None:
    found = sample(small(normal_model()), seed=1 + seed_offset, **SHORT | {"draws": 4000, "tune": 500})
    assert {"posterior", "sample_stats", "observed_data"} <= set(group_names(found))
    assert {"diverging", "energy", "lp", "n_steps", "acceptance_rate"} <= set(found.sample_stats)
    assert (diagnostics(found)["r_hat"] < 1.02).all()
    # both numbers on a grid that holds all but 1e-6 of the probability
    mean, spread = np.meshgrid(np.linspace(-5, 5, 1001), np.linspace(1e-3, 8, 1001), indexing="ij")
    squares = sum((y - mean) ** 2 for y in ANSWERS)
    log_density = -(mean**2 + spread**2 + squares / spread**2) / 2 - len(ANSWERS) * np.log(spread)
    weight = np.exp(log_density - log_density.max())
    for name, grid in (("mean", mean), ("spread", spread)):
        for power in (1, 2):
            draws = np.asarray(found.posterior[name]) ** power
            exact = (grid**power * weight).sum() / weight.sum()
            assert abs(draws.mean() - exact) < FAR_SDS * draws.std() / np.sqrt(ess_bulk(draws))


@pytest.mark.mcmc
def test_the_same_seed_gives_the_same_draws_whatever_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[Any] = []
    monkeypatch.setattr(progress._Display, "show", lambda _, stage: counts.append((stage.done, stage.total)))
    program = small(normal_model())
    first = sample(program, seed=3, cores=1, **SHORT | {"progress": True})
    assert counts[-1] == (220, 220)
    assert counts == sorted(counts)
    second = sample(program, seed=3, cores=2, **SHORT)
    xr.testing.assert_allclose(first.posterior, second.posterior, rtol=1e-6)
    other = sample(program, seed=4, **SHORT)
    assert not np.allclose(first.posterior["mean"], other.posterior["mean"])
    assert not np.allclose(first.posterior["mean"][0], first.posterior["mean"][1])


@pytest.mark.mcmc
def test_ctrl_c_ends_all_chains() -> None:
    threading.Timer(1.5, os.kill, [os.getpid(), signal.SIGINT]).start()
    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        sample(small(normal_model()), seed=1, **SHORT | {"draws": 10**6})
    deadline = time.monotonic() + 300
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert threading.active_count() <= before


def test_a_model_whose_density_is_not_written_is_refused() -> None:
    with pytest.raises(InputError, match=r"sampler: is 'hmc'.*with a written density.*'nutpie'"):
        sample(normal_model(), sampler="hmc")
    with pytest.raises(InputError, match=r"sampler.*draws"):
        sample(small(normal_model()), sampler="hmc", draws=0)


@compiled
def two_peaks(x: Any, gradient: Any, up: float) -> float:
    """Two normals of spread 1, around 8 with probability `up` and around -8."""
    high, low = up * exp(-0.5 * (x[0] - 8) ** 2), (1 - up) * exp(-0.5 * (x[0] + 8) ** 2)
    gradient[0] = ((8 - x[0]) * high - (x[0] + 8) * low) / (high + low)
    density: float = log(high + low)
    return density


@pytest.mark.mcmc
def test_the_draws_of_a_seed_are_what_they_always_were() -> None:
    lengths: dict[str, Any] = {"draws": 30, "tune": 40, "target_accept": 0.8, "tell": lambda _: None}
    found = chain(two_peaks, (0.3,), np.full(1, 7.0), rng=np.random.default_rng(1), **lengths)
    golden = [5.9619082701033586, 6.336360353647978, 6.737197031357115]
    assert found.draws[[0, 10, 29], 0].tolist() == pytest.approx(golden, rel=1e-6)
    assert found.stats["n_steps"].sum() == 46
