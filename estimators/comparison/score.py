r"""The score that players of the comparison game see, and how to play it best.

One of the two tokens, *z*, is the token of the text; the other was drawn from the generator. A player
who gives *z* the probability :math:`p_z` earns

.. math:: R(p) = 1000\, g(z) (\ln p_z - \ln \tfrac12).

The factor g(z) undoes the selection by the generator. Up to a constant the pair (x, y) comes about with
*z = y* in proportion to t(y) g(x) and with *z = x* in proportion to t(x) g(y), so that the expected score
is proportional to :math:`t(y) \ln p_y + t(x) \ln p_x`: strictly proper for t(y) / (t(y) + t(x)), whatever
the player believes of the generator (Shlegeris et al. 2022, eqs. 7-9). With the plain logarithmic score the
best answer would be the posterior of :func:`rational_report` (their eq. 6), which needs the generator.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shannon_game.estimators.comparison.reports import report_from_log_ratio, two_alternative_report
from shannon_game.estimators.errors import InputError

SCALE = 1000.0


def score(probability_of_truth: ArrayLike, generator_logprob_of_truth: ArrayLike) -> NDArray[np.float64]:
    """Score R(p), in points, of the probability p_z, in (0, 1], that an answer gives to the token z of the text.

    It is 0 for one half and negative below; ln g(z|c) is in nats.

    Examples
    --------
    >>> comparison.score([0.9, 0.5, 0.1], generator_logprob_of_truth=np.log(0.2)).round(1)
    array([ 117.6,    0. , -321.9])
    """
    p = np.asarray(probability_of_truth, dtype=float)
    bad = ~((p > 0) & (p <= 1))
    if bad.any():
        raise InputError(f"is {p[bad].flat[0]}; should be in (0, 1]", field="probability_of_truth")
    return np.asarray(SCALE * np.exp(generator_logprob_of_truth) * (np.log(p) - np.log(0.5)))


def expected_score(
    report: ArrayLike,
    belief_target_logprob: ArrayLike,
    belief_candidate_logprob: ArrayLike,
    generator_target_logprob: ArrayLike,
    generator_candidate_logprob: ArrayLike,
) -> NDArray[np.float64]:
    """Score in points that a player with belief h expects from a report, the probability of the target, in (0, 1).

    Other arguments are ln h(y|c), ln h(x|c), ln g(y|c) and ln g(x|c), nats.

    Examples
    --------
    >>> comparison.expected_score([0.5, 0.75], np.log(0.3), np.log(0.1), np.log(0.2), np.log(0.2)).round(1)
    array([ 0. , 26.2])
    """
    p = np.asarray(report, dtype=float)
    true_is_target = rational_report(
        belief_target_logprob, belief_candidate_logprob, generator_target_logprob, generator_candidate_logprob
    )
    if_target, if_candidate = score(p, generator_target_logprob), score(1 - p, generator_candidate_logprob)
    return np.asarray(true_is_target * if_target + (1 - true_is_target) * if_candidate)


def optimal_report(belief_target_logprob: ArrayLike, belief_candidate_logprob: ArrayLike) -> NDArray[np.float64]:
    """Report that earns most under R(p), whatever the generator: h(y) / (h(y) + h(x)), from ln h(y|c) and ln h(x|c).

    Examples
    --------
    >>> comparison.optimal_report(np.log([0.3, 0.1]), np.log([0.1, 0.1])).round(2)
    array([0.75, 0.5 ])
    """
    return two_alternative_report(belief_target_logprob, belief_candidate_logprob)


def rational_report(
    belief_target_logprob: ArrayLike,
    belief_candidate_logprob: ArrayLike,
    generator_target_logprob: ArrayLike,
    generator_candidate_logprob: ArrayLike,
) -> NDArray[np.float64]:
    r"""Posterior probability that the target is the token of the text, for one who knows the generator (eq. 6).

    .. math:: P(z = y) = \frac{h(y) g(x)}{h(y) g(x) + h(x) g(y)}

    It is one half when h = g: a rational agent cannot tell text from a generator that it believes in. Arguments are
    log-probabilities, nats, as in :func:`expected_score`.

    Examples
    --------
    >>> belief, generator = (np.log([0.3, 0.3]), np.log([0.1, 0.1])), (np.log([0.3, 0.2]), np.log([0.1, 0.2]))
    >>> comparison.rational_report(*belief, *generator).round(2)
    array([0.5 , 0.75])
    """
    belief = np.asarray(belief_target_logprob, dtype=float) - np.asarray(belief_candidate_logprob, dtype=float)
    drawn = np.asarray(generator_target_logprob, dtype=float) - np.asarray(generator_candidate_logprob, dtype=float)
    return report_from_log_ratio(drawn - belief)
