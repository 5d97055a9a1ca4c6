"""Log-terms of the importance weights, sorted by item."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from estimators.display import Result
from estimators.errors import InputError

__all__ = ["ItemTerms", "group_terms"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


@dataclass(frozen=True, eq=False, repr=False)
class ItemTerms(Result):
    """Log-terms sorted by item.

    Attributes
    ----------
    log_term : ndarray, shape (response,)
        ln w, nats, finite.
    item : ndarray of int, shape (response,)
        Position in ``label`` of every term's item.
    order : ndarray of int, shape (response,)
        Where each term stood in the caller's arrays.
    label : ndarray, shape (item,)
        The items that have at least one term, sorted.
    start : ndarray of int, shape (item,)
        First term of every item.
    n : ndarray of int, shape (item,)
        Terms of every item.

    Examples
    --------
    >>> from estimators import comparison
    >>> terms = comparison.group_terms([0.1, 0.9, -0.4, 1.2], item=[1, 1, 2, 2])
    >>> terms.label, terms.n
    (array([1, 2]), array([2, 2]))
    >>> terms.sum(terms.log_term)
    array([1. , 0.8])
    """

    made_by = "group_terms(log_term, item)"

    log_term: FloatArray
    item: IntArray
    order: IntArray
    label: NDArray[Any]
    start: IntArray
    n: IntArray

    def sum(self, values: FloatArray) -> FloatArray:
        """Sum over the terms of each item; (response,) -> (item,)."""
        total: FloatArray = np.add.reduceat(values, self.start)
        return total

    def scaled(self) -> tuple[FloatArray, FloatArray]:
        """Terms divided by the largest of their item, (response,), and the log of that largest, (item,)."""
        largest: FloatArray = np.maximum.reduceat(self.log_term, self.start)
        return np.exp(self.log_term - largest[self.item]), largest


def group_terms(log_term: ArrayLike, item: ArrayLike) -> ItemTerms:
    """Sort log-terms by item.

    Parameters
    ----------
    log_term : array_like of float, shape (response,)
        ln w, nats.
    item : array_like, shape (response,)
        Label of the item of each term, integers or strings.

    Returns
    -------
    ItemTerms

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
    terms = np.asarray(log_term, dtype=float)
    labels = np.asarray(item)
    if terms.ndim != 1 or labels.shape != terms.shape:
        raise InputError(f"has shape {labels.shape}, the terms {terms.shape}; both should be (response,)", field="item")
    if terms.size == 0:
        raise InputError("is empty; an estimate needs at least one response", field="log_term")
    if not np.isfinite(terms).all():
        first = int(np.flatnonzero(~np.isfinite(terms))[0])
        raise InputError(f"is {terms[first]} at response {first}; should be finite", field="log_term")
    order = np.argsort(labels, kind="stable")
    label, start, code, n = np.unique(labels[order], return_index=True, return_inverse=True, return_counts=True)
    return ItemTerms(
        log_term=terms[order],
        item=code.astype(np.intp),
        order=order,
        label=label,
        start=start.astype(np.intp),
        n=n.astype(np.intp),
    )
