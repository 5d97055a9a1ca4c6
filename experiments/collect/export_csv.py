"""Tables as CSV that no spreadsheet runs: text that looks like a formula has an apostrophe before it."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path
from typing import Any

import pandas as pd

__all__ = ["FORMULA", "guarded", "guarded_csv", "read_guarded_csv", "unguarded"]

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
"""A spreadsheet may run a cell that begins so."""
_GUARD = "'"


def guarded(text: str) -> str:
    """Put an apostrophe before what a spreadsheet would run, and before an apostrophe, so that it can be undone.

    Examples
    --------
    >>> guarded("=1+1"), guarded("'tis"), guarded(" the")
    ("'=1+1", "''tis", ' the')
    """
    return _GUARD + text if text.startswith((*FORMULA, _GUARD)) else text


def unguarded(text: str) -> str:
    """Undo :func:`guarded`.

    Examples
    --------
    >>> unguarded(guarded("=1+1")), unguarded(guarded("'tis")), unguarded("-3.5")
    ('=1+1', "'tis", '-3.5')
    """
    return text.removeprefix(_GUARD)


def guarded_csv(table: pd.DataFrame) -> str:
    """Write a table as CSV, UTF-8 and one header line; nothing is an empty cell, true and false are 1 and 0.

    Examples
    --------
    >>> import pandas as pd
    >>> print(guarded_csv(pd.DataFrame({"word": ["=cmd", None], "points": [-1.5, 2.0]})), end="")
    word,points
    '=cmd,-1.5
    ,2.0
    """
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([guarded(str(name)) for name in table.columns])
    columns = [table[name].tolist() for name in table.columns]
    writer.writerows([_cell(value) for value in row] for row in zip(*columns, strict=True))
    return stream.getvalue()


def read_guarded_csv(path: Path | str) -> pd.DataFrame:
    """Read a table that :func:`guarded_csv` wrote; every cell is the text that was stored.

    Parameters
    ----------
    path : Path or str

    Returns
    -------
    pandas.DataFrame
        Of strings, "" where nothing stood.
    """
    table = pd.read_csv(path, dtype=str, keep_default_na=False, na_filter=False, encoding="utf-8")
    return table.rename(columns=unguarded).map(unguarded)


def _cell(value: Any) -> Any:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool):
        return int(value)
    return guarded(value) if isinstance(value, str) else value
