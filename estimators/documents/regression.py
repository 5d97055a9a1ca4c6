r"""Linear regression with standard errors that know in which groups the observations come.

With columns :math:`X`, residuals :math:`e` and clusters of one kind or two (people U, texts I, and both P)

.. math::

    V = V_U + V_I - V_P, \qquad
    V_C = \frac{|C|}{|C| - 1} (X'X)^{-1} \Big(\sum_{c \in C} s_c s_c'\Big) (X'X)^{-1}, \qquad
    s_c = \sum_{i \in c} e_i x_i .

Source: Cameron, Gelbach and Miller (2011), Robust inference with multiway clustering.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.display import Result
from shannon_game.estimators.documents.clusters import answer_numbers, codes, t_half_width
from shannon_game.estimators.errors import InputError

INTERCEPT = "intercept"
_SAME = 1e-8


@dataclass(frozen=True, repr=False)
class ClusteredRegression(Result):
    """Coefficients of a linear regression.

    Attributes
    ----------
    names : tuple of str
        The intercept first.
    coefficient, se, lower, upper : ndarray of float, shape (name,)
        In the value's unit by unit of the column; Student's interval with as many degrees of freedom as the smallest
        number of clusters, minus 1.
    loglik_nats : float
        Largest log-likelihood of a normal error; differences between nested regressions on the same values say how much
        a column predicts.
    """

    names: tuple[str, ...]
    coefficient: FloatArray
    se: FloatArray
    lower: FloatArray
    upper: FloatArray
    loglik_nats: float
    n: int
    n_clusters: tuple[int, ...]

    def of(self, name: str) -> dict[str, float]:
        """Coefficient, standard error and interval of one column."""
        at = self.names.index(name)
        shown = {"coefficient": self.coefficient, "se": self.se, "lower": self.lower, "upper": self.upper}
        return {what: round(float(values[at]), 12) for what, values in shown.items()}

    def headline(self) -> str:
        """Say how many columns and observations there are."""
        return f"{len(self.names) - 1} columns, {self.n} values in {' x '.join(map(str, self.n_clusters))} clusters"


def clustered_regression(
    values: ArrayLike,
    columns: Mapping[str, ArrayLike],
    cluster: ArrayLike,
    other_cluster: ArrayLike | None = None,
    *,
    probability: float = 0.9,
) -> ClusteredRegression:
    """Least squares with an intercept, and errors clustered one way (such as by text) or two (and by people).

    Examples
    --------
    >>> fit = documents.clustered_regression([1.0, 3.0, 5.0, 8.0], {"x": [0, 1, 2, 3]}, ["a", "a", "b", "b"])
    >>> fit.names, fit.of("x")["coefficient"]
    (('intercept', 'x'), 2.3)
    """
    y = answer_numbers(values, "values")
    x, inverse = design_matrix(y, columns)
    coefficient = inverse @ (x.T @ y)
    error = y - x @ coefficient
    groups = [codes(cluster, "cluster", y.size)]
    if other_cluster is not None:
        groups.append(codes(other_cluster, "other_cluster", y.size))
    counts = tuple(int(code.max()) + 1 for code in groups)
    if min(counts) < 2:
        raise InputError("has one group; two are needed for a standard error", field="cluster")
    scores = x * error[:, None]
    parts = [_variance(scores, inverse, code) for code in groups]
    variance = parts[0]
    if len(parts) == 2:
        both = np.unique(groups[0] * counts[1] + groups[1], return_inverse=True)[1]
        # a variance below one of its parts is one of a small study
        variance = np.maximum(parts[0] + parts[1] - _variance(scores, inverse, both), np.maximum(*parts))
    # a column that is the same throughout each of two clusters leaves their residuals no sum to vary
    plain = np.diag(inverse) * float(error @ error)
    se = np.sqrt(np.where((variance > _SAME**2 * plain) | (plain < _SAME**2 * float(y @ y)), variance, np.nan))
    half = np.array([t_half_width(float(one), min(counts) - 1, probability) for one in se])
    return ClusteredRegression(
        names=(INTERCEPT, *columns),
        coefficient=coefficient,
        se=se,
        lower=coefficient - half,
        upper=coefficient + half,
        loglik_nats=float(-y.size / 2 * (np.log(2 * np.pi * (error @ error) / y.size) + 1)),
        n=y.size,
        n_clusters=counts,
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


def _variance(scores: FloatArray, inverse: FloatArray, cluster: NDArray[np.int64]) -> FloatArray:
    """Variances of the coefficients by clusters of one kind, shape (name,)."""
    n = int(cluster.max()) + 1
    totals = np.stack([np.bincount(cluster, weights=column, minlength=n) for column in scores.T], axis=1)
    sandwich: FloatArray = n / max(n - 1, 1) * ((totals @ inverse) ** 2).sum(axis=0)
    return sandwich
