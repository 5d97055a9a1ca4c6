"""The participant model on data of its own prior, the choice of tokens simulated as well."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp, softmax

from shannon_game.estimators.comparison import QuestionDesign
from shannon_game.models.comparison.participants import GRID
from tests.benchmarks.participant_sbc import (
    LAW,
    N_RANKED,
    SHAPE,
    Sizes,
    drawn_parameters,
    judged,
    law,
    ranked,
    template,
    world,
)

TINY = Sizes(12, 200, QuestionDesign(n_participants=12))


@pytest.mark.mcmc
def test_the_simulated_law_is_the_model_s() -> None:
    model, drawn = template(TINY), drawn_parameters(TINY, 0)
    names = [*LAW, *SHAPE]
    of_model = model.compile_fn(
        model.latent_inputs[0], inputs=[model[name] for name in names], on_unused_input="ignore", point_fn=False
    )
    expected = of_model(*[drawn[name] for name in names])
    table = model.table
    simulated = law(drawn, GRID.reaching(model.words_data).e_values, table.bin_log_g, table.entropy[table.bin_class])
    np.testing.assert_allclose(softmax(simulated, axis=1), expected, rtol=1e-6, atol=1e-12)


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
