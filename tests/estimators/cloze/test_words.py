"""Strings become comparable words."""

from __future__ import annotations

import pytest

from shannon_game.estimators.cloze.words import FAILED, WORD_RULES, normalise_words, word_rules


@pytest.mark.parametrize(
    ("rules", "text", "word"),
    [
        ("clean", "The", "the"),
        ("clean", '"Two', "two"),
        ("clean", "don\u2019t", "don't"),
        ("clean", "  of the", "of"),
        ("clean", "cafe\u0301", "caf\u00e9"),
        ("clean", "90%", "90"),
        ("provo", "won't", "will"),
        ("provo", "girls'", "girls"),
        ("provo", "women\u00d5s", "women"),
        ("provo", "anti-gravity", "antigravity"),
        ("provo", "\u00d1 however", "however"),
        ("provo", "x\u00d1y", "x\u00f1y"),
        ("provo", "its", "its"),
        ("provo", "don't know", "do"),
        ("none", "don't know", "don't know"),
        ("clean", "a\tb c", "a"),
    ],
)
def test_words(rules: str, text: str, word: str) -> None:
    done = normalise_words([text], WORD_RULES[rules])
    assert done.words.tolist() == [word]
    assert not done.missing[0]


@pytest.mark.parametrize(
    ("rules", "text", "reason"),
    [
        ("clean", "", "blank"),
        ("clean", " \t", "blank"),
        ("clean", "-----", "junk"),
        ("clean", "?", "junk"),
        ("clean", FAILED, "failed"),
        ("provo", "**45;42;toolong", "junk"),
        ("clean", "I don\u2019t  KNOW.", "no answer"),
        ("clean", "Weiss nicht!", "no answer"),
    ],
)
def test_no_words(rules: str, text: str, reason: str) -> None:
    done = normalise_words([text], WORD_RULES[rules])
    assert done.words.tolist() == [""]
    assert done.reason.tolist() == [reason]


def test_rules_can_be_changed_and_say_so() -> None:
    assert word_rules("provo") is word_rules("provo", {}) is WORD_RULES["provo"]
    rules = word_rules("clean", {"contractions": "join", "pieces": "join"})
    assert rules.name == "clean, changed"
    # a config gives lists; rules are compared and hashed
    listed = word_rules("clean", {"drop_matching": ["^x"]})
    assert hash(listed) == hash(word_rules("clean", {"drop_matching": ("^x",)}))
    assert normalise_words(["xa", "a"], listed).reason.tolist() == ["junk", ""]
    assert normalise_words(["Don't care."], rules).words.tolist() == ["dont care"]
    assert normalise_words(["two words"], word_rules("clean", {"pieces": "drop"})).missing.tolist() == [True]
    hosts = word_rules("clean", {"contractions": "host", "pieces": "join"})
    assert normalise_words(["don't  you're"], hosts).words.tolist() == ["do you"]
    apart = word_rules("clean", {"contractions": "host", "pieces": "keep"})
    assert normalise_words(["don't  you're"], apart).words.tolist() == ["do  you"]
    asks = word_rules("clean", {"punctuation": "keep"})
    assert normalise_words(["?", "why?"], asks).reason.tolist() == ["junk", ""]


@pytest.mark.parametrize(
    ("changes", "text", "word", "cut"),
    [
        ({}, "der Schnee", "der", True),
        ({}, "  Schnee ", "schnee", False),
        ({}, "\u2014 however", "however", False),
        ({"pieces": "join"}, "der Schnee", "der schnee", False),
        ({"pieces": "drop"}, "der Schnee", "", False),
        ({"non_answers": ["der Schnee"]}, "Der  schnee", "", False),
        ({"non_answers": ["NA", "?"], "junk": "keep", "punctuation": "keep"}, "?", "", False),
    ],
)
def test_an_answer_of_several_words_says_so(changes: dict[str, object], text: str, word: str, cut: bool) -> None:
    done = normalise_words([text], word_rules("clean", changes))
    assert (done.words[0], bool(done.cut[0])) == (word, cut)
