"""Outliers of the main run, and exhaustive runs: values made so that the answer is known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy import stats

from shannon_game.estimators.rankings.study import score_study
from shannon_game.experiments.papers.ranks_published import exhaustive_runs, outlier_counts


def test_values_far_from_their_own_model_s_mean_are_outliers() -> None:
    # one standard deviation of either model is 2.1 around a mean of 1; other lengths do not count
    values = {"a": [0, 0, 0, 0, 5], "b": [100, 100, 100, 105, 100]}
    rows = [
        {"model": model, "part": "main" if at > 2 else "repeats", "context_length": 128, "average": value}
        for model, its in values.items()
        for at, value in enumerate(its)
    ]
    rows += [{"model": "a", "part": "main", "context_length": 64, "average": 1e6}]
    found = outlier_counts(pd.DataFrame(rows).assign(perplexity=1.0)).set_index("quantity")
    assert found["outliers"].to_dict() == {"average": 2, "perplexity": 0, "both": 2}
    assert found["n_values"].to_dict() == {"average": 4, "perplexity": 4, "both": 8}


def test_an_exhaustive_run_scores_more_the_more_often_the_sample_is_right() -> None:
    n_windows, n_positions, first = 40, 30, 0.6
    n = n_windows * n_positions
    names = {"model": "m", "text": "t", "context_length": 128, "reference_token": " a"}
    study = xr.Dataset(
        {
            name: ("token", np.full(n, value, dtype=object if isinstance(value, str) else int))
            for name, value in names.items()
        }
        | {
            # rows in any order
            "window": ("token", np.tile(np.arange(n_windows), n_positions).astype(str).astype(object)),
            "position": ("token", np.repeat(np.arange(n_positions), n_windows)),
            "ranked_token": (("token", "rank"), np.full((n, 2), [" a", " b"], dtype=object)),
            "ranked_logprob": (("token", "rank"), np.full((n, 2), np.log([first, 1 - first]))),
        }
    )
    found = exhaustive_runs(study, score_study(study), 0).set_index("temperature")["n_tokens"]
    assert found[0.0] == n_positions
    for temperature in (0.5, 1.0, 2.0):
        right = first ** (1 / temperature) / (first ** (1 / temperature) + (1 - first) ** (1 / temperature))
        # ten tokens end a call; those before them are right, and the window has 30 tokens
        extra = np.arange(n_positions - 9)
        share = stats.nbinom.pmf(extra, 10, 1 - right)
        expected = 10 + (share * extra).sum() + (1 - share.sum()) * (n_positions - 10)
        # 8,000 windows, standard deviation at most 8: four standard errors
        assert found[temperature] == pytest.approx(expected, abs=4 * 8 / np.sqrt(8000))
