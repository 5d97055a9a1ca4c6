r"""Scores of a reference token from its rank among a model's ranked tokens.

A token that is not ranked has rank ``inf``, so that every score is one formula. All scores are in [0, 1], fall with the
rank, are 0 for a token that is not ranked and 1 for the most probable one. The temperature does not change them,
because it does not change the order of tokens.

Source of the scores: C. de Jong (2024), An Alternative to Perplexity for the Evaluation of Long-context Large Language
Models, Utrecht University.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.rankings.ranks import check_k, checked_ranks, rank_at

DECAYS = (0.1, 0.3)
"""Rates of the two exponential scores in the thesis."""


def linear_score(rank: ArrayLike, k: int) -> FloatArray:
    """Linear score :math:`(k - r + 1) / k` of ranks with `k` ranked tokens; 0 beyond.

    With a whole vocabulary `k` is its size, and nearly every token scores nearly 1: keep `k` when comparing.

    Examples
    --------
    >>> rankings.linear_score([1, 2, np.inf], k=20)
    array([1.  , 0.95, 0.  ])
    """
    check_k(k)
    ranks = rank_at(rank, k)
    return np.maximum((k - ranks + 1.0) / k, 0.0)


def reciprocal_score(rank: ArrayLike) -> FloatArray:
    """Reciprocal score 1 / r; 0 for a token that is not ranked.

    Examples
    --------
    >>> rankings.reciprocal_score([1, 2, np.inf])
    array([1. , 0.5, 0. ])
    """
    return 1.0 / checked_ranks(rank)


def exponential_score(rank: ArrayLike, decay: float) -> FloatArray:
    """Exponential score :math:`e^{-a (r - 1)}` with `a` = `decay` > 0; 0 for a token that is not ranked.

    Examples
    --------
    >>> rankings.exponential_score([1, 2, np.inf], decay=0.1).round(3)
    array([1.   , 0.905, 0.   ])
    """
    if not (np.isfinite(decay) and decay > 0):
        raise InputError(f"is {decay}, should be a positive number", field="decay")
    return np.exp(-decay * (checked_ranks(rank) - 1.0))


def average_score(rank: ArrayLike, k: int, decays: Sequence[float] = DECAYS) -> FloatArray:
    """Mean of the linear, the reciprocal and the exponential scores (four scores in the thesis, "AVG").

    Examples
    --------
    >>> rankings.average_score([1, 2, np.inf], k=20).round(3)
    array([1.   , 0.774, 0.   ])
    """
    limited = rank_at(rank, k)
    scores = [linear_score(limited, k), reciprocal_score(limited), *(exponential_score(limited, a) for a in decays)]
    mean: FloatArray = np.mean(scores, axis=0)
    return mean


def top_k_accuracy(rank: ArrayLike, k: int) -> FloatArray:
    """1 where the reference token is among the `k` most probable, else 0.

    Examples
    --------
    >>> rankings.top_k_accuracy([1, 2, np.inf], k=1)
    array([1., 0., 0.])
    """
    check_k(k)
    return (checked_ranks(rank) <= k).astype(float)
