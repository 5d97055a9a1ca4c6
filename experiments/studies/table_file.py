"""Tables in files: Parquet, or delimited text, of which what pandas would shift or swallow is refused with its line."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import AfterValidator, BeforeValidator

from shannon_game.estimators.content import file_sha256
from shannon_game.estimators.errors import InputError, require_packages, unknown_choice
from shannon_game.estimators.messages import Set
from shannon_game.experiments.harness.csv_tables import without_guard
from shannon_game.experiments.studies.files import read_bytes, regular_file
from shannon_game.experiments.studies.parsing import Note, decoded, objects
from shannon_game.experiments.studies.plain_table import Table, check_header, finished, header_names
from shannon_game.experiments.studies.survey_export import without_survey_headers
from shannon_game.inference.settings import Settings, UserPath

_WORKBOOKS = (".xlsx", ".xls", ".xlsm", ".ods", ".numbers")
_MOST_CHARACTERS = 2**24
_BLANK_LINES = 10_000
_UNPACKED_BYTES = 2**28
_UNPACKED_TIMES = 200
_CELLS_SHARED = 10**6
_CELLS_ALWAYS = 5 * 10**6
_CELLS_A_BYTE = 20
_SWALLOWED = "a quoted field goes over several lines, each of which looks like a row of the table"


SEPARATORS = {"comma": ",", "tab": "\t", "semicolon": ";", "pipe": "|"}
"""Separators by name."""


def _separator(name: str) -> str:
    if name not in ("auto", *SEPARATORS) and len(name) != 1:
        raise unknown_choice("separator", name, ("auto", *SEPARATORS, "a single character"))
    return SEPARATORS.get(name, name)


def known_encoding(name: str) -> str:
    """Python also calls zlib and rot13 encodings, and one that fails on everything."""
    try:
        known = codecs.lookup(name)._is_text_encoding and "a,\n".encode(name).decode(name) == "a,\n"
    except (LookupError, ValueError):
        known = False
    if not known:
        right = "an encoding of text that Python knows, such as utf-8, utf-16, cp1252, latin-1 or mac-roman"
        raise InputError(f"is {name!r}, should be {right}")
    return name


def _encoding(name: str) -> str:
    return name if name == "auto" else known_encoding(name)


def _as_written(given: object) -> object:
    """A command line reads -99 as a number, and a cell is a text."""
    if not isinstance(given, tuple | list):
        return given
    return tuple(str(each) if isinstance(each, int | float) and not isinstance(each, bool) else each for each in given)


CellTexts = Annotated[tuple[str, ...], BeforeValidator(_as_written)]
"""Texts of cells; numbers stand for themselves."""


class TableFile(Settings):
    """How a table stands in its file; Parquet files need none of it."""

    separator: Annotated[str, AfterValidator(_separator)] = "auto"
    """auto takes the one that gives the columns; or comma, tab, semicolon, pipe, or a character."""
    encoding: Annotated[str, AfterValidator(_encoding)] = "auto"
    """auto is UTF-8 (or UTF-16 with its mark), else Windows-1252 with a warning; or the name of an encoding."""
    quoting: Literal["auto", "standard", "none"] = "auto"
    """What quotation marks around a field do: standard lets it hold separators and line breaks; auto is the same, and
    refuses fields that swallow whole rows; none takes them for characters like others."""
    decimal: Literal["auto", "point", "comma"] = "auto"
    """What stands in a decimal number; auto also takes a comma (counted) in a column where no cell has a point."""
    empty: CellTexts = ()
    """Texts that stand for an empty cell, such as [NA, -99]."""


class OneTable(TableFile):
    """A study in one table."""

    path: UserPath
    """The table: delimited text (.gz too) or Parquet."""

    def read(self, of: str, wanted: Iterable[str]) -> Table:
        """The table; see :func:`read_table`."""
        return read_table(self.path, of=of, how=self, wanted=wanted)


def read_table(
    path: Path, *, of: str, how: TableFile | None = None, wanted: Iterable[str] = (), once: bool = True
) -> Table:
    """Read a table: Parquet by its ending (``.parquet``, ``.pq``), else delimited text, also packed (``.gz``).

    `of` says what a row is, `wanted` columns tell which separator is right; see :func:`plain_table.finished`.
    """
    how = how or TableFile()
    regular_file(path)
    if path.suffix.lower() in _WORKBOOKS:
        raise InputError("is a workbook; save its sheet as CSV", source=path)
    if path.suffix.lower() in (".parquet", ".pq"):
        cells = _parquet(path)
        table = Table(cells, path, file_sha256(path), np.arange(1, len(cells) + 1), decimal=how.decimal)
    else:
        text, notes = _decoded(_content(path), path, how.encoding)
        columns, lines = text_columns(text, path, how, wanted, notes)
        cells = pd.DataFrame({name: objects(cells) for name, cells in without_guard(columns).items()}, dtype=object)
        table = Table(cells, path, file_sha256(path), lines, "line", how.decimal, notes=notes)
    return finished(without_survey_headers(table), of=of, once=once)


def _parquet(path: Path) -> pd.DataFrame:
    require_packages(("pyarrow",), "data", source=path, field="parquet")
    import pyarrow as pa  # noqa: PLC0415 - an optional extra that only parquet needs
    import pyarrow.parquet as pq  # noqa: PLC0415

    try:
        with pq.ParquetFile(path) as file:
            check_header(file.schema_arrow.names, path)
            # a column of one value is a few bytes on the disk, and a Python object a cell in memory
            n_cells, most = file.metadata.num_rows * len(file.schema_arrow.names), _CELLS_A_BYTE * path.stat().st_size
            if n_cells > max(_CELLS_ALWAYS, most):
                problem = f"has {file.metadata.num_rows:,} rows in {path.stat().st_size:,} bytes"
                problem += ": more than a table of answers can have; write it anew"
                raise InputError(problem, source=path)  # noqa: TRY301 - outside, the file is closed
            # whole numbers beside empty cells stay whole
            frame: pd.DataFrame = file.read().to_pandas(integer_object_nulls=True, ignore_metadata=True)
    except InputError:
        raise
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        said = " ".join(str(error).split())
        raise InputError(f"is no parquet file that can be read ({said})", source=path) from error
    return frame


def text_columns(
    text: str, path: Path, how: TableFile, wanted: Iterable[str], notes: list[Note]
) -> tuple[dict[str, list[str]], NDArray[np.int64]]:
    """Cells of a text by column, and the line in which each row begins."""
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        hint = (
            f"UTF-16 has them: {Set('study.encoding', 'utf-16')} reads it" if line == 1 else "no table of text has them"
        )
        raise InputError(f"line {line} has NUL bytes; {hint}", source=path)
    # contexts may be whole books
    csv.field_size_limit(max(csv.field_size_limit(), _MOST_CHARACTERS))
    lines = list(io.StringIO(text, newline=""))
    if not lines:
        raise InputError("is empty", source=path)
    separator = _sniffed(path, lines[0], wanted) if how.separator == "auto" else how.separator
    quotes = csv.QUOTE_NONE if how.quoting == "none" else csv.QUOTE_MINIMAL
    rows = _rows(csv.reader(lines, delimiter=separator, quoting=quotes, strict=True), path)  # type: ignore[arg-type]
    header = header_names(next(rows, (1, 1, []))[2])
    check_header(header, path)
    kept: list[list[str]] = []
    starts: list[int] = []
    swallowing: list[int] = []
    shared: dict[str, str] = {}
    blank = empty = over_lines = 0
    for start, end, row in rows:
        if end > start:
            over_lines += 1
            # a stray quotation mark makes one row of several, each of which is a whole row without it
            alone = csv.reader(lines[start - 1 : end], delimiter=separator, quoting=csv.QUOTE_NONE)
            if len(header) > 1 and all(len(part) == len(header) for part in alone):
                swallowing.append(start)
        if not any(row):
            # an empty line is nothing; one with separators is a row that a spreadsheet left
            empty += len(row) > 1
            blank += not row
            if blank > max(_BLANK_LINES, 2 * len(kept)):
                raise InputError(f"has {blank:,} empty lines among its first {end:,}; it is no table", source=path)
            continue
        if len(row) != len(header):
            raise _width(row, header, start, path, first=not kept)
        # equal cells are one string, which saves most of the memory
        kept.append(list(map(shared.setdefault, row, row)) if len(shared) < _CELLS_SHARED else row)
        starts.append(start)
    if swallowing and how.quoting == "auto":
        # by chance a quoted text has as many separators in every line; a stray mark does it each time
        if 2 * len(swallowing) > over_lines:
            raise InputError(
                f"line {swallowing[0]}: {_SWALLOWED}: a stray quotation mark? "
                f"{Set('study.quoting', 'none')} takes quotation marks for characters like others, "
                f"{Set('study.quoting', 'standard')} takes the field as it is",
                source=path,
            )
        notes.append(Note(f"rows in which {_SWALLOWED}; kept", len(swallowing), "warning"))
    if empty:
        notes.append(Note("rows without any entry, left out", empty))
    columns = map(list, zip(*kept, strict=True)) if kept else ([] for _ in header)
    none = set(how.empty)
    cells = {
        name: ["" if cell in none else cell for cell in column] for name, column in zip(header, columns, strict=True)
    }
    return cells, np.array(starts, dtype=np.int64)


def _content(path: Path) -> bytes:
    if path.suffix != ".gz":
        return read_bytes(path)
    most = max(_UNPACKED_BYTES, _UNPACKED_TIMES * regular_file(path).st_size)
    try:
        with gzip.open(path) as stream:
            content = stream.read(most + 1)
    except (EOFError, zlib.error, OSError) as error:
        said = getattr(error, "strerror", None) or error
        raise InputError(f"cannot be read ({said}); the file is damaged or cut off", source=path) from error
    if len(content) > most:
        problem = f"unpacks to more than {_UNPACKED_TIMES} times its size; unpack it yourself to read it"
        raise InputError(problem, source=path)
    return content


def _decoded(content: bytes, path: Path, encoding: str) -> tuple[str, list[Note]]:
    marked = content[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    auto = encoding == "auto"
    encoding = ("utf-16" if marked else "utf-8") if auto else codecs.lookup(encoding).name
    try:
        return decoded(content, path, encoding, hint=f"set {Set('study.encoding')} to the encoding of the table"), []
    except InputError as error:
        if not auto or marked:
            raise
        where = error.problem.partition(";")[0]
    if not content.decode("utf-8", "ignore").isascii():
        cure = f"correct it and save the table as UTF-8, or {Set('study.encoding', 'cp1252')} reads all as Windows-1252"
        raise InputError(f"{where}, though other lines are; {cure}", source=path)
    said = f"table that {where}, read as Windows-1252; {Set('study.encoding')} says otherwise"
    return _decoded(content, path, "cp1252")[0], [Note(said, 1, "warning")]


def _rows(reader: Iterator[list[str]], path: Path) -> Iterator[tuple[int, int, list[str]]]:
    """Rows with the lines in which they begin and end."""
    end = 0
    try:
        for row in reader:
            start, end = end + 1, reader.line_num  # type: ignore[attr-defined]
            yield start, end, row
    except csv.Error as error:
        line = reader.line_num  # type: ignore[attr-defined]
        problem = f"line {line}: {error}"
        if "unexpected end" in str(error):
            problem = f"line {end + 1}: a quotation mark begins a field there that never ends"
        hint = f"{Set('study.quoting', 'none')} takes quotation marks for characters like others"
        right = f"a quotation mark inside a quoted field is written twice, and {hint}"
        raise InputError(f"{problem}; {right}", source=path) from None


def _width(row: list[str], header: list[str], line: int, path: Path, *, first: bool) -> InputError:
    hint = f"quote fields that hold the separator, or set {Set('study.separator')}"
    if first and len(row) == len(header) + 1:
        hint = "if the first is a row's name, write the table without them (R: row.names = FALSE); else " + hint
    return InputError(f"line {line}: has {len(row)} fields, the header {len(header)}; {hint}", source=path)


def _sniffed(path: Path, header: str, wanted: Iterable[str]) -> str:
    """The separator with which the header holds most of the columns asked for, then most columns."""
    usual = "\t" if path.name.lower().removesuffix(".gz").endswith((".tsv", ".tab")) else ","
    best, found = (-1, -1, False), usual
    for separator in SEPARATORS.values():
        try:
            names = {name.strip() for name in next(csv.reader([header], delimiter=separator), [])}
        except csv.Error:
            continue
        rank = (len(names & set(wanted)), len(names), separator == usual)
        if rank > best:
            best, found = rank, separator
    return found
