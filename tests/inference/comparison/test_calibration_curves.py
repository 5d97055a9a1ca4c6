"""Curves and predictions from a posterior, and recovery of known people by one fit of each model."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from scipy.special import expit, logit

from shannon_game.estimators.comparison import round_reports
from shannon_game.estimators.errors import InputError
from shannon_game.inference.comparison.calibration_curves import (
    outcome_log_likelihood,
    predicted_reports,
    reliability_curves,
    report_shares,
)
from shannon_game.inference.posterior.arviz_adapter import group
from shannon_game.inference.posterior.sampling import sample
from shannon_game.models.comparison.calibration import calibration_model
from shannon_game.models.comparison.calibration_data import ReportData, binary_outcomes, binary_reports
from shannon_game.models.comparison.report_process import report_model
from tests.oracles.calibration import outcome_log_likelihood as reference
from tests.truth import FAR, distance

N_PEOPLE, N_QUESTIONS = 8, 40
TRUE = {"strength": 1.3, "noise": 0.9, "lapse": 0.06}


def people(seed: int) -> tuple[ReportData, dict[str, np.ndarray]]:
    """People who all answer the same questions, on boxes, about an event that can be false."""
    rng = np.random.default_rng(seed)
    bias = rng.normal(0, 0.4, N_PEOPLE)
    slope = np.exp(rng.normal(0, 0.4, N_PEOPLE))
    noise = TRUE["noise"] * np.exp(rng.normal(0, 0.3, N_PEOPLE))
    outcome = rng.integers(0, 2, N_QUESTIONS)
    evidence = np.where(outcome == 1, 1, -1) * TRUE["strength"] ** 2 / 2 + rng.normal(0, TRUE["strength"], N_QUESTIONS)
    person, question = (grid.ravel() for grid in np.mgrid[:N_PEOPLE, :N_QUESTIONS])
    latent = bias[person] + slope[person] * evidence[question] + noise[person] * rng.standard_normal(person.size)
    report = round_reports(expit(latent), "interface")
    lapsed = rng.random(person.size) < TRUE["lapse"]
    slip = np.where(rng.random(person.size) < 0.5, 0.5, rng.choice(np.unique(report), person.size))
    report = np.where(lapsed, slip, report)
    names = [f"p{k:02d}" for k in person]
    data = binary_reports(names, report, outcome[question], "interface", question=question)
    return data, {"bias": bias, "slope": slope, "noise": noise}


@pytest.fixture(scope="module")
def fitted(seed_offset):
    data, truth = people(1 + seed_offset)
    # the scales of slopes and evidence mix slowly: about one effective draw in 14
    settings = {"draws": 3000, "tune": 800, "chains": 2, "cores": 1}
    return data, truth, sample(report_model(data), seed=3 + seed_offset, **settings)


@pytest.mark.mcmc
def test_people_are_recovered(fitted):
    """Eight people and 40 shared questions. All slopes share one scale, which rests on the questions."""
    _, truth, idata = fitted
    posterior = group(idata, "posterior")
    found = {"bias": posterior["bias"].values} | {name: np.log(posterior[name].values) for name in ("slope", "noise")}
    known = {"bias": truth["bias"]} | {name: np.log(truth[name]) for name in ("slope", "noise")}
    for name, draws in found.items():
        assert distance(draws, known[name]) < FAR, name
    # and the study tells people apart, who differ by .4, .4 and .3
    for name, error in (("bias", 0.25), ("slope", 0.25), ("noise", 0.2)):
        relative = found[name] - found[name].mean(axis=2, keepdims=True)
        assert relative.std(axis=(0, 1)).mean() < error, name
    # slopes are known less well than their product with the strength of the evidence
    product = found["slope"].mean(axis=2) + np.log(posterior["strength"].values)
    assert distance(product, known["slope"].mean() + np.log(TRUE["strength"])) < FAR
    assert product.std() < 0.25
    lapse = posterior["lapse"].values.mean(axis=2)
    assert distance(logit(lapse), logit(TRUE["lapse"])) < FAR
    assert lapse.std() < 0.03


@pytest.mark.mcmc
def test_predicted_reports_look_like_the_observed(fitted, seed_offset):
    data, _, idata = fitted
    drawn = predicted_reports(group(idata, "posterior"), data, np.random.default_rng(seed_offset), n_draws=500)
    assert drawn.shape == (500, data.row.size)
    shares, observed = report_shares(drawn, data.edges), report_shares(data.report, data.edges)
    # fitted shares are nearer to the data than fresh ones: 4.5 sds of 11 boxes are less than one in 10,000
    assert (np.abs(observed - shares.mean(axis=0)) < 4.5 * shares.std(axis=0)).all()
    other, _ = people(2 + seed_offset)
    with pytest.raises(InputError, match="these rows"):
        predicted_reports(group(idata, "posterior").isel(participant=slice(3)), other, np.random.default_rng(0))


def test_without_shared_questions_slope_and_noise_are_not_told_apart():
    """Moving the spread of a report from noise to evidence leaves the likelihood where it is."""
    rng = np.random.default_rng(7)
    outcome = rng.integers(0, 2, 40)
    data = binary_reports(["a"] * 40, round_reports(rng.random(40), "interface"), outcome, "interface")
    assert data.n_questions == 0
    model = report_model(data)
    logp = model.compile_logp(vars=[model["report"]], mode="FAST_COMPILE")

    def at(strength: float, slope: float, noise: float) -> float:
        zero = {f"{name}_unit": np.zeros(1) for name in ("log_slope", "log_noise", "logit_lapse")}
        spread = {f"{name}_spread_log__": 0.0 for name in ("log_slope", "log_noise", "logit_lapse", "bias")}
        centre = {"log_slope_mean": np.log(slope), "log_noise_mean": np.log(noise), "logit_lapse_mean": -3.0}
        rest = {"strength_log__": np.log(strength), "bias": np.zeros(1), "bias_mean": 0.0, "half_share_logodds__": 0.0}
        return float(logp({**zero, **spread, **centre, **rest}))

    # the same mean k d^2 / 2 = .5 and variance k^2 d^2 + s^2 = 2
    first = at(1.0, 1.0, 1.0)
    strength = 1.25
    slope = 1 / strength**2
    assert at(strength, slope, np.sqrt(2 - (slope * strength) ** 2)) == pytest.approx(first, rel=1e-10)
    assert at(strength, slope, 1.0) != pytest.approx(first, rel=1e-3)


def test_curves_of_known_coefficients():
    values = {"bias": 0.2, "slope": 0.5}
    posterior = xr.Dataset(
        {
            **{f"{name}_mean": (("chain", "draw"), [[value, value]]) for name, value in values.items()},
            **{name: (("chain", "draw", "participant"), [[[value], [2 * value]]]) for name, value in values.items()},
        }
    )
    report = np.array([0.3, 0.5, 0.9])
    typical, own = reliability_curves(posterior, "llo", report)
    np.testing.assert_allclose(typical[1], expit(0.2 + 0.5 * logit(report)))
    np.testing.assert_allclose(own[1, 0], expit(0.4 + logit(report)))
    with pytest.raises(InputError, match="slope_low"):
        reliability_curves(posterior, "beta", report)
    with pytest.raises(InputError, match="platt"):
        reliability_curves(posterior, "platt", report)


@pytest.mark.parametrize("family", ["llo", "beta"])
def test_pointwise_log_likelihood_is_the_reference_s(family):
    rng = np.random.default_rng(8)
    data = binary_outcomes(["a", "b", "a", "b"], rng.uniform(0.1, 0.9, 4), [1, 0, 0, 1])
    names = ("bias", "slope") if family == "llo" else ("bias", "slope_low", "slope_high")
    posterior = xr.Dataset({name: (("chain", "draw", "participant"), rng.normal(size=(1, 3, 2))) for name in names})
    found = outcome_log_likelihood(posterior, data, family).log_likelihood["outcome"]
    for draw in range(3):
        point = {name: posterior[name].values[0, draw] for name in names}
        np.testing.assert_allclose(found.values[0, draw], reference(data, family, point), rtol=1e-10)


def test_shares_of_log_odds_are_those_of_their_boxes():
    edges = np.array([-np.inf, -1.0, 1.0, np.inf])
    np.testing.assert_allclose(report_shares(np.array([-2.0, 0.0, 0.5, 3.0]), edges), [0.25, 0.5, 0.25])
    np.testing.assert_allclose(report_shares(np.array([0, 1, 1, 2]), edges), [0.25, 0.5, 0.25])


@pytest.mark.slow
@pytest.mark.parametrize("family", ["llo", "beta"])
def test_the_curve_of_a_population_is_recovered(family, seed_offset):
    """40 people with 60 answers: the typical slope to .1, the curve to three points of probability."""
    rng = np.random.default_rng(5 + seed_offset)
    slope, bias = rng.normal(0.6, 0.2, 40), rng.normal(0.3, 0.2, 40)
    person = np.repeat(np.arange(40), 60)
    report = np.clip(expit(rng.normal(0, 1.5, person.size)), 0.01, 0.99)
    outcome = rng.random(person.size) < expit(bias[person] + slope[person] * logit(report))
    data = binary_outcomes([f"p{k:02d}" for k in person], report, outcome)
    settings = {"draws": 500, "tune": 500, "chains": 4, "target_accept": 0.9}
    idata = sample(calibration_model(data, family), seed=1 + seed_offset, **settings)
    shown = np.linspace(0.05, 0.95, 10)
    typical, _ = reliability_curves(group(idata, "posterior"), family, shown)
    np.testing.assert_allclose(np.median(typical, axis=0), expit(bias.mean() + slope.mean() * logit(shown)), atol=0.05)
    if family == "llo":
        assert float(group(idata, "posterior")["slope_mean"].median()) == pytest.approx(slope.mean(), abs=0.1)
