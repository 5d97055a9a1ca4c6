"""The part of each document that several models can score to the character, and its units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shannon_game.inference.lm.alignment import shared_places

__all__ = ["Span", "inside", "shared_span", "units_of"]


@dataclass(frozen=True)
class Span:
    """A part of a text, in UTF-8 bytes.

    Parameters
    ----------
    start, stop : int
    """

    start: int
    stop: int

    def of(self, text: str) -> bytes:
        """Bytes of the part."""
        return text.encode()[self.start : self.stop]


def shared_span(text: str, places: Sequence[NDArray[np.int64] | None]) -> Span | None:
    """Find the characters from the first to the last place at which every model has the end of a token.

    Examples
    --------
    >>> import numpy as np
    >>> shared_span("The cat", [np.array([3, 7]), np.array([0, 1, 2, 3, 5, 7])])
    Span(start=3, stop=7)
    """
    known = [its for its in places if its is not None]
    if len(known) < len(places):
        return None
    shared = shared_places(text, known)
    return Span(int(shared[0]), int(shared[-1])) if len(shared) > 1 else None


def inside(places: NDArray[np.int64], span: Span) -> NDArray[np.bool_]:
    """Which tokens lie in a span; a space that a tokenizer puts before a text lies at its beginning."""
    return (places[:-1] >= span.start) & (places[1:] <= span.stop)


def units_of(content: bytes) -> tuple[int, int, int]:
    """Count the words (between spaces), characters and bytes of a part of a text.

    Examples
    --------
    >>> units_of(" né à".encode())
    (2, 5, 7)
    """
    text = content.decode(errors="replace")
    # a character of which the part holds the beginning alone is none of it
    n_characters = sum(byte & 0xC0 != 0x80 for byte in content)
    return len(text.split()), n_characters, len(content)
