"""Reliability curves of the participants, and each one's bias, slope, noise and lapses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from shannon_game.estimators.comparison import RoundingScheme, report_boxes, rounding_scheme
from shannon_game.experiments.comparison.calibration import figures
from shannon_game.experiments.comparison.calibration.table import participant_table, summary
from shannon_game.experiments.comparison.estimates import ResponseSettings, RoundingSettings, with_n_responses
from shannon_game.experiments.harness import bayes
from shannon_game.experiments.harness.bayes import Fit, PosteriorSettings, SamplerSettings
from shannon_game.experiments.harness.result import ExperimentResult, experiment
from shannon_game.experiments.harness.settings import rng_for
from shannon_game.experiments.harness.tables import table_variables
from shannon_game.inference.comparison import calibration_curves as curves
from shannon_game.inference.posterior.model_comparison import loo_by, se_of_sum
from shannon_game.inference.posterior.sampling import compile_model
from shannon_game.inference.settings import Count, numbers_of
from shannon_game.models.comparison.calibration import CalibrationPriors, calibration_model, set_weights
from shannon_game.models.comparison.calibration_data import OutcomeData, ReportData, favoured_outcomes, reports_on_truth
from shannon_game.models.comparison.report_process import ReportPriors, report_model

if TYPE_CHECKING:
    from shannon_game.inference.posterior.arviz_adapter import InferenceData

FloatArray = NDArray[np.float64]

CURVE_REPORTS = tuple(float(p) for p in np.round(np.linspace(0.5, 0.99, 50), 3)[1:])
"""Reports at which the reliability curves are drawn."""

_MAX_POINTS = 12


class CalibrationSettings(ResponseSettings, PosteriorSettings):
    """Settings of :func:`calibration`."""

    rounding: RoundingSettings = RoundingSettings()
    """The values that participants could report."""
    sampler: SamplerSettings = SamplerSettings(draws=1500, tune=1000)
    """What draws from the posteriors; the game's 29 participants then have about twice the gate's effective sample."""
    n_predictive: Count = 400
    """Posterior draws behind the predicted reports."""
    priors: Annotated[ReportPriors, numbers_of(ReportPriors)] = ReportPriors()
    """Weak priors of how reports come about, only those to change
    (:class:`~shannon_game.models.comparison.report_process.ReportPriors`)."""
    curve_priors: Annotated[CalibrationPriors, numbers_of(CalibrationPriors)] = CalibrationPriors()
    """Weak priors of the reliability curves, only those to change
    (:class:`~shannon_game.models.comparison.calibration.CalibrationPriors`)."""


@experiment(CalibrationSettings)
def calibration(study: xr.Dataset, settings: CalibrationSettings) -> ExperimentResult:
    """Fit how reports come about, and how often the favoured option is true given its report.

    No language model's probabilities are used but the generator's, and every report is a value of the rounding. One row
    the typical participant, then one row per participant. Posteriors: ``reports`` (how reports come about), ``llo`` and
    ``beta`` (two shapes of the reliability curve), ``game`` (the first, answers weighted).

    Examples
    --------
    >>> from shannon_game import calibration, simulated
    >>> result = calibration(simulated(), sampler={"draws": 500, "chains": 2})  # doctest: +SKIP
    """
    study = with_n_responses(study, settings.n, settings.seed)
    reports = reports_on_truth(study, settings.rounding.scheme)
    outcomes, game = favoured_outcomes(study), favoured_outcomes(study, as_paid=True)
    with bayes.several_fits(4, settings.sampler):
        fits, posteriors = _fits(settings, reports, outcomes, game)
    table = participant_table(study, reports, outcomes, fits, settings.tail)
    dataset = _dataset(table, fits, reports, settings).assign(_points(outcomes, game))
    dataset = dataset.assign_attrs(
        **_beta_against_linear(fits, outcomes, study["response_item"].to_numpy()[outcomes.row]),
        n_responses=reports.row.size,
        n_shared_responses=int((reports.question >= 0).sum()),
    )
    found = {name: fit.convergence for name, fit in fits.items()}
    shown = study.attrs["name"], settings.interval
    return ExperimentResult(
        table=table,
        dataset=dataset,
        figures={
            "reliability": figures.reliability_figure(dataset, *shown),
            "participants": figures.participants_figure(table, *shown),
            "reports": figures.reports_figure(dataset, *shown),
        },
        text=summary(table, dataset, settings.interval),
        warnings=bayes.unconverged(found),
        gate_failed=bayes.gate_failed(settings, found),
        posteriors=posteriors,
    )


def _fits(
    settings: CalibrationSettings, reports: ReportData, outcomes: OutcomeData, game: OutcomeData
) -> tuple[dict[str, Fit], dict[str, InferenceData]]:
    """Four posteriors of three programs: weights are data, so that the linear one serves twice."""
    linear, beta = (calibration_model(outcomes, family, settings.curve_priors) for family in ("llo", "beta"))
    models = {"reports": report_model(reports, settings.priors), "llo": linear, "beta": beta}
    compiles = settings.sampler.name == "nutpie"
    programs = {name: compile_model(model) if compiles else model for name, model in models.items()}
    fits: dict[str, Fit] = {}
    posteriors: dict[str, InferenceData] = {}
    for name in (*programs, "game"):
        if name == "game":
            set_weights(linear, game)
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


def _edges(scheme: RoundingScheme) -> FloatArray:
    inner = report_boxes(scheme)[1:, 0]
    return np.concatenate([[-np.inf], np.log(inner) - np.log1p(-inner), [np.inf]])


def _points(outcomes: OutcomeData, game: OutcomeData) -> dict[str, tuple[str, FloatArray]]:
    """How often the favoured option was true at each report, plain and weighted."""
    shown = np.unique(outcomes.report.round(9))
    if shown.size > _MAX_POINTS:  # unrounded reports: bins of equal count
        cuts = np.unique(np.quantile(outcomes.report, np.linspace(0, 1, 9)))
        code = np.clip(np.searchsorted(cuts, outcomes.report, side="right") - 1, 0, cuts.size - 2)
    else:
        code = np.searchsorted(shown, outcomes.report.round(9))
    _, code = np.unique(code, return_inverse=True)
    count, weight = np.bincount(code).astype(float), np.bincount(code, game.weight)
    points = {
        "report": np.bincount(code, outcomes.report) / count,
        "count": count,
        "frequency": np.bincount(code, outcomes.outcome) / count,
        "weighted_report": np.bincount(code, game.report * game.weight) / weight,
        "weighted_frequency": np.bincount(code, game.outcome * game.weight) / weight,
    }
    return {f"point_{name}": ("point", values) for name, values in points.items()}


def _dataset(
    table: pd.DataFrame, fits: Mapping[str, Fit], reports: ReportData, settings: CalibrationSettings
) -> xr.Dataset:
    """The table, the curves (quantiles, participants' medians), and the shares of reports, observed and predicted."""
    quantile = [settings.tail, 0.5, 1 - settings.tail]
    variables: dict[str, Any] = dict(table_variables(table, "row", but=["participant", *bayes.CONVERGENCE_COLUMNS]))
    for name, family in (("llo", "llo"), ("beta", "beta"), ("game", "llo")):
        typical, each = curves.reliability_curves(fits[name].posterior, family, CURVE_REPORTS)
        variables[f"{name}_curve"] = ("quantile", "report"), np.quantile(typical, quantile, axis=0)
        variables[f"{name}_participant_curve"] = ("curve_participant", "report"), np.median(each, axis=0)
    # reports without boxes are counted in those of the game
    scheme = rounding_scheme("interface") if reports.is_raw else settings.rounding.scheme
    rng = rng_for(settings.seed, "predicted reports")
    drawn = curves.predicted_reports(fits["reports"].posterior, reports, rng, n_draws=settings.n_predictive)
    masks = [np.ones(reports.person.size, dtype=bool), *(reports.person == u for u in range(reports.participant.size))]
    edges = _edges(scheme)
    observed = np.stack([curves.report_shares(reports.report[mask], edges) for mask in masks])
    predicted = np.quantile([curves.report_shares(drawn[:, mask], edges) for mask in masks], quantile, axis=1)
    return xr.Dataset(
        {
            **variables,
            "observed_share": ("box", observed[0]),
            "predicted_share": (("quantile", "box"), predicted[:, 0]),
            "participant_share": (("participant", "box"), observed[1:]),
            "participant_predicted_share": (("quantile", "participant", "box"), predicted[:, 1:]),
        },
        coords={
            "row": table["participant"].to_numpy(dtype=object),
            "participant": table["participant"].to_numpy(dtype=object)[1:],
            "curve_participant": fits["llo"].posterior["participant"].to_numpy().astype(str).astype(object),
            "quantile": quantile,
            "report": list(CURVE_REPORTS),
            "box": np.asarray(scheme.values),
        },
    )
