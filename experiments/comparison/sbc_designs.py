"""Small designs of comparison studies on which simulation-based calibration fits each model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shannon_game.inference.comparison import sbc
from shannon_game.inference.settings import from_numbers
from shannon_game.models.comparison.calibration import CalibrationPriors, favoured_outcomes

if TYPE_CHECKING:
    import xarray as xr

    from shannon_game.experiments.comparison.sbc import SbcSettings
    from shannon_game.inference.posterior.sbc import SbcModel


def calibration(study: xr.Dataset, settings: SbcSettings, family: str = "llo") -> SbcModel:
    """Calibration curves that are linear in log-odds."""
    outcomes = favoured_outcomes(sbc.small_study(study, settings.n_items, settings.n_participants))
    return sbc.calibration_sbc(outcomes, family, from_numbers(CalibrationPriors, settings.priors))


def calibration_beta(study: xr.Dataset, settings: SbcSettings) -> SbcModel:
    """Calibration curves of the beta family."""
    return calibration(study, settings, "beta")
