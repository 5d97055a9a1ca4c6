"""Intervals of a share of independent answers."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.checks import check_numbers
from shannon_game.estimators.errors import InputError


def wilson_interval(n_hits: ArrayLike, n: ArrayLike, *, probability: float = 0.95) -> tuple[FloatArray, FloatArray]:
    r"""Wilson's (1927) score interval of a share, never outside [0, 1] and never empty.

    .. math:: \frac{\hat p + z^2 / 2n \pm z \sqrt{\hat p (1 - \hat p) / n + z^2 / 4 n^2}}{1 + z^2 / n}

    Examples
    --------
    >>> lower, upper = wilson_interval(8, 20)
    >>> round(float(lower), 3), round(float(upper), 3)
    (0.219, 0.613)
    """
    hits, total = np.asarray(n_hits, dtype=float), np.asarray(n, dtype=float)
    if not ((hits >= 0) & (hits <= total) & (total > 0)).all():
        raise InputError("should have 0 <= n_hits <= n and n > 0 everywhere", field="n_hits, n")
    check_numbers({"probability": probability}, above=0, below=1)
    z = NormalDist().inv_cdf((1 + probability) / 2)
    share = hits / total
    middle = share + z**2 / (2 * total)
    half = z * np.sqrt(share * (1 - share) / total + z**2 / (4 * total**2))
    scale = 1 + z**2 / total
    # the exact limits at 0 and 1 are those values; rounding must not leave a hair beyond or short of them
    lower = np.where(hits == 0, 0.0, (middle - half) / scale)
    upper = np.where(hits == total, 1.0, (middle + half) / scale)
    return lower, upper
