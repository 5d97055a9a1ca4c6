"""Guesses from one plain table: other studies in which people say what comes next and are right or wrong.

The settings and their defaults are in ``conf/study/guess_table.yaml``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from estimators.documents.tokens import is_word_token
from estimators.errors import InputError, unknown_choice
from estimators.guesses.study import prior_guesses, repeated_guesses, validate_guess_study
from estimators.notes import add_note
from experiments.studies.loader_settings import loader_settings
from experiments.studies.plain_table import numbers, read_table

__all__ = ["DEFAULTS", "load"]

_COLUMNS = ("participant", "document", "position", "target", "guess", "correct", "order")
_NEEDED = ("participant", "document", "position")
_MODEL_COLUMNS = ("hit", "surprisal_nats")

DEFAULTS: Mapping[str, Any] = {
    "name": "guess_table",
    "path": None,
    "columns": {name: None if name in {"correct", "order"} else name for name in _COLUMNS},
    "models": {},
    "match": "exact",
    "words": "all",
    "missing": "error",
}
"""Every setting with the value it has when it is not given."""

_SOURCE = "study=guess_table"
_CHOICES = {"match": ("exact", "folded"), "words": ("all", "spaced"), "missing": ("error", "drop")}
_TRUE = ("1", "true", "yes", "1.0")
_FALSE = ("0", "false", "no", "0.0")


def load(config: Mapping[str, Any]) -> xr.Dataset:
    """Load a table of guesses as a guess study.

    Parameters
    ----------
    config : mapping
        Settings, see ``conf/study/guess_table.yaml``; one that is absent has its default (:data:`DEFAULTS`).

    Returns
    -------
    xarray.Dataset
        Passes :func:`estimators.guesses.study.validate_guess_study`; ``table_row`` (response) is the row's number in
        the table, from 1.

    Raises
    ------
    InputError
        For an unknown setting, a table that cannot be read, a missing column, or a bad cell; names file, column, row.
    """
    given = _settings(config)
    path = Path(given["path"]).expanduser()
    table, digest = read_table(path, of="guess")
    columns = _present(given, table, path)
    used = [name for name in _COLUMNS if name in columns and name != "order"]
    cells = table[[columns[name] for name in used]].set_axis(used, axis=1)
    empty = (cells == "").any(axis=1).to_numpy()
    # a guess left blank is an answer, and a wrong one, where the column of right and wrong says so
    if "guess" in used and "correct" in used:
        empty = (cells.drop(columns="guess") == "").any(axis=1).to_numpy()
    if empty.any() and given["missing"] == "error":
        row = int(np.flatnonzero(empty)[0])
        name = next(name for name in used if cells[name].iloc[row] == "")
        raise InputError(
            f"is empty in row {row + 1} ({int(empty.sum())} such rows); fill it, or study.missing=drop leaves such "
            "rows out",
            source=path,
            field=columns[name],
        )
    if empty.all():
        raise InputError("holds no guess", source=path)
    rows = np.flatnonzero(~empty)
    order = _order(table, columns, path)[rows]
    by_time = np.argsort(order, kind="stable")
    # counted over all rows, those left out included
    everyone = table[columns["participant"]].to_numpy(dtype=str)
    whole = np.argsort(_order(table, columns, path), kind="stable")
    before = np.empty(len(table), dtype=np.int64)
    before[whole] = prior_guesses(everyone[whole])
    taken = rows[by_time]
    study = _study(cells.iloc[taken].reset_index(drop=True), taken, before, given, columns=columns, path=path)
    study = _with_models(study, table.iloc[taken], given, path).assign_attrs(data_sha256=digest)
    add_note(study, "rows in the table", count=len(table))
    if empty.any():
        add_note(study, "rows left out: an empty cell (missing=drop)", count=int(empty.sum()), level="warning")
    again = int(repeated_guesses(study).sum())
    if again:
        add_note(study, "guesses at a place at which the participant had guessed before; kept", count=again)
    return validate_guess_study(study)


def _settings(config: Mapping[str, Any]) -> dict[str, Any]:
    given = loader_settings(config, DEFAULTS, source=_SOURCE, choices=_CHOICES)
    if not isinstance(given["path"], str | Path) or not str(given["path"]):
        raise InputError(f"is {given['path']!r}, should be the path of a table", source=_SOURCE, field="path")
    for key in ("columns", "models"):
        if not isinstance(given[key], Mapping):
            raise InputError(f"is {given[key]!r}, should be a mapping", source=_SOURCE, field=key)
    for name in given["columns"]:
        if name not in _COLUMNS:
            raise unknown_choice("column", name, _COLUMNS, source=_SOURCE)
    given["columns"] = {**dict(DEFAULTS["columns"]), **given["columns"]}
    for model, its in given["models"].items():
        if not isinstance(its, Mapping) or not its or not set(its) <= set(_MODEL_COLUMNS):
            right = "should be {hit: COLUMN, surprisal_nats: COLUMN}, or one of the two"
            raise InputError(f"is {its!r}, {right}", source=_SOURCE, field=f"models.{model}")
    return given


def _present(given: Mapping[str, Any], table: pd.DataFrame, path: Path) -> dict[str, str]:
    """Column of the table for every field that it has."""
    found = {}
    for name, column in given["columns"].items():
        if column in table.columns:
            found[name] = str(column)
        elif name in _NEEDED or (column is not None and column != DEFAULTS["columns"][name]):
            raise InputError(
                f"is missing; the table has {', '.join(map(str, table.columns))}; study.columns.{name}=NAME says "
                "which one it is",
                source=path,
                field=column,
            )
    if "correct" not in found and not {"target", "guess"} <= set(found):
        raise InputError(
            "says nowhere which guesses are right: it needs a column `correct`, or both `target` and `guess` "
            "(study.columns)",
            source=path,
        )
    return found


def _order(table: pd.DataFrame, columns: Mapping[str, str], path: Path) -> NDArray[np.float64]:
    if "order" not in columns:
        return np.arange(len(table), dtype=float)
    return numbers(table[columns["order"]], path, columns["order"])


def _study(
    cells: pd.DataFrame,
    taken: NDArray[np.intp],
    before: NDArray[np.int64],
    given: Mapping[str, Any],
    *,
    columns: Mapping[str, str],
    path: Path,
) -> xr.Dataset:
    position = numbers(cells["position"], path, columns["position"])
    if (position != np.rint(position)).any() or (position < 0).any():
        row = int(np.flatnonzero((position != np.rint(position)) | (position < 0))[0])
        raise InputError(
            f"is {position[row]:g} in row {taken[row] + 1}, should be a whole number of at least 0",
            source=path,
            field=columns["position"],
        )
    place = pd.DataFrame({"document": cells["document"], "position": position.astype(np.int64)})
    response_item, items = _items(place)
    n_items = len(items)
    first = np.full(n_items, len(cells))
    np.minimum.at(first, response_item, np.arange(len(cells)))
    variables: dict[str, Any] = {
        "item_document": ("item", items["document"].to_numpy(dtype=object)),
        "item_position": ("item", items["position"].to_numpy(dtype=np.int64)),
        "word_token": ("item", np.ones(n_items, dtype=bool)),
        "participant": ("response", cells["participant"].to_numpy(dtype=object)),
        "response_item": ("response", response_item),
        "correct": ("response", _correct(cells, taken, given, columns, path)),
        "n_before": ("response", before[taken]),
        "table_row": ("response", taken + 1),
    }
    if "target" in cells:
        target = cells["target"].to_numpy(dtype=object)
        two = target != target[first][response_item]
        if two.any():
            row = int(np.flatnonzero(two)[0])
            raise InputError(
                f"is {target[row]!r} in row {taken[row] + 1}, but {target[first][response_item][row]!r} in another row "
                f"of document {cells['document'].iloc[row]!r}, position {position[row]:g}",
                source=path,
                field=columns["target"],
            )
        variables["target_token"] = ("item", target[first])
    if given["words"] == "spaced":
        if "target" not in cells:
            raise InputError("is 'spaced', but the table has no targets", source=_SOURCE, field="words")
        words = [is_word_token(token) for token in variables["target_token"][1].tolist()]
        variables["word_token"] = ("item", np.array(words, dtype=bool))
    if "guess" in cells:
        variables["guess"] = ("response", cells["guess"].to_numpy(dtype=object))
    return xr.Dataset(
        variables,
        coords={
            "document": np.unique(items["document"].to_numpy(dtype=str)).astype(object),
            "item": np.arange(n_items),
        },
        attrs={"name": path.stem, "tokens": "all"},
    )


def _items(place: pd.DataFrame) -> tuple[NDArray[np.int64], pd.DataFrame]:
    items = place.drop_duplicates().sort_values(["document", "position"]).reset_index(drop=True)
    numbered = place.merge(items.assign(item=np.arange(len(items))), on=["document", "position"], how="left")
    return numbered["item"].to_numpy(dtype=np.int64), items


def _correct(
    cells: pd.DataFrame, taken: NDArray[np.intp], given: Mapping[str, Any], columns: Mapping[str, str], path: Path
) -> NDArray[np.bool_]:
    if "correct" in cells:
        said = cells["correct"].str.strip().str.lower()
        bad = ~said.isin([*_TRUE, *_FALSE]).to_numpy()
        if bad.any():
            row = int(np.flatnonzero(bad)[0])
            right = "should be 1 or 0, true or false, yes or no"
            raise InputError(
                f"is {cells['correct'].iloc[row]!r} in row {taken[row] + 1}, {right}",
                source=path,
                field=columns["correct"],
            )
        return said.isin(_TRUE).to_numpy(dtype=bool)
    guess, target = cells["guess"], cells["target"]
    if given["match"] == "folded":
        guess, target = guess.str.strip().str.casefold(), target.str.strip().str.casefold()
    return (guess == target).to_numpy(dtype=bool)


def _with_models(study: xr.Dataset, table: pd.DataFrame, given: Mapping[str, Any], path: Path) -> xr.Dataset:
    """Add the language models of the table; a model says one thing about an item, whoever guessed there."""
    if not given["models"]:
        return study
    item = study["response_item"].to_numpy()
    n_items = study.sizes["item"]
    named: dict[str, list[NDArray[np.float64]]] = {"hit": [], "surprisal_nats": []}
    for model, its in given["models"].items():
        for kind, found in named.items():
            values = np.full(n_items, np.nan)
            if kind in its:
                column = its[kind]
                if column not in table.columns:
                    raise InputError(f"is missing; model {model!r} needs it", source=path, field=column)
                cells = numbers(table[column], path, column, empty=True)
                values[item] = cells
                other = ~((values[item] == cells) | (np.isnan(values[item]) & np.isnan(cells)))
                if other.any():
                    row = int(np.flatnonzero(other)[0])
                    place = study.isel(item=int(item[row]))
                    raise InputError(
                        f"differs between rows of one item (document {place['item_document'].item()!r}, "
                        f"position {place['item_position'].item()})",
                        source=path,
                        field=column,
                    )
            found.append(values)
    return study.assign(
        model_hit=(("model", "item"), np.stack(named["hit"])),
        target_surprisal_nats=(("model", "item"), np.stack(named["surprisal_nats"])),
    ).assign_coords(model=np.array(list(map(str, given["models"])), dtype=object))
