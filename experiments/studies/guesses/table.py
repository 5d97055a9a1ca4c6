"""Guesses from one plain table: other studies in which people say what comes next and are right or wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from estimators.documents.tokens import is_word_token
from estimators.errors import InputError
from estimators.guesses.study import prior_guesses, repeated_guesses, validate_guess_study
from estimators.layout import add_note
from experiments.harness.result import loader
from experiments.studies.cells import same_words
from experiments.studies.guesses.table_checks import contradictions
from experiments.studies.guesses.table_columns import GuessColumns, GuessLayout, ModelColumns
from experiments.studies.parsing import add_notes, shown
from experiments.studies.plain_table import Table, in_notebook, missing_column, table_of
from experiments.studies.table_file import read_table
from experiments.studies.table_settings import TableFile
from inference.settings import UserPath

__all__ = ["REPEATED", "GuessTableSettings", "guess_study", "guess_table"]

REPEATED = "guesses at a place at which the participant had guessed before; kept"
"""Note on a table with several guesses of a person at a place."""

_NEEDED = ("participant", "document", "position")
_TRUE = ("1", "true", "yes", "1.0")
_FALSE = ("0", "false", "no", "0.0")


class GuessTableSettings(GuessLayout, TableFile):
    """Settings of guesses in one table (CSV and the like, or Parquet)."""

    path: UserPath
    """Table with one row a guess."""


@loader(GuessTableSettings)
def guess_table(settings: GuessTableSettings) -> xr.Dataset:
    """Load a table of guesses as a guess study.

    Parameters
    ----------
    settings : GuessTableSettings, optional
        Or its fields by name.

    Returns
    -------
    xarray.Dataset
        See :func:`guess_study`.

    Raises
    ------
    InputError
        For a table that cannot be read, a missing column, or a bad cell; names file, column, row.

    Examples
    --------
    >>> from experiments import guess_table
    >>> study = guess_table(path="guesses.csv", columns={"order": "trial"})  # doctest: +SKIP
    """
    wanted = [column for _, column in settings.columns if column]
    table = read_table(settings.path, of="guess", how=settings, wanted=wanted)
    return _study_of(table, settings, name=settings.path.stem)


@in_notebook
def guess_study(
    guesses: pd.DataFrame,
    *,
    columns: Mapping[str, str | None] | GuessColumns | None = None,
    models: Mapping[str, Mapping[str, str]] | None = None,
    match: Literal["exact", "folded"] = "exact",
    words: Literal["all", "spaced"] = "all",
    missing: Literal["error", "drop"] = "error",
    name: str = "guess study",
) -> xr.Dataset:
    """Make a guess study of a DataFrame; the columns may have other names, see `columns`.

    Parameters
    ----------
    guesses : pandas.DataFrame
        One row a guess, in the order in which each participant guessed: ``participant``, ``document``, ``position``
        (words or tokens before the target, 0 for the first of the document), ``target`` and ``guess``.
    columns : mapping of str to str, optional
        Column of the DataFrame by the name above: ``{"participant": "worker"}``. Two more may be named: ``correct``
        (1 or 0, true or false, yes or no), which ``target`` and ``guess`` may then lack; and ``order``, a number that
        says when it was guessed.
    models : mapping, optional
        Language models that played the same items: ``{NAME: {"hit": COLUMN, "surprisal_nats": COLUMN}}``; either may be
        left out, and an empty cell is an item that was not asked.
    match : {"exact", "folded"}, optional
        When guess and target are the same; folded leaves outer spaces and letter case out.
    words : {"all", "spaced"}, optional
        Which targets are words; spaced are a space and letters only, as tokens of language models are.
    missing : {"error", "drop"}, optional
        What to do with empty cells; drop leaves the rows out, counted.
    name : str, optional
        Of the study.

    Returns
    -------
    xarray.Dataset
        Passes :func:`estimators.guesses.study.validate_guess_study`; ``table_row`` (response) is the row's number in
        the table, from 1.

    Raises
    ------
    InputError
        For a missing column or a bad cell; names column and row, and lists the columns that there are.

    Examples
    --------
    >>> import pandas as pd
    >>> from experiments import guess_study
    >>> guesses = pd.DataFrame(
    ...     {
    ...         "participant": ["ann", "ann", "bo", "bo"],
    ...         "document": ["a", "a", "a", "a"],
    ...         "position": [1, 2, 1, 2],
    ...         "target": ["cat", "sat", "cat", "sat"],
    ...         "guess": ["cat", "ran", "cat", "sat"],
    ...     }
    ... )
    >>> study = guess_study(guesses)
    >>> float(study["correct"].mean())
    0.75
    """
    given: dict[str, Any] = {"match": match, "words": words, "missing": missing}
    given |= {key: value for key, value in (("columns", columns), ("models", models)) if value is not None}
    settings = GuessLayout(**given)
    table = table_of(guesses, "guesses", of="guess", needed=(*_NEEDED, "target", "guess"))
    return _study_of(table, settings, name=name)


def _study_of(table: Table, settings: GuessLayout, *, name: str) -> xr.Dataset:
    columns = _present(table, settings)
    used = [each for each in columns if each != "order"]
    ids = ("participant", "document")
    read = (table.ids(columns[each], empty=True) if each in ids else table.texts(columns[each]) for each in used)
    cells = pd.DataFrame(dict(zip(used, read, strict=True)), dtype=object)
    # a guess left blank is an answer, and a wrong one, where the column of right and wrong says so
    needed = cells.drop(columns="guess") if {"guess", "correct"} <= set(used) else cells
    empty = (needed == "").any(axis=1).to_numpy()
    if empty.any() and settings.missing == "error":
        row = int(np.flatnonzero(empty)[0])
        blank = next(each for each in map(str, needed.columns) if needed[each].iloc[row] == "")
        raise table.error(
            f"is empty in {table.where(row)} ({int(empty.sum())} such rows); fill it, or study.missing=drop leaves "
            "such rows out",
            columns[blank],
        )
    if empty.all():
        raise InputError("holds no guess", source=table.source)
    order = table.numbers(columns["order"]) if "order" in columns else np.arange(len(cells), dtype=float)
    by_time = np.argsort(order, kind="stable")
    # counted over all rows, those left out included
    before = np.empty(len(cells), dtype=np.int64)
    before[by_time] = prior_guesses(cells["participant"].to_numpy(dtype=str)[by_time])
    taken = by_time[~empty[by_time]]
    study = _study(table, cells.iloc[taken].reset_index(drop=True), taken, columns, settings)
    study = study.assign(n_before=("response", before[taken]))
    study = _with_models(study, table, taken, settings).assign_attrs(name=name, data_sha256=table.sha256)
    add_note(study, "rows in the table", count=len(cells))
    add_notes(study, table.notes)
    if empty.any():
        add_note(study, "rows left out: an empty cell (missing=drop)", count=int(empty.sum()), level="warning")
    add_notes(study, contradictions(study, table, columns))
    again = int(repeated_guesses(study).sum())
    if again:
        add_note(study, REPEATED, count=again, level="warning")
    return validate_guess_study(study)


def _present(table: Table, settings: GuessLayout) -> dict[str, str]:
    """Column of the table for every field that it has."""
    named = {name: getattr(settings.columns, name) for name in GuessColumns.model_fields}
    named = {name: column for name, column in named.items() if column is not None}
    found = {name: column for name, column in named.items() if column in table.cells}
    default = {name: field.default for name, field in GuessColumns.model_fields.items()}
    table.check_columns({name: column for name, column in named.items() if name in _NEEDED or column != default[name]})
    if "correct" not in found and not {"target", "guess"} <= set(found):
        lacking = next(name for name in ("guess", "target") if name not in found)
        hint = (
            "it says nowhere which guesses are right: study.columns names a column `correct`, or `target` and `guess`"
        )
        raise missing_column(lacking, table.names, source=table.source, hint=hint)
    return found


def _study(
    table: Table, cells: pd.DataFrame, taken: NDArray[np.intp], columns: Mapping[str, str], settings: GuessLayout
) -> xr.Dataset:
    position = table.whole(columns["position"], rows=taken).astype(np.int64)
    place = pd.DataFrame({"document": cells["document"], "position": position})
    response_item, items = _items(place)
    n_items = len(items)
    first = np.full(n_items, len(cells))
    np.minimum.at(first, response_item, np.arange(len(cells)))
    variables: dict[str, Any] = {
        "item_document": ("item", items["document"].to_numpy(dtype=object)),
        "item_position": ("item", items["position"].to_numpy(dtype=np.int64)),
        "word_token": ("item", np.ones(n_items, dtype=bool)),
        "participant": ("response", cells["participant"].to_numpy(dtype=object)),
        "response_item": ("response", response_item),
        "correct": ("response", _correct(table, cells, taken, columns, settings)),
        "table_row": ("response", taken + 1),
    }
    if "target" in cells:
        target = cells["target"].to_numpy(dtype=object)
        two = target != target[first][response_item]
        if two.any():
            row = int(np.flatnonzero(two)[0])
            other, document = target[first][response_item][row], cells["document"].iloc[row]
            raise table.error(
                f"is {shown(target[row])} in {table.where(taken[row])}, but {shown(other)} in another row of document "
                f"{shown(document)}, position {position[row]}",
                columns["target"],
            )
        variables["target_token"] = ("item", target[first])
    if settings.words == "spaced":
        if "target" not in cells:
            raise InputError("is 'spaced', but the table has no targets", source=table.source, field="words")
        words = [is_word_token(token) for token in variables["target_token"][1].tolist()]
        variables["word_token"] = ("item", np.array(words, dtype=bool))
    if "guess" in cells:
        variables["guess"] = ("response", cells["guess"].to_numpy(dtype=object))
    documents = np.unique(items["document"].to_numpy(dtype=str)).astype(object)
    return xr.Dataset(variables, coords={"document": documents, "item": np.arange(n_items)}, attrs={"tokens": "all"})


def _items(place: pd.DataFrame) -> tuple[NDArray[np.int64], pd.DataFrame]:
    items = place.drop_duplicates().sort_values(["document", "position"]).reset_index(drop=True)
    numbered = place.merge(items.assign(item=np.arange(len(items))), on=["document", "position"], how="left")
    return numbered["item"].to_numpy(dtype=np.int64), items


def _correct(
    table: Table, cells: pd.DataFrame, taken: NDArray[np.intp], columns: Mapping[str, str], settings: GuessLayout
) -> NDArray[np.bool_]:
    if "correct" in cells:
        said = cells["correct"].str.strip().str.lower()
        bad = ~said.isin([*_TRUE, *_FALSE]).to_numpy()
        if bad.any():
            row = int(np.flatnonzero(bad)[0])
            raise table.error(
                f"is {shown(cells['correct'].iloc[row])} in {table.where(taken[row])}, should be 1 or 0, true or "
                "false, yes or no",
                columns["correct"],
            )
        return said.isin(_TRUE).to_numpy(dtype=bool)
    correct, notes = same_words(cells["guess"].to_numpy(), cells["target"].to_numpy(), settings.match)
    table.notes.extend(notes)
    return correct


def _with_models(study: xr.Dataset, table: Table, taken: NDArray[np.intp], settings: GuessLayout) -> xr.Dataset:
    """Add the language models of the table; a model says one thing about an item, whoever guessed there."""
    if not settings.models:
        return study
    named = {
        kind: np.stack(
            [_of_items(study, table, taken, model, getattr(its, kind)) for model, its in settings.models.items()]
        )
        for kind in ModelColumns.model_fields
    }
    return study.assign(
        model_hit=(("model", "item"), named["hit"]),
        target_surprisal_nats=(("model", "item"), named["surprisal_nats"]),
    ).assign_coords(model=np.array(list(settings.models), dtype=object))


def _of_items(
    study: xr.Dataset, table: Table, taken: NDArray[np.intp], model: str, column: str | None
) -> NDArray[np.float64]:
    """What the rows of an item agree on; NaN where they say nothing, or there is no such column."""
    values = np.full(study.sizes["item"], np.nan)
    if column is None:
        return values
    table.check_column(column, column, hint=f"model {model!r} needs it")
    item = study["response_item"].to_numpy()
    cells = table.numbers(column, rows=taken, empty=True)
    values[item] = cells
    other = ~((values[item] == cells) | (np.isnan(values[item]) & np.isnan(cells)))
    if other.any():
        place = study.isel(item=int(item[np.flatnonzero(other)[0]]))
        raise table.error(
            f"differs between rows of one item (document {place['item_document'].item()!r}, position "
            f"{place['item_position'].item()})",
            column,
        )
    return values
