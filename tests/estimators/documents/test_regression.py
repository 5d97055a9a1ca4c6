"""Clustered regression against a slow reference, closed forms, and its coverage on simulated people and texts."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from shannon_game.estimators.documents import clustered_regression, crossed_slope


def slow(y: np.ndarray, x: np.ndarray, clusters: list[np.ndarray]) -> np.ndarray:
    """Variances of the coefficients by loops over clusters, as the formula says."""
    bread = np.linalg.inv(x.T @ x)
    error = y - x @ bread @ x.T @ y

    def meat(groups: np.ndarray) -> np.ndarray:
        total = np.zeros((x.shape[1], x.shape[1]))
        names = sorted(set(groups.tolist()))
        for name in names:
            score = sum(error[i] * x[i] for i in range(len(y)) if groups[i] == name)
            total += np.outer(score, score)
        return len(names) / (len(names) - 1) * bread @ total @ bread

    variance = sum(meat(groups) for groups in clusters)
    if len(clusters) == 2:
        variance = variance - meat(np.array([f"{a}/{b}" for a, b in zip(*clusters, strict=True)]))
    return np.diag(variance)


@pytest.mark.parametrize("two_ways", [False, True])
def test_a_slow_reference(two_ways: bool) -> None:
    rng = np.random.default_rng(0)
    people, texts = np.repeat(np.arange(8), 12), np.tile(np.repeat(np.arange(4), 3), 8)
    x = rng.normal(size=(96, 2)) * [1, 1e4]
    y = 3 + x @ [2, -1e-3] + rng.normal(size=8)[people] + rng.normal(size=4)[texts] + rng.normal(size=96)
    fit = clustered_regression(y, {"a": x[:, 0], "b": x[:, 1]}, texts, people if two_ways else None)
    design = np.column_stack([np.ones(96), x])
    np.testing.assert_allclose(fit.coefficient, np.linalg.lstsq(design, y, rcond=None)[0], rtol=1e-8)
    ways = [texts, people] if two_ways else [texts]
    least = np.max([slow(y, design, [one]) for one in ways], axis=0)
    np.testing.assert_allclose(fit.se**2, np.maximum(slow(y, design, ways), least), rtol=1e-6)
    assert fit.n_clusters == ((4, 8) if two_ways else (4,))
    half = stats.t.ppf(0.95, 3) * fit.se
    np.testing.assert_allclose([fit.lower, fit.upper], [fit.coefficient - half, fit.coefficient + half])


def test_a_slope_within_people_is_that_of_people_as_columns() -> None:
    """Frisch, Waugh and Lovell: levels of people as columns leave the slope of values less people's means."""
    rng = np.random.default_rng(1)
    people, items = np.repeat(np.arange(5), 6), np.tile(np.arange(6), 5)
    x, y = rng.normal(size=30), rng.normal(size=30)
    levels = {f"p{person}": (people == person).astype(float) for person in range(1, 5)}
    fit = clustered_regression(y, {"x": x, **levels}, people, items)
    other = crossed_slope(y, x, people, items)
    assert fit.of("x")["coefficient"] == pytest.approx(other.slope)
    assert fit.of("x")["se"] == pytest.approx(other.se)


def test_the_log_likelihood_is_that_of_a_normal_error() -> None:
    y = np.array([1.0, 2, 4, 3, 6])
    fit = clustered_regression(y, {}, np.arange(5))
    sd = y.std()
    density = np.exp(-((y - y.mean()) ** 2) / (2 * sd**2)) / np.sqrt(2 * np.pi * sd**2)
    assert fit.loglik_nats == pytest.approx(np.log(density).sum())
    assert "0 columns, 5 values in 5 clusters" in fit.headline()


def test_intervals_hold_the_truth_where_people_and_texts_differ() -> None:
    """400 studies; 90% intervals hold the slope in 84 to 95% of them (four standard errors), plain ones would not."""
    rng = np.random.default_rng(2)
    people, texts = np.repeat(np.arange(30), 60), np.tile(np.repeat(np.arange(20), 3), 30)
    held = plain = 0
    for _ in range(400):
        slope = 2 + rng.normal(size=30)[people] * 0.5 + rng.normal(size=20)[texts] * 0.5
        x = rng.normal(size=1800)
        y = slope * x + rng.normal(size=1800)
        fit = clustered_regression(y, {"x": x}, texts, people).of("x")
        held += fit["lower"] <= 2 <= fit["upper"]
        error = y - np.polyval(np.polyfit(x, y, 1), x)
        plain += abs(fit["coefficient"] - 2) < 1.645 * error.std() / (x.std() * np.sqrt(1800))
    assert 0.84 < held / 400 < 0.96
    assert plain / 400 < 0.75
