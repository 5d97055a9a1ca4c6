"""Small design of bets on which simulation-based calibration fits the recalibration model."""

from __future__ import annotations

from typing import Any

import xarray as xr

from shannon_game.inference.bets.sbc import recalibration_sbc, small_recalibration_design
from shannon_game.inference.posterior.sbc import SbcModel
from shannon_game.inference.settings import from_numbers
from shannon_game.models.bets.recalibration_priors import RecalibrationPriors


def recalibration(_study: xr.Dataset, settings: Any) -> SbcModel:
    """Recalibration of bets, on a design of its own: a comparison study has no bets."""
    imagined = small_recalibration_design(settings.n_participants, settings.n_items)
    return recalibration_sbc(imagined, from_numbers(RecalibrationPriors, settings.priors))
