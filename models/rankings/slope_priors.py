"""Priors of the regression of ranks; they need no sampler."""

from __future__ import annotations

from dataclasses import dataclass

from shannon_game.models.priors import check_priors


@dataclass(frozen=True)
class RankPriors:
    """Scales of the priors of :func:`~shannon_game.models.rankings.slopes.rank_slope_model`, weak by default.

    All are on log-odds, slopes per doubling of the context.

    Attributes
    ----------
    baseline : float
        Concentration of the Dirichlet distribution of the baseline's categories.
    slope : float
        Standard deviation of a normal around 0 for the mean slope of all models.
    slope_spread, window_spread, model_window_spread : float
        Scales of half-normals.
    model, text : float
        Standard deviations of zero-sum normals.
    """

    baseline: float = 1.0
    slope: float = 0.5
    slope_spread: float = 0.25
    model: float = 1.0
    text: float = 0.5
    window_spread: float = 1.0
    model_window_spread: float = 0.5

    def __post_init__(self) -> None:
        check_priors(self, "rank priors")
