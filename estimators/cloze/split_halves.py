"""Split halves of people's answers: what a perfect model would look like at the sample size that people give."""

from __future__ import annotations

import functools
import random
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from estimators.cloze.distributions import Distributions, TopWords, WordCounts, probability_at, top_words
from estimators.display import Result
from estimators.errors import InputError

Floats = NDArray[np.float64]

__all__ = [
    "SplitHalves",
    "legacy_bootstrap_halves",
    "legacy_split_halves",
    "random_split_halves",
    "split_half_top_words",
    "tvd_between_split_halves",
    "tvd_to_split_halves",
]


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

    Examples
    --------
    >>> import numpy as np
    >>> from estimators import cloze
    >>> counts = cloze.count_words(context=[0, 0, 1, 1], word=[0, 1, 0, 2], count=[3, 1, 2, 2], n_contexts=2)
    >>> cloze.random_split_halves(counts, n_splits=2, rng=np.random.default_rng(0))
    SplitHalves(counts=WordCounts(...), first=int64[2, 4], second=int64[2, 4], first_seen=None)
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

    Parameters
    ----------
    counts : WordCounts
    n_splits : int
    rng : numpy.random.Generator
    size : int, optional
        Answers in each part; half of the context's by default (of an odd number one answer is left out, another
        one in each split). A context with fewer than twice as many answers gets none.

    Returns
    -------
    SplitHalves

    Raises
    ------
    InputError
        If `n_splits` or `size` is not positive.

    Examples
    --------
    >>> import numpy as np
    >>> from estimators import cloze
    >>> counts = cloze.count_words(context=[0, 0, 1, 1], word=[0, 1, 0, 2], count=[3, 1, 2, 2], n_contexts=2)
    >>> halves = cloze.random_split_halves(counts, n_splits=2, rng=np.random.default_rng(0))
    >>> halves.first
    array([[1, 1, 0, 2],
           [1, 1, 1, 1]])
    >>> halves.second
    array([[2, 0, 2, 0],
           [2, 0, 1, 1]])
    """
    WordCounts.require(counts=counts)
    if n_splits < 1 or (size is not None and size < 1):
        raise InputError(f"is {n_splits if n_splits < 1 else size}, should be at least 1", field="n_splits or size")
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


def legacy_split_halves(
    counts: WordCounts,
    seeds: list[int],
    *,
    size: int | Literal["half"] = 20,
    in_place: bool = False,
    remove_odd: bool = True,
) -> SplitHalves:
    """Split as the code of "Predict the Next Word" does.

    It calls ``random.seed(seed)`` anew for every context; of an odd number of answers it removes one in place, then
    samples `size` for the first half ("oracle 1"), and the rest is the second ("oracle 2"). Contexts with as many
    answers get the same positions of their lists, which are sorted by frequency: the splits of one seed are alike, and
    means over contexts vary far more between seeds than those of independent splits do.

    Parameters
    ----------
    counts : WordCounts
        Rows in the order of the data.
    seeds : list of int
        One split for each.
    size : int or "half", optional
        20 in the main text, half of the even number in appendices E and F.
    in_place : bool, optional
        Only the first split removes the odd answer, and the later ones start from what it left, as where the paper's
        code splits the same list again; by default every split starts from the full list.
    remove_odd : bool, optional
        False in appendix A: the second half has one answer more where their number is odd.

    Returns
    -------
    SplitHalves

    Raises
    ------
    InputError
        If a context has too few answers.
    """
    answers = np.repeat(np.arange(len(counts.count)), counts.count)
    totals = counts.totals
    starts = np.cumsum(totals) - totals
    n_rows = len(counts.count)
    shape = (len(seeds), n_rows)
    first, second = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    seen = np.full(shape, np.iinfo(np.int64).max)
    for total in np.unique(totals):
        even = int(total) - (int(total) % 2 if remove_odd else 0)
        n_first = even // 2 if size == "half" else int(size)
        if n_first > even or total == 0:
            raise InputError(f"a context has {total} answers, too few for a half of {n_first}", field="size")
        members = np.flatnonzero(totals == total)
        lists = answers[starts[members][:, None] + np.arange(total)]
        for split, seed in enumerate(seeds):
            before = seeds[0] if in_place and split else None
            kept, sampled = _legacy_positions(int(total), seed, n_first, before, remove_odd)
            of_first = lists[:, kept][:, sampled]
            np.add.at(first[split], of_first.ravel(), 1)
            rest = np.delete(lists[:, kept], sampled, axis=1)
            np.add.at(second[split], rest.ravel(), 1)
            np.minimum.at(seen[split], of_first.ravel(), np.tile(np.arange(n_first), len(members)))
    return SplitHalves(counts, first, second, seen)


def legacy_bootstrap_halves(counts: WordCounts, seeds: tuple[int, int] = (0, 1)) -> SplitHalves:
    """Draw two halves with replacement, each half as large as the answers, as appendix A's code does."""
    answers = np.repeat(np.arange(len(counts.count)), counts.count)
    totals = counts.totals
    starts = np.cumsum(totals) - totals
    parts = np.zeros((2, 1, len(counts.count)), dtype=np.int64)
    for total in np.unique(totals):
        members = np.flatnonzero(totals == total)
        for side, seed in enumerate(seeds):
            draw = random.Random(seed)
            chosen = np.array(draw.choices(range(int(total)), weights=[1] * int(total), k=int(total) // 2))
            rows = answers[starts[members][:, None] + chosen]
            np.add.at(parts[side, 0], rows.ravel(), 1)
    return SplitHalves(counts, parts[0], parts[1])


@functools.lru_cache(maxsize=4096)
def _legacy_positions(
    total: int, seed: int, size: int, removed_before: int | None, remove_odd: bool
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Positions left after the removal, by an earlier seed where one is given, and the first half among them."""
    draw = random.Random(seed)
    kept = list(range(total))
    if total % 2 and remove_odd:
        remover = draw if removed_before is None else random.Random(removed_before)
        del kept[remover.sample(range(total), 1)[0]]
    # an empty list would become floats
    return np.array(kept, dtype=np.intp), np.array(draw.sample(range(len(kept)), size), dtype=np.intp)


def tvd_between_split_halves(halves: SplitHalves) -> Floats:
    """TVD between the two halves of people: the human-human baseline at their sample size.

    Parameters
    ----------
    halves : SplitHalves

    Returns
    -------
    ndarray of float, shape (split, context)
        NaN where a part has no answer.

    Examples
    --------
    >>> import numpy as np
    >>> from estimators import cloze
    >>> counts = cloze.count_words(context=[0, 0, 1, 1], word=[0, 1, 0, 2], count=[3, 1, 2, 2], n_contexts=2)
    >>> halves = cloze.random_split_halves(counts, n_splits=2, rng=np.random.default_rng(0))
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
    remaining: Floats | None = None,
) -> Floats:
    """TVD of distributions over the same contexts and one half of people, for every split.

    Parameters
    ----------
    q : Distributions
        A model's distributions, or people's.
    halves : SplitHalves
    which : {"first", "second"}
    remaining : ndarray of float, shape (context,), optional
        Mass of `q` on words that no one answered; what is missing to one by default.

    Returns
    -------
    ndarray of float, shape (split, context)
        NaN where a side has no answer.

    Examples
    --------
    >>> import numpy as np
    >>> from estimators import cloze
    >>> counts = cloze.count_words(context=[0, 0, 1, 1], word=[0, 1, 0, 2], count=[3, 1, 2, 2], n_contexts=2)
    >>> halves = cloze.random_split_halves(counts, n_splits=2, rng=np.random.default_rng(0))
    >>> cloze.tvd_to_split_halves(cloze.relative_frequencies(counts), halves)
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
    distance: Floats = _half_sums(halves.counts, np.abs(p - at_rows)) + rest / 2
    return distance


def split_half_top_words(halves: SplitHalves, which: Literal["first", "second"] = "first") -> list[TopWords]:
    """Most frequent word of one half in each context, for every split.

    Ties in the first half go to the word that was sampled first where the split knows it; otherwise to the first row.
    """
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


def _normalised(halves: SplitHalves, part: NDArray[np.int64]) -> Floats:
    totals = _by_context(halves.counts, part)[:, halves.counts.context]
    shares: Floats = np.divide(part, totals, out=np.full(part.shape, np.nan), where=totals > 0)
    return shares


def _by_context(counts: WordCounts, values: NDArray[np.int64] | Floats) -> Floats:
    shift = np.arange(len(values))[:, None] * counts.n_contexts
    flat = np.bincount(
        (counts.context + shift).ravel(), weights=values.ravel(), minlength=len(values) * counts.n_contexts
    )
    sums: Floats = flat.astype(float).reshape(len(values), counts.n_contexts)
    return sums


def _half_sums(counts: WordCounts, values: Floats) -> Floats:
    halves: Floats = np.where(counts.totals > 0, _by_context(counts, values) / 2, np.nan)
    return halves
