"""Places in texts whose next tokens are scored: in the tokens of one model, or where the tokens of all models meet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.errors import InputError
from shannon_game.estimators.messages import Set
from shannon_game.inference.lm.alignment import shared_places, token_places
from shannon_game.inference.lm.language_model import LanguageModel, encode


@dataclass(frozen=True, eq=False)
class ModelPlaces:
    """Places in the tokens of one model."""

    tokens: list[list[int]]
    document: NDArray[np.intp]
    start: NDArray[np.intp]
    n_inside: NDArray[np.intp]
    n_characters: NDArray[np.int64] | None = None

    def take(self, places: Sequence[int]) -> ModelPlaces:
        """Keep some places."""
        kept = np.asarray(places, dtype=np.intp)
        n_characters = None if self.n_characters is None else self.n_characters[kept]
        return ModelPlaces(self.tokens, self.document[kept], self.start[kept], self.n_inside[kept], n_characters)

    def windows(self, length: int, n_tokens: int) -> list[tuple[int, ...]]:
        """Tokens of each place: ``length`` of context, then the reference tokens."""
        return [
            tuple(self.tokens[document][start - length : start + n_tokens])
            for document, start in zip(self.document, self.start, strict=True)
        ]


def own_places(model: LanguageModel, texts: Sequence[str], *, longest: int, n_tokens: int) -> ModelPlaces:
    """Cut texts into all places that have the longest context before them, without overlap of reference tokens."""
    tokens = encode(model, texts, source="study")
    found = [
        (document, start)
        for document, ids in enumerate(tokens)
        # places a window apart: the reference tokens of two never overlap
        for start in range(longest, len(ids) - n_tokens + 1, n_tokens)
    ]
    document, start = np.array(found, dtype=np.intp).reshape(-1, 2).T
    return ModelPlaces(tokens, document, start, np.full(len(found), n_tokens))


def places_of_all(
    models: Mapping[str, LanguageModel], texts: Sequence[str], *, longest: int, n_tokens: int
) -> dict[str, ModelPlaces]:
    """Cut texts into places at which every model has the end of a token, each up to another such place."""
    tokens = {name: encode(model, texts, source="study") for name, model in models.items()}
    found: dict[str, list[tuple[int, int, int]]] = {name: [] for name in models}
    n_characters: list[int] = []
    for document, text in enumerate(texts):
        ends: dict[str, NDArray[np.int64]] = {}
        for name, model in models.items():
            its = token_places(model, text, tokens[name][document])
            if its is None:
                problem = f"document {document} is changed by the tokenizer of {name}"
                why = "so that its characters cannot be found in the tokens"
                fix = f"leave the model out, or use {Set('experiment.places', 'tokens')}"
                raise InputError(f"{problem}, {why}; {fix}", source="study", field="places")
            ends[name] = its
        shared = shared_places(text, list(ends.values()))
        after = 0
        for start in shared[shared > 0].tolist():
            first = {name: int(np.searchsorted(its, start)) for name, its in ends.items()}
            has_room = all(
                longest <= at and at + n_tokens < len(its)
                for at, its in zip(first.values(), ends.values(), strict=True)
            )
            if start < after or not has_room:
                continue
            reach = min(int(its[first[name] + n_tokens]) for name, its in ends.items())
            stop = int(shared[np.searchsorted(shared, reach, side="right") - 1])
            if stop <= start:
                continue
            after = stop
            n_characters.append(len(text.encode()[start:stop].decode()))
            for name, its in ends.items():
                n_inside = int(np.searchsorted(its, stop)) - first[name]
                found[name].append((document, first[name], n_inside))
    made = {}
    for name, rows in found.items():
        of_document, first_token, n_inside_of = np.array(rows, dtype=np.intp).reshape(-1, 3).T
        made[name] = ModelPlaces(tokens[name], of_document, first_token, n_inside_of, np.array(n_characters))
    return made
