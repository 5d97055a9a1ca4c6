"""How far a player is on the way from a floor to people's ceiling, and how far two players are apart on it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.checks import check_numbers
from shannon_game.estimators.display import Result
from shannon_game.estimators.errors import InputError

_LEAST = 0.01
"""Least ceiling minus floor of a sample, as a share of the estimate."""


@dataclass(frozen=True, eq=False, repr=False)
class CeilingShare(Result):
    """Share of the way from a floor to a ceiling, with a bootstrap interval over groups of units.

    Attributes
    ----------
    value, floor, ceiling : float
        Means over units.
    value_lower, value_upper : float
        Interval of the value.
    share, lower, upper : float
        (value - floor) / (ceiling - floor) and its interval, not cut at 0 or 1; NaN where there is none.
    replicates : ndarray, shape (replicate,)
        Shares of the bootstrap samples: those of two players on the same units, of one seed, are pairs.
    no_share : str
        Why there is no share; "" where there is one.
    """

    made_by = "ceiling_share(value, floor, ceiling)"

    value: float
    value_lower: float
    value_upper: float
    floor: float
    ceiling: float
    share: float
    lower: float
    upper: float
    n_units: int
    n_groups: int
    no_share: str
    replicates: FloatArray


@dataclass(frozen=True, repr=False)
class ShareDifference(Result):
    """Difference of two players' shares, the first minus the second, with its interval."""

    difference: float
    lower: float
    upper: float


def ceiling_share(
    value: ArrayLike,
    floor: ArrayLike,
    ceiling: ArrayLike,
    *,
    group: ArrayLike | None = None,
    lower_is_better: bool = False,
    level: float = 0.9,
    n_replicates: int = 500,
    seed: int = 0,
) -> CeilingShare:
    r"""Estimate which share of the way from a floor to a ceiling a player goes.

    .. math:: s = \frac{\bar v - \bar f}{\bar c - \bar f}

    with means over units, such as contexts. A bootstrap sample draws groups of units with replacement, such as texts
    (of one group alone: its units), the same for value, floor and ceiling, and takes one draw of the people (the
    cluster bootstrap of a ratio; Davison and Hinkley 1997, section 3.8). There is no share where the interval of
    ceiling minus floor holds zero.

    Parameters
    ----------
    value, floor, ceiling : array_like, shape (unit,) or (draw, unit)
        Scores of a player, of what knows nothing, and of people. A draw is one resample of the people; estimates
        are means over draws.
    group : array_like, shape (unit,), optional
        Text or document of each unit; by default each stands alone.

    Examples
    --------
    >>> found = documents.ceiling_share([0.3, 0.5, 0.4], floor=[0.1, 0.1, 0.1], ceiling=[0.5, 0.7, 0.6])
    >>> round(found.share, 2), round(found.lower, 2), round(found.upper, 2)
    (0.6, 0.54, 0.65)
    """
    v, f, c = _scores(value=value, floor=floor, ceiling=ceiling)
    n_units = v.shape[1]
    check_numbers({"level": level}, above=0, below=1)
    check_numbers({"n_replicates": n_replicates}, at_least=1)
    labels = np.arange(n_units) if group is None else np.asarray(group)
    if labels.shape != (n_units,):
        raise InputError(f"has shape {labels.shape}, the scores have {n_units} units", field="group")
    code = np.unique(labels, return_inverse=True)[1]
    code = code if code.max() else np.arange(n_units)
    sizes = np.bincount(code)
    n_groups = len(sizes)
    rng = np.random.default_rng(seed)
    times = rng.multinomial(n_groups, np.full(n_groups, 1 / n_groups), size=n_replicates)
    n_drawn = times @ sizes

    def resampled(scores: FloatArray) -> FloatArray:
        sums = np.stack([np.bincount(code, weights=row, minlength=n_groups) for row in scores])
        return np.asarray((times * sums[np.arange(n_replicates) % len(sums)]).sum(axis=1) / n_drawn)

    value_at, floor_at, ceiling_at = map(resampled, (v, f, c))
    tails = [(1 - level) / 2, (1 + level) / 2]
    known = n_groups > 1
    ends = np.quantile(value_at, tails) if known else (np.nan, np.nan)
    sign = -1 if lower_is_better else 1
    room_at = ceiling_at - floor_at
    room = float(c.mean() - f.mean())
    above = sign * room > 0 and (not known or np.quantile(sign * room_at, tails[0]) > 0)
    # a sample in which people are not above the floor is far to one side
    steps = np.maximum(sign * room_at, _LEAST * abs(room))
    replicates = sign * (value_at - floor_at) / steps if above else np.full(n_replicates, np.nan)
    shares = np.quantile(replicates, tails) if above and known else (np.nan, np.nan)
    return CeilingShare(
        value=float(v.mean()),
        value_lower=float(ends[0]),
        value_upper=float(ends[1]),
        floor=float(f.mean()),
        ceiling=float(c.mean()),
        share=float(v.mean() - f.mean()) / room if above else float("nan"),
        lower=float(shares[0]),
        upper=float(shares[1]),
        n_units=n_units,
        n_groups=n_groups,
        no_share="" if above else "people are not clearly better than the floor",
        replicates=replicates,
    )


def share_difference(
    shares: tuple[float, float], first: ArrayLike, second: ArrayLike, *, level: float = 0.9
) -> ShareDifference:
    """Compare two players' shares by their replicates, (replicate,), which have to be of the same samples.

    Examples
    --------
    >>> floor, ceiling = [0.1, 0.1, 0.1], [0.5, 0.7, 0.6]
    >>> one, other = (documents.ceiling_share(v, floor, ceiling) for v in ([0.3, 0.5, 0.4], [0.2, 0.3, 0.4]))
    >>> found = documents.share_difference((one.share, other.share), one.replicates, other.replicates)
    >>> round(found.difference, 2), round(found.lower, 2), round(found.upper, 2)
    (0.2, 0.07, 0.31)
    """
    a, b = (np.asarray(values, dtype=float) for values in (first, second))
    if a.ndim != 1 or a.shape != b.shape or not a.size:
        raise InputError(f"have shapes {a.shape} and {b.shape}; should be of the same samples", field="first, second")
    lower, upper = np.quantile(a - b, [(1 - level) / 2, (1 + level) / 2])
    return ShareDifference(shares[0] - shares[1], float(lower), float(upper))


def _scores(**given: ArrayLike) -> list[FloatArray]:
    found = [np.atleast_2d(np.asarray(values, dtype=float)) for values in given.values()]
    n_units = found[0].shape[-1]
    for name, scores in zip(given, found, strict=True):
        if scores.ndim != 2 or not scores.size or scores.shape[1] != n_units:
            problem = f"has shape {scores.shape}, should be (unit,) or (draw, unit) with {n_units} units, at least one"
            raise InputError(problem, field=name)
        if not np.isfinite(scores).all():
            raise InputError("holds a score that is not finite", field=name)
    return found
