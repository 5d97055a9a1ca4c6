"""The gate: a table of what passes and what fails."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from shannon_game.inference.posterior.arviz_adapter import diagnostics, from_groups, group
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


def posterior(shift: float, chains: int = 4, divergent: int = 0):
    pytest.importorskip("arviz", reason="the posterior is of the type that ArviZ uses")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(chains, 1000, 3))
    x[0, :, 1] += shift
    diverging = np.zeros((chains, 1000), dtype=bool)
    diverging[0, :divergent] = True
    stats = {"diverging": diverging, "energy": rng.normal(size=(chains, 1000))}
    groups = {
        "posterior": xr.Dataset({"x": (("chain", "draw", "at"), x)}),
        "sample_stats": xr.Dataset({name: (("chain", "draw"), values) for name, values in stats.items()}),
    }
    return from_groups(groups)


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
def test_what_the_model_fixes_is_not_judged_and_any_other_constant_fails():
    """As the slope and bias of a single participant: R-hat of one number in every draw is none."""
    idata = posterior(0)
    stuck = from_groups(
        {
            "posterior": group(idata, "posterior").assign(slope=(("chain", "draw"), np.ones((4, 1000)))),
            "sample_stats": group(idata, "sample_stats"),
        }
    )
    assert not check_convergence(stuck).passed
    assert check_convergence(stuck, fixed=("slope",)).passed
    assert check_convergence(stuck, fixed=("slope",)) == check_convergence(idata)
    found = diagnostics(stuck)
    assert np.isnan(found["r_hat"][-1])
    assert found["ess_bulk"][-1] == found["ess_tail"][-1] == 4000
    unknown = group(idata, "posterior").copy(deep=True)
    unknown["x"][0, 0, 0] = np.nan
    groups = {"posterior": unknown, "sample_stats": group(idata, "sample_stats")}
    assert not check_convergence(from_groups(groups)).passed
