"""An export says what is in it: every column of every file, its type and its values, for people and programs."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import yaml

from shannon_game.experiments.collect import dictionary
from shannon_game.experiments.collect.export import COMMON, PAY_COLUMNS
from shannon_game.experiments.collect.games.registry import GAMES
from shannon_game.experiments.collect.tables import STATES

SURVEYS = ("study", "participant", "session", "game", "moment", "question", "value", "answered_at")
FILES = {
    **{f"answers_{game}": (*COMMON, *its.columns) for game, its in GAMES.items()},
    "surveys": SURVEYS,
    "pay": PAY_COLUMNS,
}


def test_each_column_of_each_file_is_described_and_no_other() -> None:
    table = dictionary.data_dictionary(FILES)
    assert table["meaning"].str.len().gt(0).all()
    known = yaml.safe_load((Path(dictionary.__file__).parent / "data" / "columns.yaml").read_text(encoding="utf-8"))
    used = {f"{file}.{name}" if f"{file}.{name}" in known else name for file, names in FILES.items() for name in names}
    assert used == set(known)
    assert known["state"]["values"] == list(STATES)
    assert dictionary.column("answers_cloze", "game")["values"] == list(GAMES)


def check_export(folder: Path) -> None:
    """Compare the files of an export with what they say of themselves."""
    package = json.loads((folder / "datapackage.json").read_text(encoding="utf-8"))
    described = pd.read_csv(folder / "data_dictionary.csv", keep_default_na=False)
    written = {path.name for path in folder.glob("*.csv")} - {"data_dictionary.csv"}
    assert {each["path"] for each in package["resources"]} == written
    for resource in package["resources"]:
        table = pd.read_csv(folder / resource["path"], dtype=str, keep_default_na=False)
        fields = {field["name"]: field for field in resource["schema"]["fields"]}
        assert list(table) == list(fields) == described.loc[described["file"] == resource["path"], "column"].tolist()
        for name, field in fields.items():
            cells = table.loc[table[name] != "", name]
            if field["type"] == "integer":
                assert cells.str.fullmatch(r"-?\d+").all(), name
            elif field["type"] == "boolean":
                assert cells.isin(["0", "1"]).all(), name
            elif field["type"] == "number":
                assert pd.to_numeric(cells).notna().all(), name
            assert cells.isin(field.get("constraints", {}).get("enum", cells)).all(), name
