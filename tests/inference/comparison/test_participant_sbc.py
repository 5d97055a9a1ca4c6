"""The participant model on data of its own prior, the choice of tokens simulated as well."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp

from shannon_game.estimators.comparison import QuestionDesign
from shannon_game.models.comparison.participants import GRID, RATIOS
from tests.benchmarks.participant_sbc import LAW, N_RANKED, SHAPE, Sizes, judged, log_ratios, ranked, world

TINY = Sizes(12, 200, QuestionDesign(n_participants=12))


def test_log_ratios_follow_their_law() -> None:
    """Words around a line with the quartiles of a Johnson SU, one bump that moves them, targets around another line."""
    drawn = dict.fromkeys(LAW, np.array(0.0)) | {name: np.zeros(20) for name in SHAPE}
    drawn |= {"spread": np.array(0.5), "law_slope": np.array(0.3)}
    drawn |= {"target_mean": np.array(2.0), "target_spread": np.array(1e-6)}
    log_g = np.tile(np.linspace(-6, -3, 5001), (4, 1))
    narrow = np.hypot(0.5, GRID.narrowest_nats)

    def standard(drawn: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        e = log_ratios(drawn, log_g, np.zeros(4, dtype=int), np.random.default_rng(0))
        return e[:, 0], np.arcsinh((e[:, 1:] - 0.3 * (log_g[:, 1:] + 4)) / (np.sqrt(2) * narrow)).ravel()

    target, normal = standard(drawn)
    np.testing.assert_allclose(target, 2, atol=8 * GRID.narrowest_nats)
    # four standard errors of 20,000 draws of a standard normal
    assert abs(normal.mean()) < 4 / np.sqrt(20_000)
    assert normal.std() == pytest.approx(1, rel=4 / np.sqrt(40_000))
    drawn["by_ratio"] = np.where(RATIOS == 1, 2.0, 0.0)
    assert standard(drawn)[1].mean() > 0.2


def test_a_world_is_a_belief_within_the_grids() -> None:
    drawn, log_g, log_h, target = world(TINY, 0)
    np.testing.assert_allclose(logsumexp(np.stack([log_g, log_h]), axis=2), 0, atol=1e-9)
    assert target.shape == (12,)
    assert drawn["slope"].shape == (12,)
    assert np.log(drawn["slope"]).mean() == pytest.approx(np.log(drawn["k0"]))


@pytest.mark.slow
@pytest.mark.mcmc
def test_ranks_of_the_gap_and_of_the_scale_are_uniform(seed_offset: int) -> None:
    """Together (Bonferroni), a right posterior fails once in 1,000 seeds."""
    rows = pd.DataFrame([ranked(1000 * seed_offset + number, TINY, draws=60, tune=40) for number in range(20)])
    assert rows[[name for name in rows if name.endswith("_rank")]].max().max() <= N_RANKED
    found = judged(rows).loc[["k0", "gap", "target_mean", "log_noise"], "p_value"]
    assert found.min() > 0.001 / len(found), found
