"""Held-out gain, slowly: least squares part by part, and the normal distribution of all times written out."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.stats import norm


def of_means(values: np.ndarray, columns: list[np.ndarray], fold: np.ndarray) -> np.ndarray:
    """Log-density of every value under least squares on the other parts."""
    x = np.column_stack([np.ones(values.size), *columns])
    found = np.empty(values.size)
    for one in set(fold.tolist()):
        train, out = fold != one, fold == one
        beta = np.linalg.lstsq(x[train], values[train], rcond=None)[0]
        sd = np.sqrt(((values - x @ beta)[train] ** 2).sum() / (train.sum() - x.shape[1]))
        found[out] = norm.logpdf(values[out], (x @ beta)[out], sd)
    return found


def of_readers(
    values: np.ndarray,
    columns: list[np.ndarray],
    fold: np.ndarray,
    reader: np.ndarray,
    word: np.ndarray,
    slope: int | None,
) -> np.ndarray:
    """The same with effects of readers and words: REML over all times, then conditional on the other parts."""
    x = np.column_stack([np.ones(values.size), *[(one - one.mean()) / one.std() for one in columns]])
    z = x[:, [0] if slope is None else [0, 1 + slope]]
    same_reader, same_word = reader[:, None] == reader, word[:, None] == word

    def covariance(theta: np.ndarray) -> np.ndarray:
        factor = np.zeros((z.shape[1],) * 2)
        factor[np.tril_indices(len(factor))] = theta[1:]
        return same_reader * (z @ factor @ factor.T @ z.T) + theta[0] ** 2 * same_word + np.eye(values.size)

    def fitted(rows: np.ndarray, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray, float, float]:
        inverse = np.linalg.inv(covariance(theta)[np.ix_(rows, rows)])
        middle = x[rows].T @ inverse @ x[rows]
        beta = np.linalg.solve(middle, x[rows].T @ inverse @ values[rows])
        error = values[rows] - x[rows] @ beta
        freedom = rows.sum() - x.shape[1]
        sigma2 = error @ inverse @ error / freedom
        criterion = freedom * np.log(sigma2) - np.linalg.slogdet(inverse)[1] + np.linalg.slogdet(middle)[1]
        return inverse, beta, sigma2, criterion

    everything = np.ones(values.size, dtype=bool)
    start = [0.5, 1.0] if slope is None else [0.5, 1.0, 0.0, 0.3]
    options = {"maxiter": 4000, "fatol": 1e-10, "xatol": 1e-6}
    best = minimize(lambda theta: fitted(everything, theta)[3], start, method="Nelder-Mead", options=options).x
    whole, found = covariance(best), np.empty(values.size)
    for one in set(fold.tolist()):
        train, out = fold != one, fold == one
        inverse, beta, sigma2, _ = fitted(train, best)
        weights = whole[np.ix_(out, train)] @ inverse
        spread = np.diag(whole)[out] - (weights * whole[np.ix_(out, train)]).sum(axis=1)
        mean = x[out] @ beta + weights @ (values[train] - x[train] @ beta)
        found[out] = norm.logpdf(values[out], mean, np.sqrt(sigma2 * spread))
    return found
