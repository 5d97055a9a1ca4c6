r"""Logarithm of a mean of importance weights, item by item.

Every item *q* has :math:`n_q` terms :math:`w_{qj}`, and what is wanted is :math:`\ln E[w_q]`. The plain
:math:`\ln \bar w_q` is too low by about :math:`\mathrm{var}(w) / 2 n \bar w^2` (Jensen), and by far more when
the weights have a heavy tail. This module holds the plain estimate and those that a statistician would hold
beside it. All work on log-terms, so nothing overflows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from estimators.comparison.diagnostics import smooth_largest
from estimators.comparison.item_terms import ItemTerms
from estimators.comparison.leave_one_out import largest_log_weights, leave_one_out_log_mean
from estimators.display import Result
from estimators.errors import InputError

__all__ = [
    "LogMeans",
    "delta_log_mean",
    "expected_counts",
    "items_se",
    "jackknife_log_mean",
    "plain_log_mean",
    "psis_log_mean",
    "rao_blackwell_log_mean",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


@dataclass(frozen=True, eq=False, repr=False)
class LogMeans(Result):
    """Estimate of ln E[w] per item and its standard error from the finite number of terms.

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
    r"""Compute :math:`\ln \bar w` (eqs. 4-5), with the standard error of its source (ii).

    .. math:: \mathrm{se} = \frac{\mathrm{sd}_0(w)}{\sqrt n\, \bar w}, \quad \mathrm{sd}_0 \text{ with ddof } 0

    Examples
    --------
    >>> from estimators import comparison
    >>> terms = comparison.group_terms([0.1, 0.9, -0.4, 1.2], item=[1, 1, 2, 2])
    >>> comparison.plain_log_mean(terms).value.round(4)
    array([0.578 , 0.6908])
    """
    ItemTerms.require(terms=terms)
    weights = terms.weights
    mean = weights.total / terms.n
    variance = np.empty_like(mean)
    for items, rows in terms.blocks():
        square = terms.spread(mean, items)
        np.subtract(weights.scaled[rows], square, out=square)
        square *= square
        np.add.reduceat(square, terms.start[items] - rows.start, out=variance[items])
    variance /= terms.n
    variance[terms.n == 1] = np.nan
    return LogMeans(value=np.log(mean) + weights.largest, se=np.sqrt(variance / terms.n) / mean)


def items_se(value: FloatArray) -> float:
    """Standard error of a mean over items, (item,), by the spread (ddof 0) of the items; NaN for one item."""
    return float(value.std() / np.sqrt(value.size)) if value.size > 1 else float("nan")


def delta_log_mean(terms: ItemTerms) -> LogMeans:
    r"""Second-order bias correction: :math:`\ln \bar w + \mathrm{var}(w) / (2 n \bar w^2)`, var with ddof 1.

    An item with a single term keeps the plain value: it has no variance to correct with.

    Examples
    --------
    >>> from estimators import comparison
    >>> terms = comparison.group_terms([0.1, 0.9, -0.4, 1.2], item=[1, 1, 2, 2])
    >>> comparison.delta_log_mean(terms).value.round(4)
    array([0.6501, 0.9112])
    """
    plain = plain_log_mean(terms)
    relative_variance = plain.se**2 * terms.n / np.maximum(terms.n - 1, 1)  # of the mean, with ddof 1
    value = plain.value + np.where(terms.n > 1, relative_variance, 0.0) / 2
    return LogMeans(value=value, se=np.sqrt(relative_variance))


def jackknife_log_mean(terms: ItemTerms) -> LogMeans:
    r"""Jackknife bias correction (Nowozin 2018, eq. 10).

    .. math:: n \ln \bar w - \frac{n-1}{n} \sum_j \ln \bar w_{-j}

    It removes the O(1/n) bias and does not rescue a heavy tail (Pareto k > 0.7). The standard error is the
    jackknife's. An item with a single term keeps the plain value.

    Examples
    --------
    >>> from estimators import comparison
    >>> terms = comparison.group_terms([0.1, 0.9, -0.4, 1.2], item=[1, 1, 2, 2])
    >>> comparison.jackknife_log_mean(terms).value.round(4)
    array([0.6559, 0.9815])
    """
    plain = plain_log_mean(terms)
    n = terms.n
    many = n > 1
    mean_loo, spread = np.empty_like(plain.value), np.empty_like(plain.value)
    for items, rows in terms.blocks():
        start = terms.start[items] - rows.start
        loo = leave_one_out_log_mean(terms, items, rows)
        loo[start[~many[items]]] = 0.0  # there is no other term, and the plain value is kept
        mean_loo[items] = np.add.reduceat(loo, start) / n[items]
        loo -= terms.spread(mean_loo, items)
        loo *= loo
        np.add.reduceat(loo, start, out=spread[items])
    value = np.where(many, n * plain.value - (n - 1) * mean_loo, plain.value)
    return LogMeans(value=value, se=np.sqrt(np.where(many, (n - 1) / n * spread, np.nan)))


def psis_log_mean(terms: ItemTerms) -> LogMeans:
    """Log-mean after Pareto smoothing of the tail that all items share.

    The largest weights relative to the mean of their item's other terms, pooled over items, are replaced by the
    expected order statistics of a generalised Pareto distribution fitted to them (Vehtari et al. 2024), and each
    item's mean is taken again. Pooling, because a tail cannot be fitted to the 10 or 20 terms of one item.
    Items with a single term, and studies whose tail has fewer than five values, are left as they are.

    Examples
    --------
    >>> from estimators import comparison
    >>> terms = comparison.group_terms(
    ...     np.random.default_rng(0).standard_t(3, 200), item=np.repeat(np.arange(10), 20)
    ... )
    >>> comparison.psis_log_mean(terms).value[:3].round(2)
    array([1.12, 1.55, 1.06])
    >>> comparison.plain_log_mean(terms).value[:3].round(2)
    array([1.23, 1.7 , 1.76])
    """
    ItemTerms.require(terms=terms)
    tail = largest_log_weights(terms)
    if tail.n_weights == 0:
        return plain_log_mean(terms)
    weight = np.exp(tail.log_weight - tail.log_weight.max())
    smoothed = smooth_largest(weight, tail.n_weights)
    moved = smoothed != weight
    log_term = terms.log_term.copy()
    log_term[tail.position[moved]] += np.log(smoothed[moved]) - np.log(weight[moved])
    return plain_log_mean(ItemTerms(log_term, terms.label, terms.start, terms.n, terms.moved))


def rao_blackwell_log_mean(
    terms: ItemTerms, token: ArrayLike, candidate_logprob: ArrayLike, draw: ArrayLike | None = None
) -> LogMeans:
    r"""Log-mean after averaging out how often each distinct candidate happened to be drawn.

    Given the set S of distinct candidates seen in n draws, their counts carry no information on the weights, so

    .. math:: W = \frac1n \sum_{x \in S} E[\,\mathrm{count}_x \mid S, n\,]\; \bar w_x

    has the expectation of the plain mean and at most its variance (Rao-Blackwell). The counts given S are
    multinomial with every count at least one; see :func:`expected_counts`. n counts the draws: answers of several
    participants on one draw, or on one candidate drawn several times, are averaged. The standard error is the plain
    one. A loop over items, the only one in this module.

    Parameters
    ----------
    token : array_like of int, shape (response,)
        Identity of the candidate within its item, in the caller's order.
    candidate_logprob : array_like of float, shape (response,)
        ln g(x|c) of the sampling generator, nats, in the caller's order.
    draw : array_like of int, shape (response,), optional
        Which draw of the item was shown, in the caller's order; by default every response had its own.

    Raises
    ------
    InputError
        If a shape differs from that of the terms.

    Examples
    --------
    >>> from estimators import comparison
    >>> terms = comparison.group_terms([0.1, 0.1, 1.2], item=[1, 1, 1])
    >>> logprob = np.log([0.5, 0.5, 0.2])
    >>> comparison.rao_blackwell_log_mean(terms, token=[0, 0, 1], candidate_logprob=logprob).value.round(3)
    array([0.72])
    >>> comparison.plain_log_mean(terms).value.round(3)
    array([0.612])
    """
    ItemTerms.require(terms=terms)
    for name, values in (("token", token), ("candidate_logprob", candidate_logprob), ("draw", draw)):
        if values is not None and np.shape(values) != terms.order.shape:
            raise InputError(f"has shape {np.shape(values)}, the terms {terms.order.shape}", field=name)
    drawn = terms.order if draw is None else np.asarray(draw)[terms.order]
    identity = np.asarray(token)[terms.order]
    logprob = np.asarray(candidate_logprob, dtype=float)[terms.order]
    scaled, largest = terms.scaled()
    mean = np.empty(terms.label.size)
    for q, (start, n) in enumerate(zip(terms.start, terms.n, strict=True)):
        part = slice(start, start + n)
        _, first, code, count = np.unique(identity[part], return_index=True, return_inverse=True, return_counts=True)
        token_mean = np.bincount(code, scaled[part]) / count
        n_draws = np.unique(drawn[part]).size
        mean[q] = expected_counts(logprob[part][first], n_draws) @ token_mean / n_draws
    return LogMeans(value=np.log(mean) + largest, se=plain_log_mean(terms).se)


def expected_counts(logprob: ArrayLike, n: int) -> FloatArray:
    r"""Expected counts of the tokens of a set S, given that n i.i.d. draws saw exactly S.

    .. math:: P(c \mid S, n) \propto \prod_{x \in S} \frac{g_x^{c_x}}{c_x!}, \qquad c_x \ge 1,\ \sum_x c_x = n

    The normaliser is a convolution of truncated Poisson laws, one a token of S, computed forwards and backwards, so
    that each token can be left out without dividing. The cost grows with n squared times the number of tokens.

    Parameters
    ----------
    logprob : array_like of float, shape (token,)
        ln g of the distinct tokens seen, nats.
    n : int
        Draws, at least the number of tokens.

    Returns
    -------
    ndarray of float, shape (token,)
        Sums to n.

    Raises
    ------
    InputError
        If there are fewer draws than distinct tokens.

    Examples
    --------
    >>> from estimators import comparison
    >>> comparison.expected_counts(np.log([0.6, 0.3, 0.1]), n=6).round(3)
    array([2.915, 1.834, 1.251])
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
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, free + 2)))])
    log_law = (excess + 1) * log_rate[:, None] - log_factorial[excess + 1]
    law = np.exp(log_law - log_law.max(axis=1, keepdims=True))

    def running(laws: FloatArray) -> list[FloatArray]:
        product = np.zeros(free + 1)
        product[0] = 1.0
        products = [product]
        for one in laws[:-1]:
            product = np.convolve(product, one)[: free + 1]
            product = product / product.max()
            products.append(product)
        return products

    before = running(law)
    after = running(law[::-1])[::-1]
    counts = np.empty(size)
    for x in range(size):
        others = np.convolve(before[x], after[x])[: free + 1]
        posterior = law[x] * others[::-1]
        counts[x] = 1 + posterior @ excess / posterior.sum()
    return counts


LOG_MEANS: dict[str, Callable[[ItemTerms], LogMeans]] = {
    "importance": plain_log_mean,
    "jackknife": jackknife_log_mean,
    "delta": delta_log_mean,
    "psis": psis_log_mean,
}
"""Log-means that need nothing but the terms."""
