r"""Log-density of the participant model and its gradient, written out for Numba.

The model is that of :func:`models.comparison.participants.participant_model`, which stays the statement of it: tests
compare the two. PyTensor compiles that statement anew in every process, for a minute of processor time, and its
gradient repeats what value and gradient share. Here one pass forward and one back serve any study, and Numba keeps
what it compiled on disk. Fast maths is off, so that nothing is summed in another order on another day.

The parameters stand in one vector, on the scale on which PyMC samples them: :data:`NUMBERS` first, then those of items
(z, zeta, A_unit), shared pairs (e_unit) and participants (slope_unit, bias_unit, noise_unit, lapse_unit).
"""

from __future__ import annotations

from collections import namedtuple
from dataclasses import astuple, fields
from math import cosh, erfc, exp, lgamma, log, log1p, pi, sinh, sqrt, tanh
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from models.comparison.participant_data import ParticipantData
from models.comparison.participants import FAR, ITEM_SCALE_BOUND, SCALE_FLOOR, SLOPE_BOUND, TINY, ParticipantPriors
from models.density import WrittenDensity

__all__ = ["NUMBERS", "Questions", "layout", "participant_density"]

FloatArray = NDArray[np.float64]

NUMBERS = (
    *("mu", "a", "b", "b2", "c", "kap", "delta", "ga", "log_noise", "logit_lapse"),
    *("rho", "sigma", "omega", "t_b", "slope_spread", "bias_spread", "noise_spread", "lapse_spread", "half"),
)
"""The numbers that all share; `rho` to `lapse_spread` as logarithms, `half` as logit."""
_MU, _A, _B, _B2, _C, _KAP, _DELTA, _GA, _LOG_NOISE, _LOGIT_LAPSE = range(10)
_RHO, _SIGMA, _OMEGA, _T_B, _SLOPE, _BIAS, _NOISE, _LAPSE, _HALF = range(10, 19)

_BIAS_DF = 4.0
_ROOT_2_PI = sqrt(2 / pi)
_ROOT_HALF = sqrt(0.5)
_NOTHING_BEYOND = 38.6
_HALF_LOG_2_PI = 0.5 * log(2 * pi)
# a two-piece normal's variance, third moment, and skew from the third moment: see participants.added_noise
_VARIANCE, _THIRD, _SKEW = 1 - 2 / pi, 4 / pi - 1, 2 - 6 / pi

# Numba takes named tuples as they are
Questions = namedtuple(  # noqa: PYI024 - a typed one would repeat the types of ParticipantData
    "Questions", "target_logit surprisal pair_item pair_log_g pair_log_g_ratio n_shared n_participants edges half_box"
)
_Priors = namedtuple("_Priors", [field.name for field in fields(ParticipantPriors)])  # type: ignore[misc]  # noqa: PYI024

_compiled = njit(cache=True, nogil=True, error_model="numpy")


def participant_density(data: ParticipantData, priors: ParticipantPriors | None = None) -> WrittenDensity:
    """Log-density of :func:`~models.comparison.participants.participant_model`, for any answers and scale.

    Parameters
    ----------
    data : ParticipantData
    priors : ParticipantPriors, optional

    Returns
    -------
    WrittenDensity
        It reads answers and scale from the model's data: ``row_pair``, ``row_participant``, ``row_box``, ``present``
        and ``k0``.

    Examples
    --------
    >>> import numpy as np
    >>> from estimators.comparison.examples import comparison_study
    >>> import models
    >>> from models.comparison.participant_density import participant_density
    >>> data = models.participant_data(comparison_study())
    >>> density = participant_density(data)
    >>> answers = {name: getattr(data, name) for name in ("row_pair", "row_participant", "row_box")}
    >>> value, gradient = density.evaluate(density.start, **answers, present=data.answers.astype(float), k0=1.0)
    >>> gradient.shape == density.start.shape, bool(np.isfinite(value))
    (True, True)
    """
    asked, p = _questions(data), priors or ParticipantPriors()
    known = _Priors(*map(float, astuple(p)))
    where = layout(data.item.size, data.n_shared, data.participant.size)
    start = np.zeros(where["lapse_unit"].stop)
    start[where["kap"]], start[where["ga"]] = p.kap_mean, p.ga_mean
    start[where["log_noise"]] = np.log(p.noise_median)
    start[where["logit_lapse"]] = np.log(p.lapse_median / (1 - p.lapse_median))
    for name in NUMBERS[_SIGMA:_HALF]:
        start[where[name]] = np.log(getattr(p, name))

    def evaluate(x: FloatArray, **answers: Any) -> tuple[float, FloatArray]:
        gradient = np.empty_like(x)
        rows = (np.asarray(answers[name], dtype=np.int64) for name in ("row_pair", "row_participant", "row_box"))
        value = _log_density(x, gradient, asked, known, *rows, answers["present"], float(answers["k0"]))
        return value, gradient

    def expand(x: FloatArray, **answers: Any) -> dict[str, FloatArray]:
        return _expanded(x, where, asked, answers["present"], float(answers["k0"]))

    return WrittenDensity(start, evaluate, expand, ("row_pair", "row_participant", "row_box", "present", "k0"))


def _questions(data: ParticipantData) -> Any:
    """What the density needs of a study beside the answers, as Numba takes it."""

    def plain(array: NDArray[Any]) -> FloatArray:
        return np.ascontiguousarray(array, dtype=np.float64)

    return Questions(
        plain(data.target_logit),
        plain(data.surprisal),
        np.ascontiguousarray(data.pair_item, dtype=np.int64),
        plain(data.pair_log_g),
        plain(data.pair_log_g_ratio),
        int(data.n_shared),
        int(data.participant.size),
        plain(np.clip(data.box_edges, -FAR, FAR)),
        int(data.half_box),
    )


def layout(n_items: int, n_shared: int, n_participants: int) -> dict[str, slice]:
    """Where every parameter stands in the vector."""
    sizes = {name: 1 for name in NUMBERS}
    sizes |= dict.fromkeys(("z", "zeta", "A_unit"), n_items) | {"e_unit": n_shared}
    sizes |= dict.fromkeys(("slope_unit", "bias_turned", "noise_unit", "lapse_unit"), n_participants)
    ends = np.cumsum(list(sizes.values())).tolist()
    return {name: slice(end - sizes[name], end) for name, end in zip(sizes, ends, strict=True)}


@_compiled
def _add_numbers(x: FloatArray, g: FloatArray, p: Any) -> float:
    """Priors of the numbers that all share: adds the gradient, gives the log-density."""
    total = 0.0
    for i, mean, sd in (
        (_MU, 0.0, p.mu),
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
        total -= 0.5 * ((x[i] - mean) / sd) ** 2 + log(sd) + _HALF_LOG_2_PI
        g[i] -= (x[i] - mean) / sd**2
    for i, sd in (
        (_SIGMA, p.sigma),
        (_OMEGA, p.omega),
        (_T_B, p.t_b),
        (_SLOPE, p.slope_spread),
        (_BIAS, p.bias_spread),
        (_NOISE, p.noise_spread),
        (_LAPSE, p.lapse_spread),
    ):
        square = (exp(x[i]) / sd) ** 2
        total += log(2.0) - _HALF_LOG_2_PI - log(sd) - 0.5 * square + x[i]
        g[i] += 1 - square
    half = 1 / (1 + exp(-x[_HALF]))
    total += lgamma(p.half_alpha + p.half_beta) - lgamma(p.half_alpha) - lgamma(p.half_beta)
    total += p.half_alpha * log(half) + p.half_beta * log1p(-half)
    g[_HALF] += p.half_alpha * (1 - half) - p.half_beta * half
    return total


@_compiled
def _add_normals(x: FloatArray, g: FloatArray) -> float:
    """Standard normals: adds the gradient, gives the log-density."""
    total = -_HALF_LOG_2_PI * x.size
    for i in range(x.size):
        total -= 0.5 * x[i] * x[i]
        g[i] -= x[i]
    return total


@_compiled
def _add_students(x: FloatArray, g: FloatArray, nu: float) -> float:
    """Standard Student t: adds the gradient, gives the log-density."""
    total = (lgamma((nu + 1) / 2) - lgamma(nu / 2) - 0.5 * log(nu * pi)) * x.size
    for i in range(x.size):
        total -= 0.5 * (nu + 1) * log1p(x[i] * x[i] / nu)
        g[i] -= (nu + 1) * x[i] / (nu + x[i] * x[i])
    return total


@_compiled
def _add_residuals(e: FloatArray, g: FloatArray, ga: float) -> tuple[float, float]:
    """Two-piece normals of scales e^ga and e^-ga: adds the gradient in e, gives log-density and gradient in ga."""
    left, right = exp(ga), exp(-ga)
    total = -(log((left + right) / 2) + _HALF_LOG_2_PI) * e.size
    g_ga = -(left - right) / (left + right) * e.size
    for i in range(e.size):
        offset = e[i] - _ROOT_2_PI * (left - right)
        scale = left if offset < 0 else right
        standard = offset / scale**2
        total -= 0.5 * offset * standard
        g[i] -= standard
        g_ga += standard * _ROOT_2_PI * (left + right) + (offset if offset < 0 else -offset) * standard
    return total, g_ga


@_compiled
def _added_noise(wide: float, d: float, by_ga: float, noise: float) -> tuple[float, ...]:
    """Two-piece normal of scales wide e^-ga, wide e^ga, and a normal: two scales, their derivatives.

    See :func:`~models.comparison.participants.added_noise`. `d` is e^ga - e^-ga and `by_ga` its derivative; after left and right follow the derivatives of left in
    wide, ga and noise, then those of right.
    """
    square = wide * wide
    v, t = _VARIANCE * d * d + 1, d * (_THIRD * d * d + 1)
    variance = square * v + noise * noise
    first = wide * square * t / variance
    ratio = _SKEW * first * first / variance
    skew = first * (1 + ratio)
    root = sqrt(skew * skew + 4 * (variance - _VARIANCE * skew * skew))
    # of skew and root in variance and third moment
    skew_third = (1 + 3 * ratio) / variance
    skew_variance = -(first * ratio + first * (1 + 3 * ratio)) / variance
    root_skew, root_variance = skew * (1 - 4 * _VARIANCE) / root, 2 / root
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


@_compiled
def _tail(x: float, scale: float) -> tuple[float, float]:
    """Of a standard normal beyond \\|x\\| / scale: twice its probability, and e^(-x^2 / 2 scale^2)."""
    t = abs(x) / scale
    if t > _NOTHING_BEYOND:
        return 0.0, 0.0
    return erfc(t * _ROOT_HALF), exp(-0.5 * t * t)


@_compiled
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


@_compiled
def _items(x: FloatArray, n_items: int, q: Any) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Of every item: A, spread s, slope on ln g, and s^2 without its floor."""
    intercept, spread, slope, free = np.empty((4, n_items))
    sigma, omega, t_b, rho = exp(x[_SIGMA]), exp(x[_OMEGA]), exp(x[_T_B]), exp(x[_RHO])
    for i in range(n_items):
        z, zeta, unit = x[19 + i], x[19 + n_items + i], x[19 + 2 * n_items + i]
        own = ITEM_SCALE_BOUND * tanh(omega * z / ITEM_SCALE_BOUND)
        free[i] = (sigma * exp(own + x[_C] * (q.surprisal[i] - 4))) ** 2
        variance = free[i] + SCALE_FLOOR**2
        spread[i] = sqrt(variance)
        logit = q.target_logit[i]
        place = x[_MU] + x[_A] * (logit + 3) - t_b * zeta * (logit + 5) - x[_KAP] * variance / 2
        intercept[i] = place + rho * spread[i] * unit
        slope[i] = x[_B] + t_b * zeta
    return intercept, spread, slope, free


@_compiled
def _people(x: FloatArray, start: int, n: int, present: FloatArray, k0: float) -> FloatArray:
    """Slope, bias, noise and lapse rate of every participant, standardised bias, and slope without k0 and centre."""
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
    return found


@_compiled
def _log_density(  # noqa: PLR0914, PLR0915 - one pass forward and back; in pieces it would hand on thirty arrays
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
    total = _add_numbers(x, g, p)
    total += _add_normals(x[19 : 19 + 2 * n_items], g[19 : 19 + 2 * n_items])
    total += _add_students(x[19 + 2 * n_items : at_e], g[19 + 2 * n_items : at_e], p.nu)
    found, g_ga = _add_residuals(x[at_e:at_u], g[at_e:at_u], x[_GA])
    total += found
    total += _add_normals(x[at_u : at_u + n_people], g[at_u : at_u + n_people])
    total += _add_normals(x[at_u + 2 * n_people :], g[at_u + 2 * n_people :])

    intercept, spread, item_slope, free = _items(x, n_items, q)
    slope, bias, noise, lapse, bias_unit, steepness = _people(x, at_u, n_people, present, k0)
    g_unit = np.zeros(n_people)
    total += _add_students(bias_unit, g_unit, _BIAS_DF)
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
    for row in range(row_pair.size):
        j, u, box = row_pair[row], row_participant[row], row_box[row]
        i, k = q.pair_item[j], slope[u]
        if j < q.n_shared:
            left = right = noise[u]
        else:
            left, right, left_wide, left_ga, left_noise, right_wide, right_ga, right_noise = _added_noise(
                k * spread[i], skewed, skewed_back, noise[u]
            )
        mean = k * (bias[u] - log_odds[j])
        inside, by_mean, by_left, by_right = _box(mean, left, right, q.edges[box, 0], q.edges[box, 1])
        at_half = 1.0 if box == q.half_box else 0.0
        slip = half * at_half + (1 - half) / n_boxes
        probability = (1 - lapse[u]) * inside + lapse[u] * slip + TINY
        total += log(probability)
        g_lapse[u] += (slip - inside) / probability
        g_half += lapse[u] * (at_half - 1 / n_boxes) / probability
        weight = (1 - lapse[u]) / probability
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
        z, zeta, unit = x[19 + i], x[19 + n_items + i], x[19 + 2 * n_items + i]
        logit = q.target_logit[i]
        g[_MU] += g_intercept[i]
        g[_A] += g_intercept[i] * (logit + 3)
        g[_B] += g_item_slope[i]
        by_zeta = g_item_slope[i] - g_intercept[i] * (logit + 5)
        g[19 + n_items + i] += t_b * by_zeta
        g[_T_B] += t_b * zeta * by_zeta
        g[_KAP] -= g_intercept[i] * spread[i] ** 2 / 2
        g[19 + 2 * n_items + i] += g_intercept[i] * rho * spread[i]
        g[_RHO] += g_intercept[i] * rho * spread[i] * unit
        # of ln s^2 without its floor, halved: ln sigma + own + c (E - 4)
        by_log = ((g_spread[i] + g_intercept[i] * rho * unit) / spread[i] - g_intercept[i] * x[_KAP]) * free[i]
        g[_SIGMA] += by_log
        g[_C] += by_log * (q.surprisal[i] - 4)
        by_own = by_log * (1 - tanh(omega * z / ITEM_SCALE_BOUND) ** 2)
        g[_OMEGA] += by_own * omega * z
        g[19 + i] += by_own * omega
    n_present = present.sum()
    mean_slope, mean_bias = g_slope.sum() / n_present, g_bias.sum() / n_present
    for u in range(n_people):
        units = (x[at_u + u], x[at_u + n_people + u], x[at_u + 2 * n_people + u], x[at_u + 3 * n_people + u])
        # bias_unit = sinh(y) / steepness, whose logarithm is the deviation of ln slope
        by_unit = g_unit[u] + (g_bias[u] - present[u] * mean_bias) * exp(x[_BIAS])
        turn = cosh(units[1])
        total += log(turn / steepness[u])
        g[at_u + n_people + u] += by_unit * turn / steepness[u] + tanh(units[1])
        by_slope = g_slope[u] - present[u] * mean_slope - by_unit * bias_unit[u] - 1
        by_slope *= exp(x[_SLOPE]) * (1 - tanh(exp(x[_SLOPE]) * units[0] / SLOPE_BOUND) ** 2)
        by_noise = g_noise[u] * noise[u]
        by_lapse = g_lapse[u] * lapse[u] * (1 - lapse[u])
        g[at_u + u] += by_slope
        g[_SLOPE] += by_slope * units[0]
        g[_BIAS] += (by_unit - g_unit[u]) * bias_unit[u]
        g[_LOG_NOISE] += by_noise
        g[at_u + 2 * n_people + u] += by_noise * exp(x[_NOISE])
        g[_NOISE] += by_noise * exp(x[_NOISE]) * units[2]
        g[_LOGIT_LAPSE] += by_lapse
        g[at_u + 3 * n_people + u] += by_lapse * exp(x[_LAPSE])
        g[_LAPSE] += by_lapse * exp(x[_LAPSE]) * units[3]
    g[_GA] += g_ga
    g[_HALF] += g_half * half * (1 - half)
    return total


def _expanded(x: FloatArray, where: dict[str, slice], q: Any, present: FloatArray, k0: float) -> dict[str, FloatArray]:
    """Values of the model's variables at a vector of parameters, deterministic ones too."""
    found = {name: x[part] for name, part in where.items() if name != "bias_turned"}
    found |= {name: x[where[name].start] for name in NUMBERS}
    found |= {name: np.exp(found[name]) for name in NUMBERS[_RHO:_HALF]}
    found["half"] = 1 / (1 + np.exp(-found["half"]))
    found["A"], found["s"] = _items(x, q.target_logit.size, q)[:2]
    people = _people(x, where["slope_unit"].start, q.n_participants, present, k0)
    return found | dict(zip(("slope", "bias", "noise", "lapse", "bias_unit"), people, strict=False))
