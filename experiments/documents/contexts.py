"""Cutting contexts out of documents: where the next token is known, and a player is asked for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from shannon_game.estimators.errors import InputError

Start = Literal["document", "anywhere", "regions"]
"""Where contexts begin: with their document, or at most the longest context before a cut anywhere in it, or before the
regions of interest that a study marks."""


@dataclass(frozen=True)
class Cut:
    """One context and its true next token, with the positions of its document and, in it, of that token."""

    document: int
    position: int
    context: tuple[int, ...]
    target: int


def cut_contexts(
    documents: Sequence[Sequence[int]],
    *,
    n: int,
    shortest: int,
    longest: int,
    start: Start,
    rng: np.random.Generator,
    is_usable: Callable[[Cut], bool] | None = None,
) -> tuple[list[Cut], int]:
    """Cut documents at random places.

    Documents are taken in random order, one cut each; only when all have one does any get a second. Within a document
    every place is as likely as any other. The same context with the same next token, in documents that begin alike, is
    taken once.
    """
    if not 0 <= shortest <= longest:
        raise InputError(f"is {shortest}, should be 0 to {longest}, the longest context", field="min_context_tokens")
    order = rng.permutation(len(documents)).tolist()
    # where each document may be cut, in random order; made when its turn comes
    places: dict[int, list[int]] = {}
    cuts: list[Cut] = []
    questions: set[tuple[tuple[int, ...], int]] = set()
    n_unusable = 0
    while len(cuts) < n and order:
        left = []
        for document in order:
            tokens = documents[document]
            if document not in places:
                last = len(tokens) - 1 if start == "anywhere" else min(len(tokens) - 1, longest)
                places[document] = rng.permutation(np.arange(shortest, last + 1)).tolist()
            found = None
            while places[document] and found is None:
                position = places[document].pop()
                cut = Cut(document, position, tuple(tokens[max(0, position - longest) : position]), tokens[position])
                if (cut.context, cut.target) in questions:
                    continue
                if is_usable is None or is_usable(cut):
                    found = cut
                else:
                    n_unusable += 1
            if found is not None:
                cuts.append(found)
                questions.add((found.context, found.target))
                if len(cuts) == n:
                    break
                left.append(document)
        order = left
    if len(cuts) < n:
        raise InputError(
            f"is {n}, but the {len(documents)} documents have only {len(cuts)} places to cut after {shortest} to "
            f"{longest} tokens" + (f" ({n_unusable} others are unusable)" if n_unusable else ""),
            field="n_contexts",
        )
    return cuts, n_unusable
