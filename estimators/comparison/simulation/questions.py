"""Which comparison of an item is asked next, by its reports so far: the target first, stepping stones where it is far.

Tokens of an item are known by their column; the target is ``TARGET_POSITION``. A token is *placed* when a report
inside the scale compared it with a placed token (the target is placed at 0), and *far* when every report on it lay at
an end of the scale.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from estimators.comparison.study_sources import TARGET_POSITION

__all__ = ["ItemQuestions", "next_comparison", "note_report", "start_questions"]

_ENOUGH = 2  # tokens compared with the target, before most of them can lie beyond an end


@dataclass
class ItemQuestions:
    """What was asked of an item, and what its reports say.

    Attributes
    ----------
    fresh : list of int
        Tokens not compared yet, in the order in which they will be.
    stones : list of int
        Stepping stones not asked about yet.
    used_stones : int
        Stones that became candidates.
    place : dict of int to float
        Log-ratio to the target of each placed token, nats.
    bounds : dict of int to tuple of float
        Between which places each far token lies, nats.
    last : dict of int to int
        Token with which each token was compared last.
    counts : Counter
        Comparisons of each token.
    ends : list of int
        Of each first comparison with the target: 1 at the end above it, -1 at the one below, 0 inside the scale.
    direction : int
        On which side of the target most tokens are far; 0 where they are not.
    bridge : int
        The reference that placed a far token last; the target as long as none did.
    """

    fresh: list[int]
    stones: list[int]
    n_tokens: int
    used_stones: int = 0
    place: dict[int, float] = field(default_factory=lambda: {TARGET_POSITION: 0.0})
    bounds: dict[int, tuple[float, float]] = field(default_factory=dict)
    last: dict[int, int] = field(default_factory=dict)
    counts: Counter[int] = field(default_factory=Counter)
    ends: list[int] = field(default_factory=list)
    direction: int = 0
    bridge: int = TARGET_POSITION


def start_questions(tokens: list[int], stones: list[int]) -> ItemQuestions:
    """Start an item.

    Parameters
    ----------
    tokens : list of int
        Its tokens other than the target, in the order in which they are asked about.
    stones : list of int
        Its stepping stones, in the order in which they were drawn; a stone that is another token has that one's
        number. Empty where none may be asked about.

    Returns
    -------
    ItemQuestions

    Examples
    --------
    >>> from estimators.comparison.simulation.questions import next_comparison, start_questions
    >>> next_comparison(start_questions([4, 7], stones=[]))
    (4, -1)
    """
    return ItemQuestions(list(tokens), list(stones), n_tokens=len(tokens))


def next_comparison(item: ItemQuestions) -> tuple[int, int] | None:
    """Choose the next comparison.

    A far token is compared with a placed one that may lie near: the farthest placed one in its direction, or, if it
    lies between two, the one nearest to the middle. Where there is none, the next stone is compared with the farthest
    placed token, which for the first stone is the target. Then come fresh tokens, then those compared least often.

    Parameters
    ----------
    item : ItemQuestions
        Is changed: the tokens chosen are no longer fresh.

    Returns
    -------
    tuple of int, or None
        Candidate and reference; None if the item has no token but the target.
    """
    for token in item.bounds if item.direction else ():
        reference = _nearest_placed(item, token)
        if reference is not None:
            return token, reference
    beyond = (item.direction > 0 and np.inf in (high for _, high in item.bounds.values())) or (
        item.direction < 0 and -np.inf in (low for low, _ in item.bounds.values())
    )
    while beyond and item.stones:
        stone = item.stones.pop(0)
        item.used_stones += 1
        if stone == TARGET_POSITION or stone in item.counts:
            continue  # nothing new is learnt from it
        if stone in item.fresh:
            item.fresh.remove(stone)
        return stone, max(item.place, key=lambda x: item.direction * item.place[x])
    if item.fresh:
        return item.fresh.pop(0), item.bridge
    if not item.counts:
        return None
    token = min(item.counts, key=lambda x: item.counts[x])  # the one asked first, of those that are equal
    return token, item.last[token]


def note_report(item: ItemQuestions, candidate: int, reference: int, log_ratio: float, end: bool) -> None:
    """Take a report into account.

    Parameters
    ----------
    item : ItemQuestions
        Is changed.
    candidate, reference : int
        What was compared.
    log_ratio : float
        ln h(candidate)/h(reference) as reported, nats.
    end : bool
        Whether the report lay at an end of the scale.
    """
    first = candidate not in item.counts
    item.counts[candidate] += 1
    item.last[candidate] = reference
    if first and reference == TARGET_POSITION:
        item.ends.append(int(np.sign(log_ratio)) if end else 0)
    if candidate not in item.place:
        here = item.place[reference]
        low, high = item.bounds.pop(candidate, (-np.inf, np.inf))
        if not end:
            item.place[candidate] = here + log_ratio
            if item.direction and reference != TARGET_POSITION:
                item.bridge = reference
        elif log_ratio > 0:
            item.bounds[candidate] = max(low, here), high
        else:
            item.bounds[candidate] = low, min(high, here)
    if not item.direction and len(item.ends) >= min(_ENOUGH, item.n_tokens):
        for side in (1, -1):
            if 2 * item.ends.count(side) > len(item.ends):
                item.direction = side


def _nearest_placed(item: ItemQuestions, token: int) -> int | None:
    """Find the placed token with which a far token is best compared; None if all that may be near were tried."""
    low, high = item.bounds[token]
    if (item.direction > 0 and high <= 0) or (item.direction < 0 and low >= 0):
        return None  # beyond the other end: where most are far on one side, such a token weighs nothing
    inside = [x for x, place in item.place.items() if low < place < high]
    if not inside:
        return None
    if np.isinf(high):
        return max(inside, key=lambda x: item.place[x])
    if np.isinf(low):
        return min(inside, key=lambda x: item.place[x])
    return min(inside, key=lambda x: abs(item.place[x] - (low + high) / 2))
