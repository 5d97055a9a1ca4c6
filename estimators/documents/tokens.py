"""Tokens of texts: which are whole words, and which a reader can see."""

from __future__ import annotations

__all__ = ["is_visible_token", "is_word_token"]


def is_word_token(token: str) -> bool:
    """Whether a token is a word token: a space, then one letter or more and nothing else.

    Parameters
    ----------
    token : str

    Returns
    -------
    bool

    Examples
    --------
    >>> from estimators import comparison
    >>> comparison.is_word_token(" cat"), comparison.is_word_token("cat"), comparison.is_word_token(" 4th")
    (True, False, False)
    """
    return len(token) > 1 and token[0] == " " and token[1:].isalpha()


def is_visible_token(token: str) -> bool:
    r"""Whether a player can see a token for what it is: not empty, no line break, no part of a character (U+FFFD).

    Parameters
    ----------
    token : str

    Returns
    -------
    bool

    Examples
    --------
    >>> from estimators import guesses
    >>> guesses.is_visible_token(" cat"), guesses.is_visible_token("\n")
    (True, False)
    """
    return token != "" and "\n" not in token and "\ufffd" not in token
