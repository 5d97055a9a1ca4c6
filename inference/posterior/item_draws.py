"""Posterior draws as arrays, and fewer of them."""

from __future__ import annotations

import numpy as np
import xarray as xr

from shannon_game.estimators.arrays import FloatArray


def flat(posterior: xr.Dataset, name: str) -> FloatArray:
    """Values of a variable with the chains one after the other, shape (draw, ...)."""
    values = posterior[name].transpose("chain", "draw", ...).to_numpy()
    found: FloatArray = values.reshape(-1, *values.shape[2:])
    return found


def thinned(posterior: xr.Dataset, n_draws: int) -> xr.Dataset:
    """About `n_draws` evenly spaced draws of all chains together, and never none."""
    per_chain = max(1, min(round(n_draws / posterior.sizes["chain"]), posterior.sizes["draw"]))
    at = np.floor((np.arange(per_chain) + 0.5) * posterior.sizes["draw"] / per_chain).astype(int)
    return posterior.isel(draw=at)
