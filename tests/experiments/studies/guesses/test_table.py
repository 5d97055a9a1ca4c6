"""Guesses from a plain table: what it gives, and every mistake by file, column and row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import notes
from shannon_game.experiments.harness.job import load_study
from shannon_game.experiments.studies.guesses.table import guess_study, guess_table
from tests.experiments.command import config

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
    assert ("rows left out: an empty cell (missing=drop)", 1) in [
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


def test_right_and_wrong_may_be_said_in_words_and_a_guess_may_be_blank(tmp_path: Path) -> None:
    text = "participant\tdocument\tposition\tguess\tright\nann\ta\t0\tx\tyes\nann\ta\t1\t\tFALSE\n"
    study = guess_table(path=write(tmp_path, text, "guesses.tsv"), columns={"correct": "right"})
    assert study["correct"].to_numpy().tolist() == [True, False]
    assert "target_token" not in study


def test_words_by_their_space(tmp_path: Path) -> None:
    study = guess_table(path=write(tmp_path, TABLE.replace("cat,", " cat,")), missing="drop", words="spaced")
    assert study["word_token"].to_numpy().tolist() == [False, True, False]


@pytest.mark.parametrize(
    ("settings", "text", "part"),
    [
        ({}, TABLE, "guess: is empty in line 6 .1 such rows"),
        ({"columns": {"participant": "who"}}, TABLE, "who: is missing; the table has participant"),
        ({"columns": {"correct": "right"}}, TABLE, "right: is missing"),
        ({"columns": {"correct": "lm_nats"}, "missing": "drop"}, TABLE, "lm_nats: is '0.2' in line 2 .*should be 1"),
        ({"columns": {"order": "guess"}}, TABLE.replace(",null,,", ",null,x,"), "guess: is 'dog' in line 2"),
        ({"missing": "drop"}, TABLE.replace("ann,a,0", "ann,a,first"), "position: is 'first' in line 4"),
        ({"missing": "drop"}, TABLE.replace("ann,a,0", "ann,a,-1"), "position: is '-1' in line 4"),
        ({"missing": "drop"}, TABLE.replace("bo,a,1,cat", "bo,a,1,cut"), "target: is 'cut' in line 3, but 'cat'"),
        ({"missing": "drop", "models": {"lm": {"hit": "hits"}}}, TABLE, "hits: is missing; .*model 'lm' needs it"),
        ({"missing": "drop", "models": {"lm": {}}}, TABLE, "models.lm: is empty, should be {hit: COLUMN"),
        (
            {"missing": "drop", "models": {"lm": {"hit": "lm"}}},
            TABLE.replace("cat,cat,1,1", "cat,cat,1,0"),
            "lm: is .* in another row of the same item",
        ),
        ({}, "participant,document,position\nann,a,0\n", "one that says which guesses are right"),
        ({}, "participant,document,position,guess,target\n", "holds no guess"),
        ({}, "", "is empty"),
        ({"words": "spaced", "columns": {"correct": "c"}}, "participant,document,position,c\na,b,0,1\n", "no targets"),
    ],
)  # fmt: skip
def test_mistakes(settings: dict[str, Any], text: str, part: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=part):
        guess_table(**{"path": write(tmp_path, text), **settings})


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.csv: there is no such file"):
        guess_table(path=tmp_path / "none.csv")


def test_it_is_a_study_of_the_command(tmp_path: Path) -> None:
    cfg = config("study=guess_table", f"study.path={write(tmp_path)}", "study.missing=drop")
    assert load_study(cfg.study, kind="guess").sizes["response"] == 4


def test_a_data_frame_is_the_study_of_its_file(tmp_path: Path) -> None:
    path = write(tmp_path)
    settings: Any = {"columns": {"order": "trial"}, "models": {"lm": {"hit": "lm", "surprisal_nats": "lm_nats"}}}
    # "NA" and "null" are words; pandas reads the gap in `lm` as NaN, and the others as 1.0
    frame = pd.read_csv(path, keep_default_na=False, na_values={"lm": "", "lm_nats": "", "guess": ""})
    frame.index = frame.index + 7
    ours = guess_study(frame, missing="drop", name="guesses", **settings)
    theirs = guess_table(path=path, missing="drop", **settings)
    xr.testing.assert_identical(ours.drop_attrs(), theirs.drop_attrs())
    assert notes(ours) == notes(theirs)


def test_names_of_any_type_survive() -> None:
    rows = {"worker": [7, 7, 8], "text": [1.0, 2.0, 1.0], "at": [0, 0, 0], "right": [True, False, True]}
    columns = {"participant": "worker", "document": "text", "position": "at", "correct": "right"}
    study = guess_study(pd.DataFrame(rows), columns=columns)
    assert study["participant"].to_numpy().tolist() == ["7", "7", "8"]
    assert study["document"].to_numpy().tolist() == ["1", "2"]
    assert study["correct"].to_numpy().tolist() == [True, False, True]
    with pytest.raises(
        InputError, match=r"guesses, worker: is missing; did you mean 'worker2'\? the table has worker2"
    ):
        guess_study(pd.DataFrame(rows).rename(columns={"worker": "worker2"}), columns=columns)
    with pytest.raises(InputError, match=r"guesses: is a dict, should be a pandas\.DataFrame with one row a guess and"):
        guess_study(rows)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"target: is missing; .*the table has worker, text, at, right;"):
        guess_study(pd.DataFrame(rows), columns=columns | {"correct": None})


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


def test_a_wider_row_does_not_shift_the_columns(tmp_path: Path) -> None:
    shifted = "participant,document,position,correct\na,1,1,0,1\na,1,2,1,1\n"
    with pytest.raises(InputError, match="line 2: has 5 fields, the header 4"):
        guess_table(path=write(tmp_path, shifted), columns={"correct": "correct"})
