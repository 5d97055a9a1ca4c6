"""How well a score separates two models: closed forms, what does not change it, and whether the windows suffice."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from shannon_game.estimators.rankings import paired_separation

SCORES = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=30)


@given(SCORES, st.floats(0.1, 10), st.floats(-5, 5))
def test_the_unit_of_the_score_does_not_matter(pairs: list[tuple[float, float]], unit: float, zero: float) -> None:
    first, second = np.array(pairs).T
    found = paired_separation(first, second)
    other = paired_separation(zero + unit * first, zero + unit * second)
    if found.sd > 1e-6:
        assert other.effect == pytest.approx(found.effect, rel=1e-5, abs=1e-6)
        t = stats.ttest_rel(first, second).statistic
        assert found.difference / found.se == pytest.approx(t, rel=1e-6)


def test_the_windows_give_the_power_that_was_asked_for() -> None:
    # the truth is known: mean .3, sd 1
    rng = np.random.default_rng(0)
    noise = rng.normal(size=200_000)
    noise = 0.3 + (noise - noise.mean()) / noise.std(ddof=1)
    n = int(paired_separation(noise, np.zeros_like(noise)).windows_needed)
    assert n == 88
    studies = rng.normal(0.3, 1, size=(4000, n))
    z = studies.mean(axis=1) / (studies.std(axis=1, ddof=1) / np.sqrt(n))
    # 4,000 studies: a standard error of .0063
    assert (np.abs(z) > stats.norm.ppf(0.975)).mean() == pytest.approx(0.8, abs=0.025)


def test_models_that_do_not_differ_or_always_do() -> None:
    same = paired_separation([0.1, 0.4], [0.1, 0.4])
    assert same.difference == 0
    assert np.isnan(same.effect)
    assert np.isnan(same.windows_needed)
    always = paired_separation([0.3, 0.4, 0.7], [0.1, 0.2, 0.5])
    assert always.effect == np.inf
    assert always.windows_needed == 2
