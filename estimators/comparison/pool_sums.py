"""Sums over the reports and answers of a token pool, whole and without groups of people; errors made of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from estimators.comparison.token_pool import TokenPool

__all__ = ["PoolErrors", "PoolSums", "by_item", "even_slopes", "people_groups", "pool_errors", "pool_sums"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

_MEDIAN_VARIANCE = 1.4  # of ln of a sample's median absolute value, times its size, about a normal's
_LEAST = 1e-3


@dataclass(frozen=True, eq=False)
class PoolSums:
    """Sums of a pool; the leading axis is what was left out: nothing, or one group of people after another."""

    pool: TokenPool
    start: IntArray
    n_reports: FloatArray
    log_ratio: FloatArray
    n_answered: FloatArray
    noise: FloatArray


@dataclass(frozen=True, eq=False)
class PoolErrors:
    """Standard errors of a mean over items."""

    se_contexts_nats: float
    se_asked_nats: float
    freedom: int
    item_variance: FloatArray


def pool_sums(pool: TokenPool, log_ratio: FloatArray, group: IntArray | None = None) -> PoolSums:
    """Sum the reports and answers of a pool, of all people or without one group of them after another."""
    size = pool.item.size
    whole = [np.bincount(pool.report_token, weight, size)[None] for weight in (None, log_ratio, log_ratio**2)]
    answered = np.bincount(pool.answer_token, minlength=size)[None].astype(float)
    if group is not None:
        n = int(group.max()) + 1
        of_report = group[pool.report_person] * size + pool.report_token
        whole = [
            total - np.bincount(of_report, weight, n * size).reshape(n, size)
            for total, weight in zip(whole, (None, log_ratio, log_ratio**2), strict=True)
        ]
        of_answer = group[pool.answer_person] * size + pool.answer_token
        answered = answered - np.bincount(of_answer, minlength=n * size).reshape(n, size)
    count, total, square = whole
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.where(pool.is_target, 0.0, np.where(count > 0, total / count, np.nan))
        left = np.where(count > 1, square - total**2 / count, 0.0).sum(axis=1, keepdims=True)
        noise = left / np.maximum(count - 1, 0).sum(axis=1, keepdims=True)
    start = np.flatnonzero(np.diff(pool.item, prepend=-1))
    return PoolSums(pool, start, count.astype(float), mean, answered, noise)


def by_item(values: NDArray[np.floating], start: IntArray) -> FloatArray:
    """Sums over the tokens of each item, (group, token) to (group, item)."""
    sums: FloatArray = np.add.reduceat(values, start, axis=-1)
    return sums


def people_groups(n_people: int, n_groups: int) -> IntArray:
    """Groups of people of nearly equal size, (person,)."""
    return np.arange(n_people) % min(n_people, n_groups)


def even_slopes(log_ratio: FloatArray, person: IntArray) -> FloatArray:
    """Divide everybody's reports by how large they are beside the others', pulled towards one by their number."""
    n = int(person.max()) + 1
    size = np.abs(log_ratio)
    count = np.bincount(person, minlength=n)
    order = np.lexsort((size, person))
    start = np.cumsum(count) - count
    here = np.flatnonzero(count > 0)
    ordered = size[order]
    low, high = start[here] + (count[here] - 1) // 2, start[here] + count[here] // 2
    log_size = np.log(np.maximum((ordered[low] + ordered[high]) / 2, _LEAST))
    error = _MEDIAN_VARIANCE / count[here]
    spread = max(float(np.var(log_size) - error.mean()), _LEAST)
    pulled = (log_size - log_size.mean()) * spread / (spread + error)
    factor = np.zeros(n)
    factor[here] = pulled
    evened: FloatArray = log_ratio / np.exp(factor)[person]
    return evened


def pool_errors(influence: FloatArray, change: FloatArray, draw_variance: FloatArray, n_groups: int) -> PoolErrors:
    r"""Standard errors of the mean over items."""
    n = influence.size
    factor = (n_groups - 1) / n_groups if n_groups > 1 else np.nan
    centred = change - change.mean(axis=0)
    of_people = factor * float(np.sum(centred.sum(axis=1) ** 2)) / n**2
    of_cells = factor * float(np.sum(centred**2)) / n**2
    of_items = n / (n - 1) * float(np.sum(influence**2)) if n > 1 else np.nan
    return PoolErrors(
        se_contexts_nats=float(np.sqrt(of_items + np.maximum(of_people - of_cells, 0.0))),
        se_asked_nats=float(np.sqrt(of_people + draw_variance.sum() / n**2)),
        freedom=max(min(n, n_groups) - 1, 1),
        item_variance=factor * np.sum(centred**2, axis=0) + draw_variance,
    )
