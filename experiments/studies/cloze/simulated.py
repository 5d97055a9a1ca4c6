"""The simulated cloze study: people and models whose distributions are known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
import xarray as xr

from estimators.cloze.simulation import ClozeSimulation, simulate_cloze_study
from estimators.cloze.study import validate_cloze_study
from estimators.errors import InputError, unknown_choice
from estimators.notes import add_note

__all__ = ["load", "simulation_settings"]

_SOURCE = "study=cloze_simulated"


def load(config: Mapping[str, Any]) -> xr.Dataset:
    """Simulate a cloze study; settings are those of :class:`estimators.cloze.simulation.ClozeSimulation` and ``seed``.

    Raises
    ------
    InputError
        For an unknown setting or value.
    """
    settings = simulation_settings(config)
    seed = config.get("seed", 0)
    if not isinstance(seed, int) or isinstance(seed, bool) or seed < 0:
        raise InputError(f"is {seed!r}, should be a whole number, 0 or larger", source=_SOURCE, field="seed")
    study = simulate_cloze_study(settings, np.random.default_rng(seed))
    add_note(study, "contexts, simulated: true_tvd is known", count=settings.n_items)
    return validate_cloze_study(study)


def simulation_settings(config: Mapping[str, Any]) -> ClozeSimulation:
    """Settings from a config; ``name`` and ``seed`` are not among them."""
    given = {key: value for key, value in config.items() if key not in ("name", "seed")}
    valid = [field.name for field in fields(ClozeSimulation)]
    for key, value in given.items():
        if key not in valid:
            raise unknown_choice("setting", key, [*valid, "seed"], source=_SOURCE)
        if isinstance(value, list):
            given[key] = tuple(value)
    for key in ("exponent", "difference"):
        value = given.get(key, (1.0, 1.0))
        if not (isinstance(value, tuple) and len(value) == 2 and all(isinstance(x, int | float) for x in value)):
            raise InputError(f"is {value!r}, should be two numbers: [low, high]", source=_SOURCE, field=key)
    return ClozeSimulation(**given)
