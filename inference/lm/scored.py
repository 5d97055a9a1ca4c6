"""Scores of texts under any engine, of all tokens of each text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.word_spans import has_unspaced, word_spans
from shannon_game.inference.store.store import ragged


def units_of(content: bytes, boundaries: str = "script") -> tuple[int, int, int]:
    """Count the words, characters and bytes of a part of a text."""
    text = content.decode(errors="replace")
    # a character of which the part holds the beginning alone is none of it
    n_characters = len(content.translate(None, bytes(range(0x80, 0xC0))))
    is_spaced = boundaries == "spaces" or not has_unspaced(text)
    words = text.split() if is_spaced else word_spans(text, boundaries=boundaries)
    return len(words), n_characters, len(content)


_SCORES = ("logprob", "is_best", "entropy_nats", "rank")
BOUNDARY = "boundary_logprob"
"""ln of the probability that a word ends before each token, and after the last."""


@dataclass(frozen=True, eq=False)
class Scoring:
    """How a question wants texts scored; limits are None where it sets none."""

    names: Sequence[object]
    """Of the texts, in messages."""
    boundaries: str = "script"
    has_words: bool = False
    """Scores of word ends and strings of tokens are wanted."""
    max_tokens: int | None = None
    window: int | None = None
    stride: int | None = None
    turns: Sequence[str] | None = None
    """What the user says before each text, which is scored as the answer in a chat."""


@dataclass(frozen=True, eq=False)
class Scored:
    """Scores of one model: rows are the documents that have any."""

    document: NDArray[np.intp]
    """Position of the document, shape (row,)."""
    scores: Mapping[str, NDArray[Any]]
    """Of :data:`_SCORES`: an array a row, of its tokens; :data:`BOUNDARY` has one value more."""
    places: Sequence[NDArray[np.int64] | None]
    """Where the scored tokens begin and end, in UTF-8 bytes; None where the tokenizer changed the text."""
    units: NDArray[np.int64]
    """Words, characters and bytes of what was scored, shape (row, 3)."""
    tokens: Sequence[Sequence[str]]
    """Strings of the scored tokens, by row, where words and tokens are shown."""
    bos: str
    """Token before every document, or none."""
    revision: str = ""
    """Commit of a Hub repository, else the hash of the model's files."""
    window: int | None = None
    stride: int | None = None
    n_long: int = 0
    """Documents that are longer than the window."""
    goes_on: AbstractSet[int] = frozenset()
    """Rows that go on after a text whose last word had its end counted."""
    notes: tuple[str, ...] = ()
    """What the report warns of."""
    said: str = ""
    """What the report says of the cost."""


def scores_of(rows: Sequence[Mapping[str, NDArray[Any]]], *, boundary: float = np.nan) -> dict[str, NDArray[Any]]:
    """Scores by name, of rows that have at least ``logprob``; where a row says none, word ends have one `boundary`."""

    def column(name: str, missing: float) -> NDArray[np.object_]:
        n_more = int(name == BOUNDARY)
        return ragged([row.get(name, np.full(row["logprob"].size + n_more, missing)) for row in rows])

    found = {name: column(name, np.nan) for name in ("logprob", "entropy_nats", "rank")}
    return {**found, "is_best": ragged([its == 1 for its in found["rank"]]), BOUNDARY: column(BOUNDARY, boundary)}
