"""The likelihood summed out on grids: against loops, central differences, the multinomial, and its own draws."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytensor.tensor as pt
import pytest
from scipy.special import ndtr

from shannon_game.estimators.errors import InputError
from shannon_game.models.comparison.latent_words import LatentWords, draw_words
from shannon_game.models.comparison.participant_data import ParticipantData, with_rows
from shannon_game.models.comparison.participants import Grid, _Table, _unanswered, words_of
from tests.models.comparison.participant_studies import by_hand
from tests.oracles.participants import item_posterior, report_probability, tabulated_cdf

GRID = Grid(step=1.0, e=(-2.0, 3.0), t=(-2.0, 2.0), log_sum=(-1.0, 1.4))
PEOPLE = (np.array([0.7, 1.3, 0.4]), np.array([0.3, -0.2, 0.0]), np.array([0.6, 1.1, 0.9]), 0.1, 0.3)


def three_items() -> ParticipantData:
    """One with reports and answers, one of which nobody answered, and one with a single report of the half."""
    tokens = [(0, 0.3), (0, 0.04), (0, 0.1), (1, 0.2), (1, 0.05), (2, 0.01)]
    rows = [(0, 0, 3), (0, 1, 5), (0, 2, 10), (1, 0, 9), (3, 1, 0), (3, 2, 4), (4, 0, 5), (5, 1, 5)]
    answers = {"n_answers": np.array([7, 0, 4]), "target_answers": np.array([2, 0, 3])}
    return by_hand([0.2, 0.5, 0.1], tokens, rows, token_answers=np.array([3, 0, 2, 0, 0, 1]), **answers)


def inputs_of(data: ParticipantData, grid: Grid, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Any law of the bins, and any weights of the targets and of ln lambda."""
    rng = np.random.default_rng(seed)
    law = rng.dirichlet(np.ones(grid.e_values.size), _Table.of(data, grid).bin_log_g.size)
    sizes = (grid.t_values.size, grid.log_lambda(data.n_answers).size)
    return law, *(rng.normal(0, 1, (data.item.size, size)) for size in sizes)


def chances(op: LatentWords, data: ParticipantData) -> np.ndarray:
    """Probability of every report at every place of its grid."""
    at = op.reports.log_odds[:, None] + op.items.step * np.arange(op.widest)
    rows = [[report_probability(data, row, d, PEOPLE, tabulated_cdf) for d in own] for row, own in enumerate(at)]
    return np.array(rows).reshape(at.shape)


def start_of(op: LatentWords, target: np.ndarray, quiet: np.ndarray) -> np.ndarray:
    """Logarithms of what the sum over t and ln lambda begins with, (item, lambda, t)."""
    return target[:, None, :] + op.items.answers + quiet[:, :, None]


def test_items_are_the_sum_over_every_place_of_their_grids() -> None:
    data = three_items()
    op, given = LatentWords(*words_of(data, GRID)), inputs_of(data, GRID)
    law, start = given[0], start_of(op, *given[1:])
    marginal, weight = np.zeros((data.token_item.size, law.shape[1])), np.empty(start.shape)
    total, *_, by_item, _, _ = op.values(*given, chances(op, data), marginal=marginal, posterior=weight)
    log_likelihood = 0.0
    for q in range(3):
        own = law[op.words.bin]
        likelihood, joint = item_posterior(data, q, own, start[q], GRID, PEOPLE, tabulated_cdf)
        log_likelihood += math.log(likelihood)
        tokens = np.flatnonzero(data.token_item == q)
        np.testing.assert_allclose(weight[q], joint.sum(axis=tuple(range(2, joint.ndim))), atol=1e-9)
        for at, x in enumerate(tokens):
            others = tuple(axis for axis in range(joint.ndim) if axis != 2 + at)
            np.testing.assert_allclose(marginal[x], joint.sum(axis=others), atol=1e-9)
        if q == 1:  # and the table of the normal CDF is fine enough
            exact = item_posterior(data, q, own, start[q], GRID, PEOPLE, ndtr)[0]
            assert likelihood == pytest.approx(exact, rel=1e-5)
    assert total == pytest.approx(log_likelihood, rel=1e-9)
    assert by_item.sum() == pytest.approx(total)


def test_inverse_means_leave_one_out() -> None:
    """1/p of a report or an answer given the rest of its item is a mean under the posterior with it."""
    data = three_items()
    op, given = LatentWords(*words_of(data, GRID)), inputs_of(data, GRID)
    total, *_, by_chance, _, by_word, by_target = op.values(*given, chances(op, data))
    for row in range(data.row_box.size):
        without = with_rows(data, np.arange(data.row_box.size) != row)
        other = LatentWords(*words_of(without, GRID))
        left = other.values(*given, chances(other, without), backward=False)[0]
        assert total - left == pytest.approx(-np.log(by_chance[row].sum()), abs=1e-9)
    grid = _Given(**vars(GRID))
    for q, x in ((0, 0), (0, 2), (0, None), (2, 5), (2, None)):
        n, words, targets = data.n_answers.copy(), data.token_answers.copy(), data.target_answers.copy()
        n[q] -= 1
        words[x if x is not None else 1] -= x is not None
        targets[q] -= x is None
        without = replace(data, n_answers=n, token_answers=words, target_answers=targets)
        left = LatentWords(*words_of(without, grid)).values(*given, chances(op, data), backward=False)[0]
        log_g, inverse = (data.target_log_g[q], by_target[q]) if x is None else (data.token_log_g[x], by_word[x])
        assert total - left == pytest.approx(log_g - np.log(n[q] * inverse), abs=1e-9)


class _Given(Grid):
    """The grid of ln lambda of all answers, whatever is left out."""

    def log_lambda(self, n_answers: np.ndarray) -> np.ndarray:
        return GRID.log_lambda(three_items().n_answers)


def test_gradients_are_central_differences() -> None:
    data = three_items()
    op = LatentWords(*words_of(data, GRID))
    given: list[Any] = [*inputs_of(data, GRID, 1), chances(op, data)]
    gradients = op.values(*given)[1:5]

    def moved(at: int, direction: Any, step: float) -> float:
        return float(op.values(*(x + step * direction if k == at else x for k, x in enumerate(given)))[0])

    rng = np.random.default_rng(2)
    for at, gradient in enumerate(gradients):
        for _ in range(4):
            # in proportion: chances are from 1e-3 to 1
            direction = rng.normal(size=np.shape(gradient)) * np.abs(given[at])
            far, near = ((moved(at, direction, h) - moved(at, direction, -h)) / (2 * h) for h in (2e-4, 1e-4))
            assert np.sum(gradient * direction) == pytest.approx((4 * near - far) / 3, rel=1e-5, abs=1e-5), at


def test_chances_of_another_shape_are_refused() -> None:
    data = three_items()
    op = LatentWords(*words_of(data, GRID))
    right = chances(op, data)
    for wrong in (right[:-1], right[:, :-1], right[0]):
        with pytest.raises(InputError, match="report likelihood"):
            op.values(*inputs_of(data, GRID), wrong)


@pytest.mark.parametrize(("n", "step", "error"), [(1, 0.8, 0.01), (4, 0.8, 0.02), (8, 0.8, 0.1), (30, 0.2, 1e-3)])
def test_free_answers_are_multinomial(n: int, step: float, error: float) -> None:
    """Every e known: Z^-n times the product of (g e^e)^answers, to the error of the quadrature over ln lambda."""
    e_token, e_rest, t = np.array([1.0, -1.0]), 0.5, 0.75
    target, seen, unknown = n // 2, np.array([n - n // 2 - n // 4, 0]), n // 4
    data = by_hand(
        [0.2],
        [(0, 0.3), (0, 0.05)],
        [],
        n_answers=np.array([n]),
        target_answers=np.array([target]),
        other_answers=np.array([unknown]),
        token_answers=seen,
        rest_item=np.zeros(3, dtype=int),
        rest_log_g=np.log([0.15, 0.002, 0.0001]),
        rest_count=np.array([2.0, 50.0, 500.0]),
        rest_drawn=np.array([True, False, False]),
    )
    grid = Grid(step=0.25, log_sum_step=step)
    table, op = _Table.of(data, grid), LatentWords(*words_of(data, grid))
    law = np.zeros((table.bin_log_g.size, grid.e_values.size))
    places = np.full(len(law), e_rest)
    places[op.words.bin] = e_token
    law[np.arange(len(law)), np.searchsorted(grid.e_values, places)] = 1.0
    prior = np.where(grid.t_values == t, 0.0, -1e3)
    quiet = _unanswered(pt.as_tensor(law), table)[0].eval()
    found = op.values(law, prior[None, :], quiet, np.ones((0, 1)))[0]

    h_target, h_seen = 0.2 * np.exp(t), np.array([0.3, 0.05]) * np.exp(e_token)
    z = h_target + h_seen.sum() + 0.45 * np.exp(e_rest)
    never = 0.15 * np.exp(e_rest)
    wanted = target * np.log(h_target / z) + seen @ np.log(h_seen / z) + unknown * np.log(never / z)
    assert found == pytest.approx(wanted, abs=error)


def test_draws_have_the_posterior_of_the_sums() -> None:
    data = three_items()
    op, given = LatentWords(*words_of(data, GRID)), inputs_of(data, GRID, 3)
    law, start = given[0], start_of(op, *given[1:])
    marginal, weight = np.zeros((data.token_item.size, law.shape[1])), np.empty(start.shape)
    chance = chances(op, data)
    op.values(*given, chance, marginal=marginal, posterior=weight)
    n = 5000
    draws = [draw_words(op, [*given, chance], seed) for seed in range(n)]
    t, z, e = (np.stack(part) for part in zip(*draws, strict=True))

    def check(place: np.ndarray, probability: np.ndarray) -> None:
        share = np.bincount(place, minlength=probability.size) / n
        assert np.abs(share - probability).max() < 4.5 * math.sqrt(0.25 / n)

    for x in range(data.token_item.size):
        check(e[:, x], marginal[x])
    for q in range(3):
        check(t[:, q], weight[q].sum(axis=0))
        check(z[:, q], weight[q].sum(axis=1))
    # and jointly: the target with its first word
    joint = item_posterior(data, 0, law[op.words.bin], start[0], GRID, PEOPLE, tabulated_cdf)[1].sum(axis=(0, 3, 4))
    check(t[:, 0] * law.shape[1] + e[:, 0], joint.ravel())
