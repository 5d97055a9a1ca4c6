"""Energy distance of word vectors: by hand, against loops over answers, and without bias."""

from __future__ import annotations

import numpy as np
import pytest

from shannon_game.estimators.cloze import count_words, energy_distance


def loops(first: list[int], second: list[int], vectors: np.ndarray) -> float:
    """The definition, a pair of answers at a time."""
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def mean(one: list[int], other: list[int], *, same: bool) -> float:
        pairs = [(a, b) for i, a in enumerate(one) for j, b in enumerate(other) if not (same and i == j)]
        return float(np.mean([np.linalg.norm(unit[a] - unit[b]) for a, b in pairs]))

    return 2 * mean(first, second, same=False) - mean(first, first, same=True) - mean(second, second, same=True)


def test_the_definition_in_several_contexts() -> None:
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(9, 4))
    answers = [(rng.integers(0, 9, 7).tolist(), rng.integers(0, 9, 5).tolist()) for _ in range(6)]
    sides = []
    for side in (0, 1):
        context = np.concatenate([np.full(len(pair[side]), at) for at, pair in enumerate(answers)])
        words = np.concatenate([pair[side] for pair in answers])
        sides.append(count_words(context, words, np.ones(len(words), dtype=int), n_contexts=6))
    found = energy_distance(*sides, vectors)
    np.testing.assert_allclose(found.distance, [loops(*pair, vectors) for pair in answers], atol=1e-12)
    # lengths do not matter
    scaled = energy_distance(*sides, vectors * rng.uniform(0.1, 10, size=(9, 1)))
    np.testing.assert_allclose(scaled.distance, found.distance, atol=1e-9)


def test_words_without_a_vector_are_left_out() -> None:
    first = count_words([0, 0, 1], [0, 1, 1], [3, 1, 5], n_contexts=2)
    found = energy_distance(first, first, [[1.0, 0.0], [np.nan, np.nan]])
    assert found.distance[0] == 0
    assert np.isnan(found.distance[1])
    assert found.known_first == pytest.approx(3 / 9)
