"""Accuracy of guesses: closed forms, a slow bootstrap, coverage, and wrong input."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from shannon_game.estimators.errors import InputError
from shannon_game.estimators.guesses.accuracy import (
    bayesian_bootstrap_accuracy,
    bootstrap_accuracy,
    enough_answers,
    participant_accuracy,
    pooled_accuracy,
    wilson_interval,
)
from shannon_game.estimators.guesses.practice import practice_curve


@given(st.integers(0, 60), st.integers(1, 60), st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_wilson_is_that_of_scipy(hits: int, n: int, probability: float) -> None:
    hits = min(hits, n)
    lower, upper = wilson_interval(hits, n, probability=probability)
    known = binomtest(hits, n).proportion_ci(probability, method="wilson")
    assert float(lower) == pytest.approx(known.low, abs=1e-9)
    assert float(upper) == pytest.approx(known.high, abs=1e-9)
    assert 0 <= lower <= hits / n <= upper <= 1
    mirrored = wilson_interval(n - hits, n, probability=probability)
    assert (1 - mirrored[1], 1 - mirrored[0]) == pytest.approx((float(lower), float(upper)), abs=1e-12)


def test_participants_and_the_minimum() -> None:
    who = np.array(["b", "a", "b", "b", "c"], dtype=object)
    found = participant_accuracy([True, False, False, True, True], who)
    assert found.participant.tolist() == ["a", "b", "c"]
    assert found.n_guesses.tolist() == [1, 3, 1]
    assert found.n_hits.tolist() == [0, 2, 1]
    np.testing.assert_allclose(found.accuracy, [0, 2 / 3, 1])
    np.testing.assert_allclose((found.lower, found.upper), wilson_interval([0, 2, 1], [1, 3, 1]))
    narrow = participant_accuracy([True, False, False, True, True], who, probability=0.5)
    np.testing.assert_allclose((narrow.lower, narrow.upper), wilson_interval([0, 2, 1], [1, 3, 1], probability=0.5))
    assert enough_answers(who, 2).tolist() == [True, False, True, True, False]
    assert enough_answers(who, 3).tolist() == [True, False, True, True, False]
    assert enough_answers(who, 0).all()
    with pytest.raises(InputError, match="minimum"):
        enough_answers(who, -1)


def slow_bootstrap(correct: np.ndarray, person: np.ndarray, place: np.ndarray, n: int, seed: int) -> list[float]:
    """Draw names with replacement and collect every guess as often as its person times its document were drawn."""
    rng = np.random.default_rng(seed)
    shares = []
    for _ in range(n):
        people = rng.choice(np.unique(person), size=np.unique(person).size).tolist()
        places = rng.choice(np.unique(place), size=np.unique(place).size).tolist()
        rows = [(people.count(u) * places.count(d), c) for c, u, d in zip(correct, person, place, strict=True)]
        weight = sum(w for w, _ in rows)
        if weight:
            shares.append(sum(w * c for w, c in rows) / weight)
    return shares


def crossed(seed: int, n_people: int = 8, n_places: int = 10) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    person, place = (axis.ravel() for axis in np.meshgrid(np.arange(n_people), np.arange(n_places), indexing="ij"))
    logit = rng.normal(0, 1, n_people)[person] + rng.normal(0, 1, n_places)[place]
    return rng.random(person.size) < 1 / (1 + np.exp(-logit)), person, place


def test_the_bootstrap_is_that_of_slow_loops() -> None:
    """Same distribution from other random numbers: 4,000 replicates each, standard errors of the moments under 2%."""
    correct, person, place = crossed(3)
    slow = np.array(slow_bootstrap(correct, person, place, 4000, seed=1))
    fast = bootstrap_accuracy(correct, person, place, n_replicates=4000, rng=np.random.default_rng(2))
    assert fast.mean() == pytest.approx(slow.mean(), abs=0.01)
    assert fast.std() == pytest.approx(slow.std(), rel=0.06)
    np.testing.assert_allclose(np.quantile(fast, [0.05, 0.95]), np.quantile(slow, [0.05, 0.95]), atol=0.02)


def test_pooled_counts_guesses_and_the_mean_counts_people() -> None:
    found = pooled_accuracy([1, 1, 1, 0], list("aaab"), list("xyxy"), rng=np.random.default_rng(0), n_replicates=200)
    assert (found.n_guesses, found.n_participants, found.n_documents) == (4, 2, 2)
    assert found.accuracy == 0.75
    assert found.participant_mean == 0.5
    assert found.participant_mean_se == pytest.approx(0.5)
    assert (found.wilson_lower, found.wilson_upper) == pytest.approx(tuple(map(float, wilson_interval(3, 4))))
    half = pooled_accuracy(
        [1, 1, 1, 0], list("aaab"), list("xyxy"), rng=np.random.default_rng(0), n_replicates=200, probability=0.5
    )
    drawn = bootstrap_accuracy([1, 1, 1, 0], list("aaab"), list("xyxy"), rng=np.random.default_rng(0), n_replicates=200)
    assert (half.lower, half.upper) == pytest.approx(tuple(np.quantile(drawn, [0.25, 0.75])))
    assert half.se == pytest.approx(drawn.std(ddof=1))
    assert (half.wilson_lower, half.wilson_upper) == pytest.approx(
        tuple(map(float, wilson_interval(3, 4, probability=0.5)))
    )
    alone = pooled_accuracy([1, 0], list("aa"), list("xy"), rng=np.random.default_rng(0), n_replicates=50)
    assert np.isnan(alone.participant_mean_se)


def test_the_bayesian_bootstrap_is_beta_for_single_guesses() -> None:
    """Gaps of Dirichlet(1, ..., 1) sum to Beta(hits, misses) exactly; 20,000 draws."""
    hit = np.r_[np.ones(30), np.zeros(70)]
    draws = bayesian_bootstrap_accuracy(hit, np.arange(100), n_draws=20_000, rng=np.random.default_rng(1))
    assert draws.mean() == pytest.approx(0.3, abs=0.001)
    assert draws.std() == pytest.approx(np.sqrt(0.3 * 0.7 / 101), rel=0.03)
    clustered = bayesian_bootstrap_accuracy(
        hit, np.repeat(np.arange(10), 10), n_draws=2000, rng=np.random.default_rng(1)
    )
    assert clustered.std() > 2 * draws.std()  # documents all right or all wrong
    # three guesses in one document, one in the other: a ratio of weighted sums
    few = bayesian_bootstrap_accuracy([1, 1, 0, 0], list("xxxy"), n_draws=5, rng=np.random.default_rng(3))
    weight = np.random.default_rng(3).dirichlet([1, 1], size=5)
    np.testing.assert_allclose(few, 2 * weight[:, 0] / (3 * weight[:, 0] + weight[:, 1]))


def test_practice_by_hand() -> None:
    # Ann: wrong, right, right; Bo: wrong, wrong; own accuracies 2/3 and 0
    curve = practice_curve(
        [0, 1, 1, 0, 0], list("aaabb"), [0, 1, 5, 0, 2], starts=[0, 1, 3, 100], rng=np.random.default_rng(0)
    )
    assert curve.n_from.tolist() == [0, 1, 3]
    assert curve.n_to.tolist() == [0, 2, 99]
    assert curve.n_guesses.tolist() == [2, 2, 1]
    assert curve.n_participants.tolist() == [2, 2, 1]
    np.testing.assert_allclose(curve.accuracy, [0, 0.5, 1])
    np.testing.assert_allclose(curve.excess, [-1 / 3, 1 / 6, 1 / 3])
    assert np.isnan(curve.excess_lower).tolist() == [False, False, True]
    assert curve.excess_lower[0] == pytest.approx(-2 / 3)
    assert curve.excess_upper[0] == pytest.approx(0)


def test_only_the_bootstrap_covers_where_people_and_documents_differ() -> None:
    """200 fresh studies; the truth is 1/2. Nominal 95%: Wilson falls far short, the bootstrap errs on the wide side."""
    inside = {"wilson": 0, "bootstrap": 0}
    for seed in range(200):
        found = pooled_accuracy(*crossed(seed, 20, 20), rng=np.random.default_rng(seed), n_replicates=300)
        inside["wilson"] += found.wilson_lower <= 0.5 <= found.wilson_upper
        inside["bootstrap"] += found.lower <= 0.5 <= found.upper
    assert inside["wilson"] < 0.6 * 200
    assert inside["bootstrap"] > 0.89 * 200


def test_practice_intervals_are_quantiles_over_people_drawn_again() -> None:
    correct, who = [0, 1, 1, 0, 0, 1, 1, 0, 1], list("bbbaaccca")
    before = [0, 1, 5, 0, 2, 0, 3, 4, 7]
    curve = practice_curve(
        correct, who, before, starts=[0, 3], rng=np.random.default_rng(4), n_replicates=40, probability=0.8
    )
    assert curve.n_to.tolist() == [2, 7]
    drawn = np.random.default_rng(4).multinomial(3, [1 / 3] * 3, size=40)
    own = {name: np.mean([c for c, w in zip(correct, who, strict=True) if w == name]) for name in "abc"}
    rows = list(zip(correct, who, before, strict=True))
    for column, inside in enumerate((lambda n: n < 3, lambda n: n >= 3)):
        excess = []
        for times in drawn:
            weight = dict(zip("abc", times, strict=True))
            kept = [(weight[w], c - own[w]) for c, w, n in rows if inside(n)]
            total = sum(times for times, _ in kept)
            excess.append(sum(times * value for times, value in kept) / total)
        assert curve.excess_lower[column] == pytest.approx(np.quantile(excess, 0.1))
        assert curve.excess_upper[column] == pytest.approx(np.quantile(excess, 0.9))
