"""Tiny models fine-tuned on people's answers: what they learn, what is held out, a second run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from shannon_game import cloze_study
from shannon_game.estimators.cloze import word_rules
from shannon_game.estimators.errors import InputError
from shannon_game.experiments.cloze.finetune.examples import answer_counts, text_folds
from shannon_game.experiments.harness.result import ExperimentResult
from tests.experiments.command import run_experiment
from tests.experiments.tiny_language_models import named

torch_test = pytest.mark.torch

TEXTS = ["The old clock", "She asked the", "Rain fell on the", "They walked and", "A reader reads the", "The readers"]
ANSWERS = {"the": 6, "The": 1, "road": 2, "river,": 1, "---": 1}
COLUMNS = {"text_id": "text", "word_num": "number", "context": "context", "response": "response", "count": "count"}


def answers() -> pd.DataFrame:
    """Six texts of two contexts each, in all of which people say the same."""
    rows = [
        (f"t{text}", number, f"{start} {' '.join(['and'] * number)}", word, count)
        for text, start in enumerate(TEXTS)
        for number in (1, 2)
        for word, count in ANSWERS.items()
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS.values()))


@pytest.fixture(scope="module")
def root(root: Path) -> Path:
    answers().to_csv(root / "answers.csv", index=False)
    return root


def overrides(root: Path, *more: str, model: str = "a") -> list[str]:
    return [
        *("+exp=finetune", "study=cloze_table", f"study.path={root / 'answers.csv'}", "model=[]"),
        *(f"study.columns.{key}={value}" for key, value in COLUMNS.items()),
        *named(root, model),
        f"experiment.store={root / 'store'}",
        *("experiment.n_folds=2", "experiment.n_steps=30", "experiment.learning_rate=1e-2"),
        *("experiment.warmup_steps=2", "experiment.save_every=30", "experiment.contexts_together=2"),
        *more,
    ]


@pytest.fixture(scope="module")
def found(root: Path) -> ExperimentResult:
    return run_experiment(*overrides(root, "experiment.labels=[soft,majority]"))


@torch_test
def test_what_people_say_everywhere_is_learned(found: ExperimentResult) -> None:
    table = found.table.set_index("labels")
    assert table["n_held_out_texts"].tolist() == [6, 6]
    assert table["n_held_out_contexts"].tolist() == [12, 12]
    # words of random weights are nowhere near people's; after training the shares themselves are learned
    assert table.loc["soft", "tvd_before"] > 0.9
    assert table.loc["soft", "tvd_after"] < 0.5
    assert table.loc["soft", "tvd_difference_upper"] < 0
    # of ten answers seven are "the": a model that says nothing else is .3 away
    assert table.loc["majority", "tvd_after"] == pytest.approx(0.3, abs=0.02)


@torch_test
def test_a_second_run_trains_nothing(root: Path, found: ExperimentResult) -> None:
    again = run_experiment(*overrides(root, "experiment.labels=[soft,majority]"))
    assert "0 steps in this run" in again.text
    pd.testing.assert_frame_equal(again.table, found.table)


@torch_test
@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("experiment.fold=3", "fold: is 3, but there are 2 parts"),
        ("experiment.n_folds=7", "n_folds: is 7, but there are 6 texts"),
    ],
)
def test_what_is_wrong_is_said(root: Path, override: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        run_experiment(*overrides(root, override))


def test_answers_are_counted_as_a_model_may_write_them() -> None:
    study = cloze_study(answers(), columns=COLUMNS)
    (first, *_) = answer_counts(study, word_rules("clean"))
    assert first == {"the": 7, "road": 2, "river": 1}


def test_texts_are_held_out_whole_and_once() -> None:
    study = cloze_study(answers(), columns=COLUMNS)
    text = study["text_id"].to_numpy().astype(str)
    items = np.arange(12, dtype=np.intp)
    cut: dict[str, Any] = {"n_folds": 4, "n_texts": 5, "in_order": False, "n_validation_texts": 0}
    folds = text_folds(study, items, rng=np.random.default_rng(0), **cut)
    assert sorted(len(fold.held_out) for fold in folds) == [2, 2, 2, 4]
    for fold in folds:
        assert not set(text[fold.training]) & set(text[fold.held_out])
        assert len(fold.training) + len(fold.held_out) == 10
    held_out = np.concatenate([fold.held_out for fold in folds])
    assert len(set(held_out.tolist())) == len(held_out) == 10


def test_folds_in_order_with_texts_for_validation() -> None:
    """Appendix F cuts the first texts into neighbouring parts, and the last ones validate."""
    study = cloze_study(answers(), columns=COLUMNS)
    text = study["text_id"].to_numpy().astype(str)
    cut: dict[str, Any] = {"n_folds": 2, "n_texts": None, "in_order": True, "n_validation_texts": 2}
    folds = text_folds(study, np.arange(12, dtype=np.intp), rng=np.random.default_rng(0), **cut)
    assert [sorted(set(text[fold.held_out])) for fold in folds] == [["t0", "t1"], ["t2", "t3"]]
    assert [sorted(set(text[fold.training])) for fold in folds] == [["t2", "t3"], ["t0", "t1"]]
    assert [sorted(set(text[fold.validation])) for fold in folds] == [["t4", "t5"]] * 2
