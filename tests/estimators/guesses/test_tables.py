"""A table with a row per item, counted by hand."""

from __future__ import annotations

import numpy as np

from shannon_game.estimators.guesses import with_model_answers
from shannon_game.estimators.guesses.tables import guess_items
from tests.estimators.guesses.guess_studies import guess_study


def test_items() -> None:
    study = with_model_answers(guess_study(), "lm", hit=[1, 0, np.nan, 1], target_surprisal_nats=[0.5, 2, np.nan, 1])
    table = guess_items(study)
    assert table["document"].tolist() == ["a", "a", "b", "a"]
    assert table["position"].tolist() == [1, 2, 1, 0]
    assert table["target"].tolist() == [" cat", " sat", " dog", "The"]
    assert table["n_guesses"].tolist() == [3, 1, 1, 1]
    assert table["n_participants"].tolist() == [2, 1, 1, 1]
    np.testing.assert_allclose(table["accuracy"], [2 / 3, 0, 1, 0])
    assert table["modal_guess"].tolist() == [" cat", " ran", " dog", "A"]
    np.testing.assert_allclose(table["modal_share"], [2 / 3, 1, 1, 1])
    np.testing.assert_array_equal(table["hit_lm"], [1, 0, np.nan, 1])
    np.testing.assert_array_equal(table["surprisal_nats_lm"], [0.5, 2, np.nan, 1])
