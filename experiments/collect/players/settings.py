"""Settings of players that are not people."""

from __future__ import annotations

from shannon_game.estimators.comparison.simulation.settings import ParticipantPopulation
from shannon_game.inference.settings import Settings, settings_of

__all__ = ["PlayerPopulation"]

PlayerPopulation = settings_of(ParticipantPopulation, "PlayerPopulation", base=Settings)
"""How simulated players differ: the fields of
:class:`~shannon_game.estimators.comparison.simulation.settings.ParticipantPopulation`."""
