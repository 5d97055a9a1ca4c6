"""A small simulated study, for the examples of the documentation and for a first try of a model."""

from __future__ import annotations

from functools import cache

import numpy as np

from shannon_game.estimators.arrays import Dataset
from shannon_game.estimators.guesses.study import validate_guess_study


@cache
def guess_study() -> Dataset:
    """Guess study: 4 participants guess 16 tokens in each of 3 documents, and become better."""
    import xarray as xr  # noqa: PLC0415 - importing estimators needs no xarray

    rng = np.random.default_rng(0)
    person, document, position = (axis.ravel() for axis in np.indices((4, 3, 16)))
    before = 300 * document + 16 * position
    chance = 1 / (1 + np.exp(1.2 - 0.3 * person - 0.5 * before / 1000))
    at = np.arange(48)
    words = " ".join(f"w{number}" for number in range(17))
    starts = np.array([words.index(f" w{number}") for number in range(1, 17)])
    study: Dataset = xr.Dataset(
        {
            "item_document": ("item", np.array([f"d{number}" for number in at // 16], dtype=object)),
            "item_position": ("item", at % 16 + 1),
            "text": ("document", np.array([words] * 3, dtype=object)),
            "target_start": ("item", starts[at % 16]),
            "word_token": ("item", np.ones(48, dtype=bool)),
            "model_hit": (("model", "item"), (rng.random((1, 48)) < 0.4).astype(float)),
            "participant": ("response", np.array([f"p{number}" for number in person], dtype=object)),
            "response_item": ("response", 16 * document + position),
            "correct": ("response", rng.random(person.size) < chance),
            "n_before": ("response", before),
        },
        coords={
            "document": np.array(["d0", "d1", "d2"], dtype=object),
            "item": at,
            "model": np.array(["lm"], dtype=object),
        },
        attrs={"name": "simulated guesses", "tokens": "all"},
    )
    return validate_guess_study(study)
