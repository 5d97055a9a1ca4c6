"""Quantities of the posterior of ranks, from draws that are given: no fit."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from shannon_game.estimators.rankings import average_score
from shannon_game.inference.rankings.slopes import (
    RankDraws,
    expected_scores,
    power_to_tell_apart,
    predictive_checks,
    replicated_counts,
    score_slopes,
)
from shannon_game.models.rankings.slopes import RankData, log_category_probability

BASELINE = np.array([0.3, 0.1, 0.1, 0.1, 0.4])
SCORE = average_score([np.inf, 4, 3, 2, 1], 4)
LENGTHS = np.array([32, 128, 512])


def design(n_windows: int = 12, n_models: int = 2) -> RankData:
    length = np.resize(LENGTHS, n_windows)
    cells = [(window, model) for window in range(n_windows) for model in range(n_models)]
    window, model = np.array(cells).T
    return RankData(
        model=np.array([f"m{at}" for at in range(n_models)]),
        text=np.array(["t"]),
        window=np.array([f"w{at}" for at in range(n_windows)]),
        window_text=np.zeros(n_windows, dtype=np.int64),
        window_length=length,
        cell_model=model,
        cell_window=window,
        count=np.full((len(cells), 5), 6),
    )


def draws(data: RankData, n: int = 1, slope=(0.0, 0.3), level=(-0.2, 0.2), spread=(0.5, 0.3)) -> RankDraws:
    rng = np.random.default_rng(0)
    x = np.log2(data.window_length) - data.centre
    window = spread[0] * rng.normal(size=(n, data.window.size))
    own = spread[1] * rng.normal(size=(n, data.cell_model.size))
    slopes, levels = np.array(slope), np.array(level)
    log_odds = (
        (levels[data.cell_model] + slopes[data.cell_model] * x[data.cell_window]) + window[:, data.cell_window] + own
    )
    return RankDraws(
        baseline=np.tile(BASELINE, (n, 1)),
        intercept=np.tile(levels, (n, 1)),
        slope=np.tile(slopes, (n, 1)),
        window_spread=np.full(n, spread[0]),
        model_window_spread=np.full(n, spread[1]),
        log_odds=log_odds,
    )


def test_expected_scores_are_averages_over_new_windows() -> None:
    data = design()
    found = expected_scores(draws(data), data, SCORE, LENGTHS)[0]
    rng = np.random.default_rng(3)
    effect = np.hypot(0.5, 0.3) * rng.normal(size=200_000)
    for model in range(2):
        for at, length in enumerate(LENGTHS):
            centre = [-0.2, 0.2][model] + [0.0, 0.3][model] * (np.log2(length) - data.centre)
            expected = np.exp(log_category_probability(centre + effect, BASELINE)) @ SCORE
            # four standard errors of the simulation
            assert found[model, at] == pytest.approx(expected.mean(), abs=4 * expected.std() / np.sqrt(effect.size))
    assert (np.diff(found[1]) > 0).all()
    assert score_slopes(found[None], LENGTHS)[0, 1] == pytest.approx(np.polyfit(np.log2(LENGTHS), found[1], 1)[0])


def test_power_is_that_of_the_test_on_simulated_studies() -> None:
    """2,000 simulated studies: a standard error of .011."""
    data, n_windows, n_tokens = design(), 24, 30
    given = draws(data)
    power = power_to_tell_apart(
        draws(data, n=50), data, SCORE, n_windows=[n_windows], n_tokens=n_tokens, rng=np.random.default_rng(5)
    )
    rng = np.random.default_rng(6)
    length = np.repeat(LENGTHS, n_windows // 3)
    x = np.log2(length) - data.centre
    found = {"mean": 0, "slope": 0}
    for _ in range(2000):
        common = 0.5 * rng.normal(size=n_windows)
        means = []
        for model in range(2):
            eta = given.intercept[0, model] + given.slope[0, model] * x + common + 0.3 * rng.normal(size=n_windows)
            probability = np.exp(log_category_probability(eta, BASELINE))
            count = rng.multinomial(n_tokens, probability / probability.sum(axis=-1, keepdims=True))
            means.append(count @ SCORE / n_tokens)
        difference = means[0] - means[1]
        fit = stats.linregress(x - x.mean(), difference)
        found["slope"] += fit.pvalue < 0.05
        found["mean"] += 2 * stats.t.sf(abs(fit.intercept / fit.intercept_stderr), n_windows - 2) < 0.05
    for name, count in found.items():
        assert power[name][0, 0] == pytest.approx(count / 2000, abs=0.045)  # and the line is not quite straight
    assert 0.3 < power["mean"][0, 0] < 0.99


def test_predictive_checks_see_what_is_wrong() -> None:
    data = design(n_windows=60)
    given = draws(data, n=300, spread=(0.0, 0.0))
    replicated = replicated_counts(given, data, np.random.default_rng(1))
    assert (replicated.sum(axis=-1) == 30).all()
    right = data.with_counts(replicated[7])
    assert all(check.p_value > 0.005 for check in predictive_checks(replicated, right, SCORE))
    # both models meet the same easy and hard windows, which this posterior knows nothing of
    log_odds = given.log_odds[0] + 1.5 * np.random.default_rng(2).normal(size=60)[data.cell_window]
    probability = np.exp(log_category_probability(log_odds, BASELINE))
    wrong = data.with_counts(np.random.default_rng(3).multinomial(30, probability / probability.sum(-1, keepdims=True)))
    found = {check.statistic: check for check in predictive_checks(replicated, wrong, SCORE)}
    for name in ("sd of window means, m0", "correlation between models"):
        assert found[name].p_value < 0.02
        assert found[name].observed > found[name].upper
