"""The participant model on data of its own prior, the choice of tokens simulated as well."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp

from shannon_game.estimators.comparison import QuestionDesign
from tests.benchmarks.participant_sbc import LAW, N_RANKED, Sizes, judged, log_ratios, ranked, world

TINY = Sizes(12, 200, QuestionDesign(n_participants=12))


def test_log_ratios_follow_their_law() -> None:
    """One part alone: most words around a line, targets around another."""
    drawn = dict.fromkeys(LAW, np.array(0.0)) | {"spread": 0.5, "left_spread": 1.0, "right_spread": 1.0}
    drawn |= {"left_weight": np.array(-50.0), "right_weight": np.array(-50.0), "law_slope": np.array(0.3)}
    drawn |= {"target_mean": np.array(2.0), "target_spread": np.array(1e-6)}
    log_g = np.tile(np.linspace(-6, -3, 5001), (4, 1))
    e = log_ratios(drawn, log_g, np.zeros(4, dtype=int), np.random.default_rng(0))
    np.testing.assert_allclose(e[:, 0], 2, atol=1e-4)
    rest = e[:, 1:] - 0.3 * (log_g[:, 1:] + 4)
    # four standard errors of 20,000 draws
    assert abs(rest.mean()) < 4 * 0.5 / np.sqrt(20_000)
    assert rest.std() == pytest.approx(0.5, rel=4 / np.sqrt(40_000))


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
