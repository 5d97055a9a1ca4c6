"""Reliability curves of the participants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.comparison.study import COMPARISON
from shannon_game.estimators.comparison.study_sources import TARGET_POSITION, response_references
from shannon_game.estimators.schema import KIND
from shannon_game.experiments.comparison.calibration import figures
from shannon_game.experiments.comparison.calibration.table import CalibrationRow, participant_table, summary
from shannon_game.experiments.comparison.estimates import ResponseSettings, with_n_responses
from shannon_game.experiments.harness import bayes
from shannon_game.experiments.harness.bayes import Fit, PosteriorSettings, SamplerSettings
from shannon_game.experiments.harness.result import ExperimentResult, experiment
from shannon_game.inference.comparison import calibration_curves as curves
from shannon_game.inference.posterior.model_comparison import loo_by, se_of_sum
from shannon_game.inference.posterior.sampling import compile_model
from shannon_game.inference.settings import numbers_of
from shannon_game.models.comparison.calibration import CalibrationPriors, calibration_model
from shannon_game.models.comparison.calibration_data import OutcomeData, favoured_outcomes

if TYPE_CHECKING:
    from shannon_game.inference.posterior.arviz_adapter import InferenceData


CURVE_REPORTS = tuple(float(p) for p in np.round(np.linspace(0.5, 0.99, 50), 3)[1:])
"""Reports at which the reliability curves are drawn."""

_MAX_POINTS = 12


class CalibrationSettings(ResponseSettings, PosteriorSettings):
    sampler: SamplerSettings = SamplerSettings(draws=1500, tune=1000)
    """What draws from the posteriors; the game's 29 participants then have about twice the gate's effective sample."""
    priors: Annotated[CalibrationPriors, numbers_of(CalibrationPriors)] = CalibrationPriors()
    """Weak priors of the reliability curves, only those to change
    (:class:`~shannon_game.models.comparison.calibration.CalibrationPriors`)."""


@experiment(CalibrationSettings, row=CalibrationRow)
def calibration(study: xr.Dataset, settings: CalibrationSettings) -> ExperimentResult:
    """Fit how often the favoured option is true given its report.

    No language model's probabilities are used but the generator's. One row the typical participant, then one row per
    participant. Posteriors: ``llo`` and ``beta`` (two shapes of the reliability curve), ``game`` (the first, answers
    weighted), for which a study of forecasts alone lacks the generator: no column begins with ``game`` then. Slope,
    bias and noise of reports are in participants.csv of :func:`human_loss`.
    """
    study = with_n_responses(study, settings.n, settings.seed)
    outcomes = favoured_outcomes(study)
    readings = {"llo": outcomes, "beta": outcomes}
    if study.attrs[KIND] == COMPARISON.kind:
        readings["game"] = favoured_outcomes(study, as_paid=True)
    with bayes.several_fits(len(readings), settings.sampler):
        fits, posteriors = _fits(settings, readings)
    table = participant_table(study, outcomes, fits, settings.tail)
    items = study["response_item"].to_numpy()[outcomes.row]
    dataset = _dataset(table, fits, settings).assign(_points(readings))
    dataset = dataset.assign_attrs(_beta_against_linear(fits, outcomes, items))
    found = {_POSTERIORS[name]: fit.convergence for name, fit in fits.items()}
    shown = study.attrs["name"], settings.interval
    return ExperimentResult(
        table=table,
        dataset=dataset,
        figures={
            "reliability": figures.reliability_figure(dataset, *shown),
            "participants": figures.participants_figure(table, *shown),
        },
        text=summary(table, dataset),
        warnings=(*_left_out(study, outcomes), *bayes.unconverged(found)),
        gate_failed=bayes.gate_failed(settings, found),
        posteriors=posteriors,
    )


_POSTERIORS = {"llo": "the curve linear in log-odds", "beta": "beta calibration", "game": "the game's curve"}


def _left_out(study: xr.Dataset, outcomes: OutcomeData) -> list[str]:
    between = int((response_references(study) != TARGET_POSITION).sum())
    why = {"of 50%": ("they favour neither option", outcomes.n_ties), "of two candidates": ("neither is true", between)}
    return [f"{n} reports {which} are left out: {because}" for which, (because, n) in why.items() if n]


def _fits(
    settings: CalibrationSettings, readings: Mapping[str, OutcomeData]
) -> tuple[dict[str, Fit], dict[str, InferenceData]]:
    """Three posteriors of two programs: weights are data, so that the linear one serves twice."""
    models = {family: calibration_model(readings[family], family, settings.priors) for family in ("llo", "beta")}
    compiles = settings.sampler.name == "nutpie"
    programs = {name: compile_model(model) if compiles else model for name, model in models.items()}
    fits: dict[str, Fit] = {}
    posteriors: dict[str, InferenceData] = {}
    for name, data in readings.items():
        if name == "game":
            models["llo"].set_data("weight", data.weight)
        program, purpose = programs.get(name, programs["llo"]), f"calibration {name}"
        fits[name] = bayes.fit_model(settings, program, purpose)
        if settings.save_posterior:
            posteriors[name] = bayes.with_all_groups(fits[name].idata, program, settings.seed, purpose, keep=bayes.KEPT)
    return fits, posteriors


def _beta_against_linear(fits: Mapping[str, Fit], outcomes: OutcomeData, item: NDArray[Any]) -> dict[str, float]:
    """How much better beta calibration predicts the outcomes of an item that was left out, nats over all items."""
    linear, beta = (
        loo_by(curves.outcome_log_likelihood(fits[name].posterior, outcomes, name), item) for name in ("llo", "beta")
    )
    difference = beta.elpd_nats - linear.elpd_nats
    return {
        "loo_difference_nats": float(difference.sum()),
        "loo_difference_se_nats": se_of_sum(difference),
        "loo_n_items": int(difference.size),
        "loo_n_bad": int((linear.is_bad | beta.is_bad).sum()),
    }


def _points(readings: Mapping[str, OutcomeData]) -> dict[str, tuple[str, FloatArray]]:
    outcomes = readings["llo"]
    shown = np.unique(outcomes.report.round(9))
    if shown.size > _MAX_POINTS:  # unrounded reports: bins of equal count
        starts = np.quantile(outcomes.report, np.arange(8) / 8)
        code = np.searchsorted(starts, outcomes.report, side="right")
    else:
        code = np.searchsorted(shown, outcomes.report.round(9))
    _, code = np.unique(code, return_inverse=True)
    points = {"point_count": np.bincount(code).astype(float)}
    for name, prefix in (("llo", "point_"), ("game", "point_weighted_")):
        if data := readings.get(name):
            weight = np.bincount(code, data.weight)
            points[f"{prefix}report"] = np.bincount(code, data.report * data.weight) / weight
            points[f"{prefix}frequency"] = np.bincount(code, data.outcome * data.weight) / weight
    return {name: ("point", values) for name, values in points.items()}


def _dataset(table: pd.DataFrame, fits: Mapping[str, Fit], settings: CalibrationSettings) -> xr.Dataset:
    quantile = [settings.tail, 0.5, 1 - settings.tail]
    variables: dict[str, Any] = CalibrationRow.variables(table, "row", but=["participant"])
    for name, fit in fits.items():
        typical, each = curves.reliability_curves(fit.posterior, name.replace("game", "llo"), CURVE_REPORTS)
        variables[f"{name}_curve"] = ("quantile", "report"), np.quantile(typical, quantile, axis=0)
        variables[f"{name}_participant_curve"] = ("participant", "report"), np.median(each, axis=0)
    everyone = table["participant"].to_numpy(dtype=object)
    coords = {"row": everyone, "participant": everyone[1:], "quantile": quantile, "report": list(CURVE_REPORTS)}
    return xr.Dataset(variables, coords=coords)
