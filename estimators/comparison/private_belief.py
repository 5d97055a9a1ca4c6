r"""How far people's beliefs differ from each other, beyond how they report them.

Participant p compares token x of item q with the target y and reports

.. math:: d = b_p + k_p\,(a_q + \beta o_x + t_{qx} + z_{pq}) + \epsilon, \qquad o_x = \ln \frac{g(x)}{g(y)},

with bias and slope of the person, level of the item, a token's own :math:`t`, which people share, and :math:`z_{pq}`,
how far the person's own ln h(y) is from the shared one. Two tokens that one person compares with one target have the
same z; two people have not. So its variance can be told from noise if people compare two tokens of an item.

Bias, slope, level and :math:`\beta` are fixed, the three variances are found by restricted maximum likelihood
(:mod:`shannon_game.estimators.comparison.variance_components`), and the standard error by leaving out one person at a
time, which errs to the wide side. People who answer anything pull the estimate down.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

from shannon_game.estimators.arrays import BoolArray, Dataset, FloatArray, IntArray
from shannon_game.estimators.checks import check_numbers
from shannon_game.estimators.comparison.reports import log_ratio_from_report
from shannon_game.estimators.comparison.rounding import RoundingScheme, round_reports
from shannon_game.estimators.comparison.study import (
    COMPARISON,
    candidate_tokens,
    compared_with_target,
    generator_logprobs,
)
from shannon_game.estimators.comparison.variance_components import variance_components
from shannon_game.estimators.display import Result
from shannon_game.estimators.documents.clusters import t_half_width
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import response_positions

_SWEEPS = 40
_LEAST_SLOPE = 0.05
_LEAST = 1e-3  # variance of slopes, squares of log-ratios
_FEWEST_PEOPLE = 3


@dataclass(frozen=True, eq=False, repr=False)
class PrivateBelief(Result):
    """Variance between people of ln h of one token.

    Attributes
    ----------
    variance, se, lower, upper : float
        Square nats, with Student's interval; the estimate and the lower end may be negative.
    sd_nats : float
        Root of the variance; 0 where that is negative.
    p_shared : float
        One-sided probability of an estimate this large if people share one belief.
    loss_most_nats : float
        Mean loss of people one by one above that of the belief they share, at most: half of the upper end, at least 0.
    token_sd_nats, noise_sd_nats : float
        Of what people share beyond the generator, and of a report; 0 where the variance is negative.
    slope : float
        k, by which log-ratios were divided.
    n_repeated : int
        Pairs of a person and an item with two tokens.
    person, item, token : ndarray of int, shape (report,)
        Numbered from 0, in the order of items.
    residual_nats : ndarray, shape (report,)
        Log-ratio reported, less the person's bias and slope and the item's level.
    """

    variance: float
    se: float
    lower: float
    upper: float
    sd_nats: float
    p_shared: float
    loss_most_nats: float
    token_sd_nats: float
    noise_sd_nats: float
    slope: float
    n_reports: int
    n_repeated: int
    n_participants: int
    n_items: int
    person: IntArray = field(repr=False)
    item: IntArray = field(repr=False)
    token: IntArray = field(repr=False)
    residual_nats: FloatArray = field(repr=False)


@dataclass(frozen=True, eq=False)
class _Reports:
    """Reports in the order of items; every array has shape (report,)."""

    log_ratio: FloatArray
    offset: FloatArray
    person: IntArray
    item: IntArray
    token: IntArray

    def of(self, keep: BoolArray) -> _Reports:
        """Some of them; people, items and tokens are numbered anew."""
        return _Reports(
            self.log_ratio[keep],
            self.offset[keep],
            *(_codes(each[keep]) for each in (self.person, self.item, self.token)),
        )


def private_belief(
    study: Dataset, *, rounding: RoundingScheme | str = "none", slope: float = 1.0, probability: float = 0.9
) -> PrivateBelief:
    """Estimate how far people's beliefs differ, from their comparisons of several tokens of an item with its target.

    `slope` says how large the log-odds of reports are beside those of the belief (:func:`scaled_bridge`); with 1 the
    variance is that of reports.

    Examples
    --------
    >>> found = comparison.private_belief(comparison.examples.repeated_study())
    >>> found.lower < found.variance < found.upper
    True
    """
    study, source = COMPARISON.read(study), COMPARISON.source(study)
    check_numbers({"slope": slope}, "private_belief", above=0)
    reports = _reports(study, rounding)
    n_people, n_items = (int(each.max(initial=-1)) + 1 for each in (reports.person, reports.item))
    repeated = _repeated(reports)
    who = np.unique(repeated % max(n_people, 1))
    if who.size < _FEWEST_PEOPLE:
        cure = f"at least {_FEWEST_PEOPLE} are needed; ask for two tokens of an item in a row (n_comparisons_each=2)"
        problem = f"names {who.size} people who compared two tokens of one item with its target; {cure}"
        raise InputError(problem, source=source, field="participant")
    variances = _fit(reports)
    without = np.array([_fit(reports.of(reports.person != p), variances)[0] for p in who])
    n = who.size
    se = float(np.sqrt((n - 1) / n * np.sum((without - without.mean()) ** 2))) / slope**2
    person, token, noise = variances / slope**2
    half = t_half_width(se, n - 1, probability)
    fixed, _ = _design(reports)
    return PrivateBelief(
        variance=float(person),
        se=se,
        lower=float(person) - half,
        upper=float(person) + half,
        sd_nats=float(np.sqrt(max(person, 0))),
        p_shared=float(stdtr(n - 1, -float(person) / se)),
        loss_most_nats=max(float(person) + half, 0.0) / 2,
        token_sd_nats=float(np.sqrt(max(token, 0))),
        noise_sd_nats=float(np.sqrt(max(noise, 0))),
        slope=slope,
        n_reports=reports.item.size,
        n_repeated=repeated.size,
        n_participants=n_people,
        n_items=n_items,
        person=reports.person,
        item=reports.item,
        token=reports.token,
        residual_nats=reports.log_ratio - fixed @ np.linalg.lstsq(fixed, reports.log_ratio)[0],
    )


def _reports(study: Dataset, rounding: RoundingScheme | str) -> _Reports:
    code = candidate_tokens(study)
    candidate, keep = compared_with_target(study, code)
    report = round_reports(study["report"].to_numpy()[keep], rounding)
    item, candidate = response_positions(study)[keep], candidate[keep]
    target, drawn = (each.astype(float) for each in generator_logprobs(study))
    person = study["participant"].to_numpy()[keep].astype(str)
    order = np.argsort(item, kind="stable")
    found = _Reports(
        log_ratio_from_report(report)[order],
        (drawn[item, candidate] - target[item])[order],
        _codes(person[order]),
        item[order],
        (item * code.shape[1] + candidate)[order],
    )
    return found.of(np.ones(order.size, dtype=bool))


def _codes(names: NDArray[np.generic]) -> IntArray:
    codes: IntArray = np.unique(names, return_inverse=True)[1]
    return codes


def _repeated(reports: _Reports) -> IntArray:
    """Cells (item times people plus person) with two tokens."""
    n_people = int(reports.person.max(initial=-1)) + 1
    cell = reports.item * n_people + reports.person
    pairs = np.unique(np.column_stack([cell, reports.token]), axis=0)
    found, count = np.unique(pairs[:, 0], return_counts=True)
    return found[count > 1]


def _fit(reports: _Reports, start: FloatArray | None = None) -> FloatArray:
    """Variances of people's own views, of tokens, and of noise; with a start, one unbiased step from it."""
    fixed, k = _design(reports)
    row = np.arange(reports.item.size)
    cell = _codes(reports.item * (int(reports.person.max()) + 1) + reports.person)
    effects = [(k, cell), (k, reports.token), (np.ones(row.size), row)]
    steps = {} if start is None else {"max_steps": 1}
    return variance_components(reports.log_ratio, fixed, effects, reports.item, start=start, **steps)


def _design(reports: _Reports) -> tuple[FloatArray, FloatArray]:
    """Columns of the fixed effects, and the slope of every row's person."""
    slope, level = _slopes(reports)
    row, k = np.arange(reports.item.size), slope[reports.person]
    fixed = np.zeros((row.size, 2 * slope.size + int(reports.item.max()) + 2))
    fixed[row, reports.person], fixed[row, slope.size + reports.person] = 1, level
    fixed[row, 2 * slope.size + reports.item], fixed[:, -1] = k, k * reports.offset
    return fixed, k


def _slopes(reports: _Reports) -> tuple[FloatArray, FloatArray]:
    """Slope of everybody, of which the typical one is 1, and the level of every row that it multiplies."""
    d, o, p, q = reports.log_ratio, reports.offset, reports.person, reports.item
    n = np.bincount(p)
    k, bias, level = np.ones(n.size), np.zeros(n.size), np.zeros(d.size)
    freedom = max(d.size - 2 * n.size - int(q.max()) - 2, 1)
    for _ in range(_SWEEPS):
        # level of items and slope of offsets, given people
        w, own = k[p], d - bias[p]
        total = np.bincount(q, w**2)
        mean_d, mean_o = np.bincount(q, w * own) / total, np.bincount(q, w**2 * o) / total
        within = o - mean_o[q]
        spread = np.sum(w**2 * within**2)
        beta = np.sum(w * (own - w * mean_d[q]) * within) / spread if spread > 0 else 0.0
        level = mean_d[q] + beta * within
        # bias and slope of people, given those
        at, of = np.bincount(p, level) / n, np.bincount(p, d) / n
        x, y = level - at[p], d - of[p]
        squares = np.maximum(np.bincount(p, x**2), _LEAST)
        raw = np.bincount(p, x * y) / squares
        error = np.sum((y - raw[p] * x) ** 2) / freedom / squares
        differ = max(float(np.var(raw) - error.mean()), _LEAST)
        k = np.maximum(raw.mean() + (raw - raw.mean()) * differ / (differ + error), _LEAST_SLOPE)
        bias = of - k * at
        k /= np.exp(np.log(k).mean())
    return k, level
