r"""Is the number of responses enough? Pareto tail and sample size against exp(KL).

Importance sampling of a player *h* from a generator *g* needs about :math:`\exp(\mathrm{KL}(h\|g))` draws per item
(Chatterjee & Diaconis 2018), and its error stays Gaussian only while the weights' Pareto shape k is under 0.7
(Vehtari et al. 2024).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.display import Result

Verdict = Literal["enough draws", "doubtful", "too few"]

KHAT_GOOD = 0.5
"""Below it the weights have a finite variance."""
KHAT_BAD = 0.7
"""Above it the sample size needed grows beyond reach."""
_MIN_TAIL = 5
_TIE = 1e-9  # weights that differ by less, relatively, are equal up to rounding


@dataclass(frozen=True, repr=False)
class WeightDiagnostics(Result):
    """What the weights say about themselves.

    Attributes
    ----------
    pareto_k : float
        Shape of the tail of the leave-one-out weights, pooled over items; NaN where fewer than five values make it.
    kl_nats : float
        Mean over items of the self-normalised estimate of KL(h || g): too low when n is too few.
    n_required : float
        Responses per item: 90% quantile over items of exp(KL_q + s_q), s_q the sd of ln(h/g) under h.
    share_starved : float
        Share of items with fewer than two effective responses, n exp(-KL_q) < 2.
    """

    pareto_k: float
    kl_nats: float
    n_required: float
    share_starved: float
    verdict: Verdict


def verdict(
    pareto_k: float, n_median: float, n_required: float, share_starved: float, *, constant: bool = False
) -> Verdict:
    """Whether n is enough for the log-mean to be trusted."""
    if constant:
        return "enough draws"
    if pareto_k >= KHAT_BAD or share_starved > 0.1:
        return "too few"
    if np.isnan(pareto_k) or pareto_k >= KHAT_GOOD or n_median < n_required or share_starved > 0.01:
        return "doubtful"
    return "enough draws"


def fit_pareto_shape(excess: FloatArray) -> tuple[float, float]:
    """Shape k and scale of a generalised Pareto law of excesses (Zhang & Stephens 2009, prior of Vehtari et al. 2024).

    P(X > x) = (1 + k x / scale)^(-1/k); the prior is worth ten observations with k = 0.5.
    """
    x = np.sort(excess)
    n = x.size
    # In units of the largest excess, so that nothing under- or overflows.
    unit = x[-1]
    x = x / unit
    n_grid = 30 + int(np.sqrt(n))
    quartile = x[max(int(n / 4 + 0.5) - 1, 0)]
    theta = 1 + (1 - np.sqrt(n_grid / (np.arange(1, n_grid + 1) - 0.5))) / (3 * quartile)
    shape = np.log1p(-theta[:, None] * x).mean(axis=1)
    profile = n * (np.log(-theta / shape) - shape - 1)
    weight = np.exp(profile - profile.max())
    weight /= weight.sum()
    keep = weight > 10 * np.finfo(float).eps
    theta_hat = float(np.sum(theta[keep] * weight[keep]) / weight[keep].sum())
    raw_shape = float(np.log1p(-theta_hat * x).mean())
    scale = -raw_shape / theta_hat * unit
    return (n * raw_shape + 10 * 0.5) / (n + 10), scale


def pareto_khat(weight: FloatArray) -> float:
    """Pareto shape k of the upper tail of weights; NaN where fewer than five stand out above the threshold."""
    _, excess = _tail_excess(weight)
    return float("nan") if excess.size < _MIN_TAIL else fit_pareto_shape(excess)[0]


def smooth_tail(weight: FloatArray) -> FloatArray:
    """Replace the upper tail by the expected order statistics of its Pareto law, none above the largest weight."""
    smoothed = weight.copy()
    threshold, excess = _tail_excess(weight)
    if excess.size < _MIN_TAIL:
        return smoothed
    above = np.flatnonzero(weight - threshold >= excess[0])
    above = above[np.argsort(weight[above], kind="stable")]
    shape, scale = fit_pareto_shape(excess)
    probability = (np.arange(excess.size) + 0.5) / excess.size
    quantile = -np.log1p(-probability) if abs(shape) < 1e-12 else np.expm1(-shape * np.log1p(-probability)) / shape
    tail = np.minimum(threshold + scale * quantile, weight[above[-1]])
    # Equal weights stay equal: repeated candidates must not be told apart by the order in which they came.
    group = np.concatenate([[0], np.cumsum(np.diff(excess) > _TIE * excess[1:])])
    smoothed[above] = (np.bincount(group, tail) / np.bincount(group))[group]
    return smoothed


def _tail_excess(weight: FloatArray) -> tuple[float, FloatArray]:
    """Threshold, and the tail's excesses over it, increasing; none where the tail is too short."""
    # weights that make the tail (Vehtari et al. 2024)
    size = int(np.ceil(min(0.2 * weight.size, 3 * np.sqrt(weight.size))))
    if size < _MIN_TAIL or size >= weight.size:
        return float("nan"), np.empty(0)
    cut = weight.size - size - 1
    tail = np.sort(np.partition(weight, cut)[cut:])
    threshold = float(tail[0])
    excess = tail[1:] - threshold
    # Ties up to rounding are no tail: constant weights differ in the last bits.
    return threshold, excess[excess > _TIE * max(abs(threshold), np.finfo(float).tiny)]
