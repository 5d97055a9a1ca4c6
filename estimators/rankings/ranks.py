"""Where a reference token stands among a model's ranked tokens."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shannon_game.estimators.arrays import BoolArray, FloatArray
from shannon_game.estimators.checks import check_numbers
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

    Examples
    --------
    >>> rankings.match_tokens([" a", " b"], [["a", "c"], ["c", "b "]])
    array([[ True, False],
           [False,  True]])
    """
    if match not in MATCHES:
        raise unknown_choice("match", match, MATCHES)
    wanted, listed = np.asarray(reference), np.asarray(ranked)
    if listed.ndim != 2 or wanted.shape != listed.shape[:1]:
        problem = f"has shape {listed.shape} for reference tokens of shape {wanted.shape}; (token, rank) is needed"
        raise InputError(problem, field="ranked")
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

    Examples
    --------
    >>> hit = rankings.match_tokens(["a", "b"], [["a", "c"], ["c", "d"]])
    >>> rankings.ranks_among(hit)
    array([ 1., inf])
    """
    found = np.asarray(hit, dtype=bool)
    if tie not in TIES:
        raise unknown_choice("tie", tie, TIES)
    check_numbers({"tolerance_nats": tolerance_nats}, at_least=0)
    position = found.argmax(axis=1)
    missing = ~found.any(axis=1)
    if tie == "listed":
        return np.where(missing, np.inf, position + 1.0)
    if logprob is None or np.shape(logprob) != found.shape:
        raise InputError(f"is needed with shape {found.shape} for tie={tie!r}", field="logprob")
    values = np.asarray(logprob, dtype=float)
    own = np.take_along_axis(values, position[:, None], axis=1)
    tied = (np.abs(values - own) <= tolerance_nats).sum(axis=-1) - 1.0
    extra = {"best": 0.0, "middle": tied / 2, "worst": tied}[tie]
    return np.where(missing, np.inf, 1.0 + (values > own + tolerance_nats).sum(axis=-1) + extra)


def rank_at(rank: ArrayLike, k: int) -> FloatArray:
    """Ranks as a list of the `k` best tokens shows them: ``inf`` beyond `k`.

    Examples
    --------
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
        problem = f"has {ranks[~(ranks >= 1)].ravel()[0]}, should be 1 or more, inf for a token that is not ranked"
        raise InputError(problem, field="rank")
    return ranks


def check_k(k: int) -> None:
    """Refuse a number of ranked tokens that is no whole number of at least 1."""
    if isinstance(k, bool) or k < 1 or k != int(k):
        raise InputError(f"is {k!r}, should be a whole number of at least 1", field="k")
