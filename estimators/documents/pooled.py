r"""Several studies of one quantity pooled: a random-effects meta-analysis.

Studies with estimates :math:`y_k`, standard errors :math:`s_k` and true values that differ by :math:`\tau`. The
between-study variance is that of Paule and Mandel (1982), the :math:`\tau^2 \ge 0` at which

.. math:: \sum_k w_k (y_k - \hat\mu)^2 = K - 1, \quad w_k = \frac{1}{s_k^2 + \tau^2}, \quad
          \hat\mu = \frac{\sum_k w_k y_k}{\sum_k w_k},

and the interval that of Hartung and Knapp (2001), which knows that :math:`\tau` is estimated from few studies:
Student's with :math:`K - 1` degrees of freedom and variance
:math:`\sum_k w_k (y_k - \hat\mu)^2 / ((K - 1) \sum_k w_k)`, here never below :math:`1 / \sum_k w_k`. What a new study
would find lies in the prediction interval, with variance :math:`\tau^2` more (Higgins, Thompson and Spiegelhalter
2009); of few studies it holds less than it states, as :math:`\tau` is taken for known: 83% for 90% with six.
Studies of different tokenizers are pooled in bits a
character, not in nats per token.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from shannon_game.estimators.arrays import Dataset, FloatArray
from shannon_game.estimators.display import Result
from shannon_game.estimators.documents.clusters import t_half_width
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.schema import Range, Schema, Variable


@dataclass(frozen=True, repr=False)
class PooledMean(Result):
    """Mean of several studies, in their unit.

    Attributes
    ----------
    lower, upper : float
        Interval of the mean (Hartung and Knapp).
    tau : float
        Standard deviation of the true values between studies.
    new_lower, new_upper : float
        Where the true value of a new study would lie; NaN with two studies.
    share_between : float
        Share of the variation of the estimates that is between studies (I squared), from 0 to 1.
    """

    mean: float
    se: float
    lower: float
    upper: float
    tau: float
    new_lower: float
    new_upper: float
    share_between: float
    n_studies: int


def pooled_mean(estimate: ArrayLike, se: ArrayLike, *, probability: float = 0.9) -> PooledMean:
    """Pool estimates, such as losses in bits per character, of two studies or more, whose true values may differ.

    Examples
    --------
    >>> documents.pooled_mean([1.30, 1.22, 1.41], [0.05, 0.04, 0.06])
    PooledMean(mean=1.303, se=0.05454, lower=1.144, upper=1.462, ...)
    """
    y, s = np.asarray(estimate, dtype=float), np.asarray(se, dtype=float)
    if y.ndim != 1 or y.shape != s.shape:
        raise InputError(f"has shape {s.shape}, should be (study,) like estimate {y.shape}", field="se")
    if y.size < 2:
        raise InputError(f"has {y.size} studies, should have at least 2", field="estimate")
    if not np.isfinite(y).all():
        raise InputError(f"is {y[~np.isfinite(y)][0]} for a study, should be finite", field="estimate")
    if not (np.isfinite(s) & (s > 0)).all():
        raise InputError(f"is {s[~(np.isfinite(s) & (s > 0))][0]} for a study, should be above 0", field="se")
    tau2 = _paule_mandel(y, s)
    weight = 1 / (s**2 + tau2)
    mean, chi2 = _mean_and_chi2(y, s, tau2)
    spread = float(np.sqrt(max(chi2 / (y.size - 1), 1.0) / weight.sum()))
    half = t_half_width(spread, y.size - 1, probability)
    new = t_half_width(float(np.sqrt(spread**2 + tau2)), y.size - 2, probability)
    fixed = _mean_and_chi2(y, s, 0.0)[1]
    return PooledMean(
        mean=mean,
        se=spread,
        lower=mean - half,
        upper=mean + half,
        tau=float(np.sqrt(tau2)),
        new_lower=mean - new,
        new_upper=mean + new,
        share_between=max(0.0, 1 - (y.size - 1) / fixed) if fixed > 0 else 0.0,
        n_studies=y.size,
    )


def _mean_and_chi2(y: FloatArray, s: FloatArray, tau2: float) -> tuple[float, float]:
    weight = 1 / (s**2 + tau2)
    mean = float(weight @ y / weight.sum())
    return mean, float(weight @ (y - mean) ** 2)


def _paule_mandel(y: FloatArray, s: FloatArray) -> float:
    """Between-study variance where the sum of squares falls as it grows."""
    if _mean_and_chi2(y, s, 0.0)[1] <= y.size - 1:
        return 0.0
    high = float((y - y.mean()) @ (y - y.mean())) + 1.0
    while _mean_and_chi2(y, s, high)[1] > y.size - 1:
        high *= 2
    return float(brentq(lambda tau2: _mean_and_chi2(y, s, tau2)[1] - (y.size - 1), 0.0, high, xtol=1e-14))


ESTIMATES = Schema(
    kind="estimates",
    cure="estimates(path=...) makes one of a table (from shannon_game import estimates)",
    variables=(
        Variable("source", "source", "str", "name of the study that the estimate is from", filled=True),
        Variable("estimate", "source", "float", "in one unit for all studies", range=Range("finite")),
        Variable("se", "source", "float", "its standard error", range=Range("above 0", 0, open_ends=True)),
        Variable("group", "source", "str", 'what is pooled apart, such as a model; "all" where nothing is'),
    ),
)
"""Variables of a study of estimates."""


@ESTIMATES.documented
def validate_estimates_study(study: Dataset) -> Dataset:
    """Check a study of estimates and return it.

    The dimension is ``source``: one estimate per study (and group).

    {variables}

    Attribute ``units`` says the unit, where it is known.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"source": ["a", "b"], "estimate": [1.3, 1.2], "se": [0.05, 0.04], "group": "all"})
    >>> documents.validate_estimates_study(table.set_index("source").to_xarray())["se"].values
    array([0.05, 0.04])
    """
    return ESTIMATES.check(study)[0]
