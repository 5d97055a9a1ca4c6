"""Settings of players that are not people."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from shannon_game.experiments.studies.comparison.designed import Crowd
from shannon_game.inference.settings import Positive


class PlayerPopulation(Crowd):
    """How simulated players differ, and what they believe where ``belief=assumed``."""

    exponent: Positive = 0.9
    """Belief is proportional to the generator's to this power: below 1 people are less sure."""
    noise_nats: Annotated[float, Field(ge=0)] = 1.5
    """How far the belief's log-probability of a token is from the generator's (standard deviation, Laplace)."""
    unigram_share: Annotated[float, Field(ge=0, lt=1)] = 0.05
    """Share of the belief that knows how frequent tokens are and nothing of the context."""
