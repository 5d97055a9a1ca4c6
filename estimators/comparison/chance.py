r"""Whether a player of the comparison game earns more than one who always says 50%, on the questions it answered.

The score of 50% is 0 on every question, so that a player's points per question are its gain. They are unbiased however
few questions an item has; the loss of equation 5 is too low where they are few.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from shannon_game.estimators.arrays import FloatArray, IntArray
from shannon_game.estimators.comparison.score import score
from shannon_game.estimators.display import Result
from shannon_game.estimators.errors import InputError

FEWEST_ITEMS = 10
"""With fewer the interval is not to be relied on."""
BETTER, AT_CHANCE, TOO_SURE, WORSE, TOO_FEW = "better than 50%", "at chance", "too sure", "worse than 50%", "too few"


@dataclass(frozen=True, eq=False, repr=False)
class ChanceComparison(Result):
    """A player beside one who always says 50%.

    Attributes
    ----------
    points, points_lower, points_upper : float
        Points per question (:func:`~shannon_game.estimators.comparison.score.score`), items counting alike.
    favoured, favoured_lower, favoured_upper : float
        Share of questions in which the token of the text is given more than one half; one half itself counts half.
    n_items : int
    standing : str
        ``better than 50%`` where all of the interval of points is above 0, ``too few`` with less than
        :data:`FEWEST_ITEMS` items. All of it below 0 is ``too sure`` of a player that does favour the token of the
        text, and ``worse than 50%`` of one that favours the other. Everything else is ``at chance``: whoever answers at
        random loses points by confidence, but favours neither token.
    """

    points: float
    points_lower: float
    points_upper: float
    favoured: float
    favoured_lower: float
    favoured_upper: float
    n_items: int

    @property
    def standing(self) -> str:
        """What the intervals say."""
        if self.n_items < FEWEST_ITEMS:
            return TOO_FEW
        if self.points_lower > 0:
            return BETTER
        if self.points_upper < 0 and self.favoured_lower > 0.5:
            return TOO_SURE
        return WORSE if self.points_upper < 0 and self.favoured_upper < 0.5 else AT_CHANCE


def compare_with_chance(
    report: ArrayLike, target_logprob: ArrayLike, item: ArrayLike, *, level: float = 0.9
) -> ChanceComparison:
    """Compare reports with always saying 50%, by intervals of Student's t over items.

    Parameters
    ----------
    report : array_like of float, shape (question,)
        Probability given to the token of the text, in (0, 1). Pairs of equal strings are no questions.
    target_logprob : array_like of float, shape (question,)
        ln g(y|c) of the generator, nats.
    item : array_like, shape (question,)
        Labels.
    level : float
        Probability of the intervals.

    Examples
    --------
    >>> found = compare_with_chance([0.9, 0.8, 0.6, 0.4], np.log([0.2, 0.2, 0.1, 0.1]), [1, 1, 2, 2])
    >>> round(found.points, 1), found.favoured, found.standing
    (51.9, 0.75, 'too few')
    """
    reports, logprob, labels = np.asarray(report, float), np.asarray(target_logprob, float), np.asarray(item)
    if not reports.shape == logprob.shape == labels.shape or reports.ndim != 1:
        problem = f"have shapes {reports.shape}, {logprob.shape} and {labels.shape}, should have one value per question"
        raise InputError(problem, field="report, target_logprob, item")
    code = np.unique(labels, return_inverse=True)[1]
    points = _over_items(score(reports, logprob), code, level)
    favoured = _over_items((1 + np.sign(reports - 0.5)) / 2, code, level)
    return ChanceComparison(*points, *favoured, n_items=len(np.unique(code)))


def _over_items(value: FloatArray, code: IntArray, level: float) -> tuple[float, float, float]:
    """Mean of the items' means, with its interval; NaN without items, and an interval needs two."""
    from scipy.special import stdtrit  # noqa: PLC0415 - a tenth of a second that importing estimators does not need

    if not value.size:
        return np.nan, np.nan, np.nan
    means = np.bincount(code, weights=value) / np.bincount(code)
    mean, n = float(means.mean()), means.size
    half = float(stdtrit(n - 1, (1 + level) / 2) * means.std(ddof=1) / np.sqrt(n)) if n > 1 else np.nan
    return mean, mean - half, mean + half
