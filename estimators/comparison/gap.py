"""Loss gap of a player to the generator, from importance-sampling terms (Shlegeris et al. 2022, section 4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shannon_game.estimators.arrays import FloatArray, IntArray
from shannon_game.estimators.comparison.diagnostics import WeightDiagnostics, pareto_khat, verdict
from shannon_game.estimators.comparison.item_terms import ItemTerms, group_terms
from shannon_game.estimators.comparison.log_means import (
    LOG_MEANS,
    LogMeans,
    items_se,
    plain_log_mean,
    rao_blackwell_log_mean,
)
from shannon_game.estimators.display import Result
from shannon_game.estimators.errors import InputError, unknown_choice

_ROUNDING_NATS = 1e-9  # log-weights that differ by less are equal
_ROUNDING = 1e-12  # of effective responses: two equal weights among zeros are two

ESTIMATORS = ("naive", *LOG_MEANS, "rao_blackwell")
"""Names of the estimators: ``naive`` is eq. 3, ``importance`` eqs. 4-5, the others replace its log-mean."""


@dataclass(frozen=True, eq=False, repr=False)
class LossGap(Result):
    """Loss of a player minus the loss of the generator.

    Attributes
    ----------
    estimator : str
        One of :data:`ESTIMATORS`, or the name of a function.
    gap_nats : float
        L_h - L_G, nats per token.
    se_items_nats : float
        Source (i): standard deviation (ddof 0) of the items' log-means over sqrt(N); NaN for one item.
    se_samples_nats : float
        Source (ii): noise of the finite number of responses per item, items held fixed; NaN where an item has one.
    item, item_gap_nats, item_n : ndarray, shape (item,)
        Sorted labels, log-means and numbers of responses.
    """

    estimator: str
    gap_nats: float
    se_items_nats: float
    se_samples_nats: float
    n_items: int
    n_responses: int
    item: NDArray[Any]
    item_gap_nats: FloatArray
    item_n: IntArray
    terms: ItemTerms = field(repr=False)

    @cached_property
    def diagnostics(self) -> WeightDiagnostics:
        """Whether n is enough; computed when first asked for."""
        return diagnose_weights(self.terms)


def _own_log_means(estimator: Callable[[ItemTerms], LogMeans], terms: ItemTerms) -> LogMeans:
    """What a user's function gives, if it is what it should be."""
    means = estimator(terms)
    source = f"estimator {getattr(estimator, '__name__', estimator)!r}"
    if not isinstance(means, LogMeans):
        raise InputError(f"returned a {type(means).__name__}, should return LogMeans(value, se)", source=source)
    for name in ("value", "se"):
        shape = np.shape(getattr(means, name))
        if shape != terms.n.shape:
            problem = f"has shape {shape}, should be {terms.n.shape}: one number per item"
            raise InputError(problem, source=source, field=name)
    return means


def estimate_gap(
    log_term: ArrayLike,
    item: ArrayLike,
    *,
    estimator: str | Callable[[ItemTerms], LogMeans] = "importance",
    target_logprob: ArrayLike | None = None,
    token: ArrayLike | None = None,
    candidate_logprob: ArrayLike | None = None,
    draw: ArrayLike | None = None,
) -> LossGap:
    """Estimate a loss gap from importance-sampling terms.

    Parameters
    ----------
    log_term : array_like of float, shape (response,)
        ln w = ln g(y) - ln g(x) + ln h(x)/h(y), nats.
    item : array_like, shape (response,)
        Labels, integers or strings.
    estimator : str or callable
        One of :data:`ESTIMATORS`, or a function from :class:`ItemTerms` to :class:`LogMeans`.
    target_logprob : array_like of float, shape (response,), optional
        ln g(y|c); needed by ``naive``, whose items carry the generator's own spread.
    token, candidate_logprob : array_like, shape (response,), optional
        Identity of the candidate and ln g(x|c) under the model that sampled it; needed by ``rao_blackwell``.
    draw : array_like of int, shape (response,), optional
        Which draw of the item was shown, where several responses share one; used by ``rao_blackwell``.

    Examples
    --------
    >>> gap = comparison.estimate_gap([0.1, 0.9, -0.4, 1.2], item=[1, 1, 2, 2])
    >>> round(gap.gap_nats, 3), round(gap.se_items_nats, 3)
    (0.634, 0.04)
    """
    terms = group_terms(log_term, item)
    means: LogMeans
    if estimator == "rao_blackwell":
        if token is None or candidate_logprob is None:
            raise InputError("needs token and candidate_logprob", source="estimator 'rao_blackwell'")
        means = rao_blackwell_log_mean(terms, token, candidate_logprob, draw)
    elif estimator == "naive":
        means = plain_log_mean(terms)
    elif callable(estimator):
        means = _own_log_means(estimator, terms)
    elif estimator in LOG_MEANS:
        means = LOG_MEANS[estimator](terms)
    else:
        raise unknown_choice("estimator", estimator, ESTIMATORS)
    spread_of = means.value
    if estimator == "naive":
        if target_logprob is None:
            raise InputError("needs target_logprob", source="estimator 'naive'")
        if np.shape(target_logprob) != terms.log_term.shape:
            problem = f"has shape {np.shape(target_logprob)}, the terms {terms.log_term.shape}"
            raise InputError(problem, field="target_logprob")
        spread_of = means.value - np.asarray(target_logprob, dtype=float)[terms.order[terms.start]]
    n_items = terms.label.size
    return LossGap(
        estimator=estimator if isinstance(estimator, str) else estimator.__name__,
        gap_nats=float(means.value.mean()),
        se_items_nats=items_se(spread_of),
        se_samples_nats=float(np.sqrt(np.sum(means.se**2)) / n_items),
        n_items=n_items,
        n_responses=terms.log_term.size,
        item=terms.label,
        item_gap_nats=means.value,
        item_n=terms.n,
        terms=terms,
    )


def diagnose_weights(terms: ItemTerms) -> WeightDiagnostics:
    """Pareto tail, KL divergence and required sample size of a set of terms; see :class:`WeightDiagnostics`.

    Examples
    --------
    >>> terms = comparison.group_terms([0.1, 0.9, -0.4, 1.2], item=[1, 1, 2, 2])
    >>> comparison.diagnose_weights(terms)
    WeightDiagnostics(pareto_k=nan, kl_nats=0.1573, n_required=2.238, share_starved=1, ...)
    """
    ItemTerms.require(terms=terms)
    kl, spread = _divergence(terms)
    log_weight = terms.log_term - terms.others_log_mean()
    log_weight = log_weight[np.isfinite(log_weight)]
    pareto_k = pareto_khat(np.exp(log_weight - log_weight.max())) if log_weight.size else float("nan")
    n_required = float(np.quantile(np.exp(kl + spread), 0.9))
    share_starved = float(np.mean(terms.n * np.exp(-kl) < 2 - _ROUNDING))
    return WeightDiagnostics(
        pareto_k=pareto_k,
        kl_nats=float(kl.mean()),
        n_required=n_required,
        share_starved=share_starved,
        verdict=verdict(pareto_k, float(np.median(terms.n)), n_required, share_starved, constant=_are_constant(terms)),
    )


def _divergence(terms: ItemTerms) -> tuple[FloatArray, FloatArray]:
    """Self-normalised estimate of KL(h || g), and the standard deviation of ln(h/g) under h; (item,) each, nats."""
    weights, n = terms.weights, terms.n
    log_weight = terms.log_term - np.repeat(weights.largest, n)
    mean = terms.sum(log_weight * weights.scaled) / weights.total
    square = terms.sum(log_weight**2 * weights.scaled)
    # the largest weight has logarithm zero, so that nothing cancels but where one of very many differs from the rest
    spread = np.sqrt(np.maximum(square / weights.total - mean**2, 0.0))
    # relative to the item's mean instead of its largest weight
    return np.maximum(mean - np.log(weights.total / n), 0.0), spread


def _are_constant(terms: ItemTerms) -> bool:
    """Whether weights do not vary: within items that have several, or over all items where some have one."""
    if bool((terms.n > 1).all()):
        log_mean = np.log(terms.weights.total / terms.n) + terms.weights.largest
        lowest = np.minimum.reduceat(terms.log_term, terms.start)
        return bool(max((terms.weights.largest - log_mean).max(), (log_mean - lowest).max()) < _ROUNDING_NATS)
    return bool(np.ptp(terms.log_term) < _ROUNDING_NATS)
