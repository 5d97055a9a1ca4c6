"""The gate: a table of what passes and what fails."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from shannon_game.inference.posterior.arviz_adapter import diagnostics, from_groups
from shannon_game.inference.posterior.convergence import check_convergence, judge
from shannon_game.inference.posterior.thresholds import GateThresholds

GOOD = {"r_hat_max": 1.005, "ess_bulk_min": 900.0, "ess_tail_min": 800.0, "n_divergent": 0, "bfmi_min": 0.8}


@pytest.mark.parametrize(
    ("change", "failed"),
    [
        ({}, ()),
        ({"r_hat_max": 1.01, "ess_bulk_min": 400.0, "ess_tail_min": 400.0, "bfmi_min": 0.3}, ()),
        ({"bfmi_min": None}, ()),
        ({"r_hat_max": 1.0101}, ("R-hat",)),
        ({"r_hat_max": float("nan")}, ("R-hat",)),
        ({"ess_bulk_min": 399.0}, ("bulk ESS",)),
        ({"ess_tail_min": float("nan")}, ("tail ESS",)),
        ({"n_divergent": 1}, ("divergent",)),
        ({"bfmi_min": 0.29}, ("E-BFMI",)),
        ({"r_hat_max": 1.2, "n_divergent": 3}, ("R-hat", "divergent")),
    ],
)
def test_gate(change, failed):
    verdict = judge(**{**GOOD, **change}, thresholds=GateThresholds())
    assert verdict.passed == (not failed)
    assert len(verdict.reasons) == len(failed)
    for word, reason in zip(failed, verdict.reasons, strict=True):
        assert word in reason


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
def test_what_the_model_fixes_is_not_judged_and_any_other_constant_fails():
    """As the slope and bias of a single participant: R-hat of one number in every draw is none."""
    pytest.importorskip("arviz", reason="the posterior is of the type that ArviZ uses")
    rng, draws = np.random.default_rng(0), ("chain", "draw")
    x = xr.Dataset({"x": ((*draws, "at"), rng.normal(size=(4, 1000, 3)))})
    energy, diverging = (draws, rng.normal(size=(4, 1000))), (draws, np.zeros((4, 1000), dtype=bool))
    stats = {"sample_stats": xr.Dataset({"diverging": diverging, "energy": energy})}
    idata = from_groups({"posterior": x} | stats)
    stuck = from_groups({"posterior": x.assign(slope=(draws, np.ones((4, 1000))))} | stats)
    assert not check_convergence(stuck).passed
    assert check_convergence(stuck, fixed=("slope",)).passed
    assert check_convergence(stuck, fixed=("slope",)) == check_convergence(idata)
    found = diagnostics(stuck)
    assert np.isnan(found["r_hat"][-1])
    assert found["ess_bulk"][-1] == found["ess_tail"][-1] == 4000
    unknown = x.copy(deep=True)
    unknown["x"][0, 0, 0] = np.nan
    assert not check_convergence(from_groups({"posterior": unknown} | stats)).passed
