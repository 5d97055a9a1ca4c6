"""What bets will cost people of a known belief: every answer that can come, without simulating a study."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from estimators.bets.simulation import whole_chips
from estimators.errors import InputError

__all__ = ["expected_bet_losses"]

FloatArray = NDArray[np.float64]


def expected_bet_losses(
    belief_logprob: ArrayLike,
    back_off_logprob: ArrayLike,
    target: ArrayLike,
    sharpness: ArrayLike,
    *,
    n_named: int = 5,
    n_chips: int = 100,
) -> FloatArray:
    """Loss of people who name their most probable words and stake whole chips, by their sharpness.

    As in :func:`simulate_bet_study`: stakes on the cells (words named, anything else) are proportional to the belief in
    each to the power s, one chip at least on each; a back-off spreads the stake on anything else over unnamed words.

    Parameters
    ----------
    belief_logprob, back_off_logprob : array_like, shape (item, vocab)
        Nats.
    target : array_like of int, shape (item,)
    sharpness : array_like, shape (s,)
        Above 0; above 1 people stake too boldly.

    Returns
    -------
    ndarray, shape (s, item)
        -ln of the share of the chips that lies on the target, nats.

    Raises
    ------
    InputError
        If the shapes disagree, or there are too few words or chips.

    Examples
    --------
    Fifty chips of a hundred lie on the target:

    >>> from estimators import bets
    >>> belief = np.log([[0.5, 0.3, 0.1, 0.1]])
    >>> bets.expected_bet_losses(belief, belief, [0], [1.0], n_named=2).round(3)
    array([[0.693]])
    """
    h, m = np.asarray(belief_logprob, dtype=float), np.asarray(back_off_logprob, dtype=float)
    place, power = np.asarray(target), np.asarray(sharpness, dtype=float)
    if h.ndim != 2 or m.shape != h.shape or place.shape != h.shape[:1]:
        raise InputError(
            f"have shapes {h.shape}, {m.shape}, {place.shape}; should be (item, vocab) twice, and (item,)",
            field="belief_logprob, back_off_logprob, target",
        )
    if not (0 < n_named < h.shape[1] - 1 and n_chips > n_named):
        raise InputError(
            f"is {n_named}, should be at least 1, below the {h.shape[1]} words less one and the {n_chips} chips",
            field="n_named",
        )
    if power.ndim != 1 or not (power > 0).all():
        raise InputError("should be a list of numbers above 0", field="sharpness")
    named = np.argpartition(-h, n_named, axis=1)[:, :n_named]
    cells = np.take_along_axis(h, named, axis=1)
    rest = np.log(np.maximum(1 - np.exp(cells).sum(axis=1), 1e-12))
    hit = named == place[:, None]
    left = np.maximum(1 - np.exp(np.take_along_axis(m, named, axis=1)).sum(axis=1), np.exp(m[np.arange(len(m)), place]))
    spread = np.where(hit.any(axis=1), 0.0, np.log(left) - m[np.arange(len(m)), place])
    wanted = power[:, None, None] * np.column_stack([rest, cells])
    share = np.exp(wanted - wanted.max(axis=2, keepdims=True))
    share /= share.sum(axis=2, keepdims=True)
    chips = whole_chips(share.reshape(-1, n_named + 1), n_chips).reshape(share.shape)
    at = np.where(hit.any(axis=1), 1 + hit.argmax(axis=1), 0)
    stake = np.take_along_axis(chips, np.broadcast_to(at[None, :, None], (power.size, at.size, 1)), axis=2)[..., 0]
    losses: FloatArray = spread - np.log(stake / n_chips)
    return losses
