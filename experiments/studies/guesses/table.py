"""Guesses from one plain table: other studies in which people say what comes next and are right or wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from pydantic import model_validator

from shannon_game.estimators.documents.tokens import is_word_token
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.guesses.study import prior_guesses, repeated_guesses, validate_guess_study
from shannon_game.estimators.messages import Set
from shannon_game.experiments.harness.result import loader, of_frames
from shannon_game.experiments.studies.cells import bare, same_words
from shannon_game.experiments.studies.parsing import Note, add_notes, shown
from shannon_game.experiments.studies.plain_table import Columns, Table, table_of
from shannon_game.experiments.studies.table_file import OneTable
from shannon_game.inference.settings import Settings

REPEATED = "guesses at a place at which the participant had guessed before; kept"
"""Note on a table with several guesses of a person at a place."""


class GuessColumns(Columns):
    """Names of the table's columns."""

    participant: Annotated[str, "id"] = "participant"
    """Who guessed."""
    document: Annotated[str, "id"] = "document"
    """Which text."""
    position: Annotated[str, "whole"] = "position"
    """A whole number: words or tokens before the target, 0 for the first of the document."""
    target: Annotated[str | None, "text_or_empty"] = "target"
    """The true next word; the table may lack it where `correct` is there."""
    guess: Annotated[str | None, "text_or_empty"] = "guess"
    """What was guessed; the table may lack it where `correct` is there."""
    correct: Annotated[str | None, "text_or_empty"] = None
    """1/0, true/false, yes/no; without it a guess is right where it is the target, see `match`."""
    order: Annotated[str | None, "number"] = None
    """A number that says when it was guessed: time, trial; without it the rows are in the order in which each
    participant guessed."""


class ModelColumns(Columns):
    """Columns of a language model that played the same items; an empty cell is an item that was not asked."""

    hit: Annotated[str | None, "number_or_empty"] = None
    """Whether its first guess was right."""
    surprisal_nats: Annotated[str | None, "amount_or_empty"] = None
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


class GuessTableSettings(GuessLayout, OneTable):
    """Settings of guesses in one table, with one row per guess."""


@loader(GuessTableSettings)
def guess_table(settings: GuessTableSettings) -> xr.Dataset:
    """Load a table of guesses as a guess study.

    See :func:`guess_study`.
    """
    return _study_of(settings.read("guess", settings.columns.given.values()), settings, name=settings.path.stem)


@of_frames(GuessLayout)
def guess_study(guesses: pd.DataFrame, *, name: str = "guess study", **settings: Any) -> xr.Dataset:
    """Make a guess study of a DataFrame; the columns may have other names, see `columns`.

    Parameters
    ----------
    guesses : pandas.DataFrame
        One row per guess, in the order in which each participant guessed: ``participant``, ``document``, ``position``
        (words or tokens before the target, 0 for the first of the document), ``target`` and ``guess``, or ``correct``.
    name : str, optional
        Of the study.

    Returns
    -------
    xarray.Dataset
        Passes :func:`shannon_game.estimators.guesses.study.validate_guess_study`; ``table_row`` (response) is the row's
        number in the table, from 1.

    Examples
    --------
    >>> import pandas as pd
    >>> from shannon_game import guess_study
    >>> rows = [["ann", "a", 1, "cat", "cat"], ["ann", "a", 2, "sat", "ran"], ["bo", "a", 1, "cat", "cat"]]
    >>> guesses = pd.DataFrame(rows, columns=["participant", "document", "position", "target", "guess"])
    >>> study = guess_study(guesses)
    >>> study["correct"].values.tolist()
    [True, False, True]
    """
    table = table_of(guesses, "guesses", of="guess", needed=GuessColumns().given)
    return _study_of(table, GuessLayout(**settings), name=name)


def _study_of(table: Table, settings: GuessLayout, *, name: str) -> xr.Dataset:
    n_rows, columns = len(table), settings.columns
    # where a column says which guesses are right, the table may lack both words, unless they were asked for by name
    optional = {name for name in ("target", "guess") if columns.correct and getattr(columns, name) == name}
    table = table.named(
        columns.given, GuessColumns.types(), optional=optional, hint=_names_column, models=settings.models
    )
    if "order" in table:
        table = table.take(np.argsort(table["order"], kind="stable"))
    # counted over all rows, those left out included
    before = pd.Series(prior_guesses(table.ids("participant", empty=True).astype(str)), index=table.cells.index)
    # a guess left blank is an answer, and a wrong one, where the column of right and wrong says so
    may_be_blank = {"order", *({"guess"} if "correct" in table else ())}
    needed = [name for name in columns.given if name in table and name not in may_be_blank]
    table = table.without({name: table.blank(name) for name in needed}, settings.missing)
    of = table.groups("document", "position", what="item", sort=True)
    position = table["position"].astype(np.int64)
    variables: dict[str, Any] = {
        "item_document": ("item", table["document"][of.first]),
        "item_position": ("item", position[of.first]),
        "word_token": ("item", np.ones(len(of), dtype=bool)),
        "participant": ("response", table["participant"]),
        "response_item": ("response", of.of_row.astype(np.int64)),
        "correct": ("response", _correct(table, settings)),
        "table_row": ("response", table.cells.index.to_numpy() + 1),
        "n_before": ("response", before.loc[table.cells.index].to_numpy()),
    }
    if "target" in table:
        variables["target_token"] = ("item", of.one("target"))
    if settings.words == "spaced":
        if "target" not in table:
            raise InputError("is 'spaced', but the table has no targets", source=table.source, field="words")
        words = list(map(is_word_token, variables["target_token"][1].tolist()))
        variables["word_token"] = ("item", np.array(words, dtype=bool))
    if "guess" in table:
        variables["guess"] = ("response", table["guess"])
    coords: dict[str, Any] = {"document": np.unique(table["document"].astype(str)).astype(object)}
    if settings.models:
        for variable, kind in (("model_hit", "hit"), ("target_surprisal_nats", "surprisal_nats")):
            found = [
                of.one(f"{model} {kind}") if f"{model} {kind}" in table else np.full(len(of), np.nan)
                for model in settings.models
            ]
            variables[variable] = (("model", "item"), np.stack(found))
        coords["model"] = np.array(list(settings.models), dtype=object)
    study = xr.Dataset(
        variables,
        coords=coords | {"item": np.arange(len(of))},
        attrs={"tokens": "all", "name": name, "data_sha256": table.sha256},
    )
    table.note(REPEATED, repeated_guesses(study), "warning")
    add_notes(study, [Note("rows in the table", n_rows), *table.notes])
    return validate_guess_study(study)


def _names_column(what: str) -> str:
    which = f"{Set(f'study.columns.{what}', 'NAME')} says which one it is"
    return f"{which}; {Set('study.columns.correct', 'NAME')} one that says which guesses are right"


def _correct(table: Table, settings: GuessLayout) -> NDArray[np.bool_]:
    if "correct" not in table:
        return same_words(table, table["guess"], table["target"], settings.match)
    correct = table.flags("correct")
    if "guess" in table and "target" in table:
        _check_contradictions(table, correct)
    return correct


def _check_contradictions(table: Table, correct: NDArray[np.bool_]) -> None:
    guess, target = table["guess"], table["target"]
    wrong = ~correct & (guess == target)
    right = correct & (bare(guess) != bare(target))
    number = int(wrong.sum() + right.sum())
    if 2 * number > correct.size:
        row = int(np.flatnonzero(wrong | right)[0])
        said = f"{shown(guess[row])} for {shown(target[row])} is {'right' if correct[row] else 'wrong'}"
        many = f"{number} of {correct.size} rows contradict guess and target"
        raise table.error(f"says that {said} in {table.where(row)} ({many}); is it inverted?", "correct")
    table.note("guesses that are the target and are wrong by the table; taken as wrong", wrong, "warning")
    table.note("guesses that are not the target and are right by the table; taken as right", right)
