"""Exact distances of a live model: by hand on one context, against samples, from the store; forms of words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from shannon_game.estimators.cloze.words import normalise_words, word_rules
from shannon_game.experiments.cloze.live_words import word_forms
from shannon_game.experiments.harness.result import ExperimentResult
from shannon_game.inference.lm.language_model import encode
from shannon_game.inference.lm.words import word_log_probs
from tests.experiments.command import run_experiment
from tests.experiments.tiny_language_models import named
from tests.inference.lm import tiny_models

pytest.importorskip("torch")
pytestmark = pytest.mark.torch

TABLE = """text,number,context,response,count
a,1,The old clock,struck,3
a,1,The old clock,in,2
a,2,The old clock in,the,4
a,2,The old clock in,The,1
a,2,The old clock in,a,2
b,1,She asked the,baker,5
b,1,She asked the,man,1
b,1,She asked the,"baker,",1
c,1,Rain fell,on,6
c,2,Rain fell on,the,6
c,3,Rain fell on the,roof,6
c,4,Rain fell on the roof,and,6
c,5,They walked and talked until the lamps,were,3
"""


COLUMNS = {"text_id": "text", "word_num": "number", "context": "context", "response": "response", "count": "count"}


@pytest.fixture(scope="module")
def root(root: Path) -> Path:
    (root / "answers.csv").write_text(TABLE, encoding="utf-8")
    return root


def overrides(root: Path, store: Path, *more: str, models: tuple[str, ...] = ("a",), exp: str = "tvd") -> list[str]:
    return [
        *(f"+exp={exp}", "study=cloze_table", f"study.path={root / 'answers.csv'}"),
        *(f"study.columns.{key}={value}" for key, value in COLUMNS.items()),
        *("model=[]", *named(root, *models), f"experiment.store={store}", "output.dpi=40", *more),
    ]


@pytest.fixture(scope="module")
def found(root, tmp_path_factory) -> ExperimentResult:
    return run_experiment(*overrides(root, tmp_path_factory.mktemp("store")))


def test_one_context_by_hand(root, found):
    model = tiny_models.load(root / "a", bos=tiny_models.END)
    context = encode(model, ["The old clock in"])
    # "the" was given in two ways; a model may write each word in small letters, with a capital, or in capitals
    forms = [["the", "The", "THE"], ["a", "A"]]
    logprob = word_log_probs(model, context, [[form for some in forms for form in some]])["logprob"].to_numpy()
    q = np.array([np.exp(logprob[:3]).sum(), np.exp(logprob[3:]).sum()])
    p = np.array([5, 2]) / 7
    expected = (np.abs(p - q).sum() + 1 - q.sum()) / 2
    np.testing.assert_array_equal(found.tables["items"]["tvd_a"], found.dataset["tvd"].sel(player="a"))
    where = (found.dataset["text_id"] == "a").to_numpy()
    assert float(found.dataset["tvd"].sel(player="a")[where][1]) == pytest.approx(expected, abs=1e-6)


def test_a_second_run_computes_nothing_and_shards_add_up(root, tmp_path):
    parts = [run_experiment(*overrides(root, tmp_path, f"experiment.shard={i}/2")) for i in range(2)]
    whole = run_experiment(*overrides(root, tmp_path))
    assert sum(int(part.table["n_contexts"].iloc[0]) for part in parts) == 8
    assert "0 results were computed" in whole.text


def test_forms_of_words():
    rules = word_rules("provo")
    forms = word_forms(
        ["do", "i", "baker"],
        ["don't", "Do", "doing", "baker's", "I"],
        lambda texts: normalise_words(texts, rules).words.tolist(),
        most=4,
    )
    assert forms["do"] == ["do", "Do", "DO", "don't"]
    assert forms["i"] == ["i", "I"]
    assert forms["baker"] == ["baker", "Baker", "BAKER", "baker's"]
