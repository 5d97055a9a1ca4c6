"""Sums of importance weights by participant and item, from which replicates of a study are made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array, csr_array

from estimators.comparison.item_terms import group_terms
from estimators.errors import InputError

__all__ = ["ParticipantTable", "participant_table"]

FloatArray = NDArray[np.float64]

_DENSE_BYTES = 1 << 28
_CELL_BYTES = 16  # a sum and a number
_SPARSE_CELL_BYTES = 32  # both, and for each of them where it stands; less where 32 bits are enough for that


@dataclass(frozen=True, eq=False)
class ParticipantTable:
    """Sums of every participant's terms on every item."""

    total: FloatArray | csr_array[Any, Any]
    count: FloatArray | csr_array[Any, Any]
    log_scale: FloatArray
    n_participants: int

    @property
    def is_sparse(self) -> bool:
        """Whether the table holds only the cells that have an answer."""
        return not isinstance(self.total, np.ndarray)

    def sums(self, weight: FloatArray, total: FloatArray, count: FloatArray) -> None:
        """Weighted sums over participants, (replicate, participant) -> (replicate, item), in the arrays given."""
        for table, out in ((self.total, total), (self.count, count)):
            if isinstance(table, np.ndarray):
                np.matmul(weight, table, out=out)
            else:
                out[:] = (table @ np.ascontiguousarray(weight.T)).T


def participant_table(
    log_term: ArrayLike, item: ArrayLike, participant: ArrayLike, *, sparse: bool | None = None
) -> ParticipantTable:
    """Sum the terms of every participant on every item."""
    terms = group_terms(log_term, item)
    who = np.asarray(participant)
    if who.shape != terms.log_term.shape:
        raise InputError(f"has shape {who.shape}, the terms {terms.log_term.shape}", field="participant")
    people, code = np.unique(who, return_inverse=True)
    code = code if terms.moved is None else code[terms.moved]
    weights = terms.weights
    shape = (people.size, terms.label.size)
    size = shape[0] * shape[1]
    if sparse is None:
        sparse = size * _CELL_BYTES > max(_DENSE_BYTES, code.size * _SPARSE_CELL_BYTES)
    if sparse:
        total, count = _sparse(weights.scaled, terms.item, code, shape), _sparse(None, terms.item, code, shape)
        return ParticipantTable(total, count, weights.largest, people.size)
    cell = code * shape[1] + terms.item
    return ParticipantTable(
        np.bincount(cell, weights.scaled, minlength=size).astype(float, copy=False).reshape(shape),
        np.bincount(cell, minlength=size).astype(float).reshape(shape),
        weights.largest,
        people.size,
    )


def _sparse(
    values: FloatArray | None, item: NDArray[np.intp], person: NDArray[np.intp], shape: tuple[int, int]
) -> csr_array[Any, Any]:
    """Sums of values, or numbers of answers; (item, participant)."""
    data = np.ones(item.size) if values is None else values
    return coo_array((data, (item, person)), shape=shape[::-1]).tocsr()
