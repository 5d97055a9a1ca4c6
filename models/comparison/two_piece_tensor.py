"""The two-piece normal of :mod:`models.comparison.two_piece` as PyTensor expressions, for likelihoods."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytensor.tensor as pt

__all__ = ["box_probability", "log_density", "normal_box_probability"]


def log_density(value: Any, mean: Any, s_left: Any, s_right: Any) -> Any:
    """Log-density of mean + e, e the mean-zero two-piece normal."""
    offset = value - mean - np.sqrt(2 / np.pi) * (s_left - s_right)
    scale = pt.switch(offset < 0, s_left, s_right)
    return -0.5 * (offset / scale) ** 2 - pt.log((s_left + s_right) / 2) - 0.5 * np.log(2 * np.pi)


def box_probability(mean: Any, s_left: Any, s_right: Any, lower: Any, upper: Any) -> Any:
    """Probability that mean + e lies between two edges; far edges should be finite, or there is no gradient."""
    centre = mean + np.sqrt(2 / np.pi) * (s_left - s_right)
    low, high = lower - centre, upper - centre

    def tail(distance: Any) -> Any:
        return pt.erfc(distance / np.sqrt(2))  # twice the normal CDF at minus the distance

    # both pieces are written as lower tails, where the CDF keeps its relative precision
    left = tail(-pt.minimum(high, 0) / s_left) - tail(-pt.minimum(low, 0) / s_left)
    right = tail(pt.maximum(low, 0) / s_right) - tail(pt.maximum(high, 0) / s_right)
    return (s_left * left + s_right * right) / (s_left + s_right)


def normal_box_probability(low: Any, high: Any) -> Any:
    """Probability that a standard normal lies between two edges; far ones should be finite, or there is no gradient."""
    # both tails as lower ones, where the CDF keeps its relative precision
    flip = pt.switch(low + high > 0, -1.0, 1.0)
    return pt.abs(pt.erfc(-flip * high / np.sqrt(2)) - pt.erfc(-flip * low / np.sqrt(2))) / 2
