# What the package offers: read by type checkers and editors, and by lazy_loader, which imports a name when it is used.

from . import api, bets, cloze, comparison, guesses, lm, posterior, rankings, store
from .comparison.anchors import ANCHORS, Anchor
from .comparison.participant_fit import ParticipantFit, design_matrix, fit_participants
from .comparison.participant_posterior import whole_posterior
from .examples import stand_in_posterior
from .posterior.convergence import Convergence, check_convergence
from .posterior.model_comparison import LooByGroup, comparison_table, loo_by
from .posterior.predictive import complete
from .posterior.sampling import SAMPLERS, CompiledModel, sample
from .posterior.sbc import SbcModel
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
    "api",
    "bets",
    "check_convergence",
    "cloze",
    "comparison",
    "comparison_table",
    "complete",
    "design_matrix",
    "fit_participants",
    "guesses",
    "lm",
    "load_posterior",
    "loo_by",
    "posterior",
    "rankings",
    "sample",
    "save_posterior",
    "stand_in_posterior",
    "store",
    "whole_posterior",
]
