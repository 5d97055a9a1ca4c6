"""Spreads of parameters that are alike, by the Gaussian around the mode: against the marginal on a grid."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytest

from shannon_game.inference.posterior.gaussian import Program, Spread, fit_gaussian

N, NOISE, PRIOR_SD = 40, 1.5, 0.3
Y = np.random.default_rng(3).normal(0, np.hypot(0.5, NOISE), N)


def model(*, centred: bool) -> pm.Model:
    with pm.Model() as made:
        sd = pm.LogNormal("sd", np.log(0.5), PRIOR_SD)
        own = pm.Normal("own", 0, sd if centred else 1, shape=N)
        pm.Normal("y", own if centred else sd * own, NOISE, observed=Y)
    return made


@pytest.mark.parametrize("centred", [True, False])
def test_the_spread_is_that_of_its_marginal(centred: bool) -> None:
    at = np.linspace(-3, 2, 2001)
    variance = np.exp(2 * at) + NOISE**2
    log_p = -(((at - np.log(0.5)) / PRIOR_SD) ** 2) / 2 - N * np.log(variance) / 2 - (Y**2).sum() / variance / 2
    weight = np.exp(log_p - log_p.max())
    mean = (weight * at).sum() / weight.sum()
    sd = np.sqrt((weight * (at - mean) ** 2).sum() / weight.sum())
    spread = Spread("sd_log__", "own", centred)
    found = fit_gaussian(Program(model(centred=centred), spreads=(spread,)))
    assert found.mode[0] == pytest.approx(mean, abs=0.2 * sd)
    alone = fit_gaussian(Program(model(centred=centred)))
    assert abs(alone.mode[0] - mean) > 0.5 * sd
