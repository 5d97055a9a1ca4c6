"""The recalibration model against loops over answers, and wrong input. No fits here."""

from __future__ import annotations

import math

import numpy as np
import pytest

from shannon_game.estimators import bets
from shannon_game.estimators.bets.examples import bet_study
from shannon_game.estimators.bets.losses import model_losses
from shannon_game.estimators.bets.simulation import BetSimulation, simulate_bet_study
from shannon_game.estimators.errors import InputError
from shannon_game.inference.bets.recalibration import recalibrated_losses
from shannon_game.inference.examples import stand_in_posterior
from shannon_game.inference.posterior.arviz_adapter import group
from shannon_game.inference.posterior.predictive import log_likelihood
from shannon_game.models.bets.recalibration import recalibration_model
from shannon_game.models.bets.recalibration_data import RecalibrationData, recalibration_data
from tests.oracles import bets as reference

SMALL = BetSimulation(n_items=6, n_participants=3, n_answers=5, n_named=3, vocab_size=20)


def rows_at(data: RecalibrationData, exponent: float, share: float) -> np.ndarray:
    """Log-likelihoods where everybody has one exponent and one share of the back-off."""
    rows = log_likelihood(recalibration_model(data))
    none = np.zeros(data.participant.size)
    point = {"exponent_mean": math.log(exponent), "exponent_spread": 1.0, "exponent_unit": none}
    point |= {"mixing_mean": math.log(share / (1 - share)), "mixing_spread": 1.0, "mixing_unit": none}
    return rows.at({name: np.asarray(point[name]) for name in rows.inputs})["came"]


@pytest.mark.parametrize(("back_off", "mix"), [("generator", "back_off"), ("uniform", "back_off"), ("text", "cells")])
def test_the_likelihood_is_that_of_single_answers(back_off: str, mix: str) -> None:
    study = simulate_bet_study(SMALL, np.random.default_rng(1))
    data = recalibration_data(study, back_off, mix=mix, vocab_size=20)
    np.testing.assert_allclose(data.mixed.sum(axis=1), 1)
    for exponent, share in ((0.6, 0.2), (2.0, 0.01)):
        expected = [
            math.log(reference.recalibrated(stake, other, exponent, share)[came])
            for stake, other, came in zip(data.stake.tolist(), data.mixed.tolist(), data.came.tolist(), strict=True)
        ]
        np.testing.assert_allclose(rows_at(data, exponent, share), expected, rtol=1e-9)


def test_stakes_as_they_are_cost_what_they_cost() -> None:
    study = simulate_bet_study(SMALL, np.random.default_rng(2))
    data = recalibration_data(study, mix="back_off")
    np.testing.assert_allclose(data.spread_nats - rows_at(data, 1, 1e-12), bets.bet_losses(study), rtol=1e-9)
    # and all of the back-off is its own loss
    np.testing.assert_allclose(data.spread_nats - rows_at(data, 1, 1 - 1e-12), model_losses(study), rtol=1e-6)


def test_zero_stakes_have_a_finite_loss_and_gradient() -> None:
    import pymc as pm

    study = bet_study().copy(deep=True)
    study["other_stake"].values[1] = 0
    study["bet_stake"].values[2:4] = [0.75, 0.25]
    data = recalibration_data(study)
    assert np.isposinf(bets.bet_losses(study)[1])
    assert np.isfinite(rows_at(data, 0.7, 0.05)).all()
    model = recalibration_model(data)
    assert all(
        np.isfinite(each).all()
        for each in np.atleast_1d(model.compile_dlogp(mode="FAST_COMPILE")(model.initial_point()))
    )
    assert pm.draw(model["came"], 50, random_seed=1, mode="FAST_COMPILE").max() <= 2


def test_losses_by_draw_are_those_of_the_model() -> None:
    data = recalibration_data(simulate_bet_study(SMALL, np.random.default_rng(3)))
    model = recalibration_model(data)
    posterior = group(stand_in_posterior(model), "posterior")
    rows = log_likelihood(model).of_draws(posterior)["came"]
    np.testing.assert_allclose(recalibrated_losses(posterior, data), data.spread_nats - rows.reshape(16, -1), rtol=1e-9)
    with pytest.raises(InputError, match="participant: are not those of the data"):
        recalibrated_losses(posterior.assign_coords(participant=["a", "b", "c"]), data)


def test_answers_without_a_back_off_are_left_out_and_counted() -> None:
    study = bet_study().copy(deep=True)
    study["bet_logprob"].values[0, 4] = np.nan
    # its target was named, so that the back-off is needed only where it is mixed in
    assert recalibration_data(study).n_unasked == 0
    data = recalibration_data(study, mix="back_off")
    assert (data.n_unasked, data.response.tolist()) == (1, [0, 1, 3, 4, 5])
    assert data.came.tolist() == [1, 0, 0, 2, 0]
