"""What the columns of an export are, for people and for programs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from shannon_game.experiments.collect.games.registry import GAMES

_ANY_GAME = ["GAME"]
_MEANINGS: Mapping[str, Mapping[str, Any]] = yaml.safe_load(
    (Path(__file__).parent / "data" / "columns.yaml").read_text(encoding="utf-8")
)


def column(file: str, name: str) -> dict[str, Any]:
    """Meaning, type, unit and values of one column of a file."""
    own = {key: told for game in GAMES.values() for key, told in game.texts().get("columns", {}).items()}
    known = {**own, **_MEANINGS}
    found = {"type": "string", **known.get(f"{file}.{name}", known[name])}
    return found | ({"values": list(GAMES)} if found.get("values") == _ANY_GAME else {})


def data_dictionary(tables: Mapping[str, Iterable[str]]) -> pd.DataFrame:
    """Make a row per column of each table (file's name without its ending -> its columns)."""
    rows = [
        {"file": f"{file}.csv", "column": name, **column(file, name)}
        for file, names in tables.items()
        for name in names
    ]
    table = pd.DataFrame(rows, columns=["file", "column", "type", "unit", "values", "meaning"])
    return table.assign(
        values=table["values"].map(lambda values: ", ".join(values) if isinstance(values, list) else "")
    )


def data_package(name: str, tables: Mapping[str, Iterable[str]]) -> dict[str, Any]:
    """Describe the tables as a data package of Frictionless (https://specs.frictionlessdata.io)."""
    return {"title": name, "resources": [_resource(file, names) for file, names in tables.items()]}


def _resource(file: str, names: Iterable[str]) -> dict[str, Any]:
    return {
        "name": file,
        "path": f"{file}.csv",
        "format": "csv",
        "schema": {"fields": [_field(file, one) for one in names]},
    }


def _field(file: str, name: str) -> dict[str, Any]:
    known = column(file, name)
    found = {"name": name, "type": known["type"], "description": known["meaning"]}
    if "unit" in known:
        found["unit"] = known["unit"]
    if "values" in known:
        found["constraints"] = {"enum": known["values"]}
    return found | ({"trueValues": ["1"], "falseValues": ["0"]} if known["type"] == "boolean" else {})
