"""How every participant answers: the table of the calibration experiment, and its words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from shannon_game.experiments.harness.bayes import CONVERGENCE_COLUMNS, Fit, convergence_columns, interval_columns
from shannon_game.experiments.harness.report import fill
from shannon_game.experiments.harness.tables import short_names
from shannon_game.inference.posterior.convergence import Convergence
from shannon_game.models.comparison.calibration_data import OutcomeData, ReportData

FloatArray = NDArray[np.float64]

_ESTIMATED: Mapping[str, tuple[str, str, str, Callable[[FloatArray], FloatArray]]] = {
    "calibration_slope": ("llo", "slope", "slope_mean", np.asarray),
    "calibration_bias_nats": ("llo", "bias", "bias_mean", np.asarray),
    "game_slope": ("game", "slope", "slope_mean", np.asarray),
    "game_bias_nats": ("game", "bias", "bias_mean", np.asarray),
    "bias_nats": ("reports", "bias", "", np.asarray),
    "slope": ("reports", "slope", "log_slope_mean", np.exp),
    "noise_nats": ("reports", "noise", "log_noise_mean", np.exp),
    "lapse": ("reports", "lapse", "logit_lapse_mean", lambda logit: 1 / (1 + np.exp(-logit))),
}
"""Estimate -> its fit, its variable by participant, and that of the typical participant with its inverse link."""

TYPICAL = "(typical)"
"""Name of the row of the typical participant, who has the means of everything (and no bias where that is centred)."""
_MANY_ENDS = 0.5
_LARGE_BIAS_NATS = 0.5
_MAX_NAMED = 6

_TRUTHS = ("true_bias_nats", "true_relative_slope", "true_noise_nats", "true_lapse")

CALIBRATION_COLUMNS = (
    *("participant", "label", "n_responses", "n_favoured", "confidence", "accuracy", "overconfidence", "share_ends"),
    *(f"{name}_{what}" for name in _ESTIMATED for what in ("median", "lower", "upper")),
    "relative_slope_median",
    *_TRUTHS,
    *CONVERGENCE_COLUMNS,
)
"""Columns of the table: one row the typical participant, then one row per participant."""


def participant_table(
    study: xr.Dataset, reports: ReportData, outcomes: OutcomeData, fits: Mapping[str, Fit], tail: float
) -> pd.DataFrame:
    """One row the typical participant, then one row per participant (:data:`CALIBRATION_COLUMNS`)."""
    worst = _worst([fit.convergence for fit in fits.values()])
    described = _described(reports, outcomes, np.ones(reports.person.size, dtype=bool))
    typical = {"participant": TYPICAL, "label": TYPICAL, "relative_slope_median": 1.0}
    rows = [typical | described | _estimates(fits, None, tail) | worst]
    labels, truth = short_names(map(str, reports.participant)), _truth(study, reports.participant)
    slopes = fits["reports"].posterior["slope"].transpose("chain", "draw", "participant").to_numpy()
    relative = np.median(slopes / np.exp(np.log(slopes).mean(axis=-1, keepdims=True)), axis=(0, 1))
    for number, name in enumerate(reports.participant):
        own = {"participant": name, "label": labels[str(name)], "relative_slope_median": relative[number]}
        own |= _described(reports, outcomes, reports.person == number) | _estimates(fits, str(name), tail)
        rows.append(own | {column: values[number] for column, values in truth.items()} | worst)
    return pd.DataFrame(rows, columns=list(CALIBRATION_COLUMNS))


def _described(reports: ReportData, outcomes: OutcomeData, mine: NDArray[np.bool_]) -> dict[str, float]:
    """Counts and raw means of some rows."""
    favoured = np.isin(outcomes.row, reports.row[mine])
    n, ends = int(favoured.sum()), [0, reports.box_report.size - 1]
    confidence, accuracy = (
        float(values[favoured].mean()) if n else np.nan for values in (outcomes.report, outcomes.outcome)
    )
    found = {"n_responses": int(mine.sum()), "n_favoured": n, "confidence": confidence, "accuracy": accuracy}
    found["share_ends"] = np.nan if reports.is_raw else float(np.isin(reports.report[mine], ends).mean())
    return found | {"overconfidence": confidence - accuracy}


def _estimates(fits: Mapping[str, Fit], participant: str | None, tail: float) -> dict[str, float]:
    """Intervals of one participant, or of the typical one; none of a curve for who never favoured an option."""
    found: dict[str, float] = {}
    for column, (fit, own, mean, inverse) in _ESTIMATED.items():
        posterior = fits[fit].posterior
        if participant is None and mean:
            found |= interval_columns(column, inverse(posterior[mean].to_numpy()), tail)
        elif participant in posterior["participant"].to_numpy():
            found |= interval_columns(column, posterior[own].sel(participant=participant).to_numpy(), tail)
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


def unusual(table: pd.DataFrame) -> pd.DataFrame:
    """Participants with a large bias that excludes zero, or with unusually many answers at the ends of the scale."""
    own = table[table["participant"] != TYPICAL]
    outside = (own["bias_nats_lower"] > 0) | (own["bias_nats_upper"] < 0)
    large = outside & (own["bias_nats_median"].abs() > _LARGE_BIAS_NATS)
    # where everybody lives at the ends, that is nobody's mark
    pooled = float(table.loc[table["participant"] == TYPICAL, "share_ends"].iloc[0])
    found = own[large | (own["share_ends"] > max(_MANY_ENDS, 2 * pooled))]
    return found.loc[found["bias_nats_median"].abs().sort_values(ascending=False).index]


def summary(table: pd.DataFrame, dataset: xr.Dataset, interval: float = 0.9) -> str:
    """Say who is over- or under-confident by which reading, how reports come about, and what is identified."""
    shown = [at for at in (0.6, 0.7, 0.8, 0.9, 0.99) if at in dataset["report"].to_numpy()]
    low, _, high = dataset["predicted_share"].to_numpy()
    observed = dataset["observed_share"].to_numpy()
    return fill(
        "summary",
        Path(__file__).parent,
        typical=table.iloc[0].to_dict(),
        probability=interval,
        curve=list(zip(shown, dataset["game_curve"].sel(report=shown).to_numpy().T.tolist(), strict=True)),
        n_people=dataset.sizes["participant"],
        missed=dataset["box"].to_numpy()[(observed < low) | (observed > high)].tolist(),
        odd=unusual(table).to_dict("records"),
        most=_MAX_NAMED,
        loo=dataset.attrs,
    ).strip()
