"""What readers see of a declared table: at most eight columns; of a sweep, one row per level of what was swept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shannon_game.experiments.harness.questions import INTERVAL_SE, half_width
from shannon_game.experiments.harness.rows import Column, columns_in
from shannon_game.experiments.harness.tables import cell_text

if TYPE_CHECKING:
    import pandas as pd

WIDEST = 8
ALL = "all"
"""Value of a swept setting in a row that does not depend on it."""
_SPREAD, _SHORT, _EXACT = 4, 12, 1e-9
# what of an estimate stands beside it, and what is left out first where there are too many columns
_RANK = {"flag": 2, "truth": 3, "error": 4, "beside": 5}


@dataclass(frozen=True, eq=False)
class View:
    """A table as readers see it, with what is the same in every row, and what marks mean."""

    table: pd.DataFrame
    constants: str = ""
    notes: str = ""


def headline_of(columns: Sequence[Column]) -> Column | None:
    """The estimate that stands for the rest."""
    estimates = [column for column in columns if column.role == "estimate"]
    return next((column for column in estimates if column.headline), estimates[0] if estimates else None)


def axis_of(column: Column) -> str:
    """Label of an axis."""
    return f"{column.label or column.meaning}{f', {column.unit}' if column.unit else ''}"


def parts_of(columns: Sequence[Column], of: Column, role: str) -> list[Column]:
    """What there is of an estimate: its ends, its truths, its errors."""
    return [column for column in columns if column.role == role and column.of == of.name]


def keys_of(table: pd.DataFrame, columns: Sequence[Column]) -> list[Column]:
    """Keys and settings that differ between rows; the first key where none does."""
    keys = [column for column in columns if column.role in ("key", "setting")]
    return [column for column in keys if _n_levels(table, column) > 1] or keys[:1]


def _n_levels(table: pd.DataFrame, column: Column) -> int:
    return int(table[column.name].nunique(dropna=False))


def for_readers(table: pd.DataFrame, declared: Sequence[Column], interval: float = 0.9) -> View:
    """Keys that vary, estimates with intervals, truths, errors and flags; no estimate goes before what is none."""
    columns = [one for one in columns_in(table, declared) if table[one.name].map(cell_text).any()]
    keys, main = keys_of(table, columns), headline_of(columns)
    ranked = [(0.0, one) for one in keys]
    for one in columns:
        if one.role == "estimate":
            ranked.append((1 if one is main else 6 - one.headline, one))
            own = [each for role in _RANK for each in parts_of(columns, one, role)]
            ranked += [(_RANK[each.role] + 4.5 * (one is not main), each) for each in own]
    ranked += [(2, one) for one in columns if one.role == "flag" and not one.of]
    varying = [one for one in columns if one.role == "context" and _n_levels(table, one) > 1]
    ranked += [(20, one) for one in varying]
    chosen = sorted(ranked, key=lambda pair: pair[0])[: max(WIDEST, len(keys) + 1)]
    order = [one for _, one in ranked if any(one is each for _, each in chosen)]
    ordered = sorted(
        order,
        key=lambda one: (one not in keys, one is not main and one.of != getattr(main, "name", ""), one.role == "flag"),
    )
    text = table[[one.name for one in ordered]].copy()
    for one in ordered:
        if one.role in ("estimate", "beside"):
            text[one.name] = with_interval(table, columns, one, interval=interval)
    same = [
        one for one in columns if one.role in ("setting", "context", "key") and one not in keys and one not in varying
    ]
    return View(text, ", ".join(f"{one.name} {cell_text(table[one.name].iloc[0])}" for one in same))


def with_interval(
    table: pd.DataFrame, columns: Sequence[Column], one: Column, digits: int = 5, *, interval: float = 0.9
) -> list[str]:
    """Cells of an estimate with its interval, or else that of its standard error; alone where it is exact."""
    ends = [parts_of(columns, one, role)[:1] for role in ("lower", "upper")]
    error = parts_of(columns, one, "se")
    reach = half_width(table[error[0].name].astype(float), interval) if len(error) == 1 else None
    cells = []
    for row in range(len(table)):
        value = short(table[one.name].iloc[row], digits)
        if all(ends):
            low, high = (short(table[end.name].iloc[row], digits) for (end,) in ends)
            cells.append(f"{value} [{low}, {high}]" if (low or high) and not low == high == value else value)
        elif reach is not None and (half := reach.iloc[row]) > 0:
            middle = float(table[one.name].iloc[row])
            cells.append(f"{value} [{short(middle - half, digits)}, {short(middle + half, digits)}]")
        else:
            cells.append(value)
    return cells


def short(value: Any, digits: int) -> str:
    """Number to so many significant digits, never as a power of ten below a million."""
    if not isinstance(value, float | np.floating) or not np.isfinite(value):
        return cell_text(value)
    number = float(value)
    return f"{float(f'{number:.{digits}g}'):.{digits if abs(number) >= 1e6 else 15}g}"


def swept(table: pd.DataFrame, columns: Sequence[Column], settings: Sequence[str]) -> tuple[pd.DataFrame, list[Column]]:
    """Rows of all jobs of a sweep, each once, with what was swept as their first keys.

    `table` has a column ``sweep.SETTING`` for each setting. Where the rows have a column of a setting it is the key.
    """
    import pandas as pd  # noqa: PLC0415

    of_setting = {column.setting: column for column in columns if column.setting}
    keys, made = [], table.copy()
    for name in settings:
        # the name of a group of settings is its value
        column, cells = of_setting.get(name.removesuffix(".name")), made.pop(f"sweep.{name}")
        if column is None:
            number = pd.to_numeric(cells, errors="coerce")
            made.insert(0, name, number if number.notna().all() else cells)
            keys.append(Column("key", f"setting {name}", name=name, type="string", setting=name))
        else:
            keys.append(replace(column, role="key"))
    names = {column.name for column in keys}
    columns = [*keys, *(column for column in columns if column.name not in names)]
    made = made[[column.name for column in columns if column.name in made]].drop_duplicates(ignore_index=True)
    for column in keys:
        levels = made[column.name].unique()
        others = [name for name in made if name != column.name]
        size = made.groupby(others, dropna=False, sort=False)[column.name].transform("size")
        if (
            column.name not in [one.name for one in of_setting.values()]
            and len(levels) > 1
            and (size == len(levels)).any()
        ):
            made[column.name] = made[column.name].astype(object).where(size < len(levels), ALL)
            made = made.drop_duplicates(ignore_index=True)
    return made, columns


def ends_of(table: pd.DataFrame, columns: Sequence[Column], main: Column) -> tuple[NDArray[Any], NDArray[Any]]:
    """Ends of the bar of an estimate: of its interval, or else of that of its standard error."""
    value = table[main.name].to_numpy(dtype=float)
    ends = [parts_of(columns, main, role)[:1] for role in ("lower", "upper")]
    if all(ends):
        return table[ends[0][0].name].to_numpy(dtype=float), table[ends[1][0].name].to_numpy(dtype=float)
    errors = parts_of(columns, main, "se")
    width = np.nan_to_num(table[errors[0].name].to_numpy(dtype=float)) if len(errors) == 1 else 0.0
    return value - INTERVAL_SE * width, value + INTERVAL_SE * width


def spread_key(table: pd.DataFrame, columns: Sequence[Column]) -> Column | None:
    """Key whose levels can be columns: few, and the truth is the same for all of them; the last such one."""
    keys, main = keys_of(table, columns), headline_of(columns)
    if main is None or len(table) <= _SHORT:
        return None
    truths = [one.name for one in parts_of(columns, main, "truth")[:1]]
    for one in reversed(keys):
        others = [each.name for each in keys if each is not one]
        n_levels = table[one.name].nunique()
        if one.players or not 2 <= n_levels <= _SPREAD or len(others) + len(truths) + n_levels > WIDEST:
            continue
        groups = table.groupby(others, dropna=False, sort=False)
        if all(groups[name].agg(lambda values: np.ptp(values) < 1e-9).all() for name in truths):
            return one
    return None


def paper_table(table: pd.DataFrame, declared: Sequence[Column], digits: int = 3) -> View:
    """The headline alone, one key's levels beside each other, with the truth once and a mark at what is doubtful."""
    columns = columns_in(table, declared)
    one, main = spread_key(table, columns), headline_of(columns)
    if one is None or main is None or table.duplicated([each.name for each in keys_of(table, columns)]).any():
        return for_readers(table, declared)
    keys = [each for each in keys_of(table, columns) if each is not one]
    flags = [each for each in columns if each.role == "flag" and each.bad]
    marks = [""] * len(table)
    for each in flags:
        marks = [mark + each.bad.get(str(value), "") for mark, value in zip(marks, table[each.name], strict=True)]
    errors = [each.name for each in parts_of(columns, main, "error")[:1] if table[each.name].notna().any()]
    off = table[errors].fillna(0).sum(axis=1).astype(float)
    ends = [f"{mark} {by:+.2f}" if abs(by) > _EXACT else mark for mark, by in zip(marks, off, strict=True)]
    cells = [f"{text}{end}" for text, end in zip(with_interval(table, columns, main, digits), ends, strict=True)]
    truths = [each.name for each in parts_of(columns, main, "truth")[:1] if table[each.name].notna().any()]
    names, levels = [each.name for each in keys], table[one.name].unique().tolist()
    keyed = table.assign(_cell=cells).set_index([*names, one.name])["_cell"]
    wide = keyed.unstack(one.name, sort=False)  # noqa: PD010 - a key may be missing, which pivot_table leaves out
    wide = wide.reindex(columns=levels).fillna("").set_axis([f"{one.name} {level}" for level in levels], axis=1)
    known = table.groupby(names, dropna=False, sort=False)[truths].first()
    known = known.map(lambda value: short(value, digits)).set_axis(["truth" for _ in truths], axis=1)
    shown = known.join(wide).reset_index()
    same = [each for each in columns if each.role in ("setting", "context") and _n_levels(table, each) == 1]
    constants = ", ".join(f"{each.name} {cell_text(table[each.name].iloc[0])}" for each in same)
    meant = [
        f"{mark} {value}" for each in flags for value, mark in each.bad.items() if any(mark in text for text in marks)
    ]
    what = f"{main.name}{f' ({main.unit})' if main.unit else ''} [interval]"
    what = " ".join([what, *errors])
    return View(shown, constants, "; ".join([what, *(f"truth: {name}" for name in truths), *meant]))
