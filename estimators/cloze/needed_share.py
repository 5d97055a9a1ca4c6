"""Share of contexts that a model would have to answer as people do to be as near to people as they are (section 5)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from estimators.display import Result
from estimators.errors import InputError

__all__ = ["NeededShare", "needed_share"]


@dataclass(frozen=True, eq=False, repr=False)
class NeededShare(Result):
    """Share of contexts to improve.

    Parameters
    ----------
    share : float
        1 - margin / gap; 0 for a model within the margin.
    lower, upper : float
        Of the bootstrap over groups of contexts.
    gap : float
        Mean TVD of the model - mean TVD between halves of people.
    draws : ndarray of float, shape (replicate,)
    """

    share: float
    lower: float
    upper: float
    gap: float
    margin: float
    draws: NDArray[np.float64]


def needed_share(
    model: ArrayLike,
    halves: ArrayLike,
    groups: ArrayLike,
    *,
    margin: float,
    rng: np.random.Generator,
    n_replicates: int = 2000,
    probability: float = 0.9,
) -> NeededShare:
    """Share of contexts that a model has to answer as people do, for its mean TVD to come near that between people.

    Replacing a random share *k* leaves (1 - k) of the gap between the mean TVDs, so that the share needed is
    1 - margin / gap; at no share below one are both equal. The interval resamples groups (passages) of contexts.

    Parameters
    ----------
    model, halves : array_like of float, shape (context,)
        TVD to one half of people, of the model and of the other half, in the same contexts.
    groups : array_like, shape (context,)
    margin : float
        Difference of mean TVDs that counts as none.

    Raises
    ------
    InputError
        If the margin is not positive, a value is NaN, or the shapes differ.

    Examples
    --------
    >>> from estimators import cloze
    >>> found = cloze.needed_share(
    ...     [0.7, 0.6, 0.8], [0.4, 0.4, 0.5], groups=["a", "a", "b"], margin=0.05, rng=np.random.default_rng(0)
    ... )
    >>> round(found.share, 3)
    0.812
    """
    model, halves = np.asarray(model, dtype=float), np.asarray(halves, dtype=float)
    if model.shape != halves.shape or model.ndim != 1 or not len(model):
        raise InputError(f"has shape {halves.shape}, the model {model.shape}", field="halves")
    if not margin > 0:
        raise InputError(f"is {margin}, should be larger than 0", field="margin")
    gaps = model - halves
    if np.isnan(gaps).any():
        raise InputError(f"holds {int(np.isnan(gaps).sum())} NaN; leave those contexts out", field="model or halves")
    _, group = np.unique(np.asarray(groups), return_inverse=True)
    size = np.bincount(group)
    sums = np.bincount(group, weights=gaps)
    drawn = rng.integers(len(size), size=(n_replicates, len(size)))
    means = sums[drawn].sum(axis=1) / size[drawn].sum(axis=1)
    draws = _share(means, margin)
    tail = (1 - probability) / 2
    lower, upper = np.quantile(draws, [tail, 1 - tail]) if len(size) > 1 else (np.nan, np.nan)
    gap = float(gaps.mean())
    return NeededShare(float(_share(np.array([gap]), margin)[0]), float(lower), float(upper), gap, margin, draws)


def _share(gap: NDArray[np.float64], margin: float) -> NDArray[np.float64]:
    return np.where(gap > margin, 1 - margin / np.maximum(gap, margin), 0.0)
