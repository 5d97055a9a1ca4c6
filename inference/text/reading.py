"""What an answer in text says: read strictly, and None where it says nothing that was asked for."""

from __future__ import annotations

import re
from collections.abc import Sequence

from shannon_game.inference.text.prompts import PERCENTS

_PERCENT = re.compile(r"([0-9]{1,2})\s?%?\.?")
BLANKS = str.maketrans({"·": " ", "↵": "\n", "⇥": "\t"})
_LISTED = re.compile(r"^([0-9]+[.)]|[-*•])\s*")
_QUOTES = ('""', "''", "“”", "\N{LEFT SINGLE QUOTATION MARK}\N{RIGHT SINGLE QUOTATION MARK}", "``", "«»")


def read_percent(text: str, *, finished: bool = True, percents: Sequence[int] = PERCENTS) -> int | None:
    """Read which of the values that can be given an answer gives."""
    found = _PERCENT.fullmatch(_first_line(text, finished=finished))
    return int(found[1]) if found and int(found[1]) in percents else None


def read_word(text: str, *, finished: bool = True) -> str | None:
    """Read the one word or sign that an answer gives, without blanks and quotes around it."""
    word = _first_line(text, finished=finished).translate(BLANKS).strip()
    if len(word) > 2 and word[0] + word[-1] in _QUOTES:
        word = word[1:-1].strip()
    return word if word and len(word.split()) == 1 else None


def read_words(text: str) -> list[str]:
    """Read a list of words, one a line or between commas, with or without numbers or dashes before them."""
    parts = (_LISTED.sub("", part.strip()) for part in re.split(r"[\n,]", text))
    return [word for part in parts if (word := read_word(part)) is not None]


def _first_line(text: str, *, finished: bool) -> str:
    """Give the first line that is not empty; of an answer that was cut off only a line that was ended."""
    lines = text.strip(" ").split("\n")
    whole = lines if finished else lines[:-1]
    return next((line.strip() for line in whole if line.strip()), "")
