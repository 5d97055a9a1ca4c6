"""A small simulated study, for the examples of the documentation and for a first try of a model."""

from __future__ import annotations

from functools import cache

import numpy as np

from shannon_game.estimators.arrays import Dataset
from shannon_game.estimators.rankings.study import validate_ranking_study


@cache
def ranking_study() -> Dataset:
    """Ranking study: 2 models score 10 tokens after 4, 8 and 16 tokens of context, in 2 texts."""
    import xarray as xr  # noqa: PLC0415 - importing estimators needs no xarray

    rng = np.random.default_rng(0)
    model, text, length, position = (axis.ravel() for axis in np.indices((2, 2, 3, 10)))
    rank = np.floor(rng.exponential(3.0 / (1 + model + 0.5 * length))) + 1
    rank = np.where(rank > 3, np.inf, rank)
    listed = np.array([" the", " a", " one"], dtype=object)
    found = np.append(listed, " another")[np.minimum(rank, 4).astype(int) - 1]
    study: Dataset = xr.Dataset(
        {
            "model": ("token", np.array(["small", "large"], dtype=object)[model]),
            "text": ("token", np.array(["novel", "news"], dtype=object)[text]),
            "context_length": ("token", 4 * 2**length),
            "window": ("token", np.full(model.size, "w0", dtype=object)),
            "position": ("token", position),
            "reference_token": ("token", found),
            "generated_token": ("token", np.full(rank.size, " the", dtype=object)),
            "ranked_token": (("token", "rank"), np.tile(listed, (rank.size, 1))),
            "ranked_logprob": (("token", "rank"), np.tile([-0.7, -1.6, -2.3], (rank.size, 1))),
            "reference_rank": ("token", rank),
        },
        attrs={"name": "simulated"},
    )
    return validate_ranking_study(study)
