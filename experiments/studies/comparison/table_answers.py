"""People's answers from their table: which are left out, which candidate each is about, and what they report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimators.errors import InputError
from experiments.studies.comparison.table_columns import ComparisonLayout
from experiments.studies.comparison.table_sources import references_of
from experiments.studies.parsing import Note, shown
from experiments.studies.plain_table import Table
from experiments.studies.scales import check_scale

__all__ = ["answers_of"]


def answers_of(
    table: Table, names: Sequence[str], draws: NDArray[np.object_], settings: ComparisonLayout
) -> dict[str, Any]:
    """Make the variables of the responses from the table of answers; what is left out or moved is in its notes."""
    columns = settings.columns
    rows = _complete(table, settings)
    item, draw = (table.ids(columns.of_answers(name), rows=rows) for name in ("item", "draw"))
    place = {(name, each): (i, j) for i, name in enumerate(names) for j, each in enumerate(draws[i].tolist())}
    found = [place.get(key, (-1, -1)) for key in zip(item.tolist(), draw.tolist(), strict=True)]
    where = np.array(found, dtype=np.int64).reshape(-1, 2)
    if (where < 0).any():
        at = int(np.flatnonzero(where[:, 0] < 0)[0])
        raise table.error(
            f"{table.where(rows[at])} answers draw {shown(draw[at])} of item {shown(item[at])}, which the pairs "
            "do not have",
            columns.of_answers("draw"),
        )
    item_of = where[:, 0]
    return references_of(table, columns, rows, item_of, draws) | {
        "participant": ("response", table.ids(columns.participant, rows=rows)),
        "response_item": ("response", item_of),
        "response_candidate": ("response", where[:, 1]),
        "report": ("response", _reports(table, rows, settings)),
    }


def _complete(table: Table, settings: ComparisonLayout) -> NDArray[np.intp]:
    """Rows with a report and a participant; that others are there is a mistake or noted."""
    needed = (settings.columns.report, settings.columns.participant)
    told = table.texts(needed[0]), table.ids(needed[1], empty=True)
    if settings.missing == "error":
        for column, said in zip(needed, told, strict=True):
            empty = said == ""
            if empty.any():
                row, number = int(np.flatnonzero(empty)[0]), int(empty.sum())
                problem = (
                    f"is empty in {table.where(row)} ({number} such rows); study.missing=drop leaves such rows out"
                )
                raise table.error(problem, column)
        return np.arange(len(table.cells))
    empty = (told[0] == "") | (told[1] == "")
    if empty.all():
        raise InputError("holds no answer with a report and a participant", source=table.source)
    if empty.any():
        text = "answers left out: no report or no participant (missing=drop)"
        table.notes.append(Note(text, int(empty.sum()), "warning"))
    return np.flatnonzero(~empty)


def _check_scale(
    table: Table, column: str, report: NDArray[np.float64], rows: NDArray[np.intp], settings: ComparisonLayout
) -> None:
    """Refuse fractions among percentages; a cell with a percent sign says its scale itself."""
    plain = np.array([not text.rstrip().endswith("%") for text in table.texts(column)[rows].tolist()], dtype=bool)
    top = 100 if settings.percent else 1
    who = table.texts(settings.columns.participant)[rows[plain]]
    cure = "write all reports on one scale" + (": as probabilities, without study.percent" if settings.percent else "")
    check_scale(table, column, report[plain] * top, who, rows[plain], top=top, cure=cure)


def _reports(table: Table, rows: NDArray[np.intp], settings: ComparisonLayout) -> NDArray[np.float64]:
    """Reports as probabilities strictly between 0 and 1."""
    column, top = settings.columns.report, 100 if settings.percent else 1
    report = table.shares(column, percent=settings.percent, rows=rows)
    _check_scale(table, column, report, rows, settings)
    beyond = (report < 0) | (report > 1)
    if settings.extremes is not None and not beyond.any():
        low, high = (value / top for value in settings.extremes)
        moved = int(((report < low) | (report > high)).sum())
        report = np.clip(report, low, high)
        if moved:
            ends = " and ".join(f"{value:g}" for value in settings.extremes)
            table.notes.append(Note(f"reports moved to {ends}, which stand for 0 and {top} (extremes)", moved))
    bad = (report <= 0) | (report >= 1)
    if bad.any():
        row = int(rows[np.flatnonzero(beyond if beyond.any() else bad)[0]])
        should = f"a {'percentage' if settings.percent else 'probability'} strictly between 0 and {top}"
        instead = "extremes=[1,99]" if settings.percent else "extremes=[.01,.99]"
        hint = "" if settings.percent else "; study.percent=true reads percentages"
        raise table.error(
            f"is {shown(table.texts(column)[row])} in {table.where(row)} ({int(bad.sum())} such rows), should be "
            f"{should}: 0 and {top} mean an infinite ratio, so say what stands for them, such as "
            f"study.{instead}{hint}",
            column,
        )
    return report
