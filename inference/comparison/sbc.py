"""What simulation-based calibration needs of each model, on small designs."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from estimators.errors import InputError
from inference.posterior.sbc import SbcModel

if TYPE_CHECKING:
    import pymc as pm
    import xarray as xr
    from numpy.typing import NDArray

    from models.comparison.belief import BeliefPriors
    from models.comparison.belief_data import BeliefData
    from models.comparison.calibration import CalibrationPriors
    from models.comparison.calibration_data import OutcomeData, ReportData
    from models.comparison.participant_data import ParticipantData
    from models.comparison.participants import ParticipantPriors
    from models.comparison.report_process import ReportPriors
    from models.guesses.accuracy import AccuracyPriors
    from models.guesses.accuracy_data import AccuracyData

__all__ = [
    "accuracy_sbc",
    "belief_sbc",
    "calibration_sbc",
    "participant_sbc",
    "report_sbc",
    "small_accuracy_design",
    "small_belief_design",
    "small_study",
]

_BELIEF = ("mu", "a", "b", "b2", "sigma", "omega", "c", "d", "t_b", "t_d", "kap", "rho", "ga", "A[0]", "s[0]")


def belief_sbc(data: BeliefData, priors: BeliefPriors | None = None) -> SbcModel:
    """Belief model of one player, raw or rounded as `data` is; its answers are only the shape of those simulated."""
    from models.comparison.belief import BeliefPriors  # noqa: PLC0415

    return SbcModel(
        name="belief" if data.is_raw else "belief_rounded",
        build=partial(_belief, data, priors),
        quantities=_BELIEF,
        start=partial(_belief_start, priors),
        key=_fingerprint(vars(data), vars(priors or BeliefPriors())),
    )


def _belief(data: BeliefData, priors: BeliefPriors | None) -> pm.Model:
    from models.comparison.belief import belief_model  # noqa: PLC0415 - seconds that only a fit should cost

    return belief_model(data, priors)


def _belief_start(priors: BeliefPriors | None, model: pm.Model) -> dict[str, Any]:
    from models.comparison.belief import start_values  # noqa: PLC0415

    return start_values(model, priors)


def small_belief_design(data: BeliefData, n_items: int, n_pairs: int) -> BeliefData:
    """Keep the first `n_pairs` pairs of the first `n_items` items that have as many.

    Raises
    ------
    InputError
        If there are too few such items.
    """
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
    """Calibration curves; the outcomes of `data` are only the shape of those simulated."""
    from models.comparison.calibration import CalibrationPriors  # noqa: PLC0415

    coefficients = ("bias", "slope") if family == "llo" else ("bias", "slope_low", "slope_high")
    return SbcModel(
        name="calibration" if family == "llo" else f"calibration_{family}",
        build=partial(_calibration, data, family, priors),
        quantities=tuple(f"{name}{part}" for name in coefficients for part in ("_mean", "_spread", "[0]")),
        key=_fingerprint(vars(data), vars(priors or CalibrationPriors())),
    )


def _calibration(data: OutcomeData, family: str, priors: CalibrationPriors | None) -> pm.Model:
    from models.comparison.calibration import calibration_model  # noqa: PLC0415

    return calibration_model(data, family, priors)


def report_sbc(data: ReportData, priors: ReportPriors | None = None) -> SbcModel:
    """How reports come about; the reports of `data` are only the shape of those simulated."""
    from models.comparison.report_process import ReportPriors  # noqa: PLC0415

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
        build=partial(_reports, data, priors),
        quantities=(*scalars, "bias[0]", "slope[0]", "noise[0]", "lapse[0]"),
        key=_fingerprint(vars(data), vars(priors or ReportPriors())),
    )


def _reports(data: ReportData, priors: ReportPriors | None) -> pm.Model:
    from models.comparison.report_process import report_model  # noqa: PLC0415

    return report_model(data, priors)


def participant_sbc(data: ParticipantData, priors: ParticipantPriors | None = None) -> SbcModel:
    """Participants with a shared belief; the reports of `data` are only the shape of those simulated."""
    from models.comparison.participants import ParticipantPriors  # noqa: PLC0415

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
        build=partial(_participants, data, priors),
        quantities=(*scalars, "A[0]", "s[0]", "slope[0]", "bias[0]", "noise[0]", "lapse[0]"),
        key=_fingerprint(vars(data), vars(priors or ParticipantPriors())),
    )


def _participants(data: ParticipantData, priors: ParticipantPriors | None) -> pm.Model:
    from models.comparison.participants import participant_model  # noqa: PLC0415

    return participant_model(data, priors)


def accuracy_sbc(data: AccuracyData, priors: AccuracyPriors | None = None) -> SbcModel:
    """Accuracy of guesses; the hits of `data` are only the shape of those simulated."""
    from models.guesses.accuracy import AccuracyPriors  # noqa: PLC0415

    scalars: tuple[str, ...] = ("intercept", "practice_mean", "ability_spread", "practice_spread", "document_spread")
    scalars += ("context_step", "context_effect[0]") if data.band.size > 1 else ()
    scalars += ("surprisal_slope",) if data.surprisal is not None else ()
    return SbcModel(
        name="accuracy",
        build=partial(_accuracy, data, priors),
        quantities=(*scalars, "ability[0]", "practice[0]", "document_effect[0]"),
        key=_fingerprint(vars(data), vars(priors or AccuracyPriors())),
    )


def _accuracy(data: AccuracyData, priors: AccuracyPriors | None) -> pm.Model:
    from models.guesses.accuracy import accuracy_model  # noqa: PLC0415

    return accuracy_model(data, priors)


def small_accuracy_design(n_participants: int, n_documents: int, n_guesses: int) -> AccuracyData:
    """Guesses of an imagined study, all wrong: everybody reads every second document, and gives `n_guesses` in each.

    Along its documents a participant's practice goes from the first guess to the 1,500th, and contexts through four
    lengths; surprisals are spread like a normal of standard deviation 1.

    Raises
    ------
    InputError
        If a number is not positive.
    """
    from scipy.stats import norm  # noqa: PLC0415

    from models.guesses.accuracy_data import AccuracyData, context_band_names, practice_amount  # noqa: PLC0415

    for name, value in (("n_participants", n_participants), ("n_items", n_documents), ("n_pairs", n_guesses)):
        if value < 1:
            raise InputError(f"is {value}, should be at least 1", source="accuracy design", field=name)
    per_person = (n_documents + 1) // 2
    person = np.repeat(np.arange(n_participants), per_person)
    turn = np.tile(np.arange(per_person), n_participants)
    place = np.unique((2 * turn + person) % n_documents, return_inverse=True)[1]
    size = person.size
    context = np.unique((turn + person) % 4, return_inverse=True)[1]
    practice = practice_amount(1500 * turn / max(per_person - 1, 1))
    # a fixed order that has nothing to do with the other predictors
    surprisal = norm.ppf((np.random.default_rng(0).permutation(size) + 0.5) / size)
    n_bands = int(context.max()) + 1
    return AccuracyData(
        participant=np.array([f"p{number}" for number in range(n_participants)]),
        document=np.array([f"d{number}" for number in range(int(place.max()) + 1)]),
        band=np.array(context_band_names(n_bands)),
        band_share=np.bincount(context, minlength=n_bands) / size,
        person=person.astype(np.intp),
        place=place.astype(np.intp),
        context=context.astype(np.intp),
        practice=practice - practice.mean(),
        practice_centre=float(practice.mean()),
        surprisal=surprisal,
        surprisal_centre=0.0,
        surprisal_model="imagined",
        n=np.full(size, n_guesses, dtype=np.int64),
        hits=np.zeros(size, dtype=np.int64),
        response=np.arange(size),
        n_repeats=0,
        n_unscored=0,
    )


def _fingerprint(*parts: Mapping[str, Any]) -> str:
    """Short hash of arrays and settings."""
    digest = hashlib.sha256()
    for part in parts:
        for name, value in sorted(part.items()):
            text = value.tobytes() if isinstance(value, np.ndarray) and value.dtype != object else repr(value).encode()
            digest.update(name.encode() + b"=" + text + b";")
    return digest.hexdigest()[:16]
