r"""Standard errors clustered two ways, over people and over items, and their intervals.

With scores u of the answers (what each adds to an estimate's error) and clusters of people (U), of items (I) and of
both together (P)

.. math::

    V = V_U + V_I - V_P, \qquad
    V_C = \frac{|C|}{|C| - 1} \sum_{c \in C} \Big(\sum_{i \in c} u_i\Big)^2 .

In a small study V may come out below one of its parts, even below 0; the larger of :math:`V_U` and :math:`V_I` is then
taken. Source: Cameron, Gelbach and Miller (2011), Robust inference with multiway clustering.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.checks import check_numbers
from shannon_game.estimators.display import Result
from shannon_game.estimators.errors import InputError


@dataclass(frozen=True, eq=False)
class Clusters:
    """People and items of every answer, numbered from 0."""

    person: NDArray[np.int64]
    place: NDArray[np.int64]
    n_people: int
    n_items: int

    def standard_errors(self, scores: FloatArray) -> tuple[float, float, float]:
        """Standard error over both, over people alone, and over items alone; NaN where there is one cluster."""
        both = np.unique(self.person * self.n_items + self.place, return_inverse=True)[1]
        people, items, pairs = (_variance(scores, each) for each in (self.person, self.place, both))
        # np.maximum keeps a NaN, which max() may lose
        whole = np.maximum(people + items - pairs, np.maximum(people, items))
        return float(np.sqrt(whole)), float(np.sqrt(people)), float(np.sqrt(items))

    def half_width(self, se: float, probability: float) -> float:
        """Half of Student's interval, with the smaller number of clusters, minus 1, as degrees of freedom."""
        return t_half_width(se, min(self.n_people, self.n_items) - 1, probability)


def clusters(participant: ArrayLike, item: ArrayLike, size: int) -> Clusters:
    """Number the people and items of answers."""
    person, place = (codes(each, name, size) for name, each in (("participant", participant), ("item", item)))
    return Clusters(person, place, int(person.max()) + 1, int(place.max()) + 1)


def answer_numbers(given: ArrayLike, field: str) -> FloatArray:
    """Read one number an answer."""
    numbers = np.asarray(given, dtype=float)
    if numbers.ndim != 1 or numbers.size == 0:
        raise InputError(f"has shape {numbers.shape}; one number an answer, and at least one, is needed", field=field)
    if not np.isfinite(numbers).all():
        at = int(np.flatnonzero(~np.isfinite(numbers))[0])
        raise InputError(f"is {numbers[at]} at answer {at}, should be finite", field=field)
    return numbers


def t_half_width(se: float, freedom: int, interval: float = 0.9) -> float:
    """Half of the width of an interval by Student's t; NaN without a degree of freedom."""
    check_numbers({"probability": interval}, above=0, below=1)
    return float(se * stdtrit(freedom, (1 + interval) / 2)) if freedom > 0 else np.nan


def wilson_interval(n_hits: ArrayLike, n: ArrayLike, *, probability: float = 0.9) -> tuple[FloatArray, FloatArray]:
    r"""Wilson's (1927) score interval of a share, never outside [0, 1] and never empty.

    .. math:: \frac{\hat p + z^2 / 2n \pm z \sqrt{\hat p (1 - \hat p) / n + z^2 / 4 n^2}}{1 + z^2 / n}

    Examples
    --------
    >>> lower, upper = guesses.wilson_interval(8, 20)
    >>> round(float(lower), 3), round(float(upper), 3)
    (0.242, 0.581)
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


def codes(names: ArrayLike, field: str, size: int, of: str = "values") -> NDArray[np.int64]:
    """Number the groups of `size` answers, from 0."""
    given = np.asarray(names)
    if given.shape != (size,):
        raise InputError(f"has shape {given.shape}, `{of}` has {(size,)}", field=field)
    return np.unique(given.astype(str) if given.dtype == object else given, return_inverse=True)[1]


def _variance(scores: FloatArray, cluster: NDArray[np.int64]) -> float:
    """Variance of an estimate, clusters being what was sampled; NaN for one cluster."""
    total = np.bincount(cluster, weights=scores)
    n = total.size
    return float(n / (n - 1) * (total**2).sum()) if n > 1 else float("nan")


@dataclass(frozen=True, repr=False)
class CrossedMean(Result):
    """A mean over answers, people and items both being samples.

    Attributes
    ----------
    se : float
        Clustered over people and over items; NaN where there is one of either.
    lower, upper : float
        Student's interval with as many degrees of freedom as the smaller number of clusters, minus 1.
    se_participants, se_items : float
        Clustered one way only; NaN where there is one.
    """

    mean: float
    se: float
    lower: float
    upper: float
    se_participants: float
    se_items: float
    n_responses: int
    n_participants: int
    n_items: int


def crossed_mean(
    values: ArrayLike, participant: ArrayLike, item: ArrayLike, *, probability: float = 0.9
) -> CrossedMean:
    """Mean of finite values, with a standard error clustered over people and items (:mod:`two ways <.clusters>`).

    `values`, `participant` and `item` have one value per response.

    Examples
    --------
    >>> documents.crossed_mean([1.0, 2.0, 3.0, 5.0], ["a", "a", "b", "b"], [0, 1, 0, 1])
    CrossedMean(mean=2.75, se=1.25, lower=-5.142, upper=10.64, ...)
    """
    numbers = answer_numbers(values, "values")
    of = clusters(participant, item, numbers.size)
    mean = float(numbers.mean())
    se, se_participants, se_items = of.standard_errors((numbers - mean) / numbers.size)
    half = of.half_width(se, probability)
    return CrossedMean(
        mean=mean,
        se=se,
        lower=mean - half,
        upper=mean + half,
        se_participants=se_participants,
        se_items=se_items,
        n_responses=numbers.size,
        n_participants=of.n_people,
        n_items=of.n_items,
    )
