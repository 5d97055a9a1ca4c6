r"""Logarithm of a mean of importance weights, item by item.

Every item *q* has :math:`n_q` terms :math:`w_{qj}`, and what is wanted is :math:`\ln E[w_q]`. The plain
:math:`\ln \bar w_q` is too low by about :math:`\mathrm{var}(w) / 2 n \bar w^2` (Jensen), and by far more when
the weights have a heavy tail. All estimates work on log-terms, so that nothing overflows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.comparison.diagnostics import smooth_tail
from shannon_game.estimators.comparison.item_terms import ItemTerms
from shannon_game.estimators.display import Result
from shannon_game.estimators.errors import InputError


@dataclass(frozen=True, eq=False, repr=False)
class LogMeans(Result):
    """Estimate of ln E[w] of each item.

    Attributes
    ----------
    value : ndarray, shape (item,)
        Nats.
    se : ndarray, shape (item,)
        Nats; only the noise of drawing n terms, not the spread over items. NaN for an item with a single term.
    """

    value: FloatArray
    se: FloatArray


def plain_log_mean(terms: ItemTerms) -> LogMeans:
    r"""Compute :math:`\ln \bar w` (eqs. 4-5), with the standard error :math:`\mathrm{sd}_0(w) / \sqrt n\, \bar w`."""
    ItemTerms.require(terms=terms)
    mean = terms.weights.total / terms.n
    variance = terms.sum((terms.weights.scaled - np.repeat(mean, terms.n)) ** 2) / terms.n
    variance[terms.n == 1] = np.nan
    return LogMeans(value=np.log(mean) + terms.weights.largest, se=np.sqrt(variance / terms.n) / mean)


def items_se(value: FloatArray) -> float:
    """Standard error of a mean over items, (item,), by the spread (ddof 0) of the items; NaN for one item."""
    return float(value.std() / np.sqrt(value.size)) if value.size > 1 else float("nan")


def delta_log_mean(terms: ItemTerms) -> LogMeans:
    r"""Second-order correction :math:`\ln \bar w + \mathrm{var}(w) / (2 n \bar w^2)`, ddof 1; not of single terms."""
    plain = plain_log_mean(terms)
    relative_variance = plain.se**2 * terms.n / np.maximum(terms.n - 1, 1)  # of the mean, with ddof 1
    value = plain.value + np.where(terms.n > 1, relative_variance, 0.0) / 2
    return LogMeans(value=value, se=np.sqrt(relative_variance))


def jackknife_log_mean(terms: ItemTerms) -> LogMeans:
    r"""Jackknife :math:`n \ln \bar w - \frac{n-1}{n} \sum_j \ln \bar w_{-j}` (Nowozin 2018, eq. 10)."""
    plain = plain_log_mean(terms)
    n, many = terms.n, terms.n > 1
    others = np.nan_to_num(terms.others_log_mean())
    mean_others = terms.sum(others) / n
    spread = terms.sum((others - np.repeat(mean_others, n)) ** 2)
    value = np.where(many, n * plain.value - (n - 1) * mean_others, plain.value)
    return LogMeans(value=value, se=np.sqrt(np.where(many, (n - 1) / n * spread, np.nan)))


def psis_log_mean(terms: ItemTerms) -> LogMeans:
    """Log-mean after Pareto smoothing (Vehtari et al. 2024) of the leave-one-out weights' tail, pooled over items."""
    ItemTerms.require(terms=terms)
    log_weight = terms.log_term - terms.others_log_mean()
    several = np.isfinite(log_weight)
    if not several.any():
        return plain_log_mean(terms)
    weight = np.exp(log_weight[several] - log_weight[several].max())
    smoothed = smooth_tail(weight)
    moved = smoothed != weight
    log_term = terms.log_term.copy()
    log_term[np.flatnonzero(several)[moved]] += np.log(smoothed[moved]) - np.log(weight[moved])
    return plain_log_mean(ItemTerms(log_term, terms.label, terms.start, terms.n, terms.moved))


def rao_blackwell_log_mean(
    terms: ItemTerms, token: ArrayLike, candidate_logprob: ArrayLike, draw: ArrayLike | None = None
) -> LogMeans:
    r"""Log-mean after averaging out how often each distinct candidate happened to be drawn.

    Given the set S of distinct candidates seen in n draws, their counts carry no information on the weights, so that
    :math:`W = \frac1n \sum_{x \in S} E[\mathrm{count}_x \mid S, n]\, \bar w_x` has the expectation of the plain mean
    and at most its variance. Answers of several participants on one draw or candidate are averaged.
    """
    ItemTerms.require(terms=terms)
    for name, values in (("token", token), ("candidate_logprob", candidate_logprob), ("draw", draw)):
        if values is not None and np.shape(values) != terms.order.shape:
            raise InputError(f"has shape {np.shape(values)}, the terms {terms.order.shape}", field=name)
    drawn = terms.order if draw is None else np.asarray(draw)[terms.order]
    identity = np.asarray(token)[terms.order]
    logprob = np.asarray(candidate_logprob, dtype=float)[terms.order]
    mean = np.empty(terms.label.size)
    for q, (start, n) in enumerate(zip(terms.start, terms.n, strict=True)):
        part = slice(start, start + n)
        _, first, code, count = np.unique(identity[part], return_index=True, return_inverse=True, return_counts=True)
        token_mean = np.bincount(code, terms.weights.scaled[part]) / count
        n_draws = np.unique(drawn[part]).size
        mean[q] = expected_counts(logprob[part][first], n_draws) @ token_mean / n_draws
    return LogMeans(value=np.log(mean) + terms.weights.largest, se=plain_log_mean(terms).se)


def expected_counts(logprob: ArrayLike, n: int) -> FloatArray:
    r"""Expected counts of the tokens of a set S, given that n i.i.d. draws saw exactly S.

    :math:`P(c \mid S, n) \propto \prod_{x \in S} g_x^{c_x} / c_x!` with :math:`c_x \ge 1` and sum n. The normaliser
    convolves truncated Poisson laws forwards and backwards, so that each token is left out without dividing.
    """
    log_g = np.asarray(logprob, dtype=float)
    size = log_g.size
    if not 1 <= size <= n:
        raise InputError(f"{size} distinct tokens cannot come from {n} draws", field="logprob")
    if size in (1, n):
        return np.full(size, n / size)
    free = n - size  # draws beyond the first of every token
    excess = np.arange(free + 1)
    # Poisson with this total rate: any rate gives the same conditional law, this one keeps the numbers near one.
    log_rate = log_g - np.logaddexp.reduce(log_g) + np.log(n)
    log_law = (excess + 1) * log_rate[:, None] - gammaln(excess + 2)
    law = np.exp(log_law - log_law.max(axis=1, keepdims=True))

    def running(laws: FloatArray) -> list[FloatArray]:
        products = [np.eye(1, free + 1)[0]]
        for one in laws[:-1]:
            product = np.convolve(products[-1], one)[: free + 1]
            products.append(product / product.max())
        return products

    counts = np.empty(size)
    for x, (before, after) in enumerate(zip(running(law), running(law[::-1])[::-1], strict=True)):
        posterior = law[x] * np.convolve(before, after)[free::-1]
        counts[x] = 1 + posterior @ excess / posterior.sum()
    return counts


LOG_MEANS: dict[str, Callable[[ItemTerms], LogMeans]] = {
    "importance": plain_log_mean,
    "jackknife": jackknife_log_mean,
    "delta": delta_log_mean,
    "psis": psis_log_mean,
}
"""Log-means that need nothing but the terms."""
