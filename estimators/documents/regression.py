r"""Linear regression with standard errors that know in which clusters, such as texts, the observations come.

With columns :math:`X`, residuals :math:`e` and clusters :math:`C`

.. math::

    V = \frac{|C|}{|C| - 1} (X'X)^{-1} \Big(\sum_{c \in C} s_c s_c'\Big) (X'X)^{-1}, \qquad
    s_c = \sum_{i \in c} e_i x_i .

Source: Cameron, Gelbach and Miller (2011), Robust inference with multiway clustering.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.display import Result
from shannon_game.estimators.documents.clusters import answer_numbers, codes, t_half_width
from shannon_game.estimators.errors import InputError

INTERCEPT = "intercept"
_SAME = 1e-8


@dataclass(frozen=True, repr=False)
class Coefficients(Result):
    """Coefficients of a regression, the intercept's first, in the value's unit by unit of the column."""

    names: tuple[str, ...]
    coefficient: FloatArray
    se: FloatArray
    lower: FloatArray
    upper: FloatArray

    def of(self, name: str) -> dict[str, float]:
        """Coefficient, standard error and interval of one column."""
        at = self.names.index(name)
        shown = {"coefficient": self.coefficient, "se": self.se, "lower": self.lower, "upper": self.upper}
        return {what: float(values[at]) for what, values in shown.items()}


@dataclass(frozen=True, repr=False)
class ClusteredRegression(Coefficients):
    """Coefficients of a linear regression; Student's interval with the number of clusters, minus 1, as freedom."""

    n: int
    n_clusters: int


def clustered_regression(
    values: ArrayLike,
    columns: Mapping[str, ArrayLike],
    cluster: ArrayLike,
    *,
    probability: float = 0.9,
) -> ClusteredRegression:
    """Least squares with an intercept, and errors clustered, such as by text.

    Examples
    --------
    >>> fit = documents.clustered_regression([1.0, 3.0, 5.0, 8.0], {"x": [0, 1, 2, 3]}, ["a", "a", "b", "b"])
    >>> fit.names, round(fit.of("x")["coefficient"], 6)
    (('intercept', 'x'), 2.3)
    """
    y = answer_numbers(values, "values")
    x, inverse = design_matrix(y, columns)
    coefficient = inverse @ (x.T @ y)
    error = y - x @ coefficient
    of = codes(cluster, "cluster", y.size)
    n_clusters = int(of.max()) + 1
    if n_clusters < 2:
        raise InputError("has one group; two are needed for a standard error", field="cluster")
    scores = x * error[:, None]
    totals = np.stack([np.bincount(of, weights=column, minlength=n_clusters) for column in scores.T], axis=1)
    variance = n_clusters / (n_clusters - 1) * ((totals @ inverse) ** 2).sum(axis=0)
    # a column that is the same throughout each of two clusters leaves their residuals no sum to vary
    plain = np.diag(inverse) * float(error @ error)
    se = np.sqrt(np.where((variance > _SAME**2 * plain) | (plain < _SAME**2 * float(y @ y)), variance, np.nan))
    half = np.array([t_half_width(float(one), n_clusters - 1, probability) for one in se])
    return ClusteredRegression(
        names=(INTERCEPT, *columns),
        coefficient=coefficient,
        se=se,
        lower=coefficient - half,
        upper=coefficient + half,
        n=y.size,
        n_clusters=n_clusters,
    )


def design_matrix(y: FloatArray, columns: Mapping[str, ArrayLike]) -> tuple[FloatArray, FloatArray]:
    """Columns after an intercept, and the inverse of their cross-products; undetermined ones are refused."""
    if INTERCEPT in columns:
        raise InputError("is a column; the intercept is there already", field=INTERCEPT)
    given = {name: answer_numbers(column, name) for name, column in columns.items()}
    for name, column in given.items():
        if column.shape != y.shape:
            raise InputError(f"has shape {column.shape}, `values` has {y.shape}", field=name)
    x = np.column_stack([np.ones(y.size), *given.values()])
    if y.size <= x.shape[1]:
        raise InputError(f"has {y.size} numbers for {x.shape[1]} coefficients; more are needed", field="values")
    # of unit length, so that a column in milliseconds hides none in log-odds
    scale = np.sqrt((x**2).sum(axis=0))
    names = (INTERCEPT, *columns)
    if (scale == 0).any():
        raise InputError("is zero everywhere", field=names[int(np.flatnonzero(scale == 0)[0])])
    _, size, basis = np.linalg.svd(x / scale, full_matrices=False)
    if size[-1] < _SAME * size[0]:
        raise InputError("follows from the other columns", field=names[int(np.argmax(np.abs(basis[-1][1:]))) + 1])
    return x, (basis.T / size**2) @ basis / np.outer(scale, scale)
