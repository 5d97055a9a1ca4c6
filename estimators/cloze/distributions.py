"""Distributions of next words over many contexts, and how far apart two of them are.

Contexts have different numbers of words, so everything is ragged: one row per context and word, no context-by-word
table. Every function is vectorised over contexts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from estimators.display import Result
from estimators.errors import InputError

__all__ = [
    "AlignedDistributions",
    "Distributions",
    "TopWords",
    "WordCounts",
    "align",
    "count_words",
    "distributions_from_proportions",
    "entropy_nats",
    "jensen_shannon_nats",
    "kl_nats",
    "probability_at",
    "relative_frequencies",
    "top_words",
    "total_variation",
    "tvd_exact",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class WordCounts(Result):
    """How often each word was given in each context.

    Parameters
    ----------
    context : ndarray of int, shape (row,)
        Position of the context; not decreasing. Within a context rows stand in the order in which the words were
        first seen.
    word : ndarray of int, shape (row,)
        Code of the word, 0 or more; a context has a word once.
    count : ndarray of int, shape (row,)
        1 or more.
    n_contexts : int

    Examples
    --------
    >>> from estimators import cloze
    >>> counts = cloze.count_words(context=[0, 0, 1, 1], word=[0, 1, 0, 2], count=[3, 1, 2, 2], n_contexts=2)
    >>> counts
    WordCounts(context=int64[4], word=int64[4], count=int64[4], n_contexts=2)
    >>> counts.take([1]).to_frame()
       context  word  count
    0        0     0      2
    1        0     2      2
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
    context : ndarray of int, shape (row,)
        Not decreasing.
    word : ndarray of int, shape (row,)
        A context has a word once.
    probability : ndarray of float, shape (row,)
        Sums to one within a context, or to less where the rest of the mass is on words that are not listed.
    n_contexts : int
        A context without any row has no distribution: every distance to it is NaN.

    Examples
    --------
    >>> from estimators import cloze
    >>> people = cloze.relative_frequencies(cloze.count_words([0, 0, 1], [0, 1, 2], [3, 1, 4], n_contexts=2))
    >>> model = cloze.relative_frequencies(cloze.count_words([0, 0, 1], [0, 1, 0], [1, 3, 4], n_contexts=2))
    >>> people
    Distributions(context=int64[3], word=int64[3], probability=float64[3], n_contexts=2)
    >>> people.mass
    array([1., 1.])
    """

    made_by = "relative_frequencies(counts)"

    context: Ints
    word: Ints
    probability: Floats
    n_contexts: int

    @property
    def mass(self) -> Floats:
        """Probability of the words listed, shape (context,)."""
        return _sums(self.context, self.probability, self.n_contexts)

    def take(self, contexts: ArrayLike) -> Distributions:
        """Distributions of some contexts, in the order asked for; one may be there several times."""
        rows, context = _rows_of(self.context, self.n_contexts, np.asarray(contexts, dtype=np.int64))
        return Distributions(context, self.word[rows], self.probability[rows], len(np.asarray(contexts)))


@dataclass(frozen=True, eq=False)
class AlignedDistributions:
    """Two sets of distributions over the union of their words: sorted rows (context, word), with both probabilities."""

    context: Ints
    word: Ints
    p: Floats
    q: Floats
    n_contexts: int


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

    Examples
    --------
    >>> from estimators import cloze
    >>> counts = cloze.count_words(context=[0, 0, 1, 1], word=[0, 1, 0, 2], count=[3, 1, 2, 2], n_contexts=2)
    >>> cloze.top_words(counts).to_frame()
       word  confidence  n_tied
    0     0        0.75       1
    1     0        0.50       2
    """

    made_by = "top_words(counts)"

    word: Ints
    confidence: Floats
    n_tied: Ints
    is_top: NDArray[np.bool_]


def count_words(context: ArrayLike, word: ArrayLike, count: ArrayLike, *, n_contexts: int) -> WordCounts:
    """Collect rows into counts: rows of the same word are summed, missing words and counts of zero left out.

    Parameters
    ----------
    context, word, count : array_like of int, shape (row,)
        In the order of the data; a negative word is missing.
    n_contexts : int

    Returns
    -------
    WordCounts

    Raises
    ------
    InputError
        If a count is negative.

    Examples
    --------
    >>> from estimators import cloze
    >>> counts = cloze.count_words(context=[0, 0, 1], word=[5, 5, -1], count=[2, 1, 4], n_contexts=2)
    >>> counts.to_frame()
       context  word  count
    0        0     5      3
    >>> counts.totals
    array([3, 0])
    """
    context, word, count = (np.asarray(values, dtype=np.int64) for values in (context, word, count))
    if (count < 0).any():
        raise InputError(f"is {int(count.min())}, should be 0 or more", field="count")
    kept = (word >= 0) & (count > 0)
    context, word, count = context[kept], word[kept], count[kept]
    width = int(word.max(initial=0)) + 1
    _, first, row = np.unique(context * width + word, return_index=True, return_inverse=True)
    summed = np.bincount(row.ravel(), weights=count, minlength=len(first)).astype(np.int64)
    # contexts in order, words in the order in which they were first seen
    order = np.lexsort((first, context[first]))
    return WordCounts(context[first][order], word[first][order], summed[order], n_contexts)


def relative_frequencies(counts: WordCounts) -> Distributions:
    """Distribution by relative frequency, the maximum-likelihood estimate: p(w | c) = count(c, w) / count(c).

    Parameters
    ----------
    counts : WordCounts

    Returns
    -------
    Distributions

    Examples
    --------
    >>> from estimators import cloze
    >>> counts = cloze.count_words(context=[0, 0, 1, 1], word=[0, 1, 0, 2], count=[3, 1, 2, 2], n_contexts=2)
    >>> cloze.relative_frequencies(counts).to_frame()
       context  word  probability
    0        0     0         0.75
    1        0     1         0.25
    2        1     0         0.50
    3        1     2         0.50
    """
    WordCounts.require(counts=counts)
    return Distributions(counts.context, counts.word, counts.count / counts.totals[counts.context], counts.n_contexts)


def distributions_from_proportions(
    context: ArrayLike, word: ArrayLike, proportion: ArrayLike, *, n_contexts: int, rescale: bool = True
) -> Distributions:
    """Distribution from published proportions.

    Parameters
    ----------
    context, word : array_like of int, shape (row,)
        A negative word is missing.
    proportion : array_like of float, shape (row,)
        Shares; rows of the same word are summed.
    n_contexts : int
    rescale : bool, optional
        Make every context sum to one. Without it a sum below one stays, as mass on words not listed.

    Returns
    -------
    Distributions

    Raises
    ------
    InputError
        If without rescaling a context sums to more than one.

    Examples
    --------
    >>> from estimators import cloze
    >>> cloze.distributions_from_proportions([0, 0], [3, 4], [0.5, 0.3], n_contexts=1).probability
    array([0.625, 0.375])
    >>> cloze.distributions_from_proportions([0, 0], [3, 4], [0.5, 0.3], n_contexts=1, rescale=False).mass
    array([0.8])
    """
    contexts, words = (np.asarray(values, dtype=np.int64) for values in (context, word))
    shares = np.asarray(proportion, dtype=float)
    kept = (words >= 0) & (shares > 0)
    contexts, words, shares = contexts[kept], words[kept], shares[kept]
    width = int(words.max(initial=0)) + 1
    _, first, row = np.unique(contexts * width + words, return_index=True, return_inverse=True)
    summed = np.bincount(row.ravel(), weights=shares, minlength=len(first)).astype(float)
    order = np.lexsort((first, contexts[first]))
    contexts, words, summed = contexts[first][order], words[first][order], summed[order]
    mass = _sums(contexts, summed, n_contexts)
    if rescale:
        summed = summed / mass[contexts]
    elif (mass > 1 + 1e-9).any():
        worst = int(mass.argmax())
        raise InputError(f"sums to {mass[worst]:.4f} in context {worst}, should be at most 1", field="proportion")
    return Distributions(contexts, words, summed, n_contexts)


def align(p: Distributions, q: Distributions) -> AlignedDistributions:
    """Put two sets of distributions on the union of their words, context by context."""
    Distributions.require(p=p, q=q)
    _check_same_contexts(p, q)
    width = int(max(p.word.max(initial=0), q.word.max(initial=0))) + 1
    keys = np.concatenate([p.context * width + p.word, q.context * width + q.word])
    union, row = np.unique(keys, return_inverse=True)
    both = np.zeros((2, len(union)))
    both[0, row[: len(p.word)]] = p.probability
    both[1, row[len(p.word) :]] = q.probability
    return AlignedDistributions(union // width, union % width, both[0], both[1], p.n_contexts)


def total_variation(p: Distributions, q: Distributions) -> Floats:
    """Total variation distance of each context: TVD = 1/2 sum_w abs(p(w | c) - q(w | c)).

    Over the union of both supports. Between small samples it is biased up: see ``estimators.cloze.tvd_bias`` and
    ``inference.cloze.tvd``.

    Parameters
    ----------
    p, q : Distributions
        Of the same contexts, each summing to one; see :func:`tvd_exact` for a model known at some words only.

    Returns
    -------
    ndarray of float, shape (context,)
        In [0, 1]; NaN where a context has no answer on one side.

    Examples
    --------
    >>> from estimators import cloze
    >>> people = cloze.relative_frequencies(cloze.count_words([0, 0, 1], [0, 1, 2], [3, 1, 4], n_contexts=2))
    >>> model = cloze.relative_frequencies(cloze.count_words([0, 0, 1], [0, 1, 0], [1, 3, 4], n_contexts=2))
    >>> cloze.total_variation(people, model).round(3)
    array([0.5, 1. ])
    """
    both = align(p, q)
    return _no_answer(p, q, _sums(both.context, np.abs(both.p - both.q), p.n_contexts) / 2)


def tvd_exact(p: Distributions, q_at_rows: ArrayLike, remaining: ArrayLike | None = None) -> Floats:
    """Total variation distance to a model whose probabilities are known at the words of `p` only.

    Every other word has p = 0 and adds q(w | c) / 2; together they add half of the remaining mass, so that
    TVD = 1/2 (sum_w abs(p(w | c) - q(w | c)) + 1 - sum_w q(w | c)), sums over the words of `p`.

    Parameters
    ----------
    p : Distributions
        For example people's distribution; sums to one in each context.
    q_at_rows : array_like of float, shape (..., row)
        q(w | c) for the rows of `p`.
    remaining : array_like of float, shape (..., context), optional
        Mass of `q` on all other words; what is missing to one by default.

    Returns
    -------
    ndarray of float, shape (..., context)
        NaN where a context has no answer.

    Raises
    ------
    InputError
        If a probability is negative, or those of a context and the remaining mass do not sum to one (to 1e-6).

    Examples
    --------
    >>> from estimators import cloze
    >>> people = cloze.relative_frequencies(cloze.count_words([0, 0, 1], [0, 1, 2], [3, 1, 4], n_contexts=2))
    >>> model = cloze.relative_frequencies(cloze.count_words([0, 0, 1], [0, 1, 0], [1, 3, 4], n_contexts=2))
    >>> cloze.tvd_exact(people, q_at_rows=[0.2, 0.5, 0.1]).round(3)
    array([0.55, 0.9 ])
    """
    Distributions.require(p=p)
    q = np.asarray(q_at_rows, dtype=float)
    if (q < 0).any() or np.isnan(q).any():
        raise InputError(f"holds {q.min()}, should be probabilities", field="q_at_rows")
    listed = _sums(p.context, q, p.n_contexts)
    rest = 1 - listed if remaining is None else np.asarray(remaining, dtype=float)
    off = np.abs(listed + rest - 1)
    if (rest < -1e-6).any() or (off > 1e-6).any():
        worst = np.unravel_index(int(np.argmax(np.maximum(off, -rest))), rest.shape)
        raise InputError(
            f"words of context {worst[-1]} have {listed[worst]:.6f} and all others {rest[worst]:.6f}; "
            "together they should be 1",
            field="remaining",
        )
    distance = (_sums(p.context, np.abs(p.probability - q), p.n_contexts) + np.maximum(rest, 0)) / 2
    return np.where(p.mass > 0, distance, np.nan)


def probability_at(q: Distributions, rows: WordCounts | Distributions) -> Floats:
    """Probability under `q` of the words of other rows: zero where `q` does not have the word.

    Parameters
    ----------
    q : Distributions
    rows : WordCounts or Distributions
        Of the same contexts.

    Returns
    -------
    ndarray of float, shape (row,)

    Examples
    --------
    >>> from estimators import cloze
    >>> people = cloze.relative_frequencies(cloze.count_words([0, 0, 1], [0, 1, 2], [3, 1, 4], n_contexts=2))
    >>> model = cloze.relative_frequencies(cloze.count_words([0, 0, 1], [0, 1, 0], [1, 3, 4], n_contexts=2))
    >>> cloze.probability_at(model, people)
    array([0.25, 0.75, 0.  ])
    """
    Distributions.require(q=q)
    _check_same_contexts(q, rows)
    width = int(max(q.word.max(initial=0), rows.word.max(initial=0))) + 1
    keys = q.context * width + q.word
    order = np.argsort(keys, kind="stable")
    wanted = rows.context * width + rows.word
    slot = np.minimum(np.searchsorted(keys, wanted, sorter=order), max(len(keys) - 1, 0))
    if not len(keys):
        return np.zeros(len(wanted))
    found = order[slot]
    return np.where(keys[found] == wanted, q.probability[found], 0.0)


def entropy_nats(p: Distributions) -> Floats:
    """Entropy of each context's distribution in nats, H = -sum_w p ln p; NaN where there is no answer.

    Parameters
    ----------
    p : Distributions

    Returns
    -------
    ndarray of float, shape (context,)

    Examples
    --------
    >>> from estimators import cloze
    >>> people = cloze.relative_frequencies(cloze.count_words([0, 0, 1], [0, 1, 2], [3, 1, 4], n_contexts=2))
    >>> model = cloze.relative_frequencies(cloze.count_words([0, 0, 1], [0, 1, 0], [1, 3, 4], n_contexts=2))
    >>> cloze.entropy_nats(people).round(3)
    array([0.562, 0.   ])
    """
    Distributions.require(p=p)
    terms = -p.probability * np.log(np.where(p.probability > 0, p.probability, 1.0))
    return np.where(p.mass > 0, _sums(p.context, terms, p.n_contexts), np.nan)


def kl_nats(p: Distributions, q: Distributions, *, mixed_in: float = 0.0) -> Floats:
    """Kullback-Leibler divergence of each context in nats, KL(p || q) = sum_w p ln(p / q).

    Parameters
    ----------
    p, q : Distributions
    mixed_in : float, optional
        Share of the uniform distribution over the union of both supports that is mixed into `q`, for a finite
        number: between samples KL is infinite as soon as a word is missing in `q`.

    Returns
    -------
    ndarray of float, shape (context,)
        inf where `q` lacks a word of `p`; NaN where there is no answer.

    Raises
    ------
    InputError
        If `mixed_in` is no share in [0, 1).

    Examples
    --------
    >>> from estimators import cloze
    >>> people = cloze.relative_frequencies(cloze.count_words([0, 0, 1], [0, 1, 2], [3, 1, 4], n_contexts=2))
    >>> model = cloze.relative_frequencies(cloze.count_words([0, 0, 1], [0, 1, 0], [1, 3, 4], n_contexts=2))
    >>> cloze.kl_nats(people, model).round(3)
    array([0.549,   inf])
    >>> cloze.kl_nats(people, model, mixed_in=0.1).round(3)
    array([0.486, 2.996])
    """
    if not 0 <= mixed_in < 1:
        raise InputError(f"is {mixed_in}, should be a share in [0, 1)", field="mixed_in")
    both = align(p, q)
    q_mixed = both.q
    if mixed_in:
        size = np.bincount(both.context)
        q_mixed = (1 - mixed_in) * both.q + mixed_in / size[both.context]
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(both.p > 0, both.p * (np.log(both.p) - np.log(q_mixed)), 0.0)
    return _no_answer(p, q, _sums(both.context, terms, p.n_contexts))


def jensen_shannon_nats(p: Distributions, q: Distributions) -> Floats:
    """Jensen-Shannon divergence of each context in nats: mean KL to the midpoint (p + q) / 2; at most ln 2.

    Parameters
    ----------
    p, q : Distributions
        Of the same contexts.

    Returns
    -------
    ndarray of float, shape (context,)

    Examples
    --------
    >>> from estimators import cloze
    >>> people = cloze.relative_frequencies(cloze.count_words([0, 0, 1], [0, 1, 2], [3, 1, 4], n_contexts=2))
    >>> model = cloze.relative_frequencies(cloze.count_words([0, 0, 1], [0, 1, 0], [1, 3, 4], n_contexts=2))
    >>> cloze.jensen_shannon_nats(people, model).round(3)
    array([0.131, 0.693])
    """
    both = align(p, q)
    middle = (both.p + both.q) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = sum(np.where(side > 0, side * (np.log(side) - np.log(middle)), 0.0) / 2 for side in (both.p, both.q))
    return _no_answer(p, q, _sums(both.context, np.asarray(terms), p.n_contexts))


def top_words(counts: WordCounts) -> TopWords:
    """Most frequent word of each context, how frequent it is, and how many words are as frequent.

    Parameters
    ----------
    counts : WordCounts

    Returns
    -------
    TopWords

    Examples
    --------
    >>> from estimators import cloze
    >>> counts = cloze.count_words(context=[0, 0, 1, 1], word=[0, 1, 0, 2], count=[3, 1, 2, 2], n_contexts=2)
    >>> cloze.top_words(counts).word, cloze.top_words(counts).n_tied
    (array([0, 0]), array([1, 2]))
    """
    WordCounts.require(counts=counts)
    highest = np.zeros(counts.n_contexts, dtype=np.int64)
    np.maximum.at(highest, counts.context, counts.count)
    is_top = counts.count == highest[counts.context]
    word = np.full(counts.n_contexts, -1, dtype=np.int64)
    rows = np.flatnonzero(is_top)[::-1]
    # the last assignment wins, which is the first row of the context
    word[counts.context[rows]] = counts.word[rows]
    totals = counts.totals
    confidence = np.divide(highest, totals, out=np.full(counts.n_contexts, np.nan), where=totals > 0)
    return TopWords(word, confidence, np.bincount(counts.context[is_top], minlength=counts.n_contexts), is_top)


def _rows_of(context: Ints, n_contexts: int, wanted: Ints) -> tuple[Ints, Ints]:
    starts = np.searchsorted(context, np.arange(n_contexts + 1))
    sizes = np.diff(starts)[wanted]
    new = np.repeat(np.arange(len(wanted)), sizes)
    within = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return starts[wanted][new] + within, new


def _sums(context: Ints, values: Floats, n_contexts: int) -> Floats:
    """Sum rows within contexts, over the last axis."""
    if values.ndim == 1:
        return np.bincount(context, weights=values, minlength=n_contexts).astype(float)
    flat = values.reshape(-1, values.shape[-1])
    shift = np.arange(len(flat))[:, None] * n_contexts
    summed = np.bincount((context + shift).ravel(), weights=flat.ravel(), minlength=len(flat) * n_contexts)
    return summed.astype(float).reshape(*values.shape[:-1], n_contexts)


def _check_same_contexts(p: Distributions, q: WordCounts | Distributions) -> None:
    if p.n_contexts != q.n_contexts:
        raise InputError(
            f"{p.n_contexts} contexts on one side and {q.n_contexts} on the other; take the same ones of both"
        )


def _no_answer(p: Distributions, q: Distributions, values: Floats) -> Floats:
    return np.where((p.mass > 0) & (q.mass > 0), values, np.nan)
