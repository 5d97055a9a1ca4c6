"""The simulated study: the truth it states is the truth it has, and its tails are those of the real data."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy.stats import chisquare, kstest

from shannon_game.estimators.comparison.simulation.language import simulate_language
from shannon_game.estimators.comparison.simulation.participants import (
    LAPSE_REPORTS,
    draw_participants,
    simulate_reports,
)
from shannon_game.estimators.comparison.simulation.settings import ParticipantPopulation, SimulationSettings
from shannon_game.estimators.comparison.simulation.study import simulate_comparison_study

if TYPE_CHECKING:
    import xarray as xr

TINY = SimulationSettings(n_items=12, n_reference_items=30, n_participants=5, n_candidates=40, vocab_size=300)
IDEAL = ParticipantPopulation(bias=False, slope=False, noise=False, lapses=False)


@pytest.fixture(scope="module")
def tiny() -> xr.Dataset:
    return simulate_comparison_study(TINY)


def test_a_study_stays_what_it_was(tiny: xr.Dataset) -> None:
    """Golden values of the small study: tokens, probabilities and answers."""
    assert tiny["target_token"].values[:4].tolist() == ["shot", " Ril", " slost", " cid"]
    assert tiny["candidate_token"].values[0, :5].tolist() == ["shot", " 30", "shot", "shot", "shot"]
    mean = tiny["target_logprob"].mean("item"), tiny["candidate_logprob"].mean(["item", "candidate"])
    np.testing.assert_allclose(mean[0], [-4.4551896, -2.7542438, -2.7247047], rtol=1e-4)
    np.testing.assert_allclose(mean[1], [-4.2098055, -2.5159634, -2.9066440], rtol=1e-4)
    np.testing.assert_allclose(tiny["human_kl_nats"].mean(), 1.9636326, rtol=1e-4)
    np.testing.assert_allclose(tiny["true_bias"], [1.3466254, 0.0261963, -0.3484322, -0.4379056, 0.3953071], rtol=1e-6)
    np.testing.assert_allclose(tiny["true_lapse"][:2], [0.0366465, 0.1321345], rtol=1e-5)
    assert tiny["report"].values[:10].tolist() == [0.99, 0.5, 0.01, 0.5, 0.99, 0.99, 0.4, 0.99, 0.01, 0.6]


# --- the language


def divergences(settings: SimulationSettings) -> tuple[float, dict[str, float]]:
    """Mean entropy of T and mean KL(T || player), in double precision from the stored distributions."""
    language = simulate_language(settings)
    log_t = language.true_logprob.astype(float)
    t = np.exp(log_t)
    np.testing.assert_allclose(t.sum(axis=1), 1, atol=1e-4)
    for log_p in language.player_logprob.values():
        np.testing.assert_allclose(np.exp(log_p.astype(float)).sum(axis=1), 1, atol=1e-4)
    kl = {name: (t * (log_t - log_p)).sum(axis=1).mean() for name, log_p in language.player_logprob.items()}
    return -(t * log_t).sum(axis=1).mean(), kl


@pytest.mark.parametrize(
    "settings",
    [
        SimulationSettings(),
        TINY,
        replace(TINY, seed=5, entropy_nats=1.0, excess_nats={"lm-weak": 3.0, "lm-medium": 0.01, "human": 0.3}),
        replace(TINY, n_items=1, n_reference_items=1, vocab_size=2000),
    ],
    ids=["default", "tiny", "unlike", "one item"],
)
def test_the_stated_entropy_and_excess_losses_are_reached(settings: SimulationSettings) -> None:
    entropy, kl = divergences(settings)
    assert entropy == pytest.approx(settings.entropy_nats, abs=1e-4)
    assert kl == pytest.approx(dict(settings.excess_nats), abs=1e-4)


# --- what a loader gives


# --- participants


def log_odds_shown(study: xr.Dataset) -> np.ndarray:
    item, candidate = study["response_item"].values, study["response_candidate"].values
    return study["human_target_logprob"].values[item] - study["human_candidate_logprob"].values[item, candidate]


def test_an_ideal_reporter_reports_the_exact_log_odds() -> None:
    study = simulate_comparison_study(replace(TINY, rounding="none", participants=IDEAL))
    report = study["report"].values
    assert not study["automatic"].all()
    np.testing.assert_allclose(np.log(report) - np.log1p(-report), log_odds_shown(study), rtol=1e-7, atol=1e-9)
    assert study["true_bias"].values.tolist() == study["true_noise"].values.tolist() == [0] * 5
    assert study["true_slope"].values.tolist() == [1] * 5
    assert study["true_lapse"].values.tolist() == [0] * 5


def test_each_error_can_be_switched_off_by_itself(tiny: xr.Dataset) -> None:
    truth = {"bias": "true_bias", "slope": "true_slope", "noise": "true_noise", "lapses": "true_lapse"}
    for switch in truth:
        study = simulate_comparison_study(replace(TINY, participants=replace(TINY.participants, **{switch: False})))
        off = {name for name, variable in truth.items() if not np.array_equal(study[variable], tiny[variable])}
        assert off == {switch}


def test_participants_are_drawn_from_their_population() -> None:
    population = ParticipantPopulation(
        bias_mean_nats=-1, bias_sd_nats=2, slope_median=0.4, slope_log_sd=0.7, noise_median_nats=1.5, noise_log_sd=0.2,
        lapse_mean=0.1, lapse_concentration=20,
    )  # fmt: skip
    people = draw_participants(population, 2000, seed=3)
    for values, mean, sd in (
        (people.bias, -1, 2),
        (np.log(people.slope), np.log(0.4), 0.7),
        (np.log(people.noise_sd), np.log(1.5), 0.2),
        (people.lapse_rate, 0.1, np.sqrt(0.1 * 0.9 / 21)),
    ):
        assert values.mean() == pytest.approx(mean, abs=4 * sd / np.sqrt(2000))
        assert values.std() == pytest.approx(sd, rel=0.1)
    # independent of each other: a correlation of 2,000 has a standard error of .022
    traits = np.corrcoef([people.bias, np.log(people.slope), np.log(people.noise_sd), people.lapse_rate])
    assert np.abs(traits - np.eye(4)).max() < 0.1
    everybody = draw_participants(replace(population, lapse_mean=1.0), 3, seed=3)
    assert everybody.lapse_rate.tolist() == [1, 1, 1]


def test_reports_have_the_stated_bias_slope_and_noise() -> None:
    report = simulate_reports(
        np.full(20_000, 1.5), rng=np.random.default_rng(0), bias=-0.5, slope=2.0, noise_sd=0.8, rounding="none"
    )
    log_odds = np.log(report / (1 - report))
    assert log_odds.mean() == pytest.approx(2.0, abs=4 * 0.8 / np.sqrt(20_000))
    assert log_odds.std() == pytest.approx(0.8, rel=0.03)
    assert kstest((log_odds - 2) / 0.8, "norm").pvalue > 1e-3


def test_lapses_are_half_undecided_and_half_anywhere() -> None:
    n = 22_000
    report = simulate_reports(np.full(n, 30.0), rng=np.random.default_rng(0), lapse_rate=0.5)
    values, counts = np.unique(report, return_counts=True)
    assert values.tolist() == list(LAPSE_REPORTS)
    expected = np.full(11, n * 0.5 * 0.5 / 11)
    expected[5] += n * 0.5 * 0.5
    expected[10] += n * 0.5
    assert chisquare(counts, expected).pvalue > 1e-3
