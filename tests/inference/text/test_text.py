"""Prompts are filled in once, and answers are read strictly."""

from __future__ import annotations

import pytest

from shannon_game.inference.text.prompts import PromptSettings, percent_question
from shannon_game.inference.text.reading import read_percent, read_word


def test_a_text_that_looks_like_a_place_stays_as_it_is() -> None:
    prompt = PromptSettings(name="mine", percent="{context}|{a}|{b}|{question}", percent_question="Which {a}?")
    question = percent_question(prompt, "see {a} and {question}", " {b}", "x\n")
    assert question.user == "see {a} and {question}|·{b}|x↵|Which {a}?"
    assert percent_question(prompt, "c", "a", "b", question="Choose 99%.").user == "c|a|b|Choose 99%."


@pytest.mark.parametrize(
    ("text", "finished", "percent"),
    [
        ("90%", True, 90),
        ("\n\n1%\nBecause", True, 1),
        ("50%\nand", False, 50),
        # cut off, a 1 may be the beginning of 10
        ("1", False, None),
        ("95%", True, None),
        ("90% or 80%", True, None),
        ("-90%", True, None),
        ("٩٠%", True, None),
    ],
)
def test_percentages_are_read_strictly(text: str, finished: bool, percent: int | None) -> None:
    assert read_percent(text, finished=finished) == percent


@pytest.mark.parametrize(
    ("text", "finished", "word"),
    [
        (" the", True, "the"),
        ('"', True, '"'),
        ("the\nThat is", True, "the"),
        ("the cat", True, None),
        ("", True, None),
        ("↵", True, None),
        ("thereu", False, None),
    ],
)
def test_words_are_read_strictly(text: str, finished: bool, word: str | None) -> None:
    assert read_word(text, finished=finished) == word
