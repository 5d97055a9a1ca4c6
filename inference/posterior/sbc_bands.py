"""Whether ranks are uniform: their empirical CDF within bands that hold all of it at once.

Säilynoja, Bürkner and Vehtari (2022); ArviZ has such bands for its plots, and no p-value.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binom, poisson

from shannon_game.estimators.arrays import FloatArray, IntArray
from shannon_game.estimators.checks import check_numbers
from shannon_game.estimators.display import Result
from shannon_game.estimators.errors import InputError


@dataclass(frozen=True, eq=False)
class EcdfBand:
    """Fewest and most ranks below each point, both inside; `level` is the smallest tail probability inside."""

    n_fits: int
    n_ranked: int
    probability: float
    point: FloatArray
    lower: IntArray
    upper: IntArray
    level: float


@lru_cache(maxsize=64)
def ecdf_band(n_fits: int, n_ranked: int, probability: float = 0.95) -> EcdfBand:
    r"""Compute simultaneous bands for the empirical CDF of uniform ranks.

    The count of ranks below i is binomial; the band holds, at every i, the counts whose two-sided tail probability is
    at least :math:`\gamma`, and :math:`\gamma` is the largest for which all counts are inside with the probability
    asked for. That probability is exact, not simulated: the counts are those of a Poisson process given its
    total, so that they follow from i to i + 1 by one convolution.
    """
    check_numbers({"n_fits": n_fits, "n_ranked": n_ranked}, at_least=1)
    if not 0 < probability < 1:
        raise InputError(f"is {probability}, should be between 0 and 1", field="probability")
    tails = _tail_probabilities(n_fits, n_ranked)
    levels = np.unique(tails)
    # the wider the band (the smaller the level), the more it holds: find the largest level that holds enough
    low, high = 0, levels.size
    while high - low > 1:
        middle = (low + high) // 2
        if _probability_inside(tails >= levels[middle]) >= probability:
            low = middle
        else:
            high = middle
    inside = tails >= levels[low]
    return EcdfBand(
        n_fits=n_fits,
        n_ranked=n_ranked,
        probability=_probability_inside(inside),
        point=np.arange(1, n_ranked + 1) / (n_ranked + 1),
        lower=inside.argmax(axis=1),
        upper=n_fits - inside[:, ::-1].argmax(axis=1),
        level=float(levels[low]),
    )


@lru_cache(maxsize=16)
def _tail_probabilities(n_fits: int, n_ranked: int) -> FloatArray:
    """Two-sided tail probability of every count (columns) of ranks below every i (rows)."""
    point = np.arange(1, n_ranked + 1)[:, None] / (n_ranked + 1)
    count = np.arange(n_fits + 1)[None, :]
    tails: FloatArray = 2 * np.minimum(binom.cdf(count, n_fits, point), binom.sf(count - 1, n_fits, point))
    return tails


def _probability_inside(inside: NDArray[np.bool_]) -> float:
    """Probability that all counts of uniform ranks are where `inside` (point, count) allows."""
    n_fits = inside.shape[1] - 1
    mean = n_fits / (inside.shape[0] + 1)
    step = poisson.pmf(np.subtract.outer(np.arange(n_fits + 1), np.arange(n_fits + 1)), mean)
    mass = np.zeros(n_fits + 1)
    mass[0] = 1.0
    for allowed in inside:
        mass = (step @ mass) * allowed
    return float((step @ mass)[n_fits] / poisson.pmf(n_fits, n_fits))


def ecdf_counts(ranks: ArrayLike, n_ranked: int) -> IntArray:
    """Number of ranks below i, for i = 1, ..., n_ranked."""
    found = np.asarray(ranks)
    if not found.size or found.min() < 0 or found.max() > n_ranked or (found != np.rint(found)).any():
        raise InputError(f"should be whole numbers from 0 to {n_ranked}, and at least one", field="ranks")
    return np.cumsum(np.bincount(found.astype(np.intp).ravel(), minlength=n_ranked + 1))[:-1].astype(np.intp)


@dataclass(frozen=True, repr=False)
class SbcVerdict(Result):
    """Whether ranks are uniform.

    `rank_mean` is the mean of rank / n_ranked; above .5 the truth tends to be larger than the posterior. `deviation` is
    the largest distance of the ECDF from the diagonal as a multiple of the distance of the band there: above 1 is
    outside. `p_value` is the probability that uniform ranks stray as far, over all points together.
    """

    n_fits: int
    rank_mean: float
    deviation: float
    p_value: float
    inside: bool


def judge_ranks(ranks: ArrayLike, n_ranked: int, probability: float = 0.95) -> SbcVerdict:
    """Judge ranks from 0 to `n_ranked`, shape (fit,), by their ECDF and :func:`ecdf_band`."""
    counts = ecdf_counts(ranks, n_ranked)
    values = np.asarray(ranks, dtype=float).ravel()
    band = ecdf_band(values.size, n_ranked, probability)
    tails = _tail_probabilities(values.size, n_ranked)
    rarest = float(tails[np.arange(n_ranked), counts].min())
    middle = values.size * band.point
    # a band can end at a count of 0 or of all, and then nothing can be beyond it
    room = np.where(counts >= middle, band.upper - middle, middle - band.lower)
    return SbcVerdict(
        n_fits=values.size,
        rank_mean=float(values.mean() / n_ranked),
        deviation=float((np.abs(counts - middle) / np.maximum(room, 1e-12)).max()),
        p_value=1 - _probability_inside(tails > rarest),
        inside=bool(((band.lower <= counts) & (counts <= band.upper)).all()),
    )
