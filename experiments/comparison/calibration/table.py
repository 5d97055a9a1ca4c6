"""What every participant's reports are worth: the table of the calibration experiment, and its words."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import xarray as xr

from shannon_game.experiments.harness import rows as column
from shannon_game.experiments.harness.bayes import ConvergenceRow, Fit, convergence_columns, interval_columns
from shannon_game.experiments.harness.report import fill
from shannon_game.experiments.harness.tables import short_names
from shannon_game.inference.posterior.convergence import Convergence
from shannon_game.models.comparison.calibration_data import OutcomeData, informative_responses

_ESTIMATED = {
    "calibration_slope": ("llo", "slope"),
    "calibration_bias_nats": ("llo", "bias"),
    "game_slope": ("game", "slope"),
    "game_bias_nats": ("game", "bias"),
}
"""Estimate -> its fit and variable; NAME_mean is the typical participant's."""
TYPICAL = "(typical)"
"""Name of the row of the typical participant, who has the means of everything."""


class CalibrationRow(column.Row, last=ConvergenceRow):
    """The typical participant first, then every participant; without a generator there is no game."""

    participant: str = column.key("participant")
    label: str = column.detail("name in figures")
    n_responses: int = column.context("answers that say something")
    n_favoured: int = column.context("answers that favour an option")
    confidence: float = column.detail("mean report of the favoured option")
    accuracy: float = column.detail("share of favoured options that were right")
    overconfidence: float = column.estimate("confidence minus accuracy")
    calibration_slope_median: float = column.headline(
        "slope of the reliability curve in log-odds", interval="calibration_slope_{}"
    )
    calibration_bias_nats_median: float = column.estimate("its bias", unit="nats", interval="calibration_bias_nats_{}")
    game_slope_median: float | None = column.estimate("slope with answers weighted as paid", interval="game_slope_{}")
    game_bias_nats_median: float | None = column.estimate("its bias", unit="nats", interval="game_bias_nats_{}")


def participant_table(study: xr.Dataset, outcomes: OutcomeData, fits: Mapping[str, Fit], tail: float) -> pd.DataFrame:
    """One row the typical participant, then one row per participant."""
    worst = _worst([fit.convergence for fit in fits.values()])
    labels = short_names(map(str, outcomes.participant))
    asked = study["participant"].to_numpy().astype(str)[informative_responses(study)]
    answers = pd.DataFrame({"confidence": outcomes.report, "accuracy": outcomes.outcome})
    rows = []
    for name in (TYPICAL, *map(str, outcomes.participant)):
        is_typical = name == TYPICAL
        mine = answers if is_typical else answers[outcomes.participant[outcomes.person] == name]
        means = mine.mean().to_dict()
        row = {"participant": name, "label": labels.get(name, name), "n_favoured": len(mine), **means, **worst}
        row["n_responses"] = asked.size if is_typical else int((asked == name).sum())
        row["overconfidence"] = means["confidence"] - means["accuracy"]
        for estimate, (fit, of) in ((name, its) for name, its in _ESTIMATED.items() if its[0] in fits):
            posterior = fits[fit].posterior
            draws = posterior[f"{of}_mean"] if is_typical else posterior[of].sel(participant=name)
            row |= interval_columns(estimate, draws.to_numpy(), tail)
        rows.append(row)
    return CalibrationRow.table(rows)


def _worst(found: list[Convergence]) -> dict[str, Any]:
    every = pd.DataFrame([convergence_columns(one) for one in found])
    return {
        **{name: every[name].max(skipna=False) for name in ("r_hat_max", "n_divergent")},
        **{name: every[name].min(skipna=False) for name in ("ess_bulk_min", "ess_tail_min", "bfmi_min")},
        "converged": bool(every["converged"].all()),
    }


def summary(table: pd.DataFrame, dataset: xr.Dataset) -> str:
    """Say who is over- or under-confident by which reading, and which shape of the curve predicts better."""
    reports = dataset["report"].to_numpy() if "game_curve" in dataset else ()
    shown = [at for at in (0.6, 0.7, 0.8, 0.9, 0.99) if at in reports]
    return fill(
        "summary",
        Path(__file__).parent,
        typical=table.iloc[0].to_dict(),
        curve=[(at, dataset["game_curve"].sel(report=at).to_numpy().tolist()) for at in shown],
        loo=dataset.attrs,
    ).strip()
