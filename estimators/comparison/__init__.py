"""Comparison studies ask which of two tokens comes next, and how sure people are."""

from shannon_game.estimators.comparison.bootstrap import (
    BootstrapGap,
    bias_curve,
    cluster_bootstrap,
    half_sample_bootstrap,
)
from shannon_game.estimators.comparison.diagnostics import WeightDiagnostics
from shannon_game.estimators.comparison.gap import ESTIMATORS, LossGap, diagnose_weights, estimate_gap
from shannon_game.estimators.comparison.importance import drawn_response_mask
from shannon_game.estimators.comparison.item_terms import ItemTerms, group_terms
from shannon_game.estimators.comparison.log_means import LogMeans
from shannon_game.estimators.comparison.perplexity import (
    PerplexityEstimate,
    estimate_perplexity,
    reference_loss,
    true_loss,
)
from shannon_game.estimators.comparison.planning.adaptive import (
    FREE_ANSWER,
    QuestionState,
    next_question,
    question_state,
)
from shannon_game.estimators.comparison.planning.adaptive_study import AdaptiveStudy, QuestionPlan, simulate_adaptive
from shannon_game.estimators.comparison.planning.questions import (
    KnownContexts,
    assumed_belief,
    known_contexts,
    simulate_questions,
)
from shannon_game.estimators.comparison.private_belief import PrivateBelief, private_belief
from shannon_game.estimators.comparison.reports import (
    log_ratio_from_report,
    report_from_log_ratio,
    two_alternative_report,
)
from shannon_game.estimators.comparison.rounding import (
    SCHEMES,
    RoundingScheme,
    log_odds_scale,
    report_boxes,
    round_reports,
    rounding_scheme,
)
from shannon_game.estimators.comparison.scaled_bridge import ScaledBridge, scaled_bridge
from shannon_game.estimators.comparison.score import expected_score, optimal_report, rational_report, score
from shannon_game.estimators.comparison.simulation.designed_study import simulate_designed_study
from shannon_game.estimators.comparison.simulation.participants import simulate_reports
from shannon_game.estimators.comparison.simulation.settings import (
    ParticipantPopulation,
    QuestionDesign,
    SimulationSettings,
)
from shannon_game.estimators.comparison.simulation.study import simulate_comparison_study
from shannon_game.estimators.comparison.stated import StatedBelief, both_orders, stated_belief
from shannon_game.estimators.comparison.study import candidate_tokens, same_token, validate_comparison_study
from shannon_game.estimators.comparison.study_sources import SOURCES, candidate_sources, has_free_answers
from shannon_game.estimators.comparison.tables import comparison_items, comparison_participants
from shannon_game.estimators.comparison.terms import (
    ResponsePairs,
    candidate_log_terms,
    control_model,
    log_terms,
    player_names,
    response_pairs,
    subsample_responses,
)
from shannon_game.estimators.comparison.token_pool import TokenPool, study_pool, token_pool
from shannon_game.estimators.documents.tokens import is_word_token
from shannon_game.estimators.layout import HUMAN, response_positions

__all__ = [
    "ESTIMATORS",
    "FREE_ANSWER",
    "HUMAN",
    "SCHEMES",
    "SOURCES",
    "AdaptiveStudy",
    "BootstrapGap",
    "ItemTerms",
    "KnownContexts",
    "LogMeans",
    "LossGap",
    "ParticipantPopulation",
    "PerplexityEstimate",
    "PrivateBelief",
    "QuestionDesign",
    "QuestionPlan",
    "QuestionState",
    "ResponsePairs",
    "RoundingScheme",
    "ScaledBridge",
    "SimulationSettings",
    "StatedBelief",
    "TokenPool",
    "WeightDiagnostics",
    "assumed_belief",
    "bias_curve",
    "both_orders",
    "candidate_log_terms",
    "candidate_sources",
    "candidate_tokens",
    "cluster_bootstrap",
    "comparison_items",
    "comparison_participants",
    "control_model",
    "diagnose_weights",
    "drawn_response_mask",
    "estimate_gap",
    "estimate_perplexity",
    "expected_score",
    "group_terms",
    "half_sample_bootstrap",
    "has_free_answers",
    "is_word_token",
    "known_contexts",
    "log_odds_scale",
    "log_ratio_from_report",
    "log_terms",
    "next_question",
    "optimal_report",
    "player_names",
    "private_belief",
    "question_state",
    "rational_report",
    "reference_loss",
    "report_boxes",
    "report_from_log_ratio",
    "response_pairs",
    "response_positions",
    "round_reports",
    "rounding_scheme",
    "same_token",
    "scaled_bridge",
    "score",
    "simulate_adaptive",
    "simulate_comparison_study",
    "simulate_designed_study",
    "simulate_questions",
    "simulate_reports",
    "stated_belief",
    "study_pool",
    "subsample_responses",
    "token_pool",
    "true_loss",
    "two_alternative_report",
    "validate_comparison_study",
]
