"""Reading times: what a model's surprisal adds to predictions of how long people read words."""

from __future__ import annotations

from collections.abc import Mapping

import xarray as xr

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.boards.abilities import Asked, Measured
from shannon_game.inference.lm.settings import ModelSettings


def reading_times(study: xr.Dataset, models: Mapping[str, ModelSettings], asked: Asked) -> Measured:
    """Score models' surprisal on reading times."""
    raise InputError(f"reading times are not scored yet ({len(models)} models, seed {asked.settings.seed})")
