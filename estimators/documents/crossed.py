"""Mean of answers that people and items share, with a standard error that knows both."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from estimators.display import Result
from estimators.errors import InputError, require_packages

__all__ = ["CrossedMean", "crossed_mean"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class CrossedMean(Result):
    """A mean over answers, people and items both being samples.

    Attributes
    ----------
    mean : float
    se : float
        Clustered over people and over items; NaN where there is one of either.
    lower, upper : float
        Student's interval with as many degrees of freedom as the smaller number of clusters, minus 1.
    se_participants, se_items : float
        Clustered one way only; NaN where there is one.
    n_responses, n_participants, n_items : int

    Examples
    --------
    >>> from estimators import documents
    >>> print(documents.crossed_mean([1.0, 2.0, 3.0, 5.0], ["a", "a", "b", "b"], [0, 1, 0, 1]).describe())
    mean             2.75
    se               1.25
    lower            -5.142
    upper            10.64
    se_participants  1.25
    se_items         0.75
    n_responses      4
    n_participants   2
    n_items          2
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

    def headline(self) -> str:
        """Say the mean, its interval, and of how many answers it is."""
        return f"{self.mean:.3f} [{self.lower:.3f}, {self.upper:.3f}] over {self.n_responses} answers"


def crossed_mean(
    values: ArrayLike, participant: ArrayLike, item: ArrayLike, *, probability: float = 0.9
) -> CrossedMean:
    r"""Mean of a value an answer, with a standard error clustered over people and items (two ways).

    With residuals e and clusters of people (U), of items (I) and of both together (P),

    .. math::

        V = V_U + V_I - V_P, \qquad
        V_C = \frac{|C|}{|C| - 1} \frac{1}{n^2} \sum_{c \in C} \Big(\sum_{i \in c} e_i\Big)^2

    Cameron, Gelbach and Miller (2011). In a small study V may come out below one of its parts, even below 0; the larger
    of :math:`V_U` and :math:`V_I` is then taken.

    Parameters
    ----------
    values : array_like, shape (response,)
        Finite.
    participant, item : array_like, shape (response,)
        Names or numbers.
    probability : float
        Of the interval.

    Returns
    -------
    CrossedMean

    Raises
    ------
    InputError
        If there is no value, one is not finite, shapes differ, or the probability is not between 0 and 1.

    Examples
    --------
    >>> from estimators import documents
    >>> found = documents.crossed_mean([1.0, 2.0, 3.0, 5.0], ["a", "a", "b", "b"], [0, 1, 0, 1])
    >>> found.mean, found.se_participants
    (2.75, 1.25)
    """
    numbers = np.asarray(values, dtype=float)
    if numbers.ndim != 1 or numbers.size == 0:
        raise InputError(f"has shape {numbers.shape}; one value an answer, and at least one, is needed", field="values")
    if not np.isfinite(numbers).all():
        at = int(np.flatnonzero(~np.isfinite(numbers))[0])
        raise InputError(f"is {numbers[at]} at answer {at}, should be finite", field="values")
    if not 0 < probability < 1:
        raise InputError(f"is {probability}, should be between 0 and 1", field="probability")
    person, place = (_codes(each, name, numbers.size) for name, each in (("participant", participant), ("item", item)))
    mean = float(numbers.mean())
    left = numbers - mean
    both = np.unique(person * (place.max() + 1) + place, return_inverse=True)[1]
    of_people, of_items, of_both = (_variance(left, each) for each in (person, place, both))
    n_people, n_items = int(person.max()) + 1, int(place.max()) + 1
    # np.maximum keeps a NaN, which max() may lose
    se = float(np.sqrt(np.maximum(of_people + of_items - of_both, np.maximum(of_people, of_items))))
    half = t_half_width(se, min(n_people, n_items) - 1, probability)
    return CrossedMean(
        mean=mean,
        se=se,
        lower=mean - half,
        upper=mean + half,
        se_participants=float(np.sqrt(of_people)),
        se_items=float(np.sqrt(of_items)),
        n_responses=numbers.size,
        n_participants=n_people,
        n_items=n_items,
    )


def _codes(names: ArrayLike, what: str, size: int) -> NDArray[np.int64]:
    given = np.asarray(names)
    if given.shape != (size,):
        raise InputError(f"has shape {given.shape}, `values` has {(size,)}", field=what)
    codes: NDArray[np.int64] = np.unique(given.astype(str) if given.dtype == object else given, return_inverse=True)[1]
    return codes


def _variance(left: FloatArray, cluster: NDArray[np.int64]) -> float:
    """Variance of the mean, clusters being what was sampled; NaN for one cluster."""
    total = np.bincount(cluster, weights=left)
    n = total.size
    return float(n / (n - 1) * (total**2).sum() / left.size**2) if n > 1 else np.nan


def t_half_width(se: float, freedom: int, interval: float = 0.9) -> float:
    """Half of the width of an interval by Student's t; NaN without a degree of freedom.

    Parameters
    ----------
    se : float
        Standard error, in the estimate's unit.
    freedom : int
    interval : float
        Stated coverage.

    Returns
    -------
    float

    Examples
    --------
    >>> round(t_half_width(1.0, 10**6, 0.95), 2)
    1.96
    """
    require_packages(("scipy",), "cloze", source="an interval")
    from scipy.special import stdtrit  # noqa: PLC0415 - importing estimators needs no scipy

    return float(se * stdtrit(freedom, (1 + interval) / 2)) if freedom > 0 else np.nan
