"""``study=published``: what the papers print, with the source of every number and where a run finds ours.

The rows stand in four tables beside this module, ``*published*.csv``, and in any of the user's own in their format: one
row a value, the variables of :func:`shannon_game.experiments.papers.published_study.validate_published_study` as
columns.
"""

from __future__ import annotations

import hashlib
import io
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr

from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import add_note
from shannon_game.experiments.harness.result import loader
from shannon_game.experiments.papers.published_study import COMPUTED, check_value, validate_published_study
from shannon_game.experiments.studies.files import read_bytes
from shannon_game.experiments.studies.parsing import some_of
from shannon_game.inference.settings import Settings, UserPath

COLUMNS = (
    *("paper", "where", "quantity", "unit", "printed", "tolerance", "expected", "reason"),
    *("part", "table", "select", "column", "origin", "source", "basis"),
)
"""Header of a table of published values. Without `basis` every value of ours is computed."""

_HERE = Path(__file__).parent
_TABLES = ("published.csv", "provo_published.csv", "provo_published_lists.csv", "rank_perplexity_published.csv")


class PublishedSettings(Settings):
    tables: tuple[UserPath, ...] = ()
    """Further CSV files with the columns :data:`COLUMNS`, such as those of a paper of your own."""


@loader(PublishedSettings)
def published(settings: PublishedSettings) -> xr.Dataset:
    """Load the published values.

    Examples
    --------
    >>> from shannon_game import published
    >>> published().sizes["value"]
    1525
    """
    tables = {path: read_values(path) for path in (*(_HERE / name for name in _TABLES), *settings.tables)}
    table = pd.concat(tables.values(), ignore_index=True)
    names = table["paper"] + "/" + table["where"] + "/" + table["quantity"]
    study = xr.Dataset(
        {name: ("value", table[name].to_numpy()) for name in COLUMNS},
        coords={"value": names.to_numpy(dtype=object)},
        attrs={
            "name": "published",
            "data_sha256": hashlib.sha256(b"".join(path.read_bytes() for path in tables)).hexdigest(),
        },
    )
    for path, rows in tables.items():
        add_note(study, f"published values in {path.name}", count=len(rows))
    return validate_published_study(study)


def read_values(path: Path) -> pd.DataFrame:
    """Read a table of published values, :data:`COLUMNS`; what a row lacks at its end is empty."""
    try:
        read = pd.read_csv(
            io.BytesIO(read_bytes(path)), header=None, dtype=object, na_filter=False, skip_blank_lines=False
        )
    except (UnicodeError, pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise InputError(f"cannot be read as CSV: {' '.join(str(error).split())}", source=path) from None
    header, table = read.iloc[0].tolist(), read.iloc[1:].set_axis(range(2, len(read) + 1))
    if tuple(header) == COLUMNS[:-1]:
        header, table = list(COLUMNS), table.assign(basis=np.where(table[COLUMNS.index("part")] == "", "", COMPUTED))
    if tuple(header) != COLUMNS:
        raise InputError(f"is {some_of(header, 20)}; should be {', '.join(COLUMNS)}", source=path, field="header")
    if table.empty:
        raise InputError("has a header and no row", source=path)
    table = table.set_axis(list(COLUMNS), axis=1)
    for number, *cells in table.itertuples():
        place, row = f"{path}, row {number}", dict(zip(COLUMNS, cells, strict=True))
        try:
            tolerance = float(row["tolerance"] or "nan")
        except ValueError:
            problem = f"is {row['tolerance']!r}, should be a number or empty"
            raise InputError(problem, source=place, field="tolerance") from None
        check_value(place, row, tolerance)
    return table.assign(tolerance=table["tolerance"].replace("", "nan").astype(float))
