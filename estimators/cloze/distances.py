"""How far apart two distributions of next words are, context by context: TVD, and divergences in nats."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.cloze.distributions import Distributions, check_same_contexts, sums_by_context
from shannon_game.estimators.errors import InputError

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class AlignedDistributions:
    """Two sets of distributions over the union of their words: sorted rows (context, word), with both probabilities."""

    context: Ints
    word: Ints
    p: FloatArray
    q: FloatArray
    n_contexts: int


def align(p: Distributions, q: Distributions) -> AlignedDistributions:
    """Put two sets of distributions on the union of their words, context by context."""
    Distributions.require(p=p, q=q)
    check_same_contexts(p, q)
    width = int(max(p.word.max(initial=0), q.word.max(initial=0))) + 1
    keys = np.concatenate([p.context * width + p.word, q.context * width + q.word])
    union, row = np.unique(keys, return_inverse=True)
    both = np.zeros((2, len(union)))
    both[0, row[: len(p.word)]] = p.probability
    both[1, row[len(p.word) :]] = q.probability
    return AlignedDistributions(union // width, union % width, both[0], both[1], p.n_contexts)


def total_variation(p: Distributions, q: Distributions) -> FloatArray:
    """Total variation distance of each context: TVD = 1/2 sum_w abs(p(w | c) - q(w | c)).

    Between small samples it is biased up: see :func:`tvd_with_baseline` and ``shannon_game.inference.cloze.tvd``. Both
    sides sum to one in every context; see :func:`tvd_exact` for a model known at some words only. NaN without an answer
    on one side.

    Examples
    --------
    >>> people, model = cloze.examples.two_distributions()
    >>> cloze.total_variation(people, model).round(3)
    array([0.5, 1. ])
    """
    both = align(p, q)
    return _no_answer(p, q, sums_by_context(both.context, np.abs(both.p - both.q), p.n_contexts) / 2)


def tvd_exact(p: Distributions, q_at_rows: ArrayLike) -> FloatArray:
    """Total variation distance to a model whose probabilities are known at the words of `p` only.

    Every other word has p = 0 and adds q(w | c) / 2; together they add half of the remaining mass, so that
    TVD = 1/2 (sum_w abs(p(w | c) - q(w | c)) + 1 - sum_w q(w | c)), sums over the words of `p`, (..., context).

    Parameters
    ----------
    q_at_rows : array_like of float, shape (..., row)
        q(w | c) for the rows of `p`, which sums to one in each context, as people's.

    Examples
    --------
    >>> people, model = cloze.examples.two_distributions()
    >>> cloze.tvd_exact(people, q_at_rows=[0.2, 0.5, 0.1]).round(3)
    array([0.55, 0.9 ])
    """
    Distributions.require(p=p)
    q = np.asarray(q_at_rows, dtype=float)
    if (q < 0).any() or np.isnan(q).any():
        raise InputError(f"holds {q.min()}, should be probabilities", field="q_at_rows")
    listed = sums_by_context(p.context, q, p.n_contexts)
    if (listed > 1 + 1e-6).any():
        worst = np.unravel_index(int(np.argmax(listed)), listed.shape)
        problem = f"sums to {listed[worst]:.6f} over the words of context {worst[-1]}, more than 1"
        raise InputError(problem, field="q_at_rows")
    rest = np.maximum(1 - listed, 0)
    distance = (sums_by_context(p.context, np.abs(p.probability - q), p.n_contexts) + rest) / 2
    return np.where(p.mass > 0, distance, np.nan)


def kl_nats(p: Distributions, q: Distributions, *, mixed_in: float = 0.0) -> FloatArray:
    """Kullback-Leibler divergence of each context in nats, KL(p || q) = sum_w p ln(p / q); NaN without an answer.

    It is infinite where `q` lacks a word of `p`, as most samples do; `mixed_in` is the share of the uniform
    distribution over the union of both supports that is mixed into `q` for a finite number.

    Examples
    --------
    >>> people, model = cloze.examples.two_distributions()
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
    return _no_answer(p, q, sums_by_context(both.context, terms, p.n_contexts))


def jensen_shannon_nats(p: Distributions, q: Distributions) -> FloatArray:
    """Jensen-Shannon divergence of each context in nats: mean KL to the midpoint (p + q) / 2; at most ln 2.

    Examples
    --------
    >>> people, model = cloze.examples.two_distributions()
    >>> cloze.jensen_shannon_nats(people, model).round(3)
    array([0.131, 0.693])
    """
    both = align(p, q)
    middle = (both.p + both.q) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = sum(np.where(side > 0, side * (np.log(side) - np.log(middle)), 0.0) / 2 for side in (both.p, both.q))
    return _no_answer(p, q, sums_by_context(both.context, np.asarray(terms), p.n_contexts))


DISTANCES: dict[str, Callable[[Distributions, Distributions], FloatArray]] = {
    each.__name__: each for each in (total_variation, kl_nats, jensen_shannon_nats)
}
"""Distances by name, of the distributions of each context."""


def _no_answer(p: Distributions, q: Distributions, values: FloatArray) -> FloatArray:
    return np.where((p.mass > 0) & (q.mass > 0), values, np.nan)
