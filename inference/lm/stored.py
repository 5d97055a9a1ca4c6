"""Compute what a store does not have yet, batch by batch, and read all of it back."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from shannon_game.inference.progress import stage
from shannon_game.inference.store.keys import OperationKey, Shard
from shannon_game.inference.store.store import Store

log = logging.getLogger("shannon-game")

# batches whose results are stored together
_PASSES_PER_BATCH = 4

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
    # what is in a batch stays the same whatever is done already, so that the numbers do too
    waiting = set(to_do)
    cut = [[distinct[i] for i in batch] for batch in batches([items[first[key]] for key in distinct])] if to_do else []
    cut = [own for batch in cut if (own := [key for key in batch if key in waiting])]
    # in an order that another process does not share
    random.SystemRandom().shuffle(cut)
    for batch_keys in cut:
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


@dataclass
class Work:
    """A store, the part of the work that this run does, and what it has counted."""

    store: Store
    shard: Shard | None
    items_per_batch: int
    fills_passes: bool
    """Batches may be larger, so that they fill passes."""
    answers: Path = Path("api_answers.db")
    """SQLite file of paid answers."""
    n_computed: int = 0
    n_found: int = 0

    def compute(
        self,
        what: str,
        operation: OperationKey | None,
        items: Sequence[Any],
        keys: Sequence[str],
        compute_batch: Callable[[list[Any]], Mapping[str, NDArray[Any]]],
        *,
        batches: Callable[[list[Any]], list[list[int]]],
        provenance: Mapping[str, Any],
        announced: bool = True,
    ) -> Mapping[str, NDArray[Any]]:
        """Compute what the store lacks of some items, and give the results of all; without an operation, store none."""
        with stage(what, announced=announced) as show:
            if operation is None:
                self.n_computed += len(items)
                return compute_batch(list(items))
            done: StoredResults = compute_stored(
                self.store,
                operation,
                items,
                keys,
                compute_batch,
                batches=batches,
                provenance=provenance,
                progress=show,
            )
        self.n_computed += done.n_computed
        self.n_found += done.n_found
        return done.arrays

    def mine(self, keys: Sequence[str]) -> NDArray[np.intp]:
        """Positions of the keys that belong to this run's shard, increasing."""
        return np.flatnonzero(np.ones(len(keys), dtype=bool) if self.shard is None else self.shard.holds(keys))

    def said(self) -> str:
        """Say what was computed and what was there, for the report; nothing where endpoints alone answered."""
        if not self.n_computed + self.n_found:
            return ""
        return f"{self.n_computed:,} results were computed, {self.n_found:,} were in the store `{self.store.folder}`."


def batches_in_order(n_items: int, order: Callable[[Any], Any] = lambda _: 0) -> Callable[[list[Any]], list[list[int]]]:
    """Cut items into batches of neighbours, once they are sorted by something."""

    def cut(items: list[Any]) -> list[list[int]]:
        places = sorted(range(len(items)), key=lambda at: order(items[at]))
        return [places[first : first + n_items] for first in range(0, len(places), n_items)]

    return cut


def batches_by_length(length: Callable[[Any], int], *, n_items: int) -> Callable[[list[Any]], list[list[int]]]:
    """Cut items into batches of similar length, the longest first."""
    return batches_in_order(n_items, lambda item: -length(item))


def batches_by_tokens(
    length: Callable[[Any], int], work: Work, tokens_per_batch: int | None
) -> Callable[[list[Any]], list[list[int]]]:
    """Cut items into batches of similar length that fill a few passes, unless the settings say how many items."""
    budget = _PASSES_PER_BATCH * (tokens_per_batch or 0)

    def cut(items: list[Any]) -> list[list[int]]:
        batches: list[list[int]] = []
        left = 0
        for at in sorted(range(len(items)), key=lambda at: -length(items[at])):
            is_full = not batches or len(batches[-1]) >= work.items_per_batch
            if is_full and not (batches and work.fills_passes and length(items[at]) <= left):
                batches.append([])
                left = budget
            batches[-1].append(at)
            left -= length(items[at])
        return batches

    return cut
