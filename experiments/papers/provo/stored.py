"""The result lists that the authors of "Predict the Next Word" stored, and the order of their contexts."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from shannon_game.estimators.cloze.distributions import WordCounts

Floats = NDArray[np.float64]
Items = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class StoredLists:
    """Stored lists of a study by name, without the last context, as in the files."""

    study: xr.Dataset

    @property
    def names(self) -> list[str]:
        """Names of the lists; none where the study is not of the public repository."""
        return self.study["result_name"].to_numpy().tolist() if "result_name" in self.study.dims else []

    def items(self, name: str) -> Items:
        """Positions of a list's contexts."""
        return np.asarray(self.study["result_item"].to_numpy()[self._rows(name)], dtype=np.intp)

    def values(self, name: str) -> Floats:
        """Values of a list."""
        return np.asarray(self.study["result_value"].to_numpy()[self._rows(name)])

    def _rows(self, name: str) -> NDArray[np.bool_]:
        rows: NDArray[np.bool_] = self.study["result_list"].to_numpy() == self.names.index(name)
        return rows


def single_numbers(study: xr.Dataset) -> dict[str, float]:
    """Single numbers that the authors stored, by name."""
    found: dict[str, float] = json.loads(study.attrs.get("published", "{}"))
    return found


def in_order_of(wanted: Items, values: Floats, items: Items) -> Floats:
    """Values of some items in the order of a list; NaN where the samples are not public.

    A context that is there twice (passage 3 of GPT-2) has two entries, and the list both.
    """
    found: dict[int, list[float]] = {}
    for item, value in zip(items.tolist(), values.tolist(), strict=True):
        found.setdefault(item, []).append(value)
    own = (found.get(item, [np.nan]) for item in wanted.tolist())
    return np.array([mine.pop(0) if len(mine) > 1 else mine[0] for mine in own])


def without_word(counts: WordCounts, word: int) -> WordCounts:
    """Counts without one word."""
    kept = counts.word != word
    return WordCounts(counts.context[kept], counts.word[kept], counts.count[kept], counts.n_contexts)
