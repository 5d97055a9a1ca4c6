"""Tokens of texts: which are whole words, which a reader can see, and of which class they are."""

from __future__ import annotations

TOKEN_CLASSES = ("word", "capital", "continuation", "number", "punctuation", "line break", "other")
"""Classes of :func:`token_class`."""


def is_word_token(token: str) -> bool:
    """Whether a token is a word token: a space, then one letter or more and nothing else."""
    return len(token) > 1 and token[0] == " " and token[1:].isalpha()


def is_visible_token(token: str) -> bool:
    """Whether a player can see a token for what it is: not empty, no line break, no part of a character (U+FFFD)."""
    return token != "" and "\n" not in token and "\ufffd" not in token


def token_class(token: str) -> str:
    r"""Give a token's class by its string: one of :data:`TOKEN_CLASSES`."""
    shown = token.strip(" ")
    if "\n" in token:
        return "line break"
    if not shown or "\ufffd" in token:
        return "other"
    first = shown[0]
    if first.isdigit():
        return "number"
    if first.isalpha():
        if first.isupper():
            return "capital"
        return "word" if token[0] == " " else "continuation"
    return "punctuation"
