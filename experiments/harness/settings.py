"""Settings and random numbers that experiments of every kind share."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Annotated, Any

import numpy as np
import pandas as pd
from pydantic import Field

from shannon_game.inference.settings import Settings


class Seeded(Settings):
    """Settings of what draws random numbers."""

    seed: Annotated[int, Field(ge=0)] = 0
    """Randomness of the run: bootstrap, subsampling, samplers, and a simulated study without a seed of its own."""


class OutputSettings(Settings):
    """What a run writes."""

    dpi: Annotated[int, Field(ge=20, le=2400)] = 200
    """Resolution of the PNG figures."""
    title: bool = False
    """Draw titles in the saved figures; the report has them as captions."""
    width: Annotated[str, Field(pattern=r"^\d+(\.\d+)?(cm|in)$")] | None = None
    """Width of the figures, such as 8.5cm or 17cm for a column or a page of a journal; null for each figure's own, of
    which it keeps 60% where panels stand beside each other."""
    print: bool = True
    """Print the table to stdout."""
    html: bool = False
    """Also write the report as one HTML file with the figures inside."""
    bundle: bool = False
    """Also write the folder bundle, and bundle.zip, for a repository: methods, settings, versions, figures as PDF and
    SVG, tables as CSV and LaTeX, checks of anonymity and licence."""

    @property
    def inches(self) -> float | None:
        """Width of the figures."""
        if self.width is None:
            return None
        return float(self.width[:-2]) / (2.54 if self.width.endswith("cm") else 1)


GIVEN_WIDTH: ContextVar[float | None] = ContextVar("GIVEN_WIDTH", default=None)
"""Inches that every figure is wide; none for its own width."""


@contextmanager
def figure_width(inches: float | None) -> Iterator[None]:
    """Give every figure that is made inside the block a width, such as that of a journal's column."""
    token = GIVEN_WIDTH.set(inches)
    try:
        yield
    finally:
        GIVEN_WIDTH.reset(token)


def rng_for(seed: int, purpose: str) -> np.random.Generator:
    """Build the generator for one purpose: its own stream of the run's seed, whatever else is drawn."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(zlib.crc32(purpose.encode()),)))


def rows_of(table: pd.DataFrame) -> list[Any]:
    """Rows as named tuples, ``row.column`` of the type that the column holds (which no stub can know)."""
    return list(table.itertuples(index=False))
