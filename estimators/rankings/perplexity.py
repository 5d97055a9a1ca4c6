"""Approximate perplexity: a reference token outside a model's ranked tokens gets its probability by a stated policy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.display import Result
from shannon_game.estimators.errors import InputError, unknown_choice

Censoring = Literal["below_last", "bound", "uniform", "exact"]
CENSORINGS: tuple[str, ...] = get_args(Censoring)

# probabilities that an API rounds to a handful of digits can add up to a hair more than one
_MASS_SLACK = 1e-3


@dataclass(frozen=True, eq=False, repr=False)
class ApproximatePerplexity(Result):
    """Perplexity of reference tokens some of which have no known probability.

    Attributes
    ----------
    perplexity : float
        exp(-mean ln p) under the policy.
    loss_nats : float
        Mean -ln p, nats per token.
    perplexity_bound : float
        No policy can honestly give less: every missing token at the most that the list leaves for it. There is no
        bound from above, a missing token may have probability 0.
    n_censored : int
        Tokens that are not among the ranked ones.
    """

    perplexity: float
    loss_nats: float
    perplexity_bound: float
    n_tokens: int
    n_censored: int
    censoring: str


def log_probability_bound(logprob: ArrayLike) -> FloatArray:
    r"""Largest log-probability that a token outside a list can have."""
    values = _lists(logprob)
    left = 1.0 - np.exp(values).sum(axis=1, where=~np.isnan(values))
    if (left < -_MASS_SLACK).any():
        row = int(np.argmin(left))
        problem = f"adds up to a probability of {1 - left[row]:.4f} at token {row}; are these natural logarithms?"
        raise InputError(problem, field="logprob")
    with np.errstate(divide="ignore"):
        bound: FloatArray = np.minimum(_last(values), np.log(np.maximum(left, 0.0)))
    return bound


def reference_log_probability(
    logprob: ArrayLike,
    hit: ArrayLike,
    *,
    censoring: Censoring | str = "below_last",
    offset_nats: float = 3.0,
    exact: ArrayLike | None = None,
    vocab_size: int | None = None,
    variants: Literal["first", "sum"] = "first",
) -> FloatArray:
    r"""Log-probability of every reference token, (token,), with a policy for those outside the list.

    Parameters
    ----------
    logprob : array_like, shape (token, rank)
        Nats, most probable first, NaN where a list is shorter.
    hit : array_like of bool, shape (token, rank)
        From :func:`match_tokens`.
    censoring : {"below_last", "bound", "uniform", "exact"}
        For a token outside the list: ``"below_last"`` takes :math:`\ln p_l` - `offset_nats` (the thesis, with 3);
        ``"bound"`` the largest that the list leaves, so that the perplexity is a bound from below; ``"uniform"`` shares
        what the list leaves evenly among the other tokens of the vocabulary; ``"exact"`` takes `exact` for all tokens,
        found or not (a whole vocabulary was scored).
    exact : array_like, shape (token,), optional
        ln p of the reference tokens, nats.
    variants : {"first", "sum"}
        Where several ranked tokens match (white space around the same string): the first's probability (the thesis),
        or the sum of all of them.

    Examples
    --------
    >>> hit = rankings.match_tokens(["a", "b"], [["a", "c"], ["c", "d"]])
    >>> rankings.reference_log_probability([[-0.5, -2.0], [-0.5, -1.5]], hit)
    array([-0.5, -4.5])
    """
    if censoring not in CENSORINGS:
        raise unknown_choice("censoring", censoring, CENSORINGS)
    if variants not in ("first", "sum"):
        raise unknown_choice("variants", variants, ("first", "sum"))
    if censoring == "exact":
        if exact is None:
            problem = "is 'exact', but only listed tokens' probabilities are known; use below_last, bound or uniform"
            raise InputError(problem, field="censoring")
        known = np.asarray(exact, dtype=float)
        if not (known <= 0).all():
            raise InputError("has values that are no log-probabilities (above 0, or NaN)", field="exact")
        return known
    values, found = _lists(logprob), np.asarray(hit, dtype=bool)
    if found.shape != values.shape:
        raise InputError(f"has shape {found.shape}, the log-probabilities have {values.shape}", field="hit")
    first = np.take_along_axis(values, found.argmax(axis=1)[:, None], axis=1)[:, 0]
    own = first if variants == "first" else np.logaddexp.reduce(np.where(found, values, -np.inf), axis=1)
    return np.where(found.any(axis=1), own, _missing(values, censoring, offset_nats, vocab_size))


def _missing(values: FloatArray, censoring: str, offset_nats: float, vocab_size: int | None) -> FloatArray:
    if censoring == "bound":
        return log_probability_bound(values)
    if censoring == "below_last":
        if not (np.isfinite(offset_nats) and offset_nats >= 0):
            raise InputError(f"is {offset_nats}, should be 0 or more", field="offset_nats")
        return _last(values) - offset_nats
    k = values.shape[1]
    if vocab_size is None or vocab_size <= k:
        raise InputError(f"is {vocab_size}, should be the size of the vocabulary, over {k}", field="vocab_size")
    left = 1.0 - np.exp(values).sum(axis=1, where=~np.isnan(values))
    with np.errstate(divide="ignore"):
        share = np.log(np.maximum(left, 0.0)) - np.log(vocab_size - (~np.isnan(values)).sum(axis=1))
    # rounded lists may seem to leave more than the last token's own probability for each of the others
    shared: FloatArray = np.minimum(share, _last(values))
    return shared


def _lists(logprob: ArrayLike) -> FloatArray:
    values = np.asarray(logprob, dtype=float)
    if values.ndim != 2 or not values.shape[1]:
        raise InputError(f"has shape {values.shape}, (token, rank) is needed", field="logprob")
    if np.isnan(values[:, 0]).any() or (values > 0).any():
        raise InputError("has an empty list or values above 0; natural log-probabilities are needed", field="logprob")
    return values


def _last(values: FloatArray) -> FloatArray:
    length = (~np.isnan(values)).sum(axis=1)
    return np.take_along_axis(values, length[:, None] - 1, axis=1)[:, 0]


def approximate_perplexity(
    logprob: ArrayLike, hit: ArrayLike, *, censoring: Censoring | str = "below_last", **settings: Any
) -> ApproximatePerplexity:
    r"""Approximate perplexity :math:`\exp(-\frac1n \sum_i \ln p_i)` of reference tokens.

    Parameters
    ----------
    logprob, hit, censoring
        See :func:`reference_log_probability`.
    **settings
        Its other arguments.

    Examples
    --------
    >>> hit = rankings.match_tokens(["a", "b"], [["a", "c"], ["c", "d"]])
    >>> found = rankings.approximate_perplexity([[-0.5, -2.0], [-0.5, -1.5]], hit)
    >>> round(found.perplexity, 2), found.n_censored
    (12.18, 1)
    """
    found = np.asarray(hit, dtype=bool)
    if not found.size:
        raise InputError("has no tokens", field="logprob")
    own = reference_log_probability(logprob, found, censoring=censoring, **settings)
    best = np.where(found.any(axis=1), own, log_probability_bound(logprob)) if censoring != "exact" else own
    loss = float(-own.mean())
    return ApproximatePerplexity(
        perplexity=float(np.exp(loss)),
        loss_nats=loss,
        perplexity_bound=float(np.exp(-best.mean())),
        n_tokens=int(own.size),
        n_censored=int((~found.any(axis=1)).sum()),
        censoring=str(censoring),
    )
