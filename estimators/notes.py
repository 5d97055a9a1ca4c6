"""What a loader has to say about a study of any kind: one list of notes, kept with the data."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["add_note", "notes"]


def notes(study: xr.Dataset) -> list[dict[str, Any]]:
    """What a loader counted, dropped, repaired or kept in spite of doubts.

    Parameters
    ----------
    study : xarray.Dataset
        A study of any kind.

    Returns
    -------
    list of dict
        Each with ``level`` ("info" or "warning"), ``text`` and ``count`` (None if there is nothing to count).
    """
    entries: list[dict[str, Any]] = json.loads(study.attrs.get("notes", "[]"))
    return entries


def add_note(
    study: xr.Dataset, text: str, *, count: int | None = None, level: Literal["info", "warning"] = "info"
) -> None:
    """Append one note to ``study.attrs["notes"]`` (JSON, so that netCDF keeps it).

    Parameters
    ----------
    study : xarray.Dataset
        Changed in place.
    text : str
        What was counted, dropped, repaired or kept.
    count : int, optional
    level : {"info", "warning"}, optional
    """
    study.attrs["notes"] = json.dumps([*notes(study), {"level": level, "text": text, "count": count}])
