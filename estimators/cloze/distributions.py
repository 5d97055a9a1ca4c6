"""Distributions of next words over many contexts, ragged: one row per context and word."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shannon_game.estimators.arrays import BoolArray, FloatArray
from shannon_game.estimators.display import Result
from shannon_game.estimators.errors import InputError

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class WordCounts(Result):
    """How often each word was given in each context.

    Parameters
    ----------
    context : ndarray of int, shape (row,)
        Position of the context; not decreasing. Within a context rows stand in the order in which words were first
        seen.
    word : ndarray of int, shape (row,)
        Code of the word, 0 or more; a context has a word once.
    count : ndarray of int, shape (row,)
        1 or more.
    """

    made_by = "count_words(context, word, count, n_contexts=...)"

    context: Ints
    word: Ints
    count: Ints
    n_contexts: int

    @property
    def totals(self) -> Ints:
        """Answers in each context, shape (context,)."""
        return np.bincount(self.context, weights=self.count, minlength=self.n_contexts).astype(np.int64)

    def take(self, contexts: ArrayLike) -> WordCounts:
        """Counts of some contexts, in the order asked for; one may be there several times."""
        rows, context = _rows_of(self.context, self.n_contexts, np.asarray(contexts, dtype=np.int64))
        return WordCounts(context, self.word[rows], self.count[rows], len(np.asarray(contexts)))


@dataclass(frozen=True, eq=False, repr=False)
class Distributions(Result):
    """A distribution over words for each context.

    Parameters
    ----------
    context, word : ndarray of int, shape (row,)
        Not decreasing; a context has a word once.
    probability : ndarray of float, shape (row,)
        Sums to one within a context, or to less where the rest of the mass is on words that are not listed.
    n_contexts : int
        A context without any row has no distribution: every distance to it is NaN.
    """

    made_by = "relative_frequencies(counts)"

    context: Ints
    word: Ints
    probability: FloatArray
    n_contexts: int

    @property
    def mass(self) -> FloatArray:
        """Probability of the words listed, shape (context,)."""
        return sums_by_context(self.context, self.probability, self.n_contexts)

    def take(self, contexts: ArrayLike) -> Distributions:
        """Distributions of some contexts, in the order asked for; one may be there several times."""
        rows, context = _rows_of(self.context, self.n_contexts, np.asarray(contexts, dtype=np.int64))
        return Distributions(context, self.word[rows], self.probability[rows], len(np.asarray(contexts)))


@dataclass(frozen=True, eq=False, repr=False)
class TopWords(Result):
    """The most frequent word of each context.

    Parameters
    ----------
    word : ndarray of int, shape (context,)
        Of several most frequent ones the first in the order of the rows; -1 where there is no answer.
    confidence : ndarray of float, shape (context,)
        Its relative frequency; NaN where there is no answer.
    n_tied : ndarray of int, shape (context,)
        How many words are as frequent as it, itself included.
    is_top : ndarray of bool, shape (row,)
        The rows of those words.
    """

    made_by = "top_words(counts)"

    word: Ints
    confidence: FloatArray
    n_tied: Ints
    is_top: BoolArray


def count_words(context: ArrayLike, word: ArrayLike, count: ArrayLike, *, n_contexts: int) -> WordCounts:
    """Collect rows, in the order of the data, into counts; negative words are missing.

    Rows of the same word are summed, missing words and counts of zero left out.

    Examples
    --------
    >>> counts = cloze.count_words(context=[0, 0, 1], word=[5, 5, -1], count=[2, 1, 4], n_contexts=2)
    >>> counts.summary()
       context  word  count
    0        0     5      3
    >>> counts.totals
    array([3, 0])
    """
    context, word, count = (np.asarray(values, dtype=np.int64) for values in (context, word, count))
    if (count < 0).any():
        raise InputError(f"is {int(count.min())}, should be 0 or more", field="count")
    return WordCounts(*_summed(context, word, count), n_contexts)


def _summed(context: Ints, word: Ints, values: NDArray[Any]) -> tuple[Ints, Ints, NDArray[Any]]:
    """Sum rows of a word; contexts in order, words in the order in which they were first seen."""
    kept = (word >= 0) & (values > 0)
    context, word, values = context[kept], word[kept], values[kept]
    width = int(word.max(initial=0)) + 1
    _, first, row = np.unique(context * width + word, return_index=True, return_inverse=True)
    total = np.bincount(row.ravel(), weights=values, minlength=len(first)).astype(values.dtype)
    order = np.lexsort((first, context[first]))
    return context[first][order], word[first][order], total[order]


def relative_frequencies(counts: WordCounts) -> Distributions:
    """Distribution by relative frequency, the maximum-likelihood estimate: p(w | c) = count(c, w) / count(c).

    Examples
    --------
    >>> counts = cloze.count_words(context=[0, 0, 1, 1], word=[0, 1, 0, 2], count=[3, 1, 2, 2], n_contexts=2)
    >>> cloze.relative_frequencies(counts).probability
    array([0.75, 0.25, 0.5 , 0.5 ])
    """
    WordCounts.require(counts=counts)
    return Distributions(counts.context, counts.word, counts.count / counts.totals[counts.context], counts.n_contexts)


def distributions_from_proportions(
    context: ArrayLike, word: ArrayLike, proportion: ArrayLike, *, n_contexts: int
) -> Distributions:
    """Distribution from published proportions, summed by word and rescaled to one."""
    contexts, words = (np.asarray(values, dtype=np.int64) for values in (context, word))
    contexts, words, summed = _summed(contexts, words, np.asarray(proportion, dtype=float))
    mass = sums_by_context(contexts, summed, n_contexts)
    return Distributions(contexts, words, summed / mass[contexts], n_contexts)


def probability_at(q: Distributions, rows: WordCounts | Distributions) -> FloatArray:
    """Probability under `q` of the words of other rows of the same contexts, (row,): zero where `q` lacks the word."""
    Distributions.require(q=q)
    check_same_contexts(q, rows)
    width = int(max(q.word.max(initial=0), rows.word.max(initial=0))) + 1
    keys = q.context * width + q.word
    order = np.argsort(keys, kind="stable")
    wanted = rows.context * width + rows.word
    slot = np.minimum(np.searchsorted(keys, wanted, sorter=order), max(len(keys) - 1, 0))
    if not len(keys):
        return np.zeros(len(wanted))
    found = order[slot]
    return np.where(keys[found] == wanted, q.probability[found], 0.0)


def entropy_nats(p: Distributions) -> FloatArray:
    """Entropy of each context's distribution in nats, H = -sum_w p ln p; NaN where there is no answer.

    Examples
    --------
    >>> cloze.entropy_nats(cloze.examples.two_distributions()[0]).round(3)
    array([0.562, 0.   ])
    """
    Distributions.require(p=p)
    terms = -p.probability * np.log(np.where(p.probability > 0, p.probability, 1.0))
    return np.where(p.mass > 0, sums_by_context(p.context, terms, p.n_contexts), np.nan)


def top_words(counts: WordCounts) -> TopWords:
    """Most frequent word of each context, how frequent it is, and how many words are as frequent.

    Examples
    --------
    >>> counts = cloze.count_words(context=[0, 0, 1, 1], word=[0, 1, 0, 2], count=[3, 1, 2, 2], n_contexts=2)
    >>> cloze.top_words(counts).word, cloze.top_words(counts).n_tied
    (array([0, 0]), array([1, 2]))
    """
    WordCounts.require(counts=counts)
    highest, word, n_tied, is_top = highest_rows(counts, counts.count)
    totals = counts.totals
    confidence = np.divide(highest, totals, out=np.full(counts.n_contexts, np.nan), where=totals > 0)
    return TopWords(word, confidence, n_tied, is_top)


def highest_rows(
    rows: WordCounts | Distributions, values: FloatArray | Ints
) -> tuple[NDArray[Any], Ints, Ints, BoolArray]:
    """Highest value of each context, the first word that has it (-1 for none), how many have it, and their rows."""
    highest = np.zeros(rows.n_contexts, dtype=values.dtype)
    np.maximum.at(highest, rows.context, values)
    is_top = values == highest[rows.context]
    word = np.full(rows.n_contexts, -1, dtype=np.int64)
    at = np.flatnonzero(is_top)[::-1]
    # the last assignment wins, which is the first row of the context
    word[rows.context[at]] = rows.word[at]
    return highest, word, np.bincount(rows.context[is_top], minlength=rows.n_contexts), is_top


def _rows_of(context: Ints, n_contexts: int, wanted: Ints) -> tuple[Ints, Ints]:
    starts = np.searchsorted(context, np.arange(n_contexts + 1))
    sizes = np.diff(starts)[wanted]
    new = np.repeat(np.arange(len(wanted)), sizes)
    within = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return starts[wanted][new] + within, new


def sums_by_context(context: Ints, values: FloatArray | Ints, n_contexts: int) -> FloatArray:
    """Sum rows within contexts, over the last axis."""
    if values.ndim == 1:
        return np.bincount(context, weights=values, minlength=n_contexts).astype(float)
    flat = values.reshape(-1, values.shape[-1])
    shift = np.arange(len(flat))[:, None] * n_contexts
    summed = np.bincount((context + shift).ravel(), weights=flat.ravel(), minlength=len(flat) * n_contexts)
    return summed.astype(float).reshape(*values.shape[:-1], n_contexts)


def check_same_contexts(p: Distributions, q: WordCounts | Distributions) -> None:
    """Refuse two sides with other numbers of contexts."""
    if p.n_contexts != q.n_contexts:
        problem = f"{p.n_contexts} contexts on one side and {q.n_contexts} on the other; take the same ones of both"
        raise InputError(problem)
