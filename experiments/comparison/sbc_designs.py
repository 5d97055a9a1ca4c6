"""Small designs of comparison studies on which simulation-based calibration fits each model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from estimators.comparison import HUMAN, player_names, rounding_scheme
from estimators.errors import InputError
from inference.comparison import sbc
from inference.settings import from_numbers
from models.comparison.belief import BeliefPriors, belief_data
from models.comparison.calibration import CalibrationPriors, favoured_outcomes
from models.comparison.calibration_data import reports_on_truth
from models.comparison.free_answer_data import free_answer_data
from models.comparison.free_answers import FreeAnswerPriors
from models.comparison.participant_data import participant_data
from models.comparison.participants import ParticipantPriors
from models.comparison.report_process import ReportPriors

if TYPE_CHECKING:
    import xarray as xr

    from experiments.comparison.sbc import SbcSettings
    from inference.posterior.sbc import SbcModel

__all__ = ["belief", "belief_rounded", "calibration", "calibration_beta", "free_answers", "participants", "reports"]


def belief(study: xr.Dataset, settings: SbcSettings, scheme: str = "none") -> SbcModel:
    """Belief model of a language model that answers without rounding."""
    # any player: its answers are replaced, only which pairs there are is kept
    player = next(player for player in player_names(study) if player != HUMAN)
    data = belief_data(study, player, rounding_scheme("none") if scheme == "none" else settings.rounding.scheme)
    design = sbc.small_belief_design(data, settings.n_items, settings.n_pairs)
    return sbc.belief_sbc(design, from_numbers(BeliefPriors, settings.priors))


def belief_rounded(study: xr.Dataset, settings: SbcSettings) -> SbcModel:
    """Belief model of a language model whose answers are rounded."""
    if settings.rounding.scheme == rounding_scheme("none"):
        raise InputError("is 'none', but experiment.model=belief_rounded rounds its answers", field="rounding")
    return belief(study, settings, settings.rounding.name)


def calibration(study: xr.Dataset, settings: SbcSettings, family: str = "llo") -> SbcModel:
    """Calibration curves that are linear in log-odds."""
    outcomes = favoured_outcomes(_small(study, settings))
    return sbc.calibration_sbc(outcomes, family, from_numbers(CalibrationPriors, settings.priors))


def calibration_beta(study: xr.Dataset, settings: SbcSettings) -> SbcModel:
    """Calibration curves of the beta family."""
    return calibration(study, settings, "beta")


def reports(study: xr.Dataset, settings: SbcSettings) -> SbcModel:
    """How reports come about."""
    data = reports_on_truth(_small(study, settings), settings.rounding.scheme)
    return sbc.report_sbc(data, from_numbers(ReportPriors, settings.priors))


def participants(study: xr.Dataset, settings: SbcSettings) -> SbcModel:
    """Participants with a shared belief."""
    data = participant_data(_small(study, settings), settings.rounding.scheme)
    return sbc.participant_sbc(data, from_numbers(ParticipantPriors, settings.priors))


def free_answers(study: xr.Dataset, settings: SbcSettings) -> SbcModel:
    """Free answers and reports of one belief, the pools held fixed."""
    data = free_answer_data(_small(study, settings), settings.rounding.scheme)
    return sbc.free_answer_sbc(data, from_numbers(FreeAnswerPriors, settings.priors))


def _small(study: xr.Dataset, settings: SbcSettings) -> xr.Dataset:
    return sbc.small_study(study, settings.n_items, settings.n_participants)
