"""Any cloze table: nothing that people say is mangled, and every mistake says where it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

from shannon_game import cloze_table
from shannon_game.estimators.cloze.study_words import study_words
from shannon_game.estimators.cloze.words import WORD_RULES
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import notes
from tests.experiments.studies.conftest import noted

TRIALS = {"context": "sentence", "response": "answer", "participant": "who", "target": "word"}
COUNTS = {"context_id": "id", "context": "text", "response": "resp", "count": "n"}
SHARES = {"context_id": "id", "response": "resp", "proportion": "p"}


def written(tmp_path: Path, text: str, name: str = "table.csv", encoding: str = "utf-8") -> Path:
    path = tmp_path / name
    path.write_bytes(text.encode(encoding))
    return path


def answers(study: xr.Dataset) -> list[str]:
    return study["word_text"].to_numpy()[study["response_word"].to_numpy()].tolist()


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
    found = noted(study)
    assert any(text.startswith("blank answers") and count == 1 for text, count in found.items())
    assert any(text.startswith("further answers of a participant") and count == 1 for text, count in found.items())
    first = cloze_table(path=written(tmp_path, table), columns=TRIALS, first_answers=True)
    assert answers(first) == answers(study)[:-1]
    rules = WORD_RULES["clean"]
    words = study_words(study, human=rules, model=rules, corpus=rules)
    assert words.human is not None
    assert words.human.totals.tolist() == [5, 2]
    assert words.human_missing == {"blank": 1.0}


def test_rounded_proportions_without_counts(tmp_path: Path) -> None:
    table = "id,resp,p\na,the,.33\na,a,0.33\na,my,33%\nb,None,0.6\nb,dog,0.2\n"
    path = written(tmp_path, table)
    study = cloze_table(path=path, columns=SHARES)
    assert "response_count" not in study
    np.testing.assert_allclose(study["response_proportion"].to_numpy(), [0.33, 0.33, 0.33, 0.6, 0.2, 0.2])
    (text,) = [text for text in noted(study) if "do not sum to 1" in text]
    assert "'b' lacks 0.2" in text
    rules = WORD_RULES["clean"]
    words = study_words(study, human=rules, model=rules, corpus=rules)
    np.testing.assert_allclose(words.human_distributions.mass, 1)
    with pytest.raises(InputError, match=r"n_answers=N"):
        words.answers()
    with pytest.raises(InputError, match="the proportions of 1 contexts do not sum to 1"):
        cloze_table(path=path, columns=SHARES, proportions="refuse")
    counted = cloze_table(path=path, columns=SHARES, n_answers=40)
    assert counted["response_count"].to_numpy().tolist() == [13, 13, 13, 24, 8, 8]


@pytest.mark.parametrize(
    ("table", "settings", "message"),
    [
        ("id,text,resp,n\n1,Hi,a,\n", {}, "line 2: has no count; drop_incomplete=True"),
        (
            "id,text,resp,n\n1,Hi,a,1\n1,Ho,a,1\n",
            {},
            "text: is 'Ho' in line 3, but 'Hi' in another row of the same context",
        ),
        ("id,text,resp,n\n1,Hi,a,0\n", {}, "has no answer"),
        ("id,resp,p\n1,a,30\n", {"columns": SHARES}, "percent=True reads percentages"),
        ("id,text,resp,n\n1,Hi,a,1\n", {"columns": {**COUNTS, "proportion": "n"}}, "name the count only"),
    ],
)
def test_malformed(table: str, settings: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        cloze_table(**{"path": written(tmp_path, table), "columns": COUNTS, **settings})


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


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("there,,0.25", "there,4,0.25", "p: is '0.25' in line 4, beside a count"),
        ("0.7,", "0.9,", "p: gpt in '1' has probabilities that sum to more than 1 .sum 1.15"),
        ("you,,0.7", "there,,0.7", "line 5: 'there' has a count or share already in line 4"),
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
    assert noted(study)["empty cells of the wide table, taken for questions not asked"] == 1
    with pytest.raises(InputError, match="line 3: has no proportion"):
        cloze_table(path=written(tmp_path, WIDE.replace("barked;1", "barked;")), **settings)
    counts = WIDE.replace("Proportion", "N").replace("0,75", "3").replace("0,25", "x")
    settings["wide"] = {"answers": "Answer_*", "counts": "N_*"}
    with pytest.raises(InputError, match=r"is 'x' in line 2, should be a number"):
        cloze_table(path=written(tmp_path, counts), **settings)
