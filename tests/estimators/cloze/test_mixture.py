"""Mixtures of sources: weights against a closed form and another optimiser, and losses that never saw their words."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize

from shannon_game.estimators.cloze import held_out_mixture
from shannon_game.estimators.cloze.mixture import mixture_weights
from shannon_game.estimators.errors import InputError

WORDS = st.lists(st.lists(st.floats(0.001, 1), min_size=3, max_size=3), min_size=2, max_size=20)


def test_two_sources_that_know_different_words() -> None:
    # 3 of 4 words are the first source's, one the second's: each gets its share, whatever its certainty
    weights = mixture_weights([[0.3, 0], [0.9, 0], [0.5, 0], [0, 0.2]])
    np.testing.assert_allclose(weights, [0.75, 0.25], atol=1e-4)


@given(WORDS)
def test_no_other_weights_are_better(rows: list[list[float]]) -> None:
    q = np.array(rows)
    ours = mixture_weights(q)
    assert ours.sum() == pytest.approx(1)
    assert (ours >= 0).all()
    rng = np.random.default_rng(0)
    others = np.vstack([rng.dirichlet(np.ones(3), 200), np.eye(3)])
    assert np.log(q @ ours).mean() >= np.log(q @ others.T).mean(axis=0).max() - 1e-6


def test_the_weights_of_a_general_optimiser() -> None:
    q = np.random.default_rng(1).beta(0.4, 3, size=(300, 3)) + 1e-6
    found = optimize.minimize(
        lambda z: -np.log(q @ (np.exp(z) / np.exp(z).sum())).mean(), np.zeros(3), method="BFGS", options={"gtol": 1e-9}
    )
    np.testing.assert_allclose(mixture_weights(q, tolerance=1e-12), np.exp(found.x) / np.exp(found.x).sum(), atol=1e-4)


def test_the_truth_is_found() -> None:
    # words are drawn from a mixture with weights .7 and .3 of two known distributions
    rng = np.random.default_rng(2)
    sources = rng.dirichlet(np.ones(20), 2)
    words = rng.choice(20, size=20_000, p=np.array([0.7, 0.3]) @ sources)
    # standard error of the weight by the curvature of the likelihood
    ratio = (sources[0] - sources[1])[words] / (np.array([0.7, 0.3]) @ sources)[words]
    assert mixture_weights(sources[:, words].T)[0] == pytest.approx(0.7, abs=4 / np.sqrt(np.sum(ratio**2)))


def test_a_group_is_held_out() -> None:
    rng = np.random.default_rng(3)
    q = rng.uniform(0.01, 1, size=(12, 2))
    group = np.repeat(["a", "b", "c"], 4)
    found = held_out_mixture(q, group)
    for at, name in enumerate(["a", "b", "c"]):
        own = group == name
        weights = mixture_weights(q[~own])
        np.testing.assert_allclose(found.weights[at], weights)
        np.testing.assert_allclose(found.loss_nats[own], -np.log(q[own] @ weights))
    # what is fitted to the words themselves is better in them
    assert -np.log(q @ mixture_weights(q)).mean() < found.loss_nats.mean()


def test_a_source_of_noise_gains_less_held_out_than_fitted() -> None:
    rng = np.random.default_rng(4)
    held, fitted = [], []
    for _ in range(12):
        first = rng.uniform(0.2, 0.8, 30)
        q = np.stack([first, 0.5 * rng.uniform(0.5, 1.5, 30)], axis=1)
        alone = -np.log(first).mean()
        held.append(alone - held_out_mixture(q, np.arange(30) % 5).loss_nats.mean())
        fitted.append(alone + np.log(q @ mixture_weights(q)).mean())
    assert min(fitted) >= -1e-6
    assert np.mean(held) < np.mean(fitted)


@pytest.mark.parametrize(
    ("probability", "message"),
    [
        ([0.1, 0.2], r"has shape \(2,\), should be \(word, source\)"),
        ([[0.1, 1.2]], "no probability"),
        ([[0.1, np.nan]], "no probability"),
        ([[0.5, 0.5], [0, 0]], "is 0 under every source at word 1"),
    ],
)
def test_what_is_refused(probability: list[list[float]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        mixture_weights(probability)


def test_weights_need_two_groups() -> None:
    with pytest.raises(InputError, match="group: is one for all words"):
        held_out_mixture([[0.1, 0.2], [0.3, 0.4]], ["a", "a"])
    with pytest.raises(InputError, match=r"group: has shape \(1,\), should be \(2,\)"):
        held_out_mixture([[0.1, 0.2], [0.3, 0.4]], ["a"])
