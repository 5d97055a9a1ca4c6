"""The strings that stand for one word once words are made comparable."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence


def word_forms(
    words: Iterable[str], seen: Sequence[str], normalise: Callable[[Sequence[str]], Sequence[str]], *, most: int
) -> dict[str, list[str]]:
    """Find strings that a model may write and that count as a given word."""
    wanted = dict.fromkeys(words)
    cases = [form for word in wanted for form in dict.fromkeys((word, word.capitalize(), word.upper()))]
    forms: dict[str, list[str]] = {word: [] for word in wanted}
    candidates = list(dict.fromkeys([*cases, *seen]))
    for form, word in zip(candidates, normalise(candidates), strict=True):
        if word in forms and len(forms[word]) < most:
            forms[word].append(form)
    return forms
