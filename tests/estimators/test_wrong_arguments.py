"""What a newcomer passes first: a table or a list where a study belongs."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from shannon_game.estimators import bets, cloze, comparison, documents, guesses, rankings
from shannon_game.estimators.errors import InputError
from tests.estimators.comparison.comparison_studies import small_study
from tests.public_names import public_functions

TAKES_STUDY = [
    function
    for kind in (bets, cloze, comparison, documents, guesses, rankings)
    for function in public_functions(kind).values()
    if "study" in inspect.signature(function).parameters
]
OTHERS = {"n": 5, "reference": "reference"}


@pytest.mark.parametrize("study", [pd.DataFrame({"report": [0.5]}), [0.5]], ids=["table", "list"])
@pytest.mark.parametrize("function", TAKES_STUDY, ids=lambda function: function.__name__)
def test_a_table_or_list_is_no_study(function: Callable[..., Any], study: object) -> None:
    parameters = inspect.signature(function).parameters.values()
    others = {p.name: OTHERS.get(p.name) for p in parameters if p.default is p.empty and p.name != "study"}
    with pytest.raises(InputError, match=f"study: is a {type(study).__name__}, should be a"):
        function(study, **others)


def test_a_study_of_another_kind_is_no_study_of_this_one() -> None:
    with pytest.raises(InputError, match=r"kind: is 'comparison', should be 'cloze'; cloze_study\(df\) makes one"):
        cloze.study_words(small_study(), human="clean", model="clean", corpus="clean")
