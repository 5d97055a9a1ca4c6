"""Any cloze table: nothing that people say is mangled, and every mistake says where it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from shannon_game import cloze_study, cloze_table
from shannon_game.estimators.cloze.study_words import study_words
from shannon_game.estimators.cloze.words import WORD_RULES
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import notes

TRIALS = {"context": "sentence", "response": "answer", "participant": "who", "target": "word"}
COUNTS = {"context_id": "id", "context": "text", "response": "resp", "count": "n"}
SHARES = {"context_id": "id", "response": "resp", "proportion": "p"}


def written(tmp_path: Path, text: str, name: str = "table.csv", encoding: str = "utf-8") -> Path:
    path = tmp_path / name
    path.write_bytes(text.encode(encoding))
    return path


def answers(study: xr.Dataset) -> list[str]:
    return study["word_text"].to_numpy()[study["response_word"].to_numpy()].tolist()


def texts(study: xr.Dataset) -> dict[str, int | None]:
    return {entry["text"]: entry["count"] for entry in notes(study)}


def test_trials(tmp_path: Path) -> None:
    """Missing-looking words, quotes, separators and line breaks inside fields, blank answers."""
    table = (
        "who,sentence,answer,word\r\n"
        'p1,"He said, ""wait"" and",None,left\r\n'
        'p2,"He said, ""wait"" and",NA,left\r\n'
        'p3,"He said, ""wait"" and",TRUE,left\r\n'
        'p4,"He said, ""wait"" and",nan,left\r\n'
        'p5,"He said, ""wait"" and",1.0,left\r\n'
        'p6,"He said, ""wait"" and",,left\r\n'
        'p1,"two\nlines","don\u2019t",\r\n'
        'p1,"two\nlines",\u00e9t\u00e9,\r\n'
        "\r\n"
    )
    study = cloze_table(path=written(tmp_path, table), columns=TRIALS)
    assert answers(study) == ["None", "NA", "TRUE", "nan", "1.0", "", "don\u2019t", "\u00e9t\u00e9"]
    assert study["context"].to_numpy().tolist() == ['He said, "wait" and', "two\nlines"]
    assert study["target_word"].to_numpy().tolist() == ["left", ""]
    assert study["participant"].to_numpy().tolist()[:2] == ["p1", "p2"]
    found = texts(study)
    assert any(text.startswith("blank answers") and count == 1 for text, count in found.items())
    assert any(text.startswith("further answers of a participant") and count == 1 for text, count in found.items())
    rules = WORD_RULES["clean"]
    words = study_words(study, human=rules, model=rules, corpus=rules)
    assert words.human is not None
    assert words.human.totals.tolist() == [5, 2]
    assert words.human_missing == {"blank": 1.0}


def test_counts_and_contexts_with_the_same_text(tmp_path: Path) -> None:
    table = "id;text;resp;n\n7;The cat;sat;12\n7;The cat;ran;0\n8;The cat;sat;3.0\n"
    study = cloze_table(path=written(tmp_path, table), columns=COUNTS)
    assert study.sizes["item"] == 2
    assert study["response_count"].to_numpy().tolist() == [12, 0, 3]
    assert any("same text" in text and count == 2 for text, count in texts(study).items())


@pytest.mark.parametrize(
    ("name", "encoding", "separator"),
    [("t.tsv", "utf-8", "\t"), ("t.csv", "utf-8-sig", ","), ("t.csv", "utf-16", ";"), ("t.txt", "cp1252", "|")],
)
def test_separators_and_encodings_are_found(name: str, encoding: str, separator: str, tmp_path: Path) -> None:
    table = "id,text,resp,n\n1,Un deux,\u00e9t\u00e9,4\n".replace(",", separator)
    study = cloze_table(path=written(tmp_path, table, name, encoding), columns=COUNTS)
    assert answers(study) == ["\u00e9t\u00e9"]
    assert any("Windows-1252" in text for text in texts(study)) == (encoding == "cp1252")


def test_rounded_proportions_without_counts(tmp_path: Path) -> None:
    table = "id,resp,p\na,the,.33\na,a,0.33\na,my,33%\nb,None,0.6\nb,dog,0.2\n"
    path = written(tmp_path, table)
    study = cloze_table(path=path, columns=SHARES)
    assert "response_count" not in study
    np.testing.assert_allclose(study["response_proportion"].to_numpy(), [0.33, 0.33, 0.33, 0.6, 0.2])
    (text,) = [text for text in texts(study) if "do not sum to 1" in text]
    assert "'b' sums to 0.8" in text
    rules = WORD_RULES["clean"]
    words = study_words(study, human=rules, model=rules, corpus=rules)
    np.testing.assert_allclose(words.human_distributions.mass, 1)
    with pytest.raises(InputError, match=r"give study.n_answers=N"):
        words.answers()
    with pytest.raises(InputError, match="the proportions of 1 contexts do not sum to 1"):
        cloze_table(path=path, columns=SHARES, proportions="refuse")
    counted = cloze_table(path=path, columns=SHARES, n_answers=40)
    assert counted["response_count"].to_numpy().tolist() == [13, 13, 13, 24, 8]


def test_models_beside_people(tmp_path: Path) -> None:
    table = "id,text,resp,n,by\n1,Hi,there,3,\n1,Hi,you,9,gpt\n1,Hi,all,1,gpt\n"
    study = cloze_table(path=written(tmp_path, table), columns={**COUNTS, "model": "by"})
    assert study["model"].to_numpy().tolist() == ["gpt"]
    assert study["sample_count"].to_numpy().tolist() == [9, 1]


def test_parquet(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"id": [1, 1], "text": ["Hi", "Hi"], "resp": ["NA", None], "n": [3, 1]}), path)
    study = cloze_table(path=path, columns=COUNTS)
    assert answers(study) == ["NA", ""]
    pq.write_table(pa.table({"id": [1], "text": ["Hi"], "resp": [True], "n": [3]}), path)
    with pytest.raises(InputError, match=r"is True in row 1; answers have to be strings"):
        cloze_table(path=path, columns=COUNTS)
    path.write_bytes(b"PAR1 no")
    with pytest.raises(InputError, match="is no parquet file"):
        cloze_table(path=path, columns=COUNTS)


def test_missing_codes_and_incomplete_rows(tmp_path: Path) -> None:
    table = "id,text,resp,n\n1,Hi,there,3\n1,Hi,-99,2\n,Hi,you,1\n1,Hi,all,\n"
    path = written(tmp_path, table)
    study = cloze_table(path=path, columns=COUNTS, missing=["-99"], drop_incomplete=True)
    assert answers(study) == ["there", ""]
    assert any("left out" in text and count == 2 for text, count in texts(study).items())


@pytest.mark.parametrize(
    ("table", "settings", "message"),
    [
        ("", {}, "is empty"),
        ("id,text,resp\n1,Hi,a\n", {}, "n: is missing; the table has id, text, resp; study.columns.count=NAME"),
        ("id,text,resp,n\n", {}, "holds no answer"),
        ("id,text,resp,n,n\n1,Hi,a,1,1\n", {}, "n: is the name of more than one column"),
        ("id,text,resp,n\n1,Hi,a,b,1\n", {}, "line 2: has 5 fields, the header 4"),
        ('id,text,resp,n\n1,"Hi"s,a,1\n', {}, "line 2: .*a quotation mark inside a quoted field"),
        ("id,text,resp,n\n1,Hi,a,1.5\n", {}, "n: is '1.5' in line 2, should be a whole number"),
        ("id,text,resp,n\n1,Hi,a,-1\n", {}, "is '-1' in line 2, should be a whole number"),
        ("id,text,resp,n\n1,Hi,a,nan\n", {}, "is 'nan' in line 2, should be a number"),
        ("id,text,resp,n\n1,Hi,a,\n", {}, "line 2: has no count; study.drop_incomplete=true"),
        ("id,text,resp,n\n,Hi,a,1\n", {}, "line 2: does not say which context"),
        (
            "id,text,resp,n\n1,Hi,a,1\n1,Ho,a,1\n",
            {},
            "text: line 3: is 'Ho', but an earlier row of the same context has 'Hi'",
        ),
        ("id,text,resp,n\n1,Hi,a,0\n", {}, "has no answer"),
        ("id,resp,p\n1,a,30\n", {"columns": SHARES}, "study.percent=true reads percentages"),
        ("id,resp,p\n1,a,x\n", {"columns": SHARES}, "is 'x' in line 2, should be a number"),
        (
            "id,text,resp,n\n1,Hi,a,1\n",
            {"columns": {"context": "text"}},
            "response: is missing; did you mean 'resp'. the table has id, text",
        ),
        (
            "id,text,resp,n\n1,Hi,a,1\n",
            {"columns": {"reponse": "resp"}},
            "unknown setting 'reponse'; did you mean 'response'",
        ),
        ("id,text,resp,n\n1,Hi,a,1\n", {"columns": {**COUNTS, "proportion": "n"}}, "name the count only"),
        ("id,text,resp,n\n1,Hi,a,1\n", {"columns": {**COUNTS, "word_num": "n"}}, "names word_num without text_id"),
        (
            "id,text,resp,n\n1,Hi,a,1\n",
            {"encoding": "rot13"},
            "encoding: is 'rot13', should be auto, or an encoding of text",
        ),
        ("id,text,resp,n\n1,Hi,a,1\n", {"separator": "dots"}, "unknown separator 'dots'"),
        ("id,text,resp,n\n1,Hi,a,1\n", {"n_answers": 40}, "goes with a column of proportions"),
        ("id,text,resp,n\n1,Hi,a,1\n", {"missing": "NA"}, "missing: is 'NA', should be a list, each a text"),
        ("id,text,resp,n,by\n1,Hi,a,1,gpt\n", {"columns": {**COUNTS, "model": "by"}}, "every row names a model"),
        (
            "who,sentence,answer,word\n,Hi,a,b\n",
            {"columns": TRIALS},
            "line 2: has no participant",
        ),
    ],
)
def test_malformed(table: str, settings: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        cloze_table(**{"path": written(tmp_path, table), "columns": COUNTS, **settings})


def test_encodings_that_do_not_fit(tmp_path: Path) -> None:
    path = written(tmp_path, "id,text,resp,n\n1,Hi,\u00e9,1\n", encoding="latin-1")
    with pytest.raises(InputError, match=r"line 2: byte 0xe9 is no utf-8; set study.encoding"):
        cloze_table(path=path, columns=COUNTS, encoding="utf-8")
    with pytest.raises(InputError, match="path: is null; give the table"):
        cloze_table(columns=COUNTS)
    with pytest.raises(InputError, match="there is no such file"):
        cloze_table(path=tmp_path / "nothing.csv", columns=COUNTS)


def test_notes_are_json(tmp_path: Path) -> None:
    study = cloze_table(path=written(tmp_path, "id,text,resp,n\n1,Hi,a,1\n"), columns=COUNTS)
    assert json.loads(study.attrs["notes"])


def test_a_column_that_nobody_named_is_said(tmp_path: Path) -> None:
    """A model's rows are people's where the settings do not say which column names the model."""
    table = "id,text,resp,n,source,late\n1,Hi,a,1,,3\n1,Hi,b,2,gpt2,4\n"
    columns = {**COUNTS, "model": "source"}
    said = "columns that study.columns does not name were not read: "
    assert f"{said}late" in texts(cloze_table(path=written(tmp_path, table), columns=columns))
    assert f"{said}source, late" in texts(cloze_table(path=written(tmp_path, table), columns=COUNTS))
    plain = cloze_table(path=written(tmp_path, "id,text,resp,n\n1,Hi,a,1\n"), columns=COUNTS)
    assert not any(text.startswith(said) for text in texts(plain))
    pq = pytest.importorskip("pyarrow.parquet")
    pa = pytest.importorskip("pyarrow")
    rows = {"id": ["1"], "text": ["Hi"], "resp": ["a"], "n": [1], "late": [3]}
    pq.write_table(pa.table(rows), tmp_path / "table.parquet")
    assert f"{said}late" in texts(cloze_table(path=tmp_path / "table.parquet", columns=COUNTS))


def test_a_dataframe_gives_the_study_of_its_file(tmp_path: Path) -> None:
    table = "id,text,resp,n,by\n1,Hi,there,3,\n1,Hi,NA,2,\n1,Hi,you,9,gpt\n"
    frame = pd.read_csv(written(tmp_path, table), keep_default_na=False, dtype={"resp": str})
    columns = {**COUNTS, "model": "by"}
    made, read = cloze_study(frame, columns=columns), cloze_table(path=tmp_path / "table.csv", columns=columns)
    made.attrs["data_sha256"] = read.attrs["data_sha256"]
    xr.testing.assert_identical(made, read)


def test_a_dataframe_s_columns_are_found_by_their_names() -> None:
    frame = pd.DataFrame({"context": ["Hi", "Hi"], "response": ["you", None], "late": [1, 2]})
    study = cloze_study(frame, name="mine")
    assert study.attrs["name"] == "mine"
    assert answers(study) == ["you", ""]
    assert any(text.endswith("were not read: late") for text in texts(study))


@pytest.mark.parametrize(
    ("frame", "settings", "message"),
    [
        ({"a": ["x"]}, {}, "answers, response: is missing; the table has a; name"),
        ({"a": ["x"], "b": ["y"]}, {"columns": {"context": "a", "response": "c"}}, "c: is missing; the table has a, b"),
        ({"context": ["x"], "response": [1.5]}, {}, "response: is 1.5 in row 1; answers have to be strings"),
        ({"context": ["x"], "response": ["y"], "count": [None]}, {}, "row 1: has no count"),
        ({"context": ["x"], "response": ["y"]}, {"word_rules": "cleen"}, "word_rules: unknown word rules 'cleen'"),
    ],
)
def test_wrong_dataframes(frame: dict[str, list[Any]], settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        cloze_study(pd.DataFrame(frame), **settings)


def test_no_dataframe() -> None:
    with pytest.raises(InputError, match=r"answers: is a list, should be a pandas.DataFrame"):
        cloze_study([("context", "response")])  # type: ignore[arg-type]


BOTH = {**COUNTS, "proportion": "p", "model": "by"}
MIXED = (
    "id,text,resp,n,p,by\n1,Hi,there,3,,\n1,Hi,you,1,,\n"
    "1,Hi,there,,0.25,gpt\n1,Hi,you,,0.7,gpt\n1,Hi,all,,0.00001,gpt\n"
)


def test_people_have_counts_and_models_probabilities(tmp_path: Path) -> None:
    study = cloze_table(path=written(tmp_path, MIXED), columns=BOTH)
    assert study["response_count"].to_numpy().tolist() == [3, 1]
    np.testing.assert_allclose(np.exp(study["sample_logprob"].to_numpy()), [0.25, 0.7, 0.00001])
    assert study["sample_count"].to_numpy().tolist() == [2632, 7368, 0]
    (note,) = [entry for entry in notes(study) if "stand for 10,000 draws" in entry["text"]]
    assert (note["count"], note["level"]) == (1, "warning")
    few = cloze_table(path=tmp_path / "table.csv", columns=BOTH, model_draws=100)
    assert few["sample_count"].to_numpy().tolist() == [26, 74, 0]


def test_people_are_rows_and_models_have_probabilities(tmp_path: Path) -> None:
    table = "id,resp,p,by\n1,there,,\n1,you,,\n1,there,,\n1,you,1,gpt\n"
    columns = {"context_id": "id", "response": "resp", "proportion": "p", "model": "by"}
    study = cloze_table(path=written(tmp_path, table), columns=columns)
    assert study["response_count"].to_numpy().tolist() == [1, 1, 1]
    assert study["sample_count"].to_numpy().tolist() == [10_000]
    # where people have shares, one without is a mistake
    with pytest.raises(InputError, match=r"line 2: has no proportion; study\.drop_incomplete=true"):
        cloze_table(path=written(tmp_path, table.replace("1,you,,", "1,you,0.5,")), columns=columns)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("there,,0.25", "there,4,0.25", "p: line 4: has a count and a proportion"),
        ("there,3,,", "there,,0.5,", "p: line 2: has a proportion, but people have counts"),
        ("0.7,", "0.9,", "p: gpt in '1' has probabilities that sum to more than 1 .sum 1.15"),
        ("there,,0.25", "there,5,", "p: gpt in '1' has counts and probabilities"),
        ("you,,0.7", "there,,0.7", "line 5: 'there' has a count or share already in line 4"),
        ("there,,0.25", "there,,", "line 4: has no "),
    ],
)
def test_wrong_weights(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in MIXED
    with pytest.raises(InputError, match=message):
        cloze_table(path=written(tmp_path, MIXED.replace(old, new, 1)), columns=BOTH)


WIDE = "id;sentence;Answer_1;Proportion_1;Answer_2;Proportion_2\n7;The cat;sat;0,75;ran;0,25\n8;A dog;barked;1;;\n"


def test_one_row_a_context(tmp_path: Path) -> None:
    """As norms are published, here by a German spreadsheet."""
    settings: dict[str, Any] = {
        "columns": {"context_id": "id", "context": "sentence"},
        "wide": {"answers": "Answer_*", "proportions": "Proportion_*"},
    }
    study = cloze_table(path=written(tmp_path, WIDE), **settings)
    assert answers(study) == ["sat", "ran", "barked"]
    assert study["response_proportion"].to_numpy().tolist() == [0.75, 0.25, 1]
    assert study["context"].to_numpy().tolist() == ["The cat", "A dog"]
    assert texts(study)["empty cells of the wide table, taken for questions not asked"] == 1
    counts = WIDE.replace("Proportion", "N").replace("0,75", "3").replace("0,25", "x")
    settings["wide"] = {"answers": "Answer_*", "counts": "N_*"}
    with pytest.raises(InputError, match=r"is 'x' in line 2, should be a number"):
        cloze_table(path=written(tmp_path, counts), **settings)
    with pytest.raises(InputError, match=r"N_2: is missing; .*every answer needs it"):
        cloze_table(path=written(tmp_path, counts.replace("N_2", "other")), **settings)
    with pytest.raises(InputError, match=r"Antwort_\*: is missing; the table has id, sentence, Answer_1"):
        cloze_table(path=written(tmp_path, WIDE), wide={"answers": "Antwort_*"})


def test_one_row_a_participant(tmp_path: Path) -> None:
    frame = pd.DataFrame({"who": ["a", "b"], "S1": ["sat", "ran"], "S2": ["bit", None]})
    long = cloze_study(frame, columns={"participant": "who"}, wide={"items": "S*"})
    assert answers(long) == ["sat", "bit", "ran"]
    assert long["participant"].to_numpy().tolist() == ["a", "a", "b"]
    with pytest.raises(InputError, match="answers, who: is empty in row 2"):
        cloze_study(frame.assign(who=["a", ""]), columns={"participant": "who"}, wide={"items": "S*"})


@pytest.mark.parametrize(
    ("wide", "message"),
    [
        ({}, "wide: should have answers .one row a context. or items"),
        ({"answers": "A_*", "items": "S*"}, "should have answers"),
        ({"answers": "A"}, r"answers: is 'A', should have one \*"),
        ({"items": "S*", "counts": "N_*"}, "has items, so that every cell is one answer"),
        ({"answers": "A_*", "counts": "N_*", "proportions": "P_*"}, "name the counts only"),
    ],
)
def test_wrong_patterns(tmp_path: Path, wide: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        cloze_table(path=written(tmp_path, WIDE), wide=wide)
