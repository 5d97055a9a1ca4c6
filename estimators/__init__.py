"""Numbers from arrays: the estimators of human and model next-word prediction.

What lives here: reports and likelihood ratios, rounding, the game's score, importance-sampling estimators of the
loss gap and perplexity with their diagnostics, resampling, the comparison study's validator, and a simulator with
known truth. NumPy inside, ``xarray.Dataset`` at the door.

What does not: files, downloads, plots, samplers, language models. Nothing here imports another package of this
project, and importing it pulls in neither xarray nor pandas.
"""

from estimators.bootstrap import BootstrapGap, bias_curve, cluster_bootstrap, half_sample_bootstrap
from estimators.comparison import HUMAN, is_word_token, response_positions, same_token, validate_comparison_study
from estimators.diagnostics import WeightDiagnostics, fit_pareto_shape, pareto_khat, smooth_tail
from estimators.errors import InputError
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
from estimators.simulation import (
    ParticipantPopulation,
    SimulationSettings,
    simulate_comparison_study,
    simulate_reports,
)
from estimators.study_notes import add_note, notes
from estimators.units import bits_from_nats, loss_from_perplexity, nats_from_bits, perplexity_from_loss

__all__ = [
    "ESTIMATORS",
    "HUMAN",
    "SCHEMES",
    "ApproximatePerplexity",
    "BootstrapGap",
    "InputError",
    "ItemTerms",
    "LogMeans",
    "LossGap",
    "ParticipantPopulation",
    "PerplexityEstimate",
    "ResponsePairs",
    "RoundingScheme",
    "SimulationSettings",
    "TokenScores",
    "WeightDiagnostics",
    "add_note",
    "approximate_perplexity",
    "average_score",
    "bias_curve",
    "bits_from_nats",
    "candidate_log_terms",
    "cluster_bootstrap",
    "conditioned_on_other_text",
    "control_model",
    "delta_log_mean",
    "diagnose_weights",
    "estimate_gap",
    "estimate_perplexity",
    "expected_counts",
    "expected_score",
    "exponential_score",
    "fit_pareto_shape",
    "group_terms",
    "half_sample_bootstrap",
    "is_word_token",
    "jackknife_log_mean",
    "linear_score",
    "log_ratio_from_report",
    "log_terms",
    "loss_from_perplexity",
    "match_tokens",
    "nats_from_bits",
    "notes",
    "optimal_report",
    "pareto_khat",
    "perplexity_from_loss",
    "plain_log_mean",
    "player_names",
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
    "report_boxes",
    "report_from_log_ratio",
    "response_pairs",
    "response_positions",
    "round_reports",
    "rounding_scheme",
    "same_token",
    "score",
    "score_study",
    "simulate_comparison_study",
    "simulate_reports",
    "smooth_tail",
    "subsample_responses",
    "top_k_accuracy",
    "true_loss",
    "two_alternative_report",
    "validate_comparison_study",
    "validate_ranking_study",
]
