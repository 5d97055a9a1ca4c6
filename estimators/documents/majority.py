r"""How often the most frequent word of n people is right, by the number of people.

For a context with answers of N people, :math:`c_w` of them the word w, the ensemble S is n of the N people, drawn
without replacement, and M(S) holds its most frequent words, which share the guess equally:

.. math::

    a_n = E\bigg[\frac{1}{|M(S)|} \sum_{w \in M(S)} r_w(S)\bigg], \qquad
    r_w(S) = 1 \text{ if } w \text{ is right, or } \frac{c_w - |S_w|}{N - n}

the latter where the ensemble predicts the answer of a person who is not in it, as in people's predictability of people.
With k answers of each most frequent word and :math:`\int_0^1 y^t dy = 1 / (t + 1)` for t words beside it,

.. math::

    a_n = \binom{N}{n}^{-1} [x^n] \sum_k \int_0^1 \sum_w r_w \tbinom{c_w}{k} x^k
          \prod_{v \ne w} \bigg(\sum_{j < k} \tbinom{c_v}{j} x^j + y \tbinom{c_v}{k} x^k\bigg) dy ,

which is summed exactly; the integral, of a polynomial, by Gauss-Legendre. Where that is dear, seeded draws take its
place. One person and two are right equally often: two who disagree share the guess. Source of ensembles of people
beside models: Goldstein et al. (2022), Nature Neuroscience 25, 369-380.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import comb
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.checks import check_numbers
from shannon_game.estimators.display import Result
from shannon_game.estimators.documents.clusters import codes, t_half_width
from shannon_game.estimators.documents.corpus import clustered_mean
from shannon_game.estimators.errors import InputError

_CELLS, _DRAWS, _PARTS = 200_000, 400, 10


@dataclass(frozen=True, eq=False, repr=False)
class MajorityAccuracy(Result):
    """How often the most frequent word of n people is right, on the same contexts for every n.

    Attributes
    ----------
    n_people : array, shape (size,)
        People of an ensemble; its mean over contexts where everybody is in it.
    accuracy, se, lower, upper : array, shape (size,)
        Mean over contexts, and Student's interval over groups of contexts and, where they are named, people.
    by_context : array, shape (size, context)
        Accuracies, in the order of the names in `context`.
    context : array, shape (context,)
        Contexts with people enough.
    """

    made_by = "majority_accuracy"

    n_people: FloatArray
    accuracy: FloatArray
    se: FloatArray
    lower: FloatArray
    upper: FloatArray
    by_context: FloatArray
    context: NDArray[Any]


def majority_accuracy(
    answer: ArrayLike,
    context: ArrayLike,
    *,
    sizes: Sequence[int],
    right: ArrayLike | None = None,
    group: ArrayLike | None = None,
    participant: ArrayLike | None = None,
    probability: float = 0.9,
    seed: int = 0,
) -> MajorityAccuracy:
    r"""Compute how often the most frequent word of n people is right (:mod:`formula <.majority>`).

    Parameters
    ----------
    answer, context : array_like, shape (response,)
        Words, spelled alike where they are one, and where they were given, by one person once.
    sizes : sequence of int
        People of an ensemble; 0 is everybody, or everybody but the person whose answer is predicted. Contexts with
        fewer people than the largest are left out for all.
    right : array_like of bool, shape (response,), optional
        Which answers are right, such as the word of the text. None: an ensemble predicts the answer of a person who is
        not in it.
    group : array_like, shape (response,), optional
        Text or document of each; by default each context stands alone.
    participant : array_like, shape (response,), optional
        Who answered. Tenths of the people are then left out in turn (jackknife), and their variance is added to that
        over groups: on the wide side, as single answers count in both.
    probability, seed
        Of the interval, and of 400 draws where more than 200,000 terms would be summed.

    Raises
    ------
    InputError
        Fewer than 2 contexts have people enough.

    Examples
    --------
    >>> answers = ["soup", "soup", "pot", "plane", "jet", "jet"]
    >>> right = [True, True, False, True, False, False]
    >>> found = documents.majority_accuracy(answers, list("aaabbb"), sizes=[1, 3], right=right)
    >>> found.accuracy.round(2), found.by_context.round(2).tolist()
    (array([0.5, 0.5]), [[0.67, 0.33], [1.0, 0.0]])
    """
    check_numbers({f"sizes[{at}]": size for at, size in enumerate(sizes)}, at_least=0)
    n = np.size(answer)
    word, place = codes(answer, "answer", n), codes(context, "context", n)
    hit = None if right is None else np.asarray(right, dtype=bool)
    if hit is not None and hit.shape != (n,):
        raise InputError(f"has shape {hit.shape}, `answer` has {(n,)}", field="right")
    needed = max(*sizes, 1) + (hit is None)
    total = np.bincount(place)
    kept = np.flatnonzero(total >= max(needed, 2))
    if len(kept) < 2:
        raise InputError(f"has {len(kept)} contexts with {needed} people or more; two are needed", field="context")
    values = _values(word, place, hit, kept, sizes, seed)
    first = np.unique(place, return_index=True)[1][kept]
    own = kept if group is None else codes(group, "group", n, "answer")[first]
    mean, freedom = values.mean(axis=1), len(np.unique(own)) - 1
    variance = np.array([clustered_mean(each, own).se for each in values]) ** 2
    if participant is not None:
        person = codes(participant, "participant", n, "answer")
        part = np.random.default_rng(seed).permutation(int(person.max()) + 1)[person] % _PARTS
        n_parts = int(part.max()) + 1
        without = [
            _values(word[part != at], place[part != at], None if hit is None else hit[part != at], kept, sizes, seed)
            for at in range(n_parts)
        ]
        # what nobody is left for stays as it is
        moved = np.array([np.where(np.isfinite(its), its, values).mean(axis=1) for its in without])
        variance = variance + (n_parts - 1) / n_parts * ((moved - moved.mean(axis=0)) ** 2).sum(axis=0)
        freedom = min(freedom, n_parts - 1)
    se = np.sqrt(variance)
    half = np.array([t_half_width(float(each), freedom, probability) for each in se])
    people = [float(total[kept].mean()) - (hit is None) if size == 0 else float(size) for size in sizes]
    given = np.asarray(context)
    names = np.unique(given.astype(str) if given.dtype == object else given)[kept]
    return MajorityAccuracy(np.array(people), mean, se, mean - half, mean + half, values, names)


def _values(  # noqa: PLR0917
    word: NDArray[np.int64],
    place: NDArray[np.int64],
    hit: NDArray[np.bool_] | None,
    contexts: NDArray[np.intp],
    sizes: Sequence[int],
    seed: int,
) -> FloatArray:
    """Accuracies of ensembles, (size, context); NaN where fewer people are left."""
    found = np.full((len(sizes), len(contexts)), np.nan)
    order = np.argsort(place, kind="stable")
    begin = np.searchsorted(place[order], [contexts, contexts + 1])
    for at, (start, stop) in enumerate(begin.T.tolist()):
        rows = order[start:stop]
        n, own = len(rows), word[rows]
        count = np.bincount(np.unique(own, return_inverse=True)[1]) if n else np.zeros(0, dtype=np.int64)
        n_right = -1
        if hit is not None and n:
            # right answers are one word
            n_right = int(hit[rows].sum())
            count = np.unique(own[~hit[rows]], return_counts=True)[1]
        most = n - (hit is None)
        asked = tuple(size or most for size in sizes if 0 < (size or most) <= most)
        if asked:
            shown = [0 < (size or most) <= most for size in sizes]
            found[shown, at] = _of_counts(tuple(sorted(count.tolist())), n_right, asked, seed)
    return found


@lru_cache(maxsize=100_000)
def _of_counts(others: tuple[int, ...], n_right: int, sizes: tuple[int, ...], seed: int) -> FloatArray:
    """Accuracy by size, from the counts of words; `n_right` of the right one, -1: another's answer is predicted."""
    counts = [*others, n_right] if n_right > 0 else [*others]
    if n_right == 0:
        return np.zeros(len(sizes))
    n, most = sum(counts), max(sizes)
    ks, nodes = min(max(counts), most), len(counts) // 2 + 1
    if ks * nodes * (most + 1) * (n + len(counts)) > _CELLS:
        return _by_draws(np.array(counts), n_right, sizes, np.random.default_rng([seed, *counts]))
    y, weight = np.polynomial.legendre.leggauss(nodes)
    y = (y[:, None] + 1) / 2
    # coefficients of x by number of the most frequent word (from 1) and node; `hits` with that word's reward
    ways = np.zeros((ks, nodes, most + 1))
    ways[..., 0], hits = 1, np.zeros((ks, nodes, most + 1))
    for at, count in enumerate(counts):
        new, new_hits = np.zeros_like(ways), np.zeros_like(hits)
        for j in range(min(count, most) + 1):
            c, left = float(comb(count, j)), most + 1 - j
            for sums, before in ((new, ways), (new_hits, hits)):
                sums[j:, :, j:] += c * before[j:, :, :left]
                if 0 < j <= ks:
                    sums[j - 1, :, j:] += y * c * before[j - 1, :, :left]
            if 0 < j <= ks:
                reward = float(count - j if n_right < 0 else at == len(counts) - 1)
                new_hits[j - 1, :, j:] += reward * c * ways[j - 1, :, :left]
        ways, hits = new, new_hits
    of_size = np.einsum("kmn,m->n", hits, weight / 2)[list(sizes)]
    outside = np.array([float(n - size) if n_right < 0 else 1.0 for size in sizes])
    return np.asarray(of_size / outside / np.array([float(comb(n, size)) for size in sizes]))


def _by_draws(counts: NDArray[np.int64], n_right: int, sizes: tuple[int, ...], rng: np.random.Generator) -> FloatArray:
    """The same by random ensembles."""
    n, found = int(counts.sum()), []
    for size in sizes:
        drawn = rng.multivariate_hypergeometric(counts, size, size=_DRAWS)
        modes = drawn == drawn.max(axis=1, keepdims=True)
        reward = (counts - drawn) / (n - size) if n_right < 0 else (np.arange(len(counts)) == len(counts) - 1) * 1.0
        found.append(float(((modes * reward).sum(axis=1) / modes.sum(axis=1)).mean()))
    return np.array(found)
