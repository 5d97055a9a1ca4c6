"""Sums over the tokens of every item, draw by draw, for Numba.

A draw has thousands of tokens, and NumPy would go through them a dozen times.
"""

from __future__ import annotations

from math import erfc, exp, log, log1p, pi, sqrt

import numpy as np
from numpy.typing import NDArray

from models.compiled import compiled

__all__ = ["add_residuals", "add_terms", "log_none_above", "log_sums", "note_above", "predicted", "start_sums"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

_ROOT_2_PI = sqrt(2 / pi)
_NEVER = 12.0
"""Standard deviations beyond which even millions of normal numbers have none."""


@compiled
def start_sums(log_first: FloatArray, n_draws: int) -> FloatArray:
    """Sums with one term an item: their largest term and the sum in units of it, (2, draw, item)."""
    found = np.ones((2, n_draws, log_first.size))
    for draw in range(n_draws):
        found[0, draw] = log_first
    return found


@compiled
def add_terms(sums: FloatArray, c: FloatArray, log_ratio: FloatArray, shift: FloatArray, item: IntArray) -> None:
    """Add to `sums`, of :func:`start_sums`, the terms c log_ratio + shift, whose shape is (draw, token)."""
    for draw in range(log_ratio.shape[0]):
        largest, total = sums[0, draw], sums[1, draw]
        for token in range(item.size):
            i = item[token]
            term = c[draw] * log_ratio[draw, token] + shift[token]
            above = term - largest[i]
            if above > 0:
                total[i] = total[i] * exp(-above) + 1
                largest[i] = term
            else:
                total[i] += exp(above)


@compiled
def log_sums(sums: FloatArray) -> FloatArray:
    """Logarithm of the sums, (draw, item)."""
    found: FloatArray = np.empty_like(sums[0])
    for draw in range(found.shape[0]):
        for i in range(found.shape[1]):
            found[draw, i] = sums[0, draw, i] + log(sums[1, draw, i])
    return found


@compiled
def predicted(  # noqa: PLR0917 - Numba takes arguments by place alone
    place: FloatArray, slope: FloatArray, lean: FloatArray, b2: FloatArray, item: IntArray, token: FloatArray
) -> FloatArray:
    """Mean of tokens' log-ratios, (draw, token).

    `place`, `slope` and `lean` have shape (draw, item), `b2` (draw,); `token` has, for every token, what these are
    multiplied by (ln g + 5, how rare it is, how frequent), and what is added.
    """
    found = np.empty((place.shape[0], item.size))
    for draw in range(found.shape[0]):
        for t in range(item.size):
            i = item[t]
            mean = place[draw, i] + slope[draw, i] * token[0, t] + b2[draw] * token[1, t]
            found[draw, t] = mean + lean[draw, i] * token[2, t] + token[3, t]
    return found


@compiled
def add_residuals(  # noqa: PLR0917
    values: FloatArray, left: FloatArray, right: FloatArray, item: IntArray, size: FloatArray, side: FloatArray
) -> None:
    """Add to `values` (draw, token) residuals of scales (draw, item), from standard normals and uniform numbers.

    See :func:`models.comparison.two_piece.draw`.
    """
    for draw in range(values.shape[0]):
        for t in range(item.size):
            s_left, s_right = left[draw, item[t]], right[draw, item[t]]
            half = abs(size[draw, t])
            moved = -half * s_left if side[draw, t] * (s_left + s_right) < s_left else half * s_right
            values[draw, t] += _ROOT_2_PI * (s_left - s_right) + moved


@compiled
def note_above(beaten: NDArray[np.bool_], log_ratio: FloatArray, item: IntArray) -> None:
    """Note in `beaten` (draw, item) which targets a token (draw, token) is above."""
    for draw in range(log_ratio.shape[0]):
        for t in range(item.size):
            if log_ratio[draw, t] > 0:
                beaten[draw, item[t]] = True


@compiled
def log_none_above(
    mean: FloatArray, left: FloatArray, right: FloatArray, item: IntArray, n_tokens: FloatArray
) -> FloatArray:
    """Log-probability that no token is above its item's target, (draw, item).

    `mean` has shape (draw, token); each stands for `n_tokens`, with residuals of scales `left` and `right`, which have
    shape (draw, item).
    """
    found = np.zeros(left.shape)
    for draw in range(mean.shape[0]):
        for t in range(item.size):
            i = item[t]
            s_left, s_right = left[draw, i], right[draw, i]
            reach = -mean[draw, t] - _ROOT_2_PI * (s_left - s_right)
            if reach > _NEVER * s_right:
                continue
            if reach >= 0:
                above = s_right / (s_left + s_right) * erfc(reach / (s_right * sqrt(2.0)))
                found[draw, i] += n_tokens[t] * log1p(-above)
            else:
                below = s_left / (s_left + s_right) * erfc(-reach / (s_left * sqrt(2.0)))
                found[draw, i] += n_tokens[t] * log(below + 1e-300)
    return found
