"""Where the tokens of several models begin and end in one text, and which places all of them share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from shannon_game.inference.lm.language_model import LanguageModel
from shannon_game.inference.lm.vocabulary import vocabulary


def token_places(model: LanguageModel, text: str, tokens: Sequence[int]) -> NDArray[np.int64] | None:
    """Find where the tokens of a text begin and end, in UTF-8 bytes of the text."""
    contents = [vocabulary(model).token_bytes[token] for token in tokens]
    written, wanted = b"".join(contents), text.encode()
    n_added = len(written) - len(wanted)
    if n_added not in (0, 1) or written != b" " * n_added + wanted:
        return None
    ends = np.cumsum([0, *(len(content) for content in contents)], dtype=np.int64) - n_added
    places: NDArray[np.int64] = np.maximum(ends, 0)
    return places


def character_places(text: str) -> NDArray[np.int64]:
    """Places between the characters of a text, its beginning and its end among them, in UTF-8 bytes."""
    return np.cumsum([0, *(len(character.encode()) for character in text)])


def shared_places(text: str, places: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Find the places of a text at which every model has the end of a token, between two characters."""
    shared = character_places(text)
    for its in places:
        shared = np.intersect1d(shared, its)
    return shared
