"""What a newcomer passes first: a table or a list where a study, counts or terms belong."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from shannon_game.estimators import cloze, comparison, documents, guesses, rankings
from shannon_game.estimators.errors import InputError
from tests.estimators.comparison.comparison_studies import small_study
from tests.public_names import public_functions

MAKERS = {
    comparison: "comparison_study(answers, candidates) makes one",
    cloze: "cloze_study(df) makes one",
    guesses: "guess_study(df) makes one",
    rankings: "ranking_study(df) makes one",
    documents: "study=texts makes one",
}
# estimates of several studies are no documents, and stand beside them
OF_THEIR_OWN = {"validate_estimates_study": "study=estimates makes one"}
TAKES_STUDY = [
    (getattr(kind, name), OF_THEIR_OWN.get(name, maker))
    for kind, maker in MAKERS.items()
    for name, function in public_functions(kind).items()
    if "study" in inspect.signature(function).parameters
]
OTHERS = {"n": 5, "reference": "reference"}


def call(function: Callable[..., Any], study: object) -> None:
    parameters = inspect.signature(function).parameters.values()
    others = {p.name: OTHERS.get(p.name) for p in parameters if p.default is p.empty and p.name != "study"}
    function(study, **others)


@pytest.mark.parametrize(
    "study", [pd.DataFrame({"report": [0.5]}), [0.5], pd.Series([0.5])], ids=lambda s: type(s).__name__
)
@pytest.mark.parametrize(("function", "maker"), TAKES_STUDY, ids=lambda value: getattr(value, "__name__", ""))
def test_a_table_or_list_is_no_study(function: Callable[..., Any], maker: str, study: object) -> None:
    with pytest.raises(InputError, match="study: is a") as raised:
        call(function, study)
    if function.__name__ != "response_positions":
        assert f"is a {type(study).__name__}, should be an xarray.Dataset; " in str(raised.value)
        assert maker in str(raised.value)


def test_a_study_of_another_kind_is_no_study_of_this_one() -> None:
    with pytest.raises(InputError, match=r"study: is no cloze study, without text_id, .*; cloze_study\(df\) makes one"):
        cloze.study_words(small_study(), human="clean", model="clean", corpus="clean")
    with pytest.raises(InputError, match="study: is no comparison study, without item, context"):
        comparison.estimate_perplexity(small_study().drop_dims("item"))
