"""Contexts of known truth, quick questions about them, and questions that are chosen one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shannon_game.estimators.comparison import (
    FREE_ANSWER,
    ParticipantPopulation,
    next_question,
    question_state,
    rounding_scheme,
)
from shannon_game.estimators.comparison.planning.adaptive import QuestionState, question_gains, question_probabilities
from shannon_game.estimators.comparison.planning.adaptive_study import QuestionPlan, simulate_adaptive
from shannon_game.estimators.comparison.planning.questions import (
    KnownContexts,
    assumed_belief,
    known_contexts,
    simulate_questions,
)

EXACT = ParticipantPopulation(bias=False, slope=False, noise=False, lapses=False)


def contexts(n: int, vocab: int, seed: int, spread: float = 1.0) -> KnownContexts:
    rng = np.random.default_rng(seed)
    g = 1.5 * rng.normal(size=(n, vocab))
    g -= np.logaddexp.reduce(g, axis=1, keepdims=True)
    h = assumed_belief(g, noise_nats=spread, rng=rng)
    target = (np.exp(h).cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    return known_contexts(g, h, target)


@settings(max_examples=30, deadline=None)
@given(exponent=st.floats(0.2, 4.0), share=st.floats(0.0, 0.9), noise=st.floats(0.0, 3.0), seed=st.integers(0, 1000))
def test_an_assumed_belief_is_a_distribution(exponent: float, share: float, noise: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    g = np.log(rng.dirichlet(np.ones(7), 4))
    h = assumed_belief(g, exponent=exponent, unigram_share=share, noise_nats=noise, rng=rng)
    np.testing.assert_allclose(np.exp(h).sum(axis=1), 1)
    if share > 0.01:
        assert (np.exp(h) >= share * np.exp(g).mean(axis=0) - 1e-12).all()


def test_reports_without_errors_are_the_belief() -> None:
    known = contexts(20, 30, 0)
    pool = simulate_questions(
        known, np.arange(20), EXACT, n_people=10, n_draws=5, n_answers=4, n_comparisons=6, scale="none",
        rng=np.random.default_rng(0),
    )  # fmt: skip
    # the offset says which token it is: ln g(y) - ln g(x)
    for x, value in zip(pool.report_token, pool.report_log_ratio, strict=True):
        q = pool.item[x]
        at = np.argmin(np.abs(known.generator[q, known.target[q]] - known.generator[q] - pool.offset_nats[x]))
        assert value == pytest.approx(known.belief[q, at] - known.belief[q, known.target[q]], abs=1e-6)


@settings(max_examples=20, deadline=None)
@given(draws=st.integers(1, 8), answers=st.integers(0, 6), comparisons=st.integers(1, 9), seed=st.integers(0, 100))
def test_everybody_is_asked_as_the_design_says(draws: int, answers: int, comparisons: int, seed: int) -> None:
    known = contexts(12, 25, 1)
    context = np.random.default_rng(seed).integers(0, 12, 15)
    pool = simulate_questions(
        known, context, ParticipantPopulation(), n_people=10, n_draws=draws, n_answers=answers,
        n_comparisons=comparisons, rng=np.random.default_rng(seed),
    )  # fmt: skip
    np.testing.assert_array_equal(np.bincount(pool.item, pool.n_drawn, 15), draws)
    np.testing.assert_array_equal(np.bincount(pool.item, pool.n_answered, 15), answers)
    open_items = np.unique(pool.item[~pool.is_target])
    asked = np.bincount(pool.item[pool.report_token], minlength=15)
    np.testing.assert_array_equal(asked[open_items], comparisons)
    # the tokens of an item are compared alike often
    for q in open_items:
        counts = pool.n_reports[(pool.item == q) & ~pool.is_target]
        assert counts.max() - counts.min() <= 1
        who = pool.report_person[pool.item[pool.report_token] == q]
        assert np.unique(who).size == who.size
    scale = rounding_scheme("slider").values
    report = 1 / (1 + np.exp(pool.report_log_ratio))
    assert np.abs(report[:, None] - np.array(scale)).min(axis=1, initial=1).max(initial=0) < 1e-9


def state(**changes: object) -> QuestionState:
    """One item: its target, two tokens compared once each, one that nobody compared."""
    fields = {
        "item": np.zeros(4, dtype=np.intp),
        "offset_nats": np.array([0.0, 0.2, 0.8, 0.5]),
        "is_target": np.array([True, False, False, False]),
        "n_drawn": np.array([2, 3, 2, 1]),
        "n_answered": np.array([3, 2, 1, 2]),
        "n_reports": np.array([0, 1, 1, 0]),
        "log_ratio": np.array([0.0, -0.4, -1.0, 0.0]),
        "gap_nats": np.array([0.1]),
        "inverse_slope": 1.0,
        "noise": 0.8,
        "spread": 2.0,
        "intercept": -0.5,
        "line": -0.3,
    }
    return QuestionState(**fields | changes)


def test_gains_stay_what_they_were() -> None:
    """Golden values of two items, made when of two questions the better one was found in 63 of 80 random cases."""
    two = state(
        item=np.array([0, 0, 0, 0, 1, 1]),
        offset_nats=np.array([0.0, 0.2, 0.8, 0.5, 0.0, 1.1]),
        is_target=np.array([True, False, False, False, True, False]),
        n_drawn=np.array([2, 3, 2, 1, 4, 4]),
        n_answered=np.array([3, 2, 1, 2, 3, 1]),
        n_reports=np.array([0, 1, 1, 0, 0, 2]),
        log_ratio=np.array([0.0, -0.4, -1.0, 0.0, 0.0, -0.6]),
        gap_nats=np.array([0.1, -0.2]),
        inverse_slope=0.8,
    )
    comparison, answer = question_gains(two)
    np.testing.assert_allclose(comparison, [0, 0.01481349, 0.00549192, 0.04240975, 0, 0.00870263], rtol=1e-5)
    np.testing.assert_allclose(answer, [0.00480151, 0], rtol=1e-5)


def test_one_more_report_where_nothing_else_is_open() -> None:
    """With a flat prior the variance that a report takes away is a^2 sigma^2 (1/m - 1/(m + 1))."""
    one = state(spread=1e9, n_reports=np.array([0, 4, 9, 1]), inverse_slope=0.1)
    gain, _ = question_gains(one)
    best = np.array([0.0, -0.4, -1.0, 0.0])
    m = np.array([np.inf, 4, 9, 1])
    left = 0.01 * 0.8 / m
    flat = 1 / np.sqrt(1 + 16**2 * 3 / (15 * np.pi) ** 2 * left)
    u = 0.1 * best + one.offset_nats
    low, high = -20.0, 20.0
    for _ in range(200):
        z = (low + high) / 2
        p = 1 / (1 + np.exp(-flat * (u - z)))
        low, high = (z, high) if np.sum(flat * (np.array([5, 5, 3, 3]) * p - one.n_answered)) > 0 else (low, z)
    weight = flat**2 * np.array([5, 5, 3, 3]) * p * (1 - p)
    a = weight / (weight.sum() + 0.5)  # half a unit stands for what is known beforehand
    np.testing.assert_allclose(gain[1:], (a**2 * 0.01 * 0.8 * (1 / m - 1 / (m + 1)))[1:], rtol=1e-3)
    assert gain[0] == 0


@settings(max_examples=25, deadline=None)
@given(floor=st.floats(0.01, 1.0), seed=st.integers(0, 200))
def test_every_question_can_be_asked_and_its_probability_is_said(floor: float, seed: int) -> None:
    known = contexts(6, 15, seed)
    rng = np.random.default_rng(seed)
    pool = simulate_questions(
        known, np.arange(6), ParticipantPopulation(), n_people=9, n_draws=4, n_answers=3, n_comparisons=3, rng=rng
    )
    one = question_state(pool)
    for answer_seconds in (None, 25.0):
        p = question_probabilities(one, floor=floor, comparison_seconds=15.0, answer_seconds=answer_seconds)
        assert p.sum() == pytest.approx(1)
        n_open = int((~one.is_target).sum()) + (6 if answer_seconds else 0)
        open_ = np.concatenate([~one.is_target, np.full(6, answer_seconds is not None)])
        assert (p[open_] >= floor / n_open - 1e-12).all()
        assert (p[~open_] == 0).all()
        item, candidate, said = next_question(one, rng, floor=floor, answer_seconds=answer_seconds)
        place = one.item.size + item if candidate == FREE_ANSWER else candidate
        assert said == pytest.approx(p[place])
        assert candidate == FREE_ANSWER or one.item[candidate] == item


@pytest.mark.parametrize("rule", ["gain", "fixed"])
def test_a_study_that_stops_at_its_width(rule: str) -> None:
    known = contexts(30, 25, 2)
    plan = QuestionPlan(rule=rule, width_nats=0.9, questions_a_look=60, n_answers=2, n_comparisons=3)
    found = simulate_adaptive(
        known, np.arange(30), ParticipantPopulation(), plan, n_people=40, rng=np.random.default_rng(1)
    )
    assert found.reached
    assert 2 * found.half_width_nats <= 0.9
    assert found.n_looks >= 2
    assert ((found.probability > 0) & (found.probability <= 1)).all()
    assert found.truth_nats == pytest.approx(known.gap_nats[found.estimate.item].mean())
