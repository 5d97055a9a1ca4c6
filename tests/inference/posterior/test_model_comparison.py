"""Leave-one-group-out against its exact value under a conjugate normal, from exact posterior draws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray as xr
from scipy.stats import multivariate_normal, norm

from shannon_game.inference.posterior.arviz_adapter import from_groups, group
from shannon_game.inference.posterior.model_comparison import K_BAD, comparison_table, loo_by

DRAWS = ("chain", "draw")
N_GROUPS = 12
RNG = np.random.default_rng(5)
WHO = RNG.permutation(np.repeat(np.arange(N_GROUPS), 3))
Y = RNG.normal(0.7, 1, WHO.size)


def posterior_of_mean(y: np.ndarray, prior_sd: float) -> tuple[float, float]:
    precision = y.size + prior_sd**-2
    return y.sum() / precision, precision**-0.5


def posterior_with(posterior: dict[str, Any], log_likelihood: dict[str, Any], **coords: Any) -> Any:
    groups = {"posterior": xr.Dataset(posterior), "log_likelihood": xr.Dataset(log_likelihood, coords=coords)}
    return from_groups(groups)


def result(prior_sd: float, noise: float = 1.0, n: int = 2000, seed: int = 1) -> Any:
    """y ~ N(mean, noise), mean ~ N(0, prior_sd): independent draws of the exact posterior."""
    centre, sd = posterior_of_mean(Y / noise, prior_sd / noise)
    mean = np.random.default_rng(seed).normal(centre * noise, sd * noise, (4, n))
    rows = norm.logpdf(Y, mean[..., None], noise)
    return posterior_with({"mean": (DRAWS, mean)}, {"y": ((*DRAWS, "row"), rows)})


def exact(prior_sd: float, noise: float = 1.0) -> np.ndarray:
    found = []
    for who in range(N_GROUPS):
        centre, sd = posterior_of_mean(Y[who != WHO] / noise, prior_sd / noise)
        mine = Y[who == WHO]
        covariance = noise**2 * (np.eye(mine.size) + sd**2)
        found.append(multivariate_normal.logpdf(mine, np.full(mine.size, centre * noise), covariance))
    return np.array(found)


def test_against_the_exact_value() -> None:
    loo = loo_by(result(2.0), WHO)
    wanted = exact(2.0)
    np.testing.assert_allclose(loo.elpd_nats, wanted, atol=0.03)
    assert loo.total_nats == pytest.approx(wanted.sum(), abs=0.05)
    assert loo.se_nats == pytest.approx(np.sqrt(N_GROUPS * wanted.var(ddof=1)), rel=0.02)
    assert loo.p_loo == pytest.approx(1, abs=0.5)
    assert (loo.pareto_k < K_BAD).all()
    assert loo.warning == ""
    assert loo.n_rows.tolist() == [3] * N_GROUPS
    # one row at a time is another question
    assert loo_by(result(2.0), "row").total_nats != pytest.approx(wanted.sum(), abs=0.2)


def test_a_dim_is_a_grouping_too() -> None:
    idata = result(2.0)
    order = np.argsort(WHO, kind="stable")
    rows = group(idata, "log_likelihood")["y"].values[:, :, order].reshape(4, 2000, N_GROUPS, 3)
    mean = group(idata, "posterior")["mean"]
    box = posterior_with({"mean": mean}, {"y": ((*DRAWS, "who", "time"), rows)}, who=list("abcdefghijkl"))
    by_dim, by_label = loo_by(box, "who"), loo_by(idata, WHO)
    np.testing.assert_allclose(by_dim.elpd_nats, by_label.elpd_nats, atol=1e-9)
    assert by_dim.label.tolist() == list("abcdefghijkl")


def test_groups_with_parameters_of_their_own_are_flagged() -> None:
    """A mean for every group, told by its own 50 rows: the full posterior knows what it should not."""
    rng = np.random.default_rng(2)
    who = np.repeat(np.arange(6), 50)
    y = rng.normal(0, 3, 6)[who] + rng.normal(0, 1, who.size)
    precision = 50 + 3.0**-2
    centre = np.bincount(who, y) / precision
    mean = rng.normal(centre, precision**-0.5, (4, 500, 6))
    rows = norm.logpdf(y, mean[:, :, who], 1)
    idata = posterior_with({"mean": ((*DRAWS, "group"), mean)}, {"y": ((*DRAWS, "row"), rows)})
    loo = loo_by(idata, who)
    assert loo.is_bad.sum() >= 4
    assert f"{loo.is_bad.sum()} of 6 groups" in loo.warning
    assert "integrate them out" in loo.warning
    covariance = np.eye(50) + 9
    wanted = sum(multivariate_normal.logpdf(y[who == g], np.zeros(50), covariance) for g in range(6))
    assert loo.total_nats > wanted  # too good, as the warning says
    table = comparison_table({"own": loo_by(idata, who)})
    assert table["n_bad_k"].item() == loo.is_bad.sum()
    assert "do not use the sum" in table["warning"].item()


def test_comparison_is_paired() -> None:
    good, wide = result(2.0), result(2.0, noise=2.0)
    table = comparison_table({"wide": loo_by(wide, WHO), "good": loo_by(good, WHO)}).set_index("model")
    assert list(table.index) == ["good", "wide"]
    assert table["difference_nats"]["good"] == 0
    difference = exact(2.0, 2.0) - exact(2.0)
    assert table["difference_nats"]["wide"] == pytest.approx(difference.sum(), abs=0.1)
    assert table["difference_se_nats"]["wide"] == pytest.approx(np.sqrt(12 * difference.var(ddof=1)), rel=0.05)
    assert (table["warning"] == "").all()
