"""One reader of workbooks (.xlsx): every part is looked at before a parser that trusts it makes room for its cells."""

from __future__ import annotations

import io
import re
import zipfile
from functools import reduce
from typing import Any
from xml.parsers import expat

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.studies.files import UNPACKING_ERRORS, checked_members
from shannon_game.experiments.studies.parsing import shown

WORKBOOK_LIMIT_BYTES = 16 * 2**20
"""A workbook, or a part of it, that is larger when unpacked is refused."""

_MOST_CELLS = 2**20
_REFERENCE = re.compile(r"([A-Z]{0,3})([1-9][0-9]{0,6})")
_HAS_CELLS = re.compile(rb"<(?:[^\s<>/]*:)?(?:c|row)[\s/>]")
_PARTS = (".xml", ".rels")


def read_sheet(content: bytes, place: str) -> list[list[Any]]:
    """Read the cells of a workbook's only sheet, from A1 on."""
    from python_calamine import CalamineWorkbook  # noqa: PLC0415 - few studies need it

    # other kinds of workbook, which the parser knows too, begin otherwise
    if not content.startswith(b"PK"):
        raise InputError("is no .xlsx workbook", source=place)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for name, member in checked_members(archive, place, member_limit_bytes=WORKBOOK_LIMIT_BYTES).items():
                _check_part(archive.read(member), name, f"{place}, {name}")
    except UNPACKING_ERRORS as error:
        raise InputError(f"is not a readable workbook ({error})", source=place) from error
    try:
        book = CalamineWorkbook.from_filelike(io.BytesIO(content))
        names = book.sheet_names
        rows: list[list[Any]] = book.get_sheet_by_index(0).to_python(skip_empty_area=False) if len(names) == 1 else []
    except BaseException as error:
        # a panic of the parser is no Exception
        if not (isinstance(error, Exception) or type(error).__name__ == "PanicException"):
            raise
        raise InputError(f"is not a readable workbook ({error})", source=place) from None
    if len(names) != 1:
        raise InputError(f"has the sheets {shown(names)}, should have one", source=place)
    return rows


def _check_part(content: bytes, name: str, place: str) -> None:
    """Refuse a part that is no plain XML, and cells far out: the parser makes room for all that could lie before."""
    if name.endswith("/"):
        return
    if not name.endswith(_PARTS):
        raise InputError("is a part that a workbook with a plain table has not", source=place)
    if b"<!DOCTYPE" in content or b"<!ENTITY" in content or b"\0" in content:
        raise InputError("defines entities, or is no UTF-8; a workbook does neither", source=place)
    # themes and styles have neither rows nor cells
    if _HAS_CELLS.search(content) is None:
        return
    row = column = last_row = last_column = 0

    def place_of(element: str, attributes: dict[str, str]) -> None:
        nonlocal row, column, last_row, last_column
        tag, reference = element.rpartition(":")[2], attributes.get("r")
        if tag in ("row", "c"):
            after = (0, row + 1) if tag == "row" else (column + 1, row)
            column, row = after if reference is None else _position(reference, place)
        last_row, last_column = max(last_row, row), max(last_column, column)
        if last_row * last_column > _MOST_CELLS:
            raise InputError(
                f"has a cell in row {row:,}, column {column:,}: a table of that size has more than {_MOST_CELLS:,} "
                "cells, which is more than is read",
                source=place,
            )

    parser = expat.ParserCreate()
    parser.StartElementHandler = place_of
    try:
        parser.Parse(content, True)
    except InputError:
        raise
    except (expat.ExpatError, ValueError, LookupError) as error:
        raise InputError(f"is not valid XML ({error})", source=place) from None


def _position(reference: str, place: str) -> tuple[int, int]:
    """Column and row, from 1, of a reference such as B12; of 12 the column is 0."""
    found = _REFERENCE.fullmatch(reference)
    if found is None:
        raise InputError(f"has a cell or row called {shown(reference)}, should be such as B12 or 12", source=place)
    return reduce(lambda column, letter: 26 * column + ord(letter) - ord("A") + 1, found[1], 0), int(found[2])
