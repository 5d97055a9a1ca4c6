"""Whether one part of a corpus is easier than another: differences of losses, with their errors."""

from __future__ import annotations

from itertools import combinations
from statistics import NormalDist
from typing import Any

import numpy as np
import pandas as pd

from shannon_game.experiments.harness.questions import INTERVAL_SE
from shannon_game.experiments.harness.settings import rows_of

SPLIT_COLUMNS = (
    *("model", "split", "other", "loss_difference_nats", "se_nats", "lower", "upper", "p_split_is_easier"),
    *("accuracy_difference", "accuracy_lower", "accuracy_upper"),
)
"""``split`` minus ``other``; a negative difference of losses says that ``split`` is easier."""


def split_contrasts(table: pd.DataFrame, *, whole: str) -> pd.DataFrame:
    """Compare every two splits under every model.

    The splits hold different documents, so that their errors are independent: the squared standard error of a
    difference is the sum of both. Whether a model has seen a split is one reason for a difference, another is that the
    texts differ: a model that has seen neither shows the latter.
    """
    rows: list[tuple[Any, ...]] = []
    for model, own in table[table["split"] != whole].groupby("model", sort=False):
        for one, other in combinations(rows_of(own), 2):
            loss = one.loss_nats - other.loss_nats
            se = float(np.hypot(one.loss_se_nats, other.loss_se_nats))
            accuracy = one.top1_accuracy - other.top1_accuracy
            # bounds of the table are so many standard errors away
            accuracy_se = np.hypot(
                *((row.top1_accuracy - row.top1_accuracy_lower) / INTERVAL_SE for row in (one, other))
            )
            easier = NormalDist().cdf(-loss / se) if se > 0 else float("nan")
            losses = (loss, se, loss - INTERVAL_SE * se, loss + INTERVAL_SE * se, easier)
            accuracies = (accuracy, accuracy - INTERVAL_SE * accuracy_se, accuracy + INTERVAL_SE * accuracy_se)
            rows.append((model, one.split, other.split, *losses, *accuracies))
    return pd.DataFrame(rows, columns=list(SPLIT_COLUMNS))


def split_summary(contrasts: pd.DataFrame) -> str:
    """Say each difference with its bounds; empty where there is none."""
    said = "; ".join(
        f"{row.model} {row.split} minus {row.other} {row.loss_difference_nats:+.3f} nats [{row.lower:+.3f}, "
        f"{row.upper:+.3f}]"
        for row in rows_of(contrasts)
    )
    return f" Between splits, with 90% intervals: {said}." if said else ""
