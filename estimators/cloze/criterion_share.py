"""Share of contexts that a model would have to answer as people do for its distances to be distributed like theirs.

With a random share k of a model's distances replaced by those between halves of people, the distribution of the
distances is (1 - k) F + k H, of the model's F and the people's H. The differences of their means and of their
distribution functions (Kolmogorov-Smirnov), the area between them (Wasserstein) and how far P(model > people) is from
1/2 (Mann-Whitney) then all shrink by the factor 1 - k: whatever D is at k = 0, a margin m is reached at k = 1 - m / D.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.checks import check_numbers
from shannon_game.estimators.display import Result
from shannon_game.estimators.errors import InputError, unknown_choice

CRITERIA = ("mean", "kolmogorov_smirnov", "wasserstein", "mann_whitney")
"""What is compared: means; distribution functions at their largest difference, and the area between them; ranks."""


@dataclass(frozen=True, eq=False, repr=False)
class CriterionShare(Result):
    """Share of contexts to improve, by one criterion.

    Parameters
    ----------
    share : float
        1 - margin / distance; 0 for a model within the margin.
    distance : float
        Of the model's distances from the people's, by the criterion.
    margin : float
        Distance that counts as none.
    """

    share: float
    distance: float
    margin: float
    criterion: str


def criterion_share(model: ArrayLike, halves: ArrayLike, *, criterion: str, margin: float) -> CriterionShare:
    """Share of contexts that a model has to answer as people do, by one criterion of :data:`CRITERIA`.

    `model` and `halves`, (context,), are distances to one half of people, of the model and of the other half; `margin`
    is the distance that counts as none, such as that of a test (:func:`criterion_margin`).

    Examples
    --------
    >>> cloze.criterion_share([0.7, 0.6, 0.8], [0.4, 0.5, 0.5], criterion="mean", margin=0.1).share.__round__(3)
    0.571
    """
    check_numbers({"margin": margin}, above=0)
    found = criterion_distance(model, halves, criterion)
    share = 1 - margin / found if found > margin else 0.0
    return CriterionShare(share, found, margin, criterion)


def criterion_distance(model: ArrayLike, halves: ArrayLike, criterion: str) -> float:
    """Distance between the distributions of two sets of distances, by one criterion of :data:`CRITERIA`."""
    one, other = _distances(model, halves)
    if criterion not in CRITERIA:
        raise unknown_choice("criterion", criterion, CRITERIA)
    if criterion == "mean":
        return float(abs(one.mean() - other.mean()))
    if criterion == "wasserstein":
        return float(np.abs(np.sort(one) - np.sort(other)).mean())
    below, upto = _shares_below(one, other), _shares_below(one, other, including=True)
    if criterion == "mann_whitney":
        return float(abs((below + upto).mean() / 2 - 0.5))
    everywhere = np.concatenate([one, other])
    gaps = _shares_below(everywhere, one, including=True) - _shares_below(everywhere, other, including=True)
    return float(np.abs(gaps).max())


def criterion_margin(criterion: str, n: int, *, level: float = 0.05) -> float:
    """Smallest distance of two samples of n values that a two-sided test of equal distributions rejects.

    Of Kolmogorov and Smirnov, sqrt(-ln(level / 2) / 2) sqrt(2 / n); of Mann and Whitney, z sqrt((2 n + 1) / (12 n n)):
    both by their large-sample forms, for samples that are independent.

    Examples
    --------
    >>> round(cloze.criterion_margin("kolmogorov_smirnov", 2687), 4)
    0.0371
    """
    tested = ("kolmogorov_smirnov", "mann_whitney")
    if criterion not in tested:
        raise unknown_choice("criterion", criterion, tested)
    check_numbers({"n": n}, at_least=1)
    check_numbers({"level": level}, above=0, below=1)
    if criterion == "kolmogorov_smirnov":
        return float(np.sqrt(-np.log(level / 2) / 2) * np.sqrt(2 / n))
    return float(NormalDist().inv_cdf(1 - level / 2) * np.sqrt((2 * n + 1) / (12 * n * n)))


def _distances(model: ArrayLike, halves: ArrayLike) -> tuple[FloatArray, FloatArray]:
    one, other = np.asarray(model, dtype=float), np.asarray(halves, dtype=float)
    if one.shape != other.shape or one.ndim != 1 or not len(one):
        raise InputError(f"has shape {other.shape}, the model {one.shape}", field="halves")
    if np.isnan(one - other).any():
        raise InputError("holds NaN; leave those contexts out", field="model or halves")
    return one, other


def _shares_below(points: FloatArray, values: FloatArray, *, including: bool = False) -> FloatArray:
    """Share of the values below each point, or not above it."""
    found = np.searchsorted(np.sort(values), points, side="right" if including else "left")
    return np.asarray(found / len(values))


@dataclass(frozen=True, eq=False, repr=False)
class NeededShare(Result):
    """Share of contexts to improve.

    Parameters
    ----------
    share : float
        1 - margin / gap; 0 for a model within the margin.
    lower, upper : float
        Of the bootstrap over groups of contexts.
    gap : float
        Mean TVD of the model - mean TVD between halves of people.
    draws : ndarray of float, shape (replicate,)
    """

    share: float
    lower: float
    upper: float
    gap: float
    margin: float
    draws: FloatArray


def needed_share(
    model: ArrayLike,
    halves: ArrayLike,
    groups: ArrayLike,
    *,
    margin: float,
    rng: np.random.Generator,
    n_replicates: int = 2000,
    probability: float = 0.9,
) -> NeededShare:
    """Share of contexts that a model has to answer as people do, for its mean TVD to come near that between people.

    Replacing a random share *k* leaves (1 - k) of the gap between the mean TVDs, so that the share needed is
    1 - margin / gap; at no share below one are both equal. The interval resamples groups (passages) of contexts.
    `model` and `halves`, (context,), are TVDs to one half of people, of the model and of the other half.

    Examples
    --------
    >>> found = cloze.needed_share(
    ...     [0.7, 0.6, 0.8], [0.4, 0.4, 0.5], groups=["a", "a", "b"], margin=0.05, rng=np.random.default_rng(0)
    ... )
    >>> round(found.share, 3)
    0.812
    """
    model, halves = _distances(model, halves)
    check_numbers({"margin": margin}, above=0)
    gaps = model - halves
    _, group = np.unique(np.asarray(groups), return_inverse=True)
    size = np.bincount(group)
    sums = np.bincount(group, weights=gaps)
    drawn = rng.integers(len(size), size=(n_replicates, len(size)))
    means = sums[drawn].sum(axis=1) / size[drawn].sum(axis=1)
    draws = _share(means, margin)
    tail = (1 - probability) / 2
    lower, upper = np.quantile(draws, [tail, 1 - tail]) if len(size) > 1 else (np.nan, np.nan)
    gap = float(gaps.mean())
    return NeededShare(float(_share(np.array([gap]), margin)[0]), float(lower), float(upper), gap, margin, draws)


def _share(gap: FloatArray, margin: float) -> FloatArray:
    return np.where(gap > margin, 1 - margin / np.maximum(gap, margin), 0.0)
