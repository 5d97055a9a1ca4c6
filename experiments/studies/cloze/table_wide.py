"""Wide cloze tables made long: one row per context with many answers, or one row per participant with many contexts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from shannon_game.estimators.errors import InputError
from shannon_game.estimators.messages import Set
from shannon_game.experiments.studies.cloze.table_columns import ClozeColumns, WideColumns
from shannon_game.experiments.studies.parsing import objects
from shannon_game.experiments.studies.plain_table import Table
from shannon_game.experiments.studies.survey_export import is_own_column, respondent_column

# what stands in a survey's question for a text that it puts there when it asks
_PIPED = re.compile(r"\$\{[a-z]+://|\[Field-")


def long_table(table: Table, wide: WideColumns, columns: ClozeColumns | None) -> tuple[Table, ClozeColumns]:
    """Make a table with one row per answer."""
    given = columns or ClozeColumns(**{name: name for name in ClozeColumns.model_fields if name in table.cells})
    return _of_participants(table, wide, given) if wide.items else _of_contexts(table, wide, given)


def _of_contexts(table: Table, wide: WideColumns, columns: ClozeColumns) -> tuple[Table, ClozeColumns]:
    patterns = {"response": str(wide.answers), "count": wide.counts, "proportion": wide.proportions}
    found = {what: _matching(table, pattern) for what, pattern in patterns.items() if pattern is not None}
    for star in dict.fromkeys(star for its in found.values() for star in its):
        for what, its in found.items():
            if star not in its:
                lacking = str(patterns[what]).replace("*", star)
                raise table.missing(lacking, "every answer needs it, and an answer")
    parts = {str(patterns[what]): [its[star] for star in found["response"]] for what, its in found.items()}
    used = {name for names in parts.values() for name in names}
    fixed = {name: table.texts(name) for name in table.names if name not in used}
    return _long(table, fixed, parts), columns.changed(**{what: str(patterns[what]) for what in found})


def _of_participants(table: Table, wide: WideColumns, columns: ClozeColumns) -> tuple[Table, ClozeColumns]:
    """Every context has a column."""
    items = [column for pattern in wide.items for column in _matching(table, pattern).values()]
    fixed: dict[str, NDArray[Any]] = {}
    who = columns.participant or respondent_column(table)
    if who is not None:
        table.check_columns({"participant": who})
        fixed["participant"] = table.ids(who)
    of_items = {"context_id": items}
    if table.labels:
        of_items["context"] = [table.labels[column].strip() for column in items]
        piped = sum(_PIPED.search(text) is not None for text in of_items["context"])
        text = "questions with a placeholder for a text that Qualtrics puts in, kept as contexts as they are"
        table.note(text, piped, "warning")
    long = _long(table, fixed, {"response": items}, of_items)
    return long, ClozeColumns(**{name: name for name in long.names})


def _long(
    table: Table,
    fixed: dict[str, NDArray[Any]],
    parts: dict[str, list[str]],
    of_parts: Mapping[str, Sequence[str]] | None = None,
) -> Table:
    """One row for each row and column of a part; `fixed` cells stand in every one, `of_parts` says what a column is."""
    n = len(next(iter(parts.values())))
    rows = np.repeat(np.arange(len(table)), n)
    cells = {name: values[rows] for name, values in fixed.items()}
    cells |= {name: np.tile(objects(values), len(table)) for name, values in (of_parts or {}).items()}
    cells |= {name: np.column_stack([table.texts(column) for column in own]).ravel() for name, own in parts.items()}
    empty = np.logical_and.reduce([cells[name] == "" for name in parts])
    if empty.all():
        raise InputError(f"holds no answer in the columns of {Set('study.wide')}", source=table.source)
    table.note("empty cells of the wide table, taken for questions not asked", empty)
    kept = np.flatnonzero(~empty)
    frame = pd.DataFrame({name: values[kept] for name, values in cells.items()}, dtype=object)
    return replace(table, cells=frame, place=table.place[rows[kept]])


def _matching(table: Table, pattern: str) -> dict[str, str]:
    start, star, end = pattern.partition("*")
    fits = re.compile(f"{re.escape(start)}(.+){re.escape(end)}" if star else re.escape(start), flags=re.DOTALL)
    # StartDate and Status, which a survey adds, are no questions that a pattern means
    names = [name for name in table.names if not (star and table.labels and is_own_column(name))]
    found = {(match[1] if star else name): name for name in names if (match := fits.fullmatch(name))}
    if not found:
        raise table.missing(pattern, f"{Set('study.wide')} says which columns they are")
    return found
