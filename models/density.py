"""A model's log-density and gradient as a function of numbers, where its author wrote them out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from shannon_game.estimators.arrays import FloatArray


@dataclass(frozen=True, eq=False)
class WrittenDensity:
    """What a sampler needs of a model, without PyTensor; the PyMC model stays the statement of it."""

    start: FloatArray
    # compiled by Numba: parameters, an array for the gradient, then the arguments; gives the log-density
    function: Callable[..., float]
    # what follows the gradient, from the model's data by name
    arguments: Callable[..., tuple[Any, ...]]
    # the model's variables by name, from parameters and data
    expand: Callable[..., Mapping[str, Any]]
    # names of the model's data
    data: tuple[str, ...]
    # chains start within so much of `start`
    jitter: float = 1.0

    def evaluate(self, x: FloatArray, **data: Any) -> tuple[float, FloatArray]:
        """Log-density and its gradient, shape (parameter,), at parameters and the model's data by name."""
        gradient = np.empty_like(x)
        return self.function(x, gradient, *self.arguments(**data)), gradient
