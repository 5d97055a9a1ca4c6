"""Calibration curves for simulation-based calibration, on small designs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from shannon_game.inference.posterior.sbc import Design, SbcModel
from shannon_game.inference.settings import from_numbers
from shannon_game.models.comparison.calibration import COEFFICIENTS, CalibrationPriors, calibration_model
from shannon_game.models.comparison.calibration_data import favoured_outcomes

if TYPE_CHECKING:
    from numpy.typing import NDArray


def small_study(study: xr.Dataset, n_items: int, n_participants: int) -> xr.Dataset:
    """Keep the responses of the `n_participants` participants who gave the most, on the `n_items` most asked items."""
    who, item = study["participant"].values.astype(str), study["response_item"].values
    people = _most_frequent(who, n_participants)
    mine = np.isin(who, people)
    return study.isel(response=np.flatnonzero(mine & np.isin(item, _most_frequent(item[mine], n_items))))


def _most_frequent(values: NDArray[Any], n: int) -> NDArray[Any]:
    name, count = np.unique(values, return_counts=True)
    chosen: NDArray[Any] = name[np.argsort(-count, kind="stable")[:n]]
    return chosen


def calibration(study: xr.Dataset, design: Design, family: str = "llo") -> SbcModel:
    """Calibration curves that are linear in log-odds; the outcomes only give the shape of those simulated."""
    data = favoured_outcomes(small_study(study, design.n_items, design.n_participants))
    return SbcModel(
        name="calibration" if family == "llo" else f"calibration_{family}",
        build=partial(calibration_model, data, family, from_numbers(CalibrationPriors, design.priors)),
        quantities=tuple(f"{name}{part}" for name in COEFFICIENTS[family] for part in ("_mean", "_spread", "[0]")),
    )


def calibration_beta(study: xr.Dataset, design: Design) -> SbcModel:
    """Calibration curves of the beta family."""
    return calibration(study, design, "beta")
