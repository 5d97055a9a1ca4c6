"""Reports, rounding schemes and the game's score."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from shannon_game.estimators.comparison import (
    SCHEMES,
    RoundingScheme,
    expected_score,
    log_ratio_from_report,
    optimal_report,
    rational_report,
    report_from_log_ratio,
    round_reports,
    score,
)
from shannon_game.estimators.comparison.rounding import report_boxes
from shannon_game.estimators.errors import InputError
from tests.oracles.comparison_game import nearest, round_half_even_tenths

probability = st.floats(1e-6, 1 - 1e-6)
logprob = st.floats(-12, -1e-3)
named = [name for name in SCHEMES if name != "none"]


@given(probability)
def test_report_and_ratio_are_inverse(p: float) -> None:
    assert np.exp(log_ratio_from_report(p)) == pytest.approx(1 / p - 1, rel=1e-9)
    assert report_from_log_ratio(log_ratio_from_report(p)) == pytest.approx(p, rel=1e-12)


@given(st.floats(0, 1))
def test_interface_is_round_half_even_of_ten_p(p: float) -> None:
    assert round_reports(p, "interface") == pytest.approx(round_half_even_tenths(p), abs=1e-15)


@pytest.mark.parametrize("name", ["coarse", "coarser", "interface_nearest", "fine_ends"])
@given(p=st.floats(0, 1))
def test_nearest_in_probability(name: str, p: float) -> None:
    assert round_reports(p, name) == nearest(SCHEMES[name].values)(p)


@given(st.floats(0.001, 0.999))
def test_nearest_in_log_odds(p: float) -> None:
    values = SCHEMES["fine_ends_log_odds"].values
    best = min(values, key=lambda value: abs(np.log(p / (1 - p)) - np.log(value / (1 - value))))
    assert round_reports(p, "fine_ends_log_odds") == best


@pytest.mark.parametrize("tie", ["lower", "upper", "even"])
def test_tie_rule(tie: str) -> None:
    scheme = RoundingScheme("own", (0.2, 0.4, 0.6), tie=tie)  # type: ignore[arg-type]
    expected = {"lower": [0.2, 0.4], "upper": [0.4, 0.6], "even": [0.2, 0.6]}[tie]
    np.testing.assert_array_equal(round_reports([0.3, 0.5], scheme), expected)


@pytest.mark.parametrize("name", named)
@given(p=st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_rounding_is_idempotent_monotone_and_inside_its_box(name: str, p: list[float]) -> None:
    rounded = round_reports(np.sort(p), name)
    np.testing.assert_array_equal(round_reports(rounded, name), rounded)
    assert np.all(np.diff(rounded) >= 0)
    boxes = report_boxes(name)
    values = np.asarray(SCHEMES[name].values)
    box = boxes[np.searchsorted(values, rounded)]
    assert np.all((np.sort(p) >= box[:, 0] - 1e-9) & (np.sort(p) <= box[:, 1] + 1e-9))


@pytest.mark.parametrize(("name", "odds"), [("slider", 1e4), ("slider_wide", 1e8)])
def test_sliders_have_equal_steps_of_log_odds(name: str, odds: float) -> None:
    values = np.asarray(SCHEMES[name].values)
    log_odds = np.log(values) - np.log1p(-values)
    steps = np.diff(log_odds)
    assert_allclose(steps, steps[0], rtol=1e-5)  # 1 - 1e-8 has nine digits
    assert 0.095 < steps[0] <= 0.1
    assert_allclose(log_odds[[0, -1]], [-np.log(odds), np.log(odds)], rtol=1e-8)
    assert values[values.size // 2] == 0.5


def test_no_rounding_changes_nothing() -> None:
    np.testing.assert_array_equal(round_reports([0.123, 0.9], "none"), [0.123, 0.9])
    with pytest.raises(InputError, match="no boxes"):
        report_boxes("none")


def test_positions_of_log_odds_are_cut_half_way_in_log_odds() -> None:
    scheme = RoundingScheme("own", (0.2, 0.5), positions=(0.1, 0.5), space="log_odds")
    # half-way between ln(1/9) and 0: odds of 1/3
    np.testing.assert_allclose(report_boxes(scheme), [[0, 0.25], [0.25, 1]])
    np.testing.assert_array_equal(round_reports([0.0, 0.24, 0.26, 1.0], scheme), [0.2, 0.2, 0.5, 0.5])
    # values at positions of their own, which may reach 0 and 1 on the scale of probabilities
    ends = RoundingScheme("ends", (0.01, 0.99), positions=(0.0, 1.0))
    np.testing.assert_array_equal(round_reports([0.49, 0.51], ends), [0.01, 0.99])


@given(logprob, logprob, logprob, logprob)
def test_score_is_proper_whatever_the_generator(y: float, x: float, gy: float, gx: float) -> None:
    """No report on a fine grid earns more than h(y) / (h(y) + h(x))."""
    best = optimal_report(y, x)
    others = np.linspace(0.001, 0.999, 500)
    assert np.all(expected_score(others, y, x, gy, gx) <= expected_score(best, y, x, gy, gx) + 1e-9)


def test_score_of_one_half_is_nothing() -> None:
    assert score(0.5, -1.0) == 0
    assert score(1.0, np.log(0.2)) == pytest.approx(200 * np.log(2))


def test_rational_agent_by_enumeration() -> None:
    h_y, h_x, g_y, g_x = 0.3, 0.05, 0.1, 0.2
    posterior = h_y * g_x / (h_y * g_x + h_x * g_y)
    assert rational_report(*np.log([h_y, h_x, g_y, g_x])) == pytest.approx(posterior)
