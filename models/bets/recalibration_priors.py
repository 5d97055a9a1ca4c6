"""Priors of the recalibration model; they need no sampler."""

from __future__ import annotations

from dataclasses import dataclass

from shannon_game.models.priors import check_priors


@dataclass(frozen=True)
class RecalibrationPriors:
    """Scales of the priors of :func:`~shannon_game.models.bets.recalibration.recalibration_model`.

    Attributes
    ----------
    exponent : float
        Normal around 0 for the mean over participants of ln k: with 0.5, k is between .4 and 2.3 in 90%.
    exponent_spread : float
        Median of the log-normal for the standard deviation over participants of ln k.
    mixing_mean, mixing : float
        Normal for the mean over participants of the log-odds of the share mixed in: -3 is 5%.
    mixing_spread : float
        Median of the log-normal for their standard deviation.
    log_spread : float
        Standard deviation of the logarithm of both spreads.
    """

    exponent: float = 0.5
    exponent_spread: float = 0.3
    mixing_mean: float = -3.0
    mixing: float = 1.0
    mixing_spread: float = 0.5
    log_spread: float = 0.7

    def __post_init__(self) -> None:
        check_priors(self, "recalibration priors", any_sign=("mixing_mean",))
