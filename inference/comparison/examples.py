"""Stand-in draws of small studies, for the examples of the documentation."""

from __future__ import annotations

import numpy as np
import xarray as xr

import models
from estimators.comparison.examples import comparison_study
from inference.comparison.participant_gap import SharedBelief, shared_belief
from inference.examples import stand_in_posterior
from models import BeliefData, ParticipantData

__all__ = ["belief_posterior", "participant_posterior", "people_belief"]


def belief_posterior() -> tuple[xr.Dataset, BeliefData]:
    """Draws of the belief of one player, and the data of the model."""
    data = models.belief_data(comparison_study(), "lm-weak", "interface")
    return stand_in_posterior(models.belief_model(data)).posterior, data


def participant_posterior() -> tuple[xr.Dataset, ParticipantData]:
    """Draws of the participant model, and its data."""
    data = models.participant_data(comparison_study())
    return stand_in_posterior(models.participant_model(data)).posterior, data


def people_belief() -> SharedBelief:
    """Draws of the participants' shared belief."""
    return shared_belief(*participant_posterior(), np.random.default_rng(0))
