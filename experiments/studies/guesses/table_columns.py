"""What the columns of a table of guesses are, and which guesses count: settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import model_validator

from estimators.errors import InputError
from inference.settings import Settings

__all__ = ["GuessColumns", "GuessLayout", "ModelColumns"]


class GuessColumns(Settings):
    """Names of the table's columns."""

    participant: str = "participant"
    """Who guessed."""
    document: str = "document"
    """Which text."""
    position: str = "position"
    """A whole number: words or tokens before the target, 0 for the first of the document."""
    target: str | None = "target"
    """The true next word; the table may lack it where `correct` is there."""
    guess: str | None = "guess"
    """What was guessed; the table may lack it where `correct` is there."""
    correct: str | None = None
    """1/0, true/false, yes/no; without it a guess is right where it is the target, see `match`."""
    order: str | None = None
    """A number that says when it was guessed: time, trial; without it the rows are in the order in which each
    participant guessed."""


class ModelColumns(Settings):
    """Columns of a language model that played the same items; an empty cell is an item that was not asked."""

    hit: str | None = None
    """Whether its first guess was right."""
    surprisal_nats: str | None = None
    """-ln p(target)."""

    @model_validator(mode="after")
    def _one_of_them(self) -> ModelColumns:
        if self.hit is None and self.surprisal_nats is None:
            raise InputError("is empty, should be {hit: COLUMN, surprisal_nats: COLUMN}, or one of the two")
        return self


class GuessLayout(Settings):
    """What the table means."""

    columns: GuessColumns = GuessColumns()
    """Names of the table's columns."""
    models: Mapping[str, ModelColumns] = {}
    """Language models that played the same items: NAME: {hit: COLUMN, surprisal_nats: COLUMN}, or one of the two."""
    match: Literal["exact", "folded"] = "exact"
    """When guess and target are the same: exact, or folded (without outer spaces and letter case)."""
    words: Literal["all", "spaced"] = "all"
    """Which targets are words: all, or spaced (a space and letters only, as tokens of language models are)."""
    missing: Literal["error", "drop"] = "error"
    """What to do with empty cells in the columns that are used; drop leaves the rows out, counted."""
