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

NAMES = {"np": np, "bets": bets, "cloze": cloze, "comparison": comparison, "documents": documents} | {
    "guesses": guesses,
    "rankings": rankings,
    "losses": losses,
    "simulation": simulation,
    "adaptive_study": adaptive_study,
    "questions": questions,
    "rounding": rounding,
    "participants": participants,
    "stated": stated,
    "study_pool": study_pool,
    "rules": rules,
    "rng": np.random.default_rng(0),
    "study": comparison_study(),
    "bet_study": bet_study,
    "counts": cloze.count_words([0], [0], [2], n_contexts=1),
    "people": comparison.ParticipantPopulation(),
    "half": np.log([[0.5, 0.5]]),
    "table": pd.Series([0.5, 0.5]),
    "plain_log_mean": plain_log_mean,
    "expected_counts": expected_counts,
}
MISTAKES = [
    ("bets.bet_losses(bet_study(), 'gpt')", "back_off"),
    ("losses.bracket_losses({})", "losses"),
    ("bets.calibrate_stakes([1.5], [True], ['a'], [0])", "stake"),
    ("bets.estimate_bet_loss([1.0, 2.0], ['a'], [0, 1])", "participant"),
    ("simulation.expected_bet_losses(half, half, [0], [1.0], n_named=3)", "n_named"),
    ("bets.gambling_estimate([1.0], ['a'], [0], vocab_size=1)", "vocab_size"),
    ("simulation.BetSimulation(n_items=0)", "n_items"),
    ("simulation.BetSimulation(spread=float('nan'))", "spread"),
    ("cloze.answer_statistics(counts, ('mean',))", "statistic"),
    ("cloze.classwise_calibration_error(cloze.relative_frequencies(counts), [0, 1])", "gold"),
    ("cloze.criterion_share([0.5], [0.2], criterion='mean', margin=0.0)", "margin"),
    ("cloze.criterion_share([0.5], [0.2], criterion='median', margin=0.1)", "criterion"),
    ("cloze.criterion_margin('mann_whitney', 10, level=1.0)", "level"),
    ("cloze.energy_distance(counts, counts, np.ones((0, 2)))", "vectors"),
    ("cloze.expected_calibration_error([1.2], [1])", "confidence"),
    ("cloze.held_out_mixture([[0.5, 0.5], [0.0, 0.0]], ['a', 'b'])", "probability"),
    ("cloze.held_out_mixture([[0.1], [0.3]], ['a', 'a'])", "group"),
    ("cloze.needed_share([0.1, np.nan], [0.1, 0.2], [0, 1], margin=0.1, rng=rng)", "model or halves"),
    ("cloze.needed_share([0.1, 0.3], [0.1, 0.2], [0, 1], margin=0, rng=rng)", "margin"),
    ("cloze.needed_share([0.1, 0.3], [0.1], [0, 1], margin=0.1, rng=rng)", "halves: has shape"),
    ("cloze.needed_share([0.1, 0.3], [[0.1], [0.2]], [0, 1], margin=0.1, rng=rng)", "halves: has shape"),
    ("cloze.needed_share([[0.1]], [[0.1]], [0], margin=0.1, rng=rng)", "halves: has shape"),
    ("cloze.needed_share([], [], [], margin=0.1, rng=rng)", "halves: has shape"),
    ("comparison.score(0.0, -1.0)", "probability_of_truth"),
    ("cloze.normalise_words(['cat'], 'mine')", "word rules"),
    ("cloze.normalise_words([3], 'clean')", "strings"),
    ("cloze.paired_difference([1.0], [1.0, 2.0], [1], seed=1)", "before, after, group"),
    ("cloze.group_distance([0, 0], [0, 1], [0, 1], [0, 0], rng)", "second"),
    ("cloze.agreement_spread([0, 1], [0, 1], [0, 1], rng)", "participant"),
    ("cloze.random_split_halves(counts, n_splits=0, rng=rng)", "n_splits"),
    ("cloze.relative_frequencies(table)", "counts: .* should be WordCounts"),
    ("cloze.tvd_exact(cloze.relative_frequencies(counts), [-0.5])", "q_at_rows"),
    ("cloze.ClozeSimulation(n_items=0)", "n_items"),
    ("cloze.ClozeSimulation(families=('mixed',))", "family"),
    ("cloze.ClozeSimulation(exponent=(2.0, 1.0))", "exponent"),
    ("cloze.word_rules('clean', {'boundaries': 'commas'})", "boundaries"),
    ("cloze.word_rules('clean', {'lemmas': 'en'})", "lemmas"),
    ("cloze.word_rules('clean', {'drop_matching': ['(']})", "drop_matching"),
    ("questions.assumed_belief(half, exponent=0.0)", "exponent"),
    ("questions.assumed_belief(half, noise_nats=1.0)", "rng"),
    ("comparison.bias_curve([0.0], n=[1], n_repeats=1, rng=rng)", "log_term"),
    ("stated.both_orders([0.5], [1.0])", "second"),
    ("comparison.cluster_bootstrap([0.0], [1], [1], n_replicates=0, rng=rng)", "n_replicates"),
    ("comparison.half_sample_bootstrap([0.0], [1], [1], n_replicates=5, rng=rng)", "drop"),
    ("comparison.estimate_gap([0.0], [1], estimator='naive')", "target_logprob"),
    ("comparison.estimate_gap([np.nan], [1])", "log_term"),
    ("comparison.estimate_gap([0.0, 1.0], [1])", "item"),
    ("comparison.estimate_perplexity(study, 'gpt5')", "player"),
    ("comparison.estimate_perplexity(study, generator='lm-weak')", "generator"),
    ("comparison.estimate_perplexity(study, n_se=-1)", "n_se"),
    ("comparison.estimate_perplexity(study.isel(response=slice(0)))", "no response"),
    ("questions.known_contexts(half, np.log([[0.5, 0.3, 0.2]]), [0])", "belief_logprob"),
    ("questions.known_contexts(half, half, [2])", "target"),
    ("rounding.log_odds_scale('own', 1.0)", "odds"),
    ("comparison.log_ratio_from_report([0.5, 1.0])", "report"),
    ("comparison.private_belief(study, slope=0.0)", "slope"),
    ("comparison.private_belief(study)", "participant"),
    ("comparison.round_reports([0.5], 'nearst')", "rounding"),
    ("comparison.score([1.5], -1.0)", "probability_of_truth"),
    ("comparison.subsample_responses(study, 0, rng)", "n: is 0"),
    ("study_pool(study)", "no free answers"),
    ("comparison.token_pool(item=[1], offset_nats=[0], is_target=[True], n_drawn=[1])", "item"),
    ("comparison.token_pool(item=[0], offset_nats=[np.inf], is_target=[True], n_drawn=[1])", "offset_nats"),
    ("comparison.RoundingScheme('own', (0.5, 0.2))", "values"),
    ("comparison.RoundingScheme('own', (0.2, 0.5), tie='random')", "tie"),
    ("comparison.RoundingScheme('own', (0.2, 0.5), positions=(0.1,))", "positions"),
    ("comparison.ParticipantPopulation(lapse_mean=1.5)", "lapse_mean"),
    ("comparison.ParticipantPopulation(lapses=0)", "lapses"),
    ("comparison.QuestionDesign(n_comparisons=3, n_comparisons_each=2)", "n_comparisons_each"),
    ("comparison.QuestionDesign(n_answers=40)", "n_answers"),
    ("adaptive_study.QuestionPlan(width_nats=0.0)", "width_nats"),
    ("adaptive_study.QuestionPlan(rule='best')", "rule"),
    ("comparison.SimulationSettings(n_items=1.5)", "n_items"),
    ("comparison.SimulationSettings(excess_nats={'14M': 1.0})", "excess_nats"),
    ("participants.simulate_reports([0.0], rng=rng, slope=0.0)", "slope"),
    ("comparison.simulate_designed_study(half, half, [2], comparison.QuestionDesign(), people, seed=0)", "target"),
    (
        "comparison.simulate_designed_study(half + 1, half, [0], comparison.QuestionDesign(), people, seed=0)",
        "generator",
    ),
    ("plain_log_mean(table)", "terms: .* should be ItemTerms"),
    ("expected_counts([-1.0, -1.0], 1)", "logprob"),
    ("documents.clustered_regression([1.0, 3, 5], {'x': [0.0, 0, 0]}, [0, 0, 1])", "x"),
    ("documents.crossed_mean([1.0, np.inf], ['a', 'b'], [0, 1])", "values"),
    ("rules.rules_texts(2, n_noise=[0], n_rules=7, n_steps=2)", "n_rules"),
    ("guesses.pooled_accuracy([2.0], ['a'], ['x'], rng=rng)", "correct"),
    ("guesses.practice_curve([1], ['a'], [0], starts=[1, 2], rng=rng)", "starts"),
    ("guesses.wilson_interval(6, 5)", "n_hits"),
    ("guesses.wilson_interval(1, 2, probability=1)", "probability"),
    ("rankings.guess_bounds([1, 1.5], item=[0, 1])", "rank"),
    ("rankings.guess_bounds([1, np.inf], item=[0, 1])", "n_tried"),
    ("rankings.linear_score([0.0], 3)", "rank"),
    ("rankings.linear_score([1.0], True)", "k: is True"),
    ("rankings.match_tokens(['a', 'b'], [['a']])", "ranked"),
    ("rankings.paired_separation([0.5, 0.7], [0.5, np.nan])", "second"),
    ("rankings.ranks_among([[True]], tie='best')", "logprob"),
]


@pytest.mark.parametrize(("call", "named"), MISTAKES)
def test_a_mistake_is_refused_and_named(call: str, named: str) -> None:
    with pytest.raises(InputError, match=named):
        eval(call, dict(NAMES))
