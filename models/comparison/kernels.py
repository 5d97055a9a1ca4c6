r"""Log-densities of the belief model and the participant model with their gradients, written out for Numba.

Functions called ``add_`` add a gradient to an array and give the log-density. Fast maths is off,
so that nothing is summed in another order on another day.
"""

from __future__ import annotations

from math import asinh, atanh, cosh, exp, lgamma, log, log1p, pi, sinh, sqrt, tanh
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx

from models.comparison.participants import ITEM_SCALE_BOUND, SCALE_FLOOR, SLOPE_BOUND, TINY
from models.compiled import compiled

__all__ = [
    "BELIEF_NUMBERS",
    "PARTICIPANT_NUMBERS",
    "TURN",
    "answers_log_density",
    "belief_items",
    "belief_log_density",
    "items_of",
    "participant_log_density",
    "participant_moves",
    "people_of",
]

FloatArray = NDArray[np.float64]


_HALF_LOG_2_PI = 0.5 * log(2 * pi)
_ROOT_2_PI = sqrt(2 / pi)
_NOTHING_BEYOND = 38.6
"""Where e^(-t^2 / 2) is 0."""


@compiled
def _add_normal(x: FloatArray, g: FloatArray, i: int, mean: float, sd: float) -> float:
    """A normal number."""
    g[i] -= (x[i] - mean) / sd**2
    density: float = -0.5 * ((x[i] - mean) / sd) ** 2 - log(sd) - _HALF_LOG_2_PI
    return density


@compiled
def _add_half_normal(x: FloatArray, g: FloatArray, i: int, sd: float) -> float:
    """A half-normal number that is given as its logarithm."""
    square = (exp(x[i]) / sd) ** 2
    g[i] += 1 - square
    density: float = log(2.0) - _HALF_LOG_2_PI - log(sd) - 0.5 * square + x[i]
    return density


@compiled
def _add_gamma(x: FloatArray, g: FloatArray, i: int, alpha: float, beta: float) -> float:
    """A gamma-distributed number that is given as its logarithm."""
    g[i] += alpha - beta * exp(x[i])
    density: float = alpha * log(beta) - lgamma(alpha) + alpha * x[i] - beta * exp(x[i])
    return density


@compiled
def _add_normals(x: FloatArray, g: FloatArray) -> float:
    """Standard normals: adds the gradient, gives the log-density."""
    total = -_HALF_LOG_2_PI * x.size
    for i in range(x.size):
        total -= 0.5 * x[i] * x[i]
        g[i] -= x[i]
    return total


@compiled
def _add_students(x: FloatArray, g: FloatArray, nu: float) -> float:
    """Standard Student t: adds the gradient, gives the log-density."""
    total = (lgamma((nu + 1) / 2) - lgamma(nu / 2) - 0.5 * log(nu * pi)) * x.size
    for i in range(x.size):
        total -= 0.5 * (nu + 1) * log1p(x[i] * x[i] / nu)
        g[i] -= (nu + 1) * x[i] / (nu + x[i] * x[i])
    return total


@compiled
def _two_piece(offset: float, left: float, right: float) -> tuple[float, float, float, float]:
    """Log-density of the mean-zero two-piece normal, and its derivatives by value, left and right scale."""
    from_mode = offset - _ROOT_2_PI * (left - right)
    scale = left if from_mode < 0 else right
    standard = from_mode / scale**2
    by_both = -1 / (left + right)
    by_left, by_right = by_both + _ROOT_2_PI * standard, by_both - _ROOT_2_PI * standard
    if from_mode < 0:
        by_left += from_mode * standard / left
    else:
        by_right += from_mode * standard / right
    density = -0.5 * from_mode * standard - log((left + right) / 2) - _HALF_LOG_2_PI
    return density, -standard, by_left, by_right


def _tail_table() -> FloatArray:
    """Polynomials of e^(t^2 / 2) erfc(t / sqrt 2) in pieces of equal width in 3 / (3 + t)."""
    degree = 6
    node = np.cos(np.pi * (np.arange(degree + 1) + 0.5) / (degree + 1))
    y = _LAST_PIECE + (np.arange(_PIECES)[:, None] + (node + 1) / 2) * (1 - _LAST_PIECE) / _PIECES
    value = erfcx((3 / y - 3) * sqrt(0.5))
    table: FloatArray = np.linalg.solve(np.vander(node, increasing=True), value.T).T
    return np.ascontiguousarray(table)


_PIECES = 64
_LAST_PIECE = 3 / (3 + _NOTHING_BEYOND)
_TABLE = _tail_table()


@compiled
def _tail(x: float, scale: float) -> tuple[float, float]:
    r"""Of a standard normal beyond \|x\| / scale: twice its probability, and e^(-x^2 / 2 scale^2).

    Right to 1e-14 of itself; one exponential serves both.
    """
    t = abs(x) / scale
    if t >= _NOTHING_BEYOND:
        return 0.0, 0.0
    place = (3 / (3 + t) - _LAST_PIECE) * (_PIECES / (1 - _LAST_PIECE))
    piece = min(int(place), _PIECES - 1)
    v, c = 2 * (place - piece) - 1, _TABLE[piece]
    bell = exp(-0.5 * t * t)
    return bell * ((((((c[6] * v + c[5]) * v + c[4]) * v + c[3]) * v + c[2]) * v + c[1]) * v + c[0]), bell


@compiled
def _box(mean: float, left: float, right: float, low: float, high: float) -> tuple[float, float, float, float]:
    """Probability of a box under a two-piece normal, and its derivatives by mean, left and right scale."""
    share = 1 / (left + right)
    centre = mean + _ROOT_2_PI * (left - right)
    low, high = low - centre, high - centre
    s_low = left if low < 0 else right
    s_high = left if high < 0 else right
    tail_low, bell_low = _tail(low, s_low)
    tail_high, bell_high = _tail(high, s_high)
    f_low, f_high = _ROOT_2_PI * share * bell_low, _ROOT_2_PI * share * bell_high
    # tails are differenced as tails: one minus another would lose them
    between = tail_high - tail_low
    if high < 0:
        inside = left * share * between
    elif low >= 0:
        inside = -right * share * between
    else:
        inside = 1 - left * share * tail_low - right * share * tail_high
    by_left, by_right = right * share * share * between, -left * share * share * between
    if high < 0:
        by_left -= f_high * high / left
    else:
        by_right -= f_high * high / right
    if low < 0:
        by_left += f_low * low / left
    else:
        by_right += f_low * low / right
    by_mean = f_low - f_high
    return inside, by_mean, by_left + _ROOT_2_PI * by_mean, by_right - _ROOT_2_PI * by_mean


PARTICIPANT_NUMBERS = (
    *("mu_turned", "a", "b", "b2", "c", "kap", "delta", "ga", "log_noise", "logit_lapse"),
    *("rho", "sigma", "omega", "t_b", "slope_spread", "bias_spread", "noise_spread", "lapse_spread", "half"),
)
"""The numbers that all share; `rho` to `lapse_spread` as logarithms, `half` as logit."""
_MU, _A, _B, _B2, _C, _KAP, _DELTA, _GA, _LOG_NOISE, _LOGIT_LAPSE = range(10)
_RHO, _SIGMA, _OMEGA, _T_B, _SLOPE, _BIAS, _NOISE, _LAPSE, _HALF = range(10, 19)

_BIAS_DF = 4.0

TURN = 4.0
"""Where the sinh that takes a heavy tail away begins: within so many standard deviations nothing changes much."""

# a two-piece normal's variance, third moment, and skew from the third moment: see participants.added_noise
_VARIANCE, _THIRD, _SKEW = 1 - 2 / pi, 4 / pi - 1, 2 - 6 / pi


@compiled
def _add_numbers(x: FloatArray, g: FloatArray, p: Any) -> float:
    """Priors of the numbers that all share: adds the gradient, gives the log-density."""
    total: float = 0.0
    for i, mean, sd in (
        (_A, 0.0, p.a),
        (_B, 0.0, p.b),
        (_B2, 0.0, p.b2),
        (_C, 0.0, p.c),
        (_KAP, p.kap_mean, p.kap),
        (_DELTA, 0.0, p.delta),
        (_GA, p.ga_mean, p.ga),
        (_LOG_NOISE, log(p.noise_median), p.log_noise),
        (_LOGIT_LAPSE, log(p.lapse_median / (1 - p.lapse_median)), p.logit_lapse),
        (_RHO, 0.0, p.log_rho),
    ):
        total += _add_normal(x, g, i, mean, sd)
    for i, sd in (
        (_SIGMA, p.sigma),
        (_OMEGA, p.omega),
        (_T_B, p.t_b),
        (_SLOPE, p.slope_spread),
        (_BIAS, p.bias_spread),
        (_NOISE, p.noise_spread),
        (_LAPSE, p.lapse_spread),
    ):
        total += _add_half_normal(x, g, i, sd)
    half: float = 1 / (1 + exp(-x[_HALF]))
    total += lgamma(p.half_alpha + p.half_beta) - lgamma(p.half_alpha) - lgamma(p.half_beta)
    total += p.half_alpha * log(half) + p.half_beta * log1p(-half)
    g[_HALF] += p.half_alpha * (1 - half) - p.half_beta * half
    return total


@compiled
def _add_residuals(e: FloatArray, g: FloatArray, ga: float) -> tuple[float, float]:
    """Two-piece normals of scales e^ga and e^-ga: adds the gradient in e, gives log-density and gradient in ga."""
    left, right = exp(ga), exp(-ga)
    total, g_ga = 0.0, 0.0
    for i in range(e.size):
        density, by_value, by_left, by_right = _two_piece(e[i], left, right)
        total += density
        g[i] += by_value
        g_ga += by_left * left - by_right * right
    return total, g_ga


@compiled
def _add_turned_students(x: FloatArray, g: FloatArray, nu: float) -> float:
    """Standard Student t of which :data:`TURN` asinh(u / TURN) is sampled: adds the gradient, gives the log-density."""
    unit, by_unit = np.empty_like(x), np.zeros_like(x)
    for i in range(x.size):
        unit[i] = TURN * sinh(x[i] / TURN)
    total = _add_students(unit, by_unit, nu)
    for i in range(x.size):
        turn = cosh(x[i] / TURN)
        total += log(turn)
        g[i] += by_unit[i] * turn + tanh(x[i] / TURN) / TURN
    return total


@compiled
def _added_noise(wide: float, d: float, by_ga: float, noise: float) -> tuple[float, ...]:
    """Two-piece normal of scales wide e^-ga, wide e^ga, and a normal: two scales, their derivatives.

    See :func:`~models.comparison.participants.added_noise`. `d` is e^ga - e^-ga and `by_ga` its derivative; after left
    and right follow the derivatives of left in wide, ga and noise, then those of right.
    """
    square = wide * wide
    v, t = _VARIANCE * d * d + 1, d * (_THIRD * d * d + 1)
    variance = square * v + noise * noise
    inverse = 1 / variance
    first = wide * square * t * inverse
    ratio = _SKEW * first * first * inverse
    skew = first * (1 + ratio)
    root = sqrt(skew * skew + 4 * (variance - _VARIANCE * skew * skew))
    # of skew and root in variance and third moment
    skew_third = (1 + 3 * ratio) * inverse
    skew_variance = -first * (1 + 4 * ratio) * inverse
    root_variance = 2 / root
    root_skew = skew * (1 - 4 * _VARIANCE) / 2 * root_variance
    third = wide * square * (3 * _THIRD * d * d + 1) * by_ga, 3 * square * t
    moved = 2 * _VARIANCE * d * square * by_ga, 2 * wide * v, 2 * noise
    skew_ga, root_ga = skew_variance * moved[0] + skew_third * third[0], root_variance * moved[0]
    skew_wide, root_wide = skew_variance * moved[1] + skew_third * third[1], root_variance * moved[1]
    skew_noise, root_noise = skew_variance * moved[2], root_variance * moved[2]
    root_ga += root_skew * skew_ga
    root_wide += root_skew * skew_wide
    root_noise += root_skew * skew_noise
    return (
        *((root - skew) / 2, (root + skew) / 2),
        *((root_wide - skew_wide) / 2, (root_ga - skew_ga) / 2, (root_noise - skew_noise) / 2),
        *((root_wide + skew_wide) / 2, (root_ga + skew_ga) / 2, (root_noise + skew_noise) / 2),
    )


@compiled
def items_of(x: FloatArray, mu: float, n_items: int, q: Any) -> FloatArray:
    """Of every item: A, spread s, slope on ln g, s^2 without its floor, standardised deviation of A."""
    found = np.empty((5, n_items))
    intercept, spread, slope, free, unit = found
    sigma, omega, t_b, rho = exp(x[_SIGMA]), exp(x[_OMEGA]), exp(x[_T_B]), exp(x[_RHO])
    for i in range(n_items):
        z, zeta = x[19 + i], x[19 + n_items + i]
        own = ITEM_SCALE_BOUND * tanh(omega * z / ITEM_SCALE_BOUND)
        free[i] = (sigma * exp(own + x[_C] * (q.surprisal[i] - 4))) ** 2
        variance = free[i] + SCALE_FLOOR**2
        spread[i] = sqrt(variance)
        logit = q.target_logit[i]
        place = mu + x[_A] * (logit + 3) - t_b * zeta * (logit + 5) - x[_KAP] * variance / 2
        unit[i] = TURN * sinh(x[19 + 2 * n_items + i] / TURN)
        intercept[i] = place + rho * spread[i] * unit[i]
        slope[i] = x[_B] + t_b * zeta
    return found


@compiled
def people_of(x: FloatArray, start: int, n: int, present: FloatArray, k0: float) -> tuple[FloatArray, float]:
    """Slope, bias, noise, lapse rate, standardised bias and slope without k0 and centre of all; their mean bias."""
    found = np.empty((6, n))
    slope, bias, noise, lapse, unit, steepness = found
    mean_slope, mean_bias, n_present = 0.0, 0.0, present.sum()
    for u in range(n):
        slope[u] = SLOPE_BOUND * tanh(exp(x[_SLOPE]) * x[start + u] / SLOPE_BOUND)
        steepness[u] = exp(slope[u])
        unit[u] = sinh(x[start + n + u]) / steepness[u]
        bias[u] = exp(x[_BIAS]) * unit[u]
        mean_slope += present[u] * slope[u] / n_present
        mean_bias += present[u] * bias[u] / n_present
    for u in range(n):
        slope[u] = k0 * exp(slope[u] - mean_slope)
        bias[u] -= mean_bias
        noise[u] = exp(x[_LOG_NOISE] + exp(x[_NOISE]) * x[start + 2 * n + u])
        lapse[u] = 1 / (1 + exp(-x[_LOGIT_LAPSE] - exp(x[_LAPSE]) * x[start + 3 * n + u]))
    return found, mean_bias


@compiled
def participant_log_density(  # noqa: PLR0915, PLR0917 - one pass; Numba takes arguments by place alone
    x: FloatArray,
    g: FloatArray,
    q: Any,
    p: Any,
    row_pair: NDArray[np.int64],
    row_participant: NDArray[np.int64],
    row_box: NDArray[np.int64],
    present: FloatArray,
    k0: float,
) -> float:
    """Log-density at a vector of parameters; its gradient is put into `g`."""
    n_items, n_pairs, n_people = q.target_logit.size, q.pair_item.size, q.n_participants
    at_e = 19 + 3 * n_items
    at_u = at_e + q.n_shared
    g[:] = 0.0
    total: float = _add_numbers(x, g, p)
    total += _add_normals(x[19 : 19 + 2 * n_items], g[19 : 19 + 2 * n_items])
    total += _add_turned_students(x[19 + 2 * n_items : at_e], g[19 + 2 * n_items : at_e], p.nu)
    found, g_ga = _add_residuals(x[at_e:at_u], g[at_e:at_u], x[_GA])
    total += found
    total += _add_normals(x[at_u : at_u + n_people], g[at_u : at_u + n_people])
    total += _add_normals(x[at_u + 2 * n_people :], g[at_u + 2 * n_people :])

    people, mean_bias = people_of(x, at_u, n_people, present, k0)
    slope, bias, noise, lapse, bias_unit, steepness = people
    mu = x[_MU] - mean_bias
    total -= 0.5 * (mu / p.mu) ** 2 + log(p.mu) + _HALF_LOG_2_PI
    g[_MU] -= mu / p.mu**2
    intercept, spread, item_slope, free, unit = items_of(x, mu, n_items, q)
    g_bias_unit = np.zeros(n_people)
    total += _add_students(bias_unit, g_bias_unit, _BIAS_DF)
    half = 1 / (1 + exp(-x[_HALF]))
    log_odds = np.empty(n_pairs)
    for j in range(n_pairs):
        i, log_g = q.pair_item[j], q.pair_log_g[j]
        log_odds[j] = intercept[i] + item_slope[i] * (log_g + 5) + x[_B2] * max(-log_g - 7, 0.0) + q.pair_log_g_ratio[j]
        if j < q.n_shared:
            log_odds[j] += spread[i] * x[at_e + j]

    # answers, and what they say of log-odds of pairs, spreads of items, and log slope, bias, noise, logit lapse
    g_pair, g_spread = np.zeros(n_pairs), np.zeros(n_items)
    g_slope, g_bias, g_noise, g_lapse = np.zeros((4, n_people))
    g_half = 0.0
    n_boxes = q.edges.shape[0]
    skewed, skewed_back = 2 * sinh(x[_GA]), 2 * cosh(x[_GA])
    product = 1.0
    for row in range(row_pair.size):
        j, u, given = row_pair[row], row_participant[row], row_box[row]
        i, k = q.pair_item[j], slope[u]
        if j < q.n_shared:
            left = right = noise[u]
        else:
            left, right, left_wide, left_ga, left_noise, right_wide, right_ga, right_noise = _added_noise(
                k * spread[i], skewed, skewed_back, noise[u]
            )
        mean = k * (bias[u] - log_odds[j])
        inside, by_mean, by_left, by_right = _box(mean, left, right, q.edges[given, 0], q.edges[given, 1])
        at_half = 1.0 if given == q.half_box else 0.0
        slip = half * at_half + (1 - half) / n_boxes
        probability = (1 - lapse[u]) * inside + lapse[u] * slip + TINY
        # a logarithm of twenty rows at once: none has a probability below TINY
        product *= probability
        if row % 20 == 19:
            total += log(product)
            product = 1.0
        inverse = 1 / probability
        g_lapse[u] += (slip - inside) * inverse
        g_half += lapse[u] * (at_half - 1 / n_boxes) * inverse
        weight = (1 - lapse[u]) * inverse
        g_pair[j] -= weight * by_mean * k
        g_bias[u] += weight * by_mean * k
        g_slope[u] += weight * by_mean * mean
        if j < q.n_shared:
            g_noise[u] += weight * (by_left + by_right)
        else:
            by_left, by_right = weight * by_left, weight * by_right
            by_wide = by_left * left_wide + by_right * right_wide
            g_noise[u] += by_left * left_noise + by_right * right_noise
            g_ga += by_left * left_ga + by_right * right_ga
            g_slope[u] += by_wide * k * spread[i]
            g_spread[i] += by_wide * k

    total += log(product)

    # back to the vector: pairs, items, participants
    g_intercept, g_item_slope = np.zeros(n_items), np.zeros(n_items)
    for j in range(n_pairs):
        i, log_g = q.pair_item[j], q.pair_log_g[j]
        g_intercept[i] += g_pair[j]
        g_item_slope[i] += g_pair[j] * (log_g + 5)
        g[_B2] += g_pair[j] * max(-log_g - 7, 0.0)
        if j < q.n_shared:
            g[at_e + j] += g_pair[j] * spread[i]
            g_spread[i] += g_pair[j] * x[at_e + j]
    omega, t_b, rho = exp(x[_OMEGA]), exp(x[_T_B]), exp(x[_RHO])
    for i in range(n_items):
        z, zeta = x[19 + i], x[19 + n_items + i]
        logit, width = q.target_logit[i], rho * spread[i]
        by_place = g_intercept[i]
        by_width = by_place * unit[i]
        g[19 + 2 * n_items + i] += by_place * width * cosh(x[19 + 2 * n_items + i] / TURN)
        g[_MU] += by_place
        g[_A] += by_place * (logit + 3)
        g[_B] += g_item_slope[i]
        by_zeta = g_item_slope[i] - by_place * (logit + 5)
        g[19 + n_items + i] += t_b * by_zeta
        g[_T_B] += t_b * zeta * by_zeta
        g[_KAP] -= by_place * spread[i] ** 2 / 2
        g[_RHO] += by_width * width
        # of ln s^2 without its floor, halved: ln sigma + own + c (E - 4)
        by_log = ((g_spread[i] + by_width * rho) / spread[i] - by_place * x[_KAP]) * free[i]
        g[_SIGMA] += by_log
        g[_C] += by_log * (q.surprisal[i] - 4)
        by_own = by_log * (1 - tanh(omega * z / ITEM_SCALE_BOUND) ** 2)
        g[_OMEGA] += by_own * omega * z
        g[19 + i] += by_own * omega
    n_present = present.sum()
    # the mean of the biases is taken from every bias, and from mu
    mean_slope, by_mean_bias = g_slope.sum() / n_present, (g_bias.sum() + g[_MU]) / n_present
    for u in range(n_people):
        units = (x[at_u + u], x[at_u + n_people + u], x[at_u + 2 * n_people + u], x[at_u + 3 * n_people + u])
        # bias_unit = sinh(y) / steepness, whose logarithm is the deviation of ln slope
        by_unit = g_bias_unit[u] + (g_bias[u] - present[u] * by_mean_bias) * exp(x[_BIAS])
        turn = cosh(units[1])
        total += log(turn / steepness[u])
        g[at_u + n_people + u] += by_unit * turn / steepness[u] + tanh(units[1])
        by_slope = g_slope[u] - present[u] * mean_slope - by_unit * bias_unit[u] - 1
        by_slope *= exp(x[_SLOPE]) * (1 - tanh(exp(x[_SLOPE]) * units[0] / SLOPE_BOUND) ** 2)
        by_noise = g_noise[u] * noise[u]
        by_lapse = g_lapse[u] * lapse[u] * (1 - lapse[u])
        g[at_u + u] += by_slope
        g[_SLOPE] += by_slope * units[0]
        g[_BIAS] += (by_unit - g_bias_unit[u]) * bias_unit[u]
        g[_LOG_NOISE] += by_noise
        g[at_u + 2 * n_people + u] += by_noise * exp(x[_NOISE])
        g[_NOISE] += by_noise * exp(x[_NOISE]) * units[2]
        g[_LOGIT_LAPSE] += by_lapse
        g[at_u + 3 * n_people + u] += by_lapse * exp(x[_LAPSE])
        g[_LAPSE] += by_lapse * exp(x[_LAPSE]) * units[3]
    g[_GA] += g_ga
    g[_HALF] += g_half * half * (1 - half)
    return total


@compiled
def _log_spread_given(  # noqa: PLR0917
    rng: np.random.Generator, now: float, n: float, squares: float, sd: float, half: bool
) -> float:
    """Draw the logarithm of a standard deviation given `n` normals whose squares sum to `squares`.

    Its prior is half-normal of scale `sd`, or normal around 0 where `half` is false. A slice of a log-concave density.
    """
    if not 0 < squares < np.inf:
        # all of them at their mean, where a chain may start but not stay: such a density has no end
        return now
    width = 1.5 / sqrt(n + 1)
    height = _log_spread(now, n, squares, sd, half) + log(rng.random())
    low = now - width * rng.random()
    high = low + width
    while _log_spread(low, n, squares, sd, half) > height:
        low -= width
    while _log_spread(high, n, squares, sd, half) > height:
        high += width
    while True:
        drawn: float = low + (high - low) * rng.random()
        if _log_spread(drawn, n, squares, sd, half) >= height:
            return drawn
        if drawn < now:
            low = drawn
        else:
            high = drawn


@compiled
def _log_spread(x: float, n: float, squares: float, sd: float, half: bool) -> float:
    """Log-density that :func:`_log_spread_given` draws from, up to a constant."""
    prior = x - 0.5 * (exp(x) / sd) ** 2 if half else -0.5 * (x / sd) ** 2
    density: float = prior - n * x - 0.5 * squares * exp(-2 * x)
    return density


@compiled
def _coefficients_given(  # noqa: PLR0917
    rng: np.random.Generator, design: FloatArray, y: FloatArray, precision: FloatArray, mean: FloatArray, sd: FloatArray
) -> FloatArray:
    """Draw coefficients given normal `y` of these precisions; (row, coefficient) is the shape of `design`."""
    n_rows, k = design.shape
    matrix, vector = np.zeros((k, k)), np.zeros(k)
    for a in range(k):
        matrix[a, a], vector[a] = 1 / sd[a] ** 2, mean[a] / sd[a] ** 2
    for i in range(n_rows):
        for a in range(k):
            vector[a] += design[i, a] * precision[i] * y[i]
            for b in range(k):
                matrix[a, b] += design[i, a] * precision[i] * design[i, b]
    root = np.linalg.cholesky(matrix)
    # with L L' the precision: L'^-1 (L^-1 v + noise)
    found = vector
    for a in range(k):
        for b in range(a):
            found[a] -= root[a, b] * found[b]
        found[a] /= root[a, a]
    for a in range(k):
        found[a] += rng.standard_normal()
    for a in range(k - 1, -1, -1):
        for b in range(a + 1, k):
            found[a] -= root[b, a] * found[b]
        found[a] /= root[a, a]
    return found


@compiled
def participant_moves(  # noqa: PLR0917
    x: FloatArray,
    rng: np.random.Generator,
    q: Any,
    p: Any,
    _row_pair: NDArray[np.int64],
    _row_participant: NDArray[np.int64],
    _row_box: NDArray[np.int64],
    present: FloatArray,
    k0: float,
) -> float:
    """Draw the numbers that all share given what items and people are, so that no answer's probability changes.

    Paths move the numbers with deviations held, these moves with items and people held; one after the other is fast
    where either is (Yu and Meng 2011, *To center or not to center*). Gives how many numbers were drawn.
    """
    n_items, at_u = q.target_logit.size, 19 + 3 * q.target_logit.size + q.n_shared
    people, mean_bias = people_of(x, at_u, q.n_participants, present, k0)
    items = items_of(x, x[_MU] - mean_bias, n_items, q)
    _draw_places(x, rng, mean_bias, items, q, p)
    _draw_spreads(x, rng, np.log(items[3]) / 2, q, p)
    _draw_people(x, rng, at_u, people, p)
    return 15.0


@compiled
def _draw_places(  # noqa: PLR0917
    x: FloatArray, rng: np.random.Generator, mean_bias: float, items: FloatArray, q: Any, p: Any
) -> None:
    """Draw mu, a, b, kap, rho and t_b given intercept, slope and spread of every item.

    A regression, whose residuals are normal once the scale of each is drawn.
    """
    n_items, rho, t_b = q.target_logit.size, exp(x[_RHO]), exp(x[_T_B])
    at_zeta, at_a = 19 + n_items, 19 + 2 * n_items
    intercept, spread, slope, _, unit = items
    design, y, weight, precision = np.empty((n_items, 4)), np.empty(n_items), np.empty(n_items), np.empty(n_items)
    for i in range(n_items):
        logit = q.target_logit[i]
        weight[i] = 2 * rng.standard_gamma((p.nu + 1) / 2) / (p.nu + unit[i] ** 2)
        precision[i] = weight[i] / (rho * spread[i]) ** 2
        design[i] = 1.0, logit + 3, logit + 5, -0.5 * spread[i] ** 2
        y[i] = intercept[i] + slope[i] * (logit + 5)
    # slopes of items say what b is, too
    known = 1 / p.b**2 + n_items / t_b**2
    mean, sd = np.array([0.0, 0.0, 0.0, p.kap_mean]), np.array([p.mu, p.a, 1 / sqrt(known), p.kap])
    mean[2] = slope.sum() / t_b**2 / known
    found = _coefficients_given(rng, design, y, precision, mean, sd)
    x[_MU], x[_A], x[_B], x[_KAP] = found[0] + mean_bias, found[1], found[2], found[3]
    residual = y - design @ found
    x[_RHO] = _log_spread_given(rng, x[_RHO], n_items, (weight * (residual / spread) ** 2).sum(), p.log_rho, False)
    x[_T_B] = _log_spread_given(rng, x[_T_B], n_items, ((slope - x[_B]) ** 2).sum(), p.t_b, True)
    rho, t_b = exp(x[_RHO]), exp(x[_T_B])
    for i in range(n_items):
        x[at_zeta + i] = (slope[i] - x[_B]) / t_b
        x[at_a + i] = TURN * asinh(residual[i] / (rho * spread[i] * TURN))


@compiled
def _log_item_spreads(  # noqa: PLR0917
    log_sigma: float, c: float, log_omega: float, log_free: FloatArray, q: Any, p: Any
) -> tuple[float, float]:
    """Log-density of ln sigma and c given the spreads of items, up to a constant; sum of squares of the deviations."""
    total = log_sigma - 0.5 * (exp(log_sigma) / p.sigma) ** 2 - 0.5 * (c / p.c) ** 2
    squares = 0.0
    for i in range(log_free.size):
        share = (log_free[i] - log_sigma - c * (q.surprisal[i] - 4)) / ITEM_SCALE_BOUND
        if abs(share) >= 1:
            return -np.inf, np.inf
        squares += (ITEM_SCALE_BOUND * atanh(share)) ** 2
        # the slope of the deviation by the bounded one
        total -= log1p(-share * share)
    return total - 0.5 * squares * exp(-2 * log_omega), squares


@compiled
def _draw_spreads(x: FloatArray, rng: np.random.Generator, log_free: FloatArray, q: Any, p: Any) -> None:
    """Draw sigma, c and omega given the spread of every item, by slices along each."""
    n_items = log_free.size
    now = np.array([x[_SIGMA], x[_C]])
    if not np.isfinite(_log_item_spreads(now[0], now[1], x[_OMEGA], log_free, q, p)[0]):
        # a deviation so close to its bound that it cannot be told from it
        return
    for k, width in ((0, 0.1), (1, 0.05)):
        height = _log_item_spreads(now[0], now[1], x[_OMEGA], log_free, q, p)[0] + log(rng.random())
        middle = now[k]
        low = middle - width * rng.random()
        high = low + width
        now[k] = low
        while _log_item_spreads(now[0], now[1], x[_OMEGA], log_free, q, p)[0] > height:
            now[k] -= width
        low, now[k] = now[k], high
        while _log_item_spreads(now[0], now[1], x[_OMEGA], log_free, q, p)[0] > height:
            now[k] += width
        high = now[k]
        while True:
            now[k] = low + (high - low) * rng.random()
            if _log_item_spreads(now[0], now[1], x[_OMEGA], log_free, q, p)[0] >= height:
                break
            if now[k] < middle:
                low = now[k]
            else:
                high = now[k]
    x[_SIGMA], x[_C] = now
    squares = _log_item_spreads(now[0], now[1], x[_OMEGA], log_free, q, p)[1]
    x[_OMEGA] = _log_spread_given(rng, x[_OMEGA], n_items, squares, p.omega, True)
    for i in range(n_items):
        share = (log_free[i] - x[_SIGMA] - x[_C] * (q.surprisal[i] - 4)) / ITEM_SCALE_BOUND
        x[19 + i] = ITEM_SCALE_BOUND * atanh(share) / exp(x[_OMEGA])


@compiled
def _middle_and_spread(  # noqa: PLR0917
    rng: np.random.Generator,
    value: FloatArray,
    mean: float,
    sd: float,
    half_sd: float,
    log_spread: float,
) -> tuple[float, float]:
    """Draw mean and log standard deviation of normals, whose priors are normal and half-normal, given their values."""
    known = 1 / sd**2 + value.size * exp(-2 * log_spread)
    found = (mean / sd**2 + value.sum() * exp(-2 * log_spread)) / known + rng.standard_normal() / sqrt(known)
    return found, _log_spread_given(rng, log_spread, value.size, ((value - found) ** 2).sum(), half_sd, True)


@compiled
def _bias_spread(rng: np.random.Generator, unit: FloatArray, log_spread: float, half_sd: float) -> float:
    """Draw the log scale of Student t biases, which are so many scales `unit`; a t is a normal of a drawn scale."""
    squares = 0.0
    for u in range(unit.size):
        squares += unit[u] ** 2 * 2 * rng.standard_gamma((_BIAS_DF + 1) / 2) / (_BIAS_DF + unit[u] ** 2)
    return _log_spread_given(rng, log_spread, unit.size, squares * exp(2 * log_spread), half_sd, True)


@compiled
def _draw_people(x: FloatArray, rng: np.random.Generator, at_u: int, people: FloatArray, p: Any) -> None:
    """Draw how people differ, and the middles of noise and lapses, given slope, bias, noise and lapse rate of each."""
    n_people, unit, steepness = people.shape[1], people[4], people[5]
    slope = x[at_u : at_u + n_people]
    squares = (slope**2).sum() * exp(2 * x[_SLOPE])
    now, x[_SLOPE] = x[_SLOPE], _log_spread_given(rng, x[_SLOPE], n_people, squares, p.slope_spread, True)
    slope *= exp(now - x[_SLOPE])
    now, x[_BIAS] = x[_BIAS], _bias_spread(rng, unit, x[_BIAS], p.bias_spread)
    for u in range(n_people):
        x[at_u + n_people + u] = asinh(steepness[u] * unit[u] * exp(now - x[_BIAS]))
    lapse_logit = log(p.lapse_median / (1 - p.lapse_median))
    for at, middle, spread, mean, sd, half_sd in (
        (at_u + 2 * n_people, _LOG_NOISE, _NOISE, log(p.noise_median), p.log_noise, p.noise_spread),
        (at_u + 3 * n_people, _LOGIT_LAPSE, _LAPSE, lapse_logit, p.logit_lapse, p.lapse_spread),
    ):
        deviation = x[at : at + n_people]
        value = x[middle] + exp(x[spread]) * deviation
        x[middle], x[spread] = _middle_and_spread(rng, value, mean, sd, half_sd, x[spread])
        deviation[:] = (value - x[middle]) / exp(x[spread])


@compiled
def answers_log_density(  # noqa: PLR0917 - Numba takes arguments by place alone
    people: FloatArray,
    shared: FloatArray,
    log_odds: FloatArray,
    spread: FloatArray,
    edges: FloatArray,
    is_half: NDArray[np.bool_],
    n_boxes: int,
) -> FloatArray:
    """Log-probability of answers under several beliefs and possible people.

    Parameters
    ----------
    people : ndarray, shape (4, draw, person)
        Slope, bias, noise and lapse rate.
    shared : ndarray, shape (2, draw)
        Share of the lapses that are "50%", and ga.
    log_odds, spread : ndarray, shape (draw, row)
        Of the pair, and of its residual that is integrated out, 0 where it is not.
    edges : ndarray, shape (row, 2)
        Of the answer's box.
    is_half : ndarray of bool, shape (row,)
    n_boxes : int

    Returns
    -------
    ndarray, shape (draw, person)
    """
    n_draws, n_people = people[0].shape
    found = np.zeros((n_draws, n_people))
    for d in range(n_draws):
        half, skewed, skewed_back = shared[0, d], 2 * sinh(shared[1, d]), 2 * cosh(shared[1, d])
        for u in range(n_people):
            k, bias, noise, lapse = people[0, d, u], people[1, d, u], people[2, d, u], people[3, d, u]
            product = 1.0
            for row in range(edges.shape[0]):
                left = right = noise
                if spread[d, row] > 0:
                    left, right, _, _, _, _, _, _ = _added_noise(k * spread[d, row], skewed, skewed_back, noise)
                mean = k * (bias - log_odds[d, row])
                inside, _, _, _ = _box(mean, left, right, edges[row, 0], edges[row, 1])
                slip = (half if is_half[row] else 0.0) + (1 - half) / n_boxes
                product *= (1 - lapse) * inside + lapse * slip + TINY
                if row % 20 == 19:
                    found[d, u] += log(product)
                    product = 1.0
            found[d, u] += log(product)
    return found


BELIEF_NUMBERS = (*("mu", "a", "b", "b2", "c", "d", "kap", "ga", "delta", "rho", "sigma", "omega", "t_b", "t_d"),)
"""The numbers that all items of the belief model share; `rho` to `t_d` as logarithms."""
_B_MU, _B_A, _B_B, _B_B2, _B_C, _B_D, _B_KAP, _B_GA, _B_DELTA, _B_RHO, _B_SIGMA, _B_OMEGA, _B_T_B, _B_T_D = range(14)


@compiled
def belief_items(x: FloatArray, target_logit: FloatArray, surprisal: FloatArray) -> FloatArray:
    """Of every item of the belief model: the place of A, its spread s, and s^2 without its floor."""
    n_items = target_logit.size
    found = np.empty((3, n_items))
    place, spread, free = found
    for i in range(n_items):
        z, zeta, logit = x[14 + i], x[14 + n_items + i], target_logit[i]
        free[i] = exp(2 * (x[_B_SIGMA] + exp(x[_B_OMEGA]) * z + x[_B_C] * (surprisal[i] - 4)))
        spread[i] = sqrt(free[i] + SCALE_FLOOR**2)
        place[i] = x[_B_MU] + x[_B_A] * (logit + 3) - exp(x[_B_T_B]) * zeta * (logit + 5)
        place[i] -= x[_B_KAP] * spread[i] ** 2 / 2
    return found


@compiled
def belief_log_density(  # noqa: PLR0915, PLR0917 - see above; in pieces it would hand on twenty arrays
    x: FloatArray,
    g: FloatArray,
    p: Any,
    target_logit: FloatArray,
    surprisal: FloatArray,
    pair_item: NDArray[np.int64],
    pair_log_g: FloatArray,
    pair_frequency: FloatArray,
    low: FloatArray,
    high: FloatArray,
    centred: bool,
) -> float:
    """Log-density of the belief model; its gradient is put into `g`.

    `low` and `high` are the edges of the boxes in which v lies, or v itself both. `centred` says that A is a parameter,
    not :data:`TURN` asinh(u / TURN) of its standardised deviation u.
    """
    n_items = target_logit.size
    at_a = 14 + 3 * n_items
    g[:] = 0.0
    total = _add_normal(x, g, _B_MU, 0.0, p.mu) + _add_normal(x, g, _B_A, 0.0, p.a) + _add_normal(x, g, _B_B, 0.0, p.b)
    total += _add_normal(x, g, _B_B2, 0.0, p.b2) + _add_normal(x, g, _B_C, 0.0, p.c) + _add_normal(x, g, _B_D, 0.0, p.d)
    total += _add_normal(x, g, _B_KAP, p.kap_mean, p.kap) + _add_normal(x, g, _B_GA, 0.0, p.ga)
    total += _add_normal(x, g, _B_DELTA, 0.0, p.delta) + _add_normal(x, g, _B_RHO, 0.0, p.log_rho)
    total += _add_half_normal(x, g, _B_SIGMA, p.sigma) + _add_half_normal(x, g, _B_OMEGA, p.omega)
    total += _add_gamma(x, g, _B_T_B, 2.0, 3 / p.t_b) + _add_gamma(x, g, _B_T_D, 2.0, 3 / p.t_d)
    total += _add_normals(x[14:at_a], g[14:at_a])

    place, spread, free = belief_items(x, target_logit, surprisal)
    rho, t_b, t_d, ga = exp(x[_B_RHO]), exp(x[_B_T_B]), exp(x[_B_T_D]), x[_B_GA]
    unit, g_unit = np.empty(n_items), np.zeros(n_items)
    intercept = np.empty(n_items)
    for i in range(n_items):
        if centred:
            intercept[i] = x[at_a + i]
            unit[i] = (x[at_a + i] - place[i]) / (rho * spread[i])
            total -= log(rho * spread[i])
        else:
            # of an item whose boxes are all open at the same end the heavy tail is left: it would take chains far away
            unit[i] = TURN * sinh(x[at_a + i] / TURN)
            intercept[i] = place[i] + rho * spread[i] * unit[i]
            total += log(cosh(x[at_a + i] / TURN))
    total += _add_students(unit, g_unit, p.nu)

    wide, narrow = exp(ga), exp(-ga)
    g_intercept, g_spread = np.zeros(n_items), np.zeros(n_items)
    product = 1.0
    for j in range(pair_item.size):
        i, log_g, frequency = pair_item[j], pair_log_g[j], pair_frequency[j]
        zeta, xi = x[14 + n_items + i], x[14 + 2 * n_items + i]
        rare = max(-log_g - 7, 0.0)
        mean = intercept[i] + (x[_B_B] + t_b * zeta) * (log_g + 5) + x[_B_B2] * rare + (x[_B_D] + t_d * xi) * frequency
        left, right = spread[i] * wide, spread[i] * narrow
        if low[j] == high[j]:
            density, by_value, by_left, by_right = _two_piece(low[j] - mean, left, right)
            total += density
            by_mean = -by_value
        else:
            inside, by_mean, by_left, by_right = _box(mean, left, right, low[j], high[j])
            probability = inside + TINY
            product *= probability
            if j % 20 == 19:
                total += log(product)
                product = 1.0
            by_mean /= probability
            by_left /= probability
            by_right /= probability
        g_intercept[i] += by_mean
        g_spread[i] += by_left * wide + by_right * narrow
        g[_B_GA] += by_left * left - by_right * right
        g[_B_B] += by_mean * (log_g + 5)
        g[_B_B2] += by_mean * rare
        g[_B_D] += by_mean * frequency
        g[14 + n_items + i] += by_mean * t_b * (log_g + 5)
        g[_B_T_B] += by_mean * t_b * zeta * (log_g + 5)
        g[14 + 2 * n_items + i] += by_mean * t_d * frequency
        g[_B_T_D] += by_mean * t_d * xi * frequency
    total += log(product)

    omega = exp(x[_B_OMEGA])
    for i in range(n_items):
        z, zeta, logit, width = x[14 + i], x[14 + n_items + i], target_logit[i], rho * spread[i]
        if centred:
            g[at_a + i] += g_intercept[i] + g_unit[i] / width
            by_place = -g_unit[i] / width
            by_width = -(g_unit[i] * unit[i] + 1) / width
        else:
            turned = x[at_a + i] / TURN
            g[at_a + i] += (g_unit[i] + g_intercept[i] * width) * cosh(turned) + tanh(turned) / TURN
            by_place = g_intercept[i]
            by_width = g_intercept[i] * unit[i]
        g[_B_MU] += by_place
        g[_B_A] += by_place * (logit + 3)
        g[14 + n_items + i] -= by_place * t_b * (logit + 5)
        g[_B_T_B] -= by_place * t_b * zeta * (logit + 5)
        g[_B_KAP] -= by_place * spread[i] ** 2 / 2
        g[_B_RHO] += by_width * width
        # of ln s^2 without its floor, halved: ln sigma + omega z + c (E - 4)
        by_log = ((g_spread[i] + by_width * rho) / spread[i] - by_place * x[_B_KAP]) * free[i]
        g[_B_SIGMA] += by_log
        g[_B_C] += by_log * (surprisal[i] - 4)
        g[_B_OMEGA] += by_log * omega * z
        g[14 + i] += by_log * omega
    return total


FREE_ANSWER_NUMBERS = (
    *("slope_turned_mean", "level", "g_slope", "rare_g_slope", "spread_slope", "target_level", "target_slope"),
    *("log_noise", "logit_lapse", "narrow", "upper", "lower", "level_spread", "divergence_spread"),
    *("target_upper", "target_lower", "slope_spread", "bias_spread", "noise_spread", "lapse_spread", "half"),
)
"""The numbers that all share in the model of free answers, the first the mean of ln slope before it is centred;
`narrow` to `lapse_spread` as logarithms, `half` as logit."""
_F_K0, _F_LEVEL, _F_G, _F_RARE, _F_SPREAD_G, _F_T_LEVEL, _F_T_SLOPE, _F_LOG_NOISE, _F_LOGIT_LAPSE = range(9)
_F_NARROW, _F_UPPER, _F_LOWER, _F_LEVEL_SPREAD, _F_DIVERGENCE, _F_T_UPPER, _F_T_LOWER = range(9, 16)
_F_SLOPE, _F_BIAS, _F_NOISE, _F_LAPSE, _F_HALF = range(16, 21)
_N_FREE = 21

_MOST_LOG_RATE = 10.0
_NO_MASS = -99.0
"""Log of the mass of an empty bin."""
_FEW = 1e-5
_ENOUGH = 1e-12
"""Where Newton's steps end."""
_ROWS_OF_REST = 7


@compiled
def _add_free_answer_numbers(x: FloatArray, g: FloatArray, p: Any, people: Any) -> float:
    """Priors of the numbers that all share: adds the gradient, gives the log-density."""
    total: float = 0.0
    for i, mean, sd in (
        (_F_LEVEL, 0.0, p.level),
        (_F_G, 0.0, p.slope),
        (_F_RARE, 0.0, p.rare_slope),
        (_F_SPREAD_G, 0.0, p.spread_slope),
        (_F_T_LEVEL, 0.0, p.target_level),
        (_F_T_SLOPE, 0.0, p.target_slope),
        (_F_LOG_NOISE, log(people.noise_median), people.log_noise),
        (_F_LOGIT_LAPSE, log(people.lapse_median / (1 - people.lapse_median)), people.logit_lapse),
        (_F_NARROW, log(p.spread_median), p.log_spread),
        (_F_T_UPPER, log(p.spread_median), p.log_target_spread),
        (_F_T_LOWER, log(p.spread_median), p.log_target_spread),
    ):
        total += _add_normal(x, g, i, mean, sd)
    for i, sd in (
        (_F_UPPER, p.tail),
        (_F_LOWER, p.tail),
        (_F_LEVEL_SPREAD, p.level_spread),
        (_F_DIVERGENCE, p.divergence_spread),
        (_F_SLOPE, people.slope_spread),
        (_F_BIAS, people.bias_spread),
        (_F_NOISE, people.noise_spread),
        (_F_LAPSE, people.lapse_spread),
    ):
        total += _add_half_normal(x, g, i, sd)
    half: float = 1 / (1 + exp(-x[_F_HALF]))
    total += lgamma(people.half_alpha + people.half_beta) - lgamma(people.half_alpha) - lgamma(people.half_beta)
    total += people.half_alpha * log(half) + people.half_beta * log1p(-half)
    g[_F_HALF] += people.half_alpha * (1 - half) - people.half_beta * half
    return total


@compiled
def _hinge(z: float) -> tuple[float, float]:
    """Bent line of :func:`~models.comparison.free_answers.hinge`, and its slope."""
    root = sqrt((z - 1) * (z - 1) + 0.25)
    return 0.5 * (z - 1 + root), 0.5 + 0.5 * (z - 1) / root


@compiled
def _bent(z: float, narrow: float, upper: float, lower: float) -> tuple[float, float]:
    """Residual of a token, of :func:`~models.comparison.free_answers.bent`, and its slope."""
    (rise, rising), (fall, falling) = _hinge(z), _hinge(-z)
    return narrow * z + upper * rise - lower * fall, narrow + upper * rising + lower * falling


@compiled
def _bent_unit(  # noqa: PLR0917
    y: float, c: float, line: float, scale: float, narrow: float, upper: float, lower: float
) -> float:
    """Solve y = (1 - c) z + c (line + scale r(z)) for z, r a token's residual; it is steepest outside."""
    z = 0.0
    for _ in range(100):
        (rise, rising), (fall, falling) = _hinge(z), _hinge(-z)
        missing = y - (1 - c) * z - c * (line + scale * (narrow * z + upper * rise - lower * fall))
        step = missing / (1 - c + c * scale * (narrow + upper * rising + lower * falling))
        z += step
        if abs(step) < _ENOUGH * (1 + abs(z)):
            break
    return z


@compiled
def _sloped_unit(  # noqa: PLR0917
    y: float, c: float, line: float, scale: float, middle: float, bend: float
) -> float:
    """Solve y = (1 - c) z + c (line + scale r(z)) for z, r a target's residual."""
    # steep z + bent (sqrt(1 + z^2) - 1) = value
    steep, bent, value = 1 - c + c * scale * middle, c * scale * bend, y - c * line
    both, value = (steep - bent) * (steep + bent), value + bent
    z: float = (steep * value - bent * sqrt(value * value + both)) / both
    return z


@compiled
def _spread_place(log_g: float) -> float:
    """Where ln g stands for the spread of the residuals, from -12 to 0, centred at -4."""
    return min(max(log_g, -12.0), 0.0) + 4


@compiled
def free_answer_people(x: FloatArray, start: int, n: int, noise_centring: FloatArray) -> FloatArray:
    """Slope, bias, noise, lapse rate, standardised bias, slope before it is centred, its unbounded ln, noise unit."""
    found = np.empty((8, n))
    slope, bias, noise, lapse, unit, steepness, raw, noise_unit = found
    mean = 0.0
    log_k0 = x[start : start + n].mean()
    for u in range(n):
        raw[u] = x[start + u] - log_k0 + x[_F_K0]
        slope[u] = SLOPE_BOUND * tanh(raw[u] / SLOPE_BOUND)
        steepness[u] = exp(slope[u])
        mean += slope[u] / n
        unit[u] = sinh(x[start + n + u]) / steepness[u]
        bias[u] = exp(x[_F_BIAS]) * unit[u]
        c = noise_centring[u]
        noise_unit[u] = exp(-c * x[_F_NOISE]) * (x[start + 2 * n + u] - c * x[_F_LOG_NOISE])
        noise[u] = exp(x[_F_LOG_NOISE] + exp(x[_F_NOISE]) * noise_unit[u])
        lapse[u] = 1 / (1 + exp(-x[_F_LOGIT_LAPSE] - exp(x[_F_LAPSE]) * x[start + 3 * n + u]))
    for u in range(n):
        slope[u] = exp(log_k0 + slope[u] - mean)
    return found


@compiled
def free_answer_ratios(  # noqa: PLR0915
    x: FloatArray, mean_bias: float, q: Any
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Log h/g of targets and tokens without the item's level; their standardised residuals; of items; of the bins.

    Of every item: divergence, log rest, log total, level. Of its bins, means by what they add to the rest: the place of
    ln g, how far it is beyond -7, and the derivatives of the log rest by ln divergence, spread_slope, narrow, upper and
    lower.
    """
    n_items, n_tokens = q.target_log_g.size, q.token_item.size
    ratio, unit = np.empty((2, n_items + n_tokens))
    found = np.empty((4, n_items))
    divergence, log_rest, log_total, level = found
    of_rest = np.zeros((_ROWS_OF_REST, n_items))
    narrow, upper, lower = exp(x[_F_NARROW]), exp(x[_F_UPPER]), exp(x[_F_LOWER])
    t_middle, t_bend = 0.5 * (exp(x[_F_T_UPPER]) + exp(x[_F_T_LOWER])), 0.5 * (exp(x[_F_T_UPPER]) - exp(x[_F_T_LOWER]))
    n_nodes, n_bins = q.node.size, q.bin_log_g.shape[1]
    shape, rise, fall = np.empty((3, n_nodes))
    for k in range(n_nodes):
        rise[k], fall[k] = _hinge(q.node[k])[0], _hinge(-q.node[k])[0]
        shape[k] = narrow * q.node[k] + upper * rise[k] - lower * fall[k]
    spread, level_spread = exp(x[_F_DIVERGENCE]), exp(x[_F_LEVEL_SPREAD])
    place_of, scale_of = np.empty((2, n_bins))
    at_target = _N_FREE + 2 * n_items
    token = 0
    for i in range(n_items):
        divergence[i] = exp(spread * x[_N_FREE + n_items + i])
        most = -1e300
        for b in range(n_bins):
            log_g = q.bin_log_g[i, b]
            place_of[b] = q.bin_log_mass[i, b] + x[_F_G] * (log_g + 4) + x[_F_RARE] * max(-log_g - 7, 0.0)
            scale_of[b] = divergence[i] * exp(-x[_F_SPREAD_G] * _spread_place(log_g))
            # shapes rise with the node
            most = max(most, place_of[b] + scale_of[b] * shape[n_nodes - 1])
        rest = 0.0
        for b in range(n_bins):
            if q.bin_log_mass[i, b] <= _NO_MASS:
                continue
            here, by_scale, by_narrow, by_upper, by_lower = 0.0, 0.0, 0.0, 0.0, 0.0
            for k in range(n_nodes):
                mass = q.weight[k] * exp(place_of[b] + scale_of[b] * shape[k] - most)
                here += mass
                by_scale += mass * shape[k]
                by_narrow += mass * q.node[k]
                by_upper += mass * rise[k]
                by_lower -= mass * fall[k]
            rest += here
            log_g, scale = q.bin_log_g[i, b], scale_of[b]
            of_rest[0, i] += here * (log_g + 4)
            of_rest[1, i] += here * max(-log_g - 7, 0.0)
            of_rest[2, i] += by_scale * scale
            of_rest[3, i] -= by_scale * scale * _spread_place(log_g)
            of_rest[4, i] += by_narrow * scale
            of_rest[5, i] += by_upper * scale
            of_rest[6, i] += by_lower * scale
        log_rest[i] = -1e300
        if rest > 0:
            log_rest[i] = most + log(rest)
            of_rest[:, i] /= rest
        c, log_g = q.centring[i], q.target_log_g[i]
        line = (x[_F_G] + x[_F_T_SLOPE]) * (log_g + 4) + x[_F_RARE] * max(-log_g - 7, 0.0) + x[_F_T_LEVEL]
        unit[i] = _sloped_unit(x[at_target + i], c, line + mean_bias, divergence[i], t_middle, t_bend)
        ratio[i] = line + divergence[i] * (t_middle * unit[i] + t_bend * (sqrt(1 + unit[i] * unit[i]) - 1))
        largest = max(log_rest[i], q.target_log_g[i] + ratio[i])
        first = token
        while token < n_tokens and q.token_item[token] == i:
            log_g, at = q.token_log_g[token], n_items + token
            scale = divergence[i] * exp(-x[_F_SPREAD_G] * _spread_place(log_g))
            line = x[_F_G] * (log_g + 4) + x[_F_RARE] * max(-log_g - 7, 0.0)
            y, c, from_target = x[at_target + n_items + token], q.centring[at], line - ratio[i] - mean_bias
            z = _bent_unit(y, c, from_target, scale, narrow, upper, lower)
            unit[at] = z
            ratio[at] = line + scale * _bent(z, narrow, upper, lower)[0]
            largest = max(largest, log_g + ratio[at])
            token += 1
        total = exp(log_rest[i] - largest) + exp(q.target_log_g[i] + ratio[i] - largest)
        for of_item in range(first, token):
            total += exp(q.token_log_g[of_item] + ratio[n_items + of_item] - largest)
        log_total[i] = largest + log(total)
        level[i] = x[_F_LEVEL] + level_spread * x[_N_FREE + i] - log_total[i]
    return ratio, unit, found, of_rest


@compiled
def free_answer_log_density(  # noqa: PLR0912, PLR0915, PLR0917 - one pass; Numba takes arguments by place alone
    x: FloatArray,
    g: FloatArray,
    q: Any,
    p: Any,
    priors: Any,
    token_answers: NDArray[np.int64],
    target_answers: NDArray[np.int64],
    row_box: NDArray[np.int64],
) -> float:
    """Log-density of the model of free answers and reports; its gradient is put into `g`.

    The last parameter is the weight of the generator where there is one more than the others.
    """
    n_items, n_tokens, n_people = q.target_log_g.size, q.token_item.size, q.n_participants
    at_target = _N_FREE + 2 * n_items
    at_token = at_target + n_items
    at_u = at_token + n_tokens
    at_weight = at_u + 4 * n_people
    g[:] = 0.0
    total: float = _add_free_answer_numbers(x, g, p, priors)
    total += _add_normals(x[_N_FREE:at_target], g[_N_FREE:at_target])
    total += _add_normals(x[at_u + 3 * n_people : at_weight], g[at_u + 3 * n_people : at_weight])
    generator = 1.0
    if x.size > at_weight:
        total += _add_normal(x, g, at_weight, 0.0, p.generator_weight)
        generator -= x[at_weight]

    slope, bias, noise, lapse, bias_unit, steepness, raw, noise_unit = free_answer_people(
        x, at_u, n_people, q.noise_centring
    )
    mean_bias = bias.sum() / n_people
    g_bias_unit = np.zeros(n_people)
    total += _add_students(bias_unit, g_bias_unit, _BIAS_DF)
    ratio, unit_of, of_items, of_rest = free_answer_ratios(x, mean_bias, q)
    total -= _HALF_LOG_2_PI * (n_items + n_tokens)
    divergence, log_rest, log_total, level = of_items
    g_ratio = np.zeros(n_items + n_tokens)

    # reports: what they say of the log-ratios, and of slopes, biases, noise and lapses
    half = 1 / (1 + exp(-x[_F_HALF]))
    g_slope, g_bias, g_noise, g_lapse = np.zeros((4, n_people))
    g_half, g_weight = 0.0, 0.0
    n_boxes = q.edges.shape[0]
    product = 1.0
    for row in range(row_box.size):
        u, given, at, reference = q.row_participant[row], row_box[row], q.row_token[row], q.row_reference[row]
        k, against_target = slope[u], reference < n_items
        by_weight = q.log_g[reference] - q.log_g[at]
        log_odds = ratio[reference] - ratio[at] + generator * by_weight
        if against_target:
            log_odds += bias[u]
        mean = k * log_odds
        inside, by_mean, by_left, by_right = _box(mean, noise[u], noise[u], q.edges[given, 0], q.edges[given, 1])
        at_half = 1.0 if given == q.half_box else 0.0
        slip = half * at_half + (1 - half) / n_boxes
        probability = (1 - lapse[u]) * inside + lapse[u] * slip + TINY
        product *= probability
        if row % 20 == 19:
            total += log(product)
            product = 1.0
        inverse = 1 / probability
        g_lapse[u] += (slip - inside) * inverse
        g_half += lapse[u] * (at_half - 1 / n_boxes) * inverse
        weight = (1 - lapse[u]) * inverse
        by_odds = weight * by_mean * k
        g_ratio[reference] += by_odds
        g_ratio[at] -= by_odds
        g_weight -= by_odds * by_weight
        if against_target:
            g_bias[u] += by_odds
        g_slope[u] += weight * by_mean * mean
        g_noise[u] += weight * (by_left + by_right)
    total += log(product)

    # targets, answers, and the sum over the vocabulary, item by item
    narrow, upper, lower = exp(x[_F_NARROW]), exp(x[_F_UPPER]), exp(x[_F_LOWER])
    t_upper, t_lower = exp(x[_F_T_UPPER]), exp(x[_F_T_LOWER])
    spread, level_spread = exp(x[_F_DIVERGENCE]), exp(x[_F_LEVEL_SPREAD])
    n_nodes = q.node.size
    shape, g_shape = np.empty(n_nodes), np.zeros(n_nodes)
    for k in range(n_nodes):
        shape[k] = _bent(q.node[k], narrow, upper, lower)[0]
    t_middle, t_bend = 0.5 * (t_upper + t_lower), 0.5 * (t_upper - t_lower)
    g_narrow, g_upper, g_lower, g_t_upper, g_t_lower, g_mean_bias = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    token = 0
    for i in range(n_items):
        # of the item's level, and of the logarithm of its divergence
        g_level, g_scale = 0.0, 0.0
        log_g = q.target_log_g[i]
        log_rate = q.log_n_answers[i] + log_g + level[i] + ratio[i]
        rate = exp(min(log_rate, _MOST_LOG_RATE))
        total += target_answers[i] * log_rate - rate
        by_rate = target_answers[i] - (rate if log_rate < _MOST_LOG_RATE else 0.0)
        g_ratio[i] += by_rate
        g_level += by_rate
        first = token
        while token < n_tokens and q.token_item[token] == i:
            at = n_items + token
            log_rate = q.log_n_answers[i] + q.token_log_g[token] + level[i] + ratio[at]
            rate = exp(min(log_rate, _MOST_LOG_RATE))
            total += token_answers[token] * log_rate - rate
            by_rate = token_answers[token] - (rate if log_rate < _MOST_LOG_RATE else 0.0)
            g_ratio[at] += by_rate
            g_level += by_rate
            missed = q.not_drawn[token]
            if missed > 0:
                # a token is in the pool because it was drawn, or because somebody answered it
                log_g = q.token_log_g[token]
                place, rare = log_g + 4, max(-log_g - 7, 0.0)
                middle = q.log_n_entry[i] + log_g + level[i] + x[_F_G] * place + x[_F_RARE] * rare
                scale = divergence[i] * exp(-x[_F_SPREAD_G] * _spread_place(log_g))
                answered = 0.0
                by_node = np.empty(n_nodes)
                for k in range(n_nodes):
                    log_rate = middle + scale * shape[k]
                    rate = exp(min(log_rate, _MOST_LOG_RATE))
                    silent = exp(-rate)
                    answered += q.weight[k] * (rate * (1 - 0.5 * rate) if rate < _FEW else 1 - silent)
                    by_node[k] = q.weight[k] * rate * silent if log_rate < _MOST_LOG_RATE else 0.0
                in_pool = 1 - missed + missed * answered
                total -= log(max(in_pool, TINY))
                if in_pool > TINY:
                    by_middle, by_scale = 0.0, 0.0
                    for k in range(n_nodes):
                        by_rate = -missed / in_pool * by_node[k]
                        by_middle += by_rate
                        by_scale += by_rate * scale * shape[k]
                        g_shape[k] += by_rate * scale
                    g_level += by_middle
                    g[_F_G] += by_middle * place
                    g[_F_RARE] += by_middle * rare
                    g[_F_SPREAD_G] -= by_scale * _spread_place(log_g)
                    g_scale += by_scale
            token += 1
        # the level, and with it the sum over the vocabulary
        g[_F_LEVEL] += g_level
        g[_F_LEVEL_SPREAD] += g_level * level_spread * x[_N_FREE + i]
        g[_N_FREE + i] += g_level * level_spread
        by_rest = -g_level * exp(log_rest[i] - log_total[i])
        g[_F_G] += by_rest * of_rest[0, i]
        g[_F_RARE] += by_rest * of_rest[1, i]
        g_scale += by_rest * of_rest[2, i]
        g[_F_SPREAD_G] += by_rest * of_rest[3, i]
        g_narrow += by_rest * of_rest[4, i]
        g_upper += by_rest * of_rest[5, i]
        g_lower += by_rest * of_rest[6, i]
        by_target = 0.0
        for of_item in range(first, token):
            at = n_items + of_item
            log_g, z, c = q.token_log_g[of_item], unit_of[at], q.centring[at]
            by_ratio = g_ratio[at] - g_level * exp(log_g + ratio[at] - log_total[i])
            # y = (1 - c) z + c (v - the target's): `steep` is dy/dz, and z moves so that y stays
            (rise, rising), (fall, falling) = _hinge(z), _hinge(-z)
            place = _spread_place(log_g)
            scale = divergence[i] * exp(-x[_F_SPREAD_G] * place)
            steepness_of = narrow + upper * rising + lower * falling
            steep = 1 - c + c * scale * steepness_of
            total -= 0.5 * z * z + log(steep)
            bend = 0.125 * (upper / ((z - 1) ** 2 + 0.25) ** 1.5 - lower / ((z + 1) ** 2 + 0.25) ** 1.5)
            by_y = (by_ratio * scale * steepness_of - z - c * scale * bend / steep) / steep
            by_line, moved = by_ratio - c * by_y, c * scale / steep
            g[at_token + of_item] += by_y
            by_target += c * by_y
            g[_F_G] += by_line * (log_g + 4)
            g[_F_RARE] += by_line * max(-log_g - 7, 0.0)
            by_scale = by_line * scale * (narrow * z + upper * rise - lower * fall) - moved * steepness_of
            g_scale += by_scale
            g[_F_SPREAD_G] -= by_scale * place
            g_narrow += by_line * scale * z - moved
            g_upper += by_line * scale * rise - moved * rising
            g_lower -= by_line * scale * fall + moved * falling
        # the target in the same way, its v with the mean bias
        log_g, z, c = q.target_log_g[i], unit_of[i], q.centring[i]
        place, rare, root = log_g + 4, max(-log_g - 7, 0.0), sqrt(1 + z * z)
        by_ratio = g_ratio[i] + by_target - g_level * exp(log_g + ratio[i] - log_total[i])
        scale, rising = divergence[i], t_middle + t_bend * z / root
        steep = 1 - c + c * scale * rising
        total -= 0.5 * z * z + log(steep)
        by_y = (by_ratio * scale * rising - z - c * scale * t_bend / (root * root * root * steep)) / steep
        by_line, moved = by_ratio - c * by_y, c * scale / steep
        g[at_target + i] += by_y
        g_mean_bias += by_target - c * by_y
        g_scale += by_line * scale * (t_middle * z + t_bend * (root - 1)) - moved * rising
        g_t_upper += 0.5 * (by_line * scale * (z + root - 1) - moved * (1 + z / root))
        g_t_lower += 0.5 * (by_line * scale * (z - root + 1) - moved * (1 - z / root))
        g[_F_G] += by_line * place
        g[_F_T_SLOPE] += by_line * place
        g[_F_RARE] += by_line * rare
        g[_F_T_LEVEL] += by_line
        unit = x[_N_FREE + n_items + i]
        g[_F_DIVERGENCE] += g_scale * spread * unit
        g[_N_FREE + n_items + i] += g_scale * spread
    for k in range(n_nodes):
        g_narrow += g_shape[k] * q.node[k]
        g_upper += g_shape[k] * _hinge(q.node[k])[0]
        g_lower -= g_shape[k] * _hinge(-q.node[k])[0]
    g[_F_NARROW] += g_narrow * narrow
    g[_F_UPPER] += g_upper * upper
    g[_F_LOWER] += g_lower * lower
    g[_F_T_UPPER] += g_t_upper * t_upper
    g[_F_T_LOWER] += g_t_lower * t_lower
    if x.size > at_weight:
        g[at_weight] += g_weight
    g[_F_HALF] += g_half * half * (1 - half)

    # back to the participants; of k0 is the mean of the parameters that stand for slopes
    log_k0 = x[at_u : at_u + n_people].mean()
    total -= 0.5 * (log_k0 / p.log_k0) ** 2 + log(p.log_k0) + _HALF_LOG_2_PI
    by_k0, mean_slope, mean_raw = g_slope.sum() - log_k0 / p.log_k0**2, g_slope.sum() / n_people, 0.0
    slope_spread, noise_spread = exp(x[_F_SLOPE]), exp(x[_F_NOISE])
    for u in range(n_people):
        units = (x[at_u + n_people + u], x[at_u + 3 * n_people + u])
        by_bias = g_bias_unit[u] + (g_bias[u] + g_mean_bias / n_people) * exp(x[_F_BIAS])
        turn = cosh(units[0])
        total += log(turn / steepness[u])
        g[at_u + n_people + u] += by_bias * turn / steepness[u] + tanh(units[0])
        g[_F_BIAS] += (by_bias - g_bias_unit[u]) * bias_unit[u]
        z = raw[u] / slope_spread
        total -= 0.5 * z * z + x[_F_SLOPE] + _HALF_LOG_2_PI
        g[_F_SLOPE] += z * z - 1
        by_raw = (g_slope[u] - mean_slope - by_bias * bias_unit[u] - 1) * (1 - tanh(raw[u] / SLOPE_BOUND) ** 2)
        by_raw -= z / slope_spread
        g[at_u + u] += by_raw
        mean_raw += by_raw / n_people
        g[_F_K0] += by_raw
        z, c = noise_unit[u], q.noise_centring[u]
        total -= 0.5 * z * z + c * x[_F_NOISE] + _HALF_LOG_2_PI
        by_noise = g_noise[u] * noise[u]
        by_unit = by_noise * noise_spread - z
        g[at_u + 2 * n_people + u] += by_unit * exp(-c * x[_F_NOISE])
        g[_F_LOG_NOISE] += by_noise - c * by_unit * exp(-c * x[_F_NOISE])
        g[_F_NOISE] += by_noise * noise_spread * z - c * (z * by_unit + 1)
        by_lapse = g_lapse[u] * lapse[u] * (1 - lapse[u])
        g[_F_LOGIT_LAPSE] += by_lapse
        g[at_u + 3 * n_people + u] += by_lapse * exp(x[_F_LAPSE])
        g[_F_LAPSE] += by_lapse * exp(x[_F_LAPSE]) * units[1]
    for u in range(n_people):
        g[at_u + u] += by_k0 / n_people - mean_raw
    for i in range(n_items):
        total -= lgamma(target_answers[i] + 1.0)
    for at in range(n_tokens):
        total -= lgamma(token_answers[at] + 1.0)
    return total


_WIDER = 1.2
"""How much broader than what one report says of a token the proposals around it are."""
_BROAD = 2.5
"""Spread of residuals that are proposed far out."""
_SCALING, _SHIFT = 0.04, 0.1
"""Spreads of proposed changes of ln k0, and of everybody's bias."""
_LAW = (_F_SPREAD_G, _F_T_LEVEL, _F_T_SLOPE, _F_NARROW, _F_UPPER, _F_LOWER, _F_T_UPPER, _F_T_LOWER)
_LAW_OF_TARGETS = (False, True, True, False, False, False, True, True)
_LAW_WIDTH = (0.03, 0.3, 0.07, 0.2, 0.4, 0.4, 0.4, 0.4)
_LAW_STEP = 0.5
"""Typical spreads of the numbers of :func:`free_answer_other_law` in a posterior, and the median step, in spreads."""
_TIMES = 3
"""How many changes of each line, and of laws of targets and of tokens, are proposed after a path."""
_INNER = 1.0
"""Nats from the end of the scale inwards to where a report at the end is taken to be."""


@compiled
def _log_sum(a: float, b: float) -> float:
    """Log of the sum of two numbers given as logarithms."""
    most = max(a, b)
    total: float = most + log(exp(a - most) + exp(b - most))
    return total


@compiled
def _log_normal(x: float, mean: float, sd: float) -> float:
    """Log-density of a normal number, without what is the same for all."""
    off = (x - mean) / sd
    density: float = -0.5 * off * off - log(sd)
    return density


@compiled
def _generator(x: FloatArray, q: Any) -> float:
    """How much of the generator reports hold beside the log-ratio: 1, less the last parameter where there is that."""
    n_items, n_tokens = q.target_log_g.size, q.token_item.size
    at_weight = _N_FREE + 3 * n_items + n_tokens + 4 * q.n_participants
    weight: float = 1.0 - x[at_weight] if x.size > at_weight else 1.0
    return weight


@compiled
def _log_reports(  # noqa: PLR0917
    at: int,
    value: float,
    x: FloatArray,
    ratio: FloatArray,
    people: FloatArray,
    q: Any,
    row_box: NDArray[np.int64],
) -> float:
    """Log-probability of all reports on the token `at`, were `value` its log-ratio."""
    total, n_items, n_boxes = 0.0, q.target_log_g.size, q.edges.shape[0]
    half, generator = 1 / (1 + exp(-x[_F_HALF])), _generator(x, q)
    for j in range(q.first_row[at], q.first_row[at + 1]):
        row = q.row_of[j]
        u, given, other, reference = q.row_participant[row], row_box[row], q.row_token[row], q.row_reference[row]
        log_odds = generator * (q.log_g[reference] - q.log_g[other])
        log_odds += (value if reference == at else ratio[reference]) - (value if other == at else ratio[other])
        if reference < n_items:
            log_odds += people[1, u]
        noise, lapse = people[2, u], people[3, u]
        inside = _box(people[0, u] * log_odds, noise, noise, q.edges[given, 0], q.edges[given, 1])[0]
        slip = (half if given == q.half_box else 0.0) + (1 - half) / n_boxes
        total += log((1 - lapse) * inside + lapse * slip + TINY)
    return total


@compiled
def _implied(  # noqa: PLR0917
    at: int,
    x: FloatArray,
    ratio: FloatArray,
    people: FloatArray,
    q: Any,
    row_box: NDArray[np.int64],
    places: FloatArray,
    spreads: FloatArray,
) -> int:
    """Where every report on the token `at` puts its log-ratio, were it no lapse, how exactly, and their number."""
    n_items, n_boxes, generator = q.target_log_g.size, q.edges.shape[0], _generator(x, q)
    k = 0
    for j in range(q.first_row[at], q.first_row[at + 1]):
        row = q.row_of[j]
        u, given, other, reference = q.row_participant[row], row_box[row], q.row_token[row], q.row_reference[row]
        if given == 0:
            reported = q.edges[0, 1] - _INNER
        elif given == n_boxes - 1:
            reported = q.edges[given, 0] + _INNER
        else:
            reported = 0.5 * (q.edges[given, 0] + q.edges[given, 1])
        log_odds = reported / people[0, u] - generator * (q.log_g[reference] - q.log_g[other])
        if reference < n_items:
            log_odds -= people[1, u]
        places[k] = ratio[reference] - log_odds if other == at else ratio[other] + log_odds
        spreads[k] = _WIDER * people[2, u] / people[0, u]
        k += 1
    return k


@compiled
def _log_proposed(  # noqa: PLR0917
    z: float, value: float, steep: float, places: FloatArray, spreads: FloatArray, n: int
) -> float:
    """Log-density in z of a proposal: the prior of z, a broader one, or one of `n` normals of the log-ratio."""
    found = _log_sum(-0.5 * z * z, _log_normal(z, 0.0, _BROAD))
    for k in range(n):
        found = _log_sum(found, _log_normal(value, places[k], spreads[k]) + log(steep))
    return found


@compiled
def _log_answers(  # noqa: PLR0917
    i: int,
    level: float,
    x: FloatArray,
    ratio: FloatArray,
    divergence: float,
    shape: FloatArray,
    q: Any,
    token_answers: NDArray[np.int64],
    target_answers: NDArray[np.int64],
) -> float:
    """Log-probability of the answers to an item at a level, up to a constant."""
    n_items = q.target_log_g.size
    log_rate = q.log_n_answers[i] + q.target_log_g[i] + level + ratio[i]
    total: float = target_answers[i] * log_rate - exp(min(log_rate, _MOST_LOG_RATE))
    for token in range(q.first_token[i], q.first_token[i + 1]):
        log_g, missed = q.token_log_g[token], q.not_drawn[token]
        log_rate = q.log_n_answers[i] + log_g + level + ratio[n_items + token]
        total += token_answers[token] * log_rate - exp(min(log_rate, _MOST_LOG_RATE))
        if missed > 0:
            middle = q.log_n_entry[i] + log_g + level + x[_F_G] * (log_g + 4) + x[_F_RARE] * max(-log_g - 7, 0.0)
            scale = divergence * exp(-x[_F_SPREAD_G] * _spread_place(log_g))
            answered = 0.0
            for k in range(shape.size):
                rate = exp(min(middle + scale * shape[k], _MOST_LOG_RATE))
                answered += q.weight[k] * (rate * (1 - 0.5 * rate) if rate < _FEW else 1 - exp(-rate))
            total -= log(max(1 - missed + missed * answered, TINY))
    return total


@compiled
def free_answer_step(  # noqa: PLR0917
    token: int,
    new_z: float,
    others: float,
    now: tuple[float, float],
    holds_level: bool,
    x: FloatArray,
    ratio: FloatArray,
    unit: FloatArray,
    of_items: FloatArray,
    people: FloatArray,
    shape: FloatArray,
    q: Any,
    token_answers: NDArray[np.int64],
    target_answers: NDArray[np.int64],
    row_box: NDArray[np.int64],
) -> tuple[float, float, float, tuple[float, float], float]:
    r"""Give a token the residual `new_z`: what changes, and by how much the log-density of the residuals gains.

    With `holds_level` the item's standard normal moves along, so that its level, and with it what the belief is about
    every other token, stays: of the answers the token's own count. With T the sum over the vocabulary,
    :math:`(z, u) \to (z', u + (\ln T' - \ln T) / \tau)` does not change volumes. Without, the others give what the
    token takes.

    `others` is the log of T without the token, `now` what :func:`_log_reports` and :func:`_log_answers` are; the latter
    is read and made anew only without `holds_level`. Returns the token's log-ratio, the item's standard normal, its
    level and `now` after the step, then the gain.
    """
    i, at, log_g = q.token_item[token], q.target_log_g.size + token, q.token_log_g[token]
    divergence, level = of_items[0, i], of_items[3, i]
    new = x[_F_G] * (log_g + 4) + x[_F_RARE] * max(-log_g - 7, 0.0)
    scale = divergence * exp(-x[_F_SPREAD_G] * _spread_place(log_g))
    new += scale * _bent(new_z, exp(x[_F_NARROW]), exp(x[_F_UPPER]), exp(x[_F_LOWER]))[0]
    old, old_z, new_u, new_level = ratio[at], unit[at], x[_N_FREE + i], level
    grown = _log_sum(others, log_g + new) - _log_sum(others, log_g + old)
    reports, answers = _log_reports(at, new, x, ratio, people, q, row_box), now[1]
    gain: float = 0.5 * (old_z * old_z - new_z * new_z) + reports - now[0]
    if holds_level:
        new_u += grown / exp(x[_F_LEVEL_SPREAD])
        gain += 0.5 * (x[_N_FREE + i] ** 2 - new_u * new_u)
        log_rate = q.log_n_answers[i] + log_g + level
        gain += token_answers[token] * (new - old)
        gain -= exp(min(log_rate + new, _MOST_LOG_RATE)) - exp(min(log_rate + old, _MOST_LOG_RATE))
    else:
        new_level -= grown
        ratio[at] = new
        answers = _log_answers(i, new_level, x, ratio, divergence, shape, q, token_answers, target_answers)
        ratio[at] = old
        gain += answers - now[1]
    return new, new_u, new_level, (reports, answers), gain


@compiled
def _log_others(token: int, ratio: FloatArray, log_rest: float, q: Any) -> float:
    """Log of the sum over the vocabulary without a token, before the item's level."""
    i, n_items = q.token_item[token], q.target_log_g.size
    first, last = q.first_token[i], q.first_token[i + 1]
    target = q.target_log_g[i] + ratio[i]
    most = max(log_rest, target)
    for other in range(first, last):
        if other != token:
            most = max(most, q.token_log_g[other] + ratio[n_items + other])
    total = exp(log_rest - most) + exp(target - most)
    for other in range(first, last):
        if other != token:
            total += exp(q.token_log_g[other] + ratio[n_items + other] - most)
    found: float = most + log(total)
    return found


@compiled
def _move_tokens(  # noqa: PLR0917
    x: FloatArray,
    rng: np.random.Generator,
    q: Any,
    token_answers: NDArray[np.int64],
    target_answers: NDArray[np.int64],
    row_box: NDArray[np.int64],
) -> float:
    """Metropolis steps of every token in turn, to where its prior, its answers or a report put it; how many moved."""
    n_items, n_tokens = q.target_log_g.size, q.token_item.size
    at_token = _N_FREE + 3 * n_items
    people = free_answer_people(x, at_token + n_tokens, q.n_participants, q.noise_centring)
    mean_bias = people[1].sum() / q.n_participants
    ratio, unit, of_items, _ = free_answer_ratios(x, mean_bias, q)
    level = of_items[3]
    narrow, upper, lower = exp(x[_F_NARROW]), exp(x[_F_UPPER]), exp(x[_F_LOWER])
    shape = np.empty(q.node.size)
    for k in range(shape.size):
        shape[k] = _bent(q.node[k], narrow, upper, lower)[0]
    places, spreads = np.empty((2, 1 + row_box.size))
    moved = 0.0
    for token in range(n_tokens):
        i, at, log_g, answers = q.token_item[token], n_items + token, q.token_log_g[token], token_answers[token]
        scale = of_items[0, i] * exp(-x[_F_SPREAD_G] * _spread_place(log_g))
        line = x[_F_G] * (log_g + 4) + x[_F_RARE] * max(-log_g - 7, 0.0)
        others = _log_others(token, ratio, of_items[1, i], q)
        n_reports = _implied(at, x, ratio, people, q, row_box, places, spreads)
        now = (_log_reports(at, ratio[at], x, ratio, people, q, row_box), 0.0)
        # the second time a token that was answered, and so may be most of the belief, takes from the others
        for holds_level in (True, False):
            n = n_reports
            if answers > 0 and holds_level:
                places[n] = log(answers) - q.log_n_answers[i] - log_g - level[i]
                spreads[n] = 1 / sqrt(answers)
                n += 1
            elif answers > 0:
                own = of_items[0, i]
                now = (now[0], _log_answers(i, level[i], x, ratio, own, shape, q, token_answers, target_answers))
            elif not holds_level:
                continue
            chosen, new_z = int(rng.random() * (n + 2)), rng.standard_normal()
            if chosen < n:
                new_z = _bent_unit(places[chosen] + spreads[chosen] * new_z, 1.0, line, scale, narrow, upper, lower)
            elif chosen == n:
                new_z *= _BROAD
            new, new_u, new_level, then, gain = free_answer_step(
                token,
                new_z,
                others,
                now,
                holds_level,
                x,
                ratio,
                unit,
                of_items,
                people,
                shape,
                q,
                token_answers,
                target_answers,
                row_box,
            )
            for z, value, sign in ((unit[at], ratio[at], 1.0), (new_z, new, -1.0)):
                steep = scale * _bent(z, narrow, upper, lower)[1]
                gain += sign * _log_proposed(z, value, steep, places, spreads, n)
            if log(rng.random()) < gain:
                moved += 1
                now = then
                ratio[at], unit[at], x[_N_FREE + i], level[i] = new, new_z, new_u, new_level
                c = q.centring[at]
                x[at_token + token] = (1 - c) * new_z + c * (new - ratio[i] - mean_bias)
    return moved


@compiled
def free_answer_scaled(x: FloatArray, by: float, q: Any) -> tuple[FloatArray, float]:
    r"""Belief to the power :math:`e^{-s}` with slopes steeper by :math:`e^s`: the same reports, other answers.

    The standardised residuals stay; gives the parameters then, and the logarithm of the change of volume.
    """
    n_items, n_tokens, n_people = q.target_log_g.size, q.token_item.size, q.n_participants
    at_target = _N_FREE + 2 * n_items
    at_u = at_target + n_items + n_tokens
    flatter = exp(-by)
    y = x.copy()
    for i in (_F_NARROW, _F_UPPER, _F_LOWER, _F_T_UPPER, _F_T_LOWER, _F_BIAS):
        y[i] -= by
    for i in (_F_RARE, _F_T_LEVEL, _F_T_SLOPE):
        y[i] *= flatter
    y[_F_G] = flatter * (1 + x[_F_G]) - 1
    for u in range(n_people):
        y[at_u + u] += by
    mean_bias = free_answer_people(x, at_u, n_people, q.noise_centring)[1].sum() / n_people
    ratio, unit, of_items, _ = free_answer_ratios(x, mean_bias, q)
    narrow, upper, lower = exp(x[_F_NARROW]), exp(x[_F_UPPER]), exp(x[_F_LOWER])
    t_middle, t_bend = 0.5 * (exp(x[_F_T_UPPER]) + exp(x[_F_T_LOWER])), 0.5 * (exp(x[_F_T_UPPER]) - exp(x[_F_T_LOWER]))
    volume = -4 * by
    for at in range(n_items + n_tokens):
        z, c = unit[at], q.centring[at]
        i = at if at < n_items else q.token_item[at - n_items]
        # of v + ln g + 4, which is the scaled one's times e^s
        target = flatter * (ratio[i] + q.log_g[i] + 4) - q.log_g[i] - 4
        if at < n_items:
            value, rising = target + flatter * mean_bias, of_items[0, i] * (t_middle + t_bend * z / sqrt(1 + z * z))
        else:
            value = flatter * (ratio[at] + q.log_g[at] + 4) - q.log_g[at] - 4 - target - flatter * mean_bias
            rising = _bent(z, narrow, upper, lower)[1]
            rising *= of_items[0, i] * exp(-x[_F_SPREAD_G] * _spread_place(q.log_g[at]))
        y[at_target + at] = (1 - c) * z + c * value
        volume += log((1 - c + c * flatter * rising) / (1 - c + c * rising))
    return y, volume


@compiled
def free_answer_shifted(x: FloatArray, by: float, q: Any) -> tuple[FloatArray, float]:
    """Everybody's bias for the targets greater, and all targets less likely by as much: the same reports.

    Gives the parameters then, and the logarithm of the change of volume.
    """
    at_u = _N_FREE + 3 * q.target_log_g.size + q.token_item.size
    people = free_answer_people(x, at_u, q.n_participants, q.noise_centring)
    y, volume = x.copy(), 0.0
    y[_F_T_LEVEL] -= by
    for u in range(q.n_participants):
        at = at_u + q.n_participants + u
        y[at] = asinh(people[5, u] * (people[4, u] + by * exp(-x[_F_BIAS])))
        volume += log(cosh(x[at]) / cosh(y[at]))
    return y, volume


@compiled
def _draw_free_answer_numbers(x: FloatArray, rng: np.random.Generator, q: Any, p: Any, priors: Any) -> None:
    """Draw how people and items differ, and middles of noise, lapses and levels, given what each person and item is."""
    n_items, n_people = q.target_log_g.size, q.n_participants
    at_u = _N_FREE + 3 * n_items + q.token_item.size
    people = free_answer_people(x, at_u, n_people, q.noise_centring)
    noise, unit, steepness, raw = people[2], people[4], people[5], people[6]
    x[_F_SLOPE] = _log_spread_given(rng, x[_F_SLOPE], n_people, (raw**2).sum(), priors.slope_spread, True)
    now, x[_F_BIAS] = x[_F_BIAS], _bias_spread(rng, unit, x[_F_BIAS], priors.bias_spread)
    for u in range(n_people):
        x[at_u + n_people + u] = asinh(steepness[u] * unit[u] * exp(now - x[_F_BIAS]))
    value = np.log(noise)
    x[_F_LOG_NOISE], x[_F_NOISE] = _middle_and_spread(
        rng, value, log(priors.noise_median), priors.log_noise, priors.noise_spread, x[_F_NOISE]
    )
    for u in range(n_people):
        c, standard = q.noise_centring[u], (value[u] - x[_F_LOG_NOISE]) * exp(-x[_F_NOISE])
        x[at_u + 2 * n_people + u] = standard * exp(c * x[_F_NOISE]) + c * x[_F_LOG_NOISE]
    lapse_logit = log(priors.lapse_median / (1 - priors.lapse_median))
    for at, n, middle, spread, mean, sd, half_sd in (
        (at_u + 3 * n_people, n_people, _F_LOGIT_LAPSE, _F_LAPSE, lapse_logit, priors.logit_lapse, priors.lapse_spread),
        (_N_FREE, n_items, _F_LEVEL, _F_LEVEL_SPREAD, 0.0, p.level, p.level_spread),
    ):
        deviation = x[at : at + n]
        values = x[middle] + exp(x[spread]) * deviation
        x[middle], x[spread] = _middle_and_spread(rng, values, mean, sd, half_sd, x[spread])
        deviation[:] = (values - x[middle]) / exp(x[spread])
    deviation = x[_N_FREE + n_items : _N_FREE + 2 * n_items]
    now, squares = x[_F_DIVERGENCE], (deviation**2).sum() * exp(2 * x[_F_DIVERGENCE])
    x[_F_DIVERGENCE] = _log_spread_given(rng, now, n_items, squares, p.divergence_spread, True)
    deviation *= exp(now - x[_F_DIVERGENCE])


@compiled
def free_answer_other_law(x: FloatArray, law: FloatArray, q: Any) -> tuple[FloatArray, float]:
    """Another law of the residuals, with every log h/g held but for the item's level.

    `law` has what takes the places of spread_slope, target_level, target_slope, narrow, upper, lower, target_upper and
    target_lower. Gives the parameters then, and the logarithm of the change of volume.
    """
    n_items, n_tokens, n_people = q.target_log_g.size, q.token_item.size, q.n_participants
    at_target = _N_FREE + 2 * n_items
    mean_bias = free_answer_people(x, at_target + n_items + n_tokens, n_people, q.noise_centring)[1].sum() / n_people
    ratio, unit, of_items, _ = free_answer_ratios(x, mean_bias, q)
    y, volume = x.copy(), 0.0
    for k in range(8):
        y[_LAW[k]] = law[k]
    rising = np.empty((2, n_items + n_tokens))
    for new in range(2):
        of = y if new else x
        narrow, upper, lower = exp(of[_F_NARROW]), exp(of[_F_UPPER]), exp(of[_F_LOWER])
        t_upper, t_lower = exp(of[_F_T_UPPER]), exp(of[_F_T_LOWER])
        t_middle, t_bend = 0.5 * (t_upper + t_lower), 0.5 * (t_upper - t_lower)
        for at in range(n_items + n_tokens):
            i, log_g = at if at < n_items else q.token_item[at - n_items], q.log_g[at]
            line, z = of[_F_G] * (log_g + 4) + of[_F_RARE] * max(-log_g - 7, 0.0), unit[at]
            if at < n_items:
                line += of[_F_T_LEVEL] + of[_F_T_SLOPE] * (log_g + 4)
                if new:
                    z = _sloped_unit(ratio[at], 1.0, line, of_items[0, i], t_middle, t_bend)
                rising[new, at] = of_items[0, i] * (t_middle + t_bend * z / sqrt(1 + z * z))
                held = ratio[at] + mean_bias
            else:
                scale = of_items[0, i] * exp(-of[_F_SPREAD_G] * _spread_place(log_g))
                if new:
                    z = _bent_unit(ratio[at], 1.0, line, scale, narrow, upper, lower)
                rising[new, at] = scale * _bent(z, narrow, upper, lower)[1]
                held = ratio[at] - ratio[i] - mean_bias
            if new:
                c = q.centring[at]
                y[at_target + at] = (1 - c) * z + c * held
                volume += log((c + (1 - c) / rising[1, at]) / (c + (1 - c) / rising[0, at]))
    return y, volume


@compiled
def _proposed_law(x: FloatArray, rng: np.random.Generator, of_targets: bool) -> FloatArray:
    """Another law of the residuals of targets, or of the other tokens, at a random distance."""
    law, size = np.empty(8), _LAW_STEP * exp(rng.standard_normal())
    for k in range(8):
        law[k] = x[_LAW[k]]
        if _LAW_OF_TARGETS[k] == of_targets:
            law[k] += size * _LAW_WIDTH[k] * rng.standard_normal()
    return law


@compiled
def free_answer_moves(  # noqa: PLR0917
    x: FloatArray,
    rng: np.random.Generator,
    q: Any,
    p: Any,
    priors: Any,
    token_answers: NDArray[np.int64],
    target_answers: NDArray[np.int64],
    row_box: NDArray[np.int64],
) -> float:
    """Moves between peaks of tokens, and along lines on which reports stay what they are; how many were accepted.

    A token that one person was asked about, and whose report fits badly, was a lapse or is far off, and no path comes
    from one to the other: see :func:`free_answer_step`. Reports alone do not know the scale of the belief, so that the
    posterior is long in the directions of :func:`free_answer_scaled` and :func:`free_answer_shifted`. What people and
    items are says how they differ, and paths hold standardised deviations instead: see
    :func:`_draw_free_answer_numbers` and :func:`free_answer_other_law`.
    """
    moved: float = _move_tokens(x, rng, q, token_answers, target_answers, row_box)
    _draw_free_answer_numbers(x, rng, q, p, priors)
    g = np.empty_like(x)
    value = free_answer_log_density(x, g, q, p, priors, token_answers, target_answers, row_box)
    for number in range(4 * _TIMES):
        if number % 4 == 0:
            y, volume = free_answer_shifted(x, _SHIFT * rng.standard_normal(), q)
        elif number % 4 == 1:
            y, volume = free_answer_scaled(x, _SCALING * rng.standard_normal(), q)
        else:
            y, volume = free_answer_other_law(x, _proposed_law(x, rng, number % 4 == 2), q)
        there = free_answer_log_density(y, g, q, p, priors, token_answers, target_answers, row_box)
        if log(rng.random()) < there - value + volume:
            moved += 1
            x[:] = y
            value = there
    return moved
