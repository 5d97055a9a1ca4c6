"""Practice curves: accuracy by the number of guesses that a participant gave before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.checks import check_numbers
from shannon_game.estimators.display import Result
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.guesses.accuracy import checked_columns, times_drawn


@dataclass(frozen=True, eq=False, repr=False)
class PracticeCurve(Result):
    """Accuracy by the number of guesses given before; bins without a guess are left out; each (bin,).

    Attributes
    ----------
    n_from, n_to : ndarray of int
        Guesses given before, both included.
    accuracy : ndarray of float
        Share of right guesses; who plays longer is in more of the bins, so that it mixes practice with people.
    excess : ndarray of float
        Mean of (right or wrong) minus the participant's own accuracy over all bins: people are taken out. What else
        changes as a player goes on (the place in the document) is not.
    excess_lower, excess_upper : ndarray of float
        Bootstrap over participants; NaN where the bin has a single one.
    """

    n_from: NDArray[np.int64]
    n_to: NDArray[np.int64]
    n_guesses: NDArray[np.int64]
    n_participants: NDArray[np.int64]
    accuracy: FloatArray
    excess: FloatArray
    excess_lower: FloatArray
    excess_upper: FloatArray


def practice_curve(
    correct: ArrayLike,
    participant: ArrayLike,
    n_before: ArrayLike,
    *,
    starts: Sequence[int],
    rng: np.random.Generator,
    n_replicates: int = 1000,
    probability: float = 0.9,
) -> PracticeCurve:
    """Accuracy as participants go on, by the guesses that each had given before, raw and relative to their own.

    `starts` are the first numbers of the bins, rising from 0; the last bin has no end.

    Examples
    --------
    >>> correct, who = [1, 0, 1, 1, 0, 0], ["Ann", "Ann", "Ann", "Bo", "Bo", "Bo"]
    >>> curve = guesses.practice_curve(correct, who, [0, 1, 2] * 2, starts=[0, 2], rng=np.random.default_rng(0))
    >>> curve.accuracy, curve.excess.round(3)
    (array([0.5, 0.5]), array([0., 0.]))
    """
    check_numbers({"n_replicates": n_replicates}, at_least=1)
    check_numbers({"probability": probability}, above=0, below=1)
    right, who, before = checked_columns(correct, participant=participant, n_before=n_before)
    edges = np.asarray(starts)
    if not edges.size or edges[0] != 0 or (np.diff(edges) <= 0).any():
        raise InputError(f"are {list(starts)}, should rise from 0", field="starts")
    tail = (1 - probability) / 2
    code = np.unique(who, return_inverse=True)[1]
    # numbers of bins that hold a guess, so that none is empty
    used, column = np.unique(np.searchsorted(edges, before, side="right") - 1, return_inverse=True)
    shape = (int(code.max()) + 1, used.size)
    cell = code * shape[1] + column

    def summed(weights: FloatArray | None = None) -> FloatArray:
        return np.bincount(cell, weights=weights, minlength=shape[0] * shape[1]).reshape(shape).astype(float)

    own = np.bincount(code, weights=right) / np.bincount(code)
    count, excess = summed(), summed(right - own[code])
    weight = times_drawn(shape[0], n_replicates, rng)
    with np.errstate(invalid="ignore"):
        replicates = (weight @ excess) / (weight @ count)
    n_participants = (count > 0).sum(axis=0)
    alone = n_participants < 2
    lower, upper = np.where(alone, np.nan, np.nanquantile(replicates, [tail, 1 - tail], axis=0))
    # a guess in the last bin came after at least its start
    last = np.append(edges[1:] - 1, before.max())
    return PracticeCurve(
        n_from=edges[used].astype(np.int64),
        n_to=last[used].astype(np.int64),
        n_guesses=count.sum(axis=0).astype(np.int64),
        n_participants=n_participants.astype(np.int64),
        accuracy=summed(right).sum(axis=0) / count.sum(axis=0),
        excess=excess.sum(axis=0) / count.sum(axis=0),
        excess_lower=lower,
        excess_upper=upper,
    )
