"""Sums over the tokens of every item against NumPy, token by token."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp

from inference.comparison.token_kernels import (
    add_residuals,
    add_terms,
    log_none_above,
    log_sums,
    note_above,
    predicted,
    start_sums,
)
from models.comparison import two_piece

N_DRAWS, N_ITEMS, N_TOKENS = 3, 4, 30


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(5)


def test_sums_are_those_of_all_terms(rng: np.random.Generator) -> None:
    item = rng.integers(N_ITEMS, size=N_TOKENS)
    first, shift, c = rng.normal(size=N_ITEMS), rng.normal(size=N_TOKENS), rng.random(N_DRAWS) * 2
    ratio = rng.normal(0, 40, (N_DRAWS, N_TOKENS))
    sums = start_sums(first, N_DRAWS)
    add_terms(sums, c, ratio, shift, item)
    for draw in range(N_DRAWS):
        terms = c[draw] * ratio[draw] + shift
        expected = [logsumexp([first[i], *terms[item == i]]) for i in range(N_ITEMS)]
        np.testing.assert_allclose(log_sums(sums)[draw], expected, rtol=1e-13)


def test_terms_beyond_every_number_neither_overflow_nor_vanish() -> None:
    sums = start_sums(np.zeros(1), 1)
    add_terms(sums, np.ones(1), np.array([[-2000.0, 3000.0, 3000.0]]), np.zeros(3), np.zeros(3, dtype=np.intp))
    assert log_sums(sums)[0, 0] == pytest.approx(3000 + np.log(2), rel=1e-14)


def test_means_and_residuals_are_those_of_numpy(rng: np.random.Generator) -> None:
    item = rng.integers(N_ITEMS, size=N_TOKENS)
    place, slope, lean = rng.normal(size=(3, N_DRAWS, N_ITEMS))
    b2, token = rng.normal(size=N_DRAWS), rng.normal(size=(4, N_TOKENS))
    found = predicted(place, slope, lean, b2, item, token)
    expected = place[:, item] + slope[:, item] * token[0] + b2[:, None] * token[1] + lean[:, item] * token[2] + token[3]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    left, right = rng.random((2, N_DRAWS, N_ITEMS)) + 0.1
    again = np.random.default_rng(8)
    add_residuals(found, left, right, item, again.standard_normal(found.shape), again.random(found.shape))
    expected += two_piece.draw(left[:, item], right[:, item], np.random.default_rng(8))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_probability_that_no_token_is_above_is_the_product_over_tokens(rng: np.random.Generator) -> None:
    item = rng.integers(N_ITEMS, size=N_TOKENS)
    mean, n_tokens = rng.normal(-1, 1, (N_DRAWS, N_TOKENS)), rng.integers(1, 4, N_TOKENS).astype(float)
    left, right = rng.random((2, N_DRAWS, N_ITEMS)) + 0.3
    mean[:, 0] = -1000.0
    below = two_piece.probability_inside(left[:, item], right[:, item], np.full(mean.shape, -np.inf), -mean)
    expected = np.stack([(n_tokens * np.log(below))[:, item == i].sum(axis=1) for i in range(N_ITEMS)], axis=1)
    np.testing.assert_allclose(log_none_above(mean, left, right, item, n_tokens), expected, rtol=1e-9, atol=1e-12)


def test_a_target_is_beaten_by_a_token_above_it_only() -> None:
    beaten = np.zeros((2, 3), dtype=np.bool_)
    note_above(beaten, np.array([[0.0, 0.1, -1.0], [-0.1, -3.0, 2.0]]), np.array([0, 1, 2]))
    np.testing.assert_array_equal(beaten, [[False, True, False], [False, False, True]])
