"""Scores of the windows of a ranking study."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from shannon_game.estimators.rankings import score_study, top_k_accuracy
from shannon_game.estimators.rankings.study import TokenScores

SCORES = ("average", "linear", "reciprocal", "top_1")
SCORE_COLUMNS = ("linear", "reciprocal", "exponential_01", "exponential_03", "average", "top_1")
_WINDOW = ["text", "context_length", "window", "model"]


def scores_by_window(study: xr.Dataset, scores: TokenScores) -> pd.DataFrame:
    """Average scores and perplexity of every window and model, with the standard error over tokens."""
    tokens = pd.DataFrame(
        {
            **{name: study[name].to_numpy() for name in _WINDOW},
            "part": study["part"].to_numpy() if "part" in study else "main",
            "linear": scores.linear,
            "reciprocal": scores.reciprocal,
            "exponential_01": scores.exponential[0],
            "exponential_03": scores.exponential[1],
            "average": scores.average,
            "top_1": top_k_accuracy(scores.rank, 1),
            "loss_nats": -scores.logprob_nats,
            "share_censored": scores.censored.astype(float),
        }
    )
    groups = tokens.groupby(["part", *_WINDOW], sort=True)
    table = groups.mean()
    table["perplexity"] = np.exp(table["loss_nats"])
    table["n_tokens"] = groups.size()
    for name in SCORES:
        table[f"{name}_se"] = groups[name].std(ddof=1) / np.sqrt(table["n_tokens"])
    return table.reset_index()


def guess_order(study: xr.Dataset, **how: Any) -> pd.DataFrame:
    """Ranks of the tokens as numbers of guesses, for ``+exp=bounds``; an item is a window."""
    scores = score_study(study, **how)
    listed = np.minimum((~np.isnan(study["ranked_logprob"].to_numpy())).sum(axis=1), scores.k)
    columns = {name: study[name].to_numpy() for name in ("model", "context_length")}
    where = (study[name].astype(str).to_numpy() for name in ("text", "context_length", "window"))
    item = np.array(["\n".join(its) for its in zip(*where, strict=True)])
    return pd.DataFrame({**columns, "item": item, "rank": scores.rank, "n_tried": listed})
