"""Rows of text from a delimited file, a parquet file or values of any type."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from estimators.errors import InputError, require_packages
from experiments.studies.cloze.table_rows import ClozeColumns
from experiments.studies.parsing import Note

__all__ = ["SEPARATORS", "Row", "TableRows", "chosen_columns", "read_rows", "row_of"]

SEPARATORS = {"comma": ",", "tab": "\t", "semicolon": ";", "pipe": "|"}
"""Separators by name."""

Row: TypeAlias = "tuple[str, Mapping[str, str | None]]"
"""Place of a row in its table, and its values by column."""


@dataclass(frozen=True)
class TableRows:
    """A table that is being read.

    Parameters
    ----------
    columns : dict
        What a column is -> its name in the table.
    rows : iterator of Row
    notes : list of Note
    """

    columns: dict[str, str]
    rows: Iterator[Row]
    notes: list[Note]


def read_rows(path: Path, content: bytes, columns: ClozeColumns | None, *, separator: str, encoding: str) -> TableRows:
    """Read a file, as parquet where its name says so.

    Raises
    ------
    InputError
        If it cannot be read as a table or lacks a column; names the line.
    """
    if path.suffix.lower() in (".parquet", ".pq"):
        return _parquet(path, content, columns)
    notes: list[Note] = []
    text = _decoded(path, content, encoding, notes)
    separator = _sniffed(path, text, columns) if separator == "auto" else separator
    # the csv module leaves every field as it is written: no NA, no numbers, no booleans
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        header = next(reader)
    except StopIteration:
        raise InputError("is empty", source=path) from None
    except csv.Error as error:
        raise InputError(f"line 1: {error}", source=path) from error
    header = [name.strip() for name in header]
    chosen, unread = chosen_columns(header, columns, source=path)
    return TableRows(chosen, _delimited(path, reader, header), [*notes, *unread])


def chosen_columns(
    header: Sequence[str], columns: ClozeColumns | None, *, source: object
) -> tuple[dict[str, str], list[Note]]:
    """Find the columns that the settings name, or else those that bear the settings' names.

    Returns
    -------
    columns : dict
        What a column is -> its name in the table.
    notes : list of Note
        Columns that nobody named.

    Raises
    ------
    InputError
        If one is not there, or twice; lists those that are there.
    """
    if columns is None:
        named = {name: name for name in ClozeColumns.model_fields if name in header}
        if "response" not in named:
            raise InputError(
                f"no column is called response; name the columns: columns={{context: COLUMN, response: COLUMN}}; there "
                f"are: {', '.join(header)}",
                source=source,
                field="columns",
            )
        columns = ClozeColumns(**named)
    found = columns.given
    for what, name in found.items():
        if header.count(name) != 1:
            problem = "is there twice" if name in header else f"is no column; there are: {', '.join(header)}"
            raise InputError(f"{name!r} {problem}", source=source, field=f"columns.{what}")
    unread = [name for name in header if name not in found.values()]
    # a model's rows are people's answers where the settings do not say which column names the model
    text = f"columns that study.columns does not name were not read: {', '.join(unread)}"
    return found, [Note(text, None)] if unread else []


def _delimited(path: Path, reader: Any, header: list[str]) -> Iterator[Row]:
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise InputError(
                f"line {reader.line_num}: {error}; a quotation mark inside a quoted field is written twice",
                source=path,
            ) from error
        if not row or (len(row) == 1 and not row[0].strip()):
            continue
        if len(row) != len(header):
            raise InputError(
                f"line {reader.line_num}: has {len(row)} fields, the header {len(header)}; quote fields that hold the "
                "separator, or set study.separator",
                source=path,
            )
        yield f"line {reader.line_num}", dict(zip(header, row, strict=True))


def _decoded(path: Path, content: bytes, encoding: str, notes: list[Note]) -> str:
    if encoding == "auto":
        if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
            encoding = "utf-16"
        else:
            try:
                return content.decode("utf-8-sig")
            except UnicodeDecodeError:
                text = "table that is not UTF-8, read as Windows-1252; study.encoding says otherwise"
                notes.append(Note(text, 1, "warning"))
                encoding = "cp1252"
                if b"\x00" in content:
                    problem = "is no text in UTF-8 and holds null bytes; set study.encoding"
                    raise InputError(problem, source=path) from None
    try:
        return content.decode("utf-8-sig" if encoding == "utf-8" else encoding)
    except UnicodeDecodeError as error:
        raise InputError(
            f"byte {error.start} is no {encoding}; set study.encoding to the encoding of the table", source=path
        ) from error


def _sniffed(path: Path, text: str, columns: ClozeColumns | None) -> str:
    """The separator with which the header holds every column asked for."""
    header = text.split("\n", maxsplit=1)[0]
    wanted = {"response"} if columns is None else set(columns.given.values())
    fitting = []
    for separator in SEPARATORS.values():
        try:
            names = next(csv.reader([header], delimiter=separator), [])
        except csv.Error:
            continue
        if wanted <= {name.strip() for name in names}:
            fitting.append((len(names), separator))
    if not fitting:
        shown = header if len(header) <= 200 else header[:200] + "..."
        raise InputError(
            f"no separator gives the columns {', '.join(sorted(wanted))}; the header is {shown.strip()!r}: check "
            "study.columns and study.separator",
            source=path,
        )
    return max(fitting)[1]


def _parquet(path: Path, content: bytes, columns: ClozeColumns | None) -> TableRows:
    require_packages(("pyarrow",), "cloze", source=path, field="parquet")
    import pyarrow as pa  # noqa: PLC0415 - an optional extra that only parquet needs
    import pyarrow.parquet as pq  # noqa: PLC0415

    try:
        table = pq.read_table(io.BytesIO(content))
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(f"is no parquet file ({error})", source=path) from error
    chosen, notes = chosen_columns(list(table.column_names), columns, source=path)
    records = table.select(list(chosen.values())).to_pylist()
    return TableRows(chosen, (row_of(one, chosen, number, path) for number, one in enumerate(records)), notes)


def row_of(values: Mapping[str, Any], columns: Mapping[str, str], number: int, source: object) -> Row:
    """Turn values of any type into text.

    Raises
    ------
    InputError
        If an answer is no string.
    """
    answer = values[columns["response"]]
    if not isinstance(answer, str | None) and not (isinstance(answer, float) and math.isnan(answer)):
        raise InputError(
            f"row {number}: is {answer!r}; answers have to be strings (TRUE and 1.0 do not say what was typed)",
            source=source,
            field=columns["response"],
        )
    return f"row {number}", {name: _text(value) for name, value in values.items()}


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, float):
        return None if math.isnan(value) else repr(value)
    return str(value)
