"""A small simulated study, for the examples of the documentation and for a first try of a model."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from estimators.cloze.simulation import ClozeSimulation, simulate_cloze_study

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["cloze_study"]


@cache
def cloze_study() -> xr.Dataset:
    """Cloze study of 12 contexts in 3 texts, with 20 answers a context and language models.

    Returns
    -------
    xarray.Dataset

    Examples
    --------
    >>> from estimators.cloze.examples import cloze_study
    >>> cloze_study().sizes["item"]
    12
    """
    settings = ClozeSimulation(n_items=12, items_per_text=4, n_answers=20, vocab_size=60)
    return simulate_cloze_study(settings, np.random.default_rng(0))
