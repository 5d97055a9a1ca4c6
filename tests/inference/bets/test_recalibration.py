"""Recalibration of bets: recovery of known exponents, held-out losses, calibration of the posterior."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from shannon_game.estimators import bets
from shannon_game.estimators.bets.examples import bet_study
from shannon_game.estimators.bets.simulation import BetSimulation, simulate_bet_study
from shannon_game.estimators.errors import InputError
from shannon_game.inference.bets.recalibration import held_out_losses, recalibrated_losses
from shannon_game.inference.bets.sbc import recalibration_sbc, small_recalibration_design
from shannon_game.inference.examples import stand_in_posterior
from shannon_game.inference.posterior.arviz_adapter import group
from shannon_game.inference.posterior.predictive import complete
from shannon_game.inference.posterior.sampling import sample
from shannon_game.inference.posterior.sbc import JOINT_LOG_LIKELIHOOD, run_sbc
from shannon_game.inference.posterior.sbc_bands import judge_ranks
from shannon_game.models.bets.recalibration import recalibration_model
from shannon_game.models.bets.recalibration_data import recalibration_data


def test_held_out_losses_are_those_of_the_groups() -> None:
    data = recalibration_data(bet_study())
    model = recalibration_model(data)
    idata = complete(stand_in_posterior(model, n_draws=20), model, seed=1, n_prior=8, n_predictive=8)
    found = held_out_losses(idata, data)
    rows = group(idata, "log_likelihood")["came"].to_numpy().reshape(40, -1)
    # never below the loss with the answer seen: leaving it out cannot help it
    assert (found.loss_nats >= data.spread_nats - np.log(np.exp(rows).mean(axis=0)) - 1e-6).all()
    other = recalibration_data(simulate_bet_study(BetSimulation(), np.random.default_rng(0)))
    with pytest.raises(InputError, match="answer: are not those of the data"):
        held_out_losses(idata, other)


@pytest.mark.mcmc
def test_known_exponents_are_recovered(seed_offset: int) -> None:
    """20 people with stakes bolder by 1.4 in the median: their exponents are 1 / sharpness, but for whole chips.

    The 90% intervals of 20 participants hold the truth in 14 or more but once in 500 seeds.
    """
    sizes = BetSimulation(n_chips=1000, participant_noise=0, n_items=400, n_answers=50)
    study = simulate_bet_study(sizes, np.random.default_rng(seed_offset))
    data = recalibration_data(study, "uniform", vocab_size=500)
    model = recalibration_model(data)
    drawn = sample(model, sampler="pymc", draws=200, tune=200, chains=2, cores=1, seed=1 + seed_offset)
    idata = complete(drawn, model, seed=1, n_prior=10, n_predictive=10)
    posterior = group(idata, "posterior")
    truth = -np.log(study["sharpness"].to_numpy())
    low, high = np.quantile(posterior["log_exponent"].to_numpy().reshape(-1, 20), [0.05, 0.95], axis=0)
    assert ((low < truth) & (truth < high)).sum() >= 14
    mean = float(posterior["exponent_mean"].mean())
    assert mean == pytest.approx(truth.mean(), abs=0.25)
    # too bold stakes cost less when they are recalibrated, held out too, and it flatters to see the answers
    raw = bets.bet_losses(study, "uniform", vocab_size=500)
    held_out = held_out_losses(idata, data)
    assert held_out.n_bad_k <= 2
    assert held_out.loss_nats.mean() < raw.mean()
    assert recalibrated_losses(posterior, data).mean() < held_out.loss_nats.mean()


@pytest.mark.slow
def test_the_posterior_is_calibrated(tmp_path: Path, seed_offset: int) -> None:
    """60 fits; every quantity together (Bonferroni), so that a right model fails once in 1,000 seeds."""
    model = recalibration_sbc(small_recalibration_design(6, 20))
    rows = run_sbc(model, 60, path=tmp_path / "fits.jsonl", seed=seed_offset)
    names = [*model.quantities, JOINT_LOG_LIKELIHOOD]
    found = {name: judge_ranks([row["rank"] for row in rows if row["quantity"] == name], 63) for name in names}
    assert min(verdict.p_value for verdict in found.values()) > 0.001 / len(names), found
    assert np.mean([row["converged"] for row in rows]) > 0.95
