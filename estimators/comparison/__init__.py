"""Comparison studies ask which of two tokens comes next, and how sure people are."""

from shannon_game.estimators.comparison import examples as examples
from shannon_game.estimators.comparison.bootstrap import BootstrapGap as BootstrapGap
from shannon_game.estimators.comparison.bootstrap import bias_curve as bias_curve
from shannon_game.estimators.comparison.bootstrap import cluster_bootstrap as cluster_bootstrap
from shannon_game.estimators.comparison.bootstrap import half_sample_bootstrap as half_sample_bootstrap
from shannon_game.estimators.comparison.diagnostics import WeightDiagnostics as WeightDiagnostics
from shannon_game.estimators.comparison.gap import ESTIMATORS as ESTIMATORS
from shannon_game.estimators.comparison.gap import LossGap as LossGap
from shannon_game.estimators.comparison.gap import diagnose_weights as diagnose_weights
from shannon_game.estimators.comparison.gap import estimate_gap as estimate_gap
from shannon_game.estimators.comparison.item_terms import ItemTerms as ItemTerms
from shannon_game.estimators.comparison.item_terms import group_terms as group_terms
from shannon_game.estimators.comparison.log_means import LogMeans as LogMeans
from shannon_game.estimators.comparison.perplexity import PerplexityEstimate as PerplexityEstimate
from shannon_game.estimators.comparison.perplexity import estimate_perplexity as estimate_perplexity
from shannon_game.estimators.comparison.planning.adaptive import FREE_ANSWER as FREE_ANSWER
from shannon_game.estimators.comparison.planning.adaptive import next_question as next_question
from shannon_game.estimators.comparison.planning.adaptive import question_state as question_state
from shannon_game.estimators.comparison.private_belief import PrivateBelief as PrivateBelief
from shannon_game.estimators.comparison.private_belief import private_belief as private_belief
from shannon_game.estimators.comparison.reports import log_ratio_from_report as log_ratio_from_report
from shannon_game.estimators.comparison.reports import report_from_log_ratio as report_from_log_ratio
from shannon_game.estimators.comparison.reports import two_alternative_report as two_alternative_report
from shannon_game.estimators.comparison.rounding import SCHEMES as SCHEMES
from shannon_game.estimators.comparison.rounding import RoundingScheme as RoundingScheme
from shannon_game.estimators.comparison.rounding import round_reports as round_reports
from shannon_game.estimators.comparison.rounding import rounding_scheme as rounding_scheme
from shannon_game.estimators.comparison.scaled_bridge import ScaledBridge as ScaledBridge
from shannon_game.estimators.comparison.scaled_bridge import scaled_bridge as scaled_bridge
from shannon_game.estimators.comparison.score import expected_score as expected_score
from shannon_game.estimators.comparison.score import optimal_report as optimal_report
from shannon_game.estimators.comparison.score import rational_report as rational_report
from shannon_game.estimators.comparison.score import score as score
from shannon_game.estimators.comparison.simulation.designed_study import (
    simulate_designed_study as simulate_designed_study,
)
from shannon_game.estimators.comparison.simulation.settings import ParticipantPopulation as ParticipantPopulation
from shannon_game.estimators.comparison.simulation.settings import QuestionDesign as QuestionDesign
from shannon_game.estimators.comparison.simulation.settings import SimulationSettings as SimulationSettings
from shannon_game.estimators.comparison.simulation.study import simulate_comparison_study as simulate_comparison_study
from shannon_game.estimators.comparison.study import validate_comparison_study as validate_comparison_study
from shannon_game.estimators.comparison.study import validate_forecast_study as validate_forecast_study
from shannon_game.estimators.comparison.study_sources import SOURCES as SOURCES
from shannon_game.estimators.comparison.tables import comparison_items as comparison_items
from shannon_game.estimators.comparison.tables import comparison_participants as comparison_participants
from shannon_game.estimators.comparison.terms import subsample_responses as subsample_responses
from shannon_game.estimators.comparison.token_pool import TokenPool as TokenPool
from shannon_game.estimators.comparison.token_pool import token_pool as token_pool
from shannon_game.estimators.layout import HUMAN as HUMAN
