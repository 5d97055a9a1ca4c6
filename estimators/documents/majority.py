r"""How often the most frequent word of n people is right, by n.

Of a context's N people, :math:`c_w` gave the word w. An ensemble S is n of them, drawn without replacement; its most
frequent words M(S) share the guess:

.. math:: a_n = E\Big[\frac{1}{|M(S)|} \sum_{w \in M(S)} r_w\Big], \qquad
          r_w = [w \text{ is right}] \;\text{ or }\; \frac{c_w - |S_w|}{N - n},

the latter where S predicts the answer of a person who is not in it. With :math:`\int_0^1 y^t dy = 1 / (t + 1)` for t
words as frequent as w, and k answers of each,

.. math:: a_n = \tbinom{N}{n}^{-1} [x^n] \sum_k \int_0^1 \sum_w r_w \tbinom{c_w}{k} x^k \prod_{v \ne w}
          \Big(\sum_{j < k} \tbinom{c_v}{j} x^j + y \tbinom{c_v}{k} x^k\Big) dy ,

summed exactly (Gauss-Legendre), or by seeded draws where that is dear. Two people are right as often as one. Source of
ensembles beside models: Goldstein et al. (2022), Nature Neuroscience 25, 369-380.
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

_TERMS, _DRAWS, _PARTS = 200_000, 400, 10


@dataclass(frozen=True, eq=False, repr=False)
class MajorityAccuracy(Result):
    """How often the most frequent word of n people is right, on the same contexts for every n.

    Attributes
    ----------
    n_people, accuracy, se, lower, upper : array, shape (size,)
        People of an ensemble (of everybody the mean over contexts), accuracy, and Student's interval.
    by_context : array, shape (size, context)
    context : array, shape (context,)
        Contexts with people enough.
    """

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
    """Compute how often the most frequent word of n people is right (:mod:`formula <.majority>`).

    Parameters
    ----------
    answer, context : array_like, shape (response,)
        Words, and where they were given, by one person once.
    sizes : sequence of int
        People of an ensemble, 0 for everybody (but who is predicted); contexts with fewer than the most are left out.
    right : array_like of bool, shape (response,), optional
        Which answers are right; None: an ensemble predicts the answer of a person who is not in it.
    group : array_like, shape (response,), optional
        Text of each, which is sampled; by default each context.
    participant : array_like, shape (response,), optional
        Who answered: the variance of leaving out tenths of the people (jackknife) is added, on the wide side.

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
    names, total = np.unique(np.asarray(context), return_counts=True)
    if right is not None:
        # right answers are one word
        word = np.where(np.asarray(right, dtype=bool), -1, word)
    outside = int(right is None)
    needed = max(*sizes, 1) + outside
    kept = np.flatnonzero(total >= max(needed, 2))
    if len(kept) < 2:
        raise InputError(f"has {len(kept)} contexts with {needed} people or more; two are needed", field="context")
    values = _values(word, place, kept, outside, sizes, seed)
    own = kept if group is None else codes(group, "group", n, "answer")[np.unique(place, return_index=True)[1][kept]]
    mean, freedom = values.mean(axis=1), len(np.unique(own)) - 1
    variance = np.array([clustered_mean(each, own).se for each in values]) ** 2
    if participant is not None:
        person = codes(participant, "participant", n, "answer")
        part = np.random.default_rng(seed).permutation(int(person.max()) + 1)[person] % _PARTS
        n_parts = int(part.max()) + 1
        some = [_values(word[part != at], place[part != at], kept, outside, sizes, seed) for at in range(n_parts)]
        # where too few are left it stays as it is
        moved = np.array([np.where(np.isfinite(its), its, values).mean(axis=1) for its in some])
        variance += (n_parts - 1) / n_parts * ((moved - moved.mean(axis=0)) ** 2).sum(axis=0)
        freedom = min(freedom, n_parts - 1)
    se = np.sqrt(variance)
    half = np.array([t_half_width(float(each), freedom, probability) for each in se])
    people = np.array([size or total[kept].mean() - outside for size in sizes], dtype=float)
    return MajorityAccuracy(people, mean, se, mean - half, mean + half, values, names[kept])


def _values(  # noqa: PLR0917
    word: NDArray[np.int64],
    place: NDArray[np.int64],
    contexts: NDArray[np.intp],
    outside: int,
    sizes: Sequence[int],
    seed: int,
) -> FloatArray:
    """Accuracies of ensembles, (size, context), of words of which -1 is right; NaN where too few people are left."""
    found = np.full((len(sizes), len(contexts)), np.nan)
    pairs, count = np.unique(np.stack([place, word]), axis=1, return_counts=True)
    for at, (start, stop) in enumerate(np.searchsorted(pairs[0], [contexts, contexts + 1]).T.tolist()):
        counts = count[start:stop].tolist()
        n_right = -1 if outside else counts.pop(0) if start < stop and pairs[1, start] == -1 else 0
        most = int(count[start:stop].sum()) - outside
        can = [0 < (size or most) <= most for size in sizes]
        asked = tuple(size or most for size, its in zip(sizes, can, strict=True) if its)
        if asked:
            found[can, at] = _of_counts(tuple(sorted(counts)), n_right, asked, seed) if n_right else 0
    return found


@lru_cache(maxsize=100_000)
def _of_counts(others: tuple[int, ...], n_right: int, sizes: tuple[int, ...], seed: int) -> FloatArray:
    """Accuracy by size, from the counts of words; `n_right` of the right one, -1: another's answer is predicted."""
    counts = np.array([*others, n_right][: len(others) + (n_right > 0)])
    n, most, nodes = int(counts.sum()), max(sizes), len(counts) // 2 + 1
    ks = min(int(counts.max()), most)
    is_right = np.arange(len(counts)) == len(counts) - 1
    if ks * nodes * (most + 1) * (n + len(counts)) > _TERMS:
        rng, found = np.random.default_rng([seed, *counts]), []
        for size in sizes:
            drawn = rng.multivariate_hypergeometric(counts, size, size=_DRAWS)
            modes = drawn == drawn.max(axis=1, keepdims=True)
            reward = is_right if n_right > 0 else (counts - drawn) / (n - size)
            found.append(((modes * reward).sum(axis=1) / modes.sum(axis=1)).mean())
        return np.array(found)
    y, weight = np.polynomial.legendre.leggauss(nodes)
    y = (y[:, None] + 1) / 2
    # coefficients of x by k and node: of all words so far, and of those with the reward of one that is most frequent
    ways, hits = (np.zeros((ks, nodes, most + 1)) for _ in range(2))
    ways[..., 0] = 1
    for at, count in enumerate(counts.tolist()):
        before, (ways, hits) = (ways, hits), (np.zeros_like(ways), np.zeros_like(hits))
        for j in range(min(count, most) + 1):
            c, left = float(comb(count, j)), most + 1 - j
            for new, old in zip((ways, hits), before, strict=True):
                new[j:, :, j:] += c * old[j:, :, :left]
                new[j - 1 : j, :, j:] += y * c * old[j - 1 : j, :, :left]
            reward = float(is_right[at] if n_right > 0 else count - j)
            hits[j - 1 : j, :, j:] += reward * c * before[0][j - 1 : j, :, :left]
    people = np.array([(n - size if n_right < 0 else 1) * float(comb(n, size)) for size in sizes])
    return np.asarray(np.einsum("kmn,m->n", hits, weight / 2)[list(sizes)] / people)
