"""What becomes of people's own answers and ids: nothing is lost without a word."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import pytest
import xarray as xr

from estimators.cloze import NON_ANSWERS
from estimators.layout import notes
from experiments import cloze_study, distributions, improve, tvd, tvd_sample_size

NO_FIT = {"bayes": {"n_contexts": None}}
ANSWERS = {
    "S1": ["Schnee", "der Schnee", "der Schnee", "wei\u00df nicht", "Regen"],
    "S2": ["the old house", "house", "house", "idk", ""],
    "S3": ["dog", "dog", "cat", "cat", "emu"],
}
MODEL = {"S1": ["schnee"] * 4, "S2": ["house", "home", "home", "old"], "S3": ["dog", "cat", "cat", "yak"]}


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
    assert "'der Schnee' becomes 'der' (2 x), 'the old house' becomes 'the' (1 x)" in text
    ((text, count),) = noted(study, "that are no word")
    assert count == 2
    whole = own_study(word_rules="none")
    assert not noted(whole, "of several words") + noted(whole, "that are no word")


def test_only_the_ten_most_frequent_are_listed() -> None:
    said = [f"a{at} b" for at in range(12) for _ in range(at + 1)]
    ((text, count),) = noted(own_study({"S1": said}), "of several words")
    assert count == len(said)
    assert text.count("becomes") == 10
    assert text.index("'a11 b' becomes 'a11' (12 x)") < text.index("'a2 b' becomes 'a2' (3 x)")
    assert text.endswith("and 2 more")


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
    result = distributions(own_study(), item="1", words=words)
    assert len(result.warnings) == (warned is not None)
    assert warned is None or result.warnings[0].startswith(warned)
    said = set(result.table["word"])
    assert {word} & {"der", "der schnee"} == said & {"der", "der schnee"} if word else "der" not in said


@pytest.mark.parametrize(
    ("experiment", "settings"),
    [(tvd, NO_FIT), (improve, {"n_replicates": 20}), (tvd_sample_size, {"n": [1, 2]})],
    ids=["tvd", "improve", "tvd_sample_size"],
)
def test_every_question_to_the_answers_warns(experiment: Any, settings: dict[str, Any]) -> None:
    study = own_study(model=MODEL)
    assert "several words" in experiment(study, **settings).warnings[0]


@pytest.mark.parametrize(("n_cut", "warned"), [(1, False), (2, True)])
def test_a_small_share_gives_no_warning(n_cut: int, warned: bool) -> None:
    people: Sequence[str] = ["the dog"] * n_cut + ["dog"] * (60 - n_cut)
    study = own_study({"S1": list(people), "S2": ["cat"] * 20})
    assert bool(tvd(study, **NO_FIT).warnings) is warned


def test_shares_are_added_up() -> None:
    table = pd.DataFrame({"context": ["A"] * 3, "response": ["the dog", "a dog", "dog"], "proportion": [0.4, 0.3, 0.3]})
    study = cloze_study(table)
    assert noted(study, "of several words")[0][1] == 1
    assert distributions(study, item="1:1").warnings[0].startswith("70.0% of people's answers")
