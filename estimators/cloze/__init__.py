"""Cloze studies: people's and models' next words."""

from shannon_game.estimators.cloze.answer_statistics import (
    AnswerStatistics,
    answer_statistics,
    entropy_corrected_nats,
    target_surprisal,
)
from shannon_game.estimators.cloze.calibration_error import CalibrationError, expected_calibration_error, share_correct
from shannon_game.estimators.cloze.classwise_error import ClasswiseError, classwise_calibration_error
from shannon_game.estimators.cloze.criterion_share import (
    CRITERIA,
    CriterionShare,
    NeededShare,
    criterion_margin,
    criterion_share,
    needed_share,
)
from shannon_game.estimators.cloze.distances import jensen_shannon_nats, kl_nats, total_variation, tvd_exact
from shannon_game.estimators.cloze.distributions import (
    Distributions,
    TopWords,
    WordCounts,
    count_words,
    entropy_nats,
    relative_frequencies,
    top_words,
)
from shannon_game.estimators.cloze.meaning import EnergyDistance, energy_distance
from shannon_game.estimators.cloze.mixture import HeldOutMixture, held_out_mixture
from shannon_game.estimators.cloze.paired_difference import PairedDifference, paired_difference
from shannon_game.estimators.cloze.population import AgreementSpread, GroupDistance, agreement_spread, group_distance
from shannon_game.estimators.cloze.renormalised import renormalised_distributions
from shannon_game.estimators.cloze.simulation import ClozeSimulation, simulate_cloze_study
from shannon_game.estimators.cloze.split_halves import (
    SplitHalves,
    random_split_halves,
    tvd_between_split_halves,
    tvd_to_split_halves,
)
from shannon_game.estimators.cloze.study import validate_cloze_study
from shannon_game.estimators.cloze.study_words import ModelWords, StudyWords, study_words
from shannon_game.estimators.cloze.tables import cloze_items, cloze_participants
from shannon_game.estimators.cloze.tvd_bias import TvdBaseline, tvd_with_baseline
from shannon_game.estimators.cloze.words import (
    NON_ANSWERS,
    WORD_RULES,
    NormalisedWords,
    WordRules,
    normalise_words,
    word_rules,
)

__all__ = [
    "CRITERIA",
    "NON_ANSWERS",
    "WORD_RULES",
    "AgreementSpread",
    "AnswerStatistics",
    "CalibrationError",
    "ClasswiseError",
    "ClozeSimulation",
    "CriterionShare",
    "Distributions",
    "EnergyDistance",
    "GroupDistance",
    "HeldOutMixture",
    "ModelWords",
    "NeededShare",
    "NormalisedWords",
    "PairedDifference",
    "SplitHalves",
    "StudyWords",
    "TopWords",
    "TvdBaseline",
    "WordCounts",
    "WordRules",
    "agreement_spread",
    "answer_statistics",
    "classwise_calibration_error",
    "cloze_items",
    "cloze_participants",
    "count_words",
    "criterion_margin",
    "criterion_share",
    "energy_distance",
    "entropy_corrected_nats",
    "entropy_nats",
    "expected_calibration_error",
    "group_distance",
    "held_out_mixture",
    "jensen_shannon_nats",
    "kl_nats",
    "needed_share",
    "normalise_words",
    "paired_difference",
    "random_split_halves",
    "relative_frequencies",
    "renormalised_distributions",
    "share_correct",
    "simulate_cloze_study",
    "study_words",
    "target_surprisal",
    "top_words",
    "total_variation",
    "tvd_between_split_halves",
    "tvd_exact",
    "tvd_to_split_halves",
    "tvd_with_baseline",
    "validate_cloze_study",
    "word_rules",
]
