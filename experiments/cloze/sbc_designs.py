"""Small design of two samples of words on which simulation-based calibration fits the model of the Bayesian TVD."""

from __future__ import annotations

from typing import Any

import xarray as xr

from shannon_game.inference.cloze.tvd_sbc import word_pair_sbc
from shannon_game.inference.posterior.sbc import SbcModel

_ANSWERS = 20


def tvd(_study: xr.Dataset, settings: Any) -> SbcModel:
    """Two samples of 20 words in each context, on a design of its own: a comparison study has no words."""
    return word_pair_sbc(settings.n_items, _ANSWERS)
