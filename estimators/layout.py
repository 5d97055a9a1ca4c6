"""What studies of several kinds share: notes, the name of the participants, where the items of responses stand."""

from __future__ import annotations

import json
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.arrays import Dataset
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.schema import optional

HUMAN = "human"
"""Name of the player whose answers are the study's responses."""

ITEM_ID = optional("item_id", "item", "str", "what its owner calls the item; results bear it", unique=True, filled=True)
"""Variable of a study whose items have names."""


def response_positions(study: Dataset) -> NDArray[np.intp]:
    """Positions along ``item`` of every response's item, (response,), of any kind of study that has responses."""
    return item_positions(study, "response_item")


def item_labels(study: Dataset) -> NDArray[Any]:
    """What results call the items of a study: ``item_id`` where their owner has named them, else ``item``."""
    return study[ITEM_ID.name].values.astype(str) if ITEM_ID.name in study else study["item"].values


def item_positions(study: Dataset, variable: str) -> NDArray[np.intp]:
    """Positions along ``item`` of the labels that a variable holds (``response_item``, ``entry_item``, ...)."""
    labels, wanted = study["item"].values, study[variable].values
    order = np.argsort(labels, kind="stable")
    slot = np.minimum(np.searchsorted(labels, wanted, sorter=order), len(labels) - 1)
    positions = order[slot]
    missing = labels[positions] != wanted
    if missing.any():
        first = int(np.flatnonzero(missing)[0])
        problem = f"is {wanted[first]} at {study[variable].dims[0]} {first}; the study has no such item"
        raise InputError(problem, source=f"study {study.attrs.get('name', '(unnamed)')!r}", field=variable)
    return positions.astype(np.intp, copy=False)


def notes(study: Dataset) -> list[dict[str, Any]]:
    """What a loader counted, dropped, repaired or kept in spite of doubts."""
    entries: list[dict[str, Any]] = json.loads(study.attrs.get("notes", "[]"))
    return entries


def add_note(
    study: Dataset, text: str, *, count: int | None = None, level: Literal["info", "warning"] = "info"
) -> None:
    """Append one note to ``study.attrs["notes"]`` (JSON, so that netCDF keeps it)."""
    study.attrs["notes"] = json.dumps([*notes(study), {"level": level, "text": text, "count": count}])
