"""Log-probabilities, reading times, texts and ratings as other programs write them, read with settings alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shannon_game import cloze_table, comparison_table, guess_table, texts
from shannon_game.experiments.cloze.reading_words import TimesColumns, table_times
from shannon_game.experiments.studies.table_file import TableFile

ANSWERS = "item,sentence,answer,word\n" + "".join(
    f"{item},{sentence},{answer},{word}\n"
    for item, sentence, word in ((0, "The cook stirred the", "soup"), (1, "The pilot landed the", "plane"))
    for answer in (word, "thing", word)
)
COLUMNS = {"context_id": "item", "context": "sentence", "response": "answer", "target": "word"}


def sample(item: int, context: str, word: str, logprob: float) -> dict[str, Any]:
    return {"doc_id": item, "arguments": [[context, word]], "resps": [[[logprob, True]]], "target": word}


SAMPLES = [sample(0, "The cook stirred the", " soup", -2.5), sample(1, "The pilot landed the", " plane", -0.7)]
# newer versions name the arguments, and write numbers as texts
NAMED = [
    given | {"arguments": {"gen_args_0": {"arg_0": context, "arg_1": word}}, "resps": [[[str(value), "True"]]]}
    for given in SAMPLES
    for (context, word), value in [(given["arguments"][0], given["resps"][0][0][0])]
]
CHOICES = [
    given | {"arguments": [[context, " stone"], [context, word]], "resps": [[[-9.0, False]], given["resps"][0]]}
    for given in SAMPLES
    for context, word in given["arguments"]
]
PAIRS = [[["The", 0.0], ["cook", -4.0], ["soup", -2.5]], [["The", 0.0], ["plane", -0.7]]]
NATS = {"scale": "logprob_nats"}
PANGOLING = '"","sent_n","word","lp"\n"1",0,"The",NA\n"2",0,"soup",-2.5\n"3",1,"The",NA\n"4",1,"plane.",-0.7\n'
SCORES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "lm-eval, JSON lines": ("s.jsonl", "".join(json.dumps(each) + "\n" for each in SAMPLES), {}),
    "lm-eval, named arguments": ("s.jsonl", "".join(json.dumps(each) + "\n" for each in NAMED), {}),
    "lm-eval, one list": ("s.json", json.dumps(SAMPLES, indent=2), {}),
    "lm-eval, one line": ("s.json", json.dumps(NAMED), {}),
    "lm-eval, choices": ("s.jsonl", "".join(json.dumps(each) + "\n" for each in CHOICES), {}),
    "minicons, JSON lines": ("s.jsonl", "".join(json.dumps(each) + "\n" for each in PAIRS), NATS),
    "minicons, one list": ("s.json", json.dumps(PAIRS), NATS),
    "minicons, one list, indented": ("s.json", json.dumps(PAIRS, indent=1), NATS),
    "pangoling": ("s.csv", PANGOLING, NATS | {"columns": {"context_id": "sent_n", "word": "word", "value": "lp"}}),
    "pangoling, one of several models": (
        "s.csv",
        "model,item,word,value\ngpt2,0,soup,-2.5\ngpt2,1,plane,-0.7\nother,0,soup,-9\nother,1,plane,-9\n",
        NATS | {"where": {"model": "gpt2"}},
    ),
}


@pytest.mark.parametrize("name", SCORES)
def test_log_probabilities_of_other_programs(name: str, tmp_path: Path) -> None:
    file, content, settings = SCORES[name]
    (tmp_path / file).write_text(content)
    (tmp_path / "answers.csv").write_text(ANSWERS)
    scores = {"m": {"path": tmp_path / file, **settings}}
    study = cloze_table(path=tmp_path / "answers.csv", columns=COLUMNS, scores=scores)
    found = study["sample_logprob"].values[np.isfinite(study["sample_logprob"].values)]
    assert found.tolist() == [-2.5, -0.7]


RESULTS = """#
# Results on Mon, 05 Jan 2026 10:00:00 GMT
# Columns below this comment are as follows:
# 1. Results reception time.
# 2. MD5 hash of participant's IP address.
# 3. Controller name.
# 4. Order number of item.
# 5. Word number.
# 6. Word.
# 7. Reading time.
1700000001,aaaa,DashedSentence,2,1,Yesterday%2C,640
1700000001,aaaa,DashedSentence,2,2,rain,420
# 5. Question (NULL if none).
# 6. Answer.
1700000001,aaaa,Question,2,Did it rain?,Yes
# 5. Word number.
# 6. Word.
# 7. Reading time.
1700000001,aaaa,DashedSentence,3,1,Birds,380
"""


def test_reading_times_of_pcibex(tmp_path: Path) -> None:
    (tmp_path / "results.csv").write_text(RESULTS)
    names = {"text_id": "Order number of item", "word_num": "Word number", "word": "Word", "time": "Reading time"}
    how = TableFile(where={"Controller name": "DashedSentence"})
    rows, _, notes = table_times(tmp_path / "results.csv", TimesColumns(**names), (), how=how)
    assert rows[["text", "number", "word", "time"]].to_numpy().tolist() == [
        ["2", 1, "Yesterday,", 640.0],
        ["2", 2, "rain", 420.0],
        ["3", 1, "Birds", 380.0],
    ]
    assert any("rows left out" in note and note.endswith(": 1") for note in notes)


def test_texts_in_a_json_list(tmp_path: Path) -> None:
    (tmp_path / "texts.json").write_text(json.dumps([{"id": "a", "text": "Rain fell."}, {"id": "b", "text": "It"}]))
    study = texts(path=tmp_path / "texts.json", id_field="id")
    assert dict(zip(study["document"].values, study["text"].values, strict=True)) == {"a": "Rain fell.", "b": "It"}


def test_guesses_of_one_file_per_participant(tmp_path: Path) -> None:
    for name, guess in (("ann", "cat"), ("bo", "cow")):
        (tmp_path / f"{name}.csv").write_text(f"document,position,target,guess\na,1,cat,{guess}\na,2,sat,sat\n")
    study = guess_table(path=tmp_path)
    assert study["correct"].values.reshape(2, 2)[:, 0].tolist() == [True, False]


def test_probability_judgements_without_practice(tmp_path: Path) -> None:
    pairs = "item,draw,context,target,candidate,target_logprob_m,candidate_logprob_m\n"
    pairs += "q1,1,The,cat,dog,-1,-2\nq1,2,The,cat,cow,-1,-3\n"
    (tmp_path / "pairs.csv").write_text(pairs)
    for name in ("ann", "bo"):
        rows = [
            {"phase": "practice", "item": "q1", "draw": 2, "report": {"slider": 5}},
            {"phase": "test", "item": "q1", "draw": 1, "report": {"slider": 70}},
        ]
        (tmp_path / "data").mkdir(exist_ok=True)
        (tmp_path / "data" / f"{name}.json").write_text(json.dumps(rows))
    answers = {"answers": tmp_path / "data", "where": {"phase": "test"}}
    study = comparison_table(pairs=tmp_path / "pairs.csv", generator="m", percent=True, **answers)
    assert study["report"].values.tolist() == pytest.approx([0.7, 0.7])
