"""Paired changes: by hand, and how often their interval holds the truth."""

from __future__ import annotations

import numpy as np
import pytest

from shannon_game.estimators.cloze import paired_difference


def test_by_hand() -> None:
    found = paired_difference([0.5, 0.7, 0.9], [0.4, 0.7, 0.5], ["a", "a", "b"], seed=1)
    assert (found.n_contexts, found.n_groups) == (3, 2)
    assert found.difference == pytest.approx(found.after - found.before) == pytest.approx(-1 / 6)
    # a twice: -.05; both: -1/6; b twice: -.4
    assert (found.lower, found.upper) == pytest.approx((-0.4, -0.05))
    assert found.p_falls == 1


def test_the_interval_holds_the_truth_as_often_as_it_says() -> None:
    """400 studies of 30 texts; 90% nominal, percentile intervals of 30 groups fall some two points short.

    The binomial standard error is 1.6 points, three of them are allowed. Contexts of a text share what changes, so that
    an interval over contexts would hold the truth far less often.
    """
    rng = np.random.default_rng(0)
    held = 0
    for seed in range(400):
        group = np.repeat(np.arange(30), 5)
        change = -0.02 + rng.normal(0, 0.05, 30)[group] + rng.normal(0, 0.02, 150)
        found = paired_difference(np.zeros(150), change, group, seed=seed, n_bootstrap=400)
        held += found.lower < -0.02 < found.upper
    assert held / 400 == pytest.approx(0.89, abs=0.055)
