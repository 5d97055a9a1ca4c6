"""Stand-in draws of a small study, for the examples of the documentation."""

from __future__ import annotations

from shannon_game import models
from shannon_game.estimators.bets.examples import bet_study
from shannon_game.inference.examples import stand_in_posterior
from shannon_game.inference.posterior.arviz_adapter import InferenceData
from shannon_game.inference.posterior.predictive import complete


def recalibration_posterior() -> tuple[InferenceData, models.RecalibrationData]:
    """All groups of a posterior of the recalibration model, and its data."""
    data = models.recalibration_data(bet_study())
    model = models.recalibration_model(data)
    return complete(stand_in_posterior(model, n_draws=20), model, seed=1, n_prior=8, n_predictive=8), data
