"""How much of some texts stands word for word in others, such as the training texts of a model."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.display import Result
from shannon_game.estimators.errors import InputError

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, eq=False, repr=False)
class NgramOverlap(Result):
    """Sequences of words of each text that stand in other texts too.

    Parameters
    ----------
    n_ngrams, n_shared : ndarray of int, shape (text,)
        Different sequences of n words of each text, and those of them that the training texts have.
    share : ndarray of float, shape (text,)
        ``n_shared / n_ngrams``; NaN for a text of fewer than n words.
    """

    n: int
    n_ngrams: NDArray[np.int64]
    n_shared: NDArray[np.int64]
    share: NDArray[np.float64]


def ngram_overlap(texts: Sequence[str], training_texts: Iterable[str], *, n: int = 13) -> NgramOverlap:
    """Count the sequences of n words of each text that stand in training texts.

    Words are runs of letters and digits, case apart. Of the training texts, which are read once, only what the texts
    have is kept, so that they may be many. With n = 13 Brown et al. (2020, appendix C) looked for test sets.

    Examples
    --------
    >>> documents.ngram_overlap(["a b c d"], ["b c d", "a b"], n=2).n_shared
    array([3])
    """
    if n < 1:
        raise InputError(f"is {n}, should be 1 or larger", field="n")
    if not len(texts):
        raise InputError("is empty, should hold a text or more", field="texts")
    found = [_ngrams(text, n) for text in texts]
    wanted = set().union(*found)
    there: set[tuple[str, ...]] = set()
    for text in training_texts:
        there |= wanted & _ngrams(text, n)
    n_ngrams = np.array([len(some) for some in found], dtype=np.int64)
    n_shared = np.array([len(some & there) for some in found], dtype=np.int64)
    share = np.full(len(found), np.nan)
    np.divide(n_shared, n_ngrams, out=share, where=n_ngrams > 0)
    return NgramOverlap(n=n, n_ngrams=n_ngrams, n_shared=n_shared, share=share)


def _ngrams(text: str, n: int) -> set[tuple[str, ...]]:
    words = _WORD.findall(text.lower())
    return set(zip(*(words[start:] for start in range(n)), strict=False))
