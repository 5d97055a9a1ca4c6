"""The calibration model against a reference, and what it is given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pymc as pm
import pytest
from scipy.special import expit

from shannon_game.estimators.comparison.simulation.settings import ParticipantPopulation, SimulationSettings
from shannon_game.estimators.comparison.simulation.study import simulate_comparison_study
from shannon_game.estimators.comparison.study import same_token
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import response_positions
from shannon_game.models.comparison.calibration import calibration_model
from shannon_game.models.comparison.calibration_data import favoured_outcomes
from tests.estimators.comparison.comparison_studies import small_study
from tests.oracles.calibration import outcome_log_likelihood, outcomes


def some_rows(rng: np.random.Generator, n: int = 60) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Participants, unrounded reports (one is exactly 50%) and outcomes."""
    report = expit(rng.normal(0, 1.5, n))
    report[0] = 0.5
    return [f"p{k}" for k in rng.integers(0, 4, n)], report, rng.integers(0, 2, n)


@pytest.mark.parametrize("family", ["llo", "beta"])
def test_outcomes_have_the_reference_s_log_likelihood(family):
    rng = np.random.default_rng(1)
    names, report, outcome = some_rows(rng)
    data = outcomes(names, report, outcome)
    data.weight[:] = rng.uniform(0.1, 1, data.weight.size)
    model = calibration_model(data, family)
    coefficients = ("bias", "slope") if family == "llo" else ("bias", "slope_low", "slope_high")
    log_p = pointwise(model, "outcome")
    for _ in range(3):
        inner, point = {}, {}
        for name in coefficients:
            mean, spread, unit = rng.normal(), rng.uniform(0.1, 1), rng.normal(size=4)
            inner |= {f"{name}_mean": mean, f"{name}_spread_log__": np.log(spread), f"{name}_unit": unit}
            point[name] = mean + spread * unit
        np.testing.assert_allclose(log_p(inner)[0], outcome_log_likelihood(data, family, point), rtol=1e-9)


def pointwise(model: pm.Model, variable: str) -> Any:
    """Function that gives the log-likelihood of every observation at unconstrained values, in a list of one array."""
    return model.compile_logp(vars=[model[variable]], sum=False, mode="FAST_COMPILE")


def test_the_favoured_option_and_who_is_left_out():
    study = small_study()
    data = favoured_outcomes(study)
    position = response_positions(study)
    same = same_token(study)[position, study["response_candidate"].values] | study["automatic"].values
    report = study["report"].values
    wanted = np.flatnonzero(~same & (report != 0.5))
    np.testing.assert_array_equal(data.row, wanted)
    assert data.n_ties == (~same & (report == 0.5)).sum()
    assert (data.report > 0.5).all()
    np.testing.assert_array_equal(data.outcome, report[wanted] > 0.5)
    assert 0 < data.outcome.mean() < 1
    with pytest.raises(InputError, match="report: has no report that favours one of two tokens"):
        favoured_outcomes(study.assign(report=("response", np.full(report.size, 0.5))))
    with pytest.raises(InputError, match="has no answer on two different tokens"):
        favoured_outcomes(study.assign(automatic=("response", np.ones(report.size, dtype=bool))))
    # the label must not follow from the truth: with reports mirrored, every outcome turns round
    mirrored = favoured_outcomes(study.assign(report=1 - study["report"]))
    np.testing.assert_array_equal(mirrored.outcome, 1 - data.outcome)


def test_weights_make_a_player_who_knows_the_text_calibrated():
    """Unrounded reports of t(y) / (t(y) + t(x)) on 100,000 pairs: over-confident as guesses, calibrated weighted."""
    study = simulate_comparison_study(
        SimulationSettings(
            n_items=2000,
            n_reference_items=2000,
            n_participants=50,
            n_candidates=50,
            vocab_size=300,
            rounding="none",
            excess_nats={"lm-weak": 2.0, "lm-medium": 0.7, "lm-strong": 0.4, "human": 0.0},
            participants=ParticipantPopulation(bias=False, slope=False, noise=False, lapses=False),
            seed=11,
        )
    )
    plain, paid = favoured_outcomes(study), favoured_outcomes(study, as_paid=True)
    assert paid.weight.min() > 0
    assert paid.weight.max() <= 1
    for low, high in ((0.5, 0.65), (0.65, 0.8), (0.8, 0.9), (0.9, 0.97), (0.97, 1)):
        inside = (plain.report >= low) & (plain.report < high)
        said, weight = plain.report[inside], paid.weight[inside]
        assert said.mean() - plain.outcome[inside].mean() > 0.02 or low >= 0.97
        difference = np.average(plain.outcome[inside], weights=weight) - np.average(said, weights=weight)
        # answers on one item share its target: its weighted sums are the independent ones
        items = study["response_item"].values[plain.row[inside]]
        residual = np.bincount(items, weight * (plain.outcome[inside] - said)) / weight.sum()
        assert abs(difference) < 4 * np.sqrt((residual**2).sum())
