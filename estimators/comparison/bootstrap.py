"""Resampling of comparison studies, as weights instead of loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array, csr_array

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.checks import check_numbers
from shannon_game.estimators.comparison.item_terms import group_terms
from shannon_game.estimators.comparison.log_means import LOG_MEANS
from shannon_game.estimators.display import Result
from shannon_game.estimators.errors import InputError

_CHUNK_CELLS = 2_000_000  # replicates are drawn in blocks of this many (replicate, item) cells: 16 MB a matrix
_DENSE_CELLS = 1 << 24  # a larger table is sparse where it then takes less memory


@dataclass(frozen=True, eq=False, repr=False)
class BootstrapGap(Result):
    """Replicates of a loss gap.

    Attributes
    ----------
    gap_nats : ndarray, shape (replicate,)
        Without empty replicates.
    mean_items_lost : float
        Items, on average over replicates, that no drawn participant had answered: they are left out.
    n_empty : int
        Replicates in which no drawn participant had answered any drawn item: they are left out.
    """

    gap_nats: FloatArray
    mean_items_lost: float
    n_empty: int


def half_sample_bootstrap(
    log_term: ArrayLike,
    item: ArrayLike,
    participant: ArrayLike,
    *,
    n_replicates: int,
    rng: np.random.Generator,
    drop: float = 0.5,
) -> BootstrapGap:
    """Drop a random half of the participants, many times (the paper's figure 7).

    With half dropped the spread of the replicates is about the standard error over participants, items held fixed.
    Their centre is not the estimate: half the answers per item make the downward bias of a log-mean larger. The share
    to `drop` is rounded down to whole participants.

    Examples
    --------
    >>> found = comparison.half_sample_bootstrap(
    ...     [0.1, 0.9, -0.4, 1.2], [1, 1, 2, 2], [0, 1, 0, 1], n_replicates=4, rng=np.random.default_rng(0)
    ... )
    >>> found.gap_nats.round(2)
    array([-0.15, -0.15,  1.05,  1.05])
    """
    table = participant_table(log_term, item, participant)
    n_participants = table.n_participants
    check_numbers({"drop": drop}, above=0, below=1)
    n_dropped = int(drop * n_participants)
    check_numbers({"n_replicates": n_replicates}, at_least=1)
    if not 0 < n_dropped < n_participants:
        raise InputError(f"is {drop}: of {n_participants} participants {n_dropped} would be dropped", field="drop")
    kept = _in_parts(
        n_replicates, n_participants, lambda n: rng.random((n, n_participants)).argsort(axis=1) >= n_dropped
    )
    return _replicate(table, kept, None)


def cluster_bootstrap(
    log_term: ArrayLike,
    item: ArrayLike,
    participant: ArrayLike,
    *,
    n_replicates: int,
    rng: np.random.Generator,
    resample_participants: bool = True,
    resample_items: bool = True,
) -> BootstrapGap:
    """Resample participants and items with replacement, both at once: the pigeonhole bootstrap (Owen 2007).

    A response counts as often as its participant times its item were drawn. The variance is right for the effects of
    participants and items, and up to three times too large for the noise of single responses. Replicates hold fewer
    distinct answers per item than the study, so that their log-means are biased further down.

    Examples
    --------
    >>> found = comparison.cluster_bootstrap(
    ...     [0.1, 0.9, -0.4, 1.2], [1, 1, 2, 2], [0, 1, 0, 1], n_replicates=4, rng=np.random.default_rng(0)
    ... )
    >>> found.gap_nats.round(2)
    array([0.58, 0.58, 1.05, 1.05])
    """
    if not (resample_participants or resample_items):
        raise InputError("are both false: nothing would be resampled", field="resample_participants, resample_items")
    check_numbers({"n_replicates": n_replicates}, at_least=1)
    table = participant_table(log_term, item, participant)
    n_participants, n_items = table.n_participants, table.log_scale.size

    def draws(size: int, n: int) -> NDArray[np.int64]:
        return rng.multinomial(size, np.full(size, 1 / size), size=n)

    people = np.broadcast_to(np.ones(n_participants), (n_replicates, n_participants))
    if resample_participants:
        people = _in_parts(n_replicates, n_participants, lambda n: draws(n_participants, n))
    return _replicate(table, people, (lambda n: draws(n_items, n)) if resample_items else None)


def bias_curve(
    log_term: ArrayLike, *, n: Sequence[int], n_repeats: int, rng: np.random.Generator, estimator: str = "importance"
) -> FloatArray:
    """Estimate loss gaps, nats, (n, repeat), from n candidates per item, several times (the paper's figure 3).

    Parameters
    ----------
    log_term : array_like of float, shape (item, candidate) or (player, item, candidate)
        ln w on all stored candidates, nats (:func:`candidate_log_terms`). Several players are given the same draws.
    n : sequence of int
        Numbers of candidates drawn with replacement for every item; each has its own random stream.
    estimator : str
        ``importance`` (eq. 5), ``jackknife``, ``delta`` or ``psis``.

    Examples
    --------
    >>> log_term = np.random.default_rng(0).normal(0.0, 1.0, (50, 100))
    >>> curve = comparison.bias_curve(log_term, n=[2, 20], n_repeats=10, rng=np.random.default_rng(0))
    >>> curve.mean(axis=1).round(1)
    array([0.2, 0.5])
    """
    terms = np.asarray(log_term, dtype=float)
    if terms.ndim not in (2, 3) or terms.size == 0:
        problem = f"has shape {terms.shape}, should be (item, candidate) or (player, item, candidate) and not empty"
        raise InputError(problem, field="log_term")
    if not n or min(n) < 1:
        raise InputError(f"is {list(n)}, should be numbers of at least 1", field="n")
    if estimator not in LOG_MEANS:
        problem = f"is {estimator!r}; at every n the log-mean can be one of: {', '.join(LOG_MEANS)}"
        raise InputError(problem, field="estimator")
    check_numbers({"n_repeats": n_repeats}, at_least=1)
    n_items, n_candidates = terms.shape[-2:]
    tables = terms.reshape(-1, n_items, n_candidates)
    largest = tables.max(axis=2)
    weights = np.exp(tables - largest[:, :, None])
    row = np.arange(n_items)[:, None]
    # the narrowest integers that hold a position: drawing them is most of the work
    dtype = np.uint16 if n_candidates <= np.iinfo(np.uint16).max else np.int64
    gaps = np.empty((tables.shape[0], len(n), n_repeats))
    for position, (size, stream) in enumerate(zip(n, rng.spawn(len(n)), strict=True)):
        for repeat in range(n_repeats):
            chosen = stream.integers(0, n_candidates, (n_items, size), dtype=dtype)
            for player, weight in enumerate(weights):
                mean = weight[row, chosen].mean(axis=1)
                if estimator == "importance" and mean.min() > 0:
                    gaps[player, position, repeat] = np.mean(np.log(mean) + largest[player])
                    continue
                # also where every drawn weight underflows beside the item's largest
                drawn = group_terms(tables[player][row, chosen].ravel(), np.repeat(np.arange(n_items), size))
                gaps[player, position, repeat] = LOG_MEANS[estimator](drawn).value.mean()
    return gaps.reshape(*terms.shape[:-2], len(n), n_repeats)


@dataclass(frozen=True, eq=False)
class ParticipantTable:
    """Sums and numbers of every participant's terms on every item, and the log of each item's scale."""

    total: FloatArray | csr_array[Any, Any]
    count: FloatArray | csr_array[Any, Any]
    log_scale: FloatArray
    n_participants: int


def participant_table(log_term: ArrayLike, item: ArrayLike, participant: ArrayLike) -> ParticipantTable:
    """Sum the terms of every participant on every item, (participant, item)."""
    terms = group_terms(log_term, item)
    who = np.asarray(participant)
    if who.shape != terms.log_term.shape:
        raise InputError(f"has shape {who.shape}, the terms {terms.log_term.shape}", field="participant")
    people, code = np.unique(who, return_inverse=True)
    cells, shape = (code[terms.order], terms.item), (people.size, terms.label.size)
    values = terms.weights.scaled, np.ones(code.size)
    total, count = (coo_array((each, cells), shape=shape).tocsr() for each in values)
    if shape[0] * shape[1] <= max(_DENSE_CELLS, 2 * code.size):
        return ParticipantTable(total.toarray(), count.toarray(), terms.weights.largest, people.size)
    return ParticipantTable(total, count, terms.weights.largest, people.size)


def _in_parts(n_replicates: int, n_participants: int, draw: Callable[[int], NDArray[Any]]) -> NDArray[Any]:
    """Weights of participants in all replicates, drawn in parts, as the narrowest integers that hold them."""
    weight = np.empty((n_replicates, n_participants), dtype=np.min_scalar_type(n_participants))
    step = max(1, _CHUNK_CELLS // n_participants)
    for begin in range(0, n_replicates, step):
        part = weight[begin : begin + step]
        part[:] = draw(part.shape[0])
    return weight


def _replicate(
    table: ParticipantTable, people: NDArray[Any], draw_items: Callable[[int], NDArray[Any]] | None
) -> BootstrapGap:
    """Replicates from a weight a participant, (replicate, participant), and the next n draws of items, (n, item)."""
    n_items, n_replicates = table.log_scale.size, people.shape[0]
    gaps = np.empty(n_replicates)
    lost = 0
    step = min(max(1, _CHUNK_CELLS // n_items), n_replicates)
    for begin in range(0, n_replicates, step):
        drawn = people[begin : begin + step].astype(float)
        count = drawn @ table.count
        weight = (count > 0) * (1.0 if draw_items is None else draw_items(len(drawn)))
        lost += int(np.count_nonzero(count == 0))
        with np.errstate(divide="ignore", invalid="ignore"):
            log_mean = np.log(drawn @ table.total / count) + table.log_scale
            total = np.einsum("ij,ij->i", np.where(weight > 0, log_mean, 0.0), weight)
            gaps[begin : begin + step] = total / weight.sum(axis=1)
    kept = gaps[np.isfinite(gaps)]
    if kept.size == 0:
        raise InputError("no replicate has an answer: too few participants answered the same items")
    return BootstrapGap(gap_nats=kept, mean_items_lost=lost / n_replicates, n_empty=gaps.size - kept.size)
