"""Models of comparison studies for simulation-based calibration, on small designs."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from estimators.errors import InputError
from inference.posterior.sbc import SbcModel
from models.comparison.belief import BeliefPriors, belief_model
from models.comparison.belief_data import BeliefData
from models.comparison.belief_density import belief_density
from models.comparison.calibration import CalibrationPriors, calibration_model
from models.comparison.calibration_data import OutcomeData, ReportData
from models.comparison.free_answer_data import FreeAnswerData
from models.comparison.free_answer_density import free_answer_density
from models.comparison.free_answers import FreeAnswerPriors, free_answer_model
from models.comparison.participant_data import ParticipantData
from models.comparison.participant_density import participant_density
from models.comparison.participants import ParticipantPriors, participant_model
from models.comparison.report_process import ReportPriors, report_model

if TYPE_CHECKING:
    import xarray as xr
    from numpy.typing import NDArray

__all__ = [
    "belief_sbc",
    "calibration_sbc",
    "free_answer_sbc",
    "participant_sbc",
    "report_sbc",
    "small_belief_design",
    "small_study",
]

_BELIEF = ("mu", "a", "b", "b2", "sigma", "omega", "c", "d", "t_b", "t_d", "kap", "rho", "ga", "A[0]", "s[0]")


def belief_sbc(data: BeliefData, priors: BeliefPriors | None = None) -> SbcModel:
    """Belief model of one player, raw or rounded as `data` is; its answers are only the shape of those simulated.

    Parameters
    ----------
    data, priors
        See :func:`models.belief_model`.

    Returns
    -------
    SbcModel
        Named "belief", or "belief_rounded".

    Examples
    --------
    >>> import inference, models
    >>> from estimators.comparison.examples import comparison_study
    >>> inference.belief_sbc(models.belief_data(comparison_study(), "lm-weak", "interface")).name
    'belief_rounded'
    """
    return SbcModel(
        name="belief" if data.is_raw else "belief_rounded",
        build=partial(belief_model, data, priors),
        quantities=_BELIEF,
        density=partial(belief_density, data, priors),
    )


def small_belief_design(data: BeliefData, n_items: int, n_pairs: int) -> BeliefData:
    """Keep the first `n_pairs` pairs of the first `n_items` items that have as many."""
    count = np.bincount(data.pair_item, minlength=data.item.size)
    items = np.flatnonzero(count >= n_pairs)[:n_items]
    if items.size < n_items:
        raise InputError(
            f"is {n_items}, but only {items.size} items have {n_pairs} pairs or more",
            source=f"study {data.study!r}",
            field="n_items",
        )
    pairs = np.concatenate([np.flatnonzero(data.pair_item == item)[:n_pairs] for item in items])

    changed: dict[str, Any] = {}
    for name, value in vars(data).items():
        if name in {"item", "target_log_g", "surprisal", "unseen_mass"}:
            changed[name] = value[items]
        elif name.startswith("pair_"):
            changed[name] = value[pairs]
        elif name.startswith(("rest_", "tail_")):
            changed[name] = value[:0]
    changed["pair_item"] = np.repeat(np.arange(n_items), n_pairs).astype(np.intp)
    return replace(data, **changed)


def small_study(study: xr.Dataset, n_items: int, n_participants: int) -> xr.Dataset:
    """Keep the responses of the `n_participants` participants who gave the most, on the `n_items` most asked items.

    Of equally many, the first. Fewer are kept where the study has fewer.
    """
    who, item = study["participant"].values.astype(str), study["response_item"].values
    people = _most_frequent(who, n_participants)
    mine = np.isin(who, people)
    return study.isel(response=np.flatnonzero(mine & np.isin(item, _most_frequent(item[mine], n_items))))


def _most_frequent(values: NDArray[Any], n: int) -> NDArray[Any]:
    name, count = np.unique(values, return_counts=True)
    chosen: NDArray[Any] = name[np.argsort(-count, kind="stable")[:n]]
    return chosen


def calibration_sbc(data: OutcomeData, family: str = "llo", priors: CalibrationPriors | None = None) -> SbcModel:
    """Calibration curves; the outcomes of `data` are only the shape of those simulated.

    Parameters
    ----------
    data, family, priors
        See :func:`models.calibration_model`.

    Returns
    -------
    SbcModel
        Named "calibration", or "calibration_beta".

    Examples
    --------
    >>> import inference, models
    >>> from estimators.comparison.examples import comparison_study
    >>> inference.calibration_sbc(models.favoured_outcomes(comparison_study())).name
    'calibration'
    """
    coefficients = ("bias", "slope") if family == "llo" else ("bias", "slope_low", "slope_high")
    return SbcModel(
        name="calibration" if family == "llo" else f"calibration_{family}",
        build=partial(calibration_model, data, family, priors),
        quantities=tuple(f"{name}{part}" for name in coefficients for part in ("_mean", "_spread", "[0]")),
    )


def report_sbc(data: ReportData, priors: ReportPriors | None = None) -> SbcModel:
    """How reports come about; the reports of `data` are only the shape of those simulated.

    Parameters
    ----------
    data, priors
        See :func:`models.report_model`.

    Returns
    -------
    SbcModel
        Named "reports".

    Examples
    --------
    >>> import inference, models
    >>> from estimators.comparison.examples import comparison_study
    >>> inference.report_sbc(models.reports_on_truth(comparison_study(), "interface")).name
    'reports'
    """
    scalars: tuple[str, ...] = (
        "strength",
        "bias_spread",
        "log_slope_mean",
        "log_slope_spread",
        "log_noise_mean",
        "log_noise_spread",
    )
    scalars += ("logit_lapse_mean", "logit_lapse_spread", "half_share")
    scalars += () if data.on_truth else ("bias_mean",)
    return SbcModel(
        name="reports",
        build=partial(report_model, data, priors),
        quantities=(*scalars, "bias[0]", "slope[0]", "noise[0]", "lapse[0]"),
    )


def participant_sbc(data: ParticipantData, priors: ParticipantPriors | None = None) -> SbcModel:
    """Participants with a shared belief; the reports of `data` are only the shape of those simulated.

    Parameters
    ----------
    data, priors
        See :func:`models.participant_model`.

    Returns
    -------
    SbcModel
        Named "participants".

    Examples
    --------
    >>> import inference, models
    >>> from estimators.comparison.examples import comparison_study
    >>> inference.participant_sbc(models.participant_data(comparison_study())).name
    'participants'
    """
    scalars: tuple[str, ...] = (
        "mu",
        "a",
        "b",
        "b2",
        "sigma",
        "omega",
        "c",
        "t_b",
        "kap",
        "rho",
        "ga",
        "slope_spread",
        "bias_spread",
    )
    scalars += ("log_noise", "noise_spread", "logit_lapse", "lapse_spread", "half")
    return SbcModel(
        name="participants",
        build=partial(participant_model, data, priors),
        density=partial(participant_density, data, priors),
        quantities=(*scalars, "A[0]", "s[0]", "slope[0]", "bias[0]", "noise[0]", "lapse[0]"),
    )


def free_answer_sbc(data: FreeAnswerData, priors: FreeAnswerPriors | None = None) -> SbcModel:
    """Free answers and reports of one belief, in pools that are held fixed.

    Which tokens stand in a pool depends on what people answered. Every token is therefore taken for a candidate in any
    case, whose answers select nothing; the answers and reports of `data` are only the shape of those simulated.

    Parameters
    ----------
    data, priors
        See :func:`models.free_answer_model`.

    Returns
    -------
    SbcModel
        Named "free_answers".

    Examples
    --------
    >>> import inference, models
    >>> from estimators.comparison.examples import designed_study
    >>> inference.free_answer_sbc(models.free_answer_data(designed_study())).name
    'free_answers'
    """
    fixed = replace(data, token_given=np.ones_like(data.token_given))
    scalars: tuple[str, ...] = (
        "log_k0",
        "level",
        "g_slope",
        "rare_g_slope",
        "level_spread",
        "narrow",
        "upper",
        "lower",
        "spread_slope",
    )
    scalars += (
        "target_upper",
        "target_lower",
        "target_level",
        "target_slope",
        "slope_spread",
        "bias_spread",
        "log_noise",
    )
    return SbcModel(
        name="free_answers",
        build=partial(free_answer_model, fixed, priors),
        density=partial(free_answer_density, fixed, priors),
        quantities=(*scalars, "item_gap_nats[0]", "token_log_ratio[0]", "slope[0]", "bias[0]"),
    )
