"""The calibration models once more, row by row with SciPy: slow, obvious and independent of PyMC."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import stats
from scipy.special import expit, logit


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


def report_log_likelihood(data: Any, point: Mapping[str, Any]) -> list[float]:
    """Log-probability (or density) of every report, given `point` with strength, half_share, evidence_unit, ..."""
    found = []
    strength = point["strength"]
    for row, report in enumerate(data.report):
        person, question, direction = data.person[row], data.question[row], data.direction[row]
        bias, slope, noise, lapse = (point[name][person] for name in ("bias", "slope", "noise", "lapse"))
        evidence, variance = direction * strength**2 / 2, noise**2
        if question >= 0:
            evidence += strength * point["evidence_unit"][question]
        else:
            variance += slope**2 * strength**2
        latent = stats.norm(bias + slope * evidence, np.sqrt(variance))
        half = point["half_share"]
        if data.is_raw:
            if report == 0:
                found.append(np.log(lapse * half))
            else:
                density = (1 - lapse) * latent.pdf(report) + lapse * (1 - half) * stats.logistic.pdf(report)
                found.append(float(np.log(density)))
            continue
        inside = latent.cdf(data.edges[report + 1]) - latent.cdf(data.edges[report])
        holding = [
            box for box in range(len(data.edges) - 1) if data.edges[box] <= 1e-12 and data.edges[box + 1] >= -1e-12
        ]
        slip = half * (report in holding) / len(holding) + (1 - half) / (len(data.edges) - 1)
        found.append(float(np.log((1 - lapse) * inside + lapse * slip)))
    return found
