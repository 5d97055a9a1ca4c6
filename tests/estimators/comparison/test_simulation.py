"""The simulated study: the truth it states is the truth it has, and its tails are those of the real data."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy.stats import chi2, chisquare, kstest

from shannon_game.estimators.comparison.diagnostics import pareto_khat
from shannon_game.estimators.comparison.simulation.language import simulate_language
from shannon_game.estimators.comparison.simulation.participants import (
    LAPSE_REPORTS,
    draw_participants,
    simulate_reports,
)
from shannon_game.estimators.comparison.simulation.settings import (
    ParticipantPopulation,
    SimulationSettings,
)
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


@pytest.mark.parametrize("generator", ["lm-weak", "lm-strong"])
def test_candidates_follow_the_generator(generator: str) -> None:
    settings = replace(TINY, n_reference_items=12, n_candidates=4000, generator=generator, n_participants=1)
    study = simulate_comparison_study(settings)
    language = simulate_language(settings)

    def p_value(logprob: np.ndarray) -> float:
        statistic, freedom = 0.0, 0
        for row, drawn in zip(logprob, study["candidate_token"].values, strict=True):
            expected = np.exp(row.astype(float)) / np.exp(row.astype(float)).sum() * drawn.size
            observed = (drawn[:, None] == language.vocabulary).sum(axis=0)
            common = expected >= 5
            observed = np.append(observed[common], observed[~common].sum())
            expected = np.append(expected[common], expected[~common].sum())
            if len(expected) > 2 and expected[-1] >= 5:
                statistic += chisquare(observed, expected).statistic
                freedom += len(expected) - 1
        assert freedom > 100
        return float(chi2.sf(statistic, freedom))

    assert p_value(language.player_logprob[generator]) > 1e-3
    assert p_value(language.true_logprob) < 1e-12
    assert p_value(language.player_logprob["lm-medium"]) < 1e-12


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


REAL_BIAS = {  # eq. 5 minus the true gap, n candidates drawn with replacement from the 400, nats
    "14M": {10: -0.730, 40: -0.478, 400: -0.274},
    "gpt2-medium": {10: -0.075, 40: -0.028, 400: -0.006},
}
REAL_SD_LOG_WEIGHT = {"14M": 2.456, "gpt2-medium": 1.160}  # sd over all candidates of ln q(x) / g(x), nats
REAL_PARETO_K = {"14M": 0.721, "gpt2-medium": 0.486}  # of q(x) / g(x), all candidates pooled
REAL_MODEL = {"lm-weak": "14M", "lm-strong": "gpt2-medium"}


@pytest.fixture(scope="module", params=[0, 1])
def full(request: pytest.FixtureRequest) -> xr.Dataset:
    return simulate_comparison_study(SimulationSettings(seed=request.param))


def candidate_gap(log_term: np.ndarray, n: int, repeats: int, seed: int = 0) -> float:
    """Eq. 5 with n of the stored candidates, a mean over repeats; log_term is (item, candidate)."""
    rng = np.random.default_rng(seed)
    gaps = []
    for _ in range(repeats):
        drawn = rng.integers(0, log_term.shape[1], (log_term.shape[0], n))
        gaps.append(np.log(np.exp(np.take_along_axis(log_term, drawn, axis=1)).mean(axis=1)).mean())
    return float(np.mean(gaps))


def bias_of_eq_5(target: np.ndarray, candidate: np.ndarray, g: int, q: int, n: int) -> float:
    """`target` is (model, item), `candidate` (model, item, candidate), nats."""
    log_term = (target[g] - target[q])[:, None] + candidate[q] - candidate[g]
    return candidate_gap(log_term, n, repeats=5) - float((target[g] - target[q]).mean())


def test_targets_follow_the_truth() -> None:
    settings = replace(TINY, n_reference_items=4000, n_candidates=1)
    study = simulate_comparison_study(settings)
    language = simulate_language(settings)
    position = {token: place for place, token in enumerate(language.vocabulary.tolist())}
    target = np.array([position[token] for token in study["target_token"].values.tolist()])
    log_t = language.true_logprob.astype(float)
    surprisal = -np.take_along_axis(log_t, target[:, None], axis=1)[:, 0]
    entropy = -(np.exp(log_t) * log_t).sum(axis=1)
    deviation = surprisal - entropy
    assert abs(deviation.mean()) < 3.5 * deviation.std() / np.sqrt(deviation.size)
    # randomised probability integral transform: uniform if and only if targets are drawn from T
    upto = np.cumsum(np.exp(log_t), axis=1)[np.arange(4000), target]
    uniform = upto - np.random.default_rng(0).random(4000) * np.exp(-surprisal)
    assert kstest(np.clip(uniform, 0, 1), "uniform").pvalue > 1e-3


@pytest.mark.parametrize(
    ("player", "n", "tolerance"),
    [("lm-weak", 10, 0.15), ("lm-weak", 40, 0.2), ("lm-weak", 400, 0.25), ("lm-strong", 10, 0.25)],
)
def test_eq_5_is_as_biased_as_on_the_real_questions(full: xr.Dataset, player: str, n: int, tolerance: float) -> None:
    models = full["model"].values.tolist()
    bias = bias_of_eq_5(
        full["target_logprob"].values,
        full["candidate_logprob"].values,
        models.index("lm-medium"),
        models.index(player),
        n,
    )
    assert bias == pytest.approx(REAL_BIAS[REAL_MODEL[player]][n], rel=tolerance)


@pytest.mark.parametrize("player", REAL_MODEL)
def test_weights_have_the_real_spread_and_tail(full: xr.Dataset, player: str) -> None:
    logprob = full["candidate_logprob"]
    log_weight = (logprob.sel(model=player) - logprob.sel(model="lm-medium")).values.ravel()
    assert log_weight.std() == pytest.approx(REAL_SD_LOG_WEIGHT[REAL_MODEL[player]], rel=0.2)
    assert pareto_khat(np.exp(log_weight)) == pytest.approx(REAL_PARETO_K[REAL_MODEL[player]], abs=0.25)
