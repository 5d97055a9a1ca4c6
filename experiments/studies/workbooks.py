"""A sheet of an Excel workbook as a table; a cell whose value is not in the file is refused by its name."""

from __future__ import annotations

import datetime as dt
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO
from xml.etree import ElementTree as ET

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from shannon_game.estimators.errors import InputError, require_packages
from shannon_game.estimators.messages import Set
from shannon_game.experiments.studies.files import checked_members, open_archive
from shannon_game.experiments.studies.parsing import Note, some_of
from shannon_game.experiments.studies.plain_table import check_header, header_names

ENDINGS = (".xlsx", ".xlsm")
"""Workbooks that are read. Of others, values cannot be told from errors."""

_TIMES = (dt.date, dt.time, dt.timedelta)
_EXACT = 2**53


def sheet_table(
    path: Path, sheet: str | None, skip: int, notes: list[Note], *, setting: str = "study.sheet"
) -> tuple[pd.DataFrame, NDArray[np.int64]]:
    """Cells of a workbook's sheet, typed, and the number of each row, as Excel counts."""
    require_packages(("python_calamine",), "data", source=path, field="workbook")
    from python_calamine import CalamineError, CalamineWorkbook, SheetTypeEnum  # noqa: PLC0415 - an optional extra

    if not zipfile.is_zipfile(path):
        raise InputError("is no workbook that can be read; has it a password?", source=path)
    with open_archive(path, path) as archive:
        # before anything is unpacked
        members = checked_members(archive, path)
    try:
        with CalamineWorkbook.from_path(path) as book:
            sheets = [each.name for each in book.sheets_metadata if each.typ == SheetTypeEnum.WorkSheet]
            name = _chosen(path, sheet, {name: book.get_sheet_by_name(name).height for name in sheets}, setting)
            found = book.get_sheet_by_name(name)
            rows, merged = found.to_python(skip_empty_area=False), found.merged_cell_ranges or []
    except InputError:
        raise
    except (CalamineError, OSError, ValueError) as error:
        said = " ".join(str(error).split())
        raise InputError(f"is no workbook that can be read ({said})", source=path) from error
    place = f"{path}, sheet {name}"
    for (row, column), (last_row, last_column) in merged:
        cells = f"{_cell(row, column)}:{_cell(last_row, last_column)}"
        raise InputError(f"has the merged cells {cells}; unmerge them, and fill each", source=place)
    with open_archive(path, path) as archive, archive.open(members[_member(archive.read, name)]) as stream:
        for cell, problem in _without_value(stream):
            raise InputError(f"{problem} in {cell}; copy the column and paste its values", source=place)
    there = [number for number, row in enumerate(rows) if number >= skip and any(cell != "" for cell in row)]
    if not there:
        raise InputError("is empty", source=place)
    header, *places = there
    if blank := places[-1:] and places[-1] - header - len(places):
        notes.append(Note("rows without any entry, left out", blank))
    kept = [rows[number] for number in places]
    filled = [at for at, cell in enumerate(rows[header]) if cell != "" or any(row[at] != "" for row in kept)]
    names = header_names([str(_value(rows[header][at])) for at in filled])
    check_header(names, place)
    times = [names[at] for at, column in enumerate(filled) if any(isinstance(row[column], _TIMES) for row in kept)]
    if times:
        text = f"columns with dates or times, which Excel also makes of words and numbers: {some_of(times)}"
        notes.append(Note(text, len(times), "warning"))
    table = pd.DataFrame([[_value(row[at]) for at in filled] for row in kept], columns=names, dtype=object)
    return table, np.array(places, dtype=np.int64) + 1


def _chosen(path: Path, sheet: str | None, heights: dict[str, int], setting: str) -> str:
    filled = [name for name, height in heights.items() if height]
    if sheet is not None and sheet not in heights:
        problem = f"is {sheet!r}; the workbook has {some_of(list(heights), 20)}"
        raise InputError(problem, source=path, field=Set(setting))
    if not filled:
        raise InputError("is empty", source=path)
    if sheet is None and len(filled) > 1:
        problem = f"has the sheets {some_of(filled, 20)}; {Set(setting, filled[0])} takes the first"
        raise InputError(problem, source=path)
    return filled[0] if sheet is None else sheet


def _value(cell: object) -> object:
    """What a cell shows: Excel holds every number as a float."""
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < _EXACT:
        return int(cell)
    if isinstance(cell, dt.timedelta):
        return str(cell)
    return cell.isoformat() if isinstance(cell, dt.date | dt.time) else cell


def _cell(row: int, column: int) -> str:
    letters = ""
    column += 1
    while column:
        column, rest = divmod(column - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return f"{letters}{row + 1}"


def _member(read: Callable[[str], bytes], sheet: str) -> str:
    """Name of a sheet's own file in the archive."""
    book, relations = (ET.fromstring(read(f"xl/{name}")) for name in ("workbook.xml", "_rels/workbook.xml.rels"))
    (mine,) = (each for each in book.findall("./{*}sheets/{*}sheet") if each.get("name") == sheet)
    relation = next(value for name, value in mine.items() if name.endswith("}id"))
    target = next(str(each.get("Target")) for each in relations if each.get("Id") == relation)
    return target.removeprefix("/") if target.startswith("/") else f"xl/{target}"


def _without_value(stream: IO[bytes]) -> Iterator[tuple[str, str]]:
    """Cells that hold an error, or a formula that no spreadsheet has computed; their names and what they hold."""
    for _, element in ET.iterparse(stream):
        if element.tag.endswith("}c"):
            value, formula = element.find("{*}v"), element.find("{*}f")
            if element.get("t") == "e":
                yield str(element.get("r")), f"has the error {value.text if value is not None else ''}"
            elif formula is not None and (value is None or value.text is None) and element.get("t") != "str":
                yield str(element.get("r")), "has a formula without a value"
        elif element.tag.endswith("}row"):
            element.clear()
