"""Small design of top-1 guesses on which simulation-based calibration fits the accuracy model."""

from __future__ import annotations

from typing import Any

import xarray as xr

from shannon_game.inference.guesses.sbc import accuracy_sbc, small_accuracy_design
from shannon_game.inference.posterior.sbc import SbcModel
from shannon_game.inference.settings import from_numbers
from shannon_game.models.guesses.accuracy_priors import AccuracyPriors


def accuracy(_study: xr.Dataset, settings: Any) -> SbcModel:
    """Accuracy of guesses, on a design of its own: a comparison study has no guesses."""
    imagined = small_accuracy_design(settings.n_participants, settings.n_items, settings.n_pairs)
    return accuracy_sbc(imagined, from_numbers(AccuracyPriors, settings.priors))
