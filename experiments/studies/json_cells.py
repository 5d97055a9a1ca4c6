"""Cells that hold JSON, as jsPsych, lab.js and Gorilla write answers: one value is the cell, several are columns.

Columns are called as ``pandas.json_normalize`` calls them: the value of Q0 in column response is ``response.Q0``.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.studies.cells import folded
from shannon_game.experiments.studies.parsing import Note, is_number, objects, shown, some_of

_MOST_VALUES = 100
_LITERAL_CHARACTERS = 10_000
_OPEN = ("{", "[")
# what is meant as JSON, even where it is cut off
_MEANT = re.compile(r"""[{\[]\s*["']|\{.*:.*\}\Z""", re.DOTALL)


def unpacked(cells: pd.DataFrame, where: Callable[[int], str], source: object) -> tuple[pd.DataFrame, list[Note]]:
    """Cells without JSON, and what is to be noted of it; cells that should be JSON as the others are refused."""
    columns: dict[str, Any] = {}
    notes = []
    for name, column in cells.items():
        given = column.tolist() if column.dtype.kind == "O" else []
        found, bad = _found(given)
        if bad is not None:
            problem = f"is {shown(given[bad])} in {where(bad)}, which is not valid JSON; correct the cell, or empty it"
            raise InputError(problem, source=source, field=name)
        keys = list(dict.fromkeys(key for leaves in found.values() for key in leaves))
        if not found:
            columns[str(name)] = column
        elif all(len(leaves) < 2 for leaves in found.values()):
            text = f"cells of column {name} that hold JSON, read as the one value in them ({some_of(keys)})"
            notes.append(Note(text, len(found)))
            values = [next(iter(found[row].values()), "") if row in found else cell for row, cell in enumerate(given)]
            columns[str(name)] = objects(values)
        elif len(keys) > _MOST_VALUES:
            notes.append(Note(f"values in the JSON of column {name}, which is not read", len(keys), "warning"))
        else:
            text = f"cells of column {name} beside its JSON, whose values are empty there"
            plain = sum(row not in found and isinstance(cell, str) and cell != "" for row, cell in enumerate(given))
            notes += [Note(text, plain, "warning")] if plain else []
            for key in keys:
                if f"{name}.{key}" in cells:
                    problem = f"is a column, and a value in the JSON of column {name}; rename one"
                    raise InputError(problem, source=source, field=f"{name}.{key}")
                columns[f"{name}.{key}"] = objects([found.get(row, {}).get(key, "") for row in range(len(given))])
    same = list(columns) == list(cells.columns) and not notes
    return (cells if same else pd.DataFrame(columns, index=cells.index)), notes


def _found(column: list[Any]) -> tuple[dict[int, dict[str, str]], int | None]:
    """Values of the JSON by row, where a column has objects, or nothing but lists; and a row with damaged JSON."""
    stripped = {row: cell.strip() for row, cell in enumerate(column) if isinstance(cell, str)}
    marked = {row: text for row, text in stripped.items() if text[:1] in _OPEN}
    found = {row: leaves for row, text in marked.items() if (leaves := _parsed(text)) is not None}
    found |= {row: dict(_leaves(cell)) for row, cell in enumerate(column) if isinstance(cell, dict | list)}
    if not marked and not found:
        return {}, None
    n_filled = sum(map(bool, stripped.values()))
    n_filled += sum(isinstance(cell, dict | list) or is_number(cell) for cell in column)
    has_object = any(leaves and (row not in marked or marked[row][0] == "{") for row, leaves in found.items())
    meant = [row for row, text in marked.items() if row not in found and _MEANT.match(text)]
    if has_object or len(found) == n_filled:
        return found, next(iter(meant), None)
    return {}, meant[0] if 2 * len(meant) > n_filled else None


def _parsed(text: str) -> dict[str, str] | None:
    try:
        value = json.loads(text, object_pairs_hook=_once)
    except (KeyError, RecursionError):
        return None
    except ValueError:
        if len(text) > _LITERAL_CHARACTERS:
            return None
        # pandas writes objects as Python does
        try:
            value = ast.literal_eval(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
            return None
    try:
        return dict(_leaves(value)) if isinstance(value, dict | list) else None
    except RecursionError:
        return None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise KeyError("there twice")
    return dict(pairs)


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Values inside objects and lists with the path to each."""
    if isinstance(value, dict | list):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _leaves(part, f"{name}.{key}" if name else folded(f"{key}"))
    else:
        yield name, leaf_text(value)


def leaf_text(value: Any) -> Any:
    """A value of JSON as a cell of text would have it; objects and lists stay."""
    if isinstance(value, str | dict | list):
        return value
    return "" if value is None else json.dumps(value, default=str)
