r"""Likelihoods of a distance in [0, 1] given a linear predictor; two of them keep to the interval and its ends.

"beta" is the ordered beta of Kubinec (2022): with cut points :math:`-\kappa_0 < \kappa_1`,

.. math::

    P(y = 0) = \sigma(-\kappa_0 - \eta),\quad P(y = 1) = \sigma(\eta - \kappa_1),\quad
    y \mid 0 < y < 1 \sim \mathrm{Beta}(\mu\varphi, (1 - \mu)\varphi),\ \mu = \sigma(\eta)

"logit_normal" is :math:`\mathrm{logit}\,y \sim \mathrm N(\eta, \sigma)`, recorded as 0 or 1 beyond
:func:`~shannon_game.models.cloze.ard_data.recording_limits`. Both are densities on (0, 1) with masses at its ends, and
can be compared.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from scipy.special import expit, logit

from shannon_game.estimators.arrays import FloatArray
from shannon_game.models.cloze.ard_data import LINK_SCALE, ArdData, recording_limits
from shannon_game.models.cloze.ard_priors import ArdPriors


def add_likelihood(data: ArdData, eta: Any, name: str, p: ArdPriors) -> None:
    """Add the observed variable ``target`` to the model in context."""
    if name == "beta":
        concentration = pm.LogNormal("concentration", p.log_concentration_mean, p.log_concentration)
        low = pm.LogNormal("edge_low", p.edge_mean, p.edge)
        high = pm.LogNormal("edge_high", p.edge_mean, p.edge)
        pm.CustomDist(
            "target",
            eta,
            concentration,
            low,
            high,
            logp=_ordered_beta_logp,
            random=ordered_beta_random,
            observed=data.target,
            dims="row",
        )
        return
    spread = pm.HalfNormal("noise", p.noise * LINK_SCALE[name])
    if name == "gaussian":
        pm.Normal("target", eta, spread, observed=data.target, dims="row")
        return
    low, high = logit(recording_limits(data.target))
    pm.CustomDist(
        "target",
        eta,
        spread,
        low,
        high,
        logp=_censored_logit_normal_logp,
        random=censored_logit_normal_random,
        observed=data.target,
        dims="row",
    )


def _inside(value: Any) -> Any:
    return pt.clip(value, 1e-9, 1 - 1e-9)


def _ordered_beta_logp(value: Any, eta: Any, concentration: Any, low: Any, high: Any) -> Any:
    mu, y = pt.sigmoid(eta), _inside(value)
    a, b = mu * concentration, (1 - mu) * concentration
    beta = (a - 1) * pt.log(y) + (b - 1) * pt.log1p(-y) + pt.gammaln(concentration) - pt.gammaln(a) - pt.gammaln(b)
    # sigma(u) - sigma(v) = sigma(u) sigma(-v) (1 - exp(v - u)), with u - v = low + high
    between = -pt.softplus(-eta - low) - pt.softplus(eta - high) + pt.log1p(-pt.exp(-low - high))
    zero, one = -pt.softplus(eta + low), -pt.softplus(high - eta)
    return pt.switch(value <= 0, zero, pt.switch(value >= 1, one, between + beta))


def ordered_beta_random(  # noqa: PLR0917 - PyMC passes them by position
    eta: FloatArray,
    concentration: FloatArray,
    low: FloatArray,
    high: FloatArray,
    rng: np.random.Generator,
    size: Any = None,
) -> FloatArray:
    """Draw from the ordered beta."""
    shape = np.broadcast_shapes(np.shape(eta), np.shape(concentration), () if size is None else tuple(size))
    eta = np.broadcast_to(eta, shape)
    mu = expit(eta)
    # a shape of 0 is no beta distribution, and its draws would be NaN
    drawn = rng.beta(np.maximum(mu * concentration, 1e-9), np.maximum((1 - mu) * concentration, 1e-9))
    u = rng.random(shape)
    zero, one = expit(-eta - low), expit(eta - high)
    return np.where(u < zero, 0.0, np.where(u > 1 - one, 1.0, np.clip(drawn, 1e-9, 1 - 1e-9)))


def _censored_logit_normal_logp(value: Any, eta: Any, noise: Any, low: Any, high: Any) -> Any:
    y = _inside(value)
    z = (pt.log(y) - pt.log1p(-y) - eta) / noise
    inside = -0.5 * z**2 - 0.5 * np.log(2 * np.pi) - pt.log(noise) - pt.log(y) - pt.log1p(-y)
    below, above = _log_normal_cdf((low - eta) / noise), _log_normal_cdf((eta - high) / noise)
    return pt.switch(value <= 0, below, pt.switch(value >= 1, above, inside))


def _log_normal_cdf(z: Any) -> Any:
    root = float(np.sqrt(2))
    return pt.switch(
        z < -1,
        pt.log(pt.erfcx(-pt.minimum(z, -1) / root) / 2) - pt.minimum(z, -1) ** 2 / 2,
        pt.log1p(-pt.erfc(pt.maximum(z, -1) / root) / 2),
    )


def censored_logit_normal_random(  # noqa: PLR0917 - PyMC passes them by position
    eta: FloatArray, noise: FloatArray, low: FloatArray, high: FloatArray, rng: np.random.Generator, size: Any = None
) -> FloatArray:
    """Draw from the logit-normal, recorded as 0 or 1 beyond `low` and `high`."""
    shape = np.broadcast_shapes(np.shape(eta), np.shape(noise), () if size is None else tuple(size))
    drawn = rng.normal(np.broadcast_to(eta, shape), noise)
    inside = np.clip(expit(drawn), 1e-9, 1 - 1e-9)
    return np.where(drawn < low, 0.0, np.where(drawn > high, 1.0, inside))
