"""What the rows of an item agree on: its target, its context, what language models give to its words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from estimators.bets.study import GENERATOR
from experiments.studies.bets.table_columns import BetLayout
from experiments.studies.parsing import shown
from experiments.studies.plain_table import Table

__all__ = ["ItemRows", "with_models"]


@dataclass(frozen=True, eq=False)
class ItemRows:
    """Rows of a table that are read, and the item of each.

    Attributes
    ----------
    table : Table
    rows : ndarray of int, shape (row,)
        Rows of the table.
    item : ndarray of int, shape (row,)
        From 0, in the order of the table.
    """

    table: Table
    rows: NDArray[np.intp]
    item: NDArray[np.intp]

    def text(self, column: str) -> NDArray[np.object_]:
        """Text of a column by item, (item,)."""
        values = self.table.texts(column)[self.rows]
        of_item = values[np.unique(self.item, return_index=True)[1]]
        other = values != of_item[self.item]
        if other.any():
            row = int(np.flatnonzero(other)[0])
            here, there = shown(values[row]), shown(of_item[self.item[row]])
            problem = f"is {here} in {self.table.where(self.rows[row])}, but {there} in another row of its item"
            raise self.table.error(problem, column)
        found: NDArray[np.object_] = of_item
        return found

    def logprob(self, column: str) -> NDArray[np.float64]:
        """Natural logarithms of probabilities by item, (item,); NaN where the cells are empty."""
        cells = logprobs(self.table, column, self.rows)
        values = np.full(int(self.item.max()) + 1, np.nan)
        values[self.item] = cells
        other = ~((values[self.item] == cells) | (np.isnan(values[self.item]) & np.isnan(cells)))
        if other.any():
            where = self.table.where(self.rows[int(np.flatnonzero(other)[0])])
            raise self.table.error(f"differs between rows of one item, in {where}", column)
        return values


def with_models(study: xr.Dataset, of: ItemRows, is_bet: NDArray[np.intp], settings: BetLayout) -> xr.Dataset:
    """Add the language models that scored the words."""
    if not settings.models:
        return study
    for model, its in settings.models.items():
        for column in (its.target, its.word):
            of.table.check_column(column, column, hint=f"model {model!r} needs it")
    target = np.stack([of.logprob(its.target) for its in settings.models.values()])
    word = np.stack([logprobs(of.table, its.word, of.rows[is_bet]) for its in settings.models.values()])
    names = list(settings.models)
    wider = study.assign(
        target_logprob=(("model", "item"), target), bet_logprob=(("model", "bet"), word)
    ).assign_coords(model=np.array(names, dtype=object))
    generator = settings.generator or (names[0] if len(names) == 1 else None)
    return wider if generator is None else wider.assign_attrs({GENERATOR: generator})


def logprobs(table: Table, column: str, rows: NDArray[np.intp]) -> NDArray[np.float64]:
    """Natural logarithms of probabilities, NaN where the cell is empty."""
    found = table.numbers(column, rows=rows, empty=True)
    bad = found > 0
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        cell, where = shown(table.texts(column)[rows[at]]), table.where(rows[at])
        raise table.error(f"is {cell} in {where} ({int(bad.sum())} such rows), should be ln p, at most 0", column)
    return found
