"""``study=published``: what the papers print, with the source of every number and where a run finds ours.

The rows stand in four tables beside this module, ``*published*.csv``, and in any of the user's own in their format: one
row a value, the variables of :func:`shannon_game.experiments.papers.published_study.validate_published_study` as
columns.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import xarray as xr

from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import add_note
from shannon_game.experiments.harness.result import loader
from shannon_game.experiments.papers.published_study import check_value, validate_published_study
from shannon_game.experiments.studies.files import read_bytes
from shannon_game.experiments.studies.parsing import some_of
from shannon_game.inference.settings import Settings, UserPath

COLUMNS = (
    *("paper", "where", "quantity", "unit", "printed", "tolerance", "expected", "reason"),
    *("part", "table", "select", "column", "source"),
)
"""Header of a table of published values."""

_HERE = Path(__file__).parent
_TABLES = ("published.csv", "provo_published.csv", "provo_published_lists.csv", "rank_perplexity_published.csv")
Row = dict[str, str]


class PublishedSettings(Settings):
    """Settings of :func:`published`."""

    tables: tuple[UserPath, ...] = ()
    """Further CSV files with the columns :data:`COLUMNS`, such as those of a paper of your own."""


@loader(PublishedSettings)
def published(settings: PublishedSettings) -> xr.Dataset:
    """Load the published values.

    Parameters
    ----------
    settings : PublishedSettings, optional
        Or its fields by name.

    Returns
    -------
    xarray.Dataset
        See :func:`shannon_game.experiments.papers.published_study.validate_published_study`.

    Raises
    ------
    InputError
        Names the file, the line and the column.

    Examples
    --------
    >>> from shannon_game import published
    >>> published().sizes["value"]
    1420
    """
    rows: list[Row] = []
    counts: dict[Path, int] = {}
    digest = hashlib.sha256()
    for path in (*(_HERE / name for name in _TABLES), *settings.tables):
        own = list(read_values(path))
        rows += own
        counts[path] = len(own)
        digest.update(path.read_bytes())
    study = xr.Dataset(
        {
            **{name: ("value", _strings(rows, name)) for name in COLUMNS if name != "tolerance"},
            "tolerance": ("value", np.array([float(row["tolerance"] or "nan") for row in rows])),
        },
        coords={"value": np.array([f"{row['paper']}/{row['where']}/{row['quantity']}" for row in rows], dtype=object)},
        attrs={"name": "published", "data_sha256": digest.hexdigest()},
    )
    for path, number in counts.items():
        add_note(study, f"published values in {path.name}", count=number)
    return validate_published_study(study)


def _strings(rows: list[Row], name: str) -> np.ndarray:
    found = np.empty(len(rows), dtype=object)
    found[:] = [row[name] for row in rows]
    return found


def read_values(path: Path) -> Iterator[Row]:
    """Read a table of published values, :data:`COLUMNS`."""
    content = read_bytes(path)
    try:
        lines = list(csv.reader(io.StringIO(content.decode("utf-8"), newline=""), strict=True))
    except (UnicodeError, csv.Error) as error:
        raise InputError(f"cannot be read as CSV: {error}", source=path) from None
    if not lines or tuple(lines[0]) != COLUMNS:
        found = some_of(lines[0], 20) if lines else "nothing"
        raise InputError(f"is {found}; should be {', '.join(COLUMNS)}", source=path, field="header")
    if len(lines) == 1:
        raise InputError("has a header and no row", source=path)
    for number, cells in enumerate(lines[1:], start=2):
        if len(cells) != len(COLUMNS):
            raise InputError(f"has {len(cells)} cells, should have {len(COLUMNS)}", source=path, field=f"row {number}")
        row = dict(zip(COLUMNS, cells, strict=True))
        try:
            tolerance = float(row["tolerance"] or "nan")
        except ValueError:
            problem = f"is {row['tolerance']!r}, should be a number or empty"
            raise InputError(problem, source=path, field=f"row {number}, tolerance") from None
        check_value(f"{path}, row {number}", row, tolerance)
        yield row
