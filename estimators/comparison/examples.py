"""A small simulated study, for the examples of the documentation and for a first try of a model."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from estimators.comparison import SimulationSettings, simulate_comparison_study

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["comparison_study"]


@cache
def comparison_study() -> xr.Dataset:
    """Comparison study of 6 items and 5 participants.

    Returns
    -------
    xarray.Dataset

    Examples
    --------
    >>> from estimators.comparison.examples import comparison_study
    >>> dict(comparison_study().sizes)["item"]
    8
    """
    settings = SimulationSettings(
        n_items=6, n_reference_items=8, n_participants=5, n_candidates=12, vocab_size=60, rounding="interface"
    )
    return simulate_comparison_study(settings)
