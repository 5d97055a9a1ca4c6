"""Plain tables as loaders read them: cells are the text that stands in the file, and numbers where asked for."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from estimators.errors import InputError

__all__ = ["numbers", "read_table"]


def read_table(path: Path, *, of: str) -> tuple[pd.DataFrame, str]:
    """Read a CSV, or a TSV by its ending, with every cell as text.

    Parameters
    ----------
    path : Path
    of : str
        What a row is, for the error about a table without any.

    Returns
    -------
    table : pandas.DataFrame
        Strings only; an empty cell is "".
    sha256 : str
        Of the file.

    Raises
    ------
    InputError
        If the file cannot be read, is no table in UTF-8, or has no row.
    """
    try:
        content = path.read_bytes()
        separator = "\t" if path.suffix.lower() in {".tsv", ".tab"} else ","
        # text as it stands: "NA" and "null" are words that people guess
        table = pd.read_csv(io.BytesIO(content), sep=separator, dtype=str, keep_default_na=False, encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError, pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise InputError(f"cannot be read as a table ({error})", source=path) from error
    if not len(table):
        raise InputError(f"holds no {of}", source=path)
    return table, hashlib.sha256(content).hexdigest()


def numbers(column: pd.Series, path: Path, name: str, *, empty: bool = False) -> NDArray[np.float64]:
    """Read a column of text as finite numbers.

    Parameters
    ----------
    column : pandas.Series of str
    path, name
        Of the table and the column, for the error.
    empty : bool, optional
        Whether an empty cell is NaN and not a mistake.

    Returns
    -------
    ndarray of float, shape (row,)

    Raises
    ------
    InputError
        Names the first cell that is no finite number, and its row, from 1.
    """
    text = column.to_numpy(dtype=object)
    found = pd.to_numeric(column.where(column != "", "nan"), errors="coerce").to_numpy(dtype=float)
    bad = ~np.isfinite(found) & ~((text == "") & empty)
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise InputError(f"is {text[row]!r} in row {row + 1}, should be a number", source=path, field=name)
    return found
