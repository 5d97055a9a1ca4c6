"""The simulated cloze study: people and models whose distributions are known."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import numpy as np
import xarray as xr

from shannon_game.estimators.cloze import ClozeSimulation, simulate_cloze_study, validate_cloze_study
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import add_note
from shannon_game.estimators.messages import Load
from shannon_game.experiments.harness.result import loader
from shannon_game.experiments.harness.settings import Seeded
from shannon_game.inference.settings import settings_of, to_dataclass

ClozeSimulatedSettings = settings_of(ClozeSimulation, "ClozeSimulatedSettings", base=Seeded)
"""The fields of :class:`~shannon_game.estimators.cloze.simulation.ClozeSimulation`, and ``seed``."""


@loader(ClozeSimulatedSettings)
def cloze_simulated(settings: Any) -> xr.Dataset:
    """Simulate a cloze study whose total variation distances are known.

    See :func:`~shannon_game.estimators.cloze.simulation.simulate_cloze_study`; :func:`simulation_of` gives its settings
    back.

    Examples
    --------
    >>> from shannon_game import cloze_simulated
    >>> cloze_simulated(n_items=6, families=["mixture"])["true_tvd"].shape
    (1, 6)
    """
    simulation = to_dataclass(ClozeSimulation, settings)
    study = simulate_cloze_study(simulation, np.random.default_rng(settings.seed))
    study.attrs["simulation"] = json.dumps(asdict(simulation))
    add_note(study, "contexts, simulated: true_tvd is known", count=simulation.n_items)
    return validate_cloze_study(study)


def simulation_of(study: xr.Dataset) -> ClozeSimulation:
    """Give the settings of a simulated study back."""
    if "simulation" not in study.attrs:
        raise InputError(f"needs the truth: use {Load('cloze_simulated')}", source="settings", field="study")
    given: dict[str, Any] = json.loads(study.attrs["simulation"])
    return to_dataclass(ClozeSimulation, ClozeSimulatedSettings(**given))
