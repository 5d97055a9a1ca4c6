"""Delimited text as columns of strings: separator, encoding, quotation marks, and which file is no table.

Every field stays what it is: no NA, no number, no boolean. What pandas would shift, fill up or swallow is refused with
its line.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Literal

from estimators.errors import InputError
from experiments.studies.files import regular_file
from experiments.studies.parsing import Note
from experiments.studies.table_settings import SEPARATORS, TableFile
from experiments.studies.text_rows import Rows, TextColumns

__all__ = ["read_text"]

_LINE_CHARACTERS = 2**24
_BLANK_LINES = 10_000
_UNPACKED_BYTES = 2**28
_UNPACKED_TIMES = 200


def read_text(path: Path, how: TableFile, wanted: Sequence[str]) -> TextColumns:
    """Read a delimited file, also packed (``.gz``); `wanted` are columns that tell which separator is right."""
    regular_file(path)
    encoding = codecs.lookup("utf-8" if how.encoding == "auto" else how.encoding).name
    try:
        with _opened(path) as stream:
            marked = stream.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
        if how.encoding == "auto" and marked:
            encoding = "utf-16"
        try:
            return _decoded(path, how, wanted, encoding)
        except UnicodeError:
            if how.encoding != "auto" or marked:
                raise
            where, mixed = _bad_byte(path, encoding)
            if mixed:
                cure = "correct it and save the table as UTF-8, or study.encoding=cp1252 reads all as Windows-1252"
                raise InputError(f"{where} is no UTF-8, though other lines are; {cure}", source=path) from None
            encoding = "cp1252"
            found = _decoded(path, how, wanted, encoding)
            text = f"table that is not UTF-8 ({where}), read as Windows-1252; study.encoding says otherwise"
            found.notes.insert(0, Note(text, 1, "warning"))
            return found
    except UnicodeError:
        problem = f"{_bad_byte(path, encoding)[0]} is no {encoding}; set study.encoding to the encoding of the table"
        raise InputError(problem, source=path) from None
    except (EOFError, zlib.error, OSError) as error:
        said = getattr(error, "strerror", None) or error
        damage = "; the file is damaged or cut off" if path.suffix == ".gz" else ""
        raise InputError(f"cannot be read ({said}){damage}", source=path) from error


def _opened(path: Path) -> IO[bytes]:
    return gzip.open(path) if path.suffix == ".gz" else path.open("rb")  # type: ignore[return-value]


def _decoded(path: Path, how: TableFile, wanted: Sequence[str], encoding: str) -> TextColumns:
    if csv.field_size_limit() < _LINE_CHARACTERS:
        # contexts may be whole books
        csv.field_size_limit(_LINE_CHARACTERS)
    record: list[str] = []
    # a mark of UTF-8 is no character of the first column's name
    own = "utf-8-sig" if encoding == "utf-8" else encoding
    with _opened(path) as stream, io.TextIOWrapper(stream, own, newline="") as text:
        lines = _lines(text, path, record)
        first = next(lines, None)
        if first is None:
            raise InputError("is empty", source=path)
        separator = _sniffed(path, first, wanted) if how.separator == "auto" else how.separator

        def again() -> Iterator[str]:
            yield first
            yield from lines

        quotes: Literal[0, 3] = csv.QUOTE_NONE if how.quoting == "none" else csv.QUOTE_MINIMAL
        reader = csv.reader(again(), delimiter=separator, quoting=quotes, strict=True)
        return Rows(path, how, separator).read(reader, record)


def _lines(text: io.TextIOWrapper, path: Path, record: list[str]) -> Iterator[str]:
    """Lines of the file; those since `record` was last cleared stand there too."""
    most = max(_UNPACKED_BYTES, _UNPACKED_TIMES * path.stat().st_size) if path.suffix == ".gz" else None
    characters = number = blank = 0
    while line := text.readline(_LINE_CHARACTERS):
        number += 1
        characters += len(line)
        if len(line) <= 2:
            blank += not line.strip()
            # an archive of a few kilobytes may hold any number of them
            if blank > max(_BLANK_LINES, 2 * (number - blank)):
                raise InputError(f"has {blank:,} empty lines among its first {number:,}; it is no table", source=path)
        elif len(line) == _LINE_CHARACTERS:
            raise InputError(f"line {number} has more than {_LINE_CHARACTERS:,} characters", source=path)
        if most is not None and characters > most:
            problem = f"unpacks to more than {_UNPACKED_TIMES} times its size; unpack it yourself to read it"
            raise InputError(problem, source=path)
        if "\0" in line:
            hint = "UTF-16 has them: study.encoding=utf-16 reads it" if number == 1 else "no table of text has them"
            raise InputError(f"line {number} has NUL bytes; {hint}", source=path)
        record.append(line)
        yield line


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


def _bad_byte(path: Path, encoding: str) -> tuple[str, bool]:
    """The first byte that the encoding does not have, and whether it has other bytes beyond ASCII in the file.

    A reader says only where its buffer had them.
    """
    where, mixed = "", False
    if not encoding.startswith(("utf-16", "utf-32")):
        with _opened(path) as stream:
            for number, line in enumerate(stream, start=1):
                try:
                    text = line.decode(encoding)
                except UnicodeDecodeError as error:
                    where = where or f"line {number}: byte {line[error.start]:#04x}"
                    text = line.decode(encoding, "ignore")
                mixed = mixed or not text.isascii()
                if where and mixed:
                    break
    return where or "the table", mixed
