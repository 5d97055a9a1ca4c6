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

import numpy as np
from numpy.typing import ArrayLike, NDArray

from estimators.errors import InputError, require_packages

__all__ = ["Clusters", "answer_numbers", "clusters", "t_half_width"]

FloatArray = NDArray[np.float64]


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
    person, place = (_codes(each, name, size) for name, each in (("participant", participant), ("item", item)))
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
    if not 0 < interval < 1:
        raise InputError(f"is {interval}, should be between 0 and 1", field="probability")
    require_packages(("scipy",), "cloze", source="an interval")
    from scipy.special import stdtrit  # noqa: PLC0415 - importing estimators needs no scipy

    return float(se * stdtrit(freedom, (1 + interval) / 2)) if freedom > 0 else np.nan


def _codes(names: ArrayLike, field: str, size: int) -> NDArray[np.int64]:
    given = np.asarray(names)
    if given.shape != (size,):
        raise InputError(f"has shape {given.shape}, `values` has {(size,)}", field=field)
    codes: NDArray[np.int64] = np.unique(given.astype(str) if given.dtype == object else given, return_inverse=True)[1]
    return codes


def _variance(scores: FloatArray, cluster: NDArray[np.int64]) -> float:
    """Variance of an estimate, clusters being what was sampled; NaN for one cluster."""
    total = np.bincount(cluster, weights=scores)
    n = total.size
    return float(n / (n - 1) * (total**2).sum()) if n > 1 else float("nan")
