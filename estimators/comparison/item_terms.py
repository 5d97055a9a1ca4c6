"""Log-terms of the importance weights, sorted by item."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shannon_game.estimators.arrays import FloatArray, IntArray
from shannon_game.estimators.display import Result
from shannon_game.estimators.errors import InputError

_TINY = 1e-290  # a sum below it has lost digits, as its terms are near the smallest numbers


@dataclass(frozen=True, eq=False)
class ItemWeights:
    """Importance weights divided by the largest of their item; its log; sums of the scaled weights by item."""

    scaled: FloatArray
    largest: FloatArray
    total: FloatArray


@dataclass(frozen=True, eq=False, repr=False)
class ItemTerms(Result):
    """Log-terms sorted by item.

    Attributes
    ----------
    log_term : ndarray, shape (response,)
        ln w, nats, finite.
    label : ndarray, shape (item,)
        The items that have at least one term, sorted.
    start, n : ndarray of int, shape (item,)
        First term and number of terms of every item.
    moved : ndarray of int, shape (response,), or None
        Where each term stood in the caller's arrays, if terms had to be sorted.
    """

    made_by = "group_terms(log_term, item)"

    log_term: FloatArray
    label: NDArray[Any]
    start: IntArray
    n: IntArray
    moved: IntArray | None = field(default=None, repr=False)

    @cached_property
    def item(self) -> IntArray:
        """Position in ``label`` of every term's item, (response,)."""
        return np.repeat(np.arange(self.n.size), self.n)

    @cached_property
    def order(self) -> IntArray:
        """Where each term stood in the caller's arrays, (response,)."""
        return np.arange(self.log_term.size) if self.moved is None else self.moved

    def sum(self, values: FloatArray) -> FloatArray:
        """Sum over the terms of each item; (response,) -> (item,)."""
        return np.add.reduceat(values, self.start)

    @cached_property
    def weights(self) -> ItemWeights:
        """The exponentials, computed once for the log-mean and its diagnostics."""
        largest: FloatArray = np.maximum.reduceat(self.log_term, self.start)
        scaled = np.exp(self.log_term - np.repeat(largest, self.n))
        return ItemWeights(scaled, largest, self.sum(scaled))

    def others_log_mean(self) -> FloatArray:
        """Ln of the mean of the item's other terms, (response,); NaN where there is no other."""
        n, weight = self.n, self.weights.scaled.copy()
        top = np.flatnonzero(weight == 1.0)
        if top.size > n.size:
            top = top[np.searchsorted(top, self.start)]
        # Subtracting the largest term from the total would cancel; the rest is summed without it instead.
        weight[top] = 0.0
        rest = self.sum(weight)
        with np.errstate(divide="ignore"):
            log_rest = np.log(rest)
            if ((rest < _TINY) & (n > 1)).any():
                # all others are more than 660 nats below the largest: they are scaled by the largest of their own
                log_term = self.log_term.copy()
                log_term[top] = -np.inf
                shift = np.where(n > 1, np.maximum.reduceat(log_term, self.start), 0.0)
                own = np.log(self.sum(np.exp(log_term - np.repeat(shift, n)))) + shift - self.weights.largest
                log_rest = np.where(rest < _TINY, own, log_rest)
        level = self.weights.largest - np.log(np.maximum(n - 1, 1))
        log_mean = np.log1p(np.repeat(rest, n) - weight) + np.repeat(level, n)
        log_mean[top] = log_rest + level
        log_mean[self.start[n == 1]] = np.nan
        return log_mean


def group_terms(log_term: ArrayLike, item: ArrayLike) -> ItemTerms:
    """Sort log-terms ln w, (response,), nats, by item: labels, integers or strings, (response,).

    Examples
    --------
    >>> comparison.group_terms([0.5, -0.1, 0.2], item=["b", "a", "b"]).log_term
    array([-0.1,  0.5,  0.2])
    """
    terms = np.array(log_term, dtype=float)  # a copy: the caller may change theirs, and results are cached
    labels = np.asarray(item)
    if terms.ndim != 1 or labels.shape != terms.shape:
        raise InputError(f"has shape {labels.shape}, the terms {terms.shape}; both should be (response,)", field="item")
    if terms.size == 0:
        raise InputError("is empty; an estimate needs at least one response", field="log_term")
    if not np.isfinite(terms).all():
        first = int(np.flatnonzero(~np.isfinite(terms))[0])
        raise InputError(f"is {terms[first]} at response {first}; should be finite", field="log_term")
    order = None
    if labels.dtype.kind not in "iu" or (labels[1:] < labels[:-1]).any():
        order = np.argsort(labels, kind="stable")
        labels, terms = labels[order], terms[order]
    label, start = np.unique(labels, return_index=True)
    return ItemTerms(terms, label, start.astype(np.intp, copy=False), np.diff(start, append=terms.size), order)
