"""Stand-in draws of small studies, for the examples of the documentation."""

from __future__ import annotations

import xarray as xr

from shannon_game import models
from shannon_game.estimators.rankings.examples import ranking_study
from shannon_game.inference.examples import stand_in_posterior


def rank_posterior() -> tuple[xr.Dataset, models.RankData]:
    """Draws of the regression of ranks, and its data."""
    study = ranking_study()
    data = models.rank_data(study, study["reference_rank"], 3)
    return stand_in_posterior(models.rank_slope_model(data)).posterior, data
