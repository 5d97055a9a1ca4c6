"""What a study of guesses says of its people in single numbers: who played long, and who is below every model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from shannon_game.estimators.guesses import participant_accuracy
from shannon_game.experiments.guesses.accuracy.players import LanguageModel


def people_table(
    correct: ArrayLike,
    participant: ArrayLike,
    of: Mapping[str, NDArray[np.bool_]],
    models: Mapping[str, Sequence[LanguageModel]],
    *,
    min_answers: int,
    many_answers: int = 500,
    n_unseen: int | None = None,
) -> pd.DataFrame:
    """Count people by how much they played (long above `many_answers` guesses) and by whom they beat."""
    right, who = np.asarray(correct, dtype=bool), np.asarray(participant).astype(str)
    rows: list[tuple[str, str, float]] = []
    for tokens, mask in of.items():
        found = participant_accuracy(right[mask], who[mask])
        long = found.accuracy[found.n_guesses > many_answers]
        rows.append((f"participants with more than so many ({many_answers}) guesses", tokens, len(long)))
        if len(long):
            rows += [("lowest accuracy of these", tokens, float(long.min()))]
            rows += [("highest accuracy of these", tokens, float(long.max()))]
        weakest = min((one.accuracy for one in models.get(tokens, ())), default=np.nan)
        if not np.isnan(weakest):
            enough = found.accuracy[found.n_guesses >= min_answers]
            rows += [("accuracy of the weakest language model", tokens, weakest)]
            rows += [
                ("participants with enough guesses below every language model", tokens, int((enough < weakest).sum()))
            ]
    if {"visible", "word"} <= set(of):
        rows.append(("share of the guesses that are on word tokens", "visible", float(of["word"].mean())))
    if n_unseen is not None:
        share = n_unseen / (n_unseen + len(right))
        rows.append(("share of the guesses left out because the token shows nothing", "visible", share))
    return pd.DataFrame(rows, columns=["quantity", "tokens", "value"])
