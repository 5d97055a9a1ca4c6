"""Log-probabilities that pangoling, minicons and lm-evaluation-harness write, as those of a cloze study's targets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from shannon_game import cloze_study
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import notes

ANSWERS = pd.DataFrame(
    {
        "item": [1, 1, 2],
        "sentence": ["The apple doesn't fall far from the", "The apple doesn't fall far from the", "Don't judge a"],
        "said": ["tree", "roof", "book"],
        "word": ["tree", "tree", "book"],
    }
)
COLUMNS = {"context_id": "item", "context": "sentence", "response": "said", "target": "word"}
# what the README of pangoling prints, by write.csv
PANGOLING = """\
"","sent_n","word","lp"
"1",1,"The",NA
"2",1,"apple",-10.9
"3",1,"doesn't",-5.5
"4",1,"fall",-3.6
"5",1,"far",-2.91
"6",1,"from",-0.745
"7",1,"the",-0.207
"8",1,"tree.",-1.58
"9",2,"Don't",NA
"10",2,"judge",-6.27
"11",2,"a",-2.33
"12",2,"book",-1.97
"13",2,"by",-0.409
"""
# tokens, as a causal model has them; the first has no context
MINICONS = [
    [["The", 0.0], ["\u0120apple", 10.5], ["\u0120tr", 3.0], ["ee", 0.5]],
    [["Don", 0.0], ["'t", 1.0], ["\u0120judge", 6.0], ["\u0120a", 2.0], ["\u0120book", 1.5]],
]


def study(path: Path, content: str, **settings: Any) -> xr.Dataset:
    path.write_text(content, encoding="utf-8")
    return cloze_study(ANSWERS, columns=COLUMNS, scores={"gpt2": {"path": path, **settings}})


def logprobs(found: xr.Dataset, model: str = "gpt2") -> list[float]:
    """ln p of the target of each context, in its order."""
    corpus = found["source"].to_numpy().tolist().index("corpus")
    rows = found["sample_source"].to_numpy() == corpus
    entry = found["sample_entry"].to_numpy()[rows]
    assert (found["entry_model"].to_numpy()[entry] == found["model"].to_numpy().tolist().index(model)).all()
    words = found["word_text"].to_numpy()[found["sample_word"].to_numpy()[rows]]
    assert words.tolist() == found["target_word"].to_numpy()[found["entry_item"].to_numpy()[entry]].tolist()
    assert (found["sample_count"].to_numpy()[rows] == 0).all()
    return [float(value) for value in found["sample_logprob"].to_numpy()[rows]]


def test_a_table_of_pangoling(tmp_path: Path) -> None:
    columns = {"context_id": "sent_n", "value": "lp"}
    found = study(tmp_path / "lp.csv", PANGOLING, scale="logprob_nats", columns=columns)
    assert logprobs(found) == [-1.58, -1.97]
    other = study(tmp_path / "lp.csv", PANGOLING.replace("-1.58", "-1.5"), scale="logprob_nats", columns=columns)
    assert other.attrs["data_sha256"] != found.attrs["data_sha256"]
    said = {entry["text"]: entry["count"] for entry in notes(found)}
    assert said["contexts whose target has a log-probability of gpt2"] == 2
    # "tree." and its full stop are one word to pangoling
    assert said["targets with punctuation attached, which their log-probability of gpt2 is of too"] == 1


@pytest.mark.parametrize(
    ("scale", "factor"),
    [
        ("logprob_nats", -1.0),
        ("surprisal_nats", 1.0),
        ("logprob_bits", -1 / np.log(2)),
        ("surprisal_bits", 1 / np.log(2)),
    ],
)
def test_tokens_of_minicons(tmp_path: Path, scale: str, factor: float) -> None:
    """A target of two tokens has the sum of both."""
    lines = [[[token, value * factor] for token, value in line] for line in MINICONS]
    text = "\n".join(map(json.dumps, lines)) + "\n"
    np.testing.assert_allclose(logprobs(study(tmp_path / "s.jsonl", text, scale=scale)), [-3.5, -1.5])
    table = pd.DataFrame(
        [(item, token, value) for item, line in enumerate(lines, start=1) for token, value in line],
        columns=["item", "word", "value"],
    )
    found = study(tmp_path / "s.csv", table.to_csv(index=False), scale=scale)
    np.testing.assert_allclose(logprobs(found), [-3.5, -1.5])


def record(item: int, words: list[str], values: list[Any], *, named: bool) -> dict[str, Any]:
    """A line of samples_*.jsonl: log-likelihoods, in lists of lists."""
    context = ANSWERS["sentence"].drop_duplicates().tolist()[item]
    requests = [[context, f" {word}"] for word in words]
    if not named:
        return {"doc_id": item, "arguments": requests, "resps": [[[value, False]] for value in values], "acc": 1.0}
    arguments = {f"gen_args_{i}": {"arg_0": c, "arg_1": w} for i, (c, w) in enumerate(requests)}
    return {"doc_id": item, "arguments": arguments, "resps": [[[str(value), "False"]] for value in values]}


@pytest.mark.parametrize("named", [False, True])
def test_samples_of_the_harness(tmp_path: Path, named: bool) -> None:
    records = [record(1, ["book", "cover"], [-1.97, -4.0], named=named), record(0, ["tree"], [-1.58], named=named)]
    found = study(tmp_path / "samples_mine.jsonl", "".join(json.dumps(each) + "\n" for each in records))
    assert logprobs(found) == [-1.58, -1.97]


LP = {"scale": "logprob_nats", "columns": {"context_id": "sent_n", "value": "lp"}}


@pytest.mark.parametrize(
    ("name", "content", "settings", "message"),
    [
        ("s.csv", PANGOLING, {**LP, "scale": None}, "scale: has no value; say what the numbers are: logprob_nats"),
        ("s.csv", PANGOLING, {**LP, "scale": "surprisal_bits"}, "is -10.9 in line 3, which is no surprisal_bits"),
        ("s.csv", PANGOLING.replace("tree", "x").replace("book", "y"), LP, "has the target of none of the 2 contexts"),
        ("s.jsonl", "[[]]\n", {"scale": "logprob_nats"}, "has 1 lines for 2 contexts"),
        ("s.jsonl", '{"doc": 1}\n', {}, "line 1: is no record of log-likelihoods .KeyError: 'arguments'"),
        ("s.jsonl", json.dumps(record(0, ["tree"], [1.5], named=False)), {}, "1.5 is no log-probability"),
    ],
)  # fmt: skip
def test_files_that_are_no_scores(
    tmp_path: Path, name: str, content: str, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        study(tmp_path / name, content, **settings)


def test_a_target_that_has_no_score_is_counted(tmp_path: Path) -> None:
    found = study(tmp_path / "s.csv", PANGOLING.replace("book", "x"), **LP)
    assert logprobs(found) == [-1.58]
    (note,) = [entry for entry in notes(found) if "has no log-probability of gpt2, the first '2'" in entry["text"]]
    assert (note["count"], note["level"]) == (1, "warning")
    columns = {key: value for key, value in COLUMNS.items() if key != "target"}
    with pytest.raises(InputError, match=r"scores\.gpt2: needs the targets"):
        cloze_study(ANSWERS, columns=columns, scores={"gpt2": {"path": tmp_path / "s.csv", **LP}})
