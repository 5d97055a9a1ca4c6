r"""A bridge whose scale the free answers say: reports on any scale, shrunk to what they are worth, then a bridge.

Whether a token of the pool was answered or drawn depends on :math:`D = \ln h(x)/h(y)` with coefficient one (reverse
logistic regression, Geyer 1994),

.. math:: \mathrm{logit}\, P(\mathrm{answer}) = D_x + \ln \frac{g(y)}{g(x)} - \mathrm{gap}_q + \ln \frac{n_h}{n_g},

and given the token it does not depend on whether the token was asked about: any rule that chooses tokens by what is
known of them leaves this equation true. Reports say :math:`d_x = k D_x` plus noise. Within an item, log-ratios vary
around a line in ln g with the variance :math:`S^2`, and the mean of m reports around :math:`k D_x` with
:math:`\sigma^2/m`, so that the best guess of :math:`k D_x` is

.. math:: c_x = \bar d_q + b\,(o_x - \bar o_q) + \lambda_x\, (d_x - \bar d_q - b\,(o_x - \bar o_q)),
          \qquad \lambda_x = \frac{S^2}{S^2 + \sigma^2/m_x}, \quad o = \ln \frac{g(y)}{g(x)}

and :math:`D_x = \beta c_x` up to an error of variance :math:`\tau_x^2 = \beta^2 S^2 (1 - \lambda_x)`. One slope
:math:`\beta = 1/k` for the whole study and one gap an item are found together from the labels; a normal error in a
logistic curve makes it flatter by :math:`\kappa = (1 + .346\, \tau^2)^{-1/2}` (Zeger, Liang & Albert 1988).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.arrays import BoolArray, FloatArray, IntArray
from shannon_game.estimators.comparison.token_pool import TokenPool
from shannon_game.estimators.display import Result
from shannon_game.estimators.errors import InputError

FLATTER = 16**2 * 3 / (15 * np.pi) ** 2
""".346: how much a normal error of variance one flattens a logistic curve (Zeger, Liang & Albert 1988)."""

_STEPS = 60
_STEPS_WITHOUT = 3
_TOLERANCE = 1e-7
_BRACKET_NATS = 60.0
_SLOPES = (0.05, 20.0)  # of 1/k
_FIRST_SLOPE = 0.8
_MOST_VARIANCE = 100.0  # square nats, of an item whose draws and answers hardly overlap
_LEAST_SPREAD = 0.05  # of the variance of reports within an item, however noisy they are
_MEDIAN_VARIANCE = 1.4  # of ln of a sample's median absolute value, times its size, about a normal's
_LEAST = 1e-3


@dataclass(frozen=True, eq=False, repr=False)
class ScaledBridge(Result):
    """People's mean loss gap by the scaled bridge.

    Attributes
    ----------
    gap_nats : float
        Mean over the items used.
    se_contexts_nats, se_asked_nats : float
        Standard error for contexts of which the items are a sample, and for these very items.
    slope : float
        k: how large the log-odds of reports are beside those of the belief.
    noise_nats : float
        Standard deviation of a report around its token's mean; NaN where no token was compared twice.
    n_left_out : int
        Items without a known token on either side.
    item : ndarray of int, shape (item,)
        Those used.
    item_gap_nats, item_se_nats : ndarray, shape (item,)
        Of each, and its standard error: people and draws are samples.
    """

    gap_nats: float
    se_contexts_nats: float
    se_asked_nats: float
    freedom: int
    slope: float
    noise_nats: float
    n_left_out: int
    item: IntArray
    item_gap_nats: FloatArray
    item_se_nats: FloatArray

    @property
    def finds_scale(self) -> bool:
        """Whether the slope lies inside the limits of the search; at a limit the gap means nothing."""
        return bool(1 / _SLOPES[1] < (1 - _TOLERANCE) * self.slope < self.slope < (1 - _TOLERANCE) / _SLOPES[0])

    def __repr__(self) -> str:
        return super().__repr__() if self.finds_scale else "ScaledBridge(no scale found)"


def scaled_bridge(pool: TokenPool, *, n_groups: int = 20) -> ScaledBridge:
    """Estimate people's mean loss gap from draws, free answers and reports, on the scale that the answers say.

    Everybody's reports are first divided by how large they are beside the others'.

    Parameters
    ----------
    n_groups : int
        Groups of people that are left out in turn for the standard error.

    Examples
    --------
    h = (.8, .2), g = (.5, .5), y the first token, draws and answers in just these shares, reports twice too large:

    >>> pool = comparison.token_pool(
    ...     item=[0, 0], offset_nats=[0, 0], is_target=[True, False], n_drawn=[5, 5],
    ...     answer_token=[0] * 8 + [1] * 2, answer_person=np.arange(10),
    ...     report_token=[1] * 4, report_person=np.arange(4), report_log_ratio=[2 * np.log(0.25)] * 4,
    ... )
    >>> found = comparison.scaled_bridge(pool)
    >>> round(found.gap_nats, 4), round(found.slope, 3)
    (-0.47, 2.0)
    """
    TokenPool.require(pool=pool)
    if not pool.report_token.size or not pool.answer_token.size:
        raise InputError("has no item with both reports and free answers; a bridge needs both", field="pool")
    if pool.n_people < 2:
        raise InputError("has answers of one person, should have those of two at least", field="pool")
    log_ratio = even_slopes(pool.report_log_ratio, pool.report_person)
    sums = pool_sums(pool, log_ratio)
    whole = _solved(_curve(sums), sums)
    if not whole.used[0].any():
        raise InputError("has no item with known tokens among both draws and answers", field="pool")
    if not whole.information[0] > 0:
        raise InputError("has too few reports and answers on the same items to say how steep reports are", field="pool")
    group = np.arange(pool.n_people) % min(pool.n_people, n_groups)
    without = pool_sums(pool, log_ratio, group)
    left = _moved(_curve(without), without, whole)
    used, gap = whole.used[0], whole.gap[0]
    mean = float(gap[used].mean())
    n = int(used.sum())
    influence = (gap[used] - mean) / n + whole.middle[0, used].mean() * whole.score[0, used] / whole.information[0]
    change = np.where(left.used, left.gap - gap, 0.0)[:, used]
    n_groups = int(group.max()) + 1
    se_contexts, se_asked, variance = pool_errors(influence, change, _draw_variance(whole, sums)[used], n_groups)
    return ScaledBridge(
        gap_nats=mean,
        se_contexts_nats=se_contexts,
        se_asked_nats=se_asked,
        freedom=max(min(n, n_groups) - 1, 1),
        slope=float(1 / whole.inverse_slope[0, 0]),
        noise_nats=float(np.sqrt(sums.noise[0, 0])),
        n_left_out=int((~used).sum()),
        item=np.flatnonzero(used),
        item_gap_nats=gap[used],
        item_se_nats=np.sqrt(variance),
    )


@dataclass(frozen=True, eq=False)
class _Curve:
    """What reports are worth, and the labels; (group, token) or (group, item)."""

    best: FloatArray  # best guess of k D
    left: FloatArray  # variance that is left of it
    known: BoolArray
    answered: FloatArray  # 0 where nothing is known
    drawn: FloatArray
    share: FloatArray  # ln n_h / n_g of the item
    used: BoolArray  # whether the item has known tokens of both kinds


@dataclass(frozen=True, eq=False)
class _Solution:
    gap: FloatArray  # (group, item)
    used: BoolArray  # (group, item)
    inverse_slope: FloatArray  # (group, 1)
    p_answer: FloatArray  # (group, token)
    flatter: FloatArray  # (group, token)
    step: FloatArray  # (group, item): Newton's, on the log scale
    excess: FloatArray  # (group, item): expected less observed answers
    steep: FloatArray  # (group, item): derivative of the item's equation
    middle: FloatArray  # (group, item): d gap / d inverse slope
    score: FloatArray  # (group, item): of the inverse slope
    information: FloatArray  # (group,)


def _curve(sums: PoolSums) -> _Curve:
    """Shrink the mean reports of each item towards a line in ln g."""
    pool, start, target = sums.pool, sums.start, sums.pool.is_target
    known = target | (sums.n_reports > 0)
    best, left = _shrunk(sums)
    answered, drawn = sums.n_answered, np.broadcast_to(pool.n_drawn.astype(float), known.shape)
    n_h, n_g = by_item(answered, start), by_item(drawn, start)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where((n_h > 0) & (n_g > 0), np.log(n_h) - np.log(n_g), 0.0)
    answered, drawn = np.where(known, answered, 0.0), np.where(known, drawn, 0.0)
    used = (by_item(answered, start) > 0) & (by_item(drawn, start) > 0)
    return _Curve(best, left, known, answered, drawn, share, used)


def _shrunk(sums: PoolSums) -> tuple[FloatArray, FloatArray]:
    """Best guess of k D of every token, and the variance that is left of it."""
    item, start = sums.pool.item, sums.start
    seen = (sums.n_reports > 0) & ~sums.pool.is_target
    d, o = np.where(seen, sums.log_ratio, 0.0), np.where(seen, sums.pool.offset_nats, 0.0)
    count = np.maximum(by_item(seen * 1.0, start), 1.0)
    mean_d, mean_o = by_item(d, start) / count, by_item(o, start) / count
    d_in, o_in = np.where(seen, d - mean_d[:, item], 0.0), np.where(seen, o - mean_o[:, item], 0.0)
    number = np.maximum(seen.sum(axis=1, keepdims=True), 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        line = np.nan_to_num((d_in * o_in).sum(axis=1, keepdims=True) / (o_in**2).sum(axis=1, keepdims=True))
        off_line = d_in - line * o_in
        total = (off_line**2).sum(axis=1, keepdims=True) / np.maximum((count - 1).sum(axis=1, keepdims=True), 1)
        error = np.where(seen, np.nan_to_num(sums.noise) / np.maximum(sums.n_reports, 1), 0.0)
        spread = np.maximum(total - error.sum(axis=1, keepdims=True) / number, _LEAST_SPREAD * total)
        worth = np.where(spread + error > 0, spread / (spread + error), 1.0)
    best = np.where(seen, mean_d[:, item] + line * o_in + worth * off_line, 0.0)
    return best, np.where(seen, spread * (1 - worth), 0.0)


def _solved(curve: _Curve, sums: PoolSums) -> _Solution:
    """Newton's steps on all gaps and the slope, each gap inside a bracket."""
    beta = np.full((curve.best.shape[0], 1), _FIRST_SLOPE)
    u = np.where(curve.known, beta * curve.best + sums.pool.offset_nats, 0.0)
    gap = by_item(u, sums.start) / np.maximum(by_item(curve.known * 1.0, sums.start), 1)
    low, high = gap - _BRACKET_NATS, gap + _BRACKET_NATS
    found = _at(curve, sums, beta, gap)
    for _ in range(_STEPS):
        gap = found.gap
        # the root lies above where more is expected than was answered
        low, high = np.where(found.excess >= 0, gap, low), np.where(found.excess <= 0, gap, high)
        newton = gap + found.step
        step = np.where((newton > low) & (newton < high), newton, (low + high) / 2)
        step = np.where(curve.used, step, gap)
        moved = float(np.abs(step - gap).max())
        shift = np.clip(_slope_step(found), -0.3 * beta, 0.5 * beta)
        shift = np.clip(shift, _SLOPES[0] - beta, _SLOPES[1] - beta)
        # each gap follows the slope along its own line; the bracket moves with it, and a bit farther
        follow, room = found.middle * shift, 5 * np.abs(shift)
        step, low, high = step + follow, low + follow - room, high + follow + room
        beta = beta + shift
        found = _at(curve, sums, beta, step)
        if max(moved, float(np.abs(shift).max())) < _TOLERANCE:
            break
    return found


def _moved(curve: _Curve, sums: PoolSums, whole: _Solution) -> _Solution:
    """Gaps without each group of people: a few steps from those of all."""
    beta = np.repeat(whole.inverse_slope, curve.best.shape[0], axis=0)
    found = _at(curve, sums, beta, np.repeat(whole.gap, curve.best.shape[0], axis=0))
    for _ in range(_STEPS_WITHOUT):
        step = np.clip(found.step, -1.0, 1.0)
        shift = np.clip(_slope_step(found), -0.2 * beta, 0.2 * beta)
        beta = beta + shift
        found = _at(curve, sums, beta, found.gap + step + found.middle * shift)
    return found


def _slope_step(found: _Solution) -> FloatArray:
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        step: FloatArray = np.nan_to_num(found.score.sum(axis=1) / found.information)[:, None]
    return step


def _at(curve: _Curve, sums: PoolSums, beta: FloatArray, gap: FloatArray) -> _Solution:
    """Evaluate the equations at a slope and gaps."""
    item, start = sums.pool.item, sums.start
    flatter = 1 / np.sqrt(1 + FLATTER * beta**2 * curve.left)
    logit = flatter * (beta * curve.best + sums.pool.offset_nats + (curve.share - gap)[:, item])
    small = np.exp(-np.abs(logit))
    p, other = np.where(logit >= 0, 1.0, small) / (1 + small), np.where(logit >= 0, small, 1.0) / (1 + small)
    weight = flatter**2 * p * other
    drawn, given = by_item(flatter * curve.drawn * p, start), by_item(flatter * curve.answered * other, start)
    steep_drawn, steep_given = by_item(weight * curve.drawn, start), by_item(weight * curve.answered, start)
    steep = steep_drawn + steep_given
    weight = weight * (curve.drawn + curve.answered)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        middle = np.nan_to_num(by_item(weight * curve.best, start) / steep)
        step = np.nan_to_num((np.log(drawn) - np.log(given)) / (steep_drawn / drawn + steep_given / given))
    apart = np.where(curve.used[:, item], curve.best - middle[:, item], 0.0)
    return _Solution(
        gap=gap,
        used=curve.used,
        inverse_slope=beta,
        p_answer=np.where(curve.known, p, np.nan),
        flatter=flatter,
        step=np.where(curve.used, step, 0.0),
        excess=np.where(curve.used, drawn - given, 0.0),
        steep=steep,
        middle=middle,
        score=by_item(flatter * (curve.answered * other - curve.drawn * p) * apart, start),
        information=np.sum(weight * apart**2, axis=1),
    )


def _draw_variance(whole: _Solution, sums: PoolSums) -> FloatArray:
    """Variance of each item's gap because its draws are a sample, (item,)."""
    part = np.nan_to_num(whole.flatter[0] * whole.p_answer[0])
    n = np.where(np.isnan(whole.p_answer[0]), 0.0, sums.pool.n_drawn)
    total = by_item(n, sums.start)
    mean = by_item(n * part, sums.start) / np.maximum(total, 1)
    square = by_item(n * (part - mean[sums.pool.item]) ** 2, sums.start)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        found: FloatArray = np.where(whole.steep[0] > 0, square / whole.steep[0] ** 2, 0.0)
    return np.minimum(found, _MOST_VARIANCE)


@dataclass(frozen=True, eq=False)
class PoolSums:
    """Sums of a pool; the leading axis is what was left out: nothing, or one group of people after another."""

    pool: TokenPool
    start: IntArray
    n_reports: FloatArray
    log_ratio: FloatArray
    n_answered: FloatArray
    noise: FloatArray


def pool_sums(pool: TokenPool, log_ratio: FloatArray, group: IntArray | None = None) -> PoolSums:
    """Sum the reports and answers of a pool, of all people or without one group of them after another."""
    size = pool.item.size
    whole = [np.bincount(pool.report_token, weight, size)[None] for weight in (None, log_ratio, log_ratio**2)]
    answered = np.bincount(pool.answer_token, minlength=size)[None].astype(float)
    if group is not None:
        n = int(group.max()) + 1
        of_report = group[pool.report_person] * size + pool.report_token
        whole = [
            total - np.bincount(of_report, weight, n * size).reshape(n, size)
            for total, weight in zip(whole, (None, log_ratio, log_ratio**2), strict=True)
        ]
        of_answer = group[pool.answer_person] * size + pool.answer_token
        answered = answered - np.bincount(of_answer, minlength=n * size).reshape(n, size)
    count, total, square = whole
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.where(pool.is_target, 0.0, np.where(count > 0, total / count, np.nan))
        left = np.where(count > 1, square - total**2 / count, 0.0).sum(axis=1, keepdims=True)
        noise = left / np.maximum(count - 1, 0).sum(axis=1, keepdims=True)
    start = np.flatnonzero(np.diff(pool.item, prepend=-1))
    return PoolSums(pool, start, count.astype(float), mean, answered, noise)


def by_item(values: NDArray[np.floating], start: IntArray) -> FloatArray:
    """Sums over the tokens of each item, (group, token) to (group, item)."""
    return np.add.reduceat(values, start, axis=-1)


def even_slopes(log_ratio: FloatArray, person: IntArray) -> FloatArray:
    """Divide everybody's reports by how large they are beside the others', pulled towards one by their number."""
    from scipy import ndimage  # noqa: PLC0415 - of the commands that import this module few call it

    n = int(person.max()) + 1
    count = np.bincount(person, minlength=n)
    here = np.flatnonzero(count > 0)
    log_size = np.log(np.maximum(ndimage.median(np.abs(log_ratio), person, here), _LEAST))
    error = _MEDIAN_VARIANCE / count[here]
    spread = max(float(np.var(log_size) - error.mean()), _LEAST)
    factor = np.zeros(n)
    factor[here] = (log_size - log_size.mean()) * spread / (spread + error)
    return log_ratio / np.exp(factor)[person]


def pool_errors(
    influence: FloatArray, change: FloatArray, draw_variance: FloatArray, n_groups: int
) -> tuple[float, float, FloatArray]:
    """Standard errors of the mean over items, for a sample of contexts and for those asked; variance of each item."""
    n = influence.size
    factor = (n_groups - 1) / n_groups if n_groups > 1 else np.nan
    centred = change - change.mean(axis=0)
    of_people = factor * float(np.sum(centred.sum(axis=1) ** 2)) / n**2
    of_cells = factor * float(np.sum(centred**2)) / n**2
    of_items = n / (n - 1) * float(np.sum(influence**2)) if n > 1 else np.nan
    se_contexts = float(np.sqrt(of_items + np.maximum(of_people - of_cells, 0.0)))
    se_asked = float(np.sqrt(of_people + draw_variance.sum() / n**2))
    return se_contexts, se_asked, factor * np.sum(centred**2, axis=0) + draw_variance
