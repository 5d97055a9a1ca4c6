"""What builders say of their models that PyMC has no place for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Spread:
    """A standard deviation, and the parameters whose it is, by the names of their values.

    ``centred`` parameters are Normal(0, spread), others are Normal(0, 1) and are multiplied by the spread.
    """

    log_sd: str
    members: str
    centred: bool = True


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
    # the same from values of the prior, where what is summed out is drawn otherwise given the data
    simulate_prior: Callable[[Mapping[str, NDArray[Any]], np.random.Generator], Mapping[str, NDArray[Any]]] | None = (
        None
    )
    constant: Callable[[], Mapping[str, NDArray[Any]]] | None = None
    mode: Any = None  # how PyTensor compiles what is asked of this model
