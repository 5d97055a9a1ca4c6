"""Bets: people stake shares on words that they name and on anything else, and lose -ln of what lay on the true one."""

from shannon_game.estimators.bets import examples as examples
from shannon_game.estimators.bets.calibration import StakeCalibration as StakeCalibration
from shannon_game.estimators.bets.calibration import calibrate_stakes as calibrate_stakes
from shannon_game.estimators.bets.calibration import stakes_and_outcomes as stakes_and_outcomes
from shannon_game.estimators.bets.gambling import GamblingEstimate as GamblingEstimate
from shannon_game.estimators.bets.gambling import gambling_estimate as gambling_estimate
from shannon_game.estimators.bets.losses import BetLoss as BetLoss
from shannon_game.estimators.bets.losses import LossBracket as LossBracket
from shannon_game.estimators.bets.losses import bet_losses as bet_losses
from shannon_game.estimators.bets.losses import bracket_losses as bracket_losses
from shannon_game.estimators.bets.losses import estimate_bet_loss as estimate_bet_loss
from shannon_game.estimators.bets.losses import model_losses as model_losses
from shannon_game.estimators.bets.losses import outcome_stakes as outcome_stakes
from shannon_game.estimators.bets.losses import spread_nats as spread_nats
from shannon_game.estimators.bets.losses import stake_ranks as stake_ranks
from shannon_game.estimators.bets.simulation import BetSimulation as BetSimulation
from shannon_game.estimators.bets.simulation import expected_bet_losses as expected_bet_losses
from shannon_game.estimators.bets.simulation import simulate_bet_study as simulate_bet_study
from shannon_game.estimators.bets.study import validate_bet_study as validate_bet_study
from shannon_game.estimators.bets.tables import bet_items as bet_items
from shannon_game.estimators.bets.tables import bet_participants as bet_participants
