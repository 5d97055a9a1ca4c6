"""Small simulated studies, for the examples of the documentation and for a first try of a model."""

from __future__ import annotations

from functools import cache

import numpy as np

from shannon_game.estimators.arrays import Dataset
from shannon_game.estimators.comparison.planning.questions import known_contexts, simulate_questions
from shannon_game.estimators.comparison.simulation.designed_study import simulate_designed_study
from shannon_game.estimators.comparison.simulation.language import draw_tokens, simulate_language
from shannon_game.estimators.comparison.simulation.settings import (
    ParticipantPopulation,
    QuestionDesign,
    SimulationSettings,
)
from shannon_game.estimators.comparison.simulation.study import simulate_comparison_study
from shannon_game.estimators.comparison.token_pool import TokenPool
from shannon_game.estimators.layout import HUMAN


@cache
def comparison_study() -> Dataset:
    """Comparison study of 6 items and 5 participants."""
    settings = SimulationSettings(
        n_items=6, n_reference_items=8, n_participants=5, n_candidates=12, vocab_size=60, rounding="interface"
    )
    return simulate_comparison_study(settings)


@cache
def designed_study() -> Dataset:
    """Comparison study of 8 items with 4 draws, 6 free answers and 12 comparisons each, on a slider."""
    language = simulate_language(SimulationSettings(n_items=8, n_reference_items=8, vocab_size=300))
    target = draw_tokens(language.true_logprob, 1, np.random.default_rng(0))[:, 0]
    return simulate_designed_study(
        language.player_logprob["lm-medium"],
        language.player_logprob[HUMAN],
        target,
        QuestionDesign(n_draws=4, n_answers=6, n_comparisons=12, n_participants=18, scale="slider"),
        ParticipantPopulation(),
        seed=0,
        tokens=language.vocabulary.tolist(),
    )


def repeated_study() -> Dataset:
    """Simulate a study in which everybody compares two tokens of an item, one after the other."""
    language = simulate_language(SimulationSettings(n_items=40, n_reference_items=40, vocab_size=300))
    return simulate_designed_study(
        language.player_logprob["lm-medium"],
        language.player_logprob[HUMAN],
        draw_tokens(language.true_logprob, 1, np.random.default_rng(0))[:, 0],
        QuestionDesign(n_draws=8, n_answers=4, n_comparisons=12, n_comparisons_each=2, n_participants=20),
        ParticipantPopulation(),
        private_sd_nats=1.0,
        seed=0,
    )


def token_pool_example() -> TokenPool:
    """Draws, answers and reports of eight people on four items of three tokens."""
    known = known_contexts(np.log([[0.5, 0.3, 0.2]] * 4), np.log([[0.6, 0.2, 0.2]] * 4), [0, 1, 2, 0])
    return simulate_questions(
        known,
        np.arange(4),
        ParticipantPopulation(),
        n_people=8,
        n_draws=6,
        n_answers=6,
        n_comparisons=4,
        rng=np.random.default_rng(0),
    )
