"""Compute what a store does not have yet, batch by batch, and read all of it back."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from numpy.typing import NDArray

from shannon_game.inference.store.keys import OperationKey
from shannon_game.inference.store.store import Store

log = logging.getLogger("shannon-game")

_Item = TypeVar("_Item")


@dataclass(frozen=True, eq=False)
class StoredResults:
    """What :func:`compute_stored` found and computed."""

    arrays: Mapping[str, NDArray[Any]]
    # distinct keys: computed by this call; there already, or from another process meanwhile
    n_computed: int
    n_found: int


def compute_stored(
    store: Store,
    operation: OperationKey,
    items: Sequence[_Item],
    keys: Sequence[str],
    compute_batch: Callable[[list[_Item]], Mapping[str, NDArray[Any]]],
    *,
    batches: Callable[[list[_Item]], Iterable[Sequence[int]]],
    provenance: Mapping[str, Any] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> StoredResults:
    """Compute the items that the store lacks, one atomic append a batch, and read the results of all."""
    # the first item of each key
    first: dict[str, int] = {}
    for position, key in enumerate(keys):
        first.setdefault(key, position)
    distinct = list(first)
    to_do = [distinct[i] for i in store.missing(operation, distinct)]
    n_done, n_computed = len(first) - len(to_do), 0
    if progress is not None:
        progress(n_done, len(first))
    cut = [list(batch) for batch in batches([items[first[key]] for key in to_do])] if to_do else []
    # in an order that another process does not share; what is in a batch stays the same, so that the numbers do too
    random.SystemRandom().shuffle(cut)
    for batch in cut:
        batch_keys = [to_do[i] for i in batch]
        left = [batch_keys[i] for i in store.missing(operation, batch_keys)]
        if left:
            store.append(operation, left, compute_batch([items[first[key]] for key in left]), provenance=provenance)
            n_computed += len(left)
        n_done += len(batch_keys)
        if progress is not None:
            progress(n_done, len(first))
    n_found = len(first) - n_computed
    log.info("store: %s: %d computed, %d found", operation.name, n_computed, n_found)
    return StoredResults(store.read(operation, keys), n_computed, n_found)
