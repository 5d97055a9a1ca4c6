"""Stand-in draws of a small study, for the examples of the documentation."""

from __future__ import annotations

import models
from estimators.bets.examples import bet_study
from inference.examples import stand_in_posterior
from inference.posterior.arviz_adapter import InferenceData
from inference.posterior.predictive import complete


def recalibration_posterior() -> tuple[InferenceData, models.RecalibrationData]:
    """All groups of a posterior of the recalibration model, and its data."""
    data = models.recalibration_data(bet_study())
    model = models.recalibration_model(data)
    return complete(stand_in_posterior(model, n_draws=20), model, seed=1, n_prior=8, n_predictive=8), data
