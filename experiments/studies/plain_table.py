"""Plain tables, from a file or a DataFrame: a cell is the text that stands there, and a number where one is needed."""

from __future__ import annotations

import hashlib
import io
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from estimators.errors import InputError
from experiments.studies.parsing import objects, whole_characters

__all__ = ["Table", "cell_text", "read_table", "table_of"]


@dataclass(frozen=True)
class Table:
    """A table as it was given.

    Parameters
    ----------
    cells : pandas.DataFrame
        Strings only where the table is a file, any types where it is a DataFrame.
    source : Path or str
        The file or the argument, for messages.
    sha256 : str
        Of the file, or of the cells.
    hint : str
        How to say that a column has another name; ``{}`` is the name that the loader has for it.
    """

    cells: pd.DataFrame
    source: Path | str
    sha256: str
    hint: str

    def check_column(self, column: str, what: str, hint: str | None = None) -> None:
        """Refuse a table without a column, and list those it has; `what` is the loader's own name for it."""
        if column not in self.cells.columns:
            names = list(map(str, self.cells.columns))
            near = get_close_matches(column, names, n=1)
            meant = f"; did you mean {near[0]!r}?" if near else ";"
            raise InputError(
                f"is missing{meant} the table has {', '.join(names)}; {hint or self.hint.format(what)}",
                source=self.source,
                field=column,
            )

    def texts(self, column: str) -> NDArray[np.object_]:
        """Cells of a column as strings; an empty or missing one is "", a whole number has no decimal point."""
        texts = [cell_text(value) for value in self.cells[column].tolist()]
        try:
            "".join(texts).encode()
        except UnicodeEncodeError:
            row = next(row for row, text in enumerate(texts) if whole_characters(text) != text)
            raise self.error(
                f"is {texts[row]!r} in row {row + 1}, half of a surrogate pair that no file can hold", column
            ) from None
        return objects(texts)

    def filled(self, column: str) -> NDArray[np.object_]:
        """Cells of a column as strings; InputError names the first empty one."""
        found = self.texts(column)
        empty = found == ""
        if empty.any():
            row = int(np.flatnonzero(empty)[0])
            raise self.error(f"is empty in row {row + 1} ({int(empty.sum())} such rows)", column)
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
            Names the first cell that is no finite number, and its row, from 1.
        """
        rows = np.arange(len(self.cells)) if rows is None else rows
        cells = self.cells[column]
        if cells.dtype.kind in "iuf":
            found = cells.to_numpy(dtype=float, na_value=np.nan)[rows]
            if np.isfinite(found).all():
                return found
        text = self.texts(column)[rows]
        found = pd.to_numeric(pd.Series(np.where(text == "", "nan", text)), errors="coerce").to_numpy(dtype=float)
        bad = ~np.isfinite(found) & ~((text == "") & empty)
        if bad.any():
            at = int(np.flatnonzero(bad)[0])
            raise self.error(f"is {text[at]!r} in row {rows[at] + 1}, should be a number", column)
        return found

    def error(self, problem: str, column: str) -> InputError:
        """Error about a column of this table."""
        return InputError(problem, source=self.source, field=column)


def read_table(path: Path, *, of: str) -> Table:
    """Read a CSV, or a TSV by its ending, with every cell as text.

    Parameters
    ----------
    path : Path
    of : str
        What a row is, for the error about a table without any.

    Returns
    -------
    Table

    Raises
    ------
    InputError
        If the file cannot be read, is no table in UTF-8, or has no row.
    """
    try:
        content = path.read_bytes()
        separator = "\t" if path.suffix.lower() in {".tsv", ".tab"} else ","
        # text as it stands: "NA" and "null" are words that people guess
        cells = pd.read_csv(io.BytesIO(content), sep=separator, dtype=str, keep_default_na=False, encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError, pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise InputError(f"cannot be read as a table ({error})", source=path) from error
    if not len(cells):
        raise InputError(f"holds no {of}", source=path)
    hint = "study.columns.{}=NAME says which one it is"
    return Table(cells, path, hashlib.sha256(content).hexdigest(), hint)


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
    if not cells.columns.is_unique:
        twice = cells.columns[cells.columns.duplicated()][0]
        raise InputError("is the name of more than one column", source=name, field=twice)
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
