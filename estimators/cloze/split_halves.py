"""Split halves of people's answers: what a perfect model would look like at the sample size that people give."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.checks import check_numbers
from shannon_game.estimators.cloze.distributions import (
    Distributions,
    TopWords,
    WordCounts,
    probability_at,
    sums_by_context,
    top_words,
)
from shannon_game.estimators.display import Result


@dataclass(frozen=True, eq=False, repr=False)
class SplitHalves(Result):
    """Disjoint parts of each context's answers, split one or several times.

    Parameters
    ----------
    counts : WordCounts
        The answers that were split.
    first, second : ndarray of int, shape (split, row)
        How many of each row's answers are in the first and in the second part.
    first_seen : ndarray of int, shape (split, row), optional
        Where a row's word stands first in the sampled list: the paper's code breaks ties in the first half by it. None:
        ties stay ties.
    """

    made_by = "random_split_halves(counts, n_splits=..., rng=...)"

    counts: WordCounts
    first: NDArray[np.int64]
    second: NDArray[np.int64]
    first_seen: NDArray[np.int64] | None = None

    def without(self, word: int) -> SplitHalves:
        """Take a word (a blank answer) out of both parts after the split, as the paper's code does."""
        kept = self.counts.word != word
        seen = None if self.first_seen is None else self.first_seen[:, kept]
        rows = self.counts
        left = WordCounts(rows.context[kept], rows.word[kept], rows.count[kept], rows.n_contexts)
        return SplitHalves(left, self.first[:, kept], self.second[:, kept], seen)


def random_split_halves(
    counts: WordCounts, *, n_splits: int, rng: np.random.Generator, size: int | None = None
) -> SplitHalves:
    """Split each context's answers at random, every context and split for itself.

    A part has `size` answers, and none of a context with fewer than twice as many; by default half of the context's (of
    an odd number one answer is left out, another one in each split).

    Examples
    --------
    >>> halves = cloze.random_split_halves(cloze.examples.word_counts(), n_splits=2, rng=np.random.default_rng(0))
    >>> halves.first
    array([[1, 1, 0, 2],
           [1, 1, 1, 1]])
    """
    WordCounts.require(counts=counts)
    check_numbers({"n_splits": n_splits} | ({} if size is None else {"size": size}), at_least=1)
    answers = np.repeat(np.arange(len(counts.count)), counts.count)
    context = counts.context[answers]
    totals = counts.totals
    part = totals // 2 if size is None else np.where(totals >= 2 * size, size, 0)
    starts = np.cumsum(totals) - totals
    rank = np.arange(len(answers)) - starts[context]
    which = np.where(rank < part[context], 0, np.where(rank < 2 * part[context], 1, 2))
    n_rows = len(counts.count)
    parts = np.empty((2, n_splits, n_rows), dtype=np.int64)
    for split in range(n_splits):
        # a shuffle within contexts: sort by context, then by noise
        shuffled = answers[np.lexsort((rng.random(len(answers)), context))]
        for side in (0, 1):
            parts[side, split] = np.bincount(shuffled[which == side], minlength=n_rows)
    return SplitHalves(counts, parts[0], parts[1])


def tvd_between_split_halves(halves: SplitHalves) -> FloatArray:
    """TVD between the two halves of people, (split, context): the human-human baseline; NaN where a part has no answer.

    Examples
    --------
    >>> halves = cloze.random_split_halves(cloze.examples.word_counts(), n_splits=2, rng=np.random.default_rng(0))
    >>> cloze.tvd_between_split_halves(halves)
    array([[0.5, 1. ],
           [0.5, 0. ]])
    """
    SplitHalves.require(halves=halves)
    p, q = (_normalised(halves, part) for part in (halves.first, halves.second))
    return _half_sums(halves.counts, np.abs(p - q))


def tvd_to_split_halves(
    q: Distributions,
    halves: SplitHalves,
    which: Literal["first", "second"] = "first",
    *,
    remaining: FloatArray | None = None,
) -> FloatArray:
    """TVD of distributions over the same contexts and one half of people, (split, context); NaN without an answer.

    `remaining`, (context,), is the mass of `q` on words that no one answered; what is missing to one by default.

    Examples
    --------
    >>> halves = cloze.random_split_halves(cloze.examples.word_counts(), n_splits=2, rng=np.random.default_rng(0))
    >>> cloze.tvd_to_split_halves(cloze.relative_frequencies(cloze.examples.word_counts()), halves)
    array([[0.25, 0.5 ],
           [0.25, 0.  ]])
    """
    Distributions.require(q=q)
    SplitHalves.require(halves=halves)
    p = _normalised(halves, getattr(halves, which))
    at_rows = probability_at(q, halves.counts)
    rest = remaining
    if rest is None:
        listed = np.bincount(halves.counts.context, weights=at_rows, minlength=halves.counts.n_contexts)
        rest = np.where(q.mass > 0, np.maximum(1 - listed, 0), np.nan)
    return _half_sums(halves.counts, np.abs(p - at_rows)) + rest / 2


def split_half_top_words(halves: SplitHalves, which: Literal["first", "second"] = "first") -> list[TopWords]:
    """Most frequent word of one half in each context, for every split."""
    part = getattr(halves, which)
    tops = []
    for split in range(len(part)):
        present = part[split] > 0
        rows = np.flatnonzero(present)
        if which == "first" and halves.first_seen is not None:
            rows = rows[np.lexsort((halves.first_seen[split][rows], halves.counts.context[rows]))]
        one = WordCounts(
            halves.counts.context[rows], halves.counts.word[rows], part[split][rows], halves.counts.n_contexts
        )
        tops.append(top_words(one))
    return tops


def _normalised(halves: SplitHalves, part: NDArray[np.int64]) -> FloatArray:
    totals = sums_by_context(halves.counts.context, part, halves.counts.n_contexts)[:, halves.counts.context]
    shares: FloatArray = np.divide(part, totals, out=np.full(part.shape, np.nan), where=totals > 0)
    return shares


def _half_sums(counts: WordCounts, values: FloatArray) -> FloatArray:
    halves: FloatArray = np.where(
        counts.totals > 0, sums_by_context(counts.context, values, counts.n_contexts) / 2, np.nan
    )
    return halves
