"""Reliability curves of the participants, and each one's bias, slope, noise and lapses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from shannon_game.estimators.comparison import RoundingScheme, report_boxes, rounding_scheme
from shannon_game.experiments.comparison.calibration.figures import (
    participants_figure,
    reliability_figure,
    reports_figure,
)
from shannon_game.experiments.comparison.calibration.summary import TYPICAL, summary
from shannon_game.experiments.comparison.calibration.table import participant_table
from shannon_game.experiments.comparison.estimates import ResponseSettings, RoundingSettings, with_n_responses
from shannon_game.experiments.harness.bayes import (
    CONVERGENCE_COLUMNS,
    KEPT,
    Fit,
    PosteriorSettings,
    SamplerSettings,
    convergence_columns,
    fit_model,
    gate_failed,
    several_fits,
    unconverged,
    with_all_groups,
)
from shannon_game.experiments.harness.result import ExperimentResult, experiment
from shannon_game.experiments.harness.settings import rng_for
from shannon_game.experiments.harness.tables import table_variables
from shannon_game.inference.comparison.calibration_curves import (
    outcome_log_likelihood,
    predicted_reports,
    reliability_curves,
    report_shares,
)
from shannon_game.inference.posterior.model_comparison import loo_by, se_of_sum
from shannon_game.inference.posterior.sampling import compile_model
from shannon_game.inference.settings import Count, numbers_of
from shannon_game.models.comparison.calibration import CalibrationPriors, calibration_model, set_weights
from shannon_game.models.comparison.calibration_data import OutcomeData, ReportData, favoured_outcomes, reports_on_truth
from shannon_game.models.comparison.report_process import ReportPriors, report_model

if TYPE_CHECKING:
    import pymc as pm

    from shannon_game.inference.posterior.arviz_adapter import InferenceData
    from shannon_game.inference.posterior.sampling import CompiledModel

FloatArray = NDArray[np.float64]

CURVE_REPORTS = tuple(float(p) for p in np.round(np.linspace(0.5, 0.99, 50), 3)[1:])
"""Reports at which the reliability curves are drawn."""

_MAX_POINTS = 12
_MEANS = {
    "reports": ("strength", "half_share", "log_slope_mean", "log_noise_mean", "logit_lapse_mean"),
    "llo": ("bias_mean", "slope_mean"),
    "game": ("bias_mean", "slope_mean"),
    "beta": ("bias_mean", "slope_low_mean", "slope_high_mean"),
}
"""Fit -> means whose draws are kept."""


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

    Parameters
    ----------
    study : xarray.Dataset
        A comparison study; no language model's probabilities are used but the generator's.

    Returns
    -------
    ExperimentResult
        One row the typical participant, then one row a participant. Posteriors: ``reports`` (how reports come about),
        ``llo`` and ``beta`` (two shapes of the reliability curve), ``game`` (the first, answers weighted).

    Raises
    ------
    InputError
        If a report is no value of the rounding.

    Examples
    --------
    >>> from shannon_game import calibration, simulated
    >>> result = calibration(simulated(), sampler={"draws": 500, "chains": 2})  # doctest: +SKIP
    """
    study = with_n_responses(study, settings.n, settings.seed)
    reports = reports_on_truth(study, settings.rounding.scheme)
    outcomes, game = favoured_outcomes(study), favoured_outcomes(study, as_paid=True)
    with several_fits(4, settings.sampler):
        fits, posteriors = _fits(settings, reports, outcomes, game)
    table = participant_table(study, reports, outcomes, fits, settings.tail)
    # reports without boxes are counted in those of the game
    scheme = rounding_scheme("interface") if reports.is_raw else settings.rounding.scheme
    edges = _edges(scheme)
    drawn = predicted_reports(
        fits["reports"].posterior,
        reports,
        rng_for(settings.seed, "predicted reports"),
        n_draws=settings.n_predictive,
    )
    people = range(reports.participant.size)
    dataset = _dataset(
        table,
        fits,
        curves={
            name: reliability_curves(fits[name].posterior, family, CURVE_REPORTS)
            for name, family in (("llo", "llo"), ("beta", "beta"), ("game", "llo"))
        },
        shares={
            "observed_share": report_shares(reports.report, edges),
            "predicted_share": report_shares(drawn, edges),
            "participant_share": np.stack([report_shares(reports.report[reports.person == u], edges) for u in people]),
            "participant_predicted_share": np.stack(
                [report_shares(drawn[:, reports.person == u], edges) for u in people], axis=1
            ),
        },
        boxes=np.asarray(scheme.values),
        points=_points(outcomes, game),
        tail=settings.tail,
    ).assign_attrs(
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
            "reliability": reliability_figure(dataset, *shown),
            "participants": participants_figure(table, *shown),
            "reports": reports_figure(dataset, *shown),
        },
        text=summary(table, dataset, settings.interval),
        warnings=unconverged(found),
        gate_failed=gate_failed(settings, found),
        posteriors=posteriors,
    )


def _fits(
    settings: CalibrationSettings, reports: ReportData, outcomes: OutcomeData, game: OutcomeData
) -> tuple[dict[str, Fit], dict[str, InferenceData]]:
    """Four posteriors of three programs: weights are data, so that the linear one serves twice."""
    fits: dict[str, Fit] = {}
    posteriors: dict[str, InferenceData] = {}

    def fit(name: str, program: CompiledModel | pm.Model) -> None:
        fits[name] = fit_model(settings, program, f"calibration {name}")
        if settings.save_posterior:
            purpose = f"calibration {name}"
            posteriors[name] = with_all_groups(fits[name].idata, program, settings.seed, purpose, keep=KEPT)

    def program_of(model: pm.Model) -> CompiledModel | pm.Model:
        return compile_model(model) if settings.sampler.name == "nutpie" else model

    fit("reports", program_of(report_model(reports, settings.priors)))
    linear = calibration_model(outcomes, "llo", settings.curve_priors)
    program = program_of(linear)
    fit("llo", program)
    fit("beta", program_of(calibration_model(outcomes, "beta", settings.curve_priors)))
    set_weights(linear, game)
    fit("game", program)
    return fits, posteriors


def _beta_against_linear(fits: Mapping[str, Fit], outcomes: OutcomeData, item: NDArray[Any]) -> dict[str, float]:
    """How much better beta calibration predicts the outcomes of an item that was left out, nats over all items."""
    linear, beta = (
        loo_by(outcome_log_likelihood(fits[name].posterior, outcomes, name), item) for name in ("llo", "beta")
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


def _points(outcomes: OutcomeData, game: OutcomeData) -> dict[str, FloatArray]:
    """How often the favoured option was true at each report, plain and weighted."""
    shown = np.unique(outcomes.report.round(9))
    if shown.size > _MAX_POINTS:  # unrounded reports: bins of equal count
        cuts = np.unique(np.quantile(outcomes.report, np.linspace(0, 1, 9)))
        code = np.clip(np.searchsorted(cuts, outcomes.report, side="right") - 1, 0, cuts.size - 2)
    else:
        code = np.searchsorted(shown, outcomes.report.round(9))
    members = [code == number for number in np.unique(code)]
    return {
        "report": np.array([outcomes.report[m].mean() for m in members]),
        "count": np.array([float(m.sum()) for m in members]),
        "frequency": np.array([outcomes.outcome[m].mean() for m in members]),
        "weighted_report": np.array([np.average(game.report[m], weights=game.weight[m]) for m in members]),
        "weighted_frequency": np.array([np.average(game.outcome[m], weights=game.weight[m]) for m in members]),
    }


def _dataset(
    table: pd.DataFrame,
    fits: Mapping[str, Fit],
    *,
    curves: dict[str, tuple[FloatArray, FloatArray]],
    shares: dict[str, FloatArray],
    boxes: FloatArray,
    points: dict[str, FloatArray],
    tail: float,
) -> xr.Dataset:
    """The table, the curves (quantiles, participants' medians), the shares of reports, and the draws of the means."""
    quantile = [tail, 0.5, 1 - tail]
    own = table[table["participant"] != TYPICAL]
    people = own["participant"].to_numpy(dtype=str)
    curve_people = fits["llo"].posterior["participant"].to_numpy().astype(str)
    verdicts = pd.DataFrame([convergence_columns(fit.convergence) for fit in fits.values()])
    means = {
        f"{fit}_{name}_draws": ("draw", np.ravel(fits[fit].posterior[name].to_numpy()))
        for fit, wanted in _MEANS.items()
        for name in wanted
    }
    return xr.Dataset(
        {
            **table_variables(table, "row", but=["participant", *CONVERGENCE_COLUMNS]),
            **table_variables(verdicts.add_prefix("fit_"), "fit"),
            **means,
            **{
                f"{name}_curve": (("quantile", "report"), np.quantile(typical, quantile, axis=0))
                for name, (typical, _) in curves.items()
            },
            **{
                f"{name}_participant_curve": (("curve_participant", "report"), np.median(each, axis=0))
                for name, (_, each) in curves.items()
            },
            "observed_share": ("box", shares["observed_share"]),
            "predicted_share": (("quantile", "box"), np.quantile(shares["predicted_share"], quantile, axis=0)),
            "participant_share": (("participant", "box"), shares["participant_share"]),
            "participant_predicted_share": (
                ("quantile", "participant", "box"),
                np.quantile(shares["participant_predicted_share"], quantile, axis=0),
            ),
            **{f"point_{name}": ("point", values) for name, values in points.items()},
        },
        coords={
            "row": table["participant"].to_numpy(dtype=object),
            "participant": people.astype(object),
            "curve_participant": curve_people.astype(object),
            "fit": np.array([str(name) for name in fits], dtype=object),
            "quantile": quantile,
            "report": list(CURVE_REPORTS),
            "box": boxes,
        },
    )
