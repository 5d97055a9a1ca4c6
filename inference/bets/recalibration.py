r"""What recalibrated stakes cost: by posterior draw, and of answers that were not seen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.errors import InputError
from shannon_game.inference.posterior.arviz_adapter import InferenceData
from shannon_game.inference.posterior.item_draws import flat, thinned
from shannon_game.inference.posterior.model_comparison import K_BAD, loo_by
from shannon_game.models.bets.recalibration_data import RecalibrationData

_MAX_DRAWS = 2000


@dataclass(frozen=True, eq=False)
class HeldOutLosses:
    """Loss of every answer, named by the study's responses, under stakes recalibrated without it; nats."""

    response: NDArray[np.intp]
    loss_nats: FloatArray
    pareto_k: FloatArray

    @property
    def n_bad_k(self) -> int:
        """Answers whose loss is not to be believed."""
        return int((~(self.pareto_k <= K_BAD)).sum())


def recalibrated_losses(posterior: xr.Dataset, data: RecalibrationData) -> FloatArray:
    """Loss of every answer by draw (at most 2,000), the answer being part of what the posterior has seen; nats."""
    if not np.array_equal(posterior["participant"].to_numpy().astype(str), data.participant):
        raise InputError("are not those of the data", source="posterior", field="participant")
    draws = thinned(posterior, _MAX_DRAWS)
    exponent, share = (flat(draws, name)[:, data.person] for name in ("log_exponent", "mixing_share"))
    exponent = np.exp(exponent)
    with np.errstate(divide="ignore"):
        log_stake = np.log(data.stake)
    total = sum(np.exp(exponent * column) for column in log_stake.T)
    rows = np.arange(data.came.size)
    tempered = np.exp(exponent * log_stake[rows, data.came]) / total
    losses: FloatArray = data.spread_nats - np.log((1 - share) * tempered + share * data.mixed[rows, data.came])
    return losses


def held_out_losses(idata: InferenceData, data: RecalibrationData) -> HeldOutLosses:
    """Loss of every answer under stakes recalibrated on all others, by PSIS; nats."""
    found = loo_by(idata, "answer")
    if not np.array_equal(found.label, data.response):
        raise InputError("are not those of the data", source="log-likelihood", field="answer")
    return HeldOutLosses(data.response, data.spread_nats - found.elpd_nats, found.pareto_k)
