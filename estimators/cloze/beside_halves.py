r"""Scores of next words beside people's: everything is held against one half of the people, with as many words.

People's answers to a context are split into halves. The first half is what a player is held against; the second is
people's ceiling. A distribution takes part with as many words as the half has, drawn from it, so that the bias of
small samples is the same for all.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.cloze.distributions import Ints, WordCounts, highest_rows, sums_by_context
from shannon_game.estimators.cloze.split_halves import SplitHalves
from shannon_game.estimators.errors import InputError

_LN2 = float(np.log(2))
_WEIGHTS = np.geomspace(0.1, 1000, 41)


def drawn_words(halves: SplitHalves, q_at_rows: ArrayLike, *, rng: np.random.Generator) -> Ints:
    """Draw from distributions as many words as the first half has, (split, row); words that nobody gave are left out.

    `q_at_rows`, (row,), are the probabilities of people's words; the rest is on other words.

    Examples
    --------
    >>> halves = cloze.random_split_halves(cloze.examples.word_counts(), n_splits=2, rng=np.random.default_rng(0))
    >>> cloze.drawn_words(halves, [1.0, 0.0, 0.5, 0.5], rng=np.random.default_rng(0)).sum(axis=1)
    array([4, 4])
    """
    counts, q = halves.counts, _at_rows(halves, q_at_rows)
    n_rows, context = len(q), counts.context
    # every context has the unit interval above its number; what falls behind its rows is another word
    below = np.cumsum(q) - q
    first = np.searchsorted(context, np.arange(counts.n_contexts))
    ends = context + np.minimum(below - below[np.minimum(first, n_rows - 1)][context] + q, 1)
    found = np.zeros((len(halves.first), n_rows), dtype=np.int64)
    for split, half in enumerate(halves.first):
        at = np.repeat(np.arange(counts.n_contexts), sums_by_context(context, half, counts.n_contexts).astype(int))
        row = np.searchsorted(ends, at + rng.random(len(at)), side="right")
        inside = row < n_rows
        inside[inside] &= context[row[inside]] == at[inside]
        found[split] = np.bincount(row[inside], minlength=n_rows)
    return found


def subsampled_words(halves: SplitHalves, samples: WordCounts, *, rng: np.random.Generator) -> Ints:
    """Draw without replacement, from a model's samples, as many words as the first half has, (split, row).

    `samples` are of the same contexts, which have at least so many; words that nobody gave are left out.

    Examples
    --------
    >>> counts = cloze.examples.word_counts()
    >>> halves = cloze.random_split_halves(counts, n_splits=2, rng=np.random.default_rng(0))
    >>> cloze.subsampled_words(halves, counts, rng=np.random.default_rng(0)).sum(axis=1)
    array([4, 4])
    """
    counts = halves.counts
    words = np.repeat(samples.word, samples.count)
    context = np.repeat(samples.context, samples.count)
    starts = np.cumsum(samples.totals) - samples.totals
    width = int(max(counts.word.max(initial=0), words.max(initial=0))) + 1
    order = np.argsort(counts.context * width + counts.word)
    keys = (counts.context * width + counts.word)[order]
    found = np.zeros((len(halves.first), len(keys)), dtype=np.int64)
    for split, half in enumerate(halves.first):
        size = sums_by_context(counts.context, half, counts.n_contexts)
        if (samples.totals < size).any():
            raise InputError("has fewer words at a context than half of the people", field="samples")
        shuffled = np.lexsort((rng.random(len(words)), context))
        taken = shuffled[np.arange(len(words)) - starts[context] < size[context]]
        wanted = context[taken] * width + words[taken]
        slot = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        found[split] = np.bincount(order[slot[keys[slot] == wanted]], minlength=len(keys))
    return found


def distance_scores(halves: SplitHalves, words: ArrayLike) -> dict[str, FloatArray]:
    """TVD and Jensen-Shannon divergence (nats) of words, (split, row), to the first half; each (split, context).

    There are as many words as the first half has; those that are in no row are words that nobody gave.

    Examples
    --------
    >>> halves = cloze.random_split_halves(cloze.examples.word_counts(), n_splits=2, rng=np.random.default_rng(0))
    >>> cloze.distance_scores(halves, halves.second)["tvd"]
    array([[0.5, 1. ],
           [0.5, 0. ]])
    """
    context, n = halves.counts.context, halves.counts.n_contexts
    size = sums_by_context(context, halves.first, n)
    with np.errstate(divide="ignore", invalid="ignore"):
        p, q = (np.asarray(part) / size[:, context] for part in (halves.first, words))
        middle = (p + q) / 2
        terms = sum(np.where(side > 0, side * np.log(side / middle), 0.0) / 2 for side in (p, q))
        # the rest is on words without people: q ln(q / (q / 2)) / 2
        rest = 1 - sums_by_context(context, q, n)
        js = sums_by_context(context, np.asarray(terms), n) + rest * _LN2 / 2
    tvd = 1 - sums_by_context(context, np.minimum(p, q), n)
    return {"tvd": np.where(size > 0, tvd, np.nan), "jensen_shannon": np.where(size > 0, js, np.nan)}


def cross_entropy_scores(halves: SplitHalves, q_at_rows: ArrayLike) -> FloatArray:
    """Nats per answer of the first half under probabilities of people's words, (row,) or (split, row).

    Examples
    --------
    >>> halves = cloze.random_split_halves(cloze.examples.word_counts(), n_splits=2, rng=np.random.default_rng(0))
    >>> cloze.cross_entropy_scores(halves, [0.5, 0.25, 0.25, 0.25]).round(2)
    array([[1.04, 1.39],
           [1.04, 1.39]])
    """
    counts, q = halves.counts, _at_rows(halves, q_at_rows)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(halves.first > 0, -halves.first * np.log(q), 0.0)
        size = sums_by_context(counts.context, halves.first, counts.n_contexts)
        return np.asarray(sums_by_context(counts.context, terms, counts.n_contexts) / size)


def smoothed_half(halves: SplitHalves, base_at_rows: ArrayLike) -> FloatArray:
    r"""Let the second half predict, smoothed by a base distribution: (c(w) + a b(w)) / (n + a), (split, row).

    The weight a is the one under which the second half predicts each of its own answers best from its others.

    Examples
    --------
    >>> halves = cloze.random_split_halves(cloze.examples.word_counts(), n_splits=2, rng=np.random.default_rng(0))
    >>> cloze.smoothed_half(halves, [0.25, 0.25, 0.25, 0.25]).shape
    (2, 4)
    """
    context, n = halves.counts.context, halves.counts.n_contexts
    base = _at_rows(halves, base_at_rows)
    found = np.empty(halves.second.shape)
    for split, count in enumerate(halves.second):
        total = sums_by_context(context, count, n)[context]
        left = count > 0
        loss = [
            -float(count[left] @ np.log((count[left] - 1 + a * base[left]) / (total[left] - 1 + a))) for a in _WEIGHTS
        ]
        a = _WEIGHTS[int(np.argmin(loss))]
        found[split] = (count + a * base) / (total + a)
    return found


def modal_scores(halves: SplitHalves, modal: Ints) -> FloatArray:
    """How probable it is that a modal word is that of the first half, ties broken at random; (split, context).

    `modal` are counts of words, (split, row); or the row of each context's modal word, (context,), -1: nobody gave it.

    Examples
    --------
    >>> halves = cloze.random_split_halves(cloze.examples.word_counts(), n_splits=2, rng=np.random.default_rng(0))
    >>> cloze.modal_scores(halves, np.array([0, 3]))
    array([[0.5, 1. ],
           [0.5, 0.5]])
    """
    counts = halves.counts
    chosen = np.asarray(modal)
    ours = [_modes(counts, half) for half in halves.first]
    if chosen.ndim == 2:
        theirs = [_modes(counts, row) for row in chosen]
        return np.stack(
            [sums_by_context(counts.context, a * b, counts.n_contexts) for a, b in zip(ours, theirs, strict=True)]
        )
    return np.stack([np.where(chosen >= 0, mode[np.maximum(chosen, 0)], 0.0) for mode in ours])


def _modes(counts: WordCounts, values: Ints) -> FloatArray:
    """Share of each row in the modal words of its context."""
    _, _, n_tied, is_top = highest_rows(counts, values)
    top = is_top & (values > 0)
    return np.where(top, 1 / n_tied[counts.context], 0.0)


def _at_rows(halves: SplitHalves, given: ArrayLike) -> FloatArray:
    SplitHalves.require(halves=halves)
    q = np.asarray(given, dtype=float)
    if q.shape[-1:] != halves.counts.count.shape:
        raise InputError(f"has shape {q.shape}, should be (row,): {halves.counts.count.shape}", field="q_at_rows")
    if not ((q >= 0) & (q <= 1 + 1e-6)).all():
        raise InputError("should be probabilities", field="q_at_rows")
    return q
