"""What the columns of a table of bets are, and how its stakes are read: settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import model_validator

from estimators.errors import InputError, unknown_choice
from inference.settings import Positive, Settings

__all__ = ["BetColumns", "BetLayout", "BetModelColumns"]


class BetColumns(Settings):
    """Names of the table's columns."""

    participant: str = "participant"
    """Who bet."""
    item: str = "item"
    """The place of a text; any text names it."""
    target: str = "target"
    """The true next word, the same in every row of an item."""
    word: str = "word"
    """The word named; empty, with an empty stake, in the one row of an answer that names none."""
    stake: str = "stake"
    """What lies on it: chips, percent or shares, see `total`."""
    other: str | None = None
    """What lies on anything else, the same in every row of an answer; null: what the words leave of `total`."""
    context: str | None = None
    """The text before the target."""


class BetModelColumns(Settings):
    """Columns of a language model that scored the words: natural logarithms; an empty cell was not asked."""

    target: str
    """ln p(target | context), the same in every row of an item."""
    word: str
    """ln p(word named | context)."""


class BetLayout(Settings):
    """What the table means."""

    columns: BetColumns = BetColumns()
    """Names of the table's columns."""
    total: Positive = 100.0
    """What the stakes of an answer add up to, that on anything else among them: 100 chips or percent; 1 for shares.
    Where it is 10 or more, shares are refused: a participant with three answers or more that stake at most 1 each and
    less on some word, or a quarter of such answers."""
    models: Mapping[str, BetModelColumns] = {}
    """Language models that scored the words: NAME: {target: COLUMN, word: COLUMN}."""
    generator: str | None = None
    """Which of the models is the generator; null where there is none, or a single model, which it then is."""
    match: Literal["exact", "folded"] = "exact"
    """When word and target are the same: exact, or folded (without outer spaces and letter case)."""
    extremes: Positive | None = None
    """What a stake of 0 stands for, in the stakes' own unit: smaller stakes are raised to it, the answer is made a sum
    of `total` again, and both are counted; null keeps zeros, which cost an infinite loss where they came."""
    missing: Literal["error", "drop"] = "error"
    """What to do with an answer that has an empty cell; drop leaves the whole answer out, counted."""

    @model_validator(mode="after")
    def _fits(self) -> BetLayout:
        if self.generator is not None and self.generator not in self.models:
            raise unknown_choice("generator", self.generator, self.models, source="settings")
        if self.extremes is not None and self.extremes >= self.total / 10:
            raise InputError(f"is {self.extremes:g}, should be below a tenth of {self.total:g}", field="extremes")
        return self
