"""Mixtures of sources: weights against a closed form and another optimiser, and losses that never saw their words."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from shannon_game.estimators.cloze import held_out_mixture
from shannon_game.estimators.cloze.mixture import mixture_weights

WORDS = st.lists(st.lists(st.floats(0.001, 1), min_size=3, max_size=3), min_size=2, max_size=20)


def test_two_sources_that_know_different_words() -> None:
    # 3 of 4 words are the first source's, one the second's: each gets its share, whatever its certainty
    weights = mixture_weights([[0.3, 0], [0.9, 0], [0.5, 0], [0, 0.2]])
    np.testing.assert_allclose(weights, [0.75, 0.25], atol=1e-4)
    # a source that is missed nowhere has none; one that is missed hardly keeps a little
    assert mixture_weights([[0.3, 0.1], [0.9, 0.2]]).tolist() == [1, 0]
    rare = mixture_weights([[0.9, 0.1]] * 9_999 + [[0, 0.1]])
    assert 0 < rare[1] < 1e-3


@given(WORDS)
def test_no_other_weights_are_better(rows: list[list[float]]) -> None:
    q = np.array(rows)
    ours = mixture_weights(q)
    rng = np.random.default_rng(0)
    others = np.vstack([rng.dirichlet(np.ones(3), 200), np.eye(3)])
    assert np.log(q @ ours).mean() >= np.log(q @ others.T).mean(axis=0).max() - 1e-6


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


def test_a_word_that_the_other_groups_never_need_has_an_infinite_loss() -> None:
    """Texts of words that people know do without the uniform source; the one text with another word does not."""
    q = np.array([[0.5, 0.1], [0.4, 0.1], [0, 0.1], [0.5, 0.1]])
    assert held_out_mixture(q, ["a", "b", "c", "d"]).loss_nats[2] == np.inf
    # two such texts: each has the weight that the other one asks for
    twice = held_out_mixture(np.vstack([q, [0, 0.1]]), ["a", "b", "c", "d", "e"])
    assert np.isfinite(twice.loss_nats).all()
