"""Reliability curves from the posteriors of calibration models."""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike
from scipy.special import expit

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.errors import InputError
from shannon_game.inference.posterior.arviz_adapter import InferenceData, from_groups
from shannon_game.inference.posterior.item_draws import flat
from shannon_game.models.comparison.calibration import COEFFICIENTS, Family, curve_features
from shannon_game.models.comparison.calibration_data import OutcomeData


def reliability_curves(posterior: xr.Dataset, family: Family | str, report: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Probability of the event given a report, (draw, report) of the one with mean coefficients, and of each."""
    features = curve_features(report, family)
    names = COEFFICIENTS[family]
    missing = [name for name in names if f"{name}_mean" not in posterior]
    if missing:
        raise InputError(f"lacks {', '.join(missing)}, is not of family {family!r}", source="posterior of calibration")
    means = np.stack([flat(posterior, f"{name}_mean") for name in names], axis=-1)
    own = np.stack([flat(posterior, name) for name in names], axis=-1)
    return expit(means @ features), expit(own @ features)


def outcome_log_likelihood(posterior: xr.Dataset, data: OutcomeData, family: Family | str) -> InferenceData:
    """Add the log-probability of every outcome, weighted as in the model, to a posterior of it."""
    features = curve_features(data.report, family)
    logit = np.zeros((posterior.sizes["chain"], posterior.sizes["draw"], data.row.size))
    for name, feature in zip(COEFFICIENTS[family], features, strict=True):
        logit += posterior[name].transpose("chain", "draw", "participant").values[..., data.person] * feature
    values = -data.weight * np.logaddexp(0, -(2 * data.outcome - 1) * logit)
    found = xr.Dataset({"outcome": (("chain", "draw", "response"), values)}, coords={"response": data.row})
    return from_groups({"posterior": posterior, "log_likelihood": found})
