"""Compute what a store does not have yet, batch by batch, and read all of it back."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.errors import InputError
from shannon_game.inference.store.keys import OperationKey, Shard
from shannon_game.inference.store.store import Store

log = logging.getLogger("shannon-game")

_Item = TypeVar("_Item")


@dataclass(frozen=True, eq=False)
class StoredResults:
    """What :func:`compute_stored` found and computed."""

    arrays: Mapping[str, NDArray[Any]]
    positions: NDArray[np.intp]
    # distinct keys: computed by this call, there already or from another process meanwhile, left to other shards
    n_computed: int
    n_found: int
    n_left: int
    n_batches: int

    @property
    def complete(self) -> bool:
        """Whether every item has its results."""
        return self.n_left == 0


def compute_stored(
    store: Store,
    operation: OperationKey,
    items: Sequence[_Item],
    keys: Sequence[str],
    compute_batch: Callable[[list[_Item]], Mapping[str, NDArray[Any]]],
    *,
    batches: Callable[[list[_Item]], Iterable[Sequence[int]]] | int = 64,
    shard: Shard | None = None,
    provenance: Mapping[str, Any] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> StoredResults:
    """Compute the items that the store lacks, one atomic append a batch, and read the results of all."""
    if len(keys) != len(items):
        raise InputError(f"are {len(keys)}, should be one for each of the {len(items)} items", field="keys")
    # the first item of each key
    first: dict[str, int] = {}
    for position, key in enumerate(keys):
        first.setdefault(key, position)
    distinct = list(first)
    mine = np.ones(len(distinct), dtype=bool) if shard is None else shard.holds(distinct)
    to_do = [distinct[i] for i in store.missing(operation, distinct) if mine[i]]
    n_mine, n_before = int(mine.sum()), len(to_do)
    if progress is not None:
        progress(n_mine - n_before, n_mine)
    n_computed = n_batches = n_done = 0
    for batch in _batches(batches, [items[first[key]] for key in to_do]):
        batch_keys = [to_do[i] for i in batch]
        left = [batch_keys[i] for i in store.missing(operation, batch_keys)]
        if left:
            arrays = compute_batch([items[first[key]] for key in left])
            store.append(operation, left, arrays, provenance=provenance)
            n_computed += len(left)
            n_batches += 1
            log.debug("stored %s: %d computed", operation.name, n_computed)
        n_done += len(batch_keys)
        if progress is not None:
            progress(n_mine - n_before + n_done, n_mine)
    missing = {distinct[i] for i in store.missing(operation, distinct)}
    positions = np.array([i for i, key in enumerate(keys) if key not in missing], dtype=np.intp)
    result = StoredResults(
        arrays=store.read(operation, [keys[i] for i in positions]),
        positions=positions,
        n_computed=n_computed,
        n_found=len(distinct) - len(missing) - n_computed,
        n_left=len(missing),
        n_batches=n_batches,
    )
    log.info(
        "store: %s: %d computed in %d batches, %d found, %d left to other shards",
        *(operation.name, result.n_computed, result.n_batches, result.n_found, result.n_left),
    )
    return result


def _batches(batches: Callable[[list[_Item]], Iterable[Sequence[int]]] | int, items: list[_Item]) -> list[list[int]]:
    """Every position in exactly one batch; the batches in an order that another process does not share."""
    if not items:
        return []
    if isinstance(batches, int):
        if batches < 1:
            raise InputError(f"is {batches}, should be at least 1", field="batches")
        found = [list(range(start, min(start + batches, len(items)))) for start in range(0, len(items), batches)]
    else:
        found = [[int(position) for position in batch] for batch in batches(items) if len(batch)]
    if sorted(position for batch in found for position in batch) != list(range(len(items))):
        raise InputError(f"should hold each of the {len(items)} positions once", field="batches")
    # what is in a batch stays the same, so that the numbers do too
    random.SystemRandom().shuffle(found)
    return found
