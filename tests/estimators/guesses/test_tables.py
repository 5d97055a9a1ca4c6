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


def test_a_tie_shows_the_first_guess_and_an_item_without_guess_none() -> None:
    study = guess_study().isel(response=[0, 1, 5])
    table = guess_items(study.drop_vars("target_token"))
    assert table["modal_guess"].tolist()[0] == " dog"
    assert table["n_guesses"].tolist() == [2, 0, 0, 1]
    np.testing.assert_array_equal(table["accuracy"], [0.5, np.nan, np.nan, 0])
    assert "target" not in table
    assert "modal_guess" not in guess_items(study.drop_vars("guess"))
