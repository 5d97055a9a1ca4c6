"""Bets: people stake shares on words that they name and on anything else, and lose -ln of what lay on the true one."""

from shannon_game.estimators.bets.calibration import StakeCalibration, calibrate_stakes, stakes_and_outcomes
from shannon_game.estimators.bets.gambling import GamblingEstimate, gambling_estimate
from shannon_game.estimators.bets.loss import BetLoss, LossBracket, bracket_losses, estimate_bet_loss
from shannon_game.estimators.bets.losses import bet_losses, model_losses, outcome_stakes, spread_nats, stake_ranks
from shannon_game.estimators.bets.simulation import BetSimulation, expected_bet_losses, simulate_bet_study
from shannon_game.estimators.bets.study import validate_bet_study
from shannon_game.estimators.bets.tables import bet_items, bet_participants

__all__ = [
    "BetLoss",
    "BetSimulation",
    "GamblingEstimate",
    "LossBracket",
    "StakeCalibration",
    "bet_items",
    "bet_losses",
    "bet_participants",
    "bracket_losses",
    "calibrate_stakes",
    "estimate_bet_loss",
    "expected_bet_losses",
    "gambling_estimate",
    "model_losses",
    "outcome_stakes",
    "simulate_bet_study",
    "spread_nats",
    "stake_ranks",
    "stakes_and_outcomes",
    "validate_bet_study",
]
