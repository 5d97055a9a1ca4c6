"""``study=published``: what the papers print, with the source of every number and where a run finds ours.

Four tables beside this module, and any of the user's own in the format of the first:

- ``published.csv`` and ``provo_published_lists.csv``: one row a value, the variables of
  :func:`experiments.papers.published_study.validate_published_study` as columns;
- ``provo_published.csv``: a row may hold two values, that of the authors' code and the one printed in the paper;
- ``rank_perplexity_published.csv``: every cell of the thesis's tables.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import xarray as xr

from estimators.errors import InputError
from estimators.layout import add_note
from experiments.harness.result import loader
from experiments.papers.published_study import EXPLAINED, check_value, validate_published_study
from experiments.studies.files import read_bytes
from experiments.studies.parsing import some_of
from inference.settings import Settings, UserPath

__all__ = ["COLUMNS", "PublishedSettings", "published", "read_values"]

COLUMNS = (
    *("paper", "where", "quantity", "unit", "printed", "tolerance", "expected", "reason"),
    *("part", "table", "select", "column", "source"),
)
"""Header of a table of published values."""

_HERE = Path(__file__).parent
_PROVO_COLUMNS = ("where", "quantity", "legacy", "paper", "tolerance", "expected", "reason", "note")
_RANK_COLUMNS = (*("place", "text", "context_length", "window", "model", "quantity", "printed", "decimals", "source"),)
_RANK_KEYS = _RANK_COLUMNS[:6]

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
        See :func:`experiments.papers.published_study.validate_published_study`.

    Raises
    ------
    InputError
        Names the file, the line and the column.

    Examples
    --------
    >>> from experiments import published
    >>> published().sizes["value"]
    1420
    """
    read: list[tuple[Path, Callable[[Path], Iterator[Row]]]] = [
        (_HERE / "published.csv", read_values),
        (_HERE / "provo_published.csv", _provo),
        (_HERE / "provo_published_lists.csv", read_values),
        (_HERE / "rank_perplexity_published.csv", _ranks),
        *((path, read_values) for path in settings.tables),
    ]
    rows: list[Row] = []
    counts: list[tuple[Path, int]] = []
    digest = hashlib.sha256()
    for path, reader in read:
        before = len(rows)
        rows += reader(path)
        counts.append((path, len(rows) - before))
        digest.update(path.read_bytes())
    study = xr.Dataset(
        {
            **{name: ("value", _strings(rows, name)) for name in COLUMNS if name != "tolerance"},
            "tolerance": ("value", np.array([float(row["tolerance"] or "nan") for row in rows])),
        },
        coords={"value": np.array([f"{row['paper']}/{row['where']}/{row['quantity']}" for row in rows], dtype=object)},
        attrs={"name": "published", "data_sha256": digest.hexdigest()},
    )
    for path, number in counts:
        add_note(study, f"published values in {path.name}", count=number)
    return validate_published_study(study)


def _strings(rows: list[Row], name: str) -> np.ndarray:
    found = np.empty(len(rows), dtype=object)
    found[:] = [row[name] for row in rows]
    return found


def read_values(path: Path) -> Iterator[Row]:
    """Read a table of published values, :data:`COLUMNS`."""
    for number, row in enumerate(_rows(path, COLUMNS), start=2):
        check_value(f"{path}, row {number}", row, float(row["tolerance"] or "nan"))
        yield row


def _rows(path: Path, columns: tuple[str, ...]) -> Iterator[Row]:
    content = read_bytes(path)
    try:
        lines = list(csv.reader(io.StringIO(content.decode("utf-8"), newline=""), strict=True))
    except (UnicodeError, csv.Error) as error:
        raise InputError(f"cannot be read as CSV: {error}", source=path) from None
    if not lines or tuple(lines[0]) != columns:
        found = some_of(lines[0], 20) if lines else "nothing"
        raise InputError(f"is {found}; should be {', '.join(columns)}", source=path, field="header")
    if len(lines) == 1:
        raise InputError("has a header and no row", source=path)
    for number, cells in enumerate(lines[1:], start=2):
        if len(cells) != len(columns):
            raise InputError(f"has {len(cells)} cells, should have {len(columns)}", source=path, field=f"row {number}")
        row = dict(zip(columns, cells, strict=True))
        try:
            float(row.get("tolerance") or "nan")
        except ValueError:
            raise InputError(
                f"is {row['tolerance']!r}, should be a number or empty", source=path, field=f"row {number}, tolerance"
            ) from None
        yield row


def _provo(path: Path) -> Iterator[Row]:
    for row in _rows(path, _PROVO_COLUMNS):
        quantity, note = row["quantity"], row["note"]
        ours = {"paper": "provo", "where": row["where"], "unit": "", "part": "tvd_legacy", "table": "table.csv"}
        ours |= {"select": f"quantity={quantity}", "column": "legacy"}
        stored = {"tolerance": row["tolerance"], "expected": "", "reason": ""}
        stored |= {"source": f"the authors' code on the public files; {note}"}
        printed = {
            "tolerance": "",
            "expected": row["expected"],
            "reason": row["reason"],
            "source": f"the paper; {note}",
        }
        if row["legacy"]:
            yield {**ours, **stored, "quantity": f"{quantity}, the authors' code", "printed": row["legacy"]}
        if row["paper"]:
            yield {**ours, **printed, "quantity": f"{quantity}, as printed", "printed": row["paper"]}


def _ranks(path: Path) -> Iterator[Row]:
    for row in _rows(path, _RANK_COLUMNS):
        length = f"{row['context_length']} tokens" if row["context_length"] else ""
        window = "" if row["window"] == "main" else row["window"]
        named = ", ".join(filter(None, (row["text"], length, window, row["model"])))
        quantity = row["quantity"].replace("_", " ")
        misprint = "misprint" in row["source"]
        yield {
            "paper": "rank_perplexity",
            "where": row["place"],
            "unit": "",
            "printed": row["printed"],
            "quantity": f"{named}: {quantity}" if named else quantity,
            "tolerance": "",
            "expected": EXPLAINED if misprint else "",
            "reason": f"a misprint of the thesis; {row['source']}" if misprint else "",
            "part": "ranks",
            "table": "tables/published.csv",
            "column": "ours",
            "source": row["source"],
            "select": " | ".join(f"{key}={row[key]}" for key in _RANK_KEYS),
        }
