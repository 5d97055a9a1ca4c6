"""Whether a player of the comparison game earns more than one who always says 50%, on the questions it answered.

The score of 50% is 0 on every question, so that a player's points per question are its gain. They are unbiased however
few questions an item has; the loss of equation 5 is too low where they are few.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from shannon_game.estimators.arrays import FloatArray, IntArray
from shannon_game.estimators.comparison.score import score

FEWEST_ITEMS = 10
"""With fewer the interval is not to be relied on."""
BETTER, AT_CHANCE, TOO_SURE, WORSE, TOO_FEW = "better than 50%", "at chance", "too sure", "worse than 50%", "too few"


@dataclass(frozen=True, eq=False)
class ChanceComparison:
    """Points per question, and share of questions where the token of the text is favoured, with intervals over items.

    Items count alike; a report of one half favours the token by half.
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
        """What the intervals say; whoever answers at random loses points by confidence, but favours neither token."""
        if self.n_items < FEWEST_ITEMS:
            return TOO_FEW
        if self.points_lower > 0:
            return BETTER
        if self.points_upper < 0 and self.favoured_lower > 0.5:
            return TOO_SURE
        return WORSE if self.points_upper < 0 and self.favoured_upper < 0.5 else AT_CHANCE


def compare_with_chance(
    report: FloatArray, target_logprob: FloatArray, item: ArrayLike, *, level: float = 0.9
) -> ChanceComparison:
    """Compare the probabilities given to the token of the text with always saying 50%; ln g(y|c) is in nats."""
    code = np.unique(item, return_inverse=True)[1]
    points = _over_items(score(report, target_logprob), code, level)
    favoured = _over_items((1 + np.sign(report - 0.5)) / 2, code, level)
    return ChanceComparison(*points, *favoured, n_items=len(np.unique(code)))


def _over_items(value: FloatArray, code: IntArray, level: float) -> tuple[float, float, float]:
    """Mean of the items' means, with Student's interval; NaN without items, and an interval needs two."""
    from scipy.special import stdtrit  # noqa: PLC0415 - a tenth of a second that importing estimators does not need

    if not value.size:
        return np.nan, np.nan, np.nan
    means = np.bincount(code, weights=value) / np.bincount(code)
    mean, n = float(means.mean()), means.size
    half = float(stdtrit(n - 1, (1 + level) / 2) * means.std(ddof=1) / np.sqrt(n)) if n > 1 else np.nan
    return mean, mean - half, mean + half
