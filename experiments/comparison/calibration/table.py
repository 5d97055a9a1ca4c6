"""The table of the calibration experiment: how every participant answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from shannon_game.experiments.comparison.calibration.summary import TYPICAL
from shannon_game.experiments.harness.bayes import CONVERGENCE_COLUMNS, Fit, convergence_columns, interval_columns
from shannon_game.experiments.harness.tables import short_names
from shannon_game.inference.posterior.convergence import Convergence
from shannon_game.models.comparison.calibration_data import OutcomeData, ReportData

FloatArray = NDArray[np.float64]

_CURVES = ("calibration_slope", "calibration_bias_nats", "game_slope", "game_bias_nats")
_ESTIMATED = (*_CURVES, "bias_nats", "slope", "noise_nats", "lapse")
_TRUTHS = ("true_bias_nats", "true_relative_slope", "true_noise_nats", "true_lapse")

CALIBRATION_COLUMNS = (
    *("participant", "label", "n_responses", "n_favoured", "confidence", "accuracy", "overconfidence", "share_ends"),
    *(f"{name}_{what}" for name in _ESTIMATED for what in ("median", "lower", "upper")),
    "relative_slope_median",
    *_TRUTHS,
    *CONVERGENCE_COLUMNS,
)
"""Columns of the table: one row the typical participant, then one row a participant."""


def participant_table(
    study: xr.Dataset, reports: ReportData, outcomes: OutcomeData, fits: Mapping[str, Fit], tail: float
) -> pd.DataFrame:
    """One row the typical participant, then one row a participant (:data:`CALIBRATION_COLUMNS`)."""
    worst = _worst([fit.convergence for fit in fits.values()])
    described = _described(reports, outcomes, np.ones(reports.person.size, dtype=bool))
    typical = {"participant": TYPICAL, "label": TYPICAL, "relative_slope_median": 1.0}
    rows = [typical | described | _typical(fits, tail) | worst]
    labels, truth = short_names(map(str, reports.participant)), _truth(study, reports.participant)
    slopes = _flat(fits["reports"].posterior["slope"])
    relative = np.median(slopes / np.exp(np.log(slopes).mean(axis=1, keepdims=True)), axis=0)
    for number, name in enumerate(reports.participant):
        own = {"participant": name, "label": labels[str(name)], "relative_slope_median": relative[number]}
        own |= _described(reports, outcomes, reports.person == number) | _own(fits, str(name), tail)
        rows.append(own | {column: values[number] for column, values in truth.items()} | worst)
    return pd.DataFrame(rows, columns=list(CALIBRATION_COLUMNS))


def _described(reports: ReportData, outcomes: OutcomeData, mine: NDArray[np.bool_]) -> dict[str, float]:
    """Counts and raw means of some rows."""
    favoured = np.isin(outcomes.row, reports.row[mine])
    n, ends = int(favoured.sum()), [0, reports.box_report.size - 1]
    confidence = float(outcomes.report[favoured].mean()) if n else np.nan
    accuracy = float(outcomes.outcome[favoured].mean()) if n else np.nan
    return {
        "n_responses": int(mine.sum()),
        "n_favoured": n,
        "confidence": confidence,
        "accuracy": accuracy,
        "overconfidence": confidence - accuracy,
        "share_ends": np.nan if reports.is_raw else float(np.isin(reports.report[mine], ends).mean()),
    }


def _typical(fits: Mapping[str, Fit], tail: float) -> dict[str, float]:
    process = fits["reports"].posterior
    draws = {
        "slope": np.exp(process["log_slope_mean"].to_numpy()),
        "noise_nats": np.exp(process["log_noise_mean"].to_numpy()),
        "lapse": 1 / (1 + np.exp(-process["logit_lapse_mean"].to_numpy())),
    }
    for name, curve in (("calibration", "llo"), ("game", "game")):
        draws[f"{name}_slope"] = fits[curve].posterior["slope_mean"].to_numpy()
        draws[f"{name}_bias_nats"] = fits[curve].posterior["bias_mean"].to_numpy()
    return {key: value for name, values in draws.items() for key, value in interval_columns(name, values, tail).items()}


def _own(fits: Mapping[str, Fit], participant: str, tail: float) -> dict[str, float]:
    found: dict[str, float] = {}
    process = fits["reports"].posterior.sel(participant=participant)
    for name, column in (("bias", "bias_nats"), ("slope", "slope"), ("noise", "noise_nats"), ("lapse", "lapse")):
        found |= interval_columns(column, process[name].to_numpy(), tail)
    for name, curve in (("calibration", "llo"), ("game", "game")):
        posterior = fits[curve].posterior
        if participant not in posterior["participant"].to_numpy():  # never favoured an option
            continue
        for coefficient, column in (("slope", f"{name}_slope"), ("bias", f"{name}_bias_nats")):
            found |= interval_columns(column, posterior[coefficient].sel(participant=participant).to_numpy(), tail)
    return found


def _truth(study: xr.Dataset, participant: NDArray[np.str_]) -> dict[str, FloatArray]:
    """Known parameters of a simulation on the scales of the table."""
    if "true_bias" not in study:
        return {}
    known = study.sel(participant_truth=participant)
    bias, slope = known["true_bias"].to_numpy(), known["true_slope"].to_numpy()
    return {
        # the simulation adds its bias before the slope; the model's is on the reported log-odds, and centred
        "true_bias_nats": slope * bias - np.mean(slope * bias),
        "true_relative_slope": slope / np.exp(np.log(slope).mean()),
        "true_noise_nats": known["true_noise"].to_numpy(),
        "true_lapse": known["true_lapse"].to_numpy(),
    }


def _worst(found: list[Convergence]) -> dict[str, Any]:
    every = pd.DataFrame([convergence_columns(one) for one in found])
    return {
        **{name: every[name].max(skipna=False) for name in ("r_hat_max", "n_divergent")},
        **{name: every[name].min(skipna=False) for name in ("ess_bulk_min", "ess_tail_min", "bfmi_min")},
        "converged": bool(every["converged"].all()),
    }


def _flat(values: xr.DataArray) -> FloatArray:
    """(draw, ...), chains one after the other."""
    array = values.transpose("chain", "draw", ...).to_numpy()
    flat: FloatArray = array.reshape(-1, *array.shape[2:])
    return flat
