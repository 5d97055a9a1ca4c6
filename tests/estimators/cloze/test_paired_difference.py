"""Paired changes: by hand, and how often their interval holds the truth."""

from __future__ import annotations

import pytest

from shannon_game.estimators.cloze import paired_difference


def test_by_hand() -> None:
    found = paired_difference([0.5, 0.7, 0.9], [0.4, 0.7, 0.5], ["a", "a", "b"], seed=1)
    assert (found.n_contexts, found.n_groups) == (3, 2)
    assert found.difference == pytest.approx(found.after - found.before) == pytest.approx(-1 / 6)
    # a twice: -.05; both: -1/6; b twice: -.4
    assert (found.lower, found.upper) == pytest.approx((-0.4, -0.05))
    assert found.p_falls == 1
