"""A table of a study, from a file or a DataFrame: its columns by the loader's own names, each read as its type."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from shannon_game.estimators.errors import InputError
from shannon_game.estimators.messages import Set
from shannon_game.experiments.studies.cells import fold_names, folded, one_mark, other_lead, read_numbers, without_lead
from shannon_game.experiments.studies.json_cells import unpacked
from shannon_game.experiments.studies.parsing import Note, objects, shown, some_of, whole_characters
from shannon_game.inference.settings import Settings

MOST = 2**31 - 1
"""The largest count that a study holds."""

MOST_COLUMNS = 10_000
"""A table with more columns is refused before any row is read."""

_COLUMNS_LISTED = 40
_NEARLY = 0.87
_TOTALS = ("total", "totals", "grand total", "sum", "n", "gesamt", "summe")
Hint = str | Callable[[str], str]
_MISSING = {"na", "n/a", "#n/a", "nan"}
_CODE = "; a code for a missing cell is named in the setting 'empty'"
_FLAGS = {"1": True, "true": True, "yes": True, "1.0": True, "0": False, "false": False, "no": False, "0.0": False}
_CONTROL = re.compile("[\x00-\x08\x0e-\x1f\x7f]")
NUMBERS: Mapping[str, tuple[Callable[[NDArray[np.float64]], NDArray[np.bool_]], str]] = {
    "number": (np.isfinite, "a number"),
    "amount": (lambda found: found >= 0, "0 or more"),
    "whole": (
        lambda found: (found == np.rint(found)) & (found >= 0) & (found <= MOST),
        f"a whole number from 0 to {MOST:,}",
    ),
    # float32 rounds a probability of nearly 1 to a hair above
    "logprob": (lambda found: found <= 1e-5, "ln p, at most 0"),
}
"""Kinds of numbers: which fit, and what the others should be."""


def specification(**columns: str) -> dict[str, str]:
    """Type of each column: id, text or one of NUMBERS; one that ends in ``_or_empty`` may have empty cells."""
    return {name: kind for kind, names in columns.items() for name in names.split()}


class Columns(Settings):
    """Names of a table's columns, null where there is none; the annotation of each says the type of its cells."""

    @property
    def given(self) -> dict[str, str]:
        """What a column is -> its name in the table."""
        return {name: column for name, column in self if isinstance(column, str)}

    @classmethod
    def types(cls) -> dict[str, str]:
        """Type of each column, see :func:`specification`."""
        fields = cls.model_fields.items()
        return {name: kind for name, field in fields for kind in field.metadata if isinstance(kind, str)}


@dataclass(frozen=True, eq=False)
class Groups:
    """The group of each row of a table, and the first row of each group."""

    table: Table
    of_row: NDArray[np.intp]
    first: NDArray[np.intp]
    what: str

    def __len__(self) -> int:
        return len(self.first)

    def one(self, name: str, values: NDArray[Any] | None = None) -> NDArray[Any]:
        """The value on which the rows of each group agree."""
        values = self.table[name] if values is None else values
        found: NDArray[Any] = values[self.first]
        differs = (values != found[self.of_row]) & ~(pd.isna(values) & pd.isna(found)[self.of_row])
        same = f"in another row of the same {self.what}"
        self.table.refuse(differs, name, lambda row: f"but {shown(found[self.of_row[row]])} {same}", values)
        return found


@dataclass(frozen=True, eq=False)
class Table:
    """A table as it was given, and later by the loader's own names (see :meth:`named`).

    Cells are strings where the table is a file of text, any type elsewhere. `place` is the line or the row in which
    each row begins (with its file, where there are several), `labels` what the export of a survey says of its columns.
    """

    cells: pd.DataFrame
    source: Path | str
    sha256: str
    place: NDArray[Any]
    unit: str = "row"
    decimal: str = "auto"
    labels: dict[str, str] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)
    given: Mapping[str, str] = field(default_factory=dict)
    types: Mapping[str, str] = field(default_factory=dict)
    _read: dict[str, NDArray[Any]] = field(default_factory=dict, init=False)

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return list(map(str, self.cells.columns))

    def __contains__(self, name: str) -> bool:
        return name in self.cells

    def __len__(self) -> int:
        return len(self.cells)

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Cells of a column as its type in the specification."""
        if name not in self._read:
            kind, _, empty = self.types[name].partition("_or_")
            if kind == "text":
                self._read[name] = self.texts(name) if empty else self.filled(name)
            elif kind == "id":
                self._read[name] = self.ids(name, empty=bool(empty))
            else:
                self._read[name] = self.numbers(name, empty=bool(empty), kind=kind)
        return self._read[name]

    def where(self, row: int) -> str:
        """Place of a row for messages."""
        return f"{self.unit} {self.place[row]}".strip()

    def error(self, problem: str, column: str) -> InputError:
        """Error about a column of this table."""
        return InputError(problem, source=self.source, field=self.given.get(column, column))

    def refuse(
        self,
        bad: NDArray[np.bool_],
        column: str,
        problem: str | Callable[[int], str],
        cells: NDArray[Any] | None = None,
    ) -> None:
        """Refuse the first bad cell of a column: what it is, where, and what is wrong with it."""
        if bad.any():
            row, number = int(np.argmax(bad)), int(bad.sum())
            cell = (self.texts(column) if cells is None else cells)[row]
            many = f" ({number} such rows)" if number > 1 else ""
            said = problem if isinstance(problem, str) else problem(row)
            what = "empty" if isinstance(cell, str) and cell == "" else shown(cell)
            raise self.error(f"is {what} in {self.where(row)}{many}, {said}", column)

    def named(
        self,
        columns: Mapping[str, str],
        spec: Mapping[str, str],
        *,
        optional: Collection[str] = (),
        hint: Hint | None = None,
        models: Mapping[str, Columns] | None = None,
    ) -> Table:
        """The table by the loader's own names of its columns; those of a language model are called ``MODEL KIND``."""
        needed = {what: name for what, name in columns.items() if what not in optional}
        self.check_columns(needed, hint)
        self.refuse_misspelt({what: columns[what] for what in columns if what in optional}, hint)
        there = {what: name for what, name in columns.items() if name in self.cells}
        types = dict(spec)
        for model, own in (models or {}).items():
            self.check_columns({column: column for column in own.given.values()}, hint=f"model {model!r} needs it")
            there |= {f"{model} {kind}": column for kind, column in own.given.items()}
            types |= {f"{model} {kind}": type_ for kind, type_ in own.types().items()}
        cells = pd.DataFrame({what: self.cells[name] for what, name in there.items()}, index=self.cells.index)
        return replace(self, cells=cells, given=there, types=types)

    def take(self, rows: NDArray[Any]) -> Table:
        """Some rows of the table."""
        return replace(self, cells=self.cells.iloc[rows], place=self.place[rows])

    def blank(self, name: str) -> NDArray[np.bool_]:
        """Which cells of a column are empty."""
        cells = self.ids(name, empty=True) if self.types[name].startswith("id") else self.texts(name)
        return np.asarray(cells == "", dtype=bool)

    def without(
        self, blank: Mapping[str, NDArray[np.bool_]], missing: str, *, of: str = "row", by: Sequence[str] = ()
    ) -> Table:
        """Rows without an empty cell; others are refused, or left out and counted, with all rows that agree in `by`."""
        for name, empty in blank.items() if missing == "error" else ():
            self.refuse(empty, name, f"should be filled, or {Set('study.missing', 'drop')} leaves such {of}s out")
        out = np.logical_or.reduce(list(blank.values()))
        number = int(out.sum())
        if by and number:
            key = pd.MultiIndex.from_arrays([self.ids(name, empty=True) for name in by])
            out = key.isin(key[out])
            number = int(key[out].nunique())
        if out.all():
            raise InputError(f"holds no {of} without an empty cell", source=self.source)
        self.note(f"{of}s left out: an empty cell ({Set('study.missing', 'drop')})", number, "warning")
        return self.take(np.flatnonzero(~out))

    def groups(self, *names: str, what: str, sort: bool = False) -> Groups:
        """Rows that agree in some columns."""
        keys = pd.DataFrame({name: self[name] for name in names})
        of_row = np.asarray(keys.groupby(list(names), sort=sort).ngroup(), dtype=np.intp)
        return Groups(self, of_row, np.unique(of_row, return_index=True)[1].astype(np.intp), what)

    def check_columns(self, columns: Mapping[str, str], hint: Hint | None = None) -> None:
        """Refuse a table without all of some columns, given by the loader's own names; the error names every one."""
        missing = {what: column for what, column in columns.items() if column not in self.cells.columns}
        if missing:
            what, column = next(iter(missing.items()))
            others = [f"{other!r}{self._meant(other)}" for other in list(missing.values())[1:]]
            raise self.missing(column, _hint(hint, what) + (f"; also missing: {', '.join(others)}" if others else ""))

    def missing(self, column: str, hint: str) -> InputError:
        """Error about a column that is not there: it lists those that are, and the one that may be meant."""
        meant = self._meant(column).strip(" ()")
        listed = some_of(self.names, _COLUMNS_LISTED)
        return self.error(f"is missing; {meant}{' ' * bool(meant)}the table has {listed}; {hint}", column)

    def _meant(self, column: str) -> str:
        if inside := [name for name in self.names if name.startswith(f"{column}.")]:
            return f" (its cells hold several values: {some_of([repr(name) for name in inside])})"
        lower = {name.lower(): name for name in self.names}
        near = get_close_matches(column.lower(), list(lower), n=1)
        return f" (did you mean {lower[near[0]]!r}?)" if near else ""

    def refuse_misspelt(self, optional: Mapping[str, str], hint: Hint | None = None) -> None:
        """Refuse a column whose name is nearly that of an optional one that is not there: it would not be read."""
        lacking = {_letters(column): what for what, column in optional.items() if column not in self.names}
        for name in self.names:
            near = get_close_matches(_letters(name), list(lacking), n=1, cutoff=_NEARLY)
            if near and name not in optional.values():
                what = lacking[near[0]]
                problem = f"is nearly {optional[what]!r}, which is not there; rename it, or {_hint(hint, what)}"
                raise self.error(problem, name)

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
            problem = f"is {shown(texts[row])} in {self.where(row)}, half of a surrogate pair that no file can hold"
            raise self.error(problem, column) from None
        return objects(texts)

    def filled(self, column: str) -> NDArray[np.object_]:
        """Cells of a column as strings, none of them empty."""
        texts = self.texts(column)
        self.refuse(texts == "", column, "should be a text", texts)
        return texts

    def ids(self, column: str, *, empty: bool = False) -> NDArray[np.object_]:
        """Names in a column, folded; none is empty unless it may be."""
        found, notes = fold_names(self.texts(column), self.given.get(column, column))
        self._note(notes)
        damaged = np.array([_CONTROL.search(text) is not None for text in found.tolist()], dtype=bool)
        self.refuse(damaged, column, "with a control character: damaged?", found)
        if not empty:
            right = "should be a name" + "; setting 'where_not' leaves rows out" * isinstance(self.source, Path)
            self.refuse(found == "", column, right, found)
        return found

    def joined_ids(self, columns: Sequence[str]) -> NDArray[np.object_]:
        """Names that columns give together, with a point between them, as in ``12.plausible``."""
        parts = [self.ids(column).tolist() for column in columns]
        joined = [".".join(row) for row in zip(*parts, strict=True)]
        if len(set(joined)) < len(set(zip(*parts, strict=True))):
            problem = f"and {', '.join(columns[1:])} give two rows one name; leave out the points in them"
            raise self.error(problem, columns[0])
        return objects(joined)

    def _note(self, notes: Iterable[Note]) -> None:
        self.notes.extend(note for note in notes if note not in self.notes)

    def note(self, text: str, which: NDArray[np.bool_] | int, level: Literal["info", "warning"] = "info") -> None:
        """Note how many there are of something, if there are any."""
        if count := int(np.sum(which)):
            self.notes.append(Note(text, count, level))

    def numbers(self, column: str, *, empty: bool = False, kind: str = "number") -> NDArray[np.float64]:
        """Cells of a column as finite numbers of a kind in :data:`NUMBERS`; NaN for an empty cell, where it may be."""
        cells = self.cells[column]
        numeric = cells.dtype.kind in "iuf"
        found = cells.to_numpy(dtype=float, na_value=np.nan) if numeric else np.array([np.nan])
        if not np.isfinite(found).all() or not numeric:
            found = self._parsed(column, self.texts(column), empty=empty, whole=kind == "whole")
        fits, should = NUMBERS[kind]
        self.refuse(~(np.isnan(found) | fits(found)), column, f"should be {should}")
        return found

    def _parsed(
        self, column: str, text: NDArray[np.object_], *, empty: bool, whole: bool = False
    ) -> NDArray[np.float64]:
        if empty:
            # where a number may be missing, no answer is meant by them
            gone = np.array([cell.strip().lower() in _MISSING for cell in text.tolist()], dtype=bool)
            text = np.where(gone, "", text)
            self.note(f"cells NA or NaN, read as empty, in column {self.given.get(column, column)}", gone)
        found, read, problem = read_numbers(text, self.where, decimal=self.decimal, whole=whole)
        bad = np.flatnonzero(~np.isfinite(found) & ~((text == "") & empty))
        if problem is not None or bad.size:
            at, said, cure = problem or (int(bad[0]), ", should be a number", _CODE * empty)
            # a DataFrame has no setting for it
            cure *= isinstance(self.source, Path)
            raise self.error(f"is {shown(text[at])} in {self.where(at)}{said}{cure}", column)
        self._note(Note(f"{what} in column {self.given.get(column, column)}", count) for what, count in read)
        return found

    def shares(self, column: str, *, percent: bool, empty: bool = False) -> NDArray[np.float64]:
        """Cells of a column as shares: 0.25, or 25%, or 25 where all are percentages; the range is not checked."""
        texts = self.texts(column)
        signed = np.array([text.rstrip().endswith("%") for text in texts.tolist()], dtype=bool)
        if signed.any():
            bare = objects([text.rstrip().removesuffix("%").rstrip() for text in texts.tolist()])
            found = self._parsed(column, bare, empty=empty)
        else:
            found = self.numbers(column, empty=empty)
        plain = found[~signed & np.isfinite(found)]
        if percent and plain.size and plain.max() <= 1:
            problem = f"is at most {plain.max():g}, but {Set('study.percent', True)} says that these are percentages"
            raise self.error(f"{problem}; leave it out", column)
        return np.where(signed | percent, found / 100, found)

    def flags(self, column: str, more: str = "") -> NDArray[np.bool_]:
        """Cells of a column as true or false; `more` says what else they could be."""
        said = [_FLAGS.get(text.strip().lower()) for text in self.texts(column).tolist()]
        right = f"should be 1 or 0, true or false, yes or no{more}"
        self.refuse(np.array([flag is None for flag in said]), column, right)
        return np.array(said, dtype=bool)

    def repeated(self) -> str:
        """Say where a table stands twice in itself: every one of its rows is there more than once; else ""."""
        rows = list(zip(*(map(cell_text, self.cells[name].tolist()) for name in self.cells), strict=True))
        if min(Counter(rows).values(), default=1) == 1:
            return ""
        return f"every row is there more than once, the first again in {self.where(rows.index(rows[0], 1))}"

    def refuse_repeated(self) -> None:
        """Refuse a table that stands twice in itself."""
        if said := self.repeated():
            problem = f"{said}; was the table pasted or exported twice? leave one of each row"
            raise InputError(problem, source=self.source)

    def read_one_mark(self, *columns: str) -> None:
        """Read the tokens of some columns with one sign for the space before them, where they have several."""
        given = [self[column] for column in columns]
        found = one_mark(*given)
        self._read.update(zip(columns, found, strict=True))
        changed = sum(int((one != two).sum()) for one, two in zip(given, found, strict=True))
        text = f"cells of {' and '.join(columns)} with a mark for the space that others have before a token; read as it"
        self.note(text, changed, "warning")

    def refuse_other_lead(self, column: str, given: NDArray[np.object_], tokens: NDArray[np.object_]) -> None:
        """Refuse tokens that are others of their item but for a space before all of these, or all of those.

        `tokens` has a row for each item, or answer; `given` broadcasts to it. One token may be another but for its
        space.
        """
        if other_lead(given.ravel().tolist(), tokens.ravel().tolist(), share=0.4):
            same = (without_lead(given) == without_lead(tokens)) & (given != tokens) & (given != "") & (tokens != "")
            rows, columns = np.nonzero(same)
            if len(set(rows.tolist())) > 1:
                one, two = (shown(each[rows[0], min(columns[0], each.shape[1] - 1)]) for each in (given, tokens))
                problem = f"is {one} where the same token is {two} ({len(rows)} such)"
                raise self.error(
                    f"{problem}; write both with the space before them that the language model has", column
                )


def _hint(hint: Hint | None, what: str) -> str:
    if hint is None:
        return f"{Set(f'study.columns.{what}', 'NAME')} says which one it is"
    return hint if isinstance(hint, str) else hint(what)


def _letters(name: str) -> str:
    return re.sub(r"[\W_]", "", name).casefold()


def header_names(names: Sequence[str]) -> list[str]:
    """Names of columns; row names of R and pandas have none, nor have columns that a spreadsheet left."""
    return [folded(name) or f"(column {at})" for at, name in enumerate(names, start=1)]


def check_header(names: Sequence[str], source: object) -> None:
    """Refuse two columns of one name, and more columns than a table has."""
    if len(names) > MOST_COLUMNS:
        raise InputError(f"has {len(names):,} columns, more than {MOST_COLUMNS:,}", source=source)
    twice = pd.Index(names)[pd.Index(names).duplicated()].unique().tolist()
    if twice:
        more = f" ({some_of(twice)})" if len(twice) > 1 else ""
        raise InputError(f"is the name of more than one column{more}; rename one", source=source, field=twice[0])


def table_of(
    given: object,
    name: str,
    *,
    of: str,
    needed: Collection[str] = (),
    once: bool = True,
    first: Callable[[Table], Table] = lambda table: table,
) -> Table:
    """Take a DataFrame as a table, see :func:`finished`; the error about another type lists the columns needed."""
    if not isinstance(given, pd.DataFrame):
        columns = f" and the columns {', '.join(needed)}" if needed else ""
        right = f"should be a pandas.DataFrame with one row a {of}{columns}"
        raise InputError(f"is a {type(given).__name__}, {right}", field=name)
    cells = given.reset_index(drop=True).set_axis([str(column) for column in given.columns], axis=1)
    check_header(list(cells.columns), name)
    return finished(first(Table(cells, name, _digest(cells), np.arange(1, len(cells) + 1))), of=of, once=once)


def finished(table: Table, *, of: str, once: bool = True) -> Table:
    """Fold the names of columns, unpack JSON, and leave out headers in the middle of a table; `of` is what a row is.

    Refused are a table without rows, one that ends in a row of totals and, where it is there `once`, one that stands
    twice in itself.
    """
    names = header_names(table.names)
    check_header(names, table.source)
    table = _without_headers(replace(table, cells=table.cells.set_axis(names, axis=1)))
    if not len(table):
        raise InputError(f"holds no {of}", source=table.source)
    if once:
        table.refuse_repeated()
    _refuse_totals(table)
    cells, notes = unpacked(table.cells, table.where, table.source)
    table.notes.extend(notes)
    check_header(list(cells.columns), table.source)
    return replace(table, cells=cells)


def _refuse_totals(table: Table) -> None:
    """Refuse a last row of "Total" and the sums of columns, which would be one more context or participant."""
    last = {
        name: cell_text(cell).strip() for name, cell in zip(table.names, table.cells.iloc[-1].tolist(), strict=True)
    }
    labels = [name for name, text in last.items() if text.casefold().strip(":. ") in _TOTALS]
    others = [name for name, text in last.items() if text and name not in labels]
    if not labels or not others or len(table) < 3:
        return
    for name in others:
        # a sum needs no decimal comma to be recognised
        values = pd.to_numeric(table.cells[name], errors="coerce").to_numpy(dtype=float)
        if values[-1] == 0 or not np.isclose(np.nansum(values[:-1]), values[-1]):
            return
    said = f"is {last[labels[0]]!r} in {table.where(len(table) - 1)}, where {' and '.join(others)} are sums of the rows"
    raise table.error(f"{said} above; leave out the row of totals", labels[0])


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
    table.note(f"header lines in the middle of the table, left out: {where}", len(heads), "warning")
    kept = table.take(np.setdiff1d(np.arange(len(table)), heads))
    return replace(kept, cells=kept.cells.reset_index(drop=True))


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
    # of an array it is an array
    if pd.isna(value) is True:
        return ""
    return str(int(value)) if isinstance(value, float | np.floating) and value.is_integer() else str(value)
