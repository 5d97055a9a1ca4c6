"""Tables for readers: as Markdown in a report, and on the screen."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterable
from shutil import get_terminal_size
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.errors import printable
from shannon_game.experiments.harness.csv_tables import is_formula

if TYPE_CHECKING:
    import pandas as pd

# characters that begin markup in a text that is none: "_" inside a word, "<" before a number and "[0, 1]" begin none
_MARKUP = re.compile(r"[\\`*|]|(?<!\w)_|_(?!\w)|<(?=[A-Za-z/!?])|\](?=[(\[:])|&(?=#?\w+;)|~(?=~)")

_INTERVAL = re.compile(r"|(-?inf|[-+.e\d]+)( \[\S+, \S+\]| \N{PLUS-MINUS SIGN} \S+)?[†‡]*( [-+]\S+)?")
_WIDTH = 120
_LONGEST_NAME = 9


def short_names(names: Iterable[str]) -> dict[str, str]:
    """Name people so that a figure can be read: as they are called, or P1, P2, ... in the order of long names."""
    known = list(dict.fromkeys(names))
    if max(map(len, known), default=0) <= _LONGEST_NAME:
        return {name: name for name in known}
    return {name: f"P{number}" for number, name in enumerate(sorted(known), start=1)}


def table_variables(table: pd.DataFrame, dim: str, *, but: Collection[str] = ()) -> dict[str, tuple[str, NDArray[Any]]]:
    """Columns of a table as variables of a file of results: booleans are 1 and 0, a missing text is empty."""
    found = {}
    for name, column in table.drop(columns=list(but)).items():
        values = column.to_numpy()
        if values.dtype == bool:
            values = values.astype(np.int8)
        elif values.dtype.kind not in "fiu":
            is_text = column.map(lambda value: isinstance(value, str)).any()
            values = column.fillna("").to_numpy(dtype=object) if is_text else column.to_numpy(dtype=float)
        found[str(name)] = dim, values
    return found


def is_number(column: pd.Series[Any]) -> bool:
    """Whether readers see numbers, alone or with their intervals."""
    from pandas.api.types import is_numeric_dtype  # noqa: PLC0415 - the help shows no table

    return bool(is_numeric_dtype(column.dtype)) or bool(column.map(_is_interval).all() and (column != "").any())


def _is_interval(value: object) -> bool:
    return isinstance(value, str) and _INTERVAL.fullmatch(value) is not None


def cell_text(value: object) -> str:
    """Value as readers see it: five significant digits, empty where there is none."""
    import pandas as pd  # noqa: PLC0415

    if value is None or value is pd.NA or (isinstance(value, float | np.floating) and np.isnan(value)):
        return ""
    return f"{value:.5g}" if isinstance(value, float | np.floating) else str(value)


def markdown_plain(text: str) -> str:
    """Text that Markdown takes for nothing but text, as the name of a model has to be."""
    return _MARKUP.sub(lambda found: f"\\{found[0]}", printable(text))


def markdown_table(table: pd.DataFrame, *, right: Collection[str] = (), plain: bool = True) -> str:
    """Lay a table out as Markdown: five significant digits, empty where there is no value.

    Columns of numbers are aligned to the right, and those named in `right`. Cells are text; with ``plain=False`` they
    are Markdown, but for pipes.
    """
    rows = [[markdown_plain(str(column)) for column in table.columns]]
    cells = [[cell_text(value) for value in row] for row in table.itertuples(index=False, name=None)]
    rows += [[markdown_plain(text) if plain else text.replace("|", "\\|") for text in row] for row in cells]
    numeric = [name in right or is_number(column) for name, column in table.items()]
    rows.insert(1, ["---:" if number else "---" for number in numeric])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def latex_table(table: pd.DataFrame, *, caption: str = "", label: str = "") -> str:
    r"""Lay a table out with ``\usepackage{booktabs}``: five significant digits, empty where there is no value."""
    sides = "".join("r" if is_number(column) else "l" for _, column in table.items())
    shown = table.set_axis([printable(str(name)) for name in table.columns], axis=1).map(cell_text).map(printable)
    style = shown.style.hide(axis="index").format_index(_braced, axis="columns", escape="latex")
    # a caption is not escaped
    plain = re.sub(r"[^\w .,:;()\[\]†‡§=+/-]", " ", caption).replace("_", r"\_")
    style = style.format(_braced, escape="latex")
    return style.to_latex(
        hrules=True, column_format=sides, caption=plain or None, label=label or None, position_float="centering"
    )


def _braced(cell: object) -> str:
    text = str(cell)
    # "[" would be taken for an argument of the line end before it; nor is a formula one for what reads rows as a table
    return f"{{{text}}}" if text.startswith("[") or is_formula(text) else text


def screen_table(table: pd.DataFrame, title: str = "", *, constants: str = "") -> str:
    """Lay a table out for a terminal, formatted like :func:`markdown_table`; what is the same in every row stands once.

    Where it is too wide, its last columns of numbers are named below it. A file or a pipe is as wide as ``COLUMNS``
    says, or 120 characters.
    """
    import pandas as pd  # noqa: PLC0415

    title = f"{title} ({constants})".lstrip() if constants else title
    is_text = [not is_number(column) for _, column in table.items()]
    n_keys = min(is_text.index(False) if False in is_text else 0, 2)
    shown = table.map(cell_text).map(printable).set_axis([printable(str(name)) for name in table.columns], axis=1)
    if n_keys:
        shown = shown.set_index(list(shown.columns[:n_keys]))
    room, kept, cut = get_terminal_size((_WIDTH, 24)).columns, list(range(len(shown.columns))), list[int]()
    with pd.option_context("display.unicode.east_asian_width", True, "display.multi_sparse", False):
        text = shown.to_string(index=bool(n_keys))
        while len(text.partition("\n")[0]) > room and len(kept) > 1:
            # texts say what to think of the numbers, and the first column is the answer
            numbers = [at for at, column in enumerate(kept) if at and not is_text[n_keys + column]]
            cut.insert(0, kept.pop(numbers[-1] if numbers else -1))
            text = shown.iloc[:, kept].to_string(index=bool(n_keys))
    more = [fill(f"further columns: {', '.join(map(str, shown.columns[cut]))}", room)] if cut else []
    return "\n".join([*([printable(title)] if title else []), text, *more]) + "\n"


def print_table(table: pd.DataFrame, title: str, constants: str = "") -> None:
    """Print :func:`screen_table`."""
    sys.stdout.write(screen_table(table, title, constants=constants))
    sys.stdout.flush()
