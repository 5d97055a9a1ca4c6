"""Log-terms of the importance weights, sorted by item."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from estimators.display import Result
from estimators.errors import InputError

__all__ = ["ItemTerms", "ItemWeights", "group_terms"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

_BLOCK_TERMS = (
    1 << 14
)  # terms that are worked on at once: arrays of 128 kB, several of which the processor's cache holds
_LARGEST_KEY = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False)
class ItemWeights:
    """Importance weights, each divided by the largest of its item."""

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
    start : ndarray of int, shape (item,)
        First term of every item.
    n : ndarray of int, shape (item,)
        Terms of every item.
    moved : ndarray of int, shape (response,), or None
        ``order``, where terms had to be sorted.
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
        total: FloatArray = np.add.reduceat(values, self.start)
        return total

    def rows_of(self, items: IntArray) -> IntArray:
        """Positions of the terms of some of the items."""
        n = self.n[items]
        return np.arange(int(n.sum())) + np.repeat(self.start[items] - np.cumsum(n) + n, n)

    def of_items(self, items: IntArray) -> ItemTerms:
        """Terms of some of the items, by their positions in ``label``, in the order given."""
        rows, n = self.rows_of(items), self.n[items]
        moved = rows if self.moved is None else self.moved[rows]
        return ItemTerms(self.log_term[rows], self.label[items], np.cumsum(n) - n, n, moved)

    def scaled(self) -> tuple[FloatArray, FloatArray]:
        """Terms divided by the largest of their item, (response,), and the log of that largest, (item,)."""
        return self.weights.scaled.copy(), self.weights.largest.copy()

    @cached_property
    def weights(self) -> ItemWeights:
        """The exponentials, computed once for the log-mean and its diagnostics."""
        scaled = np.empty_like(self.log_term)
        largest, total = np.empty(self.n.size), np.empty(self.n.size)
        for items, rows in self.blocks():
            start, here = self.start[items] - rows.start, scaled[rows]
            np.maximum.reduceat(self.log_term[rows], start, out=largest[items])
            np.subtract(self.log_term[rows], self.spread(largest, items), out=here)
            np.exp(here, out=here)
            np.add.reduceat(here, start, out=total[items])
        return ItemWeights(scaled, largest, total)

    def blocks(self) -> Iterator[tuple[slice, slice]]:
        """Slices of whole items and of their terms, few enough that the arrays of one pass stay in the cache."""
        first = 0
        while first < self.n.size:
            begin = int(self.start[first])
            last = max(int(np.searchsorted(self.start, begin + _BLOCK_TERMS, side="right")) - 1, first + 1)
            if self.log_term.size - begin <= _BLOCK_TERMS:
                last = self.n.size
            yield slice(first, last), slice(begin, int(self.start[last - 1] + self.n[last - 1]))
            first = last

    def spread(self, values: FloatArray, items: slice) -> FloatArray:
        """Values of a block's items for each of its terms, in an array of their own; (item,) -> (response,)."""
        return np.repeat(values[items], self.n[items])


def group_terms(log_term: ArrayLike, item: ArrayLike) -> ItemTerms:
    """Sort log-terms by item.

    Integers that do not fall are not sorted again.

    Parameters
    ----------
    log_term : array_like of float, shape (response,)
        ln w, nats.
    item : array_like, shape (response,)
        Label of the item of each term, integers or strings.

    Raises
    ------
    InputError
        If the shapes differ, there is no term, or a term is NaN or infinite.

    Examples
    --------
    >>> from estimators import comparison
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
    is_integer = labels.dtype.kind in "iu"
    start = _starts(labels) if is_integer else np.empty(0, dtype=np.intp)
    label = labels[start]
    if is_integer and bool((label[1:] > label[:-1]).all()):
        order = None
    else:
        order = _sorting_order(labels)
        labels, terms = labels[order], terms[order]
        # what may be NaN, which no label equals, is left to NumPy
        start = _starts(labels) if labels.dtype.kind in "biuSTU" else np.unique(labels, return_index=True)[1]
        label = labels[start]
    return ItemTerms(
        log_term=terms,
        label=label,
        start=start.astype(np.intp, copy=False),
        n=np.diff(start, append=terms.size),
        moved=order,
    )


def _starts(labels: NDArray[Any]) -> IntArray:
    """Where each run of equal labels begins."""
    changed = np.ones(labels.size, dtype=bool)
    np.not_equal(labels[1:], labels[:-1], out=changed[1:])
    return np.flatnonzero(changed)


def _sorting_order(labels: NDArray[Any]) -> IntArray:
    """Stable order of labels."""
    if labels.dtype.kind not in "iu":
        return np.argsort(labels, kind="stable")
    lowest, bits = int(labels.min()), labels.size.bit_length()
    if (int(labels.max()) - lowest) > _LARGEST_KEY >> bits or int(labels.max()) > _LARGEST_KEY:
        return np.argsort(labels, kind="stable")
    key = labels.astype(np.int64) - lowest
    key <<= bits
    key |= np.arange(labels.size)
    key.sort()
    key &= (1 << bits) - 1
    return key.astype(np.intp, copy=False)
