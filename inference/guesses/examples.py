"""Stand-in draws of small studies, for the examples of the documentation."""

from __future__ import annotations

import xarray as xr

from shannon_game import models
from shannon_game.estimators.guesses.examples import guess_study
from shannon_game.inference.examples import stand_in_posterior


def accuracy_posterior() -> tuple[xr.Dataset, models.AccuracyData]:
    """Draws of the accuracy model, and its data."""
    data = models.accuracy_data(guess_study())
    return stand_in_posterior(models.accuracy_model(data)).posterior, data
