"""A small study that can be computed by hand, for the examples of the documentation."""

from __future__ import annotations

from functools import cache

import numpy as np

from shannon_game.estimators.arrays import Dataset


@cache
def bet_study() -> Dataset:
    """Bet study: 2 participants name two words in each of 3 contexts; all shares are powers of one half."""
    import xarray as xr  # noqa: PLC0415 - importing estimators needs no xarray

    target = ["cat", "sat", "mat"]
    words = [("cat", "dog"), ("ran", "slept"), ("hat", "mat"), ("dog", "cow"), ("cat", "sat"), ("rug", "hat")]
    stakes = [(0.5, 0.25), (0.5, 0.25), (0.5, 0.125), (0.25, 0.25), (0.5, 0.0625), (0.5, 0.25)]
    item = [0, 1, 2, 0, 1, 2]
    # of a language model: 1/2 for "cat" after the first context, and so on; words named first are likelier
    of_target = np.log([0.5, 0.25, 0.125])
    place = np.repeat(item, 2)
    flat = [word for pair in words for word in pair]
    hit = np.array([word == target[where] for word, where in zip(flat, place, strict=True)])
    guess = np.log(np.tile([0.125, 0.125], 6))
    return xr.Dataset(
        {
            "target": ("item", np.array(target, dtype=object)),
            "participant": ("response", np.array(["Ann"] * 3 + ["Bo"] * 3, dtype=object)),
            "response_item": ("response", np.array(item)),
            "other_stake": ("response", np.array([1 - sum(pair) for pair in stakes])),
            "bet_response": ("bet", np.repeat(np.arange(6), 2)),
            "bet_word": ("bet", np.array(flat, dtype=object)),
            "bet_stake": ("bet", np.array(stakes).ravel()),
            "bet_hit": ("bet", hit),
            "target_logprob": (("model", "item"), of_target[None]),
            "bet_logprob": (("model", "bet"), np.where(hit, of_target[place], guess)[None]),
        },
        coords={"item": np.arange(3), "model": np.array(["lm"], dtype=object)},
        attrs={"name": "bets", "generator": "lm"},
    )
