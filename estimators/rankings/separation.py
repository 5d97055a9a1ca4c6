r"""How well a score separates two models that scored the same windows.

The mean difference of paired windows is :math:`\bar d`, its standard deviation over windows :math:`s`. The effect size
:math:`\bar d / s` does not depend on the unit of the score, so that scores can be compared by it. A two-sided test of
the mean at level :math:`\alpha` has power :math:`1 - \beta` with

.. math:: n = \left\lceil \left(\frac{z_{1 - \alpha/2} + z_{1 - \beta}}{\bar d / s}\right)^2 \right\rceil

windows, as if :math:`\bar d` and :math:`s` were the true ones; of few windows they are rough, and so is `n`.

Source: J. Cohen (1988), Statistical Power Analysis for the Behavioral Sciences, chapter 2 (paired means).
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from shannon_game.estimators.checks import check_numbers
from shannon_game.estimators.display import Result
from shannon_game.estimators.errors import InputError


@dataclass(frozen=True, eq=False, repr=False)
class Separation(Result):
    """How far two models are apart in one score.

    Attributes
    ----------
    difference, se : float
        Mean of first minus second over windows, in the score's unit, and its standard error.
    sd : float
        Standard deviation of the differences (ddof 1).
    effect : float
        `difference` / `sd`; NaN where no window differs, infinite where all differ by the same.
    windows_needed : float
        For the power asked for; NaN where the models do not differ, at least 2.
    """

    n_windows: int
    difference: float
    se: float
    sd: float
    effect: float
    windows_needed: float


def paired_separation(first: ArrayLike, second: ArrayLike, *, level: float = 0.05, power: float = 0.8) -> Separation:
    """Compare two models by their mean scores of the same two windows or more, in the same order.

    `level` and `power` are those of the two-sided test whose windows are counted.

    Examples
    --------
    >>> rankings.paired_separation([0.5, 0.7, 0.6, 0.8], [0.4, 0.8, 0.6, 0.7]).windows_needed
    116.0
    """
    a, b = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if a.ndim != 1 or a.shape != b.shape:
        raise InputError(f"has shape {b.shape}, should be (window,) like first {a.shape}", field="second")
    if a.size < 2:
        raise InputError(f"has {a.size} windows, should have at least 2", field="first")
    for name, values in (("first", a), ("second", b)):
        if not np.isfinite(values).all():
            raise InputError(f"has {int((~np.isfinite(values)).sum())} values that are not finite", field=name)
    check_numbers({"level": level, "power": power}, above=0, below=1)
    differences = a - b
    mean, sd = float(differences.mean()), float(differences.std(ddof=1))
    # equal differences leave a rounding error as their spread
    sd = 0.0 if sd <= 1e-12 * max(1.0, abs(mean)) else sd
    effect = mean / sd if sd else float("nan") if mean == 0 else float(np.copysign(np.inf, mean))
    z = NormalDist().inv_cdf(1 - level / 2) + NormalDist().inv_cdf(power)
    needed = float("nan") if np.isnan(effect) or effect == 0 else max(2.0, float(np.ceil((z / effect) ** 2)))
    return Separation(
        n_windows=int(a.size),
        difference=mean,
        se=sd / float(np.sqrt(a.size)),
        sd=sd,
        effect=effect,
        windows_needed=needed,
    )
