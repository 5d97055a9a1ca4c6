"""What the columns of a comparison study's tables are, and how their reports are read: settings."""

from __future__ import annotations

from typing import Literal

from pydantic import model_validator

from shannon_game.estimators.errors import InputError
from shannon_game.inference.settings import Settings


class AnswerColumns(Settings):
    """Columns of both tables that have another name in the answers; null where they have the same."""

    item: str | None = None
    """The item."""
    draw: str | None = None
    """Which candidate of the item was shown."""


class FreeAnswerColumns(Settings):
    """Columns that have another name in the free answers; null where they have the same."""

    item: str | None = None
    """The item."""
    participant: str | None = None
    """Who answered."""


class ComparisonColumns(Settings):
    """Names of the tables' columns."""

    item: str = "item"
    """Of both tables: the item."""
    draw: str = "draw"
    """Of both tables: tells an item's candidates apart; any text."""
    context: str = "context"
    """Of the candidates: the text before the target."""
    target: str = "target"
    """Of the candidates: the true next token."""
    candidate: str = "candidate"
    """Of the candidates: the token that was drawn."""
    participant: str = "participant"
    """Of the answers: who answered."""
    report: str = "report"
    """Of the answers: the probability given to the target."""
    source: str = "source"
    """Of the candidates, optional: generator, proposal, distinct or answer; generator where there is no such column."""
    proposal_logprob: str = "proposal_logprob"
    """Of the candidates, optional: ln of the probability that one draw of another proposal gives the token, nats."""
    inclusion_logprob: str = "inclusion_logprob"
    """Of the candidates, optional: ln of the probability that the token is among the item's distinct draws, nats."""
    batch: str = "batch"
    """Of the candidates and the free answers, optional: the batch of free answers."""
    reference: str = "reference"
    """Of the answers, optional: the draw that the candidate was compared with, empty for the target."""
    answer: str = "answer"
    """Of the free answers: the token."""
    answers: AnswerColumns = AnswerColumns()
    """Names that the answers have for the columns of both tables."""
    free_answers: FreeAnswerColumns = FreeAnswerColumns()
    """Names that the free answers have for the columns of other tables."""

    def of_answers(self, name: str) -> str:
        """Name of a column in the table of answers."""
        own: str | None = getattr(self.answers, name, None)
        return own or getattr(self, name)

    def of_free_answers(self, name: str) -> str:
        """Name of a column in the table of free answers."""
        own: str | None = getattr(self.free_answers, name, None)
        return own or getattr(self, name)


class ComparisonLayout(Settings):
    """What the tables mean."""

    generator: str
    """The language model that drew the candidates."""
    percent: bool = False
    """Reports are percentages of the target, not probabilities. Refused are then a participant with three reports or
    more none above 1 and one between 0 and 1, and a table with a quarter of such reports."""
    extremes: tuple[float, float] | None = None
    """What reports of 0 and 1 (or 100) stand for, in the reports' own unit: [0.01, 0.99], or [1, 99] with percent.
    Reports beyond are moved there and counted; null refuses reports of 0 and 1."""
    missing: Literal["error", "drop"] = "error"
    """What to do with answers that have no report or no participant; drop leaves them out, counted."""
    columns: ComparisonColumns = ComparisonColumns()
    """Names of the tables' columns."""

    @model_validator(mode="after")
    def _extremes_in_the_reports_unit(self) -> ComparisonLayout:
        top = 100 if self.percent else 1
        if self.extremes is not None and not 0 < self.extremes[0] < self.extremes[1] < top:
            right = f"two rising numbers between 0 and {top}" + ("" if self.percent else "; percent=true takes [1, 99]")
            raise InputError(f"is {list(self.extremes)}, should be {right}", field="extremes")
        return self
