"""Results of Ibex and PCIbex: rows of several widths, the names of whose columns stand in the comments before them.

A comment ``# 9. Word.`` names column 9 of the rows that follow, until another one does; older files have a comment for
each of several lines in turn, or ``# ...First 7... -- [8] Word number. -- [9] Word.`` before every row.
"""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.studies.parsing import Note, counting

_COLUMN = re.compile(r"#\s*(?:Col\. (\d+):|(\d+)\.) (.+)")
_LATER = re.compile(r"\[(\d+)\] (.+?)(?= -- \[\d|$)")
_FIRST = (
    "Time results were received",
    "MD5 hash of participant's IP address",
    "Controller name",
    "Item number",
    "Element number",
    "Type",
    "Group",
)
_ESCAPED = re.compile(r"%[0-9A-Fa-f]{2}")


def is_results(text: str) -> bool:
    """Whether a text is a file of results of Ibex or PCIbex."""
    return text.lstrip("\ufeff \r\n").startswith("#") and ("\n# Columns below this" in text or "\n# ...First 7" in text)


def result_columns(text: str, path: Path, notes: list[Note]) -> tuple[dict[str, list[str]], NDArray[np.int64]]:
    """Cells by the name of their column, "" where a row has none of it, and the line of each row."""
    layouts: list[list[str]] = [[]]
    rows: list[dict[str, str]] = []
    starts: list[int] = []
    at = short = escaped = nulls = 0
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), start=1):
        if line.startswith("#"):
            at = 0
            if "in groups of" in line or "Columns below this" in line:
                layouts = [] if "groups" in line else [[]]
            elif re.match(r"# Line \d+:", line):
                layouts.append([])
            elif line.startswith("# ...First 7"):
                layouts = [[*_FIRST, *(name.rstrip(".") for _, name in _LATER.findall(line))]]
            elif (found := _COLUMN.match(line)) and layouts:
                _name(layouts[-1], int(found[1] or found[2]), found[3].strip().removesuffix("."))
        elif line.strip():
            names = layouts[at % len(layouts)] if layouts else []
            at += 1
            cells = line.split(",")
            if len(cells) > len(names):
                problem = f"line {number}: has {len(cells)} fields, the comments above it name {len(names)} columns"
                raise InputError(f"{problem}; write a comma inside a cell as %2C", source=path)
            short += len(cells) < len(names)
            plain = [_decoded(cell) for cell in cells]
            escaped += sum(one != other for one, other in zip(cells, plain, strict=True))
            nulls += plain.count("NULL")
            rows.append({name: "" if cell == "NULL" else cell for name, cell in zip(names, plain, strict=False)})
            starts.append(number)
    notes += counting(
        Note("cells of PCIbex with escapes such as %2C, decoded", escaped),
        Note("cells of PCIbex that are NULL, read as empty", nulls),
        Note("rows of PCIbex with fewer fields than their comments name, the rest empty", short),
    )
    every = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name, "") for row in rows] for name in every}, np.array(starts, dtype=np.int64)


def _name(layout: list[str], place: int, name: str) -> None:
    """Name a column, from 1; those beyond it were columns of other rows."""
    layout += [f"(column {at})" for at in range(len(layout) + 1, place)]
    layout[place - 1 :] = [name if name not in layout[: place - 1] else f"{name} (column {place})"]


def _decoded(cell: str) -> str:
    plain = unquote(cell) if _ESCAPED.search(cell) else cell
    # no escape of UTF-8
    return cell if "\ufffd" in plain else plain
