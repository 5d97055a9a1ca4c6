"""One row per item and one row per participant of a bet study: for regressions, by the owner's ids."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.arrays import DataFrame, Dataset, FloatArray
from shannon_game.estimators.bets.losses import model_losses, outcome_stakes
from shannon_game.estimators.bets.study import BETS
from shannon_game.estimators.layout import item_labels, item_positions


def bet_items(study: Dataset, losses: Mapping[str, FloatArray]) -> DataFrame:
    """Describe every item that people bet on, with losses by back-off of :func:`bet_losses`."""
    study = BETS.read(study)
    position = item_positions(study, "response_item")
    names = study["model"].to_numpy().tolist() if "model" in study.coords else []
    surprisal = {f"surprisal_nats_{name}": model_losses(study, name) for name in names}
    found = _by(study, losses, position, surprisal)
    found.insert(0, "target", study["target"].to_numpy()[found.index])
    found.insert(0, "item", item_labels(study)[found.index])
    return found.reset_index(drop=True)


def bet_participants(study: Dataset, losses: Mapping[str, FloatArray]) -> DataFrame:
    """Describe everybody who bet, with losses as in :func:`bet_items`."""
    study = BETS.read(study)
    name, person = np.unique(study["participant"].to_numpy().astype(str), return_inverse=True)
    n_named = np.bincount(study["bet_response"].to_numpy(), minlength=study.sizes["response"])
    own = {"n_named_mean": n_named, "other_stake_mean": study["other_stake"].to_numpy()}
    found = _by(study, losses, person, {})
    for column, values in reversed(own.items()):
        found.insert(1, column, np.bincount(person, weights=values) / np.bincount(person))
    found.insert(0, "participant", name)
    return found


def _by(
    study: Dataset, losses: Mapping[str, FloatArray], group: NDArray[Any], more: Mapping[str, FloatArray]
) -> DataFrame:
    """Means of the answers of every group, with NaN where an answer has no back-off."""
    import pandas as pd  # noqa: PLC0415 - half a second that importing estimators does not need

    stake, named = outcome_stakes(study)
    columns: dict[str, Any] = {"share_named": named.astype(float), "mean_stake": stake}
    columns |= {f"loss_nats_{name}": values for name, values in losses.items()} | dict(more)
    n_groups = np.bincount(group)
    there = np.flatnonzero(n_groups)
    table = pd.DataFrame({"n_responses": n_groups[there]}, index=there)
    for name, values in columns.items():
        # pandas' mean would leave a NaN out, and an item without it is not the same item
        with np.errstate(invalid="ignore"):
            table[name] = (np.bincount(group, weights=values) / np.maximum(n_groups, 1))[there]
    return table
