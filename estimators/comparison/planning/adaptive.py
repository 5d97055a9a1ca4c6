r"""The next question, by how much it is expected to narrow the mean gap's interval.

The gap of an item is known from its tokens' labels (drawn or answered) up to the variance

.. math:: v_q = \frac{1}{W + W_0} - \frac{1}{n_h} - \frac{1}{n_g} + \sum_x a_x^2 \tau_x^2,
          \qquad W = \sum_x w_x, \quad w_x = n_x P_x (1 - P_x), \quad a_x = w_x / (W + W_0)

over the tokens whose log-ratio reports say, :math:`W_0 = .5` standing for what is known of an item without them: the
first three terms are the bridge's (Meng & Wong 1996), the last is
what reports leave open, :math:`\tau_x^2 = \beta^2 / (1/S^2 + m_x/\sigma^2)` after m reports. A comparison of a new
token adds its :math:`w_x`; one more of a known token lowers its :math:`\tau_x^2`; a free answer adds a label. What is
asked next is drawn with probabilities proportional to the expected reduction a second, mixed with equal ones, and the
probability is given back to be recorded.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.arrays import BoolArray, FloatArray, IntArray
from shannon_game.estimators.checks import check_numbers
from shannon_game.estimators.comparison.scaled_bridge import FLATTER, scaled_bridge
from shannon_game.estimators.comparison.simulation.settings import sigmoid
from shannon_game.estimators.comparison.token_pool import TokenPool
from shannon_game.estimators.display import Result
from shannon_game.estimators.errors import InputError

FREE_ANSWER = -2
"""Candidate of a question that asks for a free answer."""

_LEAST_WEIGHT = 0.1
_PRIOR_WEIGHT = 0.5  # an item of which nothing is known has a variance of two square nats, as gaps differ by about that
_STEPS = 8


@dataclass(frozen=True, eq=False, repr=False)
class QuestionState(Result):
    """What is known when the next question is chosen.

    A server changes ``n_reports`` and ``log_ratio`` after every report, and makes the state anew now and then.

    Attributes
    ----------
    item : ndarray of int, shape (token,)
        Position of the item, rising from 0.
    offset_nats : ndarray, shape (token,)
        ln g(y|c) - ln g(x|c).
    is_target, n_drawn, n_answered, n_reports : ndarray, shape (token,)
    log_ratio : ndarray, shape (token,)
        Mean of the reports, nats; any number where there is none.
    gap_nats : ndarray, shape (item,)
        Present estimates, from which the gains' own start.
    inverse_slope : float
        1/k: the belief's log-ratio for one nat of report.
    noise, spread : float
        Variance of a report, and of k D within an item around its line, square nats.
    intercept, line : float
        Of that line: k D = intercept + line * offset_nats, over all items.
    """

    item: IntArray
    offset_nats: FloatArray
    is_target: BoolArray
    n_drawn: IntArray
    n_answered: IntArray
    n_reports: IntArray
    log_ratio: FloatArray
    gap_nats: FloatArray
    inverse_slope: float
    noise: float
    spread: float
    intercept: float
    line: float


def question_state(pool: TokenPool) -> QuestionState:
    """Read from a study so far, with some answers and reports, what choosing the next question needs.

    Examples
    --------
    >>> comparison.question_state(comparison.examples.token_pool_example())
    QuestionState(inverse_slope=0.7516, noise=3.708, spread=0.02281, intercept=0.01673, ...)
    """
    found = scaled_bridge(pool, n_groups=2)
    n_reports = pool.n_reports
    total = np.bincount(pool.report_token, pool.report_log_ratio, minlength=pool.item.size)
    mean = total / np.maximum(n_reports, 1)
    seen = n_reports > 0
    o, d = pool.offset_nats[seen], mean[seen]
    spread_o = float(np.var(o))
    line = float(np.mean((o - o.mean()) * (d - d.mean())) / spread_o) if spread_o > 0 else 0.0
    intercept = float(d.mean() - line * o.mean())
    noise = float(np.nan_to_num(found.noise_nats, nan=1.0)) ** 2
    off = d - intercept - line * o
    spread = max(float(np.mean(off**2) - np.mean(noise / n_reports[seen])), 0.05 * float(np.mean(off**2)), 1e-6)
    gap = np.full(pool.n_items, found.gap_nats)
    gap[found.item] = found.item_gap_nats
    return QuestionState(
        item=pool.item,
        offset_nats=pool.offset_nats,
        is_target=pool.is_target,
        n_drawn=pool.n_drawn,
        n_answered=pool.n_answered,
        n_reports=n_reports,
        log_ratio=mean,
        gap_nats=gap,
        inverse_slope=1 / found.slope,
        noise=noise,
        spread=spread,
        intercept=intercept,
        line=line,
    )


def question_gains(state: QuestionState) -> tuple[FloatArray, FloatArray]:
    """Expected fall of the variance of the sum of all gaps, by a comparison (token,) and an answer (item,); nats^2."""
    item, n_items, target = state.item, state.gap_nats.size, state.is_target
    m = np.where(target, 0, state.n_reports)

    def by_item(values: NDArray[np.floating]) -> FloatArray:
        return np.bincount(item, values, minlength=n_items).astype(float)

    # each item's own level, pulled towards the line of all as far as its reports are few
    fitted = state.intercept + state.line * state.offset_nats
    precision = np.where(m > 0, 1 / (state.spread + state.noise / np.maximum(m, 1)), 0.0)
    level = by_item(precision * (state.log_ratio - fitted)) / (by_item(precision) + 1 / state.spread)
    prior = fitted + level[item]
    worth = m / (m + state.noise / state.spread)
    best = np.where(target, 0.0, prior + worth * (state.log_ratio * (m > 0) - prior * (m > 0)))
    beta2 = state.inverse_slope**2
    left = np.where(target, 0.0, beta2 * state.spread * (1 - worth))
    after = np.where(target, 0.0, beta2 / (1 / state.spread + (m + 1) / state.noise))
    flatter = 1 / np.sqrt(1 + FLATTER * left)
    n_h, n_g = by_item(state.n_answered * 1.0), by_item(state.n_drawn * 1.0)
    share = np.log(np.maximum(n_h, 0.5) / np.maximum(n_g, 0.5))
    u = state.inverse_slope * best + state.offset_nats + share[item]
    count, known = (state.n_answered + state.n_drawn) * 1.0, target | (m > 0)
    gap = state.gap_nats
    for _ in range(_STEPS):
        p = sigmoid(flatter * (u - gap[item]))
        off = by_item(np.where(known, flatter * (count * p - state.n_answered), 0.0))
        steep = by_item(np.where(known, flatter**2 * count * p * (1 - p), 0.0))
        gap = gap + np.clip(off / np.maximum(steep, _LEAST_WEIGHT), -1.0, 1.0)
    p = sigmoid(flatter * (u - gap[item]))
    weight = flatter**2 * count * p * (1 - p)
    inside = by_item(np.where(known, weight, 0.0))
    total = (inside + _PRIOR_WEIGHT)[item]
    open_part = by_item(np.where(known, weight**2 * left, 0.0))[item]
    more = total + weight
    fresh = 1 / total - 1 / more + open_part / total**2 - (open_part + weight**2 * after) / more**2
    again = weight**2 * (left - after) / total**2
    comparison = np.where(target, 0.0, np.maximum(np.where(known, again, fresh), 0.0))
    # an answer is expected to weigh what answers so far weigh, each
    each = by_item(state.n_answered * flatter**2 * p * (1 - p)) / np.maximum(n_h, 1)
    whole = by_item(weight) + _PRIOR_WEIGHT
    missing = 1 / np.maximum(n_h, 0.5) - 1 / (np.maximum(n_h, 0.5) + 1)
    answer = (
        1 / whole - 1 / (whole + each) - missing + by_item(weight**2 * left) * (1 / whole**2 - 1 / (whole + each) ** 2)
    )
    return comparison, np.maximum(answer, 0.0)


def next_question(
    state: QuestionState,
    rng: np.random.Generator,
    *,
    floor: float = 0.1,
    comparison_seconds: float = 15.0,
    answer_seconds: float | None = None,
) -> tuple[int, int, float]:
    """Choose the next question at random, the more probable the more it is expected to say in its time.

    It is an item, the row of a token in the state or :data:`FREE_ANSWER`, and the probability with which it was chosen,
    to be recorded with it.

    Parameters
    ----------
    floor : float
        Share of the probability that is the same for every question; above 0 up to 1.
    answer_seconds : float, optional
        Of a free answer and the comparison of its token; by default none is asked for.

    Examples
    --------
    >>> state = comparison.question_state(comparison.examples.token_pool_example())
    >>> item, candidate, probability = comparison.next_question(state, np.random.default_rng(0))
    >>> bool(state.item[candidate] == item), 0 < probability < 1
    (True, True)
    """
    probability = question_probabilities(
        state, floor=floor, comparison_seconds=comparison_seconds, answer_seconds=answer_seconds
    )
    place = int(np.searchsorted(np.cumsum(probability), rng.random() * probability.sum(), side="right"))
    place = min(place, probability.size - 1)
    n = state.item.size
    if place < n:
        return int(state.item[place]), place, float(probability[place])
    return place - n, FREE_ANSWER, float(probability[place])


def question_probabilities(
    state: QuestionState, *, floor: float, comparison_seconds: float, answer_seconds: float | None
) -> FloatArray:
    """Probabilities of all questions, (token + item,): comparisons, then free answers; see :func:`next_question`."""
    check_numbers({"floor": floor}, above=0, at_most=1)
    seconds = {"comparison_seconds": comparison_seconds, "answer_seconds": answer_seconds}
    check_numbers({name: value for name, value in seconds.items() if value is not None}, above=0)
    comparison, answer = question_gains(state)
    value = np.concatenate([comparison / comparison_seconds, answer / (answer_seconds or np.inf)])
    open_ = np.concatenate([~state.is_target, np.full(answer.size, answer_seconds is not None)])
    if not open_.any():
        raise InputError("has no token but targets; there is nothing to compare", field="state")
    equal = open_ / open_.sum()
    total = float(value.sum())
    found: FloatArray = equal if total <= 0 else floor * equal + (1 - floor) * value / total
    return found
