"""What the explorer of a study shows: its items, and the tables behind each of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from shannon_game.experiments.harness.figures import player_label

if TYPE_CHECKING:
    from shannon_game.experiments.harness.result import ExperimentResult

BETTER = "better"
"""Column of the items that says who did best."""

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
    if result is not None:
        for of, quantity, items, quantiles in _summaries(result, set(names)):
            for name, values in zip(items, quantiles.T.tolist(), strict=True):
                if not np.isnan(values[0]):
                    rows[name].append([of, quantity, *values])
    columns = ("of", "quantity", "median", "5%", "95%")
    return [[ItemTable("Posterior", columns, rows[name])] if rows[name] else [] for name in names]


def _summaries(result: ExperimentResult, known: set[str]) -> list[tuple[str, str, list[str], NDArray[np.float64]]]:
    """Of what, which quantity, of which items, and its quantiles (median, 5%, 95%) by item."""
    found = []
    for name, idata in result.posteriors.items():
        from shannon_game.inference.posterior.arviz_adapter import group  # noqa: PLC0415 - only a Bayesian result has any

        posterior = group(idata, "posterior")
        for variable, draws in posterior.data_vars.items():
            dims = [dim for dim in draws.dims if dim not in ("chain", "draw")]
            if len(dims) != 1 or dims[0] not in posterior.coords or draws.dtype.kind not in "fiu":
                continue
            items = [str(label) for label in posterior[dims[0]].to_numpy().tolist()]
            if known.issuperset(items):
                flat = draws.transpose("chain", "draw", dims[0]).to_numpy().reshape(-1, len(items))
                found.append((name, str(variable), items, np.quantile(flat, [0.5, 0.05, 0.95], axis=0)))
    if "item_gap_median_nats" in result.dataset:
        # human_loss: one median an estimate and item
        medians = result.dataset["item_gap_median_nats"]
        items = [str(label) for label in result.dataset["item"].to_numpy().tolist()]
        named = ("what",) if "what" in medians.coords else ("player", "rounding")
        parts = [medians[name].to_numpy().astype(str) for name in named if name in medians.coords]
        for row, values in enumerate(medians.transpose(..., "item").to_numpy()):
            of = ", rounding ".join(str(part[row]) for part in parts) or str(row)
            if known.issuperset(items):
                gap = np.array([values, np.full(len(items), np.nan), np.full(len(items), np.nan)])
                found.append((of, "loss minus the generator's (nats)", items, gap))
    return found
