"""Tables as other programs and people write them, whose right numbers were worked out by hand."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from shannon_game import cloze_study, comparison_study, guess_study, perplexity, reading_times, text_study, tvd
from shannon_game.estimators.cloze import cloze_items
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import notes
from shannon_game.experiments.studies.plain_table import cell_text

PAIRS = pd.DataFrame(
    [["q0", 0, "c", " t", " t", -2.0, -2.0], ["q0", 1, "c", " t", " x", -2.0, -1.5],
     ["q1", 0, "d", " t", " y", -1.0, -2.0], ["q1", 1, "d", " t", " z", -1.0, -2.5]],
    columns=["item", "draw", "context", "target", "candidate", "target_logprob_g", "candidate_logprob_g"],
)  # fmt: skip
ANSWERS = pd.DataFrame(
    [["q0", 0, "ann", 0.99], ["q0", 1, "ann", 0.3], ["q1", 0, "ann", 0.6], ["q1", 1, "bo", 0.7]],
    columns=["item", "draw", "participant", "report"],
)


@pytest.mark.parametrize("answers", [ANSWERS, ANSWERS.assign(report=[0.01, 0.3, 0.6, 0.7]), ANSWERS[1:]])
def test_equal_strings_count_as_one_half(answers: pd.DataFrame) -> None:
    study = comparison_study(answers, PAIRS, generator="g")
    gap = perplexity(study, players=["human"], rounding="none").table["gap_nats"].item()
    assert gap == pytest.approx(0.406346, abs=1e-6)


def test_two_marks_of_a_space_are_one() -> None:
    rows = [["p", "d", at, f"\u0120{word}", f" {word}"] for at, word in enumerate(("cat", "dog", "sun"))]
    study = guess_study(pd.DataFrame(rows, columns=["participant", "document", "position", "target", "guess"]))
    assert study["correct"].all()


def test_best_completions_alone_keep_their_share() -> None:
    norms = pd.DataFrame({"context": ["a", "b"], "response": ["sat", "ran"], "proportion": [0.533, 0.2]})
    table = cloze_items(cloze_study(norms))
    np.testing.assert_allclose(table["modal_probability"], [0.533, 0.2])
    assert table["modal_answer"].tolist() == ["sat", "ran"]


def test_single_precision_missing_is_missing() -> None:
    assert cell_text(np.float32("nan")) == cell_text(np.datetime64("NaT", "ns")) == ""


NORMS = pd.DataFrame(
    [["q0", "nine", "hall", 3], ["q0", "nine", "nine", 2], ["q1", "ten", "hall", 3], ["q1", "ten", "ten", 2]],
    columns=["context_id", "target", "response", "count"],
)
SCORES = "context_id,word,value,model\nq0,nine,-1,a\nq1,ten,-2,a\nq0,nine,-9,b\nq1,ten,-8,b\n"


def scored(path: Path, text: str, **columns: str) -> xr.Dataset:
    path.write_text(text, encoding="utf-8")
    return cloze_study(NORMS, scores={"b": {"path": path, "scale": "logprob_nats", "columns": columns}})


@pytest.mark.parametrize("text", [SCORES, SCORES.replace(",a\n", ",b\n")])
def test_scores_of_two_models_or_runs_are_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match=r"columns\.model"):
        scored(tmp_path / "scores.csv", text)


def test_a_model_without_samples_keeps_its_surprisal(tmp_path: Path) -> None:
    study = scored(tmp_path / "scores.csv", SCORES, model="model")
    found = tvd(study).tables["items"]
    np.testing.assert_allclose(found["surprisal_nats_b"], [9, 8])
    assert (found["n_samples_b"] == 0).all()
    with pytest.raises(InputError, match="model 'b'"):
        tvd(study, players=["b"])


@pytest.mark.parametrize(
    ("rows", "refused"),
    [
        ([["Total", "", "", 10]], True),
        ([["", "", "Sum", 10]], True),
        ([["Total", "", "x", 9]], False),
        ([["q1", "", "total", 10]], False),
    ],
)
def test_a_row_of_totals_is_no_context(rows: list[list[object]], refused: bool) -> None:
    table = pd.concat([NORMS, pd.DataFrame(rows, columns=NORMS.columns)])
    with pytest.raises(InputError, match="row of totals") if refused else nullcontext():
        cloze_study(table)


WORDS = pd.DataFrame(
    [[f"d{at // 6}", at % 6 + 1, "x" * (2 + at * at % 7), 1 + at * 7 % 11] for at in range(24)],
    columns=["document", "word_num", "word", "surprisal_nats"],
).assign(model="m")


def read_by(readers: Sequence[str], words: pd.DataFrame = WORDS, times: int = 1) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    rows = [words.assign(participant=name, time=rng.uniform(200, 400, len(words))) for name in readers]
    table = pd.concat(rows * times).rename(columns={"document": "text_id"}).drop(columns=["model", "surprisal_nats"])
    texts = words.groupby("document")["word"].agg(" ".join).reset_index()
    study = text_study(texts, text_field="word", id_field="document")
    return reading_times(study, surprisal=words, times=table, columns={"participant": "participant"}, spillover=0).table


@pytest.mark.parametrize(
    ("readers", "number"), [(["p0", "p0 ", "p1"], 2), (["caf\u00e9", "cafe\u0301", "p1"], 2), (["1", "01", "2"], 3)]
)
def test_a_reader_has_one_name(readers: list[str], number: int) -> None:
    assert read_by(readers)["n_readers"].tolist() == [number]


def test_log_probabilities_are_no_surprisal() -> None:
    with pytest.raises(InputError, match="log-probabilities"):
        read_by(["a", "b"], WORDS.assign(surprisal_nats=-WORDS["surprisal_nats"]))


def test_times_pasted_twice_are_refused() -> None:
    with pytest.raises(InputError, match="twice"):
        read_by(["a", "b"], times=2)


def test_numbers_written_in_several_ways_are_noted() -> None:
    rows = [["1", "d", 0, "a", "a"], ["1.0", "d", 1, "b", "x"], ["001", "d", 2, "c", "c"], ["2", "d", 0, "a", "x"]]
    study = guess_study(pd.DataFrame(rows, columns=["participant", "document", "position", "target", "guess"]))
    assert [note for note in notes(study) if "'1' and '1.0'" in note["text"]]
