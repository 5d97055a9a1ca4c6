r"""The gambling estimate of entropy (Cover and King 1978), alone and by a committee."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.checks import check_numbers
from shannon_game.estimators.display import Result
from shannon_game.estimators.errors import InputError


@dataclass(frozen=True, eq=False, repr=False)
class GamblingEstimate(Result):
    """What the capital of people who bet says of the entropy of a text, nats per word.

    Attributes
    ----------
    participant, n_bets : ndarray, shape (participant,)
    log_capital : ndarray, shape (participant,)
        ln of what 1 becomes when all of it is staked every time, at fair odds on a vocabulary (V for 1).
    entropy_nats : ndarray, shape (participant,)
        ln V - log_capital / n_bets, the participant's mean loss: V cancels.
    mean_stake_nats : float
        Entropy estimate of a committee that stakes the mean of its members' stakes, over all items.
    shared_capital_nats : float
        Of one that gives everybody an equal part of the capital and lets it lie, over the `n_shared` items on which
        everybody bet: at most ln(participants) / (items) above the best participant's. NaN without such items.
    """

    participant: NDArray[np.str_]
    n_bets: NDArray[np.int64]
    log_capital: FloatArray
    entropy_nats: FloatArray
    mean_stake_nats: float
    shared_capital_nats: float
    n_shared: int


def gambling_estimate(
    loss_nats: ArrayLike, participant: ArrayLike, item: ArrayLike, *, vocab_size: int
) -> GamblingEstimate:
    r"""Estimate the entropy of a text from the capital of people who bet on its next words.

    With all capital staked each time at V-for-1 odds, n bets turn 1 into :math:`S_n = V^n \prod_i b(y_i)`, and

    .. math:: \hat H_n = \Big(1 - \frac{\log_V S_n}{n}\Big) \ln V = -\frac1n \sum_i \ln b(y_i)

    converges to an upper bound of the entropy rate where the bets are made in the order of a stationary ergodic text,
    and to the rate itself for a better who knows the text's distribution (Cover and King 1978). Bets on contexts out of
    order have a mean loss, and no such limit. Committees: :math:`\bar b_i = \frac1{m_i} \sum_u b_{ui}(y_i)` staked each
    time, and :math:`\bar S_n = \frac1m \sum_u S_{un}`. Losses of answers are those of :func:`bet_losses`, ``inf`` the
    ruin of a participant; only ``log_capital`` depends on the vocabulary.

    Examples
    --------
    >>> found = bets.gambling_estimate([0.7, 1.4, 0.7, 2.8], ["a", "a", "b", "b"], [0, 1, 0, 1], vocab_size=100)
    >>> found.entropy_nats.round(2).tolist(), round(found.mean_stake_nats, 2)
    ([1.05, 1.75], 1.29)
    """
    losses, who, where = np.asarray(loss_nats, dtype=float), np.asarray(participant), np.asarray(item)
    if losses.ndim != 1 or not losses.size or who.shape != losses.shape or where.shape != losses.shape:
        raise InputError("should have one value an answer, as `participant` and `item`", field="loss_nats")
    if not (losses >= 0).all():
        raise InputError(f"has {losses[~(losses >= 0)][0]}, should be at least 0", field="loss_nats")
    check_numbers({"vocab_size": vocab_size}, at_least=2)
    name, person = np.unique(who.astype(str), return_inverse=True)
    places, place = np.unique(where.astype(str) if where.dtype == object else where, return_inverse=True)
    n_bets = np.bincount(person)
    total = np.bincount(person, weights=losses)
    pooled = np.bincount(place, weights=np.exp(-losses)) / np.bincount(place)
    everybody = np.bincount(place, minlength=places.size) == name.size
    n_shared = int(everybody.sum())
    shared = everybody[place]
    log_wealth = -np.bincount(person[shared], weights=losses[shared], minlength=name.size)
    with np.errstate(divide="ignore"):
        committee = float(-np.log(pooled).mean())
    shared_capital = np.nan
    if n_shared:
        top = log_wealth.max()
        log_sum = top + np.log(np.exp(log_wealth - top).mean()) if np.isfinite(top) else -np.inf
        shared_capital = float(-log_sum / n_shared)
    return GamblingEstimate(
        participant=name.astype(str),
        n_bets=n_bets.astype(np.int64),
        log_capital=n_bets * np.log(vocab_size) - total,
        entropy_nats=total / n_bets,
        mean_stake_nats=committee,
        shared_capital_nats=shared_capital,
        n_shared=n_shared,
    )
