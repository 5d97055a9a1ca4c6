"""Small design of bets on which simulation-based calibration fits the recalibration model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from inference.bets.sbc import recalibration_sbc, small_recalibration_design
from inference.settings import from_numbers
from models.bets.recalibration_priors import RecalibrationPriors

if TYPE_CHECKING:
    import xarray as xr

    from inference.posterior.sbc import SbcModel

__all__ = ["recalibration"]


class _Sizes(Protocol):
    @property
    def n_participants(self) -> int: ...
    @property
    def n_items(self) -> int: ...
    @property
    def priors(self) -> Mapping[str, float]: ...


def recalibration(_study: xr.Dataset, settings: _Sizes) -> SbcModel:
    """Recalibration of bets, on a design of its own: a comparison study has no bets."""
    imagined = small_recalibration_design(settings.n_participants, settings.n_items)
    return recalibration_sbc(imagined, from_numbers(RecalibrationPriors, settings.priors))
