"""The simulated bet study: people whose beliefs, and what they make of them, are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from shannon_game.estimators.bets import validate_bet_study
from shannon_game.estimators.bets.simulation import BetSimulation, simulate_bet_study
from shannon_game.estimators.layout import add_note
from shannon_game.experiments.harness.result import loader
from shannon_game.experiments.harness.settings import Seeded
from shannon_game.inference.settings import settings_of, to_dataclass

BetsSimulatedSettings = settings_of(BetSimulation, "BetsSimulatedSettings", base=Seeded)
"""The fields of :class:`~shannon_game.estimators.bets.simulation.BetSimulation`, and ``seed``."""


@loader(BetsSimulatedSettings)
def bets_simulated(settings: Any) -> xr.Dataset:
    """Simulate a bet study whose losses are known.

    See :func:`shannon_game.estimators.bets.simulation.simulate_bet_study`.

    Examples
    --------
    >>> from shannon_game import bets_simulated
    >>> bets_simulated(n_items=6, n_answers=3)["true_loss_nats"].shape
    (60,)
    """
    study = simulate_bet_study(to_dataclass(BetSimulation, settings), np.random.default_rng(settings.seed))
    add_note(study, "answers, simulated: true_loss_nats is known", count=study.sizes["response"])
    return validate_bet_study(study)
