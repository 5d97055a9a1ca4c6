"""Outliers by rules: values made so that each rule's answer is known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from shannon_game.experiments.papers.ranks_published import outlier_counts, outliers_by_rule

LENGTHS = np.array([32, 64, 128, 256, 512, 1024, 2048, 4096], dtype=float)
ONE_FAR = np.array([1.0, 2, 1, 2, 1, 2, 1, 100])
# the standard deviation of these eight is 4.01
TWO_FAR = np.array([0.0, 0, 0, 0, 0, 0, 7.5, -7.5])


def test_no_rule_calls_equal_values_outliers() -> None:
    found = outliers_by_rule(LENGTHS, np.full(8, 0.5), 0.05)
    assert len(found) == 11
    assert not any(one.any() for one in found.values())


@pytest.mark.parametrize(
    ("name", "value", "spread", "expected"),
    [
        ("more than 2 standard deviations from the mean", ONE_FAR, 1.0, [7]),
        ("more than 1.5 standard deviations from the mean", TWO_FAR, 1.0, [6, 7]),
        ("more than 2 standard deviations from the mean", TWO_FAR, 1.0, []),
        ("outside the fences of a box plot", ONE_FAR, 1.0, [7]),
        ("more than 3 median absolute deviations from the median", ONE_FAR, 1.0, [7]),
        # on a line nothing is off it, and the ends are far from the mean
        ("more than 1 standard deviation of the repeats from the line", 2 * LENGTHS, 1.0, []),
        ("more than 1 standard deviation of the repeats from the mean", LENGTHS, 1500.0, [7]),
        ("more than 2 standard deviations of the repeats from the mean", LENGTHS, 1500.0, [7]),
        ("more than 2 standard deviations of the repeats from the mean", LENGTHS, 1600.0, []),
    ],
)
def test_rules(name: str, value: np.ndarray, spread: float, expected: list[int]) -> None:
    assert np.flatnonzero(outliers_by_rule(LENGTHS, value, spread)[name]).tolist() == expected


def test_counts_are_of_the_mean_over_models() -> None:
    frames = [
        pd.DataFrame({"text": text, "context_length": LENGTHS, "model": model, "quantity": "average", "value": value})
        for text, of_model in (("text 1", (ONE_FAR, -ONE_FAR)), ("text 2", (ONE_FAR, ONE_FAR)))
        for model, value in zip(("a", "b"), of_model, strict=True)
    ]
    found = outlier_counts(pd.concat(frames), {"average": 1.0}).set_index("rule")
    assert (found["text 1"] == 0).all()  # the models cancel
    assert found.loc["outside the fences of a box plot", "text 2"] == 1
    assert (found["n_lengths"] == 8).all()
    assert len(found) == 11
