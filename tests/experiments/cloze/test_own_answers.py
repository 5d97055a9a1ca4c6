"""What becomes of people's own answers and ids: nothing is lost without a word."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
import xarray as xr

from shannon_game import cloze_study, improve, tvd
from shannon_game.estimators.cloze import NON_ANSWERS
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import notes

NO_FIT = {"bayes": {"n_contexts": None}}
ANSWERS = {
    "S1": ["Schnee", "der Schnee", "der Schnee", "wei\u00df nicht", "Regen"],
    "S2": ["the old house", "house", "house", "idk", ""],
    "S3": ["dog", "dog", "cat", "cat", "emu"],
}


def own_study(
    answers: dict[str, list[str]] = ANSWERS, *, model: dict[str, list[str]] | None = None, **settings: Any
) -> xr.Dataset:
    rows = [
        (item, f"person {who}", said, "") for item, all_said in answers.items() for who, said in enumerate(all_said)
    ]
    rows += [(item, f"draw {at}", said, "lm") for item, drawn in (model or {}).items() for at, said in enumerate(drawn)]
    table = pd.DataFrame(rows, columns=["id", "who", "said", "model"])
    columns = {"context_id": "id", "response": "said", "model": "model"}
    return cloze_study(table, columns=columns, **settings)


def noted(study: xr.Dataset, part: str) -> list[tuple[str, int]]:
    return [(entry["text"], entry["count"]) for entry in notes(study) if part in entry["text"]]


def test_the_loader_counts_answers_that_lose_words() -> None:
    study = own_study()
    ((text, count),) = noted(study, "of several words")
    assert count == 3
    assert "words={'pieces': 'join'} all: 'der Schnee' (2 x), 'the old house' (1 x)" in text
    ((text, count),) = noted(study, "that are no word")
    assert count == 2
    whole = own_study(word_rules="none")
    assert not noted(whole, "of several words") + noted(whole, "that are no word")


@pytest.mark.parametrize(
    ("words", "warned", "word"),
    [
        ({}, "20.0% of people's answers are several words", "der"),
        ({"pieces": "join"}, None, "der schnee"),
        ({"pieces": "drop"}, None, None),
        ({"non_answers": [*NON_ANSWERS, "der Schnee", "the old house"]}, None, None),
    ],
)
def test_an_experiment_warns_under_the_rules_that_it_takes(
    words: dict[str, Any], warned: str | None, word: str | None
) -> None:
    result = tvd(own_study(), item="1", words=words)
    assert len(result.warnings) == (warned is not None)
    assert warned is None or result.warnings[0].startswith(warned)
    said = set(result.table["word"])
    assert {word} & {"der", "der schnee"} == said & {"der", "der schnee"} if word else "der" not in said


def test_the_contexts_shown_by_default_are_the_most_uncertain() -> None:
    spread = {f"S{at}": ["dog"] * (10 - at) + [f"w{n}" for n in range(at)] for at in (3, 0, 7, 1, 9)}
    result = tvd(own_study(spread), item="disputed")
    assert list(dict.fromkeys(result.table["item"])) == ["S3", "S7", "S9"]
    assert list(result.figures) == ["contexts_S3_S9"]
    few = tvd(own_study({"S1": ["dog"], "S2": ["", "idk"]}), item="disputed")
    assert set(few.table["item"]) == {"S1"}
    assert "Nothing that is a word was said in S2." in few.text
    with pytest.raises(InputError, match="no context with an answer that is a word"):
        tvd(own_study({"S1": ["dog"], "S2": ["", "idk"]}), item="S2")


@pytest.mark.parametrize(
    ("item", "found"),
    [("S2", ["S2"]), (["S3", "S1"], ["S3", "S1"]), ("1:2", ["S2"]), ("1", ["S1", "S2", "S3"]), (["S2", "1:2"], ["S2"])],
)
def test_contexts_are_named_by_their_own_ids(item: Any, found: list[str]) -> None:
    result = tvd(own_study(), item=item)
    assert list(dict.fromkeys(result.table["item"])) == found
    assert result.dataset["item"].to_numpy().tolist() == result.table["item"].tolist()


SAME = {"A": ["dog", "cat"], "B": ["dog", "cat"]}


@pytest.mark.parametrize(
    "drawn", [{"A": ["dog"]}, {"A": ["?"], "B": ["?"]}, {"C": ["dog"]}], ids=["one", "junk", "other"]
)
def test_a_model_with_too_few_contexts_is_left_out_and_named(drawn: dict[str, list[str]]) -> None:
    study = own_study({**SAME, "C": ["emu"]}, model=drawn)
    result = tvd(study, **NO_FIT)
    assert result.table["player"].tolist() == ["half_of_people"]
    assert "model 'lm': has " in result.warnings[0]
    assert "at least 2 are needed; left out" in result.warnings[0]
    assert not [name for name in result.tables["items"] if name.endswith("_lm")]
    for experiment, settings in ((improve, {}), (tvd, {"n": [1]})):
        with pytest.raises(InputError, match=r"model 'lm': has .* at least 2 are needed|needs at least"):
            experiment(study, **settings)
