"""Rows of delimited text: as wide as the header, none swallowed by a quotation mark, none lost."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimators.errors import InputError
from experiments.studies.cells import folded
from experiments.studies.parsing import Note, some_of
from experiments.studies.table_settings import TableFile

__all__ = ["MOST_COLUMNS", "Rows", "TextColumns", "check_header", "header_names"]

MOST_COLUMNS = 10_000
"""A table with more columns is refused before any row is read."""

_ROWS_AT_ONCE = 20_000
# a column with more different cells than this costs more to look up than it saves
_CELLS_SHARED = 50_000


@dataclass(frozen=True)
class TextColumns:
    """A table of text.

    Parameters
    ----------
    columns : dict of str to list of str
        Cells by column.
    lines : ndarray of int, shape (row,)
        Line of the file in which each row begins.
    notes : list of Note
    """

    columns: dict[str, list[str]]
    lines: NDArray[np.int64]
    notes: list[Note]


def header_names(names: Sequence[str]) -> list[str]:
    """Names of columns; row names of R and pandas have none, nor have columns that a spreadsheet left."""
    return [folded(name) or f"(column {at})" for at, name in enumerate(names, start=1)]


def check_header(names: Sequence[str], source: object) -> None:
    """Refuse two columns of one name, and more columns than a table has."""
    if len(names) > MOST_COLUMNS:
        raise InputError(f"has {len(names):,} columns, more than {MOST_COLUMNS:,}", source=source)
    twice = list(dict.fromkeys(name for name in names if names.count(name) > 1)) if len(set(names)) < len(names) else []
    if twice:
        more = f" ({some_of(twice)})" if len(twice) > 1 else ""
        raise InputError(f"is the name of more than one column{more}; rename one", source=source, field=twice[0])


class Rows:
    """Rows of one file while they are read.

    Parameters
    ----------
    path : Path
    how : TableFile
    separator : str
    """

    def __init__(self, path: Path, how: TableFile, separator: str) -> None:
        self._path, self._how, self._separator = path, how, separator
        self._lines: list[int] = []
        self._notes: list[Note] = []
        self._over_lines: list[int] = []
        self._swallowing: list[int] = []

    def read(self, reader: Any, record: list[str]) -> TextColumns:
        """Read all rows of a `reader`; `record` holds the lines that it took since it was last cleared."""
        try:
            return self._read(reader, record)
        except csv.Error as error:
            start = reader.line_num - max(len(record), 1) + 1
            problem = f"line {reader.line_num}: {error}"
            if "unexpected end" in str(error):
                problem = f"line {start}: a quotation mark begins a field there that never ends"
            raise InputError(
                f"{problem}; a quotation mark inside a quoted field is written twice, and study.quoting=none takes "
                "quotation marks for characters like others",
                source=self._path,
            ) from None

    def _read(self, reader: Any, record: list[str]) -> TextColumns:
        header = self._header(next(reader, []))
        width = len(header)
        record.clear()
        columns: list[list[str]] = [[] for _ in header]
        shared: list[dict[str, str] | None] = [{} for _ in header]
        rows: list[list[str]] = []
        empty = 0
        for row in reader:
            line = reader.line_num
            if len(record) > 1:
                self._look_for_swallowed(record, width, line)
                line -= len(record) - 1
            record.clear()
            if not any(row):
                # an empty line is nothing; one with separators is a row that a spreadsheet left
                empty += len(row) > 1
                continue
            if len(row) != width:
                raise self._width(row, header, line)
            rows.append(row)
            self._lines.append(line)
            if len(rows) == _ROWS_AT_ONCE:
                _extend(columns, shared, rows)
        _extend(columns, shared, rows)
        self._check_swallowed()
        if empty:
            self._notes.append(Note("rows without any entry, left out", empty))
        blank = set(self._how.empty)
        if blank:
            columns = [["" if cell in blank else cell for cell in column] for column in columns]
        cells = dict(zip(header, columns, strict=True))
        return TextColumns(cells, np.array(self._lines, dtype=np.int64), self._notes)

    def _header(self, names: list[str]) -> list[str]:
        names = header_names(names)
        check_header(names, self._path)
        return names

    def _width(self, row: list[str], header: list[str], line: int) -> InputError:
        hint = "quote fields that hold the separator, or set study.separator"
        if len(row) == len(header) + 1 and not self._lines:
            hint = "if the first is a row's name, write the table without them (R: row.names = FALSE); else " + hint
        return InputError(f"line {line}: has {len(row)} fields, the header {len(header)}; {hint}", source=self._path)

    def _look_for_swallowed(self, record: list[str], width: int, line: int) -> None:
        """A stray quotation mark makes one row of several, each of which is a whole row without it."""
        self._over_lines.append(line - len(record) + 1)
        alone = csv.reader(record, delimiter=self._separator, quoting=csv.QUOTE_NONE)
        if width > 1 and all(len(row) == width for row in alone):
            self._swallowing.append(line - len(record) + 1)

    def _check_swallowed(self) -> None:
        if not self._swallowing or self._how.quoting != "auto":
            return
        text = "a quoted field goes over several lines, each of which looks like a row of the table"
        # by chance a quoted text has as many separators in every line; a stray mark does it each time
        if 2 * len(self._swallowing) > len(self._over_lines):
            raise InputError(
                f"line {self._swallowing[0]}: {text}: a stray quotation mark? study.quoting=none takes quotation marks "
                "for characters like others, study.quoting=standard takes the field as it is",
                source=self._path,
            )
        self._notes.append(Note(f"rows in which {text}; kept", len(self._swallowing), "warning"))


def _extend(columns: list[list[str]], shared: list[dict[str, str] | None], rows: list[list[str]]) -> None:
    """Add rows to their columns; equal cells of a column are one string, which saves most of the memory."""
    for at, cells in enumerate(zip(*rows, strict=True)):
        known = shared[at]
        if known is not None:
            columns[at].extend(map(known.setdefault, cells, cells))
            if len(known) > _CELLS_SHARED:
                shared[at] = None
        else:
            columns[at].extend(cells)
    rows.clear()
