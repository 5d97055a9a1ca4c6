"""Prompts: a game's question in words, as a language model is asked it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from pydantic import model_validator

from shannon_game.estimators.errors import InputError
from shannon_game.inference.settings import Group, Text

PERCENTS = (99, 90, 80, 70, 60, 50, 40, 30, 20, 10, 1)
"""Probabilities that can be given, as the game's page shows them."""

_SIGNS = str.maketrans({" ": "·", "\n": "↵", "\t": "⇥"})
_PLACE = re.compile(r"\{(context|a|b|question|n)\}")
_NEEDED = {
    "percent": ("context", "a", "b"),
    "option": ("context", "a", "b"),
    "word": ("context",),
    "words": ("context",),
}

_GAME = """\
You see a piece of a text and two tokens, A and B. A token is a word, a part of one, or a sign; a dot (·) stands for a \
space and an arrow (↵) for a line break. One of the two came next in the text. A language model chose the other one. \
"""


@dataclass(frozen=True)
class Question:
    """What a model is asked."""

    system: str
    user: str
    draw: int = 0


class PromptSettings(Group):
    """Texts of the questions. ``{context}``, ``{a}``, ``{b}``, ``{question}`` and ``{n}`` are filled in."""

    name: Text = "game"
    """What results call it."""
    system: str = "You play a game about texts. Give the answer that is asked for and nothing else."
    """What the system says, before every question; '' for nothing."""
    percent: str = (
        _GAME
        + """\
Say how probable it is that A came next: 99%, 90%, 80%, 70%, 60%, 50%, 40%, 30%, 20%, 10% or 1%. Answer with one of \
these eleven values.

Text: {context}

A: {a}
B: {b}
{question}"""
    )
    """Asks for one of the game's eleven values."""
    percent_question: str = "How probable is it that A came next?"
    """Its {question}; on a page that checks attention, what the page says in its place."""
    option: str = (
        _GAME
        + """\
Answer with A or B.

Text: {context}

A: {a}
B: {b}
Which of the two came next?"""
    )
    """Asks for A or B, whose probabilities as first token are the answer."""
    word: str = """\
You see the beginning of a text. Which word or sign comes next? Answer with this one word or sign.

Text: {context}"""
    """Asks for the next word."""
    words: str = """\
You see the beginning of a text. Which {n} words could come next? Answer with these words, one a line.

Text: {context}"""
    """Asks for a list of {n} words."""

    @model_validator(mode="after")
    def _has_its_places(self) -> PromptSettings:
        if self.name != type(self).model_fields["name"].default and self.model_fields_set <= {"name"}:
            raise InputError(
                f"is {self.name!r}, and none of its texts is given; prompt=NAME takes a file", field="name"
            )
        for field, places in _NEEDED.items():
            # what the system says may have the question in it
            text = self.system + getattr(self, field)
            missing = [place for place in places if f"{{{place}}}" not in text]
            if missing:
                raise InputError(f"has no {{{missing[0]}}}", source=f"prompt {self.name!r}", field=field)
        return self


def shown(token: str) -> str:
    """Write a token as the game's page shows it: its blanks as signs."""
    return token.translate(_SIGNS)


def percent_question(prompt: PromptSettings, context: str, a: str, b: str, *, question: str | None = None) -> Question:
    """Ask how probable it is that A came next."""
    values = _values(context, a, b) | {"question": prompt.percent_question if question is None else question}
    return _filled(prompt, prompt.percent, values)


def option_question(prompt: PromptSettings, context: str, a: str, b: str) -> Question:
    """Ask which of A and B came next; parameters as of :func:`percent_question`."""
    return _filled(prompt, prompt.option, _values(context, a, b))


def word_question(prompt: PromptSettings, context: str) -> Question:
    """Ask for the next word of a text."""
    return _filled(prompt, prompt.word, {"context": context})


def words_question(prompt: PromptSettings, context: str, n_words: int) -> Question:
    """Ask for a list of words that could come next."""
    return _filled(prompt, prompt.words, {"context": context, "n": str(n_words)})


def _values(context: str, a: str, b: str) -> dict[str, str]:
    return {"context": context, "a": shown(a), "b": shown(b)}


def _filled(prompt: PromptSettings, template: str, values: Mapping[str, str]) -> Question:
    """Fill in what a template asks for, once: a text that holds "{a}" stays as it is."""

    def filled(text: str) -> str:
        return _PLACE.sub(lambda found: values.get(found[1], found[0]), text)

    question = Question(filled(prompt.system), filled(template))
    if not (question.system or question.user):
        raise InputError("says nothing", source=f"prompt {prompt.name!r}")
    return replace(question, user=question.user.strip(" "))
