# What the package offers: read by type checkers and editors, and by lazy_loader, which imports a name when it is used.

from . import api, bets, cloze, comparison, guesses, lm, posterior, rankings, store
from .comparison.calibration_curves import reliability_curves
from .comparison.participant_fit import ANCHORS, Anchor, ParticipantFit, design_matrix, fit_participants, top1_weights
from .comparison.participant_gap import SharedBelief, loss_gap, outcome_temperature, tail_share
from .comparison.participant_sensitivity import WithoutOne, leave_one_out, scaled_priors, unusual_participants
from .comparison.sbc import calibration_sbc
from .examples import stand_in_posterior
from .posterior.convergence import Convergence, check_convergence
from .posterior.model_comparison import LooByGroup, compare, comparison_table, loo_by
from .posterior.predictive import complete, log_likelihood
from .posterior.sampling import SAMPLERS, CompiledModel, compile_model, sample, written_model
from .posterior.sbc import SbcModel, SbcSettings, run_sbc
from .posterior.sbc_bands import SbcVerdict, judge_ranks
from .posterior.storage import load_posterior, save_posterior
from .posterior.thresholds import GateThresholds

__all__ = [
    "ANCHORS",
    "SAMPLERS",
    "Anchor",
    "CompiledModel",
    "Convergence",
    "GateThresholds",
    "LooByGroup",
    "ParticipantFit",
    "SbcModel",
    "SbcSettings",
    "SbcVerdict",
    "SharedBelief",
    "WithoutOne",
    "api",
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
    "fit_participants",
    "guesses",
    "judge_ranks",
    "leave_one_out",
    "lm",
    "load_posterior",
    "log_likelihood",
    "loo_by",
    "loss_gap",
    "outcome_temperature",
    "posterior",
    "rankings",
    "reliability_curves",
    "run_sbc",
    "sample",
    "save_posterior",
    "scaled_priors",
    "stand_in_posterior",
    "store",
    "tail_share",
    "top1_weights",
    "unusual_participants",
    "written_model",
]
