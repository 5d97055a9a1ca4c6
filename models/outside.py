"""Data of a model whose likelihood is a potential: what PyMC knows of observed variables and not of potentials."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class OutsideLikelihood:
    """What a builder says of its potentials, as the attribute ``outside`` of the model that it returns."""

    # terms by output, one a row, as expressions of the model
    log_likelihood: Mapping[str, Any]
    observed: Callable[[], Mapping[str, NDArray[Any]]]
    # data by name, from the values of `parameters` at one draw
    simulate: Callable[[Mapping[str, NDArray[Any]], np.random.Generator], Mapping[str, NDArray[Any]]]
    parameters: tuple[str, ...]
    dims: Mapping[str, tuple[str, ...]]
