"""scikit-learn's ARD regression, which the paper used; no PyMC."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.errors import require_packages


@dataclass(frozen=True, eq=False)
class SklearnArd:
    """scikit-learn's ``ARDRegression``: precisions by type-II maximum likelihood; 0 where a predictor was pruned."""

    coefficient: FloatArray
    sd: FloatArray
    precision: FloatArray
    covariance: FloatArray
    noise_precision: float
    intercept: float

    @property
    def two_over_precision(self) -> FloatArray:
        """Bars of the figure of "Predict the Next Word", 2 / lambda: twice a prior variance, no posterior interval."""
        return 2 / self.precision


def sklearn_ard(x: ArrayLike, target: ArrayLike) -> SklearnArd:
    """Fit scikit-learn's ARD regression with its defaults to `x`, shape (row, predictor)."""
    require_packages(("sklearn",), "data")
    from sklearn.linear_model import ARDRegression  # noqa: PLC0415 - an extra, and slow to import

    found = ARDRegression().fit(np.asarray(x, dtype=float), np.asarray(target, dtype=float))
    kept = found.lambda_ < found.threshold_lambda
    sd = np.zeros(len(kept))
    # sigma_ has rows for what was not pruned only
    sd[kept] = np.sqrt(np.diag(found.sigma_))
    return SklearnArd(
        coefficient=np.asarray(found.coef_),
        sd=sd,
        precision=np.asarray(found.lambda_),
        covariance=np.asarray(found.sigma_),
        noise_precision=float(found.alpha_),
        intercept=float(found.intercept_),
    )
