"""Lemmas of words (extra ``words``)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from shannon_game.estimators.errors import InputError, require_packages


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
