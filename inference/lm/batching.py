"""Cutting work into batches that fit in memory, and halving those that did not."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["plan_batches", "run_halving"]

log = logging.getLogger(__name__)

_Result = TypeVar("_Result")


def plan_batches(lengths: Sequence[int], tokens_per_batch: int | None) -> Iterator[NDArray[np.intp]]:
    """Cut sequences into batches of similar length.

    Longest first, so that a batch that does not fit in memory fails at the start; a batch of k sequences costs k times
    its longest, padding included. A sequence longer than the budget is a batch of its own.

    Parameters
    ----------
    lengths : sequence of int
        Tokens of each sequence.
    tokens_per_batch : int, optional
        Largest cost of a batch; None is no bound.

    Yields
    ------
    ndarray of int, shape (sequence in batch,)
        Positions in ``lengths``.
    """
    order = np.argsort(-np.asarray(lengths, dtype=np.intp), kind="stable")
    start = 0
    while start < len(order):
        longest = max(int(lengths[order[start]]), 1)
        stop = len(order) if tokens_per_batch is None else start + max(1, tokens_per_batch // longest)
        yield order[start:stop]
        start = stop


def run_halving(
    batch: NDArray[np.intp], compute: Callable[[NDArray[np.intp]], _Result]
) -> Iterator[tuple[NDArray[np.intp], _Result]]:
    """Compute a batch; where memory does not suffice, its halves.

    Parameters
    ----------
    batch : ndarray of int, shape (sequence,)
    compute : callable
        Takes such an array.

    Yields
    ------
    batch : ndarray of int
        What was computed at once.
    result : object

    Raises
    ------
    RuntimeError
        If a single sequence does not fit.
    """
    pending = [batch]
    while pending:
        part = pending.pop()
        try:
            result = compute(part)
        except RuntimeError as error:
            if len(part) == 1 or not _out_of_memory(error):
                raise
            # the frames in the traceback hold the tensors that were too much
            error.__traceback__ = None
            _free()
            half = (len(part) + 1) // 2
            log.warning("a batch of %d sequences did not fit in memory; trying %d at a time", len(part), half)
            pending += [part[half:], part[:half]]
            continue
        yield part, result


def _out_of_memory(error: RuntimeError) -> bool:
    # torch.OutOfMemoryError is a RuntimeError; the CPU allocator raises a plain one
    return type(error).__name__ == "OutOfMemoryError" or "can't allocate memory" in str(error)


def _free() -> None:
    import torch  # noqa: PLC0415 - whoever got here has it

    if torch.cuda.is_available():
        torch.cuda.empty_cache()
