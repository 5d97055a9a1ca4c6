"""Top-1 guesses name the token that comes next."""

from shannon_game.estimators.documents.tokens import is_visible_token
from shannon_game.estimators.guesses.accuracy import (
    ParticipantAccuracy,
    PooledAccuracy,
    bayesian_bootstrap_accuracy,
    enough_answers,
    participant_accuracy,
    pooled_accuracy,
    wilson_interval,
)
from shannon_game.estimators.guesses.practice import PracticeCurve, practice_curve
from shannon_game.estimators.guesses.ranks import GuessRanks, guess_ranks
from shannon_game.estimators.guesses.study import (
    guess_contexts,
    is_word_position,
    prior_guesses,
    repeated_guesses,
    validate_guess_study,
    with_model_answers,
)
from shannon_game.estimators.guesses.tables import guess_items

__all__ = [
    "GuessRanks",
    "ParticipantAccuracy",
    "PooledAccuracy",
    "PracticeCurve",
    "bayesian_bootstrap_accuracy",
    "enough_answers",
    "guess_contexts",
    "guess_items",
    "guess_ranks",
    "is_visible_token",
    "is_word_position",
    "participant_accuracy",
    "pooled_accuracy",
    "practice_curve",
    "prior_guesses",
    "repeated_guesses",
    "validate_guess_study",
    "wilson_interval",
    "with_model_answers",
]
