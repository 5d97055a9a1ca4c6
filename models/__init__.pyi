# What the package offers: read by type checkers and editors, and by lazy_loader, which imports a name when it is used.

from . import bets, cloze, comparison, guesses, rankings
from .bets.recalibration import recalibration_model
from .bets.recalibration_data import RecalibrationData, recalibration_data
from .bets.recalibration_priors import RecalibrationPriors
from .cloze.ard import ard_model
from .cloze.ard_columns import ArdColumns, clean_columns, measured_error
from .cloze.ard_data import ArdData, Measured, ard_data
from .cloze.ard_priors import ArdPriors, FixedScales
from .cloze.tvd import WordPairData, WordPairPriors, set_word_pairs, word_pair_data, word_pair_model
from .comparison.calibration import CalibrationPriors, calibration_model, set_weights
from .comparison.calibration_data import (
    OutcomeData,
    ReportData,
    binary_outcomes,
    binary_reports,
    favoured_outcomes,
    reports_on_truth,
)
from .comparison.participant_data import ParticipantData, participant_data, without_participants
from .comparison.participants import ParticipantPriors, participant_model
from .comparison.report_process import ReportPriors, report_model
from .guesses.accuracy import accuracy_model
from .guesses.accuracy_data import AccuracyData, accuracy_data
from .guesses.accuracy_priors import AccuracyPriors
from .rankings.slope_priors import RankPriors
from .rankings.slopes import RankData, rank_data, rank_slope_model, set_counts

__all__ = [
    "AccuracyData",
    "AccuracyPriors",
    "ArdColumns",
    "ArdData",
    "ArdPriors",
    "CalibrationPriors",
    "FixedScales",
    "Measured",
    "OutcomeData",
    "ParticipantData",
    "ParticipantPriors",
    "RankData",
    "RankPriors",
    "RecalibrationData",
    "RecalibrationPriors",
    "ReportData",
    "ReportPriors",
    "WordPairData",
    "WordPairPriors",
    "accuracy_data",
    "accuracy_model",
    "ard_data",
    "ard_model",
    "bets",
    "binary_outcomes",
    "binary_reports",
    "calibration_model",
    "clean_columns",
    "cloze",
    "comparison",
    "favoured_outcomes",
    "guesses",
    "measured_error",
    "participant_data",
    "participant_model",
    "rank_data",
    "rank_slope_model",
    "rankings",
    "recalibration_data",
    "recalibration_model",
    "report_model",
    "reports_on_truth",
    "set_counts",
    "set_weights",
    "set_word_pairs",
    "without_participants",
    "word_pair_data",
    "word_pair_model",
]
