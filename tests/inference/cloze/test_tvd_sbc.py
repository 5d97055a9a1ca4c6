"""The model of the Bayesian TVD as it is drawn for simulation-based calibration."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from shannon_game.inference.cloze.tvd_sbc import draw_word_pairs, word_pair_sbc
from shannon_game.inference.posterior.sbc import SbcSettings, run_sbc
from shannon_game.inference.posterior.sbc_bands import judge_ranks
from shannon_game.models.cloze.tvd import WordPairPriors
from tests.models.cloze.test_tvd import values_of


def test_what_is_drawn_is_what_the_model_makes_of_it() -> None:
    model = word_pair_sbc(3, 20).build()
    before = model["row_a"].get_value().copy()
    drawn = draw_word_pairs(WordPairPriors(), model, np.random.default_rng(2))
    point = {
        "population_mean": drawn["population_mean"],
        "population_variance_log__": np.log(drawn["population_variance"]),
        "share_equal_logodds__": np.log(drawn["share_equal"] / (1 - drawn["share_equal"])),
        **{name: drawn[name] for name in ("unit", "scale", "unseen")},
    }
    theta, log_u, log_u_equal = values_of(model, "theta", "log_u", "log_u_equal")(point)
    np.testing.assert_allclose(theta, drawn["theta"])
    assert np.isfinite([log_u, log_u_equal]).all()
    counts = {name: model[f"row_{name}"].get_value() for name in ("context", "a", "b", "words")}
    assert not np.array_equal(before, counts["a"])
    for side in "ab":
        assert np.bincount(counts["context"], counts[side] * counts["words"]).tolist() == [20.0, 20.0, 20.0]


@pytest.mark.slow
def test_ranks_are_uniform(tmp_path: Path, seed_offset: int) -> None:
    """60 fits: no quantity has a p-value below .05 / 20 / 10, which a right model has once in 200 runs."""
    model = word_pair_sbc(8, 20)
    settings = SbcSettings(draws=500, tune=300, n_longer=2)
    rows = pd.DataFrame(run_sbc(model, 60, path=tmp_path / "sbc.jsonl", seed=seed_offset, settings=settings))
    for quantity, own in rows.groupby("quantity"):
        assert judge_ranks(own["rank"].to_numpy(), 63, 0.95).p_value > 2.5e-4, quantity
