"""Bets: people stake shares on words that they name and on anything else, and lose -ln of what lay on the true one."""

from shannon_game.estimators.bets import examples as examples
from shannon_game.estimators.bets.calibration import StakeCalibration as StakeCalibration
from shannon_game.estimators.bets.calibration import calibrate_stakes as calibrate_stakes
from shannon_game.estimators.bets.gambling import GamblingEstimate as GamblingEstimate
from shannon_game.estimators.bets.gambling import gambling_estimate as gambling_estimate
from shannon_game.estimators.bets.losses import BetLoss as BetLoss
from shannon_game.estimators.bets.losses import bet_losses as bet_losses
from shannon_game.estimators.bets.losses import estimate_bet_loss as estimate_bet_loss
from shannon_game.estimators.bets.study import validate_bet_study as validate_bet_study
