"""How many of the thesis's eight lengths are outliers, by every common rule: its own is not in the public files."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def outliers_by_rule(length: Floats, value: Floats, spread: float) -> dict[str, NDArray[np.bool_]]:
    """Say by every rule which of some values are outliers."""
    off_mean, off_median = np.abs(value - value.mean()), np.abs(value - np.median(value))
    off_line = np.abs(value - np.polyval(np.polyfit(length, value, 1), length))
    # a rounding error is no residual
    off_line[off_line < 1e-9 * np.abs(value).max()] = 0
    sd = value.std(ddof=1)
    # 1.4826 makes it a standard deviation where values are normal
    mad = 1.4826 * np.median(off_median)
    residual_sd = np.sqrt((off_line**2).sum() / max(len(value) - 2, 1))
    low, high = np.quantile(value, [0.25, 0.75])
    return {
        "more than 1 standard deviation from the mean": off_mean > sd,
        "more than 1.5 standard deviations from the mean": off_mean > 1.5 * sd,
        "more than 2 standard deviations from the mean": off_mean > 2 * sd,
        "more than 2 median absolute deviations from the median": off_median > 2 * mad,
        "more than 3 median absolute deviations from the median": off_median > 3 * mad,
        "outside the fences of a box plot": (value < 2.5 * low - 1.5 * high) | (value > 2.5 * high - 1.5 * low),
        "more than 1 residual standard deviation from the line": off_line > residual_sd,
        "more than 2 residual standard deviations from the line": off_line > 2 * residual_sd,
        "more than 1 standard deviation of the repeats from the mean": off_mean > spread,
        "more than 2 standard deviations of the repeats from the mean": off_mean > 2 * spread,
        "more than 1 standard deviation of the repeats from the line": off_line > spread,
    }


def outlier_counts(cells: pd.DataFrame, spread: Mapping[str, float]) -> pd.DataFrame:
    """Count lengths that are outliers, by rule, score and text; a length's value is the mean over the models."""
    means = cells.groupby(["quantity", "text", "context_length"], sort=False)["value"].mean()
    counts: dict[tuple[str, str], dict[str, int]] = {}
    for quantity, its_spread in spread.items():
        for text, values in means[quantity].groupby(level="text", sort=False):
            length = values.index.get_level_values("context_length").to_numpy(dtype=float)
            for rule, found in outliers_by_rule(length, values.to_numpy(dtype=float), its_spread).items():
                of_rule = counts.setdefault((rule, quantity), {"n_lengths": len(values)})
                of_rule[str(text)] = int(found.sum())
    return pd.DataFrame([{"rule": rule, "quantity": quantity, **its} for (rule, quantity), its in counts.items()])
