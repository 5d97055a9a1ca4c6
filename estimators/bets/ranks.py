"""Bets as guesses: the place of the target among the words named, by their stakes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from estimators.bets.study import BETS, hit_of_answers

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["stake_ranks"]


def stake_ranks(study: xr.Dataset) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Rank of the target among the words of every answer, the largest stake first, and how many words were named.

    Equal stakes rank in the order in which the words were named. :func:`estimators.rankings.guess_bounds` makes
    Shannon's bounds of them, for whoever guesses the words in that order.

    Returns
    -------
    rank : ndarray of float, shape (response,)
        From 1; ``inf`` where the target was not named.
    n_named : ndarray of int, shape (response,)

    Examples
    --------
    >>> from estimators import bets
    >>> from estimators.bets.examples import bet_study
    >>> bets.stake_ranks(bet_study())[0].tolist()
    [1.0, inf, 2.0, inf, 2.0, inf]
    """
    BETS.source(study)
    answer = study["bet_response"].values
    order = np.lexsort((np.arange(answer.size), -study["bet_stake"].values, answer))
    n_named = np.bincount(answer, minlength=study.sizes["response"])
    start = np.cumsum(n_named) - n_named
    place = np.empty(answer.size)
    place[order] = np.arange(answer.size) - start[answer[order]] + 1
    hit = hit_of_answers(study)
    rank = np.full(hit.size, np.inf)
    rank[hit >= 0] = place[hit[hit >= 0]]
    return rank, n_named
