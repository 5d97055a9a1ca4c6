"""The calibration model once more, row by row with SciPy: slow, obvious and independent of PyMC."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats
from scipy.special import expit, logit

from shannon_game.models.comparison.calibration_data import OutcomeData


def outcome_log_likelihood(data: Any, family: str, point: Mapping[str, Any]) -> list[float]:
    """Weighted log-probability of every outcome; `point` has the participants' coefficients."""
    found = []
    for person, report, outcome, weight in zip(data.person, data.report, data.outcome, data.weight, strict=True):
        bias = point["bias"][person]
        if family == "llo":
            chance = expit(bias + point["slope"][person] * logit(report))
        else:
            low, high = point["slope_low"][person], point["slope_high"][person]
            chance = expit(bias + low * np.log(report) - high * np.log(1 - report))
        found.append(weight * float(stats.bernoulli.logpmf(outcome, chance)))
    return found


def outcomes(participant: Sequence[str], report: ArrayLike, outcome: ArrayLike) -> OutcomeData:
    """Rows of any study with binary outcomes, for the whole range of reports."""
    people, person = np.unique(np.asarray(participant), return_inverse=True)
    p, happened = np.asarray(report, dtype=float), np.asarray(outcome, dtype=np.intp)
    return OutcomeData(people, np.arange(p.size), person, p, happened, np.ones(p.size), n_ties=0)
