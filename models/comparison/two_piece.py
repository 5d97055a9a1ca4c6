r"""The mean-zero two-piece normal of the belief model's residuals, in NumPy.

Left of the mode it is a normal with sd :math:`s_L`, right of it one with sd :math:`s_R`, and

.. math::

    p(e) = \frac{2}{(s_L + s_R)\sqrt{2\pi}} e^{-(e - m)^2 / 2 s^2}, \quad s = s_L\ (e < m)\ \text{or}\ s_R,
    \qquad m = -\sqrt{2/\pi}\,(s_R - s_L)

puts the mean at zero; the left piece has probability :math:`p_L = s_L / (s_L + s_R)`. All functions broadcast.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr, ndtri

__all__ = ["draw", "draw_inside", "log_mean_exp", "mode", "probability_inside"]

FloatArray = NDArray[np.float64]

_TINY = 1e-300


def mode(s_left: FloatArray, s_right: FloatArray) -> FloatArray:
    """Where the two pieces meet when the mean is zero."""
    place: FloatArray = np.sqrt(2 / np.pi) * (s_left - s_right)
    return place


def log_mean_exp(s_left: FloatArray, s_right: FloatArray) -> FloatArray:
    r"""Log of the mean of :math:`e^e`.

    .. math::

        E e^e = e^{m} \left[ 2 p_L e^{s_L^2/2} \Phi(-s_L) + 2 (1 - p_L) e^{s_R^2/2} \Phi(s_R) \right]

    In logs throughout, so that wide residuals do not overflow.
    """
    total = np.log(s_left + s_right)
    left = np.log(2 * s_left) - total + s_left**2 / 2 + log_ndtr(-s_left)
    right = np.log(2 * s_right) - total + s_right**2 / 2 + log_ndtr(s_right)
    return mode(s_left, s_right) + np.logaddexp(left, right)


def draw(s_left: FloatArray, s_right: FloatArray, rng: np.random.Generator) -> FloatArray:
    """One residual for every pair of scales."""
    size = np.shape(s_left)
    half = np.abs(rng.standard_normal(size))
    left = rng.random(size) * (s_left + s_right) < s_left
    return mode(s_left, s_right) + np.where(left, -half * s_left, half * s_right)


def probability_inside(s_left: FloatArray, s_right: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Probability of a residual between two edges in nats; an edge can be infinite."""
    centre = mode(s_left, s_right)
    low, high = lower - centre, upper - centre
    # both pieces are written as lower tails, where the normal CDF keeps its relative precision
    left = ndtr(np.minimum(high, 0) / s_left) - ndtr(np.minimum(low, 0) / s_left)
    right = ndtr(-np.maximum(low, 0) / s_right) - ndtr(-np.maximum(high, 0) / s_right)
    probability: FloatArray = 2 * (s_left * left + s_right * right) / (s_left + s_right)
    return probability


def draw_inside(
    s_left: FloatArray, s_right: FloatArray, lower: FloatArray, upper: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """One residual for every pair of scales, given that it lies between two edges.

    Parameters
    ----------
    s_left, s_right, lower, upper : ndarray, one shape
        Scales and edges in nats; an edge can be infinite.
    rng : numpy.random.Generator

    Returns
    -------
    ndarray, same shape
        Where a box is so far out that its probability underflows, its edge nearest to the mode.
    """
    centre = mode(s_left, s_right)
    low, high = lower - centre, upper - centre
    # both pieces are written as lower tails, where the normal CDF keeps its relative precision
    left_to, left_from = ndtr(np.minimum(high, 0) / s_left), ndtr(np.minimum(low, 0) / s_left)
    right_to, right_from = ndtr(-np.maximum(low, 0) / s_right), ndtr(-np.maximum(high, 0) / s_right)
    left_mass = s_left * (left_to - left_from)
    right_mass = s_right * (right_to - right_from)
    is_left = rng.random(low.shape) * (left_mass + right_mass) < left_mass
    u = rng.random(low.shape)
    below = s_left * ndtri(np.clip(left_from + u * (left_to - left_from), _TINY, 0.5))
    above = -s_right * ndtri(np.clip(right_from + u * (right_to - right_from), _TINY, 0.5))
    inside: FloatArray = np.clip(np.where(is_left, below, above), low, high)
    nearest = np.clip(0.0, low, high)
    return centre + np.where(left_mass + right_mass > _TINY, inside, nearest)
