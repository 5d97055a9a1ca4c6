"""Cutting work into batches that fit in memory, and halving those that did not."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["run_batches"]

log = logging.getLogger(__name__)

_Result = TypeVar("_Result")


def run_batches(
    lengths: Sequence[int], tokens_per_batch: int, compute: Callable[[NDArray[np.intp]], _Result]
) -> Iterator[tuple[NDArray[np.intp], _Result]]:
    """Compute sequences in batches of similar length; where memory does not suffice, in smaller ones.

    Longest first, so that what does not fit in memory fails at the start; a batch of k sequences costs k times its
    longest, padding included. A sequence longer than the budget is a batch of its own. A batch that did not fit is
    halved, and so is the budget of all that come after it.

    Parameters
    ----------
    lengths : sequence of int
        Tokens of each sequence.
    tokens_per_batch : int
        Largest cost of a batch.
    compute : callable
        Takes positions in ``lengths``, shape (sequence in batch,).

    Yields
    ------
    batch : ndarray of int, shape (sequence in batch,)
        What was computed at once.
    result : object

    Raises
    ------
    RuntimeError
        If a single sequence does not fit.
    """
    order = np.argsort(-np.asarray(lengths, dtype=np.intp), kind="stable")
    budget, start = tokens_per_batch, 0
    while start < len(order):
        longest = max(int(lengths[order[start]]), 1)
        batch = order[start : start + max(1, budget // longest)]
        try:
            result = compute(batch)
        except RuntimeError as error:
            if len(batch) == 1 or not _out_of_memory(error):
                raise
            # the frames in the traceback hold the tensors that were too much
            error.__traceback__ = None
            half = (len(batch) + 1) // 2
            budget = half * longest
            log.warning("a batch of %d sequences did not fit in memory; trying %d at a time", len(batch), half)
        else:
            yield batch, result
            # the next batch may need its memory
            del result
            start += len(batch)
            continue
        _free()


def _out_of_memory(error: RuntimeError) -> bool:
    # torch.OutOfMemoryError is a RuntimeError; the allocators of mps and of the CPU raise a plain one
    told = str(error).lower()
    return type(error).__name__ == "OutOfMemoryError" or "out of memory" in told or "can't allocate memory" in told


def _free() -> None:
    import torch  # noqa: PLC0415 - whoever got here has it

    if torch.cuda.is_available():
        torch.cuda.empty_cache()
