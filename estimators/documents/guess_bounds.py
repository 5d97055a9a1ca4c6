r"""Shannon's (1951) bounds of the entropy of a text, from how many guesses each of its words took."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.display import Result
from shannon_game.estimators.documents.clusters import codes, crossed_mean
from shannon_game.estimators.errors import InputError


@dataclass(frozen=True, repr=False)
class GuessBounds(Result):
    """Bounds of the entropy from ranks, nats per word.

    Attributes
    ----------
    lower_nats, upper_nats : float
        Shannon's lower bound; his upper bound, the entropy of the ranks, corrected for the finite number of items. The
        upper one is NaN where a word was not found and no size of the vocabulary is given.
    lower_se_nats, upper_se_nats : float
        Standard errors over people and items (over items alone for one participant); NaN with one item.
    upper_plug_in_nats : float
        The same without the correction.
    share_first : float
        Share of words that the first guess found.
    is_falling : bool
        Whether no rank is more frequent than a better one, as for the guesser for whom the lower bound is one.
    """

    lower_nats: float
    lower_se_nats: float
    upper_nats: float
    upper_se_nats: float
    upper_plug_in_nats: float
    share_first: float
    n_responses: int
    n_items: int
    n_participants: int
    n_not_found: int
    is_falling: bool


def lower_bound_terms(rank: ArrayLike) -> FloatArray:
    r"""Terms whose mean over answers is Shannon's lower bound: :math:`r \ln r - (r - 1) \ln(r - 1)`, nats.

    With :math:`q_r` the share of answers of rank r, Abel's summation makes of his sum
    :math:`\sum_r r\, (q_r - q_{r+1}) \ln r` a mean of these terms, whose estimate has no bias.
    """
    ranks = np.asarray(rank, dtype=float)
    bad = ~(np.isfinite(ranks) & (ranks >= 1) & (ranks == np.rint(ranks)))
    if bad.any():
        raise InputError(f"has {ranks[bad].ravel()[0]:g}, should be a whole number of at least 1", field="rank")
    below = ranks - 1
    terms: FloatArray = ranks * np.log(ranks) - below * np.log(np.maximum(below, 1))
    return terms


def guess_bounds(
    rank: ArrayLike,
    *,
    item: ArrayLike,
    participant: ArrayLike | None = None,
    n_tried: ArrayLike | None = None,
    vocab_size: int | None = None,
) -> GuessBounds:
    r"""Bound the entropy of a text by the ranks at which guesses were right.

    .. math:: \sum_r r\, (q_r - q_{r+1}) \ln r \;\le\; H \;\le\; -\sum_r q_r \ln q_r

    for a guesser who names words in the order of their true probabilities (Shannon 1951); for any other the upper
    bound holds and the lower one is a description. The entropy of the sample's ranks is too low on average; the
    jackknife over items takes the largest part of that away, and knows that answers to one item are alike. The lower
    bound is a mean, the upper one nearly so, of the pseudo-values :math:`n H - (n - 1) H_{-i}` of single answers; their
    standard errors are clustered two ways (:func:`crossed_mean`).

    A word that was not found has some rank above the guesses tried. The lower bound takes the next rank. The upper
    bound takes the most that is possible, those words' ranks spread evenly over the rest of the vocabulary.

    Parameters
    ----------
    rank : array_like, shape (response,)
        Whole numbers from 1; ``inf`` for a word that was not found.
    item, participant : array_like, shape (response,)
        The place of the text, and who guessed; by default one.
    n_tried : int or array_like of int, shape (response,), optional
        Guesses before it was given up; needed where a word was not found.
    vocab_size : int, optional
        Words that can be guessed.

    Examples
    --------
    >>> rankings.guess_bounds([1, 1, 2, 1], item=[0, 1, 2, 3])
    GuessBounds(lower_nats=0.3466, lower_se_nats=0.3466, upper_nats=0.8172, upper_se_nats=0.4774, ...)
    """
    ranks, tried = _checked(rank, n_tried, vocab_size)
    found = np.isfinite(ranks)
    place = codes(item, "item", ranks.size, "rank")
    one = np.zeros(ranks.size, dtype=np.int64)
    person = one if participant is None else codes(participant, "participant", ranks.size, "rank")
    terms = lower_bound_terms(np.where(found, ranks, tried + 1))
    # unfound words are one more category, the last; what their ranks may add to the entropy comes on top
    category = np.unique(ranks, return_inverse=True)[1]
    tail = 0.0 if found.all() else np.nan if vocab_size is None else float(np.log(vocab_size - tried[~found].min()))
    n_items, n_people = int(place.max()) + 1, int(person.max()) + 1
    cells = np.zeros((n_items, int(category.max()) + 1))
    np.add.at(cells, (place, category), 1)
    whole = cells.sum(axis=0)
    unfound = np.zeros(whole.size)
    unfound[-1] = 0.0 if found.all() else tail
    plug_in = float(_entropy(whole, unfound))
    corrected = plug_in
    if n_items > 1:
        without = _entropy(whole - cells, unfound)
        corrected = float(n_items * plug_in - (n_items - 1) * without.mean())
    single = whole - np.eye(whole.size)
    pseudo = plug_in + (ranks.size - 1) * (plug_in - _entropy(np.maximum(single, 0), unfound))[category]
    share = np.bincount(ranks[found].astype(np.int64))[1:] / ranks.size
    return GuessBounds(
        lower_nats=float(terms.mean()),
        lower_se_nats=_standard_error(terms, person, place),
        upper_nats=corrected,
        upper_se_nats=_standard_error(pseudo, person, place),
        upper_plug_in_nats=plug_in,
        share_first=float((ranks == 1).mean()),
        n_responses=ranks.size,
        n_items=n_items,
        n_participants=n_people,
        n_not_found=int((~found).sum()),
        is_falling=bool((np.diff(share) <= 0).all()),
    )


def _checked(
    rank: ArrayLike, n_tried: ArrayLike | None, vocab_size: int | None
) -> tuple[FloatArray, NDArray[np.int64]]:
    ranks = np.asarray(rank, dtype=float)
    if ranks.ndim != 1 or not ranks.size:
        raise InputError(f"has shape {ranks.shape}; one rank per word, and at least one, is needed", field="rank")
    found = np.isfinite(ranks)
    if np.isnan(ranks).any() or np.isneginf(ranks).any():
        raise InputError("has a value that is no rank: whole numbers from 1, inf where it was not found", field="rank")
    lower_bound_terms(ranks[found])
    if n_tried is None and not found.all():
        raise InputError("is missing; the guesses tried say where words that were not found begin", field="n_tried")
    tried = np.broadcast_to(np.asarray(0 if n_tried is None else n_tried), ranks.shape).astype(np.int64)
    if (tried < 0).any() or (n_tried is not None and (ranks[found] > tried[found]).any()):
        raise InputError("should be at least 0, and at least the rank of a word that was found", field="n_tried")
    largest = int(max(ranks[found].max(initial=1), (tried[~found] + 1).max(initial=1)))
    if vocab_size is not None and vocab_size < largest:
        raise InputError(f"is {vocab_size}, should be at least {largest}, the worst rank there is", field="vocab_size")
    return ranks, tried


def _entropy(count: FloatArray, extra: FloatArray) -> FloatArray:
    """Entropy of shares, (..., category) -> (...), and a category's own extra entropy; NaN of nothing."""
    with np.errstate(divide="ignore", invalid="ignore"):
        share = count / count.sum(axis=-1, keepdims=True)
        parts = np.where(share > 0, share * (extra - np.log(share)), 0.0 * share)
    total: FloatArray = parts.sum(axis=-1)
    return total


def _standard_error(values: FloatArray, person: NDArray[np.int64], place: NDArray[np.int64]) -> float:
    if not np.isfinite(values).all():
        return np.nan
    found = crossed_mean(values, person, place)
    return found.se if found.n_participants > 1 else found.se_items
