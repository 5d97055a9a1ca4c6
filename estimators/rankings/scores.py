r"""Scores of a reference token from its rank among a model's ranked tokens, and approximate perplexity.

A rank is a float: 1 is the most probable token, ``inf`` a token that is not among the ranked ones, so that every score
is one formula. All scores are in [0, 1], fall with the rank, are 0 for a token that is not ranked and 1 for the most
probable one. They do not move with the temperature, because the order of tokens does not.

Source of the scores: C. de Jong (2024), An Alternative to Perplexity for the Evaluation of Long-context Large Language
Models, Utrecht University.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from estimators.errors import InputError, unknown_choice

__all__ = [
    "CENSORINGS",
    "DECAYS",
    "MATCHES",
    "TIES",
    "ApproximatePerplexity",
    "Censoring",
    "Match",
    "Tie",
    "approximate_perplexity",
    "average_score",
    "exponential_score",
    "linear_score",
    "log_probability_bound",
    "match_tokens",
    "rank_at",
    "ranks_among",
    "ranks_from_logits",
    "reciprocal_score",
    "reference_log_probability",
    "top_k_accuracy",
]

Match = Literal["stripped", "exact", "id"]
MATCHES: tuple[str, ...] = get_args(Match)
Tie = Literal["listed", "best", "middle", "worst"]
TIES: tuple[str, ...] = get_args(Tie)
Censoring = Literal["below_last", "bound", "uniform", "exact"]
CENSORINGS: tuple[str, ...] = get_args(Censoring)

DECAYS = (0.1, 0.3)
"""Rates of the two exponential scores in the thesis."""

_LOG_ZERO = -np.inf
# probabilities that an API rounds to a handful of digits can add up to a hair more than one
_MASS_SLACK = 1e-3

FloatArray = NDArray[np.float64]


# ------------------------------------------------------------------------------------------------- ranks


def match_tokens(reference: ArrayLike, ranked: ArrayLike, *, match: Match | str = "stripped") -> NDArray[np.bool_]:
    """Find the reference token among the ranked tokens.

    Parameters
    ----------
    reference : array_like, shape (token,)
        Strings, or integer ids for ``match="id"``.
    ranked : array_like, shape (token, rank)
        Of the same kind, most probable first. ``None`` (strings) or a negative number (ids) where a list is shorter.
    match : {"stripped", "exact", "id"}
        ``"stripped"`` compares strings without the white space around them, case-sensitive (the thesis: an answer in
        a chat rarely begins with a space, the text's token does); several ranked tokens can then be the reference.
        ``"exact"`` compares strings as they are, ``"id"`` ids, which is right where the tokenizer is known.

    Returns
    -------
    ndarray of bool, shape (token, rank)

    Raises
    ------
    InputError
        For an unknown `match`, shapes that do not fit, or ids that are not integers.
    """
    if match not in MATCHES:
        raise unknown_choice("match", match, MATCHES)
    wanted, listed = np.asarray(reference), np.asarray(ranked)
    if listed.ndim != 2 or wanted.shape != listed.shape[:1]:
        raise InputError(
            f"has shape {listed.shape} for reference tokens of shape {wanted.shape}; (token, rank) is needed",
            field="ranked",
        )
    if match == "id":
        for name, values in (("reference", wanted), ("ranked", listed)):
            if values.dtype.kind not in "iu":
                raise InputError(f"has dtype {values.dtype}, should be integer ids", field=name)
        found: NDArray[np.bool_] = (listed == wanted[:, None]) & (listed >= 0)
        return found
    if match == "stripped":
        wanted, listed = _stripped(wanted), _stripped(listed)
    is_there = np.array([isinstance(token, str) for token in listed.ravel()], dtype=bool).reshape(listed.shape)
    equal: NDArray[np.bool_] = (listed == wanted[:, None]).astype(bool) & is_there
    return equal


def _stripped(tokens: NDArray[Any]) -> NDArray[np.object_]:
    flat = np.empty(tokens.size, dtype=object)
    flat[:] = [token.strip() if isinstance(token, str) else token for token in tokens.ravel().tolist()]
    return flat.reshape(tokens.shape)


def ranks_among(
    hit: ArrayLike, logprob: ArrayLike | None = None, *, tie: Tie | str = "listed", tolerance_nats: float = 0.0
) -> FloatArray:
    """Rank of the reference token in a list, from where it was found.

    Parameters
    ----------
    hit : array_like of bool, shape (token, rank)
        From :func:`match_tokens`; the first hit counts.
    logprob : array_like, shape (token, rank), optional
        Log-probabilities, nats, most probable first, NaN where a list is shorter; needed unless `tie` is "listed".
    tie : {"listed", "best", "middle", "worst"}
        What to do where other tokens are exactly as probable: take the place in the list (the thesis), or the best,
        middle or worst place that the tied tokens have among them. A list that ends within a tie may hide more.
    tolerance_nats : float
        Log-probabilities at most this far apart are tied.

    Returns
    -------
    ndarray of float, shape (token,)
        From 1; ``inf`` where there is no hit. Half ranks occur with "middle".

    Raises
    ------
    InputError
        For an unknown `tie`, missing or misshapen log-probabilities, or a negative tolerance.
    """
    found = np.asarray(hit, dtype=bool)
    if tie not in TIES:
        raise unknown_choice("tie", tie, TIES)
    if tolerance_nats < 0:
        raise InputError(f"is {tolerance_nats}, should be 0 or more", field="tolerance_nats")
    position = found.argmax(axis=1)
    missing = ~found.any(axis=1)
    if tie == "listed":
        return np.where(missing, np.inf, position + 1.0)
    if logprob is None or np.shape(logprob) != found.shape:
        raise InputError(f"is needed with shape {found.shape} for tie={tie!r}", field="logprob")
    values = np.asarray(logprob, dtype=float)
    own = np.take_along_axis(values, position[:, None], axis=1)
    rank = _rank_by_value(values, own, tie, tolerance_nats)
    return np.where(missing, np.inf, rank)


def ranks_from_logits(
    logits: ArrayLike, reference_id: ArrayLike, *, tie: Tie | str = "worst", tolerance: float = 0.0
) -> FloatArray:
    """Rank of the reference token in a whole vocabulary.

    Parameters
    ----------
    logits : array_like, shape (..., vocabulary)
        Logits or log-probabilities: only their order matters, so that any positive temperature gives the same ranks.
    reference_id : array_like of int, shape (...)
    tie : {"best", "middle", "worst"}
        Place among equally probable tokens. "listed" has no meaning without a list.
    tolerance : float
        Values at most this far apart are tied.

    Returns
    -------
    ndarray of float, shape (...)

    Raises
    ------
    InputError
        For an unknown `tie`, an id outside the vocabulary, or values that are NaN.
    """
    if tie not in TIES[1:]:
        raise unknown_choice("tie", tie, TIES[1:])
    values, wanted = np.asarray(logits), np.asarray(reference_id)
    if values.shape[:-1] != wanted.shape:
        raise InputError(f"has shape {wanted.shape}, the logits have {values.shape}", field="reference_id")
    if wanted.size and (wanted.min() < 0 or wanted.max() >= values.shape[-1]):
        raise InputError(f"should be 0 to {values.shape[-1] - 1}, the ids of the vocabulary", field="reference_id")
    if np.isnan(values).any():
        raise InputError("has NaN, which has no rank", field="logits")
    own = np.take_along_axis(values, wanted[..., None], axis=-1)
    return _rank_by_value(values, own, tie, tolerance)


def _rank_by_value(values: NDArray[Any], own: NDArray[Any], tie: str, tolerance: float) -> FloatArray:
    above = (values > own + tolerance).sum(axis=-1).astype(float)
    tied = (np.abs(values - own) <= tolerance).sum(axis=-1) - 1.0
    extra = {"best": 0.0, "middle": tied / 2, "worst": tied}[tie]
    rank: FloatArray = 1.0 + above + extra
    return rank


def rank_at(rank: ArrayLike, k: int) -> FloatArray:
    """Ranks as a list of the `k` best tokens shows them: ``inf`` beyond `k`.

    With it the ranks of a whole vocabulary become comparable with those of an API.

    Parameters
    ----------
    rank : array_like of float, any shape
        From 1; ``inf`` for a token that is not ranked.
    k : int
        Ranked tokens.

    Returns
    -------
    ndarray of float, same shape as `rank`
    """
    _check_k(k)
    ranks = _ranks(rank)
    return np.where(ranks <= k, ranks, np.inf)


# ------------------------------------------------------------------------------------------------ scores


def linear_score(rank: ArrayLike, k: int) -> FloatArray:
    r"""Linear score :math:`(l - r + 1) / l` with `l` = `k` ranked tokens; 0 beyond.

    With a whole vocabulary `k` is its size, and nearly every token scores nearly 1: keep `k` when comparing.

    Parameters
    ----------
    rank : array_like of float, any shape
        From 1; ``inf`` for a token that is not ranked.
    k : int
        Ranked tokens.

    Returns
    -------
    ndarray of float, same shape as `rank`
    """
    _check_k(k)
    ranks = rank_at(rank, k)
    return np.maximum((k - ranks + 1.0) / k, 0.0)


def reciprocal_score(rank: ArrayLike) -> FloatArray:
    """Reciprocal score 1 / r; 0 for a token that is not ranked.

    Parameters
    ----------
    rank : array_like of float, any shape
        From 1; ``inf`` for a token that is not ranked.

    Returns
    -------
    ndarray of float, same shape as `rank`
    """
    score: FloatArray = 1.0 / _ranks(rank)
    return score


def exponential_score(rank: ArrayLike, decay: float) -> FloatArray:
    r"""Exponential score :math:`e^{-a (r - 1)}` with `a` = `decay` > 0; 0 for a token that is not ranked.

    Parameters
    ----------
    rank : array_like of float, any shape
        From 1; ``inf`` for a token that is not ranked.
    decay : float
        Above 0.

    Returns
    -------
    ndarray of float, same shape as `rank`

    Raises
    ------
    InputError
        If `decay` is not above 0.
    """
    if not (np.isfinite(decay) and decay > 0):
        raise InputError(f"is {decay}, should be a positive number", field="decay")
    score: FloatArray = np.exp(-decay * (_ranks(rank) - 1.0))
    return score


def average_score(rank: ArrayLike, k: int, decays: Sequence[float] = DECAYS) -> FloatArray:
    """Mean of the linear, the reciprocal and the exponential scores (four scores in the thesis, "AVG").

    Parameters
    ----------
    rank : array_like of float, any shape
        From 1; ``inf`` for a token that is not ranked.
    k : int
        Ranked tokens.
    decays : sequence of float, optional
        Of the exponential scores.

    Returns
    -------
    ndarray of float, same shape as `rank`
    """
    limited = rank_at(rank, k)
    scores = [linear_score(limited, k), reciprocal_score(limited), *(exponential_score(limited, a) for a in decays)]
    mean: FloatArray = np.mean(scores, axis=0)
    return mean


def top_k_accuracy(rank: ArrayLike, k: int) -> FloatArray:
    """1 where the reference token is among the `k` most probable, else 0.

    Parameters
    ----------
    rank : array_like of float, any shape
        From 1; ``inf`` for a token that is not ranked.
    k : int
        Ranked tokens.

    Returns
    -------
    ndarray of float, same shape as `rank`
    """
    _check_k(k)
    return (_ranks(rank) <= k).astype(float)


def _ranks(rank: ArrayLike) -> FloatArray:
    ranks = np.asarray(rank, dtype=float)
    if not (ranks >= 1).all():
        raise InputError(
            f"has {ranks[~(ranks >= 1)].ravel()[0]}, should be 1 or more, inf for a token that is not ranked",
            field="rank",
        )
    return ranks


def _check_k(k: int) -> None:
    if isinstance(k, bool) or k < 1 or k != int(k):
        raise InputError(f"is {k!r}, should be a whole number of at least 1", field="k")


# -------------------------------------------------------------------------------------------- perplexity


@dataclass(frozen=True, eq=False)
class ApproximatePerplexity:
    """Perplexity of reference tokens some of which have no known probability.

    Attributes
    ----------
    perplexity : float
        exp(-mean ln p) under the policy.
    loss_nats : float
        Mean -ln p, nats a token.
    perplexity_bound : float
        No policy can honestly give less: every missing token at the most that the list leaves for it. There is no
        bound from above, a missing token may have probability 0.
    n_tokens, n_censored : int
        Tokens, and those not among the ranked ones.
    censoring : str
    """

    perplexity: float
    loss_nats: float
    perplexity_bound: float
    n_tokens: int
    n_censored: int
    censoring: str


def log_probability_bound(logprob: ArrayLike) -> FloatArray:
    r"""Largest log-probability that a token outside a list can have.

    It is no more probable than the last listed one, nor than what the listed ones leave:
    :math:`\ln \min(p_l, 1 - \sum_j p_j)`.

    Parameters
    ----------
    logprob : array_like, shape (token, rank)
        Nats, most probable first, NaN where a list is shorter.

    Returns
    -------
    ndarray of float, shape (token,)
        ``-inf`` where the list holds all probability there is.
    """
    values = _lists(logprob)
    left = 1.0 - np.exp(values).sum(axis=1, where=~np.isnan(values))
    if (left < -_MASS_SLACK).any():
        row = int(np.argmin(left))
        raise InputError(
            f"adds up to a probability of {1 - left[row]:.4f} at token {row}; are these natural logarithms?",
            field="logprob",
        )
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
    r"""Log-probability of every reference token, with a policy for those outside the list.

    Parameters
    ----------
    logprob : array_like, shape (token, rank)
        Nats, most probable first, NaN where a list is shorter.
    hit : array_like of bool, shape (token, rank)
        From :func:`match_tokens`.
    censoring : {"below_last", "bound", "uniform", "exact"}
        For a token outside the list: ``"below_last"`` takes :math:`\ln p_l` - `offset_nats` (the thesis, with 3);
        ``"bound"`` the largest that the list leaves (:func:`log_probability_bound`), so that the perplexity is a bound
        from below; ``"uniform"`` shares what the list leaves evenly among the other tokens of the vocabulary;
        ``"exact"`` takes `exact` for all tokens, found or not (a whole vocabulary was scored).
    offset_nats : float
        Of "below_last".
    exact : array_like, shape (token,), optional
        ln p of the reference tokens, nats, for "exact".
    vocab_size : int, optional
        For "uniform".
    variants : {"first", "sum"}
        Where several ranked tokens match (white space around the same string): the first's probability (the thesis),
        or the sum of all of them.

    Returns
    -------
    ndarray of float, shape (token,)

    Raises
    ------
    InputError
        For an unknown choice, a policy without what it needs, or values that are no log-probabilities.
    """
    if censoring not in CENSORINGS:
        raise unknown_choice("censoring", censoring, CENSORINGS)
    if variants not in ("first", "sum"):
        raise unknown_choice("variants", variants, ("first", "sum"))
    if censoring == "exact":
        if exact is None:
            raise InputError(
                "is 'exact', but only the listed tokens' probabilities are known; use below_last, bound or uniform",
                field="censoring",
            )
        known = np.asarray(exact, dtype=float)
        if not (known <= 0).all():
            raise InputError("has values that are no log-probabilities (above 0, or NaN)", field="exact")
        return known
    values, found = _lists(logprob), np.asarray(hit, dtype=bool)
    if found.shape != values.shape:
        raise InputError(f"has shape {found.shape}, the log-probabilities have {values.shape}", field="hit")
    first = np.take_along_axis(values, found.argmax(axis=1)[:, None], axis=1)[:, 0]
    own = first if variants == "first" else np.logaddexp.reduce(np.where(found, values, _LOG_ZERO), axis=1)
    return np.where(found.any(axis=1), own, _missing(values, censoring, offset_nats, vocab_size))


def _missing(values: FloatArray, censoring: str, offset_nats: float, vocab_size: int | None) -> FloatArray:
    if censoring == "bound":
        return log_probability_bound(values)
    if censoring == "below_last":
        if not (np.isfinite(offset_nats) and offset_nats >= 0):
            raise InputError(f"is {offset_nats}, should be 0 or more", field="offset_nats")
        below: FloatArray = _last(values) - offset_nats
        return below
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
    last: FloatArray = np.take_along_axis(values, length[:, None] - 1, axis=1)[:, 0]
    return last


def approximate_perplexity(
    logprob: ArrayLike, hit: ArrayLike, *, censoring: Censoring | str = "below_last", **settings: Any
) -> ApproximatePerplexity:
    r"""Approximate perplexity :math:`\exp(-\frac1n \sum_i \ln p_i)` of reference tokens.

    Parameters
    ----------
    logprob, hit : array_like, shape (token, rank)
    censoring : str
    **settings
        See :func:`reference_log_probability`.

    Returns
    -------
    ApproximatePerplexity

    Raises
    ------
    InputError
        If there is no token, or as :func:`reference_log_probability`.
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
