"""The calibration models against a reference, what they are given, and what their priors expect of people."""

from __future__ import annotations

from typing import Any

import numpy as np
import pymc as pm
import pytest
from scipy.special import expit, logit

from shannon_game.estimators.comparison import response_positions, round_reports, same_token
from shannon_game.estimators.comparison.rounding import RoundingScheme
from shannon_game.estimators.comparison.simulation.settings import ParticipantPopulation, SimulationSettings
from shannon_game.estimators.comparison.simulation.study import simulate_comparison_study
from shannon_game.estimators.errors import InputError
from shannon_game.models.comparison.calibration import calibration_model, set_weights
from shannon_game.models.comparison.calibration_data import (
    binary_outcomes,
    binary_reports,
    favoured_outcomes,
    reports_on_truth,
    with_reports,
)
from shannon_game.models.comparison.report_process import draw_reports, report_model
from tests.estimators.comparison.comparison_studies import small_study
from tests.oracles.calibration import outcome_log_likelihood, report_log_likelihood

EVEN = RoundingScheme("even", (0.1, 0.4, 0.6, 0.9))


def some_rows(rng: np.random.Generator, n: int = 60) -> tuple[list[str], np.ndarray, np.ndarray, np.ndarray]:
    """Participants, unrounded reports (one is exactly 50%), outcomes, questions (some are shared)."""
    question = rng.integers(0, 40, n)
    outcome = rng.integers(0, 2, 40)[question]
    report = expit(rng.normal(0, 1.5, n))
    report[0] = 0.5
    return [f"p{k}" for k in rng.integers(0, 4, n)], report, outcome, question


@pytest.mark.parametrize("family", ["llo", "beta"])
def test_outcomes_have_the_reference_s_log_likelihood(family):
    rng = np.random.default_rng(1)
    names, report, outcome, _ = some_rows(rng)
    data = binary_outcomes(names, report, outcome)
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


@pytest.mark.parametrize("scheme", ["interface", "none", EVEN, "coarse"])
def test_reports_have_the_reference_s_log_likelihood(scheme):
    rng = np.random.default_rng(2)
    names, report, outcome, question = some_rows(rng)
    rounded = report if scheme == "none" else round_reports(report, scheme)
    data = binary_reports(names, rounded, outcome, scheme, question=question)
    assert data.n_questions > 0
    assert (data.question < 0).any()
    log_p = pointwise(report_model(data), "report")
    for _ in range(3):
        strength, half = rng.uniform(0.5, 2), rng.uniform(0.1, 0.9)
        point = {"strength": strength, "half_share": half, "evidence_unit": rng.normal(size=data.n_questions)}
        point["bias"] = rng.normal(size=4)
        inner = {
            "strength_log__": np.log(strength),
            "half_share_logodds__": logit(half),
            "evidence_unit": point["evidence_unit"],
            "bias": point["bias"],
            "bias_mean": rng.normal(),
            "bias_spread_log__": rng.normal(),
        }
        for name, inverse in (("log_slope", np.exp), ("log_noise", np.exp), ("logit_lapse", expit)):
            mean, spread, unit = rng.normal(0, 0.5), rng.uniform(0.1, 0.8), rng.normal(size=4)
            inner |= {f"{name}_mean": mean, f"{name}_spread_log__": np.log(spread), f"{name}_unit": unit}
            deviation = spread * unit
            if name == "log_slope":
                deviation = 1.5 * np.tanh(deviation / 1.5)
            point[name.removeprefix("log_").removeprefix("logit_")] = inverse(mean + deviation)
        np.testing.assert_allclose(log_p(inner)[0], report_log_likelihood(data, point), rtol=1e-8)


def test_boxes_share_all_probability_and_draws_follow_the_density():
    """Frequencies of 40,000 draws of one row against the reference's probabilities, to five standard errors."""
    n = 4
    data = binary_reports(["a"] * n, EVEN.values, [1, 0, 1, 0], EVEN)
    point = {"strength": 1.2, "half_share": 0.6, "bias": [0.3], "slope": [0.8], "noise": [0.9], "lapse": [0.2]}
    same = with_reports(data, np.arange(n))
    same.direction[:] = 1
    chance = np.exp(report_log_likelihood(same, point))
    assert chance.sum() == pytest.approx(1)
    mean, sd = 0.3 + 0.8 * 1.2**2 / 2, np.hypot(0.9, 0.8 * 1.2)
    drawn = draw_reports(
        data.edges, mean=mean, sd=sd, lapse=0.2, half_share=0.6, rng=np.random.default_rng(0), size=(40_000,)
    )
    frequency = np.bincount(drawn, minlength=n) / drawn.size
    assert np.abs(frequency - chance).max() < 5 * np.sqrt(0.25 / drawn.size)


def test_what_people_could_do_is_what_the_prior_expects():
    """Over prior draws: a spike at 50% and both ends are possible, none is the rule, no value is unheard of."""
    rng = np.random.default_rng(3)
    n_people, n_each = 20, 30
    names = np.repeat([f"p{k}" for k in range(n_people)], n_each)
    question = rng.integers(0, 200, names.size)
    outcome = np.ones(200, dtype=int)[question]
    study = binary_reports(names, np.full(names.size, 0.5), outcome, "interface", question=question)
    drawn = pm.draw(report_model(study)["report"], draws=200, random_seed=4)
    share = np.stack([(drawn == box).mean(axis=1) for box in range(11)], axis=1)
    low, high = np.quantile(share, [0.05, 0.95], axis=0)
    middle = np.median(share, axis=0)
    # the value most used takes a third at most in the typical draw, the least used is used
    assert middle.max() < 0.34
    assert middle.min() > 0.005
    # 50%: from hardly ever to a spike that no neighbour has
    assert low[5] < 0.1 < 0.13 < high[5]
    # 99% on the true token: from almost never to a third of all answers; 1%: surprises happen
    assert low[10] < 0.05
    assert 0.2 < high[10] < 0.6
    assert 0.02 < high[0] < 0.3
    # and the true token is favoured more often than not, never always
    right = share[:, 6:].sum(axis=1) / (share[:, 6:].sum(axis=1) + share[:, :5].sum(axis=1))
    assert np.quantile(right, 0.05) > 0.5
    assert np.quantile(right, 0.95) < 0.95


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


def test_questions_are_shared_only_on_the_same_two_tokens():
    study = small_study()
    data = reports_on_truth(study, "none")
    assert data.on_truth
    position = response_positions(study)[data.row]
    token = study["candidate_token"].values[position, study["response_candidate"].values[data.row]]
    seen: dict[int, set[tuple[int, str]]] = {}
    for question, item, string in zip(data.question, position, token, strict=True):
        if question >= 0:
            seen.setdefault(int(question), set()).add((int(item), str(string)))
    assert len(seen) == data.n_questions
    assert all(len(pairs) == 1 for pairs in seen.values())


def test_weights_can_be_exchanged_only_on_the_same_rows():
    study = small_study()
    model = calibration_model(favoured_outcomes(study))
    paid = favoured_outcomes(study, as_paid=True)
    set_weights(model, paid)
    np.testing.assert_array_equal(model["weight"].get_value(), paid.weight)
    with pytest.raises(InputError, match="rows"):
        set_weights(model, favoured_outcomes(study.isel(response=slice(0, -2))))


@pytest.mark.parametrize("change", [{"report": [0.2, 1.0]}, {"outcome": [0, 2]}, {"participant": ["a"]}])
def test_wrong_rows_are_named(change):
    with pytest.raises(InputError, match=next(iter(change))):
        binary_outcomes(**({"participant": ["a", "b"], "report": [0.2, 0.7], "outcome": [0, 1]} | change))
