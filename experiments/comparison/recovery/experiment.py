"""How far every estimator falls from a known truth over many fresh studies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from experiments.comparison.recovery.figures import ESTIMATOR_LABELS, recovery_figure
from experiments.comparison.recovery.participants import participants
from experiments.comparison.recovery.players import players
from experiments.comparison.recovery.settings import Population, RecoverySettings
from experiments.harness.replication import replicates_path
from experiments.harness.result import ExperimentResult, experiment
from experiments.harness.settings import rows_of
from experiments.harness.tables import table_variables
from inference.comparison.recovery import summarise_rows
from inference.posterior.replicates import Row, run_replicates
from inference.progress import stage

__all__ = ["RECOVERY_COLUMNS", "RecoverySettings", "recovery"]

SUMMARY_COLUMNS = (
    "n_studies",
    "truth_mean_nats",
    "bias_nats",
    "rmse_nats",
    "rmse_se_nats",
    "coverage",
    "coverage_lower",
    "coverage_upper",
    "width_mean_nats",
    "n_unconverged",
    "n_longer",
)
RECOVERY_COLUMNS = ("population", "player", "rounding", "n", "estimator", *SUMMARY_COLUMNS)
"""Columns of the table of the population ``players``."""

_ON_SCREEN = ("bias_nats", "rmse_nats", "coverage", "coverage_lower", "coverage_upper", "n_unconverged")
_POPULATIONS = {"players": players, "participants": participants}


@experiment(RecoverySettings)
def recovery(study: xr.Dataset, settings: RecoverySettings) -> ExperimentResult:
    """Make many fresh studies, estimate each in every way, and summarise the errors by cell.

    Parameters
    ----------
    study : xarray.Dataset
        A comparison study, which gives items, candidates and language models.
    settings : RecoverySettings, optional
        Or its fields by name. In a notebook `replicates` names the file of the fits.

    Returns
    -------
    ExperimentResult
        One row a cell and estimator.

    Raises
    ------
    InputError
        If the study has too few items or candidates, or no cell is left.

    Examples
    --------
    >>> from experiments import recovery, simulated
    >>> result = recovery(simulated(), n_studies=2, n=10, replicates="fits.jsonl")  # doctest: +SKIP
    """
    population = _POPULATIONS[settings.population](study, settings)
    with stage("fresh studies", announced=True) as show:
        rows = run_replicates(
            population.work,
            population.tasks,
            path=replicates_path(settings),
            settings=population.settings,
            n_jobs=settings.n_jobs,
            progress=show,
            set_aside=settings.set_aside,
        )
    found = summarise_rows(rows, (*population.cell, "estimator"))
    table = pd.DataFrame([{**cell, **_in_nats(asdict(summary))} for cell, summary in found])
    labels = [population.label(row) for row in rows_of(table)]
    title = f"{population.each} ({study.attrs['name']})"
    return ExperimentResult(
        table=table,
        dataset=_dataset(rows),
        figures={"recovery": recovery_figure(table, with_unconverged(table, labels), title, settings.interval)},
        text=summary(table, population, settings.interval),
        warnings=_warnings(table, labels),
        on_screen=table[[*population.cell, "estimator", *_ON_SCREEN]],
    )


def _in_nats(summary: Mapping[str, Any]) -> dict[str, Any]:
    plain = {"n_studies", "coverage", "coverage_lower", "coverage_upper", "n_unconverged", "n_longer"}
    return {name if name in plain else f"{name}_nats": value for name, value in summary.items()}


def _dataset(rows: list[Row]) -> xr.Dataset:
    """Every estimate of every study, from which table and figure can be made again."""
    table = pd.DataFrame(rows)
    # 1 and 0 for yes and no, -1 where nothing had to converge
    converged = np.array([-1 if value is None else int(value) for value in table["converged"]], dtype=np.int8)
    found = xr.Dataset(table_variables(table.assign(converged=converged), "row"))
    for name in ("estimate", "lower", "upper", "truth"):
        found[name].attrs["units"] = "nats"
    return found


def with_unconverged(table: pd.DataFrame, labels: Sequence[str]) -> list[str]:
    """Labels of the cells, each with how many of its posteriors did not converge."""
    most = table["n_unconverged"].groupby(list(labels)).transform("max")
    return [
        label if not k else f"{label}\n{k} of {n} not converged"
        for label, k, n in zip(labels, most, table["n_studies"], strict=True)
    ]


def _warnings(table: pd.DataFrame, labels: Sequence[str]) -> tuple[str, ...]:
    cells = [
        f"{label} ({row.n_unconverged} of {row.n_studies})"
        for label, row in zip(labels, rows_of(table), strict=True)
        if row.n_unconverged > 0
    ]
    if not cells:
        return ()
    return (f"posteriors that did not converge are in the numbers of these cells: {'; '.join(cells)}",)


def summary(table: pd.DataFrame, population: Population, nominal: float) -> str:
    """Say in words how every estimator did, cell by cell."""
    lines = []
    for _, part in table.groupby(list(population.cell), sort=False):
        first = next(iter(part.itertuples(index=False)))
        texts = [
            f"{ESTIMATOR_LABELS.get(row.estimator, row.estimator)} {row.rmse_nats:.3f} "
            f"(bias {row.bias_nats:+.3f}, covers {row.coverage:.0%}"
            + (f", {row.n_unconverged} not converged)" if row.n_unconverged else ")")
            for row in rows_of(part)
        ]
        lines.append(f"- **{population.label(first)}**, {first.n_studies} studies: RMSE in nats: {'; '.join(texts)}.")
    return (
        f"{population.about}\n\nIntervals are nominal {nominal:.0%} intervals. A study's truth is that of its own "
        "items, so that no error comes from which items it has; standard errors over items also carry how items "
        "differ, and are too wide for this question where an estimator has little error of its own.\n\n"
        + "\n".join(lines)
    )
