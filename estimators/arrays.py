"""Types that most modules name: arrays, and the xarray.Dataset of a study, which is not imported for its name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from xarray import Dataset
else:
    Dataset = Any

__all__ = ["BoolArray", "Dataset", "FloatArray", "IntArray"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]
