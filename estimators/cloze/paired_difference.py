"""Mean change of a number that every context has twice, such as a distance before and after training."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from shannon_game.estimators.checks import check_numbers
from shannon_game.estimators.display import Result
from shannon_game.estimators.errors import InputError


@dataclass(frozen=True, repr=False)
class PairedDifference(Result):
    """A mean change over contexts, with a bootstrap interval over groups of them.

    Parameters
    ----------
    before, after, difference : float
        Means over contexts; ``difference`` is after minus before.
    lower, upper : float
        Interval of the difference, NaN with a single group.
    p_falls : float
        Share of the bootstrap samples in which the mean falls.
    """

    before: float
    after: float
    difference: float
    lower: float
    upper: float
    p_falls: float
    n_contexts: int
    n_groups: int


def paired_difference(
    before: ArrayLike, after: ArrayLike, group: ArrayLike, *, seed: int, n_bootstrap: int = 10_000, level: float = 0.9
) -> PairedDifference:
    r"""Estimate a mean change over contexts that come in groups, such as the texts they are from.

    Groups are drawn with replacement, each with all its contexts; with :math:`D_g` the sum of the changes in group
    :math:`g` and :math:`n_g` its contexts, a sample's mean is :math:`\sum_g D_g / \sum_g n_g`, and the interval is
    between two quantiles of it with equal tails (the cluster bootstrap; Davison and Hinkley 1997, section 3.8).
    `before`, `after` and `group` have one value per context.

    Examples
    --------
    >>> found = cloze.paired_difference([0.6, 0.7, 0.8], [0.5, 0.7, 0.6], group=[1, 1, 2], seed=1)
    >>> round(found.lower, 3), round(found.upper, 3)
    (-0.2, -0.05)
    """
    first, second = (np.asarray(values, dtype=np.float64) for values in (before, after))
    labels = np.asarray(group)
    if not (first.ndim == 1 and first.shape == second.shape == labels.shape and first.size):
        problem = f"have shapes {first.shape}, {second.shape}, {labels.shape}; one value per context, at least one"
        raise InputError(problem, field="before, after, group")
    if not np.isfinite(first - second).all():
        raise InputError("hold a value that is not finite", field="before, after")
    check_numbers({"level": level}, above=0, below=1)
    _, number = np.unique(labels, return_inverse=True)
    sums, sizes = np.bincount(number, weights=second - first), np.bincount(number)
    n_groups = len(sums)
    lower = upper = p_falls = float("nan")
    if n_groups > 1:
        times = np.random.default_rng(seed).multinomial(n_groups, np.full(n_groups, 1 / n_groups), size=n_bootstrap)
        means = (times @ sums) / (times @ sizes)
        lower, upper = (float(end) for end in np.quantile(means, [(1 - level) / 2, (1 + level) / 2]))
        p_falls = float((means < 0).mean())
    return PairedDifference(
        before=float(first.mean()),
        after=float(second.mean()),
        difference=float((second - first).mean()),
        lower=lower,
        upper=upper,
        p_falls=p_falls,
        n_contexts=int(first.size),
        n_groups=n_groups,
    )
