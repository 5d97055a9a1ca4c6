r"""Distance between two samples of words by what the words mean: the energy distance of their vectors.

With unit vectors u of words and :math:`d(w, v) = \lVert u_w - u_v \rVert`,

.. math:: E = 2\, \mathbb{E}\, d(X, Y) - \mathbb{E}\, d(X, X') - \mathbb{E}\, d(Y, Y') \ge 0,

for words X, X' of one distribution and Y, Y' of the other; 0 only where the vectors have the same distribution. Each
expectation is a mean over pairs of different answers, so that the estimate has no bias: it is 0 on average for two
samples of one distribution, however small, and may be negative. Words that are near in meaning are near to each other,
which the total variation distance does not know.

Source: G. Szekely and M. Rizzo (2013), Energy statistics: a class of statistics based on distances.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shannon_game.estimators.arrays import BoolArray, FloatArray
from shannon_game.estimators.cloze.distributions import WordCounts
from shannon_game.estimators.display import Result
from shannon_game.estimators.errors import InputError


@dataclass(frozen=True, eq=False, repr=False)
class EnergyDistance(Result):
    """Energy distances of contexts.

    Attributes
    ----------
    distance : ndarray, shape (context,)
        NaN where a side has fewer than two answers with a vector.
    across : ndarray, shape (context,)
        Mean distance of a word of one side and a word of the other; from 0 to 2.
    known_first, known_second : float
        Share of the answers that have a vector.
    """

    distance: FloatArray
    across: FloatArray
    known_first: float
    known_second: float


def energy_distance(first: WordCounts, second: WordCounts, vectors: ArrayLike) -> EnergyDistance:
    """Energy distance of two samples of words in every context.

    `vectors`, (code, dimension), are those of all words: a row of zeros or NaN for none, of any length.

    Examples
    --------
    >>> cats = cloze.count_words([0, 0], [0, 1], [1, 1], n_contexts=1)
    >>> dogs = cloze.count_words([0], [2], [2], n_contexts=1)
    >>> cloze.energy_distance(cats, dogs, [[1, 0], [1, 0], [-1, 0]]).distance
    array([4.])
    """
    WordCounts.require(first=first, second=second)
    if first.n_contexts != second.n_contexts:
        raise InputError(f"has {second.n_contexts} contexts, first has {first.n_contexts}", field="second")
    table = np.nan_to_num(np.asarray(vectors, dtype=float))
    highest = max(first.word.max(initial=-1), second.word.max(initial=-1))
    if table.ndim != 2 or len(table) <= highest:
        raise InputError(f"has shape {table.shape}; words have codes up to {highest}, a row each", field="vectors")
    length = np.linalg.norm(table, axis=1)
    unit = table / np.where(length > 0, length, 1)[:, None]
    distance, across = np.full((2, first.n_contexts), np.nan)
    sides = [_by_context(counts, length > 0) for counts in (first, second)]
    for context, ((word_p, p), (word_q, q)) in enumerate(zip(*sides, strict=True)):
        if p.sum() < 2 or q.sum() < 2:
            continue
        between = _mean(unit[word_p], p, unit[word_q], q)
        within = [_mean(unit[w], n, unit[w], n) * n.sum() / (n.sum() - 1) for w, n in ((word_p, p), (word_q, q))]
        distance[context], across[context] = 2 * between - sum(within), between
    shares = [
        float(counts.count[length[counts.word] > 0].sum() / max(counts.count.sum(), 1)) for counts in (first, second)
    ]
    return EnergyDistance(distance=distance, across=across, known_first=shares[0], known_second=shares[1])


def _by_context(counts: WordCounts, known: BoolArray) -> list[tuple[NDArray[np.int64], FloatArray]]:
    """Words with a vector, and their counts, of every context."""
    keep = known[counts.word]
    ends = np.searchsorted(counts.context[keep], np.arange(1, counts.n_contexts))
    words, numbers = np.split(counts.word[keep], ends), np.split(counts.count[keep].astype(float), ends)
    return list(zip(words, numbers, strict=True))


def _mean(u: FloatArray, p: FloatArray, v: FloatArray, q: FloatArray) -> float:
    """Mean distance of unit vectors, by their counts; rounding must not make a square negative."""
    chord = np.sqrt(np.maximum(2 - 2 * (u @ v.T), 0))
    # a word and itself: 0, and not the root of a rounding error
    chord[chord < 1e-7] = 0
    return float(p @ chord @ q / (p.sum() * q.sum()))
