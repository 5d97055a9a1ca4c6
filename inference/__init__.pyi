# What the package offers: read by type checkers and editors, and by lazy_loader, which imports a name when it is used.

from . import api, bets, cloze, comparison, guesses, lm, posterior, rankings, store
from .bets.recalibration import HeldOutLosses, held_out_losses, recalibrated_losses
from .bets.sbc import recalibration_sbc
from .cloze.ard import SklearnArd, average_effects, expected_target, largest_probability, loo_of_targets, sklearn_ard
from .cloze.ard_sbc import ard_sbc, interval_coverage
from .cloze.tvd import TvdPosterior, tvd_posterior
from .comparison.calibration_curves import predicted_reports, reliability_curves, report_shares
from .comparison.participant_fit import ANCHORS, Anchor, ParticipantFit, design_matrix, fit_participants, top1_weights
from .comparison.participant_gap import SharedBelief, loss_gap, outcome_temperature, tail_share
from .comparison.participant_sensitivity import WithoutOne, leave_one_out, scaled_priors, unusual_participants
from .comparison.sbc import calibration_sbc, report_sbc
from .examples import stand_in_posterior
from .guesses.accuracy import (
    ModelGuesses,
    beats_every,
    best_participant,
    model_guesses,
    participant_draws,
    population_draws,
    practice_change,
)
from .guesses.sbc import accuracy_sbc
from .posterior.convergence import Convergence, check_convergence
from .posterior.model_comparison import LooByGroup, compare, comparison_table, loo_by
from .posterior.predictive import complete, log_likelihood
from .posterior.sampling import SAMPLERS, CompiledModel, compile_model, sample, written_model
from .posterior.sbc import SbcModel, SbcSettings, run_sbc
from .posterior.sbc_bands import EcdfBand, SbcVerdict, ecdf_band, judge_ranks
from .posterior.storage import load_posterior, save_posterior
from .posterior.thresholds import GateThresholds
from .rankings.slopes import RankDraws, expected_scores, power_to_tell_apart, rank_draws, score_slopes, share_best

__all__ = [
    "ANCHORS",
    "SAMPLERS",
    "Anchor",
    "CompiledModel",
    "Convergence",
    "EcdfBand",
    "GateThresholds",
    "HeldOutLosses",
    "LooByGroup",
    "ModelGuesses",
    "ParticipantFit",
    "RankDraws",
    "SbcModel",
    "SbcSettings",
    "SbcVerdict",
    "SharedBelief",
    "SklearnArd",
    "TvdPosterior",
    "WithoutOne",
    "accuracy_sbc",
    "api",
    "ard_sbc",
    "average_effects",
    "beats_every",
    "best_participant",
    "bets",
    "calibration_sbc",
    "check_convergence",
    "cloze",
    "compare",
    "comparison",
    "comparison_table",
    "compile_model",
    "complete",
    "design_matrix",
    "ecdf_band",
    "expected_scores",
    "expected_target",
    "fit_participants",
    "guesses",
    "held_out_losses",
    "interval_coverage",
    "judge_ranks",
    "largest_probability",
    "leave_one_out",
    "lm",
    "load_posterior",
    "log_likelihood",
    "loo_by",
    "loo_of_targets",
    "loss_gap",
    "model_guesses",
    "outcome_temperature",
    "participant_draws",
    "population_draws",
    "posterior",
    "power_to_tell_apart",
    "practice_change",
    "predicted_reports",
    "rank_draws",
    "rankings",
    "recalibrated_losses",
    "recalibration_sbc",
    "reliability_curves",
    "report_sbc",
    "report_shares",
    "run_sbc",
    "sample",
    "save_posterior",
    "scaled_priors",
    "score_slopes",
    "share_best",
    "sklearn_ard",
    "stand_in_posterior",
    "store",
    "tail_share",
    "top1_weights",
    "tvd_posterior",
    "unusual_participants",
    "written_model",
]
