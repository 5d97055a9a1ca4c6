"""Bets from one plain table: one row a word that somebody named, and what was staked on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from estimators.bets import validate_bet_study
from estimators.errors import InputError
from estimators.layout import add_note
from experiments.harness.result import loader
from experiments.studies.bets.table_columns import BetColumns, BetLayout
from experiments.studies.bets.table_items import ItemRows, with_models
from experiments.studies.bets.table_stakes import shares_of_answers
from experiments.studies.cells import bare, composed, same_words
from experiments.studies.parsing import Note, add_notes, shown
from experiments.studies.plain_table import Table, in_notebook, table_of
from experiments.studies.table_file import read_table
from experiments.studies.table_settings import TableFile
from inference.settings import UserPath

__all__ = ["BetTableSettings", "bet_study", "bet_table"]

_NEEDED = ("participant", "item", "target", "word", "stake")


class BetTableSettings(BetLayout, TableFile):
    """Settings of bets in one table (CSV and the like, or Parquet)."""

    path: UserPath
    """Table with one row a word that was bet on."""


@loader(BetTableSettings)
def bet_table(settings: BetTableSettings) -> xr.Dataset:
    """Load a table of bets as a bet study.

    Parameters
    ----------
    settings : BetTableSettings, optional
        Or its fields by name.

    Returns
    -------
    xarray.Dataset
        See :func:`bet_study`.

    Raises
    ------
    InputError
        For a table that cannot be read, a missing column, or a bad cell; names file, column, row.

    Examples
    --------
    >>> from experiments import bet_table
    >>> study = bet_table(path="bets.csv", models={"gpt2": {"target": "lp_target", "word": "lp"}})  # doctest: +SKIP
    """
    wanted = [column for _, column in settings.columns if column]
    table = read_table(settings.path, of="bet", how=settings, wanted=wanted)
    return _study_of(table, settings, name=settings.path.stem)


@in_notebook
def bet_study(
    bets: pd.DataFrame,
    *,
    columns: Mapping[str, str | None] | BetColumns | None = None,
    total: float = 100.0,
    models: Mapping[str, Mapping[str, str]] | None = None,
    generator: str | None = None,
    match: Literal["exact", "folded"] = "exact",
    extremes: float | None = None,
    missing: Literal["error", "drop"] = "error",
    name: str = "bet study",
) -> xr.Dataset:
    """Make a bet study of a DataFrame; the columns may have other names, see `columns`.

    Parameters
    ----------
    bets : pandas.DataFrame
        One row a word that was bet on: ``participant``, ``item``, ``target``, ``word`` and ``stake``. An answer is all
        rows of one participant and item.
    columns : mapping of str to str, optional
        Column of the DataFrame by the name above: ``{"participant": "worker"}``. Two more may be named: ``other``,
        what lies on anything else, and ``context``.
    total, models, generator, match, extremes, missing
        See :class:`~experiments.studies.bets.table_columns.BetLayout`.
    name : str, optional
        Of the study.

    Returns
    -------
    xarray.Dataset
        Passes :func:`estimators.bets.validate_bet_study`; ``table_row`` (bet) is the row's number, from 1.

    Raises
    ------
    InputError
        For a missing column or a bad cell; names column and row, and lists the columns that there are.

    Examples
    --------
    >>> import pandas as pd
    >>> from experiments import bet_study
    >>> bets = pd.DataFrame(
    ...     {
    ...         "participant": ["ann", "ann", "bo"],
    ...         "item": ["q1", "q1", "q1"],
    ...         "target": ["cat", "cat", "cat"],
    ...         "word": ["cat", "dog", "cow"],
    ...         "stake": [50, 20, 60],
    ...     }
    ... )
    >>> bet_study(bets)["other_stake"].values.tolist()
    [0.3, 0.4]
    """
    given: dict[str, Any] = {"total": float(total), "generator": generator, "match": match, "missing": missing}
    given |= {"extremes": None if extremes is None else float(extremes)}
    given |= {key: value for key, value in (("columns", columns), ("models", models)) if value is not None}
    table = table_of(bets, "bets", of="bet", needed=_NEEDED)
    return _study_of(table, BetLayout(**given), name=name)


def _study_of(table: Table, settings: BetLayout, *, name: str) -> xr.Dataset:
    cells, rows = _complete(table, settings)
    answers, answer = _numbered(cells, ["participant", "item"])
    items, item_of_row = _numbered(cells, ["item"])
    other, stake = shares_of_answers(table, answer, rows, (cells["word"] != "").to_numpy(), settings)
    of = ItemRows(table, rows, item_of_row)
    target = of.text(settings.columns.target)
    is_bet = np.flatnonzero((cells["word"] != "").to_numpy())
    word, of_bet = cells["word"].to_numpy(dtype=object)[is_bet], target[item_of_row[is_bet]]
    _refuse_doubled(table, answer[is_bet], word, rows[is_bet], settings)
    hit, notes = same_words(word, of_bet, settings.match)
    table.notes.extend(notes)
    variables: dict[str, Any] = {
        "item_id": ("item", items["item"].to_numpy(dtype=object)),
        "target": ("item", target),
        "participant": ("response", answers["participant"].to_numpy(dtype=object)),
        "response_item": ("response", item_of_row[np.unique(answer, return_index=True)[1]].astype(np.int64)),
        "other_stake": ("response", other),
        "bet_response": ("bet", answer[is_bet].astype(np.int64)),
        "bet_word": ("bet", word),
        "bet_stake": ("bet", stake[is_bet]),
        "bet_hit": ("bet", hit),
        "table_row": ("bet", rows[is_bet] + 1),
    }
    if settings.columns.context is not None:
        variables["context"] = ("item", of.text(settings.columns.context))
    study = xr.Dataset(
        variables, coords={"item": np.arange(len(items))}, attrs={"name": name, "data_sha256": table.sha256}
    )
    study = with_models(study, of, is_bet, settings)
    add_note(study, "rows in the table", count=len(table.cells))
    add_notes(study, table.notes)
    empty = int(len(answers) - np.unique(answer[is_bet]).size)
    if empty:
        add_note(study, "answers that name no word", count=empty)
    return validate_bet_study(study)


def _complete(table: Table, settings: BetLayout) -> tuple[pd.DataFrame, NDArray[np.intp]]:
    """Cells as texts, and the rows of the table that they are of: those of answers without an empty cell."""
    columns = {name: getattr(settings.columns, name) for name in BetColumns.model_fields}
    columns = {name: column for name, column in columns.items() if column is not None}
    table.check_columns(columns)
    names = ("participant", "item")
    read = {what: table.ids(name, empty=True) if what in names else table.texts(name) for what, name in columns.items()}
    cells = pd.DataFrame(read, dtype=object)
    # a row without word and stake says that its answer names no word
    silent = (cells["word"] == "") & (cells["stake"] == "")
    blank = cells == ""
    blank["context"] = False
    blank.loc[silent, ["word", "stake"]] = False
    bad = blank.any(axis=1).to_numpy()
    if not bad.any():
        return cells, np.arange(len(cells))
    row = int(np.flatnonzero(bad)[0])
    if settings.missing == "error":
        name = next(name for name in columns if blank[name].iloc[row])
        raise table.error(
            f"is empty in {table.where(row)} ({int(bad.sum())} such rows); fill it, or study.missing=drop leaves such "
            "answers out",
            columns[name],
        )
    key = pd.MultiIndex.from_frame(cells[["participant", "item"]])
    out = key.isin(key[bad])
    if out.all():
        raise InputError("holds no answer without an empty cell", source=table.source)
    text = "answers left out: an empty cell (missing=drop)"
    table.notes.append(Note(text, int(key[out].nunique()), "warning"))
    return cells[~out].reset_index(drop=True), np.flatnonzero(~out)


def _numbered(cells: pd.DataFrame, key: list[str]) -> tuple[pd.DataFrame, NDArray[np.intp]]:
    """Different values of some columns in the order of the table, and the number of each row's."""
    number = cells.groupby(key, sort=False, dropna=False).ngroup().to_numpy()
    return cells[key].drop_duplicates().reset_index(drop=True), number.astype(np.intp)


def _refuse_doubled(
    table: Table, answer: NDArray[np.intp], word: NDArray[np.object_], rows: NDArray[np.intp], settings: BetLayout
) -> None:
    """Refuse a word that an answer names twice: whose stake counts is nothing to guess."""
    named = pd.DataFrame({"answer": answer, "word": bare(word) if settings.match == "folded" else composed(word)})
    again = named.duplicated().to_numpy()
    if again.any():
        row = int(np.flatnonzero(again)[0])
        raise table.error(
            f"is {shown(word[row])} in {table.where(rows[row])}, which the same participant has named for this item "
            f"before ({int(again.sum())} such)",
            settings.columns.word,
        )
