"""Arguments that are refused: one mistake a line, and the argument that the message names."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from shannon_game.estimators import bets, cloze, comparison, documents, guesses, rankings
from shannon_game.estimators.bets import losses, simulation
from shannon_game.estimators.bets.examples import bet_study
from shannon_game.estimators.comparison import rounding, stated
from shannon_game.estimators.comparison.examples import comparison_study
from shannon_game.estimators.comparison.log_means import expected_counts, plain_log_mean
from shannon_game.estimators.comparison.planning import adaptive_study, questions
from shannon_game.estimators.comparison.simulation import participants
from shannon_game.estimators.comparison.token_pool import study_pool
from shannon_game.estimators.documents import rules
from shannon_game.estimators.errors import InputError

CALLED = (
    *(bets, cloze, comparison, documents, guesses, rankings, losses, simulation, adaptive_study, questions, rounding),
    *(participants, stated, rules, study_pool, bet_study, plain_log_mean, expected_counts),
)
NAMES = {what.__name__.rpartition(".")[2]: what for what in CALLED} | {
    "np": np,
    "rng": np.random.default_rng(0),
    "study": comparison_study(),
    "counts": cloze.count_words([0], [0], [2], n_contexts=1),
    "people": comparison.ParticipantPopulation(),
    "half": np.log([[0.5, 0.5]]),
    "table": pd.Series([0.5, 0.5]),
}
MISTAKES = [
    ("bets.bet_losses(bet_study(), 'gpt')", "back_off"),
    ("losses.bracket_losses({})", "losses"),
    ("bets.calibrate_stakes([1.5], [True], ['a'], [0])", "stake"),
    ("simulation.expected_bet_losses(half, half, [0], [1.0], n_named=3)", "n_named"),
    ("bets.gambling_estimate([1.0], ['a'], [0], vocab_size=1)", "vocab_size"),
    ("simulation.BetSimulation(n_items=0)", "n_items"),
    ("cloze.answer_statistics(counts, ('mean',))", "statistic"),
    ("cloze.classwise_calibration_error(cloze.relative_frequencies(counts), [0, 1])", "gold"),
    ("cloze.criterion_share([0.5], [0.2], criterion='mean', margin=0.0)", "margin"),
    ("cloze.energy_distance(counts, counts, np.ones((0, 2)))", "vectors"),
    ("cloze.expected_calibration_error([1.2], [1])", "confidence"),
    ("cloze.held_out_mixture([[0.5, 0.5], [0.0, 0.0]], ['a', 'b'])", "probability"),
    ("cloze.needed_share([0.1, np.nan], [0.1, 0.2], [0, 1], margin=0.1, rng=rng)", "model or halves"),
    ("cloze.needed_share([0.1, 0.3], [0.1, 0.2], [0, 1], margin=0, rng=rng)", "margin"),
    ("cloze.normalise_words(['cat'], 'mine')", "word rules"),
    ("cloze.group_distance([0, 0], [0, 1], [0, 1], [0, 0], rng)", "second"),
    ("cloze.agreement_spread([0, 1], [0, 1], [0, 1], rng)", "participant"),
    ("cloze.random_split_halves(counts, n_splits=0, rng=rng)", "n_splits"),
    ("cloze.relative_frequencies(table)", "counts: .* should be WordCounts"),
    ("cloze.ClozeSimulation(n_items=0)", "n_items"),
    ("cloze.word_rules('clean', {'boundaries': 'commas'})", "boundaries"),
    ("cloze.word_rules('clean', {'drop_matching': ['(']})", "drop_matching"),
    ("questions.assumed_belief(half, exponent=0.0)", "exponent"),
    ("stated.both_orders([0.5], [1.0])", "second"),
    ("comparison.cluster_bootstrap([0.0], [1], [1], n_replicates=0, rng=rng)", "n_replicates"),
    ("comparison.half_sample_bootstrap([0.0], [1], [1], n_replicates=5, rng=rng)", "drop"),
    ("comparison.estimate_gap([0.0], [1], estimator='naive')", "target_logprob"),
    ("comparison.estimate_gap([np.nan], [1])", "log_term"),
    ("comparison.estimate_perplexity(study, 'gpt5')", "player"),
    ("comparison.estimate_perplexity(study.isel(response=slice(0)))", "no response"),
    ("questions.known_contexts(half, np.log([[0.5, 0.3, 0.2]]), [0])", "belief_logprob"),
    ("rounding.log_odds_scale('own', 1.0)", "odds"),
    ("comparison.log_ratio_from_report([0.5, 1.0])", "report"),
    ("comparison.private_belief(study)", "participant"),
    ("comparison.score([1.5], -1.0)", "probability_of_truth"),
    ("comparison.subsample_responses(study, 0, rng)", "n: is 0"),
    ("study_pool(study)", "no free answers"),
    ("comparison.token_pool(item=[1], offset_nats=[0], is_target=[True], n_drawn=[1])", "item"),
    ("comparison.RoundingScheme('own', (0.5, 0.2))", "values"),
    ("comparison.ParticipantPopulation(lapse_mean=1.5)", "lapse_mean"),
    ("comparison.QuestionDesign(n_comparisons=3, n_comparisons_each=2)", "n_comparisons_each"),
    ("adaptive_study.QuestionPlan(width_nats=0.0)", "width_nats"),
    ("comparison.SimulationSettings(n_items=1.5)", "n_items"),
    ("participants.simulate_reports([0.0], rng=rng, slope=0.0)", "slope"),
    ("comparison.simulate_designed_study(half, half, [2], comparison.QuestionDesign(), people, seed=0)", "target"),
    ("plain_log_mean(table)", "terms: .* should be ItemTerms"),
    ("expected_counts([-1.0, -1.0], 1)", "logprob"),
    ("documents.clustered_regression([1.0, 3, 5], {'x': [0.0, 0, 0]}, [0, 0, 1])", "x"),
    ("rules.rules_texts(2, n_noise=[0], n_rules=7, n_steps=2)", "n_rules"),
    ("guesses.pooled_accuracy([2.0], ['a'], ['x'], rng=rng)", "correct"),
    ("guesses.practice_curve([1], ['a'], [0], starts=[1, 2], rng=rng)", "starts"),
    ("guesses.wilson_interval(6, 5)", "n_hits"),
    ("rankings.guess_bounds([1, 1.5], item=[0, 1])", "rank"),
    ("rankings.linear_score([0.0], 3)", "rank"),
    ("rankings.match_tokens(['a', 'b'], [['a']])", "ranked"),
    ("rankings.ranks_among([[True]], tie='best')", "logprob"),
]


@pytest.mark.parametrize(("call", "named"), MISTAKES)
def test_a_mistake_is_refused_and_named(call: str, named: str) -> None:
    with pytest.raises(InputError, match=named):
        eval(call, dict(NAMES))
