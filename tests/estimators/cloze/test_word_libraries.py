"""Words of languages without spaces, and lemmas."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import unicodedata

import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from shannon_game import cloze_study, tvd
from shannon_game.estimators import errors
from shannon_game.estimators.cloze import normalise_words, word_rules
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.word_spans import word_boundaries

needs_words = pytest.mark.skipif(
    importlib.util.find_spec("icu") is None or importlib.util.find_spec("simplemma") is None,
    reason="the extra words is not installed",
)


@needs_words
@pytest.mark.parametrize(
    ("text", "first", "joined"),
    [
        ("\u6211\u559c\u6b22\u732b\uff0c\u56e0\u4e3a", "\u6211", "\u6211 \u559c\u6b22 \u732b \u56e0\u4e3a"),
        ("\u559c\u6b22\u3002", "\u559c\u6b22", "\u559c\u6b22"),
        ("\u732b\u304c\u597d\u304d\u3067\u3059", "\u732b", "\u732b \u304c \u597d\u304d \u3067\u3059"),
        (
            "\u0e09\u0e31\u0e19\u0e0a\u0e2d\u0e1a\u0e41\u0e21\u0e27",
            "\u0e09\u0e31\u0e19",
            "\u0e09\u0e31\u0e19 \u0e0a\u0e2d\u0e1a \u0e41\u0e21\u0e27",
        ),
        ("Don't stop", "don't", "don't stop"),
    ],
)
def test_words_without_spaces(text: str, first: str, joined: str) -> None:
    found = normalise_words([text], word_rules("clean", {"boundaries": "icu"}))
    assert found.words[0] == first
    assert normalise_words([text], word_rules("clean", {"boundaries": "icu", "pieces": "join"})).words[0] == joined


@needs_words
@given(st.text(max_size=30))
def test_nothing_is_lost_at_the_boundaries(text: str) -> None:
    # characters outside the Basic Multilingual Plane are two units to ICU; a lone surrogate is no text
    assume(not any(unicodedata.category(character) == "Cs" for character in text))
    assert "".join(word_boundaries(text)) == text
    assert "".join(word_boundaries(f"\U00020bb7\u91ce{text}")) == f"\U00020bb7\u91ce{text}"


@needs_words
def test_lemmas_make_forms_of_a_word_one() -> None:
    found = normalise_words(["Cats", "cat", "went", "zzyx", "?"], word_rules("clean", {"lemmas": ("en",)}))
    assert found.words.tolist() == ["cat", "cat", "go", "zzyx", ""]
    german = word_rules("clean", {"lemmas": ["de"], "case": "keep"})
    assert normalise_words(["H\u00e4user"], german).words.tolist() == ["Haus"]
    with pytest.raises(InputError, match="lemmas: is xx"):
        normalise_words(["cat"], word_rules("clean", {"lemmas": ("xx",)}))


@needs_words
def test_people_who_write_chinese_agree_with_models_that_go_on() -> None:
    rows = []
    for number in range(1, 4):
        place = {"text_id": f"t{number}", "word_num": 1, "context": f"\u6211{number}", "target": "\u559c\u6b22"}
        rows.append({**place, "response": "\u559c\u6b22", "count": 10, "model": None})
        rows.append({**place, "response": "\u559c\u6b22\u732b\uff0c\u56e0\u4e3a", "count": 10, "model": "m"})
    study = cloze_study(pd.DataFrame(rows))
    distance = {}
    for boundaries in ("spaces", "icu"):
        table = tvd(study, n_splits=2, words={"boundaries": boundaries}).table.set_index("player")
        distance[boundaries] = float(table.filter(like="tvd").loc["m"].iloc[0])
    assert distance == {"spaces": 1, "icu": 0}


@pytest.mark.parametrize(
    ("changes", "missing"), [({"boundaries": "icu"}, "icu"), ({"lemmas": ("en", "de", "fr")}, "simplemma")]
)
def test_without_the_extra_it_is_named(
    changes: dict[str, object], missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def find(name: str) -> importlib.machinery.ModuleSpec | None:
        return None if name in {"icu", "simplemma"} else importlib.util.find_spec(name)

    monkeypatch.setattr(errors, "find_spec", find)
    from shannon_game.estimators import word_spans
    from shannon_game.estimators.cloze.words import lemmatizer

    word_spans._icu.cache_clear()
    lemmatizer.cache_clear()
    with pytest.raises(InputError, match=rf"{missing} not installed; .*\[words\]"):
        normalise_words(["cat"], word_rules("clean", changes))
