"""Log-density of :func:`shannon_game.models.cloze.tvd.word_pair_model` and its gradient, written out for Numba.

Functions called ``add_`` and the like add to an array of a context's gradient, whose places are its six parameters
(:data:`shannon_game.models.cloze.tvd.PARAMETERS`) and then the two logarithms of u. Fast maths is off, so that nothing
is summed in another order on another day.
"""

from __future__ import annotations

from math import exp, lgamma, log, log1p, sqrt
from typing import Any

import numpy as np

from shannon_game.estimators.arrays import FloatArray
from shannon_game.models.compiled import compiled

_LEAST_SHARE = 1e-14
"""Of a word's likelihood: what has less of it adds nothing to a gradient."""
_ASYMPTOTIC = 8.0


@compiled
def _digamma(x: float) -> float:
    total = 0.0
    while x < _ASYMPTOTIC:
        total -= 1 / x
        x += 1
    y = 1 / (x * x)
    found: float = total + log(x) - 0.5 / x - y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y * (1 / 240 - y / 132))))
    return found


@compiled
def log_add(a: float, b: float) -> float:
    """Logarithm of the sum of two numbers given as logarithms."""
    return a + log1p(exp(b - a)) if a > b else b + log1p(exp(a - b))


@compiled
def _logistic(x: float) -> float:
    return 1 / (1 + exp(-x))


@compiled
def _equal(  # noqa: PLR0917 - Numba takes arguments by place alone
    t: FloatArray, log_u: FloatArray, rows: Any, span: Any, answers: FloatArray, g: FloatArray
) -> float:
    """Counts of a context in which both distributions are one: shared words alone, whose two weights are equal."""
    d = _logistic(t[3])
    u_1, u_2 = exp(log_u[0]), exp(log_u[1])
    rate = 1 + u_1 + u_2
    log_rate = log(rate)
    value: float = answers[0] * log_u[0] + answers[1] * log_u[1]
    by_mass = by_d = by_log_rate = 0.0
    for i in range(span[0], span[1]):
        left, words = rows.a[i] + rows.b[i] - d, rows.words[i]
        value += words * (t[0] + lgamma(left) - left * log_rate)
        by_mass += words
        by_d += words * (log_rate - _digamma(left))
        by_log_rate -= words * left
    factor, grown = exp(t[0] + lgamma(1 - d)) / d, exp(d * log_rate)
    psi = factor * (grown - 1)
    by_d += psi * (_digamma(1 - d) + 1 / d) - factor * grown * log_rate
    by_log_rate -= factor * d * grown
    g[0] += by_mass - psi
    g[3] += by_d * d * (1 - d)
    g[6] += answers[0] + by_log_rate * u_1 / rate
    g[7] += answers[1] + by_log_rate * u_2 / rate
    found: float = value - psi
    return found


@compiled
def _add_exclusive(mass: float, e: float, log_u: float, g: FloatArray, side: int) -> float:
    """Minus what psi has for the words of one side alone; gives it with its derivative by e."""
    u = exp(log_u)
    log_rate = log1p(u)
    factor, grown = exp(mass + lgamma(1 - e)) / e, exp(e * log_rate)
    psi = factor * (grown - 1)
    g[1 + side] -= psi
    g[6 + side] -= factor * e * grown * u / (1 + u)
    g[4] += (psi * (_digamma(1 - e) + 1 / e) - factor * grown * log_rate) * e * (1 - e)
    return -psi


@compiled
def _add_shared(t: FloatArray, log_u: FloatArray, nodes: Any, g: FloatArray) -> float:
    """Minus what psi has for the shared words."""
    d, sigma = _logistic(t[3]), exp(t[5])
    u_1, u_2 = exp(log_u[0]), exp(log_u[1])
    mean = with_log = by_1 = by_2 = by_sigma = 0.0
    for j in range(nodes.x.size):
        half = sigma * nodes.x[j] / 2
        first, second = u_1 * exp(half), u_2 * exp(-half)
        rate = 1 + first + second
        log_rate = log(rate)
        z = exp(nodes.log_weight[j] + d * log_rate)
        mean += z
        with_log += z * log_rate
        by_1 += z * first / rate
        by_2 += z * second / rate
        by_sigma += z * half * (first - second) / rate
    factor = exp(t[0] + lgamma(1 - d)) / d
    psi = factor * (mean - 1)
    g[0] -= psi
    g[3] += (psi * (_digamma(1 - d) + 1 / d) - factor * with_log) * d * (1 - d)
    g[5] -= factor * d * by_sigma
    g[6] -= factor * d * by_1
    g[7] -= factor * d * by_2
    return -psi


@compiled
def _different(  # noqa: PLR0915, PLR0917 - a word's likelihood and its gradient share all they compute
    t: FloatArray, log_u: FloatArray, rows: Any, span: Any, answers: FloatArray, nodes: Any, g: FloatArray
) -> float:
    """Counts of a context in which the distributions differ."""
    d, e, sigma = _logistic(t[3]), _logistic(t[4]), exp(t[5])
    u_1, u_2 = exp(log_u[0]), exp(log_u[1])
    log_1p = (log1p(u_1), log1p(u_2))
    value: float = answers[0] * log_u[0] + answers[1] * log_u[1]
    g[6] += answers[0]
    g[7] += answers[1]
    value += _add_shared(t, log_u, nodes, g)
    value += _add_exclusive(t[1], e, log_u[0], g, 0) + _add_exclusive(t[2], e, log_u[1], g, 1)
    n_nodes = nodes.word_x.size
    term, log_rates, halves, share_1, share_2 = np.empty((5, n_nodes))
    for i in range(span[0], span[1]):
        a, b = rows.a[i], rows.b[i]
        n = a + b
        left = n - d
        # where the counts put x: see the statement
        weight = (a + 0.5) * (b + 0.5) / (n + 1)
        information = sigma * sigma * weight
        middle = sigma * weight * (log((a + 0.5) / (b + 0.5)) - log_u[0] + log_u[1]) / (1 + information)
        width = 1 / sqrt(1 + information)
        highest = -np.inf
        for j in range(n_nodes):
            x = middle + width * nodes.word_x[j]
            half = sigma * x / 2
            grown = exp(half)
            first, second = u_1 * grown, u_2 / grown
            inverse = 1 / (1 + first + second)
            log_rates[j] = -log(inverse)
            halves[j], share_1[j], share_2[j] = half, first * inverse, second * inverse
            term[j] = nodes.word_log_weight[j] - x * x / 2 + (a - b) * half - left * log_rates[j]
            highest = max(highest, term[j])
        total = 0.0
        for j in range(n_nodes):
            term[j] = exp(term[j] - highest)
            total += term[j]
        shared = highest + log(total) + log(width) + t[0] + lgamma(left)
        side = 0 if b == 0 else 1
        p_shared, of_word = 1.0, shared
        if a == 0 or b == 0:
            alone = t[1 + side] + lgamma(n - e) - (n - e) * log_1p[side]
            of_word = log_add(shared, alone)
            p_shared = exp(shared - of_word)
        value += rows.words[i] * of_word
        p_alone, p_shared = rows.words[i] * (1 - p_shared), rows.words[i] * p_shared
        if p_shared > _LEAST_SHARE:
            by_middle = by_width = by_sigma = by_1 = by_2 = mean_log = 0.0
            for j in range(n_nodes):
                p = term[j] / total
                by_half = a - b - left * (share_1[j] - share_2[j])
                by_x = sigma * by_half / 2 - 2 * halves[j] / sigma
                by_middle += p * by_x
                by_width += p * by_x * nodes.word_x[j]
                by_sigma += p * halves[j] * by_half
                by_1 -= p * left * share_1[j]
                by_2 -= p * left * share_2[j]
                mean_log += p * log_rates[j]
            by_sigma += by_middle * middle * (1 - information) / (1 + information)
            by_sigma -= (1 + by_width * width) * information / (1 + information)
            moved = sigma * weight / (1 + information) * by_middle
            g[0] += p_shared
            g[3] += p_shared * (mean_log - _digamma(left)) * d * (1 - d)
            g[5] += p_shared * by_sigma
            g[6] += p_shared * (by_1 - moved)
            g[7] += p_shared * (by_2 + moved)
        if p_alone > _LEAST_SHARE:
            u = u_1 if side == 0 else u_2
            g[1 + side] += p_alone
            g[4] += p_alone * (log_1p[side] - _digamma(n - e)) * e * (1 - e)
            g[6 + side] -= p_alone * (n - e) * u / (1 + u)
    return value


@compiled
def _context_terms(  # noqa: PLR0917
    t: FloatArray,
    loose: float,
    tight: float,
    rows: Any,
    span: Any,
    answers: FloatArray,
    nodes: Any,
    log_u: FloatArray,
    g: FloatArray,
) -> tuple[float, float]:
    """Log-likelihood of a context whose distributions differ, and of one where they are equal."""
    d, e = _logistic(t[3]), _logistic(t[4])
    for k in range(g.shape[1]):
        g[0, k] = g[1, k] = 0.0
    shared = t[0] + lgamma(1 - d)
    square = exp(2 * t[5]) / 8
    spread, own = log1p(square), lgamma(1 - e)
    by_d, by_e = -_digamma(1 - d) * d * (1 - d), -_digamma(1 - e) * e * (1 - e)
    for side in range(2):
        turned = log(answers[side]) + loose + (0.5 - side) * tight
        log_u[0, side] = turned - log_add(shared + spread, t[1 + side] + own)
        log_u[1, side] = turned - shared
    different = _different(t, log_u[0], rows, span, answers, nodes, g[0])
    equal = _equal(t, log_u[1], rows, span, answers, g[1])
    for side in range(2):
        by_u = g[0, 6 + side]
        share = _logistic(shared + spread - t[1 + side] - own)
        g[0, 0] -= by_u * share
        g[0, 3] -= by_u * share * by_d
        g[0, 5] -= by_u * share * 2 * square / (1 + square)
        g[0, 1 + side] -= by_u * (1 - share)
        g[0, 4] -= by_u * (1 - share) * by_e
        g[1, 0] -= g[1, 6 + side]
        g[1, 3] -= g[1, 6 + side] * by_d
    for case in range(2):
        first, second = g[case, 6], g[case, 7]
        g[case, 6], g[case, 7] = first + second, (first - second) / 2
    if not (np.isfinite(different) and np.isfinite(g[0]).all()):
        # ratios beyond all floats: with them these counts cannot be
        different = -np.inf
        g[0] = 0.0
    return different, equal


@compiled
def log_odds(  # noqa: PLR0917
    theta: FloatArray,
    scale: FloatArray,
    rows: Any,
    starts: Any,
    answers: FloatArray,
    nodes: Any,
    log_u: FloatArray,
    log_u_equal: FloatArray,
    found: FloatArray,
) -> None:
    """Fill `found` (context,) with how much likelier a context's counts are by equal distributions, and what u is."""
    t, both, gradient = np.empty(6), np.empty((2, 2)), np.empty((2, 8))
    for c in range(answers.shape[1]):
        t[:] = theta[:, c]
        span = (starts[c], starts[c + 1])
        different, equal = _context_terms(t, scale[0, c], scale[1, c], rows, span, answers[:, c], nodes, both, gradient)
        log_u[:, c], log_u_equal[:, c] = both[0], both[1]
        found[c] = equal - different


@compiled
def word_pair_log_density(  # noqa: PLR0917
    x: FloatArray, g: FloatArray, rows: Any, starts: Any, answers: FloatArray, nodes: Any, priors: Any
) -> float:
    """Log-density of all contexts and of their population; ``word_pair_density`` lays out `x`."""
    n, n_contexts = 6, answers.shape[1]
    g[:] = 0.0
    first = 2 * n + 1 if priors.pooled else 0
    logit_equal = x[2 * n] if priors.pooled else 0.0
    p_equal = _logistic(logit_equal)
    log_equal = -log_add(0.0, -logit_equal)
    value: float = 0.0
    unseen = x.size - 1
    centre, sd = priors.mean.copy(), priors.sd.copy()
    if priors.pooled:
        # a beta distribution on the scale of its logit
        value += lgamma(priors.alpha + priors.beta) - lgamma(priors.alpha) - lgamma(priors.beta)
        value += (priors.alpha + priors.beta) * log_equal - priors.beta * logit_equal
        g[2 * n] += priors.alpha - (priors.alpha + priors.beta) * p_equal
        for k in range(n):
            standard = (x[k] - priors.mean[k]) / priors.sd[k]
            value -= 0.5 * standard * standard + log(priors.sd[k]) + 0.5 * log(2 * np.pi)
            g[k] -= standard / priors.sd[k]
            shape, rate = priors.df / 2, priors.df / 2 * (priors.scale * priors.sd[k]) ** 2
            pull = rate * exp(-x[n + k])
            value += shape * log(rate) - lgamma(shape) - shape * x[n + k] - pull
            g[n + k] += pull - shape
            centre[k], sd[k] = x[k], exp(x[n + k] / 2)
    standard = x[unseen] / priors.unseen
    value -= 0.5 * standard * standard + log(priors.unseen) + 0.5 * log(2 * np.pi)
    g[unseen] -= standard / priors.unseen
    t, log_u, own = np.empty(n), np.empty((2, 2)), np.empty((2, n + 2))
    for c in range(n_contexts):
        for k in range(n):
            unit = x[first + k * n_contexts + c]
            value -= 0.5 * unit * unit + 0.5 * log(2 * np.pi)
            g[first + k * n_contexts + c] -= unit
            t[k] = centre[k] + sd[k] * unit
        loose = first + n * n_contexts + c
        tight = loose + n_contexts
        span = (starts[c], starts[c + 1])
        different, equal = _context_terms(t, x[loose], x[tight], rows, span, answers[:, c], nodes, log_u, own)
        either = log_add(different + log_equal - logit_equal, equal + log_equal)
        value += either
        p_of_equal = exp(equal + log_equal - either)
        if priors.pooled:
            g[2 * n] += p_of_equal - p_equal
        g[loose] += (1 - p_of_equal) * own[0, 6] + p_of_equal * own[1, 6]
        g[tight] += (1 - p_of_equal) * own[0, 7] + p_of_equal * own[1, 7]
        for k in range(n):
            slope = (1 - p_of_equal) * own[0, k] + p_of_equal * own[1, k]
            place = first + k * n_contexts + c
            g[place] += slope * sd[k]
            if priors.pooled:
                g[k] += slope
                g[n + k] += slope * sd[k] * x[place] / 2
    return value
