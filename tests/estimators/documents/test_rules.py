"""Texts with rules: a reader who knows nothing but the rules gets every answer, and none without them."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from shannon_game.estimators.documents.rules import COLOURS, rules_texts

_RULE = re.compile(r"Every (\w+) is (?:a )?(\w+)\.")


def read(text: str) -> str | None:
    """Follow the rules of a text from the thing that is asked for, slowly."""
    rules = dict(_RULE.findall(text))
    thing = re.search(r"The colour of the (\w+) is", text)[1]
    while thing in rules:
        thing = rules[thing]
    return thing if thing in COLOURS else None


@pytest.mark.parametrize("n_steps", [1, 2, 3])
def test_who_reads_the_rules_knows_the_answer(n_steps: int) -> None:
    for one in rules_texts(20, n_noise=[0, 7], n_rules=3, n_steps=n_steps, seed=n_steps):
        question = one.text.rsplit(" ", 1)[0]
        assert one.text.endswith(f" is {one.answer}")
        assert read(question) == (one.answer if one.has_rule else None)


def test_a_control_lacks_the_rules_and_nothing_else() -> None:
    texts = rules_texts(5, n_noise=[6], n_rules=3, n_steps=2, seed=3)
    for with_rules, without in zip(texts[::2], texts[1::2], strict=True):
        gone = Counter(with_rules.text.split(". ")) - Counter(without.text.split(". "))
        assert all(sentence.startswith("Every ") for sentence in gone)
        assert sum(gone.values()) == 2
        assert not Counter(without.text.split(". ")) - Counter(with_rules.text.split(". "))
        assert with_rules.answer == without.answer
