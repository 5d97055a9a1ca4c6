"""Clustered regression against a slow reference, closed forms, and its coverage on simulated texts."""

from __future__ import annotations

import numpy as np
from scipy import stats

from shannon_game.estimators.documents import clustered_regression


def slow(y: np.ndarray, x: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Variances of the coefficients by a loop over clusters, as the formula says."""
    bread = np.linalg.inv(x.T @ x)
    error = y - x @ bread @ x.T @ y
    total = np.zeros((x.shape[1], x.shape[1]))
    names = sorted(set(groups.tolist()))
    for name in names:
        score = sum(error[i] * x[i] for i in range(len(y)) if groups[i] == name)
        total += np.outer(score, score)
    return np.diag(len(names) / (len(names) - 1) * bread @ total @ bread)


def test_a_slow_reference() -> None:
    rng = np.random.default_rng(0)
    texts = np.tile(np.repeat(np.arange(4), 3), 8)
    x = rng.normal(size=(96, 2)) * [1, 1e4]
    y = 3 + x @ [2, -1e-3] + rng.normal(size=4)[texts] + rng.normal(size=96)
    fit = clustered_regression(y, {"a": x[:, 0], "b": x[:, 1]}, texts)
    design = np.column_stack([np.ones(96), x])
    np.testing.assert_allclose(fit.coefficient, np.linalg.lstsq(design, y, rcond=None)[0], rtol=1e-8)
    np.testing.assert_allclose(fit.se**2, slow(y, design, texts), rtol=1e-6)
    assert fit.n_clusters == 4
    half = stats.t.ppf(0.95, 3) * fit.se
    np.testing.assert_allclose([fit.lower, fit.upper], [fit.coefficient - half, fit.coefficient + half])
