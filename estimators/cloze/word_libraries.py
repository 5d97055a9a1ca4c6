"""Words of languages without spaces, and lemmas: what other libraries do for the word rules (extra ``words``)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from shannon_game.estimators.errors import InputError, require_packages


def word_boundaries(text: str) -> list[str]:
    """Cut a text at ends of words by Unicode's library ICU: by dictionaries in Chinese, Japanese, Thai, Lao."""
    icu = _icu()
    # ICU counts UTF-16 units, as its own strings do
    units = icu.UnicodeString(text)
    boundaries = icu.BreakIterator.createWordInstance(icu.Locale.getRoot())
    boundaries.setText(units)
    pieces, start = [], boundaries.first()
    for end in boundaries:
        pieces.append(str(units[start:end]))
        start = end
    return pieces


@cache
def lemmatizer(languages: tuple[str, ...]) -> Callable[[str], str]:
    """Give what makes lemmas of words, by simplemma's tables; a word that they lack stays as it is."""
    require_packages(("simplemma",), "words", source="word rules", field="lemmas")
    import simplemma  # noqa: PLC0415 - an optional extra

    try:
        simplemma.lemmatize("a", lang=languages)
    except (TypeError, ValueError) as error:
        problem = f"is {', '.join(languages)}, one unknown to simplemma ({error}); give codes such as en, de, fr"
        raise InputError(problem, source="word rules", field="lemmas") from error

    @cache
    def lemma(word: str) -> str:
        return " ".join(str(simplemma.lemmatize(piece, lang=languages)) for piece in word.split(" "))

    return lemma


@cache
def _icu() -> Any:
    require_packages(("icu",), "words", source="word rules", field="boundaries")
    import icu  # noqa: PLC0415 - an optional extra

    return icu
