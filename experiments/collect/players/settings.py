"""Settings of players that are not people."""

from __future__ import annotations

from estimators.comparison.simulation.settings import ParticipantPopulation
from inference.settings import Settings, settings_of

__all__ = ["PlayerPopulation"]

PlayerPopulation = settings_of(ParticipantPopulation, "PlayerPopulation", base=Settings)
"""How simulated players differ: the fields of
:class:`~estimators.comparison.simulation.settings.ParticipantPopulation`."""
