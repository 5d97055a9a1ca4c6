"""Where the tokens of several models begin and end in one text, and which places all of them share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from shannon_game.inference.lm.language_model import LanguageModel
from shannon_game.inference.lm.vocabulary import vocabulary, writes_bytes


def token_places(model: LanguageModel, text: str, tokens: Sequence[int]) -> NDArray[np.int64] | None:
    """Find where the tokens of a text begin and end, in UTF-8 bytes of the text; None if they are not its tokens.

    Of a text that the tokenizer changes, such as by NFKC, places are those that the tokenizer itself gives.
    """
    exact = written_places(model, text, tokens)
    if exact is not None:
        return exact
    encoded = model.tokenizer(
        text, add_special_tokens=False, split_special_tokens=True, return_offsets_mapping=True, verbose=False
    )
    return _of_offsets(text, encoded["offset_mapping"]) if encoded["input_ids"] == list(tokens) else None


def written_places(model: LanguageModel, text: str, tokens: Sequence[int]) -> NDArray[np.int64] | None:
    """Places of tokens that write a text byte for byte, but for a space before it; None where they do not."""
    if not writes_bytes(model):
        return None
    token_bytes = vocabulary(model).token_bytes
    contents = [token_bytes[token] for token in tokens]
    written, wanted = b"".join(contents), text.encode()
    n_added = len(written) - len(wanted)
    if n_added not in (0, 1) or written != b" " * n_added + wanted:
        return None
    ends = np.cumsum([0, *(len(content) for content in contents)], dtype=np.int64) - n_added
    places: NDArray[np.int64] = np.maximum(ends, 0)
    return places


def _of_offsets(text: str, offsets: Sequence[tuple[int, int]]) -> NDArray[np.int64]:
    """Places by first and last characters; what the tokenizer left out after a token is of it, up to white space."""
    begins, places = character_places(text).tolist(), [0]
    for (_, stop), (following, _) in zip(offsets, [*offsets[1:], (len(text), 0)], strict=True):
        if following < stop:
            # a character that the next token goes on writing does not end here
            places.append(min(begins[following] + 1, begins[following + 1] - 1))
        else:
            left_out = text[stop:following]
            n_own = len(left_out.split()[0]) if left_out[:1].strip() else 0
            places.append(begins[stop + n_own])
    return np.maximum.accumulate(places)


def character_places(text: str) -> NDArray[np.int64]:
    """Places between the characters of a text, its beginning and its end among them, in UTF-8 bytes."""
    content = text.encode()
    is_first = (np.frombuffer(content, dtype=np.uint8) & 0xC0) != 0x80
    return np.append(np.flatnonzero(is_first), len(content))


def shared_places(text: str, places: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Find the places of a text at which every model has the end of a token, between two characters."""
    shared = character_places(text)
    for its in places:
        shared = np.intersect1d(shared, its)
    return shared
