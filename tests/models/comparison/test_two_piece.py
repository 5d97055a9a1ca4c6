"""The two-piece normal against quadrature and simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate

from models.comparison import two_piece
from tests.oracles.belief import box_probability, density

SCALES = [(1.0, 1.0), (0.3, 0.9), (2.0, 0.7), (0.02, 0.05), (3.0, 2.5)]


def integral(function, s_left: float, s_right: float) -> float:
    mode = two_piece.mode(s_left, s_right)
    pieces = [(mode - 14 * s_left, mode), (mode, mode + 14 * max(s_right, s_right**2))]
    return sum(integrate.quad(function, a, b, limit=400)[0] for a, b in pieces)


@pytest.mark.parametrize(("s_left", "s_right"), SCALES)
def test_integrates_to_one_with_mean_zero(s_left, s_right):
    assert integral(lambda e: density(e, s_left, s_right), s_left, s_right) == pytest.approx(1, abs=1e-8)
    assert integral(lambda e: e * density(e, s_left, s_right), s_left, s_right) == pytest.approx(0, abs=1e-8)


@pytest.mark.parametrize(("s_left", "s_right"), SCALES)
def test_mean_of_exp_against_quadrature(s_left, s_right):
    wanted = integral(lambda e: np.exp(e) * density(e, s_left, s_right), s_left, s_right)
    found = two_piece.log_mean_exp(np.array([s_left]), np.array([s_right]))
    assert np.exp(found[0]) == pytest.approx(wanted, rel=1e-7)


def test_mean_of_exp_does_not_overflow():
    # for equal pieces it is the normal's s^2 / 2
    assert two_piece.log_mean_exp(np.array([60.0]), np.array([60.0]))[0] == pytest.approx(1800)


@pytest.mark.parametrize(("s_left", "s_right"), SCALES)
def test_draws_have_the_moments(s_left, s_right):
    n = 200_000
    left, right = np.full(n, s_left), np.full(n, s_right)
    e = two_piece.draw(left, right, np.random.default_rng(0))
    spread = np.sqrt(integral(lambda x: x**2 * density(x, s_left, s_right), s_left, s_right))
    assert abs(e.mean()) < 5 * spread / np.sqrt(n)
    assert e.std() == pytest.approx(spread, rel=0.02)
    assert np.mean(e < two_piece.mode(s_left, s_right)) == pytest.approx(s_left / (s_left + s_right), abs=0.006)


@pytest.mark.parametrize(("low", "high"), [(-np.inf, -1.0), (-0.5, 0.8), (1.2, 1.5), (2.0, np.inf), (-8.0, -7.0)])
def test_draws_inside_a_box_have_its_conditional_mean(low, high):
    s_left, s_right, n = 1.3, 0.7, 100_000
    shape = np.ones(n)
    e = two_piece.draw_inside(s_left * shape, s_right * shape, low * shape, high * shape, np.random.default_rng(1))
    assert e.min() >= low
    assert e.max() <= high
    a, b = max(low, -16.0), min(high, 12.0)
    mode = float(two_piece.mode(np.array(s_left), np.array(s_right)))
    first = integrate.quad(
        lambda x: x * density(x, s_left, s_right), a, b, points=[mode] if a < mode < b else None, epsabs=1e-14
    )
    wanted = first[0] / box_probability(low, high, s_left, s_right)
    assert e.mean() == pytest.approx(wanted, abs=max(5 * e.std() / np.sqrt(n), 1e-6))


def test_a_box_without_probability_gives_its_near_edge():
    one = np.ones(2)
    e = two_piece.draw_inside(
        0.02 * one, 0.02 * one, np.array([5.0, -6.0]), np.array([6.0, -5.0]), np.random.default_rng(2)
    )
    np.testing.assert_allclose(e, [5, -5])
