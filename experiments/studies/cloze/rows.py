"""Rows of a cloze study while it is read, the arrays they become, and how a cache file keeps them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from pydantic import AfterValidator

from shannon_game.estimators.cloze.words import WORD_RULES
from shannon_game.estimators.errors import unknown_choice
from shannon_game.experiments.studies.parsing import Note, objects

__all__ = [
    "ClozeRows",
    "Parsed",
    "WordRulesName",
    "cloze_dataset",
]

_DIMS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("item", "item_id", "text_id", "word_num", "context", "target_word"), ("item",)),
    **dict.fromkeys(("response_item", "response_word", "response_count", "response_proportion"), ("response",)),
    **dict.fromkeys(("participant", "participant_group"), ("response",)),
    "word_text": ("word",),
    **dict.fromkeys(("entry_item", "entry_model"), ("entry",)),
    **dict.fromkeys(("sample_entry", "sample_word", "sample_source", "sample_count", "sample_logprob"), ("sample",)),
    **dict.fromkeys(("result_item", "result_list", "result_value"), ("result",)),
    **{name: (name,) for name in ("model", "source", "result_name")},
}
_NATS = {"units": "nats"}


def _known_rules(name: str) -> str:
    if name not in WORD_RULES:
        raise unknown_choice("word rules", name, WORD_RULES)
    return name


WordRulesName = Annotated[str, AfterValidator(_known_rules)]
"""Named word rules (:data:`shannon_game.estimators.cloze.words.WORD_RULES`)."""


@dataclass
class Parsed:
    """What a file becomes: columns by the names of the format, single published numbers, and what was noted."""

    arrays: dict[str, NDArray[Any]]
    published: dict[str, float]
    notes: list[Note]


@dataclass
class ClozeRows:
    """Columns that grow row by row; every string is stored once and named by its position."""

    words: dict[str, int] = field(default_factory=dict)
    columns: dict[str, list[Any]] = field(default_factory=dict)

    def word(self, text: str) -> int:
        """Position of a string along ``word``."""
        return self.words.setdefault(text, len(self.words))

    def column(self, name: str) -> list[Any]:
        """One column, to append to."""
        return self.columns.setdefault(name, [])

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All columns as arrays, with ``word_text``."""
        found = {name: _array(name, values) for name, values in self.columns.items() if values}
        found["word_text"] = _array("word_text", list(self.words))
        return found


def _array(name: str, values: list[Any]) -> NDArray[Any]:
    if isinstance(values[0], str):
        return objects(values)
    if name in ("sample_logprob", "result_value", "response_proportion"):
        return np.asarray(values, dtype=float)
    return np.asarray(values, dtype=np.int64 if name == "item" else np.int32)


def cloze_dataset(arrays: Mapping[str, NDArray[Any]], attrs: Mapping[str, Any]) -> xr.Dataset:
    """Put arrays by the names of the format together to a cloze study, not validated yet."""
    coordinates = ("item", "model", "source", "result_name")
    data = {
        name: (_DIMS[name], values, _NATS if name == "sample_logprob" else {})
        for name, values in arrays.items()
        if name not in coordinates
    }
    return xr.Dataset(data, coords={name: arrays[name] for name in coordinates if name in arrays}, attrs=dict(attrs))
