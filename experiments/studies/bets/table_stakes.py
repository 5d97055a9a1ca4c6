"""Stakes of a table as shares: what an answer adds up to, and what a stake of 0 stands for."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from experiments.studies.bets.table_columns import BetLayout
from experiments.studies.parsing import Note, shown
from experiments.studies.plain_table import Table
from experiments.studies.scales import check_scale

__all__ = ["shares_of_answers"]

FloatArray = NDArray[np.float64]
# percent that were rounded to whole ones add up to 99 or 101
_SLACK = 0.015


def shares_of_answers(
    table: Table, answer: NDArray[np.intp], rows: NDArray[np.intp], named: NDArray[np.bool_], settings: BetLayout
) -> tuple[FloatArray, FloatArray]:
    """Read the stakes of a table as shares of each answer's total."""
    columns, total = settings.columns, settings.total
    stake = np.zeros(rows.size)
    stake[named] = table.numbers(columns.stake, rows=rows[named])
    _refuse_negative(table, columns.stake, stake, rows)
    first = np.unique(answer, return_index=True)[1]
    sums = np.bincount(answer, weights=stake)
    _check_total(table, answer, rows, stake, settings)
    if columns.other is None:
        other = total - sums
        over = other < -1e-9 * total
        if over.any():
            at = int(np.flatnonzero(over)[0])
            problem = f"adds up to {sums[at]:g} in the answer that begins in {table.where(rows[first[at]])}"
            raise table.error(
                f"{problem} ({int(over.sum())} such), should be at most {total:g}; study.total says what an answer has",
                columns.stake,
            )
        other = np.maximum(other, 0)
    else:
        said = table.numbers(columns.other, rows=rows)
        _refuse_negative(table, columns.other, said, rows)
        other = said[first]
        if (said != other[answer]).any():
            row = int(np.flatnonzero(said != other[answer])[0])
            raise table.error(f"differs between rows of one answer, in {table.where(rows[row])}", columns.other)
        off = np.abs(sums + other - total) > _SLACK * total
        if off.any():
            at = int(np.flatnonzero(off)[0])
            problem = f"and {columns.stake} add up to {sums[at] + other[at]:g} in the answer that begins in"
            raise table.error(
                f"{problem} {table.where(rows[first[at]])} ({int(off.sum())} such), should be {total:g}; study.total "
                "says what an answer has",
                columns.other,
            )
        rounded = int((np.abs(sums + other - total) > 1e-6 * total).sum())
        if rounded:
            table.notes.append(Note(f"answers that did not add up to {total:g} exactly; made to", rounded))
    if settings.extremes is not None:
        low = int((stake[named] < settings.extremes).sum() + (other < settings.extremes).sum())
        stake[named] = np.maximum(stake[named], settings.extremes)
        other = np.maximum(other, settings.extremes)
        if low:
            table.notes.append(Note(f"stakes raised to {settings.extremes:g} (extremes)", low, "warning"))
    sums = np.bincount(answer, weights=stake) + other
    return other / sums, stake / sums[answer]


def _check_total(
    table: Table, answer: NDArray[np.intp], rows: NDArray[np.intp], stake: FloatArray, settings: BetLayout
) -> None:
    """Refuse answers whose stakes are shares of 1 where the total is another, or the reverse."""
    sums: FloatArray = np.bincount(answer, weights=stake).astype(np.float64)
    first, staked = np.unique(answer, return_index=True)[1], sums > 0
    least = np.full(first.size, np.inf)
    np.minimum.at(least, answer, np.where(stake > 0, stake, np.inf))
    check_scale(
        table,
        settings.columns.stake,
        sums[staked],
        table.texts(settings.columns.participant)[rows[first[staked]]],
        rows[first[staked]],
        top=settings.total,
        cure="shares take study.total=1; a table has one scale",
        least=least[staked],
    )


def _refuse_negative(table: Table, column: str, values: FloatArray, rows: NDArray[np.intp]) -> None:
    if (values < 0).any():
        row = int(rows[np.flatnonzero(values < 0)[0]])
        raise table.error(f"is {shown(table.texts(column)[row])} in {table.where(row)}, should be 0 or more", column)
