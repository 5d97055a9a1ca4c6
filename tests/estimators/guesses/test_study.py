"""The guess study's validator, and what is read from such a study."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shannon_game.estimators.errors import InputError
from shannon_game.estimators.guesses import validate_guess_study
from shannon_game.estimators.guesses.study import guess_contexts, is_word_position, prior_guesses, with_model_answers
from tests.estimators.guesses.guess_studies import guess_study


def test_a_good_study_comes_back_as_it_is() -> None:
    study = guess_study()
    assert all(validate_guess_study(study)[name].variable.equals(study[name].variable) for name in study.variables)
    optional = ["text", "target_start", "target_token", "guess", *(name for name in study if name.startswith("stored"))]
    bare = study.drop_vars(optional)
    read = validate_guess_study(bare)
    assert all(read[name].variable.equals(bare[name].variable) for name in bare.variables)
    assert validate_guess_study(read) is read


@pytest.mark.parametrize(
    ("name", "values", "part"),
    [
        ("item_document", ["a", "a", "b", "c"], "'c' at item 13 .*; the study has no such document"),
        ("item_position", [1, 1, 1, 0], "1 at item 11 .*; there is another item at this position"),
        ("n_before", [0, 0, 1, 1, 0, 1], "1 at response 3 .1 such.; counts the guesses of its participant"),
        ("target_start", [4, 7, 1, 0], "4 at item 10 .*; the document's text does not have the target there"),
        ("stored_accuracy", [40.0], "40.0 at stored 0 .*; should be a share"),
        ("stored_tokens", ["words"], "visible, word"),
    ],
)
def test_mistakes_are_named(name: str, values: list[object], part: str) -> None:
    study = guess_study()
    column = np.array(values, dtype=object if isinstance(values[0], str) else None)
    with pytest.raises(InputError, match=part) as raised:
        validate_guess_study(study.assign({name: (study[name].dims, column)}))
    assert str(raised.value).startswith("guess study 'small'")


def test_what_is_missing_or_laid_out_wrongly_is_named() -> None:
    study = guess_study()
    for broken, part in (
        (study.drop_vars("stored_n"), "stored_n: is missing"),
        (study.drop_vars("text"), "text: is missing; it goes with target_start"),
        (study.drop_vars("target_start"), "target_start: is missing; it goes with text"),
        (
            study.assign(target_surprisal_nats=(("model", "item"), [[0, 1, np.inf, 0]])).assign_coords(model=["m"]),
            "inf at model m, item 12 .*; should be finite and at least 0, or NaN",
        ),
        (study.isel(response=[]), "response: is empty"),
    ):
        with pytest.raises(InputError, match=part):
            validate_guess_study(broken)


def test_language_models_are_added_by_item() -> None:
    study = with_model_answers(guess_study(), "one", [1, 0, np.nan, 0.5], [0.1, 2.0, np.nan, 1.0])
    study = with_model_answers(study, "two", [0, 0, 1, 1])
    assert study["model"].values.tolist() == ["one", "two"]
    np.testing.assert_array_equal(study["model_hit"].sel(model="one"), [1, 0, np.nan, 0.5])
    np.testing.assert_array_equal(study["model_hit"].sel(model="two"), [0, 0, 1, 1])
    assert np.isnan(study["target_surprisal_nats"].sel(model="two")).all()
    assert "model" not in guess_study().coords
    for hit, surprisal, part in (
        ([1, 0, 1], None, "one an item"),
        ([2, 0, 0, 0], None, "2.0 at model three, item 10 .*; should be from 0 to 1, or NaN"),
        ([1, 0, 0, 0], [-0.1, 1, 1, 1], "-0.1 at model three"),
        ([1, 0, 0, 0], [np.inf, 1, 1, 1], "inf at model three"),
    ):
        with pytest.raises(InputError, match=part):
            with_model_answers(study, "three", hit, surprisal)
    with pytest.raises(InputError, match=r"^guess study 'small', model: 'one' is there already"):
        with_model_answers(study, "one", [1, 0, 0, 0])


def test_contexts_are_the_texts_up_to_the_target() -> None:
    assert guess_contexts(guess_study()) == ["The", "The cat", "A", ""]
    with pytest.raises(InputError, match=r"text, target_start: are not in the study"):
        guess_contexts(guess_study().drop_vars(["text", "target_start"]))
    with pytest.raises(InputError, match=r"target_start: is missing; it goes with text"):
        guess_contexts(guess_study().drop_vars("target_start"))


@pytest.mark.parametrize(
    ("token", "following", "word"),
    [(" cat", " sat", True), (" cat", "s", False), (" cat", None, False), ("cat", " sat", False), (" c4t", " ", False)],
)
def test_word_tokens(token: str, following: str | None, word: bool) -> None:
    assert is_word_position(token, following) is word


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=30))
def test_prior_guesses_are_counted(people: list[str]) -> None:
    assert prior_guesses(people).tolist() == [people[:at].count(who) for at, who in enumerate(people)]
