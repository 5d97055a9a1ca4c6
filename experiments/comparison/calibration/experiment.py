"""``+exp=calibration``: reliability curves of the participants, and each one's bias, slope, noise and lapses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from omegaconf import DictConfig, OmegaConf

from estimators.comparison import HUMAN, RoundingScheme, report_boxes, rounding_scheme
from estimators.errors import InputError
from experiments.comparison.calibration.figures import forest, reliability, shares
from experiments.comparison.calibration.summary import TYPICAL, summary
from experiments.harness.bayes import (
    CONVERGENCE_COLUMNS,
    check_bayesian,
    convergence_columns,
    gate,
    require_bayes,
    sample_model,
)
from experiments.harness.outputs import ExperimentResult
from experiments.harness.settings import chosen_rounding, rng_for, tail_probability, with_n_responses
from inference.posterior.arviz_adapter import group

if TYPE_CHECKING:
    import pymc as pm

    from inference.posterior.convergence import Convergence
    from models.comparison.calibration_data import OutcomeData, ReportData

__all__ = ["CALIBRATION_COLUMNS", "CURVE_REPORTS", "run"]

FloatArray = NDArray[np.float64]

_MAX_POINTS = 12

CURVE_REPORTS = tuple(float(p) for p in np.round(np.linspace(0.5, 0.99, 50), 3)[1:])
"""Reports at which the reliability curves are drawn."""

_ESTIMATED = (
    "calibration_slope",
    "calibration_bias_nats",
    "game_slope",
    "game_bias_nats",
    "bias_nats",
    "slope",
    "noise_nats",
    "lapse",
)
_TRUTHS = ("true_bias_nats", "true_relative_slope", "true_noise_nats", "true_lapse")

CALIBRATION_COLUMNS = (
    "participant",
    "n_responses",
    "n_favoured",
    "confidence",
    "accuracy",
    "overconfidence",
    "share_ends",
    *(f"{name}_{what}" for name in _ESTIMATED for what in ("median", "lower", "upper")),
    "relative_slope_median",
    *_TRUTHS,
    *CONVERGENCE_COLUMNS,
)
"""Columns of the table: one row the typical participant, then one row a participant."""


@dataclass(frozen=True, eq=False)
class _Fit:
    posterior: xr.Dataset
    convergence: Convergence


def run(cfg: DictConfig, study: xr.Dataset) -> ExperimentResult:
    """Fit how reports come about, and how often the favoured option is true given its report."""
    _check(cfg)
    from inference.comparison.calibration_curves import (  # noqa: PLC0415 - seconds of imports that only a fit should cost
        predicted_reports,
        reliability_curves,
        report_shares,
    )
    from models.comparison.calibration_data import favoured_outcomes, reports_on_truth  # noqa: PLC0415

    study = with_n_responses(cfg, study)
    reports = reports_on_truth(study, chosen_rounding(cfg))
    outcomes, game = favoured_outcomes(study), favoured_outcomes(study, as_paid=True)
    fits = _fits(cfg, reports, outcomes, game)

    tail = tail_probability(cfg)
    table = _table(study, reports, outcomes, fits, tail)
    scheme = _shown_boxes(reports, cfg)
    edges = _edges(scheme)
    drawn = predicted_reports(
        fits["reports"].posterior, reports, rng_for(cfg, "predicted reports"), n_draws=int(cfg.experiment.n_predictive)
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
        tail=tail,
    ).assign_attrs(
        **_beta_against_linear(fits, outcomes, study["response_item"].to_numpy()[outcomes.row]),
        n_responses=reports.row.size,
        n_shared_responses=int((reports.question >= 0).sum()),
    )
    failed = [
        f"{name}: {'; '.join(fit.convergence.reasons)}" for name, fit in fits.items() if not fit.convergence.passed
    ]
    return ExperimentResult(
        table=table,
        dataset=dataset,
        figures={
            "reliability": reliability(dataset, cfg),
            "participants": forest(table, cfg),
            "reports": shares(dataset, cfg),
        },
        summary=summary(table, dataset, cfg),
        warnings=tuple(f"the posterior did not converge, do not use it: {text}" for text in failed),
        gate_failed=bool(failed) and not cfg.experiment.allow_unconverged,
    )


def _check(cfg: DictConfig) -> None:
    require_bayes()
    from models.comparison.calibration import CalibrationPriors  # noqa: PLC0415
    from models.comparison.report_process import ReportPriors  # noqa: PLC0415

    check_bayesian(cfg, {"priors": ReportPriors, "curve_priors": CalibrationPriors})
    n = cfg.experiment.n_predictive
    if not (isinstance(n, int) and not isinstance(n, bool) and n >= 1):
        raise InputError(f"is {n!r}, should be a whole number of at least 1", field="experiment.n_predictive")
    if cfg.players is not None and cfg.players != HUMAN and list(cfg.players) != [HUMAN]:
        raise InputError(f"is {cfg.players}, but calibration is of the participants; leave it null", field="players")


def _fits(cfg: DictConfig, reports: ReportData, outcomes: OutcomeData, game: OutcomeData) -> dict[str, _Fit]:
    """Four posteriors of three programs: weights are data, so that the linear one serves twice."""
    from inference.posterior.sampling import compile_model  # noqa: PLC0415
    from models.comparison.calibration import CalibrationPriors, calibration_model, set_weights  # noqa: PLC0415
    from models.comparison.report_process import ReportPriors, report_model  # noqa: PLC0415

    def fitted(program: Any, name: str) -> _Fit:
        idata = sample_model(cfg, program, f"calibration {name}")
        return _Fit(group(idata, "posterior"), gate(cfg, idata))

    def program_of(model: pm.Model) -> Any:
        return compile_model(model) if cfg.sampler.name == "nutpie" else model

    priors = ReportPriors(**OmegaConf.to_container(cfg.experiment.priors))  # type: ignore[arg-type]
    curve_priors = CalibrationPriors(**OmegaConf.to_container(cfg.experiment.curve_priors))  # type: ignore[arg-type]
    process = report_model(reports, priors)
    linear = calibration_model(outcomes, "llo", curve_priors)
    bent = calibration_model(outcomes, "beta", curve_priors)
    program = program_of(linear)
    fits = {
        "reports": fitted(program_of(process), "reports"),
        "llo": fitted(program, "llo"),
        "beta": fitted(program_of(bent), "beta"),
    }
    set_weights(linear, game)
    return {**fits, "game": fitted(program, "game")}


def _beta_against_linear(fits: dict[str, _Fit], outcomes: OutcomeData, item: NDArray[Any]) -> dict[str, float]:
    """How much better beta calibration predicts the outcomes of an item that was left out, nats over all items."""
    from inference.comparison.calibration_curves import outcome_log_likelihood  # noqa: PLC0415
    from inference.posterior.model_comparison import loo_by  # noqa: PLC0415

    linear, beta = (
        loo_by(outcome_log_likelihood(fits[name].posterior, outcomes, name), item) for name in ("llo", "beta")
    )
    difference = beta.elpd_nats - linear.elpd_nats
    return {
        "loo_difference_nats": float(difference.sum()),
        "loo_difference_se_nats": float(difference.std(ddof=1) * np.sqrt(difference.size)),
        "loo_n_items": int(difference.size),
        "loo_n_bad": int((linear.is_bad | beta.is_bad).sum()),
    }


def _table(
    study: xr.Dataset, reports: ReportData, outcomes: OutcomeData, fits: dict[str, _Fit], tail: float
) -> pd.DataFrame:
    worst = _worst([fit.convergence for fit in fits.values()])
    everyone = np.ones(reports.person.size, dtype=bool)
    rows = [
        {
            "participant": TYPICAL,
            **_described(reports, outcomes, everyone),
            **_typical(fits, tail),
            "relative_slope_median": 1.0,
            **worst,
        }
    ]
    truth = _truth(study, reports.participant)
    slopes = _flat(fits["reports"].posterior["slope"])
    relative = np.median(slopes / np.exp(np.log(slopes).mean(axis=1, keepdims=True)), axis=0)
    rows += [
        {
            "participant": name,
            **_described(reports, outcomes, reports.person == number),
            **_own(fits, str(name), tail),
            "relative_slope_median": relative[number],
            **({column: values[number] for column, values in truth.items()}),
            **worst,
        }
        for number, name in enumerate(reports.participant)
    ]
    return pd.DataFrame(rows, columns=list(CALIBRATION_COLUMNS))


def _ends(reports: ReportData) -> list[int]:
    """The lowest and the highest box."""
    return [0, reports.box_report.size - 1]


def _described(reports: ReportData, outcomes: OutcomeData, mine: NDArray[np.bool_]) -> dict[str, float]:
    """Counts and raw means of some rows."""
    favoured = np.isin(outcomes.row, reports.row[mine])
    n = int(favoured.sum())
    confidence = float(outcomes.report[favoured].mean()) if n else np.nan
    accuracy = float(outcomes.outcome[favoured].mean()) if n else np.nan
    return {
        "n_responses": int(mine.sum()),
        "n_favoured": n,
        "confidence": confidence,
        "accuracy": accuracy,
        "overconfidence": confidence - accuracy,
        "share_ends": np.nan if reports.is_raw else float(np.isin(reports.report[mine], _ends(reports)).mean()),
    }


def _typical(fits: dict[str, _Fit], tail: float) -> dict[str, float]:
    process = fits["reports"].posterior
    draws = {
        "slope": np.exp(process["log_slope_mean"].to_numpy()),
        "noise_nats": np.exp(process["log_noise_mean"].to_numpy()),
        "lapse": 1 / (1 + np.exp(-process["logit_lapse_mean"].to_numpy())),
    }
    for name, curve in (("calibration", "llo"), ("game", "game")):
        draws[f"{name}_slope"] = fits[curve].posterior["slope_mean"].to_numpy()
        draws[f"{name}_bias_nats"] = fits[curve].posterior["bias_mean"].to_numpy()
    return {key: value for name, values in draws.items() for key, value in _quantiles(name, values, tail).items()}


def _own(fits: dict[str, _Fit], participant: str, tail: float) -> dict[str, float]:
    found: dict[str, float] = {}
    process = fits["reports"].posterior.sel(participant=participant)
    for name, column in (("bias", "bias_nats"), ("slope", "slope"), ("noise", "noise_nats"), ("lapse", "lapse")):
        found |= _quantiles(column, process[name].to_numpy(), tail)
    for name, curve in (("calibration", "llo"), ("game", "game")):
        posterior = fits[curve].posterior
        if participant not in posterior["participant"].to_numpy():  # never favoured an option
            continue
        for coefficient, column in (("slope", f"{name}_slope"), ("bias", f"{name}_bias_nats")):
            found |= _quantiles(column, posterior[coefficient].sel(participant=participant).to_numpy(), tail)
    return found


def _quantiles(name: str, draws: FloatArray, tail: float) -> dict[str, float]:
    median, lower, upper = np.quantile(draws, [0.5, tail, 1 - tail])
    return {f"{name}_median": float(median), f"{name}_lower": float(lower), f"{name}_upper": float(upper)}


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


def _shown_boxes(reports: ReportData, cfg: DictConfig) -> RoundingScheme:
    """Boxes in which shares of reports are counted; reports without boxes are counted in the game's."""
    return rounding_scheme("interface") if reports.is_raw else chosen_rounding(cfg)


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
    fits: dict[str, _Fit],
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
    names = [str(name) for name in fits]
    numbers = {
        name: ("row", table[name].to_numpy())
        for name in table
        if name != "participant" and name not in CONVERGENCE_COLUMNS
    }
    verdicts = pd.DataFrame([convergence_columns(fit.convergence) for fit in fits.values()])
    verdicts["converged"] = verdicts["converged"].astype(np.int8)
    means = {
        f"{fit}_{name}_draws": ("draw", np.ravel(fits[fit].posterior[name].to_numpy()))
        for fit, wanted in (
            ("reports", ("strength", "half_share", "log_slope_mean", "log_noise_mean", "logit_lapse_mean")),
            ("llo", ("bias_mean", "slope_mean")),
            ("game", ("bias_mean", "slope_mean")),
            ("beta", ("bias_mean", "slope_low_mean", "slope_high_mean")),
        )
        for name in wanted
    }
    return xr.Dataset(
        {
            **numbers,
            **{f"fit_{name}": ("fit", verdicts[name].to_numpy()) for name in verdicts},
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
            "fit": np.array(names, dtype=object),
            "quantile": quantile,
            "report": list(CURVE_REPORTS),
            "box": boxes,
        },
    )


def _flat(values: xr.DataArray) -> FloatArray:
    """(draw, ...), chains one after the other."""
    array = values.transpose("chain", "draw", ...).to_numpy()
    flat: FloatArray = array.reshape(-1, *array.shape[2:])
    return flat
