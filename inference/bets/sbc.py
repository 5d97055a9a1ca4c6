"""The recalibration model for simulation-based calibration, on a small design."""

from __future__ import annotations

from functools import partial

import numpy as np
import xarray as xr

from shannon_game.estimators.checks import check_numbers
from shannon_game.inference.posterior.sbc import Design, SbcModel
from shannon_game.inference.settings import from_numbers
from shannon_game.models.bets.recalibration import recalibration_model
from shannon_game.models.bets.recalibration_data import RecalibrationData
from shannon_game.models.bets.recalibration_priors import RecalibrationPriors


def recalibration(_study: xr.Dataset, design: Design) -> SbcModel:
    """Recalibration of bets, on a design of its own: a comparison study has no bets."""
    imagined = small_recalibration_design(design.n_participants, design.n_items)
    return recalibration_sbc(imagined, from_numbers(RecalibrationPriors, design.priors))


def recalibration_sbc(data: RecalibrationData, priors: RecalibrationPriors | None = None) -> SbcModel:
    """Recalibration of bets for SBC; the outcomes in `data` only give the shape of those simulated."""
    scalars = ("exponent_mean", "exponent_spread", "mixing_mean", "mixing_spread")
    return SbcModel(
        name="recalibration",
        build=partial(recalibration_model, data, priors),
        quantities=(*scalars, "log_exponent[0]", "mixing_share[0]"),
    )


def small_recalibration_design(n_participants: int, n_answers: int, n_named: int = 4) -> RecalibrationData:
    """Bets of an imagined study: stakes from timid to bold, mixed with what knows something else."""
    sizes = {"n_participants": n_participants, "n_items": n_answers, "n_named": n_named}
    check_numbers(sizes, "recalibration design", at_least=1)
    # one design whatever the seed of a run: it is no part of what is calibrated
    rng = np.random.default_rng(0)
    size, n_cells = n_participants * n_answers, n_named + 1
    return RecalibrationData(
        participant=np.array([f"p{number}" for number in range(n_participants)]),
        person=np.repeat(np.arange(n_participants), n_answers),
        stake=rng.dirichlet(np.full(n_cells, 0.7), size=size),
        mixed=rng.dirichlet(np.full(n_cells, 0.7), size=size),
        came=np.zeros(size, dtype=np.intp),
        spread_nats=np.zeros(size),
        response=np.arange(size),
        item=np.tile(np.arange(n_answers), n_participants),
        back_off="imagined",
        mix="imagined",
        n_unasked=0,
    )
