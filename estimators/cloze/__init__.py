"""Cloze studies: people's and models' next words."""

from estimators.cloze.answer_statistics import (
    AnswerStatistics,
    answer_statistics,
    entropy_corrected_nats,
    target_surprisal,
)
from estimators.cloze.calibration_error import CalibrationError, expected_calibration_error, share_correct
from estimators.cloze.classwise_error import ClasswiseError, classwise_calibration_error
from estimators.cloze.criterion_share import (
    CRITERIA,
    CriterionShare,
    NeededShare,
    criterion_margin,
    criterion_share,
    needed_share,
)
from estimators.cloze.distances import jensen_shannon_nats, kl_nats, total_variation, tvd_exact
from estimators.cloze.distributions import (
    Distributions,
    TopWords,
    WordCounts,
    count_words,
    entropy_nats,
    relative_frequencies,
    top_words,
)
from estimators.cloze.meaning import EnergyDistance, energy_distance
from estimators.cloze.mixture import HeldOutMixture, held_out_mixture
from estimators.cloze.paired_difference import PairedDifference, paired_difference
from estimators.cloze.population import AgreementSpread, GroupDistance, agreement_spread, group_distance
from estimators.cloze.renormalised import renormalised_distributions
from estimators.cloze.simulation import ClozeSimulation, simulate_cloze_study
from estimators.cloze.split_halves import (
    SplitHalves,
    random_split_halves,
    tvd_between_split_halves,
    tvd_to_split_halves,
)
from estimators.cloze.study import validate_cloze_study
from estimators.cloze.study_words import ModelWords, StudyWords, study_words
from estimators.cloze.tables import cloze_items, cloze_participants
from estimators.cloze.tvd_bias import TvdBaseline, tvd_with_baseline
from estimators.cloze.words import NON_ANSWERS, WORD_RULES, NormalisedWords, WordRules, normalise_words, word_rules

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
