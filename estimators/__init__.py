"""Numbers from arrays: the estimators of human and model next-word prediction.

What lives here, by kind of study:

- comparison studies: reports and likelihood ratios, rounding, the game's score, importance-sampling estimators of the
  loss gap and perplexity with their diagnostics, resampling, a simulator with known truth;
- cloze studies: words and their rules, cpds and distances between them, baselines for samples, oracles, calibration
  error, a simulator;
- top-1 guesses: accuracy and its intervals; rankings: rank scores and approximate perplexity; documents: loss,
  perplexity and bits per byte of a corpus.

Each kind has one validator, whose docstring says what such a study holds. NumPy inside, ``xarray.Dataset`` at the door.

What does not: files, downloads, plots, samplers, language models. Nothing here imports another package of this
project, and importing it pulls in neither xarray nor pandas.
"""

from estimators.accuracy import (
    ParticipantAccuracy,
    PooledAccuracy,
    PracticeCurve,
    bayesian_bootstrap_accuracy,
    bootstrap_accuracy,
    enough_answers,
    participant_accuracy,
    pooled_accuracy,
    practice_curve,
    wilson_interval,
)
from estimators.answer_statistics import AnswerStatistics, answer_statistics
from estimators.biased import biased_cpds
from estimators.bootstrap import BootstrapGap, bias_curve, cluster_bootstrap, half_sample_bootstrap
from estimators.calibration_error import CalibrationError, expected_calibration_error, share_correct
from estimators.cloze import validate_cloze_study
from estimators.cloze_simulation import ClozeSimulation, simulate_cloze_study
from estimators.comparison import HUMAN, is_word_token, response_positions, same_token, validate_comparison_study
from estimators.corpus import ClusteredMean, CorpusScores, clustered_mean, corpus_scores
from estimators.cpd import (
    Cpds,
    TopWords,
    WordCounts,
    count_words,
    cpds_from_proportions,
    entropy_nats,
    jensen_shannon_nats,
    kl_nats,
    probability_at,
    relative_frequencies,
    top_words,
    total_variation,
    tvd_exact,
)
from estimators.diagnostics import WeightDiagnostics, fit_pareto_shape, pareto_khat, smooth_tail
from estimators.documents import document_tokens, validate_documents_study
from estimators.errors import InputError
from estimators.guess import (
    guess_contexts,
    is_visible_token,
    is_word_position,
    prior_guesses,
    repeated_guesses,
    validate_guess_study,
    with_model_answers,
)
from estimators.improvement import NeededShare, needed_share
from estimators.logmean import (
    ItemTerms,
    LogMeans,
    delta_log_mean,
    expected_counts,
    group_terms,
    jackknife_log_mean,
    plain_log_mean,
    psis_log_mean,
    rao_blackwell_log_mean,
)
from estimators.oracles import Oracles, independent_oracles, tvd_between_oracles, tvd_to_oracles
from estimators.perplexity import (
    ESTIMATORS,
    LossGap,
    PerplexityEstimate,
    ResponsePairs,
    candidate_log_terms,
    control_model,
    diagnose_weights,
    estimate_gap,
    estimate_perplexity,
    log_terms,
    player_names,
    reference_loss,
    response_pairs,
    subsample_responses,
    true_loss,
)
from estimators.rank_scores import (
    ApproximatePerplexity,
    approximate_perplexity,
    average_score,
    exponential_score,
    linear_score,
    match_tokens,
    rank_at,
    ranks_among,
    ranks_from_logits,
    reciprocal_score,
    reference_log_probability,
    top_k_accuracy,
)
from estimators.ranking import (
    TokenScores,
    conditioned_on_other_text,
    score_study,
    validate_ranking_study,
)
from estimators.reports import (
    log_ratio_from_report,
    ratio_from_report,
    report_from_log_ratio,
    two_alternative_report,
)
from estimators.rounding import SCHEMES, RoundingScheme, report_boxes, round_reports, rounding_scheme
from estimators.score import expected_score, optimal_report, rational_report, score
from estimators.simulated_participants import simulate_reports
from estimators.simulation import simulate_comparison_study
from estimators.simulation_settings import ParticipantPopulation, SimulationSettings
from estimators.study_notes import add_note, notes
from estimators.study_words import ModelWords, StudyWords, study_words
from estimators.tvd_bias import TvdBaseline, permutation_baseline, tvd_with_baseline
from estimators.units import bits_from_nats, loss_from_perplexity, nats_from_bits, perplexity_from_loss
from estimators.words import WORD_RULES, NormalisedWords, WordRules, normalise_words, word_rules

__all__ = [
    "ESTIMATORS",
    "HUMAN",
    "SCHEMES",
    "WORD_RULES",
    "AnswerStatistics",
    "ApproximatePerplexity",
    "BootstrapGap",
    "CalibrationError",
    "ClozeSimulation",
    "ClusteredMean",
    "CorpusScores",
    "Cpds",
    "InputError",
    "ItemTerms",
    "LogMeans",
    "LossGap",
    "ModelWords",
    "NeededShare",
    "NormalisedWords",
    "Oracles",
    "ParticipantAccuracy",
    "ParticipantPopulation",
    "PerplexityEstimate",
    "PooledAccuracy",
    "PracticeCurve",
    "ResponsePairs",
    "RoundingScheme",
    "SimulationSettings",
    "StudyWords",
    "TokenScores",
    "TopWords",
    "TvdBaseline",
    "WeightDiagnostics",
    "WordCounts",
    "WordRules",
    "add_note",
    "answer_statistics",
    "approximate_perplexity",
    "average_score",
    "bayesian_bootstrap_accuracy",
    "bias_curve",
    "biased_cpds",
    "bits_from_nats",
    "bootstrap_accuracy",
    "candidate_log_terms",
    "cluster_bootstrap",
    "clustered_mean",
    "conditioned_on_other_text",
    "control_model",
    "corpus_scores",
    "count_words",
    "cpds_from_proportions",
    "delta_log_mean",
    "diagnose_weights",
    "document_tokens",
    "enough_answers",
    "entropy_nats",
    "estimate_gap",
    "estimate_perplexity",
    "expected_calibration_error",
    "expected_counts",
    "expected_score",
    "exponential_score",
    "fit_pareto_shape",
    "group_terms",
    "guess_contexts",
    "half_sample_bootstrap",
    "independent_oracles",
    "is_visible_token",
    "is_word_position",
    "is_word_token",
    "jackknife_log_mean",
    "jensen_shannon_nats",
    "kl_nats",
    "linear_score",
    "log_ratio_from_report",
    "log_terms",
    "loss_from_perplexity",
    "match_tokens",
    "nats_from_bits",
    "needed_share",
    "normalise_words",
    "notes",
    "optimal_report",
    "pareto_khat",
    "participant_accuracy",
    "permutation_baseline",
    "perplexity_from_loss",
    "plain_log_mean",
    "player_names",
    "pooled_accuracy",
    "practice_curve",
    "prior_guesses",
    "probability_at",
    "psis_log_mean",
    "rank_at",
    "ranks_among",
    "ranks_from_logits",
    "rao_blackwell_log_mean",
    "ratio_from_report",
    "rational_report",
    "reciprocal_score",
    "reference_log_probability",
    "reference_loss",
    "relative_frequencies",
    "repeated_guesses",
    "report_boxes",
    "report_from_log_ratio",
    "response_pairs",
    "response_positions",
    "round_reports",
    "rounding_scheme",
    "same_token",
    "score",
    "score_study",
    "share_correct",
    "simulate_cloze_study",
    "simulate_comparison_study",
    "simulate_reports",
    "smooth_tail",
    "study_words",
    "subsample_responses",
    "top_k_accuracy",
    "top_words",
    "total_variation",
    "true_loss",
    "tvd_between_oracles",
    "tvd_exact",
    "tvd_to_oracles",
    "tvd_with_baseline",
    "two_alternative_report",
    "validate_cloze_study",
    "validate_comparison_study",
    "validate_documents_study",
    "validate_guess_study",
    "validate_ranking_study",
    "wilson_interval",
    "with_model_answers",
    "word_rules",
]
