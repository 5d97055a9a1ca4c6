"""Shares of the way from a floor to people: closed forms, and how often their intervals hold a known share."""

from __future__ import annotations

import numpy as np
import pytest

from shannon_game.estimators.documents import ceiling_share, share_difference
from shannon_game.estimators.errors import InputError


def test_closed_forms() -> None:
    floor, ceiling = np.array([0.0, 0.2, 0.1]), np.array([1.0, 0.8, 0.9])
    for share in (-0.5, 0.0, 0.25, 1.0, 1.7):
        found = ceiling_share(floor + share * (ceiling - floor), floor, ceiling)
        # one share at every unit is the share of every sample of them
        np.testing.assert_allclose([found.share, found.lower, found.upper], share, atol=1e-12)
        # a loss is the same upside down
        loss = ceiling_share(-floor - share * (ceiling - floor), -floor, -ceiling, lower_is_better=True)
        np.testing.assert_allclose([loss.share, loss.lower], share, atol=1e-12)
    draws = ceiling_share(np.stack([floor, ceiling]), floor, ceiling)
    assert draws.share == pytest.approx(0.5)


def test_people_who_are_not_above_the_floor_are_no_ceiling() -> None:
    rng = np.random.default_rng(0)
    floor = rng.normal(size=50)
    found = ceiling_share(floor + 1, floor, floor + rng.normal(0, 1, 50) - 0.1)
    assert np.isnan([found.share, found.lower, found.upper]).all()
    assert found.no_share
    assert found.value == pytest.approx(floor.mean() + 1)
    with pytest.raises(InputError, match="group: has shape"):
        ceiling_share(floor, floor, floor, group=[1, 2])
    with pytest.raises(InputError, match="ceiling: holds a score that is not finite"):
        ceiling_share(floor, floor, floor * np.nan)


def test_intervals_hold_a_known_share(seed_offset: int) -> None:
    """90% of 400 intervals, over texts whose units are alike: 3 standard errors of a share of 400 are 0.045."""
    rng = np.random.default_rng(1 + seed_offset)
    held, apart, widths = [], [], []
    group = np.repeat(np.arange(40), 4)
    for study in range(400):
        text = rng.normal(0, 0.1, (3, 40))[:, group]
        floor, room = 0.1 + text[0] + rng.normal(0, 0.1, 160), 0.4 + text[1] + rng.normal(0, 0.1, 160)
        values = [floor + share * room + text[2] + rng.normal(0, 0.1, 160) for share in (0.6, 0.5)]
        how = {"group": group, "n_replicates": 300, "seed": study}
        one, other = (ceiling_share(its, floor, floor + room, **how) for its in values)
        held.append(one.lower <= 0.6 <= one.upper)
        pair = share_difference((one.share, other.share), one.replicates, other.replicates)
        apart.append(pair.lower <= 0.1 <= pair.upper)
        widths.append((pair.upper - pair.lower, one.upper - one.lower))
    assert 0.85 <= np.mean(held) <= 0.95
    assert 0.85 <= np.mean(apart) <= 0.95
    # what the two have in common cancels
    assert np.subtract.reduce(np.mean(widths, axis=0)) < 0
