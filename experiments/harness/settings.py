"""Settings and random numbers that experiments of every kind share."""

from __future__ import annotations

import zlib
from typing import Annotated, Any

import numpy as np
import pandas as pd
from pydantic import Field

from shannon_game.inference.settings import Settings


class Seeded(Settings):
    """Settings of what draws random numbers."""

    seed: Annotated[int, Field(ge=0)] = 0
    """Randomness of the run: bootstrap, subsampling, samplers, and a simulated study without a seed of its own."""


def rng_for(seed: int, purpose: str) -> np.random.Generator:
    """Build the generator for one purpose: its own stream of the run's seed, whatever else is drawn."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(zlib.crc32(purpose.encode()),)))


def rows_of(table: pd.DataFrame) -> list[Any]:
    """Rows as named tuples, ``row.column`` of the type that the column holds (which no stub can know)."""
    return list(table.itertuples(index=False))
