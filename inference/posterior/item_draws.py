"""Arrays over posterior draws: draws of all chains one after the other, and sums of tokens by item."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from estimators.errors import InputError

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["flat_draws", "log_sum_by_item", "thinned"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


def flat_draws(
    posterior: xr.Dataset, names: Sequence[str], item: NDArray[Any], *, source: str
) -> dict[str, FloatArray]:
    """Take variables of a posterior as arrays, (draw, element), chains one after the other."""
    missing = [name for name in names if name not in posterior]
    if missing:
        raise InputError(f"lacks {', '.join(missing)}", source=source)
    if not np.array_equal(posterior["item"].values, item):
        raise InputError("are not those of the data", source=source, field="item")
    n = posterior.sizes["chain"] * posterior.sizes["draw"]
    return {name: posterior[name].transpose("chain", "draw", ...).values.reshape(n, -1) for name in names}


def thinned(posterior: xr.Dataset, n_draws: int) -> xr.Dataset:
    """About `n_draws` evenly spaced draws of all chains together, and never none."""
    per_chain = max(1, min(round(n_draws / posterior.sizes["chain"]), posterior.sizes["draw"]))
    at = np.floor((np.arange(per_chain) + 0.5) * posterior.sizes["draw"] / per_chain).astype(int)
    return posterior.isel(draw=at)


def log_sum_by_item(log_term: FloatArray, item: IntArray, n_items: int) -> FloatArray:
    """Log of the sum of an item's terms."""
    order = np.argsort(item, kind="stable")
    item, log_term = item[order], log_term[:, order]
    start = np.searchsorted(item, np.arange(n_items))
    largest = np.maximum.reduceat(log_term, start, axis=1)
    total = np.add.reduceat(np.exp(log_term - largest[:, item]), start, axis=1)
    log_sum: FloatArray = np.log(total) + largest
    return log_sum
