"""Pareto fits against known tails and against ArviZ; the verdict against known sample sizes."""

from __future__ import annotations

import numpy as np
import pytest

from shannon_game.estimators.comparison import diagnose_weights, group_terms
from shannon_game.estimators.comparison.diagnostics import pareto_khat, smooth_tail, verdict


@pytest.mark.parametrize("seed", range(5))
def test_khat_and_smoothing_agree_with_arviz(seed: int) -> None:
    arviz = pytest.importorskip("arviz", reason="the reference of Pareto smoothing is ArviZ, of the extra bayes")
    log_weight = np.random.default_rng(seed).standard_t(4, 2000)
    if hasattr(arviz, "psislw"):
        smoothed, khat = arviz.psislw(log_weight)
    else:
        # ArviZ 1 takes what is subtracted in leave-one-out, the log-likelihood
        smoothed, khat = pytest.importorskip("arviz_stats.base").array_stats.psislw(-log_weight)
    assert pareto_khat(np.exp(log_weight)) == pytest.approx(khat, abs=0.02)
    ours = smooth_tail(np.exp(log_weight))
    smoothed = smoothed - np.logaddexp.reduce(smoothed)
    np.testing.assert_allclose(np.log(ours / ours.sum()), smoothed, atol=0.04)


def test_constant_and_short_weights_have_no_tail() -> None:
    assert np.isnan(pareto_khat(np.ones(1000)))
    assert np.isnan(pareto_khat(np.arange(10.0)))
    np.testing.assert_array_equal(smooth_tail(np.ones(100)), np.ones(100))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((0.3, 50, 10, 0.0), "enough draws"),
        ((0.6, 50, 10, 0.0), "doubtful"),
        ((0.3, 5, 10, 0.0), "doubtful"),
        ((0.3, 50, 10, 0.05), "doubtful"),
        ((np.nan, 50, 10, 0.0), "doubtful"),
        # the bounds themselves
        ((0.5, 50, 10, 0.0), "doubtful"),
        ((0.7, 50, 10, 0.0), "too few"),
        ((0.3, 10, 10, 0.01), "enough draws"),
        ((0.3, 50, 10, 0.1), "doubtful"),
        ((0.75, 50, 10, 0.0), "too few"),
        ((0.3, 50, 10, 0.2), "too few"),
        ((np.nan, 1, 1.0, 1.0), "too few"),
    ],
)
def test_verdict_table(arguments: tuple[float, float, float, float], expected: str) -> None:
    assert verdict(*arguments) == expected


def test_one_term_an_item_is_too_few_unless_all_are_equal() -> None:
    item = np.arange(60)
    assert diagnose_weights(group_terms(np.random.default_rng(0).normal(size=60), item)).verdict == "too few"
    assert diagnose_weights(group_terms(np.zeros(60), item)).verdict == "enough draws"
    # the generator measured against another control: equal within items, not between them
    apart = np.repeat(np.arange(30.0), 2)
    assert diagnose_weights(group_terms(apart, np.repeat(np.arange(30), 2))).verdict == "enough draws"
