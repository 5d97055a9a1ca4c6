"""Differences between splits of a corpus: by hand, and how often their bounds hold no difference."""

from __future__ import annotations

import numpy as np
import pandas as pd

from shannon_game.experiments.documents.splits import SPLIT_COLUMNS, split_contrasts


def table(losses: dict[str, float], se: float = 0.1) -> pd.DataFrame:
    rows = {"model": "m", "split": list(losses), "loss_nats": list(losses.values()), "loss_se_nats": se}
    return pd.DataFrame({**rows, "top1_accuracy": 0.3, "top1_accuracy_lower": 0.28})


def test_every_pair_of_splits_and_not_the_whole() -> None:
    found = split_contrasts(table({"a": 3.0, "b": 3.2, "c": 2.9, "every split": 3.1}), whole="every split")
    assert list(found.columns) == list(SPLIT_COLUMNS)
    assert list(zip(found["split"], found["other"], strict=True)) == [("a", "b"), ("a", "c"), ("b", "c")]
    np.testing.assert_allclose(found["loss_difference_nats"], [-0.2, 0.1, 0.3])
    np.testing.assert_allclose(found["se_nats"], np.sqrt(0.02))
    np.testing.assert_allclose(found["upper"] - found["lower"], 2 * 1.6448536 * np.sqrt(0.02))
    np.testing.assert_allclose(found["accuracy_upper"], 2 * np.hypot(0.01, 0.01))
    assert found["p_split_is_easier"].round(3).tolist() == [0.921, 0.24, 0.017]
