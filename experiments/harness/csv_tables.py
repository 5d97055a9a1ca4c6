"""Tables as CSV that no spreadsheet runs: text that looks like a formula has an apostrophe before it."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from shannon_game.inference.disk import refuse_other, whole, write_whole

if TYPE_CHECKING:
    import pandas as pd

GUARD_COLUMN = "guarded_by"
"""Last column of a guarded table of a study: it tells the readers of any CSV what to take off again."""

_GUARD = "'"
# a spreadsheet may run a cell that begins so, some with the wide forms too
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_NUMBER = re.compile(r"[+-](\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?|[+-](inf|nan)")


def is_formula(text: str) -> bool:
    """Whether a spreadsheet may run a text; a number with its sign is none."""
    return text.startswith(_FORMULA) and _NUMBER.fullmatch(text) is None


def guarded(text: str) -> str:
    """Put an apostrophe before a formula, and before an apostrophe, so that it can be undone."""
    return _GUARD + text if text.startswith(_GUARD) or is_formula(text) else text


def unguarded(text: str) -> str:
    """Undo :func:`guarded`."""
    return text.removeprefix(_GUARD)


def csv_text(table: pd.DataFrame) -> str:
    """Write a table as CSV with one header line; an empty cell where there is no value."""
    return str(_guarded_table(table).to_csv(**_how(table)))


def write_csv(table: pd.DataFrame, path: Path, *, private: bool = False, marked: bool = False) -> Path:
    """Write a table as :func:`csv_text` has it, packed where the name ends in ``.gz``.

    A `private` one is for its owner alone. One that is `marked` says in a column that it is guarded, where it is: that
    is for tables of a study, which are read by what reads any CSV.
    """
    safe = _guarded_table(table)
    if marked and not safe.equals(table):
        safe = safe.assign(**{GUARD_COLUMN: _GUARD})
    if private:
        return write_whole(path, str(safe.to_csv(**_how(table))), private=True)
    # whom a row is of is nobody else's to read
    with whole(path, private="participant" in table.columns) as partial:
        safe.to_csv(partial, **_how(table))
        if marked:
            # the name is one that a user gave
            new = partial.read_bytes()
            refuse_other(path, lambda other: other.read_bytes() == new, "table with this content")
    return path


class InParts(Mapping[str, "pd.DataFrame"]):
    """Tables whose parts `make` gives whenever they are written: all of a corpus need not be in memory."""

    def __init__(
        self,
        make: Callable[[], Iterable[Mapping[str, pd.DataFrame]]],
        sizes: Mapping[str, int],
        whole: Mapping[str, pd.DataFrame],
        like: Mapping[str, pd.DataFrame],
    ) -> None:
        """Take the rows of each table, tables that are there, and rows with the columns' types in the whole of each."""
        self.make, self.whole, self.like = make, dict(whole), like
        self.sizes = {**sizes, **{name: len(table) for name, table in whole.items()}}

    def __iter__(self) -> Iterator[str]:
        return iter(self.sizes)

    def __len__(self) -> int:
        return len(self.sizes)

    def __getitem__(self, name: str) -> pd.DataFrame:
        if name not in self.whole and name in self.sizes:
            import pandas as pd  # noqa: PLC0415 - a run's help needs none

            parts = list(self.make())
            for other in self.sizes.keys() - self.whole.keys():
                self.whole[other] = pd.concat([part[other] for part in parts if other in part], ignore_index=True)
        return self.whole[name]


def table_sizes(tables: Mapping[str, pd.DataFrame]) -> Mapping[str, int]:
    """Rows of each table."""
    return tables.sizes if isinstance(tables, InParts) else {name: len(table) for name, table in tables.items()}


def write_tables(tables: Mapping[str, pd.DataFrame], folder: Path) -> None:
    """Write each table as ``NAME.csv``, those in parts as they come."""
    whole_ones = tables.whole if isinstance(tables, InParts) else tables
    for name, table in whole_ones.items():
        write_csv(table, folder / f"{name}.csv")
    if not isinstance(tables, InParts) or len(whole_ones) == len(tables):
        return
    with ExitStack() as stack:
        files: dict[str, Any] = {}
        for part in tables.make():
            for name, table in part.items():
                is_first = name not in files
                if is_first:
                    partial = stack.enter_context(whole(folder / f"{name}.csv"))
                    files[name] = stack.enter_context(partial.open("w", encoding="utf-8", newline=""))
                # whole numbers of one part may stand beside the empty cells of another
                typed = table.astype(tables.like[name].dtypes)
                _guarded_table(typed).to_csv(files[name], header=is_first, **_how(table))


def read_guarded_csv(path: Path | str) -> pd.DataFrame:
    """Read a table that :func:`write_csv` wrote: every cell is the text that was stored, "" where nothing stood."""
    import pandas as pd  # noqa: PLC0415 - a run's help needs none

    table = pd.read_csv(path, dtype=str, keep_default_na=False, na_filter=False, encoding="utf-8")
    return table.rename(columns=unguarded).map(unguarded).drop(columns=GUARD_COLUMN, errors="ignore")


def without_guard(columns: Mapping[str, list[str]]) -> Mapping[str, list[str]]:
    """Cells of any table by column as they were stored, where :data:`GUARD_COLUMN` says that they are guarded."""
    if set(columns.get(GUARD_COLUMN, ())) != {_GUARD}:
        return columns
    plain = {unguarded(name): [unguarded(cell) for cell in cells] for name, cells in columns.items()}
    return {name: cells for name, cells in plain.items() if name != GUARD_COLUMN}


def _guarded_table(table: pd.DataFrame) -> pd.DataFrame:
    safe = table.copy()
    for at, column in _text_columns(table):
        # pandas would make whole numbers beside empty cells to fractions
        cells = [guarded(cell) if isinstance(cell, str) else cell for cell in column]
        safe.isetitem(at, np.fromiter(cells, dtype=object, count=len(cells)))
    return safe.set_axis([guarded(str(name)) for name in table.columns], axis=1)


def _how(table: pd.DataFrame) -> dict[str, Any]:
    """Arguments of pandas; its writer does not quote a carriage return by itself, at which its reader ends a line."""
    cells = (cell for _, column in _text_columns(table) for cell in column if isinstance(cell, str))
    returns = any("\r" in text for text in (*map(str, table.columns), *cells))
    quoting = csv.QUOTE_NONNUMERIC if returns else csv.QUOTE_MINIMAL
    return {"index": False, "lineterminator": "\n", "encoding": "utf-8", "quoting": quoting}


def _text_columns(table: pd.DataFrame) -> Iterator[tuple[int, pd.Series[Any]]]:
    from pandas.api.types import is_numeric_dtype  # noqa: PLC0415 - as above

    yield from ((at, column) for at, (_, column) in enumerate(table.items()) if not is_numeric_dtype(column))
