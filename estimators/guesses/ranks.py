"""Guess until right: the number of guesses that a participant took for an item."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.arrays import Dataset
from shannon_game.estimators.display import Result
from shannon_game.estimators.guesses.study import GUESSES
from shannon_game.estimators.layout import response_positions


@dataclass(frozen=True, eq=False, repr=False)
class GuessRanks(Result):
    """Ranks at which people found the targets, a row per participant and item.

    Attributes
    ----------
    participant, item : ndarray, shape (row,)
        Names, and positions along ``item``.
    rank : ndarray of float, shape (row,)
        Number of the first right guess, from 1; ``inf`` where none is right.
    n_tried : ndarray of int, shape (row,)
        Guesses given, those after the first right one left out.
    """

    participant: NDArray[np.str_]
    item: NDArray[np.int64]
    rank: NDArray[np.float64]
    n_tried: NDArray[np.int64]


def guess_ranks(study: Dataset) -> GuessRanks:
    """Count the guesses that everybody took for every item, in a game that goes on until the guess is right.

    A participant's guesses at an item are taken in the order in which they were given. A game with a single guess gives
    ranks of 1 and ``inf``. :func:`shannon_game.estimators.rankings.guess_bounds` and the rank scores take such ranks.

    Examples
    --------
    >>> study = guesses.examples.guess_study()
    >>> int((guesses.guess_ranks(study).rank == 1).sum()) == int(study["correct"].sum())
    True
    """
    study = GUESSES.read(study)
    names, person = np.unique(study["participant"].values.astype(str), return_inverse=True)
    item, correct = response_positions(study), study["correct"].values
    # a participant's guesses are numbered in the order in which they were given
    order = np.lexsort((study["n_before"].values, item, person))
    new = np.ones(order.size, dtype=bool)
    new[1:] = (np.diff(person[order]) != 0) | (np.diff(item[order]) != 0)
    start = np.flatnonzero(new)
    row = np.cumsum(new) - 1
    place = np.arange(order.size) - start[row] + 1
    rank = np.full(start.size, np.inf)
    np.minimum.at(rank, row[correct[order]], place[correct[order]].astype(float))
    given = np.diff(start, append=order.size)
    return GuessRanks(
        participant=names[person[order][start]],
        item=item[order][start].astype(np.int64),
        rank=rank,
        n_tried=np.minimum(rank, given).astype(np.int64),
    )
