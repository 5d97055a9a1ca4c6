"""The bridge that finds the scale of reports."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from shannon_game.estimators.comparison import ParticipantPopulation, TokenPool, scaled_bridge, token_pool
from shannon_game.estimators.comparison.planning.questions import known_contexts, simulate_questions
from shannon_game.estimators.comparison.scaled_bridge import even_slopes, pool_errors
from tests.oracles.bridge import scaled_bridge_scores


def contexts(n: int, vocab: int, seed: int, spread: float = 1.0):
    """Contexts whose belief is the generator's with noise."""
    rng = np.random.default_rng(seed)
    g = 1.5 * rng.normal(size=(n, vocab))
    g -= np.logaddexp.reduce(g, axis=1, keepdims=True)
    h = g + spread * rng.normal(size=g.shape)
    h -= np.logaddexp.reduce(h, axis=1, keepdims=True)
    target = (np.exp(h).cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    return known_contexts(g, h, target)


def asked(seed: int, people: ParticipantPopulation, n: int = 40, **sizes: int) -> tuple[TokenPool, float]:
    """A simulated study and the true gap of its items."""
    known = contexts(n, 40, seed)
    each = {"n_people": 24, "n_draws": 8, "n_answers": 8, "n_comparisons": 12} | sizes
    pool = simulate_questions(known, np.arange(n), people, rng=np.random.default_rng(seed), scale="none", **each)
    return pool, float(known.gap_nats.mean())


@pytest.mark.parametrize("seed", range(3))
def test_the_equations_hold_token_by_token(seed: int) -> None:
    pool, _ = asked(seed, ParticipantPopulation(), n=20)
    found = scaled_bridge(pool)
    assert found.n_left_out == 0
    assert found.finds_scale
    evened = even_slopes(pool.report_log_ratio, pool.report_person).tolist()
    of_gap, of_slope = scaled_bridge_scores(pool, evened, found.slope, found.item_gap_nats.tolist())
    np.testing.assert_allclose(of_gap, 0, atol=1e-4)
    assert of_slope == pytest.approx(0, abs=1e-3)


@pytest.mark.parametrize("k", [0.4, 1.0, 2.5])
def test_labels_in_their_exact_shares_give_slope_and_gaps(k: float) -> None:
    """h = (.5, .3, .2) and g = (.25, .25, .5), y the first token; a hundred draws and a hundred answers an item."""
    h, g = np.array([0.5, 0.3, 0.2]), np.array([0.25, 0.25, 0.5])
    n = 3
    count = np.tile(np.rint(100 * h).astype(int), n)
    token = np.repeat(np.arange(3 * n), count)
    reported = np.repeat(np.flatnonzero(np.arange(3 * n) % 3), 2)
    pool = token_pool(
        item=np.repeat(np.arange(n), 3),
        offset_nats=np.tile(np.log(g[0] / g), n),
        is_target=np.tile([True, False, False], n),
        n_drawn=np.tile((100 * g).astype(int), n),
        answer_token=token,
        answer_person=np.arange(token.size) % 20,
        report_token=reported,
        report_person=np.arange(reported.size),
        report_log_ratio=k * np.log(h / h[0])[reported % 3],
    )
    found = scaled_bridge(pool)
    # everybody's reports are made equally large first, which costs a little where tokens differ in size
    assert found.slope == pytest.approx(k, rel=0.1)
    np.testing.assert_allclose(found.item_gap_nats, np.log(g[0] / h[0]), atol=0.03)


def test_at_a_limit_of_the_search_no_scale_is_found() -> None:
    pool, _ = asked(1, ParticipantPopulation())
    found = scaled_bridge(replace(pool, report_log_ratio=1e4 * pool.report_log_ratio))
    assert not found.finds_scale
    assert "no scale found" in repr(found)


def test_without_a_group_is_what_a_new_fit_gives() -> None:
    """The jackknife takes three steps from the fit of all; fitting anew without each group is the slow reference."""
    pool, _ = asked(2, ParticipantPopulation(), n=30)
    group = np.arange(pool.n_people) % 6
    means = []
    whole = scaled_bridge(pool, n_groups=6)
    for left in range(6):
        kept_report, kept_answer = group[pool.report_person] != left, group[pool.answer_person] != left
        part = replace(
            pool,
            report_token=pool.report_token[kept_report],
            report_person=pool.report_person[kept_report],
            report_log_ratio=pool.report_log_ratio[kept_report],
            answer_token=pool.answer_token[kept_answer],
            answer_person=pool.answer_person[kept_answer],
        )
        again = scaled_bridge(part)
        assert again.n_left_out == 0
        means.append(again.gap_nats)
    of_people = 5 / 6 * np.sum((np.array(means) - np.mean(means)) ** 2)
    assert whole.se_asked_nats**2 > of_people
    assert whole.se_asked_nats**2 - of_people < 0.3 * whole.se_asked_nats**2


def test_errors_of_a_mean_by_hand() -> None:
    """Two items, two groups: V_people = (1/2) sum over groups of (sum of changes / 2)^2 about their mean."""
    change = np.array([[1.0, 1.0], [-1.0, -1.0]])
    contexts, asked, variance = pool_errors(np.array([0.5, -0.5]), change, np.array([0.2, 0.2]), 2)
    of_people, of_cells, of_items = 0.5 * (4 + 4) / 4, 0.5 * 4 / 4, 2 * 0.5
    assert contexts == pytest.approx(np.sqrt(of_items + of_people - of_cells))
    assert asked == pytest.approx(np.sqrt(of_people + 0.4 / 4))
    np.testing.assert_allclose(variance, 0.5 * 2 + 0.2)


def test_intervals_for_contexts_cover() -> None:
    """60 studies of known coverage 90%: fewer than 45 has a probability under .001."""
    from scipy.special import stdtrit

    known = contexts(300, 40, 9)
    inside = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        people = ParticipantPopulation(slope_median=float(np.exp(0.5 * rng.normal())))
        pool = simulate_questions(
            known, rng.integers(0, 300, 50), people, n_people=20, n_draws=8, n_answers=8, n_comparisons=12, rng=rng
        )
        found = scaled_bridge(pool, n_groups=10)
        half = found.se_contexts_nats * stdtrit(found.freedom, 0.95)
        inside += abs(found.gap_nats - known.gap_nats.mean()) <= half
    assert inside >= 45
