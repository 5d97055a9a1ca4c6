"""Overlap of texts: by hand, and properties."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from shannon_game.estimators.documents import ngram_overlap

WORDS = st.lists(st.sampled_from("abcd"), max_size=20).map(" ".join)


def slow(text: str, training: list[str], n: int) -> tuple[int, int]:
    words = text.split()
    own = {" ".join(words[i : i + n]) for i in range(len(words) - n + 1)}
    padded = [f" {other} " for other in training]
    return len(own), sum(any(f" {one} " in other for other in padded) for one in own)


@given(WORDS, st.lists(WORDS, max_size=4), st.integers(1, 4))
def test_against_a_search_of_strings(text: str, training: list[str], n: int) -> None:
    found = ngram_overlap([text], training, n=n)
    assert (int(found.n_ngrams[0]), int(found.n_shared[0])) == slow(text, training, n)


def test_by_hand() -> None:
    found = ngram_overlap(["One two, three. FOUR", "five six", "one two"], ["zero one two three", "x"], n=3)
    assert found.n_ngrams.tolist() == [2, 0, 0]
    assert found.n_shared.tolist() == [1, 0, 0]
    np.testing.assert_array_equal(found.share, [0.5, np.nan, np.nan])
