"""Whether stakes are worth what they say: how often a word came that so much was staked on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shannon_game.estimators.arrays import Dataset, FloatArray
from shannon_game.estimators.bets.study import BETS, hit_of_answers
from shannon_game.estimators.display import Result
from shannon_game.estimators.documents import crossed_mean
from shannon_game.estimators.errors import InputError

STAKE_EDGES = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1.0)
"""Edges of the bins of stakes; people stake round numbers, which stand inside the bins' right ends."""


@dataclass(frozen=True, eq=False, repr=False)
class StakeCalibration(Result):
    """Stakes beside how often what they were on came, by bin; a bin without stakes is not there.

    Attributes
    ----------
    stake_from, stake_to : ndarray, shape (bin,)
        A bin holds its right end.
    n_stakes, mean_stake, share_came, share_se : ndarray, shape (bin,)
        The error is clustered over people and items; NaN where there is one of either.
    calibration_error : float
        Mean over stakes of the absolute difference of ``mean_stake`` and ``share_came`` of their bins.
    """

    stake_from: FloatArray
    stake_to: FloatArray
    n_stakes: NDArray[np.int64]
    mean_stake: FloatArray
    share_came: FloatArray
    share_se: FloatArray
    calibration_error: float


def stakes_and_outcomes(study: Dataset) -> dict[str, NDArray[np.generic]]:
    """Stakes of a study, bets first and then those on anything else, as :func:`calibrate_stakes` takes them."""
    study = BETS.read(study)
    answer = np.concatenate([study["bet_response"].values, np.arange(study.sizes["response"])])
    return {
        "stake": np.concatenate([study["bet_stake"].values, study["other_stake"].values]).astype(float),
        "came": np.concatenate([study["bet_hit"].values, hit_of_answers(study) < 0]),
        "participant": study["participant"].values.astype(str)[answer],
        "item": study["response_item"].values[answer],
    }


def calibrate_stakes(
    stake: ArrayLike, came: ArrayLike, participant: ArrayLike, item: ArrayLike, *, edges: Sequence[float] = STAKE_EDGES
) -> StakeCalibration:
    """Compare stakes, shares from 0 to 1, with how often what they were on came, by bins of stakes.

    `stake`, `came`, `participant` and `item` have one value a stake; `edges` rise from 0 to 1, and a bin holds its
    right end, the first one both.

    Examples
    --------
    >>> found = bets.calibrate_stakes([0.5, 0.5, 0.1], [True, False, False], ["a", "b", "a"], [0, 0, 1])
    >>> found.mean_stake.tolist(), found.share_came.tolist()
    ([0.1, 0.5], [0.0, 0.5])
    """
    values, outcome = np.asarray(stake, dtype=float), np.asarray(came, dtype=bool)
    who, where = np.asarray(participant), np.asarray(item)
    if values.ndim != 1 or not values.size or any(each.shape != values.shape for each in (outcome, who, where)):
        raise InputError("should have one value a stake, as `came`, `participant` and `item`", field="stake")
    if not ((values >= 0) & (values <= 1)).all():
        raise InputError(f"has {values[~((values >= 0) & (values <= 1))][0]}, should be from 0 to 1", field="stake")
    bounds = np.asarray(edges, dtype=float)
    if bounds.size < 2 or bounds[0] != 0 or bounds[-1] != 1 or (np.diff(bounds) <= 0).any():
        raise InputError(f"are {bounds.tolist()}, should rise from 0 to 1", field="edges")
    # chips over their number may be a hair above a round share
    at = np.maximum(np.searchsorted(bounds, values - 1e-9, side="left") - 1, 0)
    found = [(one, at == one) for one in range(bounds.size - 1) if (at == one).any()]
    means = [crossed_mean(outcome[mine].astype(float), who[mine], where[mine]) for _, mine in found]
    n = np.array([mean.n_responses for mean in means])
    mean_stake = np.array([values[mine].mean() for _, mine in found])
    share = np.array([mean.mean for mean in means])
    return StakeCalibration(
        stake_from=bounds[[one for one, _ in found]],
        stake_to=bounds[[one + 1 for one, _ in found]],
        n_stakes=n,
        mean_stake=mean_stake,
        share_came=share,
        share_se=np.array([mean.se for mean in means]),
        calibration_error=float(np.average(np.abs(mean_stake - share), weights=n)),
    )
