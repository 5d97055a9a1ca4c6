"""One row per item of a guess study: for regressions, by the owner's documents and positions."""

from __future__ import annotations

from typing import Any

import numpy as np

from shannon_game.estimators.arrays import DataFrame, Dataset
from shannon_game.estimators.guesses.study import GUESSES
from shannon_game.estimators.layout import response_positions


def guess_items(study: Dataset) -> DataFrame:
    """Describe every position that people guessed at: how often they were right, and how language models did."""
    import pandas as pd  # noqa: PLC0415 - half a second that importing estimators does not need

    study = GUESSES.read(study)
    n_items, position = study.sizes["item"], response_positions(study)
    columns: dict[str, Any] = {
        "document": study["item_document"].to_numpy(),
        "position": study["item_position"].to_numpy(),
    }
    if "target_token" in study:
        columns["target"] = study["target_token"].to_numpy()
    answers = pd.DataFrame({name: study[name].to_numpy() for name in ("participant", "correct")})
    by = answers.groupby(position)
    columns |= {
        "word_token": study["word_token"].to_numpy(),
        "n_guesses": np.bincount(position, minlength=n_items),
        "n_participants": by["participant"].nunique().reindex(range(n_items), fill_value=0).to_numpy(),
        "accuracy": by["correct"].mean().reindex(range(n_items)).to_numpy(),
    }
    if "guess" in study:
        said = pd.Series(study["guess"].to_numpy()).groupby([position, study["guess"].to_numpy()], sort=False).size()
        # of guesses that are as frequent, the first that was given
        modal = said[said.groupby(level=0).idxmax()].reset_index(level=1).reindex(range(n_items))
        columns["modal_guess"] = modal["level_1"].to_numpy()
        columns["modal_share"] = modal[0].to_numpy() / columns["n_guesses"]
    for at, name in enumerate(study["model"].to_numpy().tolist() if "model" in study.coords else []):
        for column, variable in (("hit", "model_hit"), ("surprisal_nats", "target_surprisal_nats")):
            if variable in study:
                columns[f"{column}_{name}"] = study[variable].to_numpy()[at]
    return pd.DataFrame(columns)
