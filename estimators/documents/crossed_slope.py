r"""Slope of a value an answer on a number an answer, within people, with a standard error that knows people and items.

Every person has a level of their own: :math:`\tilde y` and :math:`\tilde x` are the values less the means of the
person's answers (and, with levels of items, what a regression on people and items leaves of them), the slope is
:math:`\hat\beta = \sum \tilde x \tilde y / \sum \tilde x^2`, and its standard error is clustered two ways
(:mod:`shannon_game.estimators.documents.clusters`), with scores
:math:`u = \tilde x (\tilde y - \hat\beta \tilde x) / \sum \tilde x^2`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.display import Result
from shannon_game.estimators.documents.clusters import answer_numbers, clusters
from shannon_game.estimators.errors import InputError

_MOST_SWEEPS = 10_000


@dataclass(frozen=True, repr=False)
class CrossedSlope(Result):
    """A slope over answers, people and items both being samples.

    Attributes
    ----------
    slope, se : float
        In the value's unit by unit of x; `se` is NaN where there is one person or item.
    lower, upper : float
        Student's interval with as many degrees of freedom as the smaller number of clusters, minus 1.
    item_share : float
        Share of the variance of x, within people, that lies between items: near 1 where all people met the items in one
        order, so that a slope cannot be told from a difference of items.
    """

    slope: float
    se: float
    lower: float
    upper: float
    n_responses: int
    n_participants: int
    n_items: int
    item_share: float


def crossed_slope(
    values: ArrayLike,
    x: ArrayLike,
    participant: ArrayLike,
    item: ArrayLike,
    *,
    item_levels: bool = False,
    probability: float = 0.9,
) -> CrossedSlope:
    """Least-squares slope of values on x within people, with a standard error clustered over people and items.

    With `item_levels` every item has a level, too: the slope is then that of people who met an item at different x.

    Examples
    --------
    >>> documents.crossed_slope([1.0, 2.0, 2.0, 4.0], [0, 1, 0, 1], ["a", "a", "b", "b"], [0, 1, 1, 0]).slope
    1.5
    """
    y, at = (answer_numbers(each, name) for name, each in (("values", values), ("x", x)))
    if y.shape != at.shape:
        raise InputError(f"has shape {at.shape}, `values` has {y.shape}", field="x")
    of = clusters(participant, item, y.size)
    person, place = of.person, of.place
    at = _within(at, person)
    of_item = np.bincount(place, weights=at) / np.bincount(place)
    spread = float(at @ at)
    item_share = float((of_item[place] ** 2).sum() / spread) if spread > 0 else float("nan")
    y, at = _without_levels(y, person, place, item_levels), _without_levels(at, person, place, item_levels)
    squares = float(at @ at)
    if squares <= 1e-10 * max(spread, 1e-10):
        what = "every person, once items have levels" if item_levels and spread > 0 else "every person"
        raise InputError(f"is the same in all answers of {what}, so that nothing has a slope", field="x")
    slope = float(at @ y) / squares
    se, _, _ = of.standard_errors(at * (y - slope * at) / squares)
    half = of.half_width(se, probability)
    return CrossedSlope(
        slope=slope,
        se=se,
        lower=slope - half,
        upper=slope + half,
        n_responses=y.size,
        n_participants=of.n_people,
        n_items=of.n_items,
        item_share=item_share,
    )


def _without_levels(
    values: FloatArray, person: NDArray[np.int64], place: NDArray[np.int64], item_levels: bool
) -> FloatArray:
    """What people, and items where they have levels, leave of the values: alternating projections."""
    left = _within(values, person)
    if not item_levels:
        return left
    scale = max(float(np.abs(left).max()), np.finfo(float).tiny)
    for _ in range(_MOST_SWEEPS):
        after = _within(_within(left, place), person)
        change, left = float(np.abs(after - left).max()), after
        if change <= 1e-12 * scale:
            break
    return left


def _within(values: FloatArray, person: NDArray[np.int64]) -> FloatArray:
    """Values less the mean of the person's."""
    mean: FloatArray = np.bincount(person, weights=values) / np.bincount(person)
    return values - mean[person]
