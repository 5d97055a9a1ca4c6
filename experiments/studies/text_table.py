"""Delimited text as columns of strings; what pandas would shift, fill up or swallow is refused with its line."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.studies.files import read_bytes, regular_file
from shannon_game.experiments.studies.parsing import Note
from shannon_game.experiments.studies.plain_table import check_header, header_names
from shannon_game.experiments.studies.table_settings import SEPARATORS, TableFile

__all__ = ["TextColumns", "read_text"]

_MOST_CHARACTERS = 2**24
_BLANK_LINES = 10_000
_UNPACKED_BYTES = 2**28
_UNPACKED_TIMES = 200
_CELLS_SHARED = 10**6
_SWALLOWED = "a quoted field goes over several lines, each of which looks like a row of the table"


@dataclass(frozen=True)
class TextColumns:
    """Cells by column, the line of the file in which each row begins, and what was noted."""

    columns: dict[str, list[str]]
    lines: NDArray[np.int64]
    notes: list[Note]


def read_text(path: Path, how: TableFile, wanted: Sequence[str]) -> TextColumns:
    """Read a delimited file, also packed (``.gz``); `wanted` are columns that tell which separator is right."""
    text, notes = _decoded(_content(path), path, how.encoding)
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        hint = "UTF-16 has them: study.encoding=utf-16 reads it" if line == 1 else "no table of text has them"
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
                f"line {swallowing[0]}: {_SWALLOWED}: a stray quotation mark? study.quoting=none takes quotation marks "
                "for characters like others, study.quoting=standard takes the field as it is",
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
    return TextColumns(cells, np.array(starts, dtype=np.int64), notes)


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
        # a mark of UTF-8 is no character of the first column's name
        return content.decode("utf-8-sig" if encoding == "utf-8" else encoding), []
    except UnicodeError as error:
        where = "the table"
        if isinstance(error, UnicodeDecodeError) and not encoding.startswith(("utf-16", "utf-32")):
            line = content.count(b"\n", 0, error.start) + 1
            where = f"line {line}: byte {content[error.start]:#04x}"
    if not auto or marked:
        problem = f"{where} is no {encoding}; set study.encoding to the encoding of the table"
        raise InputError(problem, source=path)
    if not content.decode("utf-8", "ignore").isascii():
        cure = "correct it and save the table as UTF-8, or study.encoding=cp1252 reads all as Windows-1252"
        raise InputError(f"{where} is no UTF-8, though other lines are; {cure}", source=path)
    said = f"table that is not UTF-8 ({where}), read as Windows-1252; study.encoding says otherwise"
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
        hint = "study.quoting=none takes quotation marks for characters like others"
        right = f"a quotation mark inside a quoted field is written twice, and {hint}"
        raise InputError(f"{problem}; {right}", source=path) from None


def _width(row: list[str], header: list[str], line: int, path: Path, *, first: bool) -> InputError:
    hint = "quote fields that hold the separator, or set study.separator"
    if first and len(row) == len(header) + 1:
        hint = "if the first is a row's name, write the table without them (R: row.names = FALSE); else " + hint
    return InputError(f"line {line}: has {len(row)} fields, the header {len(header)}; {hint}", source=path)


def _sniffed(path: Path, header: str, wanted: Sequence[str]) -> str:
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
