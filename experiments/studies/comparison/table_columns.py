"""What the columns of a comparison study's tables are, and how their reports are read: settings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Literal

from pydantic import model_validator

from shannon_game.estimators.errors import InputError
from shannon_game.estimators.messages import Set
from shannon_game.experiments.studies.plain_table import Columns, Table
from shannon_game.inference.settings import Settings

PAIRS = ("item", "draw", "context", "target", "candidate")
"""Columns that a table of candidates needs."""

OPTIONAL = ("source", "proposal_logprob", "inclusion_logprob", "batch")
"""Further columns of candidates."""

ANSWERS = ("item", "draw", "participant", "report")
"""Columns that a table of answers needs."""

FORECASTS = ("item", "participant", "report", "outcome")
"""Columns that a table of answers without candidates needs."""

OPTIONS = ("option", "other")

FREE_ANSWERS = ("item", "participant", "answer")
"""Columns that a table of free answers needs."""

DISTRIBUTIONS = ("item", "token", "logprob")
"""Columns that a table of whole distributions needs."""

TARGET, CANDIDATE = "target_logprob_", "candidate_logprob_"
"""What the columns of a language model begin with."""


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


class ComparisonColumns(Columns):
    """Names of the tables' columns."""

    item: Annotated[str, "id"] = "item"
    """Of both tables: the item."""
    draw: Annotated[str, "id"] = "draw"
    """Of both tables: tells an item's candidates apart; any text."""
    context: Annotated[str, "text_or_empty"] = "context"
    """Of the candidates: the text before the target."""
    target: Annotated[str, "text"] = "target"
    """Of the candidates: the true next token."""
    candidate: Annotated[str, "text"] = "candidate"
    """Of the candidates: the token that was drawn."""
    participant: Annotated[str, "id"] = "participant"
    """Of the answers: who answered."""
    report: Annotated[str, "number"] = "report"
    """Of the answers: the probability given to the target; without candidates, the probability that was stated."""
    outcome: Annotated[str | None, "text"] = "outcome"
    """Of answers without candidates: whether what the report is of came true: 1/0, true/false, yes/no, or the token
    that did. null: it always did."""
    option: Annotated[str | None, "text"] = "option"
    """Of answers without candidates, optional: of two tokens, the one that the report is of."""
    other: Annotated[str | None, "text"] = "other"
    """The other token."""
    source: Annotated[str, "id"] = "source"
    """Of the candidates, optional: generator, proposal, distinct or answer; generator where there is no such column."""
    proposal_logprob: Annotated[str, "logprob_or_empty"] = "proposal_logprob"
    """Of the candidates, optional: ln of the probability that one draw of another proposal gives the token, nats."""
    inclusion_logprob: Annotated[str, "logprob_or_empty"] = "inclusion_logprob"
    """Of the candidates, optional: ln of the probability that the token is among the item's distinct draws, nats."""
    batch: Annotated[str, "whole"] = "batch"
    """Of the candidates and the free answers, optional: the batch of free answers."""
    reference: Annotated[str, "id_or_empty"] = "reference"
    """Of the answers, optional: the draw that the candidate was compared with, empty for the target."""
    answer: Annotated[str, "text"] = "answer"
    """Of the free answers: the token."""
    token: Annotated[str, "text"] = "token"
    """Of the distributions: a token of the generator's vocabulary."""
    logprob: Annotated[str, "logprob"] = "logprob"
    """Of the distributions: ln of the token's probability under the generator, nats."""
    answers: AnswerColumns = AnswerColumns()
    """Names that the answers have for the columns of both tables."""
    free_answers: FreeAnswerColumns = FreeAnswerColumns()
    """Names that the free answers have for the columns of other tables."""

    def of(self, table: str, names: Iterable[str]) -> dict[str, str]:
        """Names of some columns in the table of pairs, answers, free_answers or distributions."""
        own = getattr(self, table, None)
        found = {name: getattr(own, name, None) or getattr(self, name) for name in names}
        return {name: column for name, column in found.items() if column is not None}

    def read(self, given: Table, table: str, needed: Sequence[str], optional: Sequence[str] = ()) -> Table:
        """The table of pairs, answers, free answers or distributions by the names of these columns."""
        own = type(getattr(self, table)).model_fields if hasattr(self, table) else ()
        columns = self.of(table, needed)
        given.check_columns({f"{table}.{name}" if name in own else name: column for name, column in columns.items()})
        columns |= self.of(table, optional)
        models = {name: name for name in given.names if table == "pairs" and name.startswith((TARGET, CANDIDATE))}
        types = self.types() | dict.fromkeys(models, "logprob")
        return given.named(columns | models, types, optional=optional)


class ComparisonLayout(Settings):
    """What the tables mean."""

    generator: str | None = None
    """The language model that drew the candidates; null without candidates."""
    percent: bool = False
    """Reports are percentages, not probabilities. Refused are then a participant with three reports or
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
        low, high = self.extremes or (top / 4, top / 2)
        # in percent, an upper end below 1 is a probability by mistake: it would move every report
        if not 0 < low < high < top or (self.percent and high <= 1):
            right = f"two rising numbers between 0 and {top}" + (
                ", such as [1, 99]" if self.percent else f"; {Set('study.percent', True)} takes [1, 99]"
            )
            raise InputError(f"is {[low, high]}, should be {right}", field="extremes")
        return self
