"""How far beliefs of people differ: known truths, what does not matter, and studies that cannot say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

from shannon_game.estimators.comparison import (
    ParticipantPopulation,
    QuestionDesign,
    private_belief,
    simulate_designed_study,
)
from shannon_game.estimators.comparison.examples import repeated_study

DESIGN = QuestionDesign(n_draws=8, n_answers=0, n_comparisons=12, n_comparisons_each=2, n_participants=20)


def study(seed: int, sd_nats: float, n_items: int = 60, people: ParticipantPopulation | None = None) -> xr.Dataset:
    rng = np.random.default_rng(seed)
    logit = rng.normal(0, 2, (n_items, 60))
    log_g = logit - np.logaddexp.reduce(logit, axis=1, keepdims=True)
    belief = logit + rng.normal(0, 1.5, logit.shape)
    log_h = belief - np.logaddexp.reduce(belief, axis=1, keepdims=True)
    target = np.array([rng.choice(60, p=np.exp(row)) for row in log_h])
    people = ParticipantPopulation() if people is None else people
    return simulate_designed_study(log_g, log_h, target, DESIGN, people, private_sd_nats=sd_nats, seed=seed)


@pytest.fixture(scope="module")
def repeated() -> xr.Dataset:
    return repeated_study()


def test_a_spread_that_is_there_and_one_that_is_not() -> None:
    for truth in (0.0, 1.5):
        found = [private_belief(study(seed, truth)) for seed in range(12)]
        variance, se = (np.array([getattr(each, name) for each in found]) for name in ("variance", "se"))
        # 12 studies together, within 3 of the errors that they state, of the truth or a little less: lapses and the
        # ends of the scale take some of it
        error = 3 * np.sqrt((se**2).mean() / 12)
        assert variance.mean() == pytest.approx(0.95 * truth**2, abs=error)
        assert error < 0.7
        rejected = np.mean([each.p_shared < 0.05 for each in found])
        assert rejected <= 0.25 if truth == 0 else rejected >= 0.75


def test_a_slope_divides_all_of_it(repeated: xr.Dataset) -> None:
    once, twice = private_belief(repeated), private_belief(repeated, slope=2.0)
    assert twice.variance == pytest.approx(once.variance / 4)
    assert twice.upper == pytest.approx(once.upper / 4)
    assert twice.noise_sd_nats == pytest.approx(once.noise_sd_nats / 2)
    assert twice.p_shared == pytest.approx(once.p_shared)


def test_a_person_s_bias_is_no_private_belief() -> None:
    # everybody far off in an own direction, at all items alike
    people = replace(ParticipantPopulation(), bias_sd_nats=3.0)
    found = private_belief(study(5, 0.0, people=people))
    assert found.lower < 0 < found.upper
