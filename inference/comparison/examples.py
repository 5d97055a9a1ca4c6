"""Draws of a small study, for the examples of the documentation."""

from __future__ import annotations

from functools import cache

from shannon_game import models
from shannon_game.estimators.comparison.examples import comparison_study
from shannon_game.inference.comparison.participant_fit import Anchor, ParticipantFit, fit_participants
from shannon_game.inference.comparison.participant_gap import SharedBelief


@cache
def participant_fit() -> ParticipantFit:
    """A posterior of 40 draws of the participant model."""
    return fit_participants(models.participant_data(comparison_study()), anchor=Anchor("assumed"), draws=10, tune=10)


def people_belief() -> SharedBelief:
    """Draws of the participants' shared belief."""
    return participant_fit().belief
