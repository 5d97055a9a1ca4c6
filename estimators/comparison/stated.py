r"""What a player says against what the same player believes: two orders of the tokens, one exact log-ratio.

A player that is asked in words sees the two tokens as A and B. Asked twice, with the target as A and as B, it gives the
probabilities :math:`a` and :math:`b` that A came next. In log-odds

.. math:: s = \tfrac12 [\operatorname{logit} a - \operatorname{logit} b], \qquad
          \beta = \tfrac12 [\operatorname{logit} a + \operatorname{logit} b]

*s* is what it says of the target, whatever the order; :math:`\beta` is how much it leans to A, whatever the tokens.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.display import Result
from shannon_game.estimators.errors import InputError


@dataclass(frozen=True, eq=False, repr=False)
class StatedBelief(Result):
    """How what a player says of pairs of tokens follows what it believes.

    Attributes
    ----------
    n_pairs : int
        Pairs on which both are known.
    slope, intercept_nats : float
        Least-squares line of what is said, on what is believed: slope 1 says belief as it is, 0 nothing of it.
    slope_se : float
        Standard error, with the pairs of an item in one cluster.
    agreement : float
        Share of pairs on which the token said to be likelier is the one believed to be; a tie counts one half.
    distance_nats : float
        Mean absolute difference of the log-odds.
    """

    n_pairs: int
    slope: float
    intercept_nats: float
    slope_se: float
    correlation: float
    agreement: float
    distance_nats: float


def both_orders(first: ArrayLike, second: ArrayLike) -> tuple[FloatArray, FloatArray]:
    r"""Take the order out of what a player says: log-odds of the target, :math:`s`, and of A, :math:`\beta`, (pair,).

    `first` and `second`, (pair,), are the probabilities given to A where the target is A, and where it is B; NaN
    without an answer.
    """
    a, b = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if a.shape != b.shape or a.ndim != 1:
        problem = f"have shapes {a.shape} and {b.shape}, should have one number per pair"
        raise InputError(problem, field="first, second")
    for name, values in (("first", a), ("second", b)):
        bad = ~np.isnan(values) & ~((values > 0) & (values < 1))
        if bad.any():
            problem = f"is {values[bad][0]} ({int(bad.sum())} such); should be strictly between 0 and 1, or NaN"
            raise InputError(problem, field=name)
    log_odds_a, log_odds_b = np.log(a) - np.log1p(-a), np.log(b) - np.log1p(-b)
    return (log_odds_a - log_odds_b) / 2, (log_odds_a + log_odds_b) / 2


def stated_belief(said_nats: ArrayLike, believed_nats: ArrayLike, item: ArrayLike) -> StatedBelief:
    r"""Compare what a player says of pairs of tokens with what it believes.

    .. math:: s_j = \alpha + k\, d_j + \varepsilon_j, \qquad d = \ln\frac{q(y|c)}{q(x|c)}

    The standard error is that of the sandwich
    :math:`\sum_g (\sum_{j \in g} (d_j - \bar d) e_j)^2 / (\sum_j (d_j - \bar d)^2)^2` over items *g*, times
    :math:`G / (G - 1)`. What too few pairs, or one believed value, do not give is NaN. Log-odds of the target are those
    of :func:`both_orders`; NaN without an answer.
    """
    said, believed = np.asarray(said_nats, dtype=float), np.asarray(believed_nats, dtype=float)
    items = np.asarray(item)
    if not said.shape == believed.shape == items.shape or said.ndim != 1:
        problem = f"have shapes {said.shape}, {believed.shape} and {items.shape}, should have one value per pair"
        raise InputError(problem, field="said_nats, believed_nats, item")
    for name, values in (("said_nats", said), ("believed_nats", believed)):
        if np.isinf(values).any():
            raise InputError(f"is infinite at {int(np.isinf(values).sum())} pairs", field=name)
    known = np.isfinite(said) & np.isfinite(believed)
    s, d = said[known], believed[known]
    if not s.size:
        return StatedBelief(0, *[np.nan] * 6)
    agreement = float(np.mean((1 + np.sign(s) * np.sign(d)) / 2))
    distance = float(np.abs(s - d).mean())
    centred = d - d.mean()
    spread = float(centred @ centred)
    if spread == 0:
        return StatedBelief(s.size, np.nan, np.nan, np.nan, np.nan, agreement, distance)
    slope = float(centred @ s / spread)
    intercept = float(s.mean() - slope * d.mean())
    residual = s - intercept - slope * d
    _, cluster = np.unique(items[known], return_inverse=True)
    score = np.bincount(cluster, weights=centred * residual)
    n_clusters = score.size
    # a line through two points leaves no residual
    known = n_clusters > 1 and s.size > 2
    variance = float(score @ score) / spread**2 * n_clusters / (n_clusters - 1) if known else np.nan
    off = s - s.mean()
    correlation = float(centred @ s / np.sqrt(spread * (off @ off))) if (off @ off) > 0 else np.nan
    return StatedBelief(s.size, slope, intercept, float(np.sqrt(variance)), correlation, agreement, distance)
