"""A report and what it says: probability of the target <-> likelihood ratio of the two tokens."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shannon_game.estimators.errors import InputError


def log_ratio_from_report(report: ArrayLike) -> NDArray[np.float64]:
    r"""Log-likelihood ratio of candidate and target that a report p of the target, strictly between 0 and 1, states.

    .. math:: D = \ln\frac{h(x|c)}{h(y|c)} = \ln(1 - p) - \ln p

    Examples
    --------
    >>> comparison.log_ratio_from_report([0.5, 0.8]).round(3)
    array([ 0.   , -1.386])
    """
    p = np.asarray(report, dtype=float)
    bad = ~((p > 0) & (p < 1))
    if bad.any():
        right = "should be strictly between 0 and 1, because 0 and 1 mean an infinite likelihood ratio"
        raise InputError(f"is {p[bad].flat[0]} ({int(bad.sum())} such); {right}", field="report")
    return np.asarray(np.log1p(-p) - np.log(p))


def report_from_log_ratio(log_ratio: ArrayLike) -> NDArray[np.float64]:
    """Report of a player whose log-likelihood ratio D = ln h(x|c) - ln h(y|c) is given in nats: p = 1 / (1 + exp(D)).

    Beyond about 37 nats it is 1 (or 0) in double precision: keep the log-ratio where the report need not be rounded.

    Examples
    --------
    >>> comparison.report_from_log_ratio([0.0, -2.0]).round(3)
    array([0.5  , 0.881])
    """
    # logaddexp keeps full relative precision in both tails and never overflows
    return np.asarray(np.exp(-np.logaddexp(0.0, np.asarray(log_ratio, dtype=float))))


def two_alternative_report(target_logprob: ArrayLike, candidate_logprob: ArrayLike) -> NDArray[np.float64]:
    """Report of a language model, q(y|c) / (q(y|c) + q(x|c)), from ln q(y|c) and ln q(x|c), nats, broadcastable.

    Examples
    --------
    >>> comparison.two_alternative_report(np.log([0.3, 0.1]), np.log([0.1, 0.1])).round(3)
    array([0.75, 0.5 ])
    """
    return report_from_log_ratio(np.asarray(candidate_logprob, dtype=float) - np.asarray(target_logprob, dtype=float))
