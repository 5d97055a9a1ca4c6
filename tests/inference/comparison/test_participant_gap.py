"""The participants' shared belief: gaps against sums, the scale from the labels, which token is the mode."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from shannon_game.inference.comparison.participant_gap import (
    OBJECTIVES,
    SharedBelief,
    loss_gap,
    outcome_temperature,
    top1_rate,
)
from shannon_game.models.comparison.participant_data import ParticipantData
from tests.models.comparison.participant_studies import by_hand
from tests.oracles.participants import label_loss

E = np.arange(-6.0, 6.25, 0.25)
N = 20_000


def belief_of(data: ParticipantData, target: np.ndarray, token: np.ndarray, seed: int = 0) -> SharedBelief:
    """Draws of targets and tokens; other tokens are in one bin, whose e is 0.5 or -1 with 0.3 and 0.7."""
    n = len(target)
    law = np.zeros((n, 1, E.size))
    law[:, 0, [np.flatnonzero(E == 0.5)[0], np.flatnonzero(E == -1)[0]]] = 0.3, 0.7
    noise = np.random.default_rng(seed).normal(size=(*target.shape, 2))
    rest_bin = np.zeros(data.rest_item.size, dtype=int)
    none = np.zeros(target.shape, dtype=int)
    return SharedBelief(data, target, token, law, E, rest_bin, np.ones((1, 1, E.size)), none, noise)


def with_rest() -> ParticipantData:
    """Two items of 0.4 and 0.5, two tokens on the first; of the rest, 5 tokens were drawn and 120 never."""
    rest = {"rest_item": np.array([0, 0, 1]), "rest_drawn": np.array([True, False, False])}
    rest |= {"rest_log_g": np.log([0.02, 0.005, 0.005]), "rest_count": np.array([5.0, 20.0, 100.0])}
    return by_hand([0.4, 0.5], [(0, 0.3), (0, 0.1)], [(0, 0, 3)], **rest)


@pytest.mark.parametrize("c", [0.4, 1.7])
def test_gap_is_the_sum_over_simulated_vocabularies(c: float) -> None:
    """Every other token is drawn from the law; of their sum the belief has a log-normal with its moments."""
    data, rng = with_rest(), np.random.default_rng(1)
    target, token = np.tile([0.5, -0.25], (N, 1)), np.tile([-1.0, 2.0], (N, 1))
    belief = belief_of(data, target, token)
    asked, drawn, never = belief.parts(c)
    wanted = 1 + sum((g * np.exp(e) / (0.4 * np.exp(0.5))) ** c for g, e in ((0.3, -1.0), (0.1, 2.0)))
    np.testing.assert_allclose(asked, np.tile([wanted, 1.0], (N, 1)))
    for found, q, g, count in ((drawn, 0, 0.02, 5), (never, 0, 0.005, 20), (never, 1, 0.005, 100)):
        n_high = rng.binomial(count, 0.3, size=N)
        sums = g**c * (n_high * np.exp(0.5 * c) + (count - n_high) * np.exp(-c))
        sums = sums / np.exp(data.target_log_g[q] + target[0, q]) ** c
        assert found[:, q].mean() == pytest.approx(sums.mean(), rel=0.01)
        assert found[:, q].std() == pytest.approx(sums.std(), rel=0.03)
    few = belief_of(data, target[:100], token[:100])
    asked, drawn, never = few.parts(c)
    np.testing.assert_allclose(loss_gap(few, c), data.target_log_g + np.log(asked + drawn + never))
    each = np.where(np.arange(100) % 2, c, 0.5)
    np.testing.assert_allclose(loss_gap(few, each)[1::2], loss_gap(few, c)[1::2])


def test_a_temperature_far_from_1_stays_within_all_floats() -> None:
    data = with_rest()
    belief = replace(belief_of(data, np.zeros((2000, 2)), np.zeros((2000, 2))), e=26 * E)
    # all but the largest terms vanish: of 100 tokens of 0.005, 30% at 13 nats
    wanted = np.log(30) + 30 * (np.log(0.005) + 13 - np.log(0.5))
    assert np.median(np.log(belief.parts(30.0)[2][:, 1])) == pytest.approx(wanted, abs=0.2)
    # bins that no token is in do not count, however rare those of the others are
    rare = replace(data, rest_log_g=data.rest_log_g - 25, rest_count=data.rest_count * np.exp(25))
    empty = replace(belief, data=rare, law=np.repeat(belief.law, 2, axis=1))
    assert np.isfinite(empty.parts(30.0)[2]).all()


def test_top1_by_hand() -> None:
    data = with_rest()
    # item 0: its tokens are below the target, or the second is above it; item 1: only the rest can be above
    target = np.tile([3.0, -4.5], (N, 1))
    token = np.tile([-1.0, 2.0], (N, 1))
    token[: N // 2, 1] = 5.0
    found = top1_rate(belief_of(data, target, token), np.random.default_rng(0))
    # 0.5 e^-4.5 = 0.0056 is below 0.005 e^0.5 = 0.0082 and above 0.005 e^-1: one of 100 is sure to have e = 0.5
    assert found[: N // 2].mean() == 0
    assert found[N // 2 :].mean() == 0.5
    few = replace(data, rest_count=np.array([5.0, 20.0, 2.0]))
    found = top1_rate(belief_of(few, target, token), np.random.default_rng(0))
    assert found[N // 2 :].mean() == pytest.approx((1 + 0.7**2) / 2, abs=4 * 0.5 / math.sqrt(N))


def labelled(n_items: int, n_shown: int, seed: int = 0) -> SharedBelief:
    """True log-ratios of a belief h of which every target is a draw, and tokens shown that g drew."""
    rng = np.random.default_rng(seed)
    vocabulary = 12
    h, g = rng.dirichlet(np.full(vocabulary, 0.5), n_items) + 1e-4, rng.dirichlet(np.full(vocabulary, 0.7), n_items)
    h, g = h / h.sum(axis=1, keepdims=True), (g + 1e-4) / (g + 1e-4).sum(axis=1, keepdims=True)
    tokens, e, times, same, target, target_e = [], [], [], [], [], []
    for q in range(n_items):
        y = rng.choice(vocabulary, p=h[q])
        count = np.bincount(rng.choice(vocabulary, n_shown, p=g[q]), minlength=vocabulary)
        shown = [x for x in np.flatnonzero(count) if x != y]
        same.append(count[y])
        target.append(g[q, y])
        target_e.append(np.log(h[q, y] / g[q, y]))
        tokens += [(q, g[q, x]) for x in shown]
        e += [np.log(h[q, x] / g[q, x]) for x in shown]
        times += [count[x] for x in shown]
    data = by_hand(target, tokens, [], target_shown=np.array(same), token_shown=np.array(times))
    return belief_of(data, np.array([target_e]), np.array([e]))


def scaled(belief: SharedBelief, factor: float) -> SharedBelief:
    """The same with log-ratios `factor` times as large."""
    data = belief.data
    token = belief.token + (factor - 1) * belief.token_log_ratio
    assert data.token_item.size == token.shape[1]
    return replace(belief, token=token)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_labels_give_back_the_scale_of_the_belief_that_made_them(objective: str) -> None:
    n = 6000
    belief, weight = labelled(n, 5), np.ones(n)
    found = outcome_temperature(belief, weight, objective=objective)[0]
    # its standard error by the bootstrap over items
    draws = np.random.default_rng(1).exponential(size=(40, n))
    target, token = np.repeat(belief.target, 40, axis=0), np.repeat(belief.token, 40, axis=0)
    error = outcome_temperature(belief_of(belief.data, target, token), draws, objective=objective).std()
    assert error < 0.05
    assert abs(found - 1) < 3 * error
    for factor in (0.25, 3.0):
        again = outcome_temperature(scaled(belief, factor), 7 * weight, objective=objective)[0]
        assert again == pytest.approx(found / factor, rel=1e-6)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_temperature_is_the_optimum_of_the_loss_written_out(objective: str) -> None:
    belief, weight = labelled(25, 4, seed=3), np.random.default_rng(2).exponential(size=25)
    found = outcome_temperature(belief, weight, objective=objective)[0]
    best = minimize_scalar(
        lambda c: label_loss(belief, 0, weight, c, objective), bounds=(0.001, 30), options={"xatol": 1e-9}
    )
    assert found == pytest.approx(best.x, rel=1e-4)


def test_a_token_that_nobody_answered_is_less_likely_the_longer_the_silence() -> None:
    """The law of other tokens is tilted by their probability of no answer."""
    data = with_rest()
    belief = belief_of(data, np.zeros((N, 2)), np.zeros((N, 2)))
    silence = np.stack([np.ones(E.size), np.exp(-np.exp(E))])[None]
    tilted = replace(belief, silence=silence, lambda_place=np.ones((N, 2), dtype=int))
    weight = np.array([0.3, 0.7]) * np.exp(-np.exp([0.5, -1.0]))
    wanted = 0.5 * (weight @ np.exp([0.5, -1.0])) / weight.sum() / 0.5
    assert tilted.parts()[2][:, 1].mean() == pytest.approx(wanted, rel=0.01)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_belief_that_the_labels_always_confirm_or_contradict_is_at_an_end(objective: str) -> None:
    belief = labelled(50, 4)
    for sign, end in ((-1, 30.0), (1, 0.001)):
        token = belief.token - belief.token_log_ratio + sign * np.abs(belief.token_log_ratio)
        found = outcome_temperature(replace(belief, token=token), np.ones(50), objective=objective)
        assert found[0] == pytest.approx(end, rel=1e-3)
