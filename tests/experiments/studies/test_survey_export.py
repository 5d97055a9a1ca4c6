"""Exports of Qualtrics: no header line is a participant, whichever of them are left; the questions are the contexts."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
import xarray as xr

from shannon_game.estimators.layout import notes
from shannon_game.experiments.studies.cloze.table import cloze_study, cloze_table
from shannon_game.experiments.studies.plain_table import table_of
from shannon_game.experiments.studies.survey_export import without_survey_headers

NAMES = ["StartDate", "Status", "Finished", "ResponseId", "DistributionChannel", "1_Q17", "2_Q17"]
QUESTIONS = ["Start Date", "Response Type", "Finished", "Response ID", "Distribution Channel", "The cat", "A, dog"]
IDS = [f'{{"ImportId":"{name}"}}' for name in NAMES]
ANSWERS = [
    ["2024", "IP Address", "True", "R_1", "anonymous", "sat", "barked"],
    ["2024", "IP Address", "False", "R_2", "anonymous", "ran", ""],
    ["2024", "Survey Preview", "True", "R_3", "preview", "x", "y"],
]
OLD = ["V1", "V7", "V10", "1_Q17", "2_Q17"]
OLD_QUESTIONS = ["ResponseID", "Status", "Finished", "The cat", "A, dog"]
OLD_ANSWERS = [["R_1", "0", "1", "sat", "barked"], ["R_2", "0", "0", "ran", ""], ["R_3", "1", "1", "x", "y"]]


def frame(names: list[str], *rows: list[str]) -> pd.DataFrame:
    return pd.DataFrame(list(rows), columns=names)


EXPORTS = {
    "three header rows": frame(NAMES, QUESTIONS, IDS, *ANSWERS),
    "without the ids": frame(NAMES, QUESTIONS, *ANSWERS),
    "without the questions": frame(NAMES, IDS, *ANSWERS),
    "two header rows of before 2017": frame(OLD, OLD_QUESTIONS, *OLD_ANSWERS),
}


def said(study: xr.Dataset) -> dict[str, tuple[int | None, str]]:
    return {note["text"].partition(",")[0]: (note["count"], note["level"]) for note in notes(study)}


@pytest.mark.parametrize("as_file", [True, False])
@pytest.mark.parametrize("name", EXPORTS)
def test_people_alone_are_participants(name: str, as_file: bool, tmp_path: Path) -> None:
    EXPORTS[name].to_csv(tmp_path / "export.csv", index=False)
    wide = {"items": "*_Q17"}
    study = cloze_table(path=tmp_path / "export.csv", wide=wide) if as_file else cloze_study(EXPORTS[name], wide=wide)
    assert study["participant"].to_numpy().tolist() == ["R_1", "R_1", "R_2", "R_3", "R_3"]
    assert study["item_id"].to_numpy().tolist() == ["1_Q17", "2_Q17"]
    contexts = ["", ""] if name == "without the questions" else ["The cat", "A, dog"]
    assert study["context"].to_numpy().tolist() == contexts
    found = said(study)
    assert found["rows that Qualtrics marks as preview"] == (1, "warning")
    assert found["rows of people who did not finish the survey (Finished)"] == (1, "warning")


@pytest.mark.parametrize(
    "rows",
    [
        frame(["name", "Status", "Finished"], ["ann", "done", "True"], ["bo", "done", "False"]),
        frame(["V1", "V2"], ["name", "status of the word"], ["a", "b"]),
        frame(["ResponseId", "StartDate"], ["ResponseId", "StartDate"], ["R_1", "2024"]),
        frame(["word", "count"], ['{"ImportId"', "1"], ["a", "2"]),
        frame(["word"]),
    ],
)
def test_other_tables_are_left_alone(rows: pd.DataFrame) -> None:
    table = table_of(rows.reindex(range(max(len(rows), 1)), fill_value=""), "mine", of="row")
    assert without_survey_headers(table) is table
