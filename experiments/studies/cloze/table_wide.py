"""Wide cloze tables made long: one row per context with many answers, or one row per participant with many contexts."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.studies.cloze.table_columns import ClozeColumns, WideColumns
from shannon_game.experiments.studies.parsing import Note, objects
from shannon_game.experiments.studies.plain_table import Table
from shannon_game.experiments.studies.survey_export import is_own_column, respondent_column

# what stands in a survey's question for a text that it puts there when it asks
_PIPED = re.compile(r"\$\{[a-z]+://|\[Field-")


def long_table(table: Table, wide: WideColumns, columns: ClozeColumns | None) -> tuple[Table, ClozeColumns]:
    """Make a table with one row per answer."""
    given = columns or ClozeColumns(**{name: name for name in ClozeColumns.model_fields if name in table.cells})
    return _of_participants(table, wide, given) if wide.items else _of_contexts(table, wide, given)


def _of_contexts(table: Table, wide: WideColumns, columns: ClozeColumns) -> tuple[Table, ClozeColumns]:
    answers = _matching(table, str(wide.answers))
    parts = {str(wide.answers): answers}
    changed = {"response": str(wide.answers)}
    for what, pattern in (("count", wide.counts), ("proportion", wide.proportions)):
        if pattern is not None:
            found = _matching(table, pattern)
            for star in [*answers, *found]:
                if star not in found or star not in answers:
                    lacking = (pattern if star in answers else str(wide.answers)).replace("*", star)
                    hint = "every answer needs it, and an answer"
                    raise table.missing(lacking, hint)
            parts[pattern] = {star: found[star] for star in answers}
            changed[what] = pattern
    rows = np.repeat(np.arange(len(table.cells)), len(answers))
    used = {column for part in parts.values() for column in part.values()}
    cells = {name: table.texts(name)[rows] for name in table.names if name not in used}
    for pattern, part in parts.items():
        cells[pattern] = np.column_stack([table.texts(column) for column in part.values()]).ravel()
    empty = np.logical_and.reduce([cells[pattern] == "" for pattern in parts])
    return _long(table, cells, rows, empty), columns.changed(**changed)


def _of_participants(table: Table, wide: WideColumns, columns: ClozeColumns) -> tuple[Table, ClozeColumns]:
    items = [column for pattern in wide.items for column in _matching(table, pattern).values()]
    rows = np.repeat(np.arange(len(table.cells)), len(items))
    cells = {
        "context_id": np.tile(objects(items), len(table.cells)),
        "response": np.column_stack([table.texts(column) for column in items]).ravel(),
    }
    changed = {"context_id": "context_id", "response": "response"}
    if table.labels:
        cells["context"] = np.tile(objects([table.labels[column].strip() for column in items]), len(table.cells))
        changed["context"] = "context"
        piped = sum(_PIPED.search(table.labels[column]) is not None for column in items)
        if piped:
            text = "questions with a placeholder for a text that Qualtrics puts in, kept as contexts as they are"
            table.notes.append(Note(text, piped, "warning"))
    who = columns.participant or respondent_column(table)
    if who is not None:
        table.check_columns({"participant": who})
        cells["participant"] = table.ids(who)[rows]
        changed["participant"] = "participant"
    return _long(table, cells, rows, cells["response"] == ""), ClozeColumns(**changed)


def _long(table: Table, cells: dict[str, NDArray[Any]], rows: NDArray[np.intp], empty: NDArray[np.bool_]) -> Table:
    if empty.all():
        raise InputError("holds no answer in the columns of study.wide", source=table.source)
    kept = np.flatnonzero(~empty)
    if empty.any():
        table.notes.append(Note("empty cells of the wide table, taken for questions not asked", int(empty.sum())))
    frame = pd.DataFrame({name: values[kept] for name, values in cells.items()}, dtype=object)
    return replace(table, cells=frame, place=table.place[rows[kept]])


def _matching(table: Table, pattern: str) -> dict[str, str]:
    """Columns that fit a pattern, in the table's order, by what stands for its ``*``."""
    start, star, end = pattern.partition("*")
    fits = re.compile(f"{re.escape(start)}(.+){re.escape(end)}" if star else re.escape(start), flags=re.DOTALL)
    # StartDate and Status, which a survey adds, are no questions that a pattern means
    names = [name for name in table.names if not (star and table.labels and is_own_column(name))]
    found = {(match[1] if star else name): name for name in names if (match := fits.fullmatch(name))}
    if not found:
        raise table.missing(pattern, "study.wide says which columns they are")
    return found
