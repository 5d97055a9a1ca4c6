"""Shares of contexts by criteria of distributions: closed forms, SciPy, and what a mixture does."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from shannon_game.estimators.cloze import CRITERIA, criterion_margin, criterion_share
from shannon_game.estimators.cloze.criterion_share import criterion_distance

SETS = st.integers(2, 30).flatmap(
    lambda n: st.tuples(*[st.lists(st.sampled_from(np.linspace(0, 1, 11).tolist()), min_size=n, max_size=n)] * 2)
)


@given(SETS)
def test_distances_are_those_of_scipy_and_of_all_pairs(sets: tuple[list[float], list[float]]) -> None:
    model, halves = sets
    one, other = np.array(model)[:, None], np.array(halves)
    expected = {
        "mean": abs(np.mean(model) - np.mean(halves)),
        "kolmogorov_smirnov": max(abs((one <= x).mean() - (other <= x).mean()) for x in (*model, *halves)),
        "wasserstein": stats.wasserstein_distance(model, halves),
        "mann_whitney": abs((one > other).mean() + (one == other).mean() / 2 - 0.5),
    }
    for criterion in CRITERIA:
        assert criterion_distance(model, halves, criterion) == pytest.approx(expected[criterion], abs=1e-12)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_a_mixture_is_as_far_as_the_margin(criterion: str) -> None:
    """Replaced in closed form: of k n contexts the model's sorted distances give way in every part alike."""
    rng = np.random.default_rng(0)
    halves, model = rng.beta(4, 6, 200), rng.beta(6, 4, 200)
    found = criterion_share(model, halves, criterion=criterion, margin=0.1)
    kept = round(1000 * (1 - found.share))
    # as many copies of every value as its share asks for: the mixture's distribution up to 1/1000
    mixed = np.concatenate([np.repeat(model, kept), np.repeat(halves, 1000 - kept)])
    same = np.repeat(halves, 1000)
    assert criterion_distance(mixed, same, criterion) == pytest.approx(0.1, abs=2e-3)
    assert criterion_share(halves, halves, criterion=criterion, margin=0.1).share == 0


def test_margins_are_where_the_tests_reject() -> None:
    n = 400
    margin = criterion_margin("kolmogorov_smirnov", n)
    assert stats.kstwobign.sf(margin * np.sqrt(n / 2)) == pytest.approx(0.05, rel=1e-3)
    moved = np.arange(n) + 0.5
    for shift, rejects in ((13.0, False), (60.0, True)):
        far = criterion_distance(moved + shift, moved, "mann_whitney")
        p = stats.mannwhitneyu(moved + shift, moved, method="asymptotic", use_continuity=False).pvalue
        assert (p < 0.05) == rejects == (far > criterion_margin("mann_whitney", n))
