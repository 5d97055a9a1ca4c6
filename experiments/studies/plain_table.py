"""Plain tables, from a file or a DataFrame: a cell is the text that stands there, and a number where one is needed."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from estimators.errors import InputError
from experiments.studies.parsing import Note, objects, shown, some_of, whole_characters
from experiments.studies.text_rows import check_header

__all__ = ["MOST", "Table", "cell_text", "missing_column", "table_of"]

MOST = 2**31 - 1
"""The largest count that a study holds."""

_COLUMNS_LISTED = 40
# float32 rounds a probability of nearly 1 to a hair above
_LOG_SLACK = 1e-5


@dataclass(frozen=True)
class Table:
    """A table as it was given.

    Parameters
    ----------
    cells : pandas.DataFrame
        Strings only where the table is a file of text, any types where it is Parquet or a DataFrame.
    source : Path or str
        The file or the argument, for messages.
    sha256 : str
        Of the file, or of the cells.
    hint : str
        How to say that a column has another name; ``{}`` is the name that the loader has for it.
    lines : ndarray of int, optional
        Line of the file in which each row begins.
    unit : {"line", "row"}, optional
        What `lines` counts.
    decimal : {"auto", "point", "comma"}, optional
        See :class:`~experiments.studies.table_settings.TableFile`.
    labels : dict of str to str, optional
        What the export of a survey says of its columns.
    notes : list of Note, optional
        What reading the table noted.
    """

    cells: pd.DataFrame
    source: Path | str
    sha256: str
    hint: str
    lines: NDArray[np.int64] | None = None
    unit: str = "line"
    decimal: str = "auto"
    labels: dict[str, str] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return list(map(str, self.cells.columns))

    def where(self, row: int) -> str:
        """Place of a row for messages: its line in a file of text, else its number, from 1."""
        return f"row {row + 1}" if self.lines is None else f"{self.unit} {self.lines[row]}"

    def check_column(self, column: str, what: str, hint: str | None = None) -> None:
        """Refuse a table without a column, and list those it has; `what` is the loader's own name for it."""
        self.check_columns({what: column}, hint)

    def check_columns(self, columns: Mapping[str, str], hint: str | None = None) -> None:
        """Refuse a table without all of some columns, given by the loader's own names; the error names every one."""
        missing = {what: column for what, column in columns.items() if column not in self.cells.columns}
        if missing:
            what, column = next(iter(missing.items()))
            others = [f"{other!r}{_meant(other, self.names)}" for other in list(missing.values())[1:]]
            said = hint or self.hint.format(what)
            said += f"; also missing: {', '.join(others)}" if others else ""
            raise missing_column(column, self.names, source=self.source, hint=said)

    def texts(self, column: str) -> NDArray[np.object_]:
        """Cells of a column as strings; an empty or missing one is "", a whole number has no decimal point."""
        texts = []
        for row, value in enumerate(self.cells[column].tolist()):
            if not isinstance(value, str) and isinstance(value, bytes | list | tuple | set | dict | np.ndarray):
                raise self.error(f"is {shown(value)} in {self.where(row)}, should be a text or a number", column)
            texts.append(cell_text(value))
        try:
            "".join(texts).encode()
        except UnicodeEncodeError:
            row = next(row for row, text in enumerate(texts) if whole_characters(text) != text)
            raise self.error(
                f"is {shown(texts[row])} in {self.where(row)}, half of a surrogate pair that no file can hold", column
            ) from None
        return objects(texts)

    def filled(self, column: str, *, rows: NDArray[np.intp] | None = None) -> NDArray[np.object_]:
        """Cells of a column, or of some of its rows, as strings; InputError names the first empty one."""
        rows = np.arange(len(self.cells)) if rows is None else rows
        found = self.texts(column)[rows]
        empty = found == ""
        if empty.any():
            row = int(rows[np.flatnonzero(empty)[0]])
            raise self.error(f"is empty in {self.where(row)} ({int(empty.sum())} such rows)", column)
        return found

    def numbers(self, column: str, *, rows: NDArray[np.intp] | None = None, empty: bool = False) -> NDArray[np.float64]:
        """Cells of a column as finite numbers.

        Parameters
        ----------
        column : str
        rows : ndarray of int, optional
            The rows that are read; all by default.
        empty : bool, optional
            Whether an empty cell is NaN and not a mistake.

        Returns
        -------
        ndarray of float, shape (row,)

        Raises
        ------
        InputError
            Names the first cell that is no finite number, and its row.
        """
        rows = np.arange(len(self.cells)) if rows is None else rows
        cells = self.cells[column]
        if cells.dtype.kind in "iuf":
            found = cells.to_numpy(dtype=float, na_value=np.nan)[rows]
            if np.isfinite(found).all():
                return found
        return self._parsed(column, self.texts(column)[rows], rows, empty=empty)

    def shares(
        self, column: str, *, percent: bool, rows: NDArray[np.intp] | None = None, empty: bool = False
    ) -> NDArray[np.float64]:
        """Cells of a column as shares: 0.25, or 25%, or 25 where all are percentages; the range is not looked at.

        Raises
        ------
        InputError
            For what is no number, and for percentages none of which is above 1.
        """
        rows = np.arange(len(self.cells)) if rows is None else rows
        texts = self.texts(column)[rows]
        signed = np.array([text.rstrip().endswith("%") for text in texts.tolist()], dtype=bool)
        if signed.any():
            bare = objects([text.rstrip().removesuffix("%").rstrip() for text in texts.tolist()])
            found = self._parsed(column, bare, rows, empty=empty)
        else:
            found = self.numbers(column, rows=rows, empty=empty)
        plain = found[~signed & np.isfinite(found)]
        if percent and plain.size and plain.max() <= 1:
            raise self.error(
                f"is at most {plain.max():g}, but study.percent=true says that these are percentages; leave it out",
                column,
            )
        return np.where(signed | percent, found / 100, found)

    def whole(self, column: str, *, rows: NDArray[np.intp] | None = None, empty: bool = False) -> NDArray[np.float64]:
        """Cells of a column as whole numbers from 0 to :data:`MOST`; takes and raises what :meth:`numbers` does."""
        rows = np.arange(len(self.cells)) if rows is None else rows
        found = self.numbers(column, rows=rows, empty=empty)
        bad = (found != np.rint(found)) & ~np.isnan(found) | (found < 0) | (found > MOST)
        if bad.any():
            at = int(np.flatnonzero(bad)[0])
            text = self.texts(column)[rows[at]]
            problem = f"is {shown(text)} in {self.where(rows[at])}, should be a whole number from 0 to {MOST:,}"
            raise self.error(problem, column)
        return found

    def logprobs(self, column: str, *, empty: bool = False) -> NDArray[np.float64]:
        """Cells of a column as natural logarithms of probabilities; takes and raises what :meth:`numbers` does."""
        found = self.numbers(column, empty=empty)
        bad = found > _LOG_SLACK
        if bad.any():
            row = int(np.argmax(bad))
            problem = f"is {shown(self.texts(column)[row])} in {self.where(row)} ({int(bad.sum())} such rows)"
            raise self.error(f"{problem}, should be ln p, at most 0", column)
        return found

    def error(self, problem: str, column: str) -> InputError:
        """Error about a column of this table."""
        return InputError(problem, source=self.source, field=column)

    def _parsed(
        self, column: str, text: NDArray[np.object_], rows: NDArray[np.intp], *, empty: bool
    ) -> NDArray[np.float64]:
        found = _floats(text)
        blank = text == ""
        bad = ~np.isfinite(found) & ~(blank & empty)
        if self.decimal != "point" and (bad.any() or self.decimal == "comma"):
            points = np.array(["." in each for each in text.tolist()], dtype=bool)
            if self.decimal == "comma" and points.any():
                at = int(np.flatnonzero(points)[0])
                problem = f"is {shown(text[at])} in {self.where(rows[at])}, has a point, but study.decimal is comma"
                raise self.error(problem, column)
            commas = objects([each.replace(",", ".", 1) for each in text.tolist()])
            other = _floats(commas)
            read = bad & np.isfinite(other)
            if read.any() and points.any():
                one, two = (int(np.flatnonzero(which)[0]) for which in (read, points))
                raise self.error(
                    f"is {shown(text[one])} in {self.where(rows[one])} and {shown(text[two])} in "
                    f"{self.where(rows[two])}; write all numbers with a point, or all with a comma",
                    column,
                )
            if read.any():
                found = np.where(read, other, found)
                bad &= ~read
                note = Note(f"numbers with a decimal comma in column {column}", int(read.sum()))
                if note not in self.notes:
                    self.notes.append(note)
        if bad.any():
            at = int(np.flatnonzero(bad)[0])
            raise self.error(f"is {shown(text[at])} in {self.where(rows[at])}, should be a number", column)
        return found


def missing_column(column: str, names: Sequence[str], *, source: object, hint: str) -> InputError:
    """Build the error about a column that is not there: it lists those that are, and the one that may be meant."""
    near = _near(column, names)
    meant = f"; did you mean {near!r}?" if near else ";"
    listed = some_of(names, _COLUMNS_LISTED)
    return InputError(f"is missing{meant} the table has {listed}; {hint}", source=source, field=column)


def _near(column: str, names: Sequence[str]) -> str | None:
    """Name that may be meant."""
    lower = {name.lower(): name for name in names}
    near = get_close_matches(column.lower(), list(lower), n=1)
    return lower[near[0]] if near else None


def _meant(column: str, names: Sequence[str]) -> str:
    near = _near(column, names)
    return f" (did you mean {near!r}?)" if near else ""


def _floats(texts: NDArray[np.object_]) -> NDArray[np.float64]:
    """Numbers as people write them; NaN for everything else, "1_0", "inf" and "nan" too."""
    return np.asarray(pd.to_numeric(pd.Series(texts, dtype=object), errors="coerce"), dtype=float)


def table_of(given: object, name: str, *, of: str, needed: Sequence[str] = ()) -> Table:
    """Take a DataFrame as a table.

    Parameters
    ----------
    given : pandas.DataFrame
    name : str
        Of the argument, for messages.
    of : str
        What a row is, for messages.
    needed : sequence of str, optional
        Columns that the error about another type lists.

    Returns
    -------
    Table

    Raises
    ------
    InputError
        If it is something else, has no row, or two columns of one name.
    """
    if not isinstance(given, pd.DataFrame):
        columns = f" and the columns {', '.join(needed)}" if needed else ""
        raise InputError(
            f"is a {type(given).__name__}, should be a pandas.DataFrame with one row a {of}{columns}", field=name
        )
    cells = given.reset_index(drop=True).set_axis([str(column) for column in given.columns], axis=1)
    check_header(list(cells.columns), name)
    if not len(cells):
        raise InputError(f"holds no {of}", source=name)
    return Table(cells, name, _digest(cells), "columns={{'{}': NAME}} says which one it is")


def _digest(cells: pd.DataFrame) -> str:
    """SHA-256 of names and cells; writing a CSV for it would take five times as long."""
    digest = hashlib.sha256(json.dumps(list(cells.columns)).encode())
    for name in cells.columns:
        column = cells[name]
        if column.dtype.kind in "biuf":
            digest.update(column.to_numpy(dtype=float, na_value=np.nan).tobytes())
        else:
            digest.update(json.dumps([cell_text(value) for value in column.tolist()]).encode())
    return digest.hexdigest()


def cell_text(value: Any) -> str:
    """Write a cell as a string: "" where it is missing, a whole number without a decimal point."""
    if isinstance(value, str):
        return value
    if value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and math.isnan(value)):
        return ""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
