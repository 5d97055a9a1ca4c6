"""Guesses from a plain table: what it gives, and every mistake by file, column and row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import notes
from shannon_game.experiments.studies.guesses.table import guess_table

TABLE = """\
participant,document,position,target,guess,trial,lm,lm_nats
ann,a,1,cat,dog,2,1,0.2
bo,a,1,cat,cat,1,1,0.2
ann,a,0,The,the ,1,0,3.5
ann,b,4,NA,NA,3,,
bo,b,5,null,,2,,
"""


def write(folder: Path, text: str = TABLE, name: str = "guesses.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_table(tmp_path: Path) -> None:
    path = write(tmp_path)
    study = guess_table(path=path, missing="drop")
    assert study["participant"].to_numpy().tolist() == ["ann", "bo", "ann", "ann"]
    assert study["correct"].to_numpy().tolist() == [False, True, False, True]
    assert study["n_before"].to_numpy().tolist() == [0, 0, 1, 2]
    assert study["word_token"].all()
    assert study.attrs["name"] == "guesses"
    assert ("rows left out: an empty cell (missing='drop')", 1) in [
        (each["text"], each["count"]) for each in notes(study)
    ]
    in_time = guess_table(
        path=path,
        columns={"order": "trial"},
        match="folded",
        missing="drop",
        models={"lm": {"hit": "lm", "surprisal_nats": "lm_nats"}},
    )
    assert in_time["table_row"].to_numpy().tolist() == [2, 3, 1, 4]
    assert in_time["correct"].to_numpy().tolist() == [True, True, False, True]
    assert in_time["n_before"].to_numpy().tolist() == [0, 0, 1, 2]
    np.testing.assert_array_equal(in_time["model_hit"].sel(model="lm"), [0, 1, np.nan])
    np.testing.assert_array_equal(in_time["target_surprisal_nats"].sel(model="lm"), [3.5, 0.2, np.nan])


@pytest.mark.parametrize(
    ("settings", "text", "part"),
    [
        ({}, TABLE, "guess: is empty in line 6, should be filled"),
        ({"columns": {"correct": "lm_nats"}, "missing": "drop"}, TABLE, "lm_nats: is '0.2' in line 2 .*should be 1"),
        ({"missing": "drop"}, TABLE.replace("bo,a,1,cat", "bo,a,1,cut"), "target: is 'cut' in line 3, but 'cat'"),
        ({"missing": "drop", "models": {"lm": {"hit": "hits"}}}, TABLE, "hits: is missing; .*model 'lm' needs it"),
        (
            {"missing": "drop", "models": {"lm": {"hit": "lm"}}},
            TABLE.replace("cat,cat,1,1", "cat,cat,1,0"),
            "lm: is .* in another row of the same item",
        ),
        ({}, "participant,document,position\nann,a,0\n", "one that says which guesses are right"),
    ],
)  # fmt: skip
def test_mistakes(settings: dict[str, Any], text: str, part: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=part):
        guess_table(**{"path": write(tmp_path, text), **settings})


SCORED = "participant,document,position,target,guess,correct\n"


def test_a_column_of_right_and_wrong_that_contradicts_the_guesses(tmp_path: Path) -> None:
    settings = {"columns": {"correct": "correct"}}
    few = SCORED + "a,d,0,cat,cat,1\na,d,1,sat,sit,1\na,d,2,on,on,0\na,d,3,it,at,0\nb,d,0,cat,cat,1\n"
    found = {entry["text"]: entry["count"] for entry in notes(guess_table(path=write(tmp_path, few), **settings))}
    assert found["guesses that are the target and are wrong by the table; taken as wrong"] == 1
    assert found["guesses that are not the target and are right by the table; taken as right"] == 1
    inverted = SCORED + "a,d,0,cat,cat,0\na,d,1,sat,sit,1\n"
    with pytest.raises(InputError, match=r"correct: says that 'cat' for 'cat' is wrong in line 2 \(2 of 2 rows"):
        guess_table(path=write(tmp_path, inverted), **settings)
