"""Where a reference token stands among a model's ranked tokens.

A rank is a float: 1 is the most probable token, ``inf`` a token that is not among the ranked ones.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shannon_game.estimators.arrays import BoolArray, FloatArray
from shannon_game.estimators.errors import InputError, unknown_choice

Match = Literal["stripped", "exact", "id"]
MATCHES: tuple[str, ...] = get_args(Match)
Tie = Literal["listed", "best", "middle", "worst"]
TIES: tuple[str, ...] = get_args(Tie)


def match_tokens(reference: ArrayLike, ranked: ArrayLike, *, match: Match | str = "stripped") -> BoolArray:
    """Find the reference token among the ranked tokens, (token, rank).

    Parameters
    ----------
    reference : array_like, shape (token,)
        Strings, or integer ids for ``match="id"``.
    ranked : array_like, shape (token, rank)
        Of the same kind, most probable first. ``None`` (strings) or a negative number (ids) where a list is shorter.
    match : {"stripped", "exact", "id"}
        ``"stripped"`` compares strings without the white space around them, case-sensitive (the thesis); several ranked
        tokens can then be the reference. ``"exact"`` compares strings as they are, ``"id"`` ids.

    Raises
    ------
    InputError
        For an unknown `match`, shapes that do not fit, or ids that are not integers.

    Examples
    --------
    >>> from shannon_game.estimators import rankings
    >>> rankings.match_tokens([" a", " b"], [["a", "c"], ["c", "b "]])
    array([[ True, False],
           [False,  True]])
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
        found: BoolArray = (listed == wanted[:, None]) & (listed >= 0)
        return found
    if match == "stripped":
        wanted, listed = _stripped(wanted), _stripped(listed)
    is_there = np.array([isinstance(token, str) for token in listed.ravel()], dtype=bool).reshape(listed.shape)
    equal: BoolArray = (listed == wanted[:, None]).astype(bool) & is_there
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
        Nats, most probable first, NaN where a list is shorter; needed unless `tie` is "listed".
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

    Examples
    --------
    >>> from shannon_game.estimators import rankings
    >>> hit = rankings.match_tokens(["a", "b"], [["a", "c"], ["c", "d"]])
    >>> rankings.ranks_among(hit)
    array([ 1., inf])
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
        Place among tokens whose values are at most `tolerance` apart.

    Raises
    ------
    InputError
        For an unknown `tie`, an id outside the vocabulary, or values that are NaN.

    Examples
    --------
    >>> from shannon_game.estimators import rankings
    >>> rankings.ranks_from_logits([[2.0, 1.0, 1.0]], [2], tie="middle")
    array([2.5])
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

    Examples
    --------
    >>> from shannon_game.estimators import rankings
    >>> rankings.rank_at([1.0, 30.0], k=20)
    array([ 1., inf])
    """
    check_k(k)
    ranks = checked_ranks(rank)
    return np.where(ranks <= k, ranks, np.inf)


def checked_ranks(rank: ArrayLike) -> FloatArray:
    """Ranks as an array, refused where one is under 1 or NaN."""
    ranks = np.asarray(rank, dtype=float)
    if not (ranks >= 1).all():
        raise InputError(
            f"has {ranks[~(ranks >= 1)].ravel()[0]}, should be 1 or more, inf for a token that is not ranked",
            field="rank",
        )
    return ranks


def check_k(k: int) -> None:
    """Refuse a number of ranked tokens that is no whole number of at least 1."""
    if isinstance(k, bool) or k < 1 or k != int(k):
        raise InputError(f"is {k!r}, should be a whole number of at least 1", field="k")
