"""The cloze game: a text up to a word, and the player types the word that comes to mind."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any

from shannon_game.estimators.cloze import normalise_words
from shannon_game.experiments.collect.games.protocol import CHECK, Content, FormError, Reading, Steps
from shannon_game.experiments.collect.games.texts import WordGame

LONGEST_WORD = 60
JOINER = "\u2060"
"""Before a word: it goes on with the word that the text ends with, and no blank is between them."""


class Cloze(WordGame):
    """Type the word that comes to mind."""

    name = "cloze"
    needs_word = False
    has_right = False

    def read(self, content: Content, _layout: Content, _steps: Steps, form: Mapping[str, str], /) -> Reading:
        """Read ``word`` and keep it as it was typed."""
        word = typed_word(form.get("word", ""))
        return Reading({"word": word}, correct=same_word(word, content.get(CHECK, content["target"])))

    def feedback(self, content: Content, _layout: Content, _steps: Steps, value: Content, /) -> dict[str, Any]:
        """The word of the text, what was typed, and whether it is the same."""
        return {
            "target": content["target"],
            "word": value["word"],
            "correct": same_word(value["word"], content["target"]),
        }


def typed_word(text: str) -> str:
    """Check that somebody typed one word; blanks around it are kept."""
    parts = text.split()
    if not any(unicodedata.category(sign)[0] not in "CZ" for sign in text):
        # nothing that can be seen, such as a space of no width
        raise FormError("error.no_word")
    if len(parts) > 1:
        raise FormError("error.one_word")
    if len(text) > LONGEST_WORD:
        raise FormError("error.long_word", most=LONGEST_WORD)
    if any(unicodedata.category(sign) in ("Cc", "Cs") for sign in text):
        raise FormError("error.strange_word")
    return text


def same_word(word: str, other: str) -> bool:
    """Whether two strings are one word, whatever their case and the punctuation around them."""
    one, two = normalise_words([word, other], "clean").words.tolist()
    # signs alone are no word to the rules
    return bool(one == two) if one or two else word.strip() == other.strip()
