r"""Calibration curves of participants: how often they are right, given what they report. No generator is needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from shannon_game.estimators.errors import unknown_choice
from shannon_game.models.comparison.calibration_data import OutcomeData
from shannon_game.models.priors import check_priors

Family = Literal["llo", "beta"]
FAMILIES: tuple[str, ...] = get_args(Family)

COEFFICIENTS = {"llo": ("bias", "slope"), "beta": ("bias", "slope_low", "slope_high")}
"""Family -> its coefficients, in the order of :func:`curve_features`."""


@dataclass(frozen=True)
class CalibrationPriors:
    """Scales of the priors of :func:`calibration_model`; biases in nats of log-odds, slopes without unit.

    Attributes
    ----------
    bias, slope : float
        Standard deviations of normals for the population's bias (around 0) and slopes (around `slope_mean`).
    slope_mean : float
        1 is calibrated, 0 is no information.
    bias_spread, slope_spread : float
        Scales of half-normals for the spread over participants.
    """

    bias: float = 1.0
    slope: float = 1.0
    slope_mean: float = 1.0
    bias_spread: float = 0.5
    slope_spread: float = 0.5

    def __post_init__(self) -> None:
        check_priors(self, "calibration priors", any_sign=("slope_mean",))


def curve_features(report: ArrayLike, family: Family | str) -> NDArray[np.float64]:
    """What the coefficients of a family multiply, (coefficient, ...): 1 and the functions of the reports."""
    if family not in FAMILIES:
        raise unknown_choice("family", family, FAMILIES, source="calibration model")
    p = np.asarray(report, dtype=float)
    one = np.ones_like(p)
    if family == "llo":
        return np.stack([one, np.log(p) - np.log1p(-p)])
    return np.stack([one, np.log(p), -np.log1p(-p)])


def calibration_model(
    data: OutcomeData, family: Family | str = "llo", priors: CalibrationPriors | None = None
) -> pm.Model:
    """Build the model of outcomes given reports, with partial pooling over participants.

    docs/mathematics/participant_model.md has both families. Slope 1 and bias 0 are calibrated; a slope below 1 is
    over-confidence, above 1 under-confidence, at 0 the reports say nothing. Beta calibration (Kull, Silva Filho and
    Flach 2017) is linear in log-odds (Turner and others 2014; Zhang and Maloney 2012) where its slopes are equal, and
    bends otherwise. Its slopes are not forced to be positive: a participant at chance has slopes around 0, and a
    boundary there would push them up.

    A row's log-likelihood is multiplied by its weight: with weights below 1 the posterior is of a pseudo-likelihood, in
    which an answer counts as a part of one; its intervals err on the wide side. Draws of the outcome do not depend on
    the weights. Where the event is the option that the report favours, the bias is a jump at one half: what favouring
    an option says of being right, beyond the number given. Rows are taken as independent given their participant; that
    several are about one item makes intervals a little too narrow.

    Parameters
    ----------
    family : {"llo", "beta"}

    Returns
    -------
    pymc.Model
        Dims ``participant`` and ``response``; observed variable ``outcome``; for every coefficient NAME of
        the family NAME (participant), NAME_mean and NAME_spread. The weights are its data ``weight``.

    Examples
    --------
    >>> from shannon_game import models
    >>> from shannon_game.estimators.comparison.examples import comparison_study
    >>> model = models.calibration_model(models.favoured_outcomes(comparison_study()), "beta")
    >>> [variable.name for variable in model.deterministics]
    ['bias', 'slope_low', 'slope_high']
    """
    p = priors or CalibrationPriors()
    features = curve_features(data.report, family)
    coords = {"participant": data.participant, "response": data.row}
    with pm.Model(coords=coords) as model:
        person = pm.Data("person", data.person, dims="response")
        weight = pm.Data("weight", data.weight, dims="response")
        logit: Any = 0.0
        for name, feature in zip(COEFFICIENTS[family], features, strict=True):
            is_bias = name == "bias"
            mean = pm.Normal(f"{name}_mean", 0 if is_bias else p.slope_mean, p.bias if is_bias else p.slope)
            spread = pm.HalfNormal(f"{name}_spread", p.bias_spread if is_bias else p.slope_spread)
            unit = pm.Normal(f"{name}_unit", 0, 1, dims="participant")
            own = pm.Deterministic(name, mean + spread * unit, dims="participant")
            logit = logit + own[person] * feature
        pm.CustomDist(
            "outcome",
            logit,
            weight,
            logp=_weighted_log_probability,
            random=_random,
            observed=data.outcome,
            dtype="int64",
            dims="response",
        )
    return model


def _weighted_log_probability(value: Any, logit: Any, weight: Any) -> Any:
    return -weight * pt.softplus(-(2 * value - 1) * logit)


def _random(
    logit: NDArray[np.float64],
    weight: NDArray[np.float64],
    rng: np.random.Generator,
    size: tuple[int, ...] | None = None,
) -> NDArray[np.int64]:
    shape = np.broadcast_shapes(np.shape(logit), np.shape(weight), () if size is None else tuple(size))
    return (rng.random(shape) < expit(logit)).astype(np.int64)
