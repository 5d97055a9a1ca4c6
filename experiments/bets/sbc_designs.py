"""Small design of bets on which simulation-based calibration fits the recalibration model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from inference.bets.sbc import recalibration_sbc, small_recalibration_design
from inference.settings import from_numbers
from models.bets.recalibration_priors import RecalibrationPriors

if TYPE_CHECKING:
    import xarray as xr

    from inference.posterior.sbc import SbcModel


def recalibration(_study: xr.Dataset, settings: Any) -> SbcModel:
    """Recalibration of bets, on a design of its own: a comparison study has no bets."""
    imagined = small_recalibration_design(settings.n_participants, settings.n_items)
    return recalibration_sbc(imagined, from_numbers(RecalibrationPriors, settings.priors))
