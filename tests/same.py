"""Two computations of the same numbers: what is counted or drawn is equal, what is summed agrees to rounding."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr


def assert_same(first: Any, second: Any) -> None:
    """Demand equal arrays; of floats up to the rounding of a sum, whose order a processor may choose.

    A sum of n numbers errs by about sqrt(n) eps of their size. This allows n = 10,000, ten times over: 2e-13 of a
    double, 1e-4 of a single.
    """
    one, other = np.asarray(first), np.asarray(second)
    assert one.dtype == other.dtype
    if one.dtype.kind != "f":
        np.testing.assert_array_equal(one, other)
        return
    tolerance = 1000 * np.finfo(one.dtype).eps
    size = np.abs(one, where=np.isfinite(one), out=np.zeros_like(one)).max(initial=0)
    np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance * min(size, 1))


def assert_same_study(first: xr.Dataset, second: xr.Dataset) -> None:
    """Demand the same variables, dimensions, words and whole numbers, and floats up to rounding."""
    assert first.attrs == second.attrs
    assert set(first.variables) == set(second.variables)
    for name, variable in first.variables.items():
        assert variable.dims == second[name].dims, name
        assert_same(variable.values, second[name].values)


def assert_same_table(first: Path, second: Path) -> None:
    """Demand two CSV files of the same rows and columns, words and whole numbers, and floats up to rounding."""
    pd.testing.assert_frame_equal(pd.read_csv(first), pd.read_csv(second), rtol=1e-9, atol=1e-12)
