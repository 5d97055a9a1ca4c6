"""Types that most modules name: arrays, and xarray's and pandas' own, which are not imported for their names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from pandas import DataFrame
    from xarray import Dataset
else:
    DataFrame = Dataset = Any

__all__ = ["BoolArray", "DataFrame", "Dataset", "FloatArray", "IntArray"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]
