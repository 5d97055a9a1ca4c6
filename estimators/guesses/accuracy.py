r"""Accuracy of guesses: pooled and by participant, with intervals that know who guessed and where.

Guesses of one participant, and guesses in one document, are alike. Wilson's interval takes all guesses for independent
and is right for one participant on one kind of text; for the pooled accuracy the cluster bootstrap resamples
participants and documents, as weights instead of loops.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shannon_game.estimators.arrays import BoolArray, FloatArray
from shannon_game.estimators.checks import check_numbers
from shannon_game.estimators.display import Result
from shannon_game.estimators.documents.clusters import wilson_interval
from shannon_game.estimators.errors import InputError

_CHUNK_CELLS = 2_000_000  # replicates are made in blocks of this many (replicate, document) cells: 16 MB a matrix


@dataclass(frozen=True, repr=False)
class PooledAccuracy(Result):
    """Share of all guesses that are right.

    Attributes
    ----------
    accuracy : float
        Every guess counts the same, so that who guessed most counts most.
    wilson_lower, wilson_upper : float
        As if all guesses were independent.
    se, lower, upper : float
        Standard deviation and quantiles of the bootstrap over participants and documents.
    participant_mean, participant_mean_se : float
        Mean over participants of their own accuracies; standard deviation over participants / sqrt(n_participants).
    """

    n_guesses: int
    n_participants: int
    n_documents: int
    accuracy: float
    wilson_lower: float
    wilson_upper: float
    se: float
    lower: float
    upper: float
    participant_mean: float
    participant_mean_se: float


@dataclass(frozen=True, eq=False, repr=False)
class ParticipantAccuracy(Result):
    """Accuracy of every participant with Wilson's interval, sorted by name; each (participant,)."""

    participant: NDArray[np.str_]
    n_guesses: NDArray[np.int64]
    n_hits: NDArray[np.int64]
    accuracy: FloatArray
    lower: FloatArray
    upper: FloatArray


def enough_answers(participant: ArrayLike, minimum: int) -> BoolArray:
    """Guesses, (response,), of participants who gave at least `minimum` (50 in the paper)."""
    check_numbers({"minimum": minimum}, at_least=0)
    code, count = np.unique(np.asarray(participant), return_inverse=True, return_counts=True)[1:]
    return count[code] >= minimum


def participant_accuracy(
    correct: ArrayLike, participant: ArrayLike, *, probability: float = 0.9
) -> ParticipantAccuracy:
    """Accuracy of every participant with Wilson's interval, from one value a guess: `correct`, `participant`.

    Examples
    --------
    >>> correct, who = [1, 0, 1, 1, 0, 0], ["Ann", "Ann", "Ann", "Bo", "Bo", "Bo"]
    >>> guesses.participant_accuracy(correct, who).summary().round(2)
      participant  n_guesses  n_hits  accuracy  lower  upper
    0         Ann          3       2      0.67   0.25   0.92
    1          Bo          3       1      0.33   0.08   0.75
    """
    right, who = checked_columns(correct, participant=participant)
    name, code = np.unique(who, return_inverse=True)
    count = np.bincount(code)
    hits = np.bincount(code, weights=right).astype(np.int64)
    lower, upper = wilson_interval(hits, count, probability=probability)
    return ParticipantAccuracy(name.astype(str), count.astype(np.int64), hits, hits / count, lower, upper)


def pooled_accuracy(
    correct: ArrayLike,
    participant: ArrayLike,
    document: ArrayLike,
    *,
    rng: np.random.Generator,
    n_replicates: int = 2000,
    probability: float = 0.9,
) -> PooledAccuracy:
    """Accuracy over all guesses, with Wilson's interval and one that resamples participants and documents.

    Both are resampled at once, the pigeonhole bootstrap (Owen 2007): a guess counts as often as its participant times
    its document were drawn. Where every document was seen by one participant, as in most of the game's, it errs on the
    wide side, as the noise of single guesses is counted up to three times. `correct`, `participant` and `document` have
    one value a guess.

    Examples
    --------
    >>> correct, who = [1, 0, 1, 1, 0, 0], ["Ann", "Ann", "Ann", "Bo", "Bo", "Bo"]
    >>> found = guesses.pooled_accuracy(correct, who, ["a", "b", "b"] * 2, rng=np.random.default_rng(0))
    >>> found.accuracy, round(found.wilson_lower, 2), round(found.lower, 2), round(found.upper, 2)
    (0.5, 0.22, 0.0, 1.0)
    """
    right, who, where = checked_columns(correct, participant=participant, document=document)
    n, hits = right.size, float(right.sum())
    check_numbers({"probability": probability}, above=0, below=1)
    tail = (1 - probability) / 2
    replicates = bootstrap_accuracy(right, who, where, n_replicates=n_replicates, rng=rng)
    wilson = wilson_interval(hits, n, probability=probability)
    own = participant_accuracy(right, who).accuracy
    places = np.unique(where).size
    # of one participant or one document nobody knows how much they differ
    known = min(own.size, places) > 1 and replicates.size > 1
    lower, upper = np.quantile(replicates, [tail, 1 - tail]) if known else (np.nan, np.nan)
    return PooledAccuracy(
        n_guesses=n,
        n_participants=own.size,
        n_documents=places,
        accuracy=hits / n,
        wilson_lower=float(wilson[0]),
        wilson_upper=float(wilson[1]),
        se=float(replicates.std(ddof=1)) if known else np.nan,
        lower=float(lower),
        upper=float(upper),
        participant_mean=float(own.mean()),
        participant_mean_se=float(own.std(ddof=1) / np.sqrt(own.size)) if own.size > 1 else np.nan,
    )


def bootstrap_accuracy(
    correct: ArrayLike, participant: ArrayLike, document: ArrayLike, *, n_replicates: int, rng: np.random.Generator
) -> FloatArray:
    """Pooled accuracy with participants and documents drawn with replacement; empty replicates are left out."""
    check_numbers({"n_replicates": n_replicates}, at_least=1)
    right, who, where = checked_columns(correct, participant=participant, document=document)
    people, person = np.unique(who, return_inverse=True)
    places, place = np.unique(where, return_inverse=True)
    shape = (people.size, places.size)
    cell = person * shape[1] + place
    hits = np.bincount(cell, weights=right, minlength=shape[0] * shape[1]).reshape(shape)
    count = np.bincount(cell, minlength=shape[0] * shape[1]).reshape(shape).astype(float)
    shares = np.empty(n_replicates)
    step = max(1, _CHUNK_CELLS // shape[1])
    for begin in range(0, n_replicates, step):
        size = min(step, n_replicates - begin)
        drawn, documents = times_drawn(shape[0], size, rng), times_drawn(shape[1], size, rng)
        right_drawn, all_drawn = (((drawn @ each) * documents).sum(axis=1) for each in (hits, count))
        with np.errstate(invalid="ignore"):
            shares[begin : begin + size] = right_drawn / all_drawn
    kept: FloatArray = shares[np.isfinite(shares)]
    if kept.size == 0:
        raise InputError("no replicate has a guess: too few participants saw the same documents")
    return kept


def times_drawn(size: int, n_replicates: int, rng: np.random.Generator) -> FloatArray:
    """How often each was drawn with replacement, (replicate, each)."""
    return rng.multinomial(size, np.full(size, 1 / size), size=n_replicates).astype(float)


def bayesian_bootstrap_accuracy(
    hit: ArrayLike, cluster: ArrayLike, *, n_draws: int, rng: np.random.Generator
) -> FloatArray:
    """Draws of the accuracy of one player over new clusters (documents), from the guesses in those seen.

    Rubin's (1981) Bayesian bootstrap of a ratio: clusters get Dirichlet(1, ..., 1) weights. With one guess a cluster
    the draws are close to Beta(hits, misses). `hit`, from 0 to 1, and `cluster` have one value a guess.

    Examples
    --------
    >>> guesses.bayesian_bootstrap_accuracy(
    ...     [1, 0, 1], ["a", "a", "b"], n_draws=3, rng=np.random.default_rng(0)
    ... ).round(2)
    array([0.71, 0.53, 0.8 ])
    """
    check_numbers({"n_draws": n_draws}, at_least=1)
    right, where = checked_columns(hit, cluster=cluster)
    code = np.unique(where, return_inverse=True)[1]
    weight = rng.dirichlet(np.ones(int(code.max()) + 1), size=n_draws)
    return (weight @ np.bincount(code, weights=right)) / (weight @ np.bincount(code))


def checked_columns(correct: ArrayLike, **columns: ArrayLike) -> list[NDArray[Any]]:
    """Arrays of one value a guess, right or wrong first."""
    right = np.asarray(correct, dtype=float)
    if right.ndim != 1 or right.size == 0:
        raise InputError(f"has shape {right.shape}; one value a guess, and at least one, is needed", field="correct")
    if not ((right >= 0) & (right <= 1)).all():
        raise InputError("should be true or false, or a share from 0 to 1, for every guess", field="correct")
    found: list[NDArray[Any]] = [right]
    for name, values in columns.items():
        array = np.asarray(values)
        if array.shape != right.shape:
            raise InputError(f"has shape {array.shape}, `correct` has {right.shape}", field=name)
        # fixed-width strings sort ten times faster than objects
        found.append(array.astype(str) if array.dtype == object else array)
    return found
