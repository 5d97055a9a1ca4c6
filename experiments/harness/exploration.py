"""What the explorer of a study shows: its items, and the tables behind each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from shannon_game.experiments.harness.figures import player_label

if TYPE_CHECKING:
    import xarray as xr

    from shannon_game.experiments.harness.result import ExperimentResult

BETTER = "better"
"""Column of the items that says who did best."""

_QUANTILES = [0.5, 0.05, 0.95]
Cell = str | float | int | bool | None


@dataclass(frozen=True)
class ItemTable:
    """One table about one item, such as what people answered."""

    heading: str
    columns: tuple[str, ...]
    rows: list[list[Cell]]


@dataclass(frozen=True, eq=False)
class Exploration:
    """Items of one study as a reader sees them."""

    kind: str
    """Of the study."""
    items: pd.DataFrame
    """One row per item: ``item`` is its name; ``context``, ``target`` and ``better`` are texts where they are."""
    tables: Sequence[Sequence[ItemTable]]
    """Of every row of `items`, in the same order."""
    labels: Mapping[str, str]
    """Column -> what it is, with its unit."""
    shown: tuple[str, ...]
    """Columns that stand in the list at first; the others can be chosen."""
    axes: tuple[str, str]
    """Columns of the overview at first: across and up."""
    first: tuple[str, bool]
    """Column by which the list is sorted at first, and whether the highest stands first."""
    answered: str = ""
    """Column with the number of answers, where items without any are left out at first."""
    about: str = ""
    """What ``better`` compares, in a sentence."""
    players: tuple[str, ...] = ()
    """Who is compared; their colours are those of the figures."""


def item_table(heading: str, columns: Mapping[str, ArrayLike]) -> ItemTable:
    """Table of one item, from its columns."""
    values = [np.asarray(column).tolist() for column in columns.values()]
    return ItemTable(heading, tuple(columns), [list(row) for row in zip(*values, strict=True)])


def fill_labels(columns: Sequence[str], known: Mapping[str, str]) -> dict[str, str]:
    """Label every column; a name that ends in ``_`` stands for one column a player."""
    found = {}
    for column in columns:
        prefix = next((name for name in known if name.endswith("_") and column.startswith(name)), None)
        if column in known:
            found[column] = known[column]
        elif prefix is not None:
            found[column] = known[prefix].format(player_label(column.removeprefix(prefix)))
        else:
            found[column] = column.replace("_", " ")
    return found


def best_of(values: Mapping[str, ArrayLike], *, highest: bool = False) -> NDArray[Any]:
    """Name the player with the best value in every row; ``tie`` where several have it, "" where nobody has any."""
    if len(values) < 2:
        return np.full(np.shape(next(iter(values.values()), ())), "", dtype=object)
    table = np.array([np.asarray(column, dtype=float) for column in values.values()])
    table = -table if highest else table
    known = ~np.isnan(table)
    lowest = np.where(known, table, np.inf).min(axis=0)
    at_best = known & (table == lowest)
    names = np.array([player_label(name) for name in values], dtype=object)
    found: NDArray[Any] = names[at_best.argmax(axis=0)]
    return np.where(known.sum(axis=0) < 2, "", np.where(at_best.sum(axis=0) > 1, "tie", found))


def items_of(
    result: ExperimentResult | None, n_items: int, column: str, make: Callable[[], pd.DataFrame]
) -> pd.DataFrame:
    """Take the table of items that a run wrote, or make one where it wrote none of this study."""
    found = None if result is None else result.tables.get("items")
    usable = found is not None and column in found and len(found) == n_items
    return found.copy() if found is not None and usable else make()


def posterior_tables(result: ExperimentResult | None, labels: ArrayLike) -> list[list[ItemTable]]:
    """Medians and 90% intervals of every posterior that has draws by item, and results of the run that have items."""
    names = [str(label) for label in np.asarray(labels).tolist()]
    rows: dict[str, list[list[Cell]]] = {name: [] for name in names}
    for of, quantity, values in [] if result is None else _summaries(result):
        items = [str(label) for label in values[values.dims[0]].to_numpy().tolist()]
        if rows.keys() >= set(items):
            for name, numbers in zip(items, values.to_numpy().tolist(), strict=True):
                if not np.isnan(numbers[0]):
                    rows[name].append([of, quantity, *numbers])
    columns = ("of", "quantity", "median", "5%", "95%")
    return [[ItemTable("Posterior", columns, rows[name])] if rows[name] else [] for name in names]


def _summaries(result: ExperimentResult) -> Iterator[tuple[str, str, xr.DataArray]]:
    """Of what, which quantity, and its quantiles (median, 5%, 95%) by what may be the items."""
    for name, idata in result.posteriors.items():
        from shannon_game.inference.posterior.arviz_adapter import group  # noqa: PLC0415 - only a Bayesian result has any

        for variable, draws in group(idata, "posterior").data_vars.items():
            by_item = draws.ndim == 3 and {"chain", "draw"} < set(draws.dims) <= set(draws.coords)
            if by_item and draws.dtype.kind in "fiu":
                yield name, str(variable), draws.quantile(_QUANTILES, ("chain", "draw")).transpose(..., "quantile")
    if "item_gap_median_nats" in result.dataset:
        # human_loss: one median an estimate and item
        medians = result.dataset["item_gap_median_nats"]
        named = ("what",) if "what" in medians.coords else ("player", "rounding")
        parts = [medians[name].to_numpy().astype(str) for name in named if name in medians.coords]
        for row, values in enumerate(medians.transpose(..., "item")):
            of = ", rounding ".join(str(part[row]) for part in parts) or str(row)
            alone = values.expand_dims(quantile=[0.5]).reindex(quantile=_QUANTILES)
            yield of, "loss minus the generator's (nats)", alone.transpose(..., "quantile")
