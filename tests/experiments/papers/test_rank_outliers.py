"""Outliers of the main run: values made so that the answer is known."""

from __future__ import annotations

import pandas as pd

from shannon_game.experiments.papers.ranks_published import outlier_counts


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
