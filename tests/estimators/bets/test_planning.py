"""What bets will cost people of a known belief."""

from __future__ import annotations

import numpy as np
import pytest

from shannon_game.estimators.bets.simulation import expected_bet_losses


def test_one_chip_more_or_less_from_the_belief_itself() -> None:
    """With many chips and sharpness one stakes are the belief; unnamed words have the back-off's share of the rest."""
    rng = np.random.default_rng(0)
    h, m = (np.log(rng.dirichlet(np.ones(8), 50)) for _ in range(2))
    target = rng.integers(0, 8, 50)
    found = expected_bet_losses(h, m, target, [1.0], n_named=3, n_chips=10_000_000)[0]
    for q in range(50):
        named = np.argsort(-h[q])[:3]
        if target[q] in named:
            expected = -h[q, target[q]]
        else:
            rest = 1 - np.exp(h[q, named]).sum()
            expected = -np.log(rest) - m[q, target[q]] + np.log(1 - np.exp(m[q, named]).sum())
        assert found[q] == pytest.approx(expected, abs=1e-3)
