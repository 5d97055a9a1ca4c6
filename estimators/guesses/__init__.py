"""Top-1 guesses name the token that comes next."""

from shannon_game.estimators.documents.clusters import wilson_interval as wilson_interval
from shannon_game.estimators.guesses import examples as examples
from shannon_game.estimators.guesses.accuracy import ParticipantAccuracy as ParticipantAccuracy
from shannon_game.estimators.guesses.accuracy import PooledAccuracy as PooledAccuracy
from shannon_game.estimators.guesses.accuracy import bayesian_bootstrap_accuracy as bayesian_bootstrap_accuracy
from shannon_game.estimators.guesses.accuracy import participant_accuracy as participant_accuracy
from shannon_game.estimators.guesses.accuracy import pooled_accuracy as pooled_accuracy
from shannon_game.estimators.guesses.practice import PracticeCurve as PracticeCurve
from shannon_game.estimators.guesses.practice import practice_curve as practice_curve
from shannon_game.estimators.guesses.ranks import GuessRanks as GuessRanks
from shannon_game.estimators.guesses.ranks import guess_ranks as guess_ranks
from shannon_game.estimators.guesses.study import guess_contexts as guess_contexts
from shannon_game.estimators.guesses.study import validate_guess_study as validate_guess_study
from shannon_game.estimators.guesses.study import with_model_answers as with_model_answers
