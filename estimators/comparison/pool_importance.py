"""Equation 5 on a token pool: draws of the generator and reports, without free answers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from estimators.comparison.pool_sums import PoolSums, by_item, people_groups, pool_errors, pool_sums
from estimators.comparison.token_pool import TokenPool
from estimators.display import Result
from estimators.errors import InputError

__all__ = ["PoolImportance", "pool_importance"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class PoolImportance(Result):
    """People's mean loss gap by importance sampling.

    Attributes
    ----------
    gap_nats : float
        Mean over the items used.
    se_contexts_nats, se_asked_nats : float
        Standard error for contexts of which the items are a sample, and for these very items
        (:class:`~estimators.comparison.pool_sums.PoolErrors`).
    freedom : int
        Of Student's t.
    n_left_out : int
        Items without a draw whose log-ratio is known.
    item : ndarray of int, shape (item,)
        Those used.
    item_gap_nats : ndarray, shape (item,)

    Examples
    --------
    >>> from estimators import comparison
    >>> from estimators.comparison.examples import token_pool_example
    >>> comparison.pool_importance(token_pool_example()).n_left_out
    0
    """

    gap_nats: float
    se_contexts_nats: float
    se_asked_nats: float
    freedom: int
    n_left_out: int
    item: NDArray[np.intp]
    item_gap_nats: FloatArray

    def headline(self) -> str:
        """The gap and its error."""
        return f"gap {self.gap_nats:.3f} +- {self.se_contexts_nats:.3f} nats over {self.item.size} items"


def pool_importance(pool: TokenPool, *, n_groups: int = 20) -> PoolImportance:
    """Estimate people's mean loss gap from draws and reports by equation 5, with errors over items and people.

    Several reports on one token are averaged as log-ratios first. Free answers are not used.

    Parameters
    ----------
    pool : TokenPool
    n_groups : int
        Groups of people that are left out in turn for the standard error.

    Returns
    -------
    PoolImportance

    Raises
    ------
    InputError
        If no draw is known, or fewer than two people reported.

    Examples
    --------
    Draws of g = (.5, .5) in just these shares, h = (.8, .2), y the first token:

    >>> import numpy as np
    >>> from estimators import comparison
    >>> pool = comparison.token_pool(
    ...     item=[0, 0], offset_nats=[0, 0], is_target=[True, False], n_drawn=[5, 5],
    ...     report_token=[1, 1], report_person=[0, 1], report_log_ratio=np.log([0.25, 0.25]),
    ... )
    >>> round(comparison.pool_importance(pool).gap_nats, 4)
    -0.47
    """
    TokenPool.require(pool=pool)
    if pool.n_people < 2:
        raise InputError("has answers of one person or none, should have those of two at least", field="pool")
    sums = pool_sums(pool, pool.report_log_ratio)
    value, variance = _log_means(sums)
    used = np.isfinite(value[0])
    if not used.any():
        raise InputError("has no draw whose log-ratio to the target is known", field="pool")
    group = people_groups(pool.n_people, n_groups)
    left = _log_means(pool_sums(pool, pool.report_log_ratio, group))[0]
    gap = value[0, used]
    mean = float(gap.mean())
    change = np.where(np.isfinite(left), left - value, 0.0)[:, used]
    errors = pool_errors((gap - mean) / gap.size, change, variance[0, used], int(group.max()) + 1)
    return PoolImportance(
        gap_nats=mean,
        se_contexts_nats=errors.se_contexts_nats,
        se_asked_nats=errors.se_asked_nats,
        freedom=errors.freedom,
        n_left_out=int((~used).sum()),
        item=np.flatnonzero(used),
        item_gap_nats=gap,
    )


def _log_means(sums: PoolSums) -> tuple[FloatArray, FloatArray]:
    """Log-mean weight of each item and its variance over draws, (group, item); NaN where nothing is known."""
    pool, start = sums.pool, sums.start
    known = np.where(np.isnan(sums.log_ratio), 0.0, pool.n_drawn)
    log_weight = np.where(known > 0, pool.offset_nats + np.nan_to_num(sums.log_ratio), -np.inf)
    top = np.maximum.reduceat(log_weight, start, axis=-1)
    top = np.where(np.isfinite(top), top, 0.0)
    weight = known * np.exp(log_weight - top[:, pool.item])
    n = by_item(known, start)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = by_item(weight, start) / n
        square = by_item(known * (np.exp(log_weight - top[:, pool.item]) - mean[:, pool.item]) ** 2, start)
        value = np.where(n > 0, np.log(mean) + top, np.nan)
        variance = np.where(n > 0, square / (n * mean) ** 2, 0.0)
    return value, variance
