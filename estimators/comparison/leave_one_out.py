r"""Weights relative to the mean of their item's other terms: what jackknife, Pareto smoothing and diagnostics share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from estimators.comparison.diagnostics import tail_size
from estimators.comparison.item_terms import ItemTerms

__all__ = ["LargestWeights", "largest_log_weights", "leave_one_out_log_mean", "leave_one_out_log_weights"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

_TINY = 1e-290  # a sum below it has lost digits, as its terms are near the smallest numbers
_SLACK = 1e-9  # more than the rounding of a sum
_CANCELLED = 0.01  # a difference of numbers near one that is below it has lost two digits


@dataclass(frozen=True, eq=False)
class LargestWeights:
    """The largest of the leave-one-out weights of all items."""

    position: IntArray
    log_weight: FloatArray
    n_weights: int


def leave_one_out_log_weights(terms: ItemTerms) -> FloatArray:
    r"""Weights relative to the mean of the item's other terms, :math:`\ln (w_j / \bar w_{-j})`."""
    ItemTerms.require(terms=terms)
    weight = terms.log_term.copy()
    for items, rows in terms.blocks():
        weight[rows] -= leave_one_out_log_mean(terms, items, rows)
    weight[terms.start[terms.n == 1]] = np.nan
    return weight


def leave_one_out_log_mean(terms: ItemTerms, items: slice, rows: slice) -> FloatArray:
    """Ln of the mean of the item's other terms, for a block of items; meaningless where there is no other term."""
    start, n, largest = terms.start[items] - rows.start, terms.n[items], terms.weights.largest[items]
    weight = terms.weights.scaled[rows].copy()
    top = np.flatnonzero(weight == 1.0)
    if top.size > start.size:
        top = top[np.searchsorted(top, start)]
    # Subtracting the largest term from the total would cancel; the rest is summed without it instead.
    weight[top] = 0.0
    rest: FloatArray = np.add.reduceat(weight, start)
    with np.errstate(divide="ignore"):
        log_rest = np.log(rest)
        if ((rest < _TINY) & (n > 1)).any():
            # all others are more than 660 nats below the largest: they are scaled by the largest of their own
            log_term = terms.log_term[rows].copy()
            log_term[top] = -np.inf
            shift = np.where(n > 1, np.maximum.reduceat(log_term, start), 0.0)
            own = np.log(np.add.reduceat(np.exp(log_term - np.repeat(shift, n)), start)) + shift - largest
            log_rest = np.where(rest < _TINY, own, log_rest)
    log_others = np.log(np.maximum(n - 1, 1))
    log_mean = np.repeat(rest, n)
    log_mean -= weight
    np.log1p(log_mean, out=log_mean)
    log_mean += np.repeat(largest - log_others, n)
    log_mean[top] = log_rest + largest - log_others
    return log_mean


def largest_log_weights(terms: ItemTerms) -> LargestWeights:
    """Leave-one-out weights of the tail, without computing those of the other terms."""
    ItemTerms.require(terms=terms)
    n, weights = terms.n, terms.weights
    n_weights = int(n[n > 1].sum())
    bound = _lower_bound(terms, tail_size(n_weights) + 1)
    # w (n - 1) / (total - w) >= bound, solved for w
    lowest = bound * weights.total / (np.maximum(n - 1, 1) + bound) * (1 - _SLACK)
    items = np.flatnonzero((lowest <= 1) & (n > 1))
    position, of = terms.rows_of(items), np.repeat(items, n[items])
    found = np.flatnonzero(weights.scaled[position] >= lowest[of])
    position, of = position[found], of[found]
    remaining = weights.total[of] - weights.scaled[position]
    # the largest term of an item: what remains without it has lost digits, and is summed again
    lost = np.flatnonzero(remaining < _CANCELLED)
    remaining[lost] = 1.0
    log_others = np.log(remaining) + weights.largest[of] - np.log(n[of] - 1)
    if lost.size:
        again = terms.of_items(of[lost])
        mean = leave_one_out_log_mean(again, slice(0, lost.size), slice(0, again.log_term.size))
        log_others[lost] = mean[again.weights.scaled == 1.0]
    return LargestWeights(position, terms.log_term[position] - log_others, n_weights)


def _lower_bound(terms: ItemTerms, wanted: int) -> float:
    """At most the weight that ``wanted`` weights reach: by the largest of each item, or by a share of all."""
    weights = terms.weights
    if wanted <= np.count_nonzero(terms.n > 1):
        n, scaled, total = terms.n, np.ones(terms.n.size), weights.total
    else:
        share = np.arange(0, terms.log_term.size, max(1, int(np.sqrt(terms.log_term.size / wanted))))
        of = np.searchsorted(terms.start, share, side="right") - 1
        n, scaled, total = terms.n[of], weights.scaled[share], weights.total[of]
    # the rest is made larger by more than its rounding, so that the weight is too small, if anything
    weight = (n - 1) * scaled / (total * (1 + _SLACK) - scaled)
    return float(np.partition(weight, weight.size - wanted)[weight.size - wanted]) if wanted <= weight.size else 0.0
