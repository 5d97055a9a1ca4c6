"""Plain tables, from a file or a DataFrame: a cell is the text that stands there, and a number where one is needed."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from estimators.errors import InputError
from experiments.studies.cells import fold_names, folded, other_lead, read_numbers, without_lead
from experiments.studies.parsing import Note, objects, shown, some_of, whole_characters
from experiments.studies.text_rows import check_header, header_names

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["MOST", "Table", "cell_text", "finished", "in_notebook", "missing_column", "refuse_other_lead", "table_of"]

MOST = 2**31 - 1
"""The largest count that a study holds."""

_COLUMNS_LISTED = 40
_NEARLY = 0.87
_SETTING = re.compile(r"'?study\.(\w+)((?:\.\w+)*)=(\{[^}]*\}|\[[^]]*\]|\w+)'?")
P = ParamSpec("P")
_CONTROL = re.compile("[\x00-\x08\x0e-\x1f\x7f]")
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

    def refuse_misspelt(self, optional: Mapping[str, str]) -> None:
        """Refuse a column whose name is nearly that of an optional one that is not there: it would not be read."""
        lacking = {_letters(column): what for what, column in optional.items() if column not in self.names}
        for name in self.names:
            near = get_close_matches(_letters(name), list(lacking), n=1, cutoff=_NEARLY)
            if near and name not in optional.values():
                what = lacking[near[0]]
                hint = self.hint.format(what)
                raise self.error(f"is nearly {optional[what]!r}, which is not there; rename it, or {hint}", name)

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

    def ids(self, column: str, *, rows: NDArray[np.intp] | None = None, empty: bool = False) -> NDArray[np.object_]:
        """Names in a column, or in some of its rows, folded; InputError names the first empty one unless it may be."""
        found, notes = fold_names(self.texts(column), column)
        self.notes.extend(note for note in notes if note not in self.notes)
        row = next((row for row, text in enumerate(found.tolist()) if _CONTROL.search(text)), None)
        if row is not None:
            raise self.error(f"is {shown(found[row])} in {self.where(row)}, with a control character: damaged?", column)
        found = found if rows is None else found[rows]
        return found if empty else self._filled(found, column, rows)

    def filled(self, column: str, *, rows: NDArray[np.intp] | None = None) -> NDArray[np.object_]:
        """Cells of a column, or of some of its rows, as strings; InputError names the first empty one."""
        found = self.texts(column)
        return self._filled(found if rows is None else found[rows], column, rows)

    def _filled(self, found: NDArray[np.object_], column: str, rows: NDArray[np.intp] | None) -> NDArray[np.object_]:
        empty = np.flatnonzero(found == "")
        if empty.size:
            row = int(empty[0] if rows is None else rows[empty[0]])
            raise self.error(f"is empty in {self.where(row)} ({empty.size} such rows)", column)
        return found

    def numbers(
        self, column: str, *, rows: NDArray[np.intp] | None = None, empty: bool = False, whole: bool = False
    ) -> NDArray[np.float64]:
        """Cells of a column, or of some of its rows, as finite numbers; NaN for an empty cell, where it may be."""
        rows = np.arange(len(self.cells)) if rows is None else rows
        cells = self.cells[column]
        if cells.dtype.kind in "iuf":
            found = cells.to_numpy(dtype=float, na_value=np.nan)[rows]
            if np.isfinite(found).all():
                return found
        return self._parsed(column, self.texts(column)[rows], rows, empty=empty, whole=whole)

    def shares(
        self, column: str, *, percent: bool, rows: NDArray[np.intp] | None = None, empty: bool = False
    ) -> NDArray[np.float64]:
        """Cells of a column as shares: 0.25, or 25%, or 25 where all are percentages; the range is not looked at."""
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
        found = self.numbers(column, rows=rows, empty=empty, whole=True)
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

    def repeated(self) -> str:
        """Say where a table stands twice in itself: every one of its rows is there more than once; else ""."""
        cells = self.cells
        again = np.flatnonzero(_same_rows(cells))
        if not again.size or not cells.astype(str).duplicated(keep=False).all():
            return ""
        return f"every row is there more than once, the first again in {self.where(int(again[0]))}"

    def refuse_repeated(self) -> None:
        """Refuse a table that stands twice in itself."""
        if said := self.repeated():
            problem = f"{said}; was the table pasted or exported twice? leave one of each row"
            raise InputError(problem, source=self.source)

    def error(self, problem: str, column: str) -> InputError:
        """Error about a column of this table."""
        return InputError(problem, source=self.source, field=column)

    def _parsed(
        self, column: str, text: NDArray[np.object_], rows: NDArray[np.intp], *, empty: bool, whole: bool = False
    ) -> NDArray[np.float64]:
        found, read, problem = read_numbers(text, lambda at: self.where(rows[at]), decimal=self.decimal, whole=whole)
        bad = np.flatnonzero(~np.isfinite(found) & ~((text == "") & empty))
        if problem is not None or bad.size:
            at, said = problem or (int(bad[0]), ", should be a number")
            # a DataFrame has no setting for it
            said = said if isinstance(self.source, Path) else said.partition("; study.decimal")[0]
            raise self.error(f"is {shown(text[at])} in {self.where(rows[at])}{said}", column)
        notes = [Note(f"{what} in column {column}", count) for what, count in read]
        self.notes.extend(note for note in notes if note not in self.notes)
        return found


def missing_column(column: str, names: Sequence[str], *, source: object, hint: str) -> InputError:
    """Build the error about a column that is not there: it lists those that are, and the one that may be meant."""
    near = _near(column, names)
    meant = f"; did you mean {near!r}?" if near else ";"
    listed = some_of(names, _COLUMNS_LISTED)
    return InputError(f"is missing{meant} the table has {listed}; {hint}", source=source, field=column)


def _letters(name: str) -> str:
    return re.sub(r"[\W_]", "", name).casefold()


def _near(column: str, names: Sequence[str]) -> str | None:
    """Name that may be meant."""
    lower = {name.lower(): name for name in names}
    near = get_close_matches(column.lower(), list(lower), n=1)
    return lower[near[0]] if near else None


def _meant(column: str, names: Sequence[str]) -> str:
    near = _near(column, names)
    return f" (did you mean {near!r}?)" if near else ""


def table_of(given: object, name: str, *, of: str, needed: Sequence[str] = (), once: bool = True) -> Table:
    """Take a DataFrame as a table, see :func:`finished`; the error about another type lists the columns needed."""
    if not isinstance(given, pd.DataFrame):
        columns = f" and the columns {', '.join(needed)}" if needed else ""
        raise InputError(
            f"is a {type(given).__name__}, should be a pandas.DataFrame with one row a {of}{columns}", field=name
        )
    cells = given.reset_index(drop=True).set_axis([str(column) for column in given.columns], axis=1)
    check_header(list(cells.columns), name)
    return finished(Table(cells, name, _digest(cells), "study.columns.{}=NAME says which one it is"), of=of, once=once)


def in_notebook(function: Callable[P, xr.Dataset]) -> Callable[P, xr.Dataset]:
    """Let the errors of a function of DataFrames say ``missing='drop'`` for ``study.missing=drop``."""

    @wraps(function)
    def call(*args: P.args, **settings: P.kwargs) -> xr.Dataset:
        try:
            return function(*args, **settings)
        except InputError as error:
            raise InputError(_SETTING.sub(_argument, str(error)).replace("study.", "")) from None

    return call


def _argument(found: re.Match[str]) -> str:
    name, inner, value = found.groups()
    if value[0] == "{":
        value = re.sub(r"\w+(?=:)", r"'\g<0>'", value)
    elif value in ("true", "false"):
        value = value.title()
    elif value.islower():
        value = f"'{value}'"
    for part in reversed(inner.split(".")[1:]):
        value = f"{{'{part}': {value}}}"
    return f"{name}={value}"


def finished(table: Table, *, of: str, once: bool) -> Table:
    """Leave header lines among the rows out, and refuse a table without rows, or twice in one where it is there once.

    `of` says what a row is, for messages.
    """
    names = header_names(table.names)
    check_header(names, table.source)
    table = replace(table, cells=table.cells.set_axis(names, axis=1))
    table = _without_headers(table)
    if not len(table.cells):
        raise InputError(f"holds no {of}", source=table.source)
    if once:
        table.refuse_repeated()
    return table


def _without_headers(table: Table) -> Table:
    """Tables that were put together by hand have the header once a part."""
    cells, names = table.cells, table.names
    # all cells of a column are looked at for one of them only
    column = cells.iloc[:, 0].tolist() if len(names) > 1 else []
    lower = [name.casefold() for name in names]
    first = np.flatnonzero([isinstance(cell, str) and folded(cell).casefold() in lower for cell in column])
    heads = []
    for row in first.tolist():
        said = [name.casefold() for name in header_names([cell_text(cell) for cell in cells.iloc[row].tolist()])]
        if said == lower:
            heads.append(row)
        elif sorted(said) == sorted(lower):
            problem = f"{table.where(row)} is a header with the columns in another order; read the two tables apart"
            raise InputError(problem, source=table.source)
    if not heads:
        return table
    where = some_of([table.where(row) for row in heads])
    table.notes.append(Note(f"header lines in the middle of the table, left out: {where}", len(heads), "warning"))
    kept = np.setdiff1d(np.arange(len(cells)), heads)
    lines = np.arange(1, len(cells) + 1) if table.lines is None else table.lines
    unit = "row" if table.lines is None else table.unit
    return replace(table, cells=cells.iloc[kept].reset_index(drop=True), lines=lines[kept], unit=unit)


def _same_rows(cells: pd.DataFrame) -> NDArray[np.bool_]:
    """Which rows are the first one again."""
    same = np.arange(len(cells)) > 0
    for name in cells.columns:
        one = cell_text(cells[name].iloc[0])
        same[same] = [cell_text(cell) == one for cell in cells[name].to_numpy()[same]]
    return same


def refuse_other_lead(table: Table, column: str, given: NDArray[np.object_], tokens: NDArray[np.object_]) -> None:
    """Refuse tokens that are others of their item but for a space before all of these, or all of those.

    `tokens` has a row for each item, or answer; `given` broadcasts to it. One token may be another but for its space.
    """
    if other_lead(given.ravel().tolist(), tokens.ravel().tolist(), share=0.4):
        same = (without_lead(given) == without_lead(tokens)) & (given != tokens) & (given != "") & (tokens != "")
        rows, columns = np.nonzero(same)
        if len(set(rows.tolist())) > 1:
            one, two = (shown(each[rows[0], min(columns[0], each.shape[1] - 1)]) for each in (given, tokens))
            problem = f"is {one} where the same token is {two} ({len(rows)} such)"
            raise table.error(f"{problem}; write both with the space before them that the language model has", column)


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
