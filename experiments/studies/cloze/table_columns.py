"""What the columns of a cloze table are, and how its rows become a study: settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, model_validator

from shannon_game.estimators.errors import InputError
from shannon_game.estimators.messages import Set
from shannon_game.experiments.studies.cloze.rows import WordRulesName
from shannon_game.experiments.studies.parsing import Note
from shannon_game.experiments.studies.plain_table import Columns, Table
from shannon_game.experiments.studies.table_file import CellTexts, TableFile
from shannon_game.inference.settings import Count, Names, Settings, UserPath


class ClozeColumns(Columns):
    """Name of each column in the table; null where there is none."""

    context: Annotated[str | None, "text_or_empty"] = None
    """Text before the word asked for."""
    context_id: Annotated[str | None, "id_or_empty"] = None
    """Tells contexts apart; without it (and without word_num) their text does."""
    response: Annotated[str | None, "text_or_empty"] = None
    """The answer. Needed, and a context, a context_id, or text_id with word_num."""
    count: Annotated[str | None, "whole_or_empty"] = None
    """People who gave this answer, or draws of a model. With neither count nor proportion every row is one answer."""
    proportion: Annotated[str | None, "number_or_empty"] = None
    """Share of the people who gave this answer (0.25, or 25%); of a model's row its probability. Beside a count, or
    where only models' rows have one, it is that of the models alone."""
    participant: Annotated[str | None, "id_or_empty"] = None
    """Who answered."""
    participant_group: Annotated[str | None, "id_or_empty"] = None
    """Group of people that the answer is of, as their first language or age; the question groups compares groups."""
    target: Annotated[str | None, "text_or_empty"] = None
    """The word of the text."""
    text_id: Annotated[str | None, "id_or_empty"] = None
    """Text that the context is from; standard errors resample texts."""
    word_num: Annotated[str | None, "whole_or_empty"] = None
    """Number of the word asked for in its text."""
    model: Annotated[str | None, "id_or_empty"] = None
    """Empty for people's answers, else the name of the model whose samples these are."""

    @model_validator(mode="after")
    def _not_too_much(self) -> ClozeColumns:
        found = self.given
        if {"count", "proportion"} <= set(found) and "model" not in found:
            raise InputError("names a count and a proportion, but no model; name the count only")
        if "word_num" in found and "text_id" not in found:
            raise InputError("names word_num without text_id")
        return self


class WideColumns(Settings):
    """Columns of a table that has several answers in a row."""

    answers: str | None = None
    """One row per context: the columns of its answers, with * for what tells them apart, such as Answer_*."""
    counts: str | None = None
    """The columns of their counts, with the same *, such as N_*."""
    proportions: str | None = None
    """The columns of their proportions, with the same *, such as Proportion_*."""
    items: Names = ()
    """One row per participant: the columns of the answers, each of one context, such as S* or [S1, S2]. The column's
    name is the context's id; in a Qualtrics export the question is the context, and ResponseId the participant."""

    @model_validator(mode="after")
    def _one_of_them(self) -> WideColumns:
        if (self.answers is None) == (not self.items):
            raise InputError("should have answers (one row per context) or items (one row per participant)")
        if self.items and (self.counts or self.proportions):
            raise InputError("has items, so that every cell is one answer; counts and proportions go with answers")
        if self.counts and self.proportions:
            raise InputError("names counts and proportions; name the counts only")
        for name in ("answers", "counts", "proportions"):
            pattern = getattr(self, name)
            if pattern is not None and pattern.count("*") != 1:
                raise InputError(f"is {pattern!r}, should have one * for what tells the columns apart", field=name)
        for pattern in self.items:
            if pattern.count("*") > 1:
                raise InputError(f"is {pattern!r}, should have at most one *", field="items")
        return self


class ScoreColumns(Columns):
    """Names of the columns of a table of scores; those of the context are by default called as in the study's table."""

    context_id: Annotated[str | None, "id_or_empty"] = None
    """Id of the context."""
    context: Annotated[str | None, "text_or_empty"] = None
    """Text of the context, where the study has no ids."""
    text_id: Annotated[str | None, "id_or_empty"] = None
    """Text that the context is from."""
    word_num: Annotated[str | None, "whole_or_empty"] = None
    """Number of the word in its text."""
    word: Annotated[str, "text_or_empty"] = "word"
    """The word or token that was scored."""
    value: Annotated[str, "number_or_empty"] = "value"
    """Its score."""
    model: Annotated[str | None, "id_or_empty"] = None
    """Name of the model that gave it, where a table has several; the rows of NAME are read."""


class ScoreFile(TableFile):
    """Log-probabilities of words that another program wrote."""

    path: UserPath
    """A table with one row per word or token, or JSON lines of minicons or lm-evaluation-harness."""
    scale: Literal["logprob_nats", "logprob_bits", "surprisal_nats", "surprisal_bits", "probability"] | None = None
    """What the numbers are; pangoling and minicons give logprob_nats unless they are asked for something else. Needed,
    except for lm-evaluation-harness."""
    columns: ScoreColumns = ScoreColumns()
    """Names of the table's columns."""


class ClozeRowSettings(Settings):
    """How the rows of a table become a study."""

    columns: ClozeColumns | None = None
    """What each column of the table is; null takes those that bear these names."""
    wide: WideColumns | None = None
    """Where a row has several answers: {answers: 'Answer_*', proportions: 'Proportion_*'} or {items: 'S*'}."""
    scores: Mapping[str, ScoreFile] = {}
    """Log-probabilities of the target words by language model, NAME: {path: FILE, scale: surprisal_bits}; a target that
    is several tokens has the sum of theirs."""
    missing: CellTexts = ()
    """Texts that stand for no answer in this table, such as [NA, -99]; an empty field always does."""
    drop_incomplete: bool = False
    """Leave rows without a context, weight or participant out (counted) instead of refusing the table."""
    first_answers: bool = False
    """Of several answers of a participant to one context keep the first; others are counted."""
    n_answers: Count | None = None
    """Answers behind the proportions of each context, if there were as many everywhere: gives counts."""
    proportions: Literal["another_word", "rescale", "refuse"] = "another_word"
    """What happens to proportions that do not sum to one. What they lack is the share of other answers, each called
    another_word and rarer than the best one there; rescale spreads it over the answers there. Both warn; what is too
    much is rescaled."""
    percent: bool = False
    """Proportions are percentages; contexts whose percentages sum to 1, of two answers or more, and
    a model with three rows or more, none above 1, are refused."""
    model_draws: Annotated[int, Field(ge=100, le=10**6)] = 10_000
    """Draws that stand for the probabilities of a model's words in each context: the share of each is rounded to
    this many; its log-probability is kept beside it, as it is."""
    word_rules: WordRulesName = "clean"
    """What makes this table's strings comparable (shannon_game.estimators.cloze.words.WORD_RULES)."""


def named_columns(table: Table, columns: ClozeColumns | None) -> tuple[Table, list[Note]]:
    """The table by the columns that the settings name, or else by those that bear the settings' names."""
    own = {name: name for name in ClozeColumns.model_fields}
    found = {name: name for name in own if name in table} if columns is None else columns.given
    table.check_columns(found)
    hint = f"name the columns: {Set('study.columns', {'context': 'COLUMN', 'response': 'COLUMN'})}"
    if "response" not in found:
        raise table.missing("response", hint)
    if not {"context", "context_id", "word_num"} & set(found):
        raise table.missing("context", f"{hint}, or an id of it (context_id), or text_id and word_num")
    if columns is None:
        table.refuse_misspelt(own)
    unread = [name for name in table.names if name not in found.values()]
    # a model's rows are people's answers where the settings do not say which column names the model
    text = f"columns that {Set('study.columns')} does not name were not read: {', '.join(unread)}"
    return table.named(found, ClozeColumns.types()), [Note(text, None)] if unread else []
