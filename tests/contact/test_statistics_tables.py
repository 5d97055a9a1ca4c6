"""Tables as other programs and people write them, whose right numbers were worked out by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from shannon_game import cloze_study, comparison_study, guess_study, perplexity
from shannon_game.estimators.cloze import cloze_items
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
    assert cell_text(np.float32("nan")) == cell_text(np.datetime64("NaT")) == ""
