"""Cutting work into batches that fit in memory, with little padding, and halving those that did not."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

log = logging.getLogger(__name__)

_Result = TypeVar("_Result")


def run_batches(
    lengths: Sequence[int],
    tokens_per_batch: int,
    compute: Callable[[NDArray[np.intp]], _Result],
    *,
    tokens_per_pass: int = 0,
) -> Iterator[tuple[NDArray[np.intp], _Result]]:
    """Compute sequences in batches of similar length; where memory does not suffice, in smaller ones."""
    length = np.asarray(lengths, dtype=np.intp)
    order = np.argsort(-length, kind="stable")
    sizes = cut_batches(length[order], tokens_per_batch, tokens_per_pass)
    start = 0
    while start < len(order):
        batch = order[start : start + sizes[0]]
        try:
            result = compute(batch)
        except RuntimeError as error:
            if len(batch) == 1 or not _out_of_memory(error):
                raise
            # the frames in the traceback hold the tensors that were too much
            error.__traceback__ = None
            half = (len(batch) + 1) // 2
            budget = half * max(int(length[batch[0]]), 1)
            sizes = cut_batches(length[order[start:]], budget, tokens_per_pass)
            log.warning("a batch of %d sequences did not fit in memory; trying %d at a time", len(batch), half)
        else:
            yield batch, result
            # the next batch may need its memory
            del result
            start += sizes.pop(0)
            continue
        _free()


def cut_batches(lengths: NDArray[np.intp], tokens_per_batch: int, tokens_per_pass: int = 0) -> list[int]:
    """Cut sorted sequences into batches, so that the passes cost least."""
    length = np.maximum(lengths, 1)
    n = len(length)
    if tokens_per_pass == 0 or n == 0 or length[0] == length[-1]:
        sizes, start = [], 0
        while start < n:
            sizes.append(min(max(1, tokens_per_batch // int(length[start])), n - start))
            start += sizes[-1]
        return sizes
    # cost of the first sequences, and where the last batch of them begins: the shortest path over all cuts
    cost = np.zeros(n + 1, dtype=np.int64)
    begins = np.zeros(n + 1, dtype=np.intp)
    first = 0
    for end in range(1, n + 1):
        while first < end - 1 and (end - first) * length[first] > tokens_per_batch:
            first += 1
        its = cost[first:end] + np.arange(end - first, 0, -1) * length[first:end]
        best = int(its.argmin())
        cost[end], begins[end] = its[best] + tokens_per_pass, first + best
    sizes = []
    end = n
    while end > 0:
        sizes.append(int(end - begins[end]))
        end = int(begins[end])
    return sizes[::-1]


def _out_of_memory(error: RuntimeError) -> bool:
    # torch.OutOfMemoryError is a RuntimeError; the allocators of mps and of the CPU raise a plain one
    told = str(error).lower()
    return type(error).__name__ == "OutOfMemoryError" or "out of memory" in told or "can't allocate memory" in told


def _free() -> None:
    import torch  # noqa: PLC0415 - whoever got here has it

    if torch.cuda.is_available():
        torch.cuda.empty_cache()
