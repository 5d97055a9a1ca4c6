"""Stand-in draws of small studies, for the examples of the documentation."""

from __future__ import annotations

import xarray as xr

import models
from estimators.rankings.examples import ranking_study
from inference.examples import stand_in_posterior


def rank_posterior() -> tuple[xr.Dataset, models.RankData]:
    """Draws of the regression of ranks, and its data."""
    study = ranking_study()
    data = models.rank_data(study, study["reference_rank"], 3)
    return stand_in_posterior(models.rank_slope_model(data)).posterior, data
