"""Tables in files: Parquet, Excel, or delimited text, of which what pandas would shift or swallow is refused."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import AfterValidator, BeforeValidator, Field

from shannon_game.estimators.content import file_sha256
from shannon_game.estimators.errors import InputError, require_packages, unknown_choice
from shannon_game.estimators.messages import Set
from shannon_game.experiments.harness.csv_tables import without_guard
from shannon_game.experiments.studies import workbooks
from shannon_game.experiments.studies.files import read_bytes, regular_file
from shannon_game.experiments.studies.ibex_results import is_results, result_columns
from shannon_game.experiments.studies.json_cells import leaf_text
from shannon_game.experiments.studies.parsing import Note, decoded, json_records, objects, shown, some_of
from shannon_game.experiments.studies.plain_table import Table, check_header, finished, header_names
from shannon_game.experiments.studies.survey_export import without_survey_headers
from shannon_game.experiments.studies.table_parts import chosen, ending_of, is_several, table_files, together
from shannon_game.inference.settings import Settings, UserPath

_OTHER_FILES = {
    **dict.fromkeys((".xls", ".xlsb", ".ods", ".numbers"), "is a workbook; save it as .xlsx, or its sheet as CSV"),
    **dict.fromkeys(
        (".sav", ".dta", ".sas7bdat", ".rds", ".rda", ".rdata", ".mat", ".psydat", ".edat", ".edat2", ".edat3"),
        "is a file of another program; export it there as CSV",
    ),
    ".zip": "is an archive; unpack it, and give the file, or the folder with one file per participant",
}
# as JATOS calls it a text
_JSON = re.compile(rb'(\xef\xbb\xbf)?\s*\[?\s*\{\s*"')
_MOST_CHARACTERS = 2**24
_BLANK_LINES = 10_000
_PREAMBLE = 50
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
    """A command line reads -99 as a number and NULL, in any case, as nothing, where a cell is a text."""
    if not isinstance(given, tuple | list):
        return given
    texts = [str(each) if isinstance(each, int | float) and not isinstance(each, bool) else each for each in given]
    return tuple(text for each in texts for text in (_NULLS if each is None else (each,)))


_NULLS = ("null", "Null", "NULL")
CellTexts = Annotated[tuple[str, ...], BeforeValidator(_as_written)]
"""Texts of cells; numbers stand for themselves."""


def _one_or_several(given: object) -> object:
    several = given if isinstance(given, tuple | list) else [given]
    return _as_written([str(each) if isinstance(each, bool) else each for each in several])


Rows = Mapping[str, Annotated[tuple[str, ...], BeforeValidator(_one_or_several)]]
"""Texts by the column that holds one of them."""


class TableFile(Settings):
    """How a table stands in its file; Parquet files need none of it."""

    place: ClassVar[str] = "study"
    """What its settings are called by."""

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
    skip: Annotated[int, Field(ge=0, le=1000)] = 0
    """Lines before the header; of a workbook, rows."""
    sheet: str | None = None
    """Sheet of a workbook; null: the only one with entries."""
    where: Rows = Field(default={})
    """Keep the rows with these cells alone, such as {phase: test, trial: [cloze, text]}; others are counted."""
    where_not: Rows = Field(default={})
    """Leave the rows with these cells out, such as {practice: true}, counted."""


class OneTable(TableFile):
    """A study in one table."""

    path: UserPath
    """The table: text (.gz too), .xlsx, Parquet or JSON; a folder, or data/*.csv, has one file per participant."""

    def read(self, of: str, wanted: Iterable[str]) -> Table:
        """The table; see :func:`read_table`."""
        return read_table(self.path, of=of, how=self, wanted=wanted)


def read_table(
    path: Path, *, of: str, how: TableFile | None = None, wanted: Iterable[str] = (), once: bool = True
) -> Table:
    """Read a table: Parquet, Excel or JSON by its ending, results of PCIbex, else text, also packed (``.gz``).

    A folder with one file per participant, or a pattern such as ``data/*.csv``, is read as one table. `of` says what a
    row is, `wanted` columns tell which separator is right; see :func:`plain_table.finished`.
    """
    how, wanted = how or TableFile(), list(wanted)
    if is_several(path):
        files, notes = table_files(path)
        empty = [file for file in files if not regular_file(file).st_size]
        files = [file for file in files if file not in empty]
        if empty:
            text = f"empty files, left out: {some_of([file.name for file in empty])}"
            notes.append(Note(text, len(empty), "warning"))
        if not files:
            raise InputError("has empty files alone", source=path)
        table = together(path, files, [_file(file, how, wanted) for file in files], notes)
    else:
        table = _file(path, how, wanted)
    return finished(chosen(table, how.where, how.where_not, how.place), of=of, once=once)


def _file(path: Path, how: TableFile, wanted: Sequence[str]) -> Table:
    regular_file(path)
    ending = ending_of(path)
    if ending in _OTHER_FILES:
        raise InputError(_OTHER_FILES[ending], source=path)
    if ending in (".parquet", ".pq"):
        cells = _parquet(path)
        table = Table(cells, path, file_sha256(path), np.arange(1, len(cells) + 1), decimal=how.decimal)
    elif ending in workbooks.ENDINGS:
        notes: list[Note] = []
        cells, rows = workbooks.sheet_table(path, how.sheet, how.skip, notes, setting=f"{how.place}.sheet")
        table = Table(cells, path, file_sha256(path), rows, "row", how.decimal, notes=notes)
    elif ending in (".json", ".jsonl", ".ndjson") or (ending == ".txt" and _JSON.match(_content(path)[:200])):
        table = _json(path, how.decimal)
    else:
        text, notes = _decoded(_content(path), path, how.encoding)
        if is_results(text):
            columns, lines = result_columns(text, path, notes)
        else:
            columns, lines = text_columns(text, path, how, wanted, notes)
        cells = pd.DataFrame({name: objects(cells) for name, cells in without_guard(columns).items()}, dtype=object)
        table = Table(cells, path, file_sha256(path), lines, "line", how.decimal, notes=notes)
    if none := set(how.empty):
        cells = table.cells.map(lambda cell: "" if _written(cell) in none else cell)
        table = replace(table, cells=cells)
    return without_survey_headers(table)


def _written(cell: object) -> str:
    """Text of a cell: a whole number without a point."""
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)


def _json(path: Path, decimal: str) -> Table:
    """Objects of JSON lines or of one list, one per row."""
    found = list(json_records(_content(path), path))
    for where, record in found:
        if not isinstance(record, dict):
            problem = f"is {shown(record)}, should be an object with one value per column"
            raise InputError(problem, source=f"{path}, {where}")
    names = list(dict.fromkeys(name for _, record in found for name in record))
    check_header(header_names(names), path)
    cells = {
        name: objects([leaf_text(value) for value in (record.get(given) for _, record in found)])
        for given, name in zip(names, header_names(names), strict=True)
    }
    place = objects([where for where, _ in found])
    return Table(pd.DataFrame(cells, dtype=object), path, file_sha256(path), place, "", decimal)


def _parquet(path: Path) -> pd.DataFrame:
    require_packages(("pyarrow",), "data", source=path, field="parquet")
    import pyarrow as pa  # noqa: PLC0415 - an optional extra that only parquet needs
    import pyarrow.parquet as pq  # noqa: PLC0415

    try:
        with pq.ParquetFile(path) as file:
            names = header_names(file.schema_arrow.names)
            check_header(names, path)
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
    return frame.set_axis(names, axis=1)


def text_columns(
    text: str, path: Path, how: TableFile, wanted: Iterable[str], notes: list[Note]
) -> tuple[dict[str, list[str]], NDArray[np.int64]]:
    """Cells of a text by column, and the line in which each row begins."""
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        hint = (
            f"UTF-16 has them: {Set(f'{how.place}.encoding', 'utf-16')} reads it"
            if line == 1
            else "no table of text has them"
        )
        raise InputError(f"line {line} has NUL bytes; {hint}", source=path)
    # contexts may be whole books
    csv.field_size_limit(max(csv.field_size_limit(), _MOST_CHARACTERS))
    lines = list(io.StringIO(text, newline=""))
    if len(lines) <= how.skip:
        raise InputError("is empty", source=path)
    separator = _sniffed(path, lines, how.skip, wanted) if how.separator == "auto" else how.separator
    quotes = csv.QUOTE_NONE if how.quoting == "none" else csv.QUOTE_MINIMAL
    reader = csv.reader(lines[how.skip :], delimiter=separator, quoting=quotes, strict=True)  # type: ignore[arg-type]
    rows = _rows(reader, path, how.skip)
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
                f"{Set(f'{how.place}.quoting', 'none')} takes quotation marks for characters like others, "
                f"{Set(f'{how.place}.quoting', 'standard')} takes the field as it is",
                source=path,
            )
        notes.append(Note(f"rows in which {_SWALLOWED}; kept", len(swallowing), "warning"))
    if empty:
        notes.append(Note("rows without any entry, left out", empty))
    columns = map(list, zip(*kept, strict=True)) if kept else ([] for _ in header)
    return dict(zip(header, columns, strict=True)), np.array(starts, dtype=np.int64)


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


def _rows(reader: Iterator[list[str]], path: Path, skipped: int) -> Iterator[tuple[int, int, list[str]]]:
    """Rows with the lines in which they begin and end."""
    end = skipped
    try:
        for row in reader:
            start, end = end + 1, skipped + reader.line_num  # type: ignore[attr-defined]
            yield start, end, row
    except csv.Error as error:
        line = skipped + reader.line_num  # type: ignore[attr-defined]
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


def _sniffed(path: Path, lines: Sequence[str], skip: int, wanted: Iterable[str]) -> str:
    """The separator with which the header holds most of the columns asked for, then most columns."""
    usual = "\t" if path.name.lower().removesuffix(".gz").endswith((".tsv", ".tab")) else ","
    asked = set(wanted)

    def ranks(line: str) -> Iterator[tuple[int, int, bool, str]]:
        for separator in SEPARATORS.values():
            with suppress(csv.Error):
                names = {name.strip() for name in next(csv.reader([line], delimiter=separator), [])}
                yield len(names & asked), len(names), separator == usual, separator

    n_asked, _, _, found = max(ranks(lines[skip]), default=(0, 0, True, usual))
    for line in range(skip + 1, min(skip + _PREAMBLE, len(lines))) if asked and not n_asked else ():
        if 2 * max(ranks(lines[line]), default=(0,))[0] > len(asked):
            problem = (
                f"has the names of its columns in line {line + 1}; {Set('study.skip', line)} leaves out what is before"
            )
            raise InputError(problem, source=path)
    return found
