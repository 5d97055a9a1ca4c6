"""Scores of texts under any engine, of all tokens of each text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.word_spans import has_unspaced, word_spans


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
class Flat:
    """Rows of unequal lengths, one after another in one array: an object per row would take more than its numbers."""

    items: NDArray[Any]
    bounds: NDArray[np.int64]
    """Where each row begins, and where the last one ends."""

    @classmethod
    def of(cls, rows: Iterable[Sequence[Any] | NDArray[Any]], dtype: Any = None) -> Flat:
        """Lay rows out."""
        arrays = [np.asarray(row, dtype=dtype) for row in rows]
        values = np.concatenate(arrays) if arrays else np.zeros(0, dtype=dtype)
        return cls(values, np.cumsum([0, *map(len, arrays)]))

    @classmethod
    def joined(cls, parts: Sequence[Flat]) -> Flat:
        """Rows of several, in order."""
        sizes = np.concatenate([np.zeros(1, dtype=np.int64), *(part.sizes for part in parts)])
        return cls(np.concatenate([part.items for part in parts]), np.cumsum(sizes))

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Length of each row."""
        return np.diff(self.bounds)

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def __getitem__(self, row: int) -> NDArray[Any]:
        return self.items[self.bounds[row] : self.bounds[row + 1]]

    def __iter__(self) -> Iterator[NDArray[Any]]:
        return (self[row] for row in range(len(self)))

    def take(self, rows: NDArray[np.intp]) -> Flat:
        """Some rows."""
        return Flat.of([self[row] for row in rows.tolist()], self.items.dtype)

    def summed(self) -> NDArray[np.float64]:
        """Sum of each row."""
        return np.array([row.sum(dtype=np.float64) for row in self])


@dataclass(frozen=True, eq=False)
class Scored:
    """Scores of one model: rows are the documents that have any."""

    document: NDArray[np.intp]
    """Position of the document, shape (row,)."""
    scores: Mapping[str, Flat]
    """Of :data:`_SCORES`: a row's tokens; :data:`BOUNDARY` has one value more."""
    places: Sequence[NDArray[np.int64]] | Flat
    """Where the scored tokens begin and end, in UTF-8 bytes; empty where the tokenizer changed the text."""
    units: NDArray[np.int64]
    """Words, characters and bytes of what was scored, shape (row, 3)."""
    tokens: Sequence[Sequence[str]] | Flat
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


def scores_of(rows: Sequence[Mapping[str, NDArray[Any]]], *, boundary: float = np.nan) -> dict[str, Flat]:
    """Scores by name, of rows that have at least ``logprob``; where a row says none, word ends have one `boundary`."""

    def column(name: str, missing: float) -> Flat:
        n_more = int(name == BOUNDARY)
        return Flat.of([row.get(name, np.full(row["logprob"].size + n_more, missing)) for row in rows])

    found = {name: column(name, np.nan) for name in ("logprob", "entropy_nats", "rank")}
    return {
        **found,
        "is_best": Flat(found["rank"].items == 1, found["rank"].bounds),
        BOUNDARY: column(BOUNDARY, boundary),
    }
