"""Where words of a text begin and end, in every script: without spaces between words by ICU (extra ``words``)."""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import Any, NamedTuple

from shannon_game.estimators.errors import InputError, require_packages

_UNSPACED = {
    "Thai": "\u0e00-\u0e7f",
    "Lao": "\u0e80-\u0eff",
    "Burmese": "\u1000-\u109f",
    "Khmer": "\u1780-\u17ff",
    "Japanese": "\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f",
    "Chinese": "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd",
}
"""Scripts that write no space between words, and their characters."""
_ANY_UNSPACED = re.compile(f"[{''.join(_UNSPACED.values())}]")


class WordSpan(NamedTuple):
    """A word in a text, in characters, with its punctuation."""

    start: int
    stop: int
    is_spaced: bool
    """White space, or the text's end, stands after words of its script."""


def has_unspaced(text: str) -> bool:
    """Whether a text has characters of a script that writes no space between words."""
    return _ANY_UNSPACED.search(text) is not None


def word_spans(text: str, *, boundaries: str = "script") -> list[WordSpan]:
    """Find the words of a text: between white space, and by ICU's dictionaries in scripts without spaces.

    With ``boundaries="spaces"`` words stand between white space in every script.
    """
    if boundaries == "spaces" or not has_unspaced(text):
        return [WordSpan(*found.span(), True) for found in re.finditer(r"\S+", text)]
    spans: list[WordSpan] = []
    for found in re.finditer(r"\S+", text):
        if not has_unspaced(found[0]):
            spans.append(WordSpan(found.start(), found.end(), is_spaced=True))
        else:
            _require_icu(found[0])
            spans += (WordSpan(found.start() + a, found.start() + b, is_spaced=False) for a, b in _unspaced(found[0]))
    return spans


def _require_icu(piece: str) -> None:
    try:
        require_packages(("icu",), "words")
    except InputError as error:
        script = next(name for name, own in _UNSPACED.items() if re.search(f"[{own}]", piece))
        problem = f"has {script} ({piece[:10]!r}), whose words ICU finds: {error}; or cut the words by spaces yourself"
        raise InputError(f"{problem} and set boundaries=spaces", field="text") from None


def _unspaced(piece: str) -> list[tuple[int, int]]:
    """Words of a piece, with the punctuation after them and the opening brackets before them."""
    words: list[tuple[int, int]] = []
    at, is_open = 0, False
    for part in word_boundaries(piece):
        start, at = at, at + len(part)
        has_letter = any(unicodedata.category(character)[0] in "LMN" for character in part)
        opens = unicodedata.category(part[0]) in ("Ps", "Pi")
        if words and (is_open or not (has_letter or opens)):
            words[-1] = (words[-1][0], at)
        else:
            words.append((start, at))
        # what opens, and whatever stands before the first word, is of the word that follows
        is_open = not has_letter and (opens or is_open or words[0][0] == start)
    return words


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
def _icu() -> Any:
    require_packages(("icu",), "words", source="word rules", field="boundaries")
    import icu  # noqa: PLC0415 - an optional extra

    return icu
