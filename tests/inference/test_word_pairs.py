"""The Bayesian TVD: its likelihood against numerical integration, and its intervals against known distributions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from estimators.cloze_simulation import ClozeSimulation, simulate_cloze_study
from estimators.cpd import WordCounts, count_words, relative_frequencies, total_variation
from estimators.errors import InputError
from estimators.study_words import study_words
from estimators.words import WORD_RULES
from inference.word_pairs import (
    WordPairSettings,
    _data,
    _draw_tvd,
    _log_likelihood,
    _parts,
    _word_terms,
    tvd_posterior,
)


def one_context(first: list[int], second: list[int]) -> tuple[WordCounts, WordCounts]:
    def made(counts: list[int]) -> WordCounts:
        return count_words([0] * len(counts), range(len(counts)), counts, n_contexts=1)

    return made(first), made(second)


THETA = np.array([1.2, -0.3, 0.4, -0.5, 0.2, -0.4, 0.7, 1.1])[:, None]


def test_likelihood_of_a_word_is_its_integral() -> None:
    data = _data(*one_context([2, 3, 0], [1, 0, 2]))
    shared, exclusive = _word_terms(_parts(THETA, data), data)
    mass, d, e = np.exp(1.2), 1 / (1 + np.exp(0.5)), 1 / (1 + np.exp(-0.2))
    sigma, u1, u2 = np.exp(-0.4), np.exp(0.7), np.exp(1.1)
    for row, (a, b) in enumerate(zip(data.a, data.b, strict=True)):
        # sizes on a log grid, where the density is smooth; x on a grid as wide as its weights matter
        z, x = np.exp(np.linspace(-14, 4, 3001))[:, None], np.linspace(-8, 8, 401)[None]
        tilt = sigma * x / 2
        rate = 1 + u1 * np.exp(tilt) + u2 * np.exp(-tilt)
        values = mass * z ** (a + b - d) * np.exp((a - b) * tilt - rate * z) * norm.pdf(x)
        integral = np.trapezoid(np.trapezoid(values, x[0], axis=1), np.log(z[:, 0]))
        assert np.log(np.exp(shared[row]).sum()) == pytest.approx(np.log(integral), abs=1e-5)
        if a and b:
            assert exclusive[row] == -np.inf
        else:
            rate, side = (1 + u1, -0.3) if a else (1 + u2, 0.4)
            z = np.linspace(1e-6, 40, 400_001)
            values = np.exp(side) * z ** (a + b - 1 - e) * np.exp(-rate * z)
            assert exclusive[row] == pytest.approx(np.log(np.trapezoid(values, z)), abs=1e-4)


def test_words_with_the_same_counts_are_one_row() -> None:
    data = _data(*one_context([1, 1, 1, 2], [0, 0, 1, 2]))
    assert data.words.tolist() == [2, 1, 1]
    whole = data.each_word()
    assert _log_likelihood(THETA, data) == pytest.approx(_log_likelihood(THETA, whole))
    drawn = _draw_tvd(THETA, whole, np.random.default_rng(0))
    assert 0 < drawn[0] < 1


def simulated(n: int, n_items: int, family: str, seed: int) -> tuple[WordCounts, WordCounts, np.ndarray]:
    settings = ClozeSimulation(n_items=n_items, n_answers=n, n_samples=n, families=(family,))
    study = simulate_cloze_study(settings, np.random.default_rng(seed))
    none = WORD_RULES["none"]
    words = study_words(study, human=none, model=none, corpus=none)
    return words.answers(), words.models[family].counts, study["true_tvd"].to_numpy()[0]


def test_intervals_hold_the_truth_where_the_raw_distance_is_far_off() -> None:
    """20 answers: fewer than 22 of 30 intervals of 90% hold the truth in one run of 500 (binomial)."""
    people, model, truth = simulated(20, 30, "mixture", 1)
    posterior = tvd_posterior(
        people, model, rng=np.random.default_rng(2), settings=WordPairSettings(tune=80, draws=120, thin=2)
    )
    lower, upper = posterior.interval()
    raw = total_variation(relative_frequencies(people), relative_frequencies(model))
    assert raw.mean() - truth.mean() > 0.25
    assert abs(posterior.mean().mean() - truth.mean()) < 0.12
    assert ((lower <= truth) & (truth <= upper)).sum() >= 22
    assert posterior.tvd.shape == (2, 60, 30)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "n_items"), [(20, 100), (40, 100), (1000, 60)])
def test_coverage(n: int, n_items: int) -> None:
    """Mean coverage over four families at 20, 40 and 1,000 answers: 85 to 95%, give or take 2.5 binomial sds."""
    hits, total = 0, 0
    for seed, family in enumerate(("mixture", "factors", "ranks", "tail")):
        people, model, truth = simulated(n, n_items, family, 10 + seed)
        posterior = tvd_posterior(people, model, rng=np.random.default_rng(seed), settings=WordPairSettings())
        lower, upper = posterior.interval()
        hits += int(((lower <= truth) & (truth <= upper)).sum())
        total += n_items
    slack = 2.5 * np.sqrt(0.09 / total)
    assert 0.85 - slack <= hits / total <= 0.95 + slack


def test_same_generator_same_draws() -> None:
    people, model, _ = simulated(20, 3, "factors", 3)
    settings = WordPairSettings(tune=10, draws=6, thin=1)
    first, second = (tvd_posterior(people, model, rng=np.random.default_rng(0), settings=settings) for _ in range(2))
    np.testing.assert_array_equal(first.tvd, second.tvd)
    alone = tvd_posterior(people, model, rng=np.random.default_rng(0), settings=settings, pooled=False)
    assert not np.allclose(first.tvd, alone.tvd)


def test_mistakes() -> None:
    people, _ = one_context([1, 2], [1, 1])
    empty = count_words([], [], [], n_contexts=1)
    with pytest.raises(InputError, match="has no answer in context 0"):
        tvd_posterior(people, empty, rng=np.random.default_rng(0))
    with pytest.raises(InputError, match="chains: is 1"):
        WordPairSettings(chains=1)
