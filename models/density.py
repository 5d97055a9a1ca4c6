"""A model's log-density and gradient as a function of numbers, where its author wrote them out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["WrittenDensity"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class WrittenDensity:
    """What a sampler needs of a model, without PyTensor; the PyMC model stays the statement of it.

    Attributes
    ----------
    start : ndarray, shape (parameter,)
        Near the middle of the priors, on the scale on which PyMC samples.
    function : callable
        Compiled by Numba, with ``error_model="numpy"``: takes parameters, an array for the gradient, and `arguments`;
        gives the log-density.
    arguments : callable
        Takes the model's data by name; gives what `function` takes.
    expand : callable
        Takes parameters and the model's data by name; gives the values of the model's variables by name, deterministic
        ones too.
    data : tuple of str
        Names of the ``pm.Data`` that both read.
    jitter : float
        How far from there chains start at most, in every parameter.
    moves : callable, optional
        Compiled by Numba: changes parameters in place where paths cannot go, such as from one peak to another, and
        leaves the posterior as it is. Takes parameters, a generator of random numbers, and `arguments`; gives how many
        moves it accepted, as a float. ``hmc`` calls it after every path; other samplers do without.
    """

    start: FloatArray
    function: Callable[..., float]
    arguments: Callable[..., tuple[Any, ...]]
    expand: Callable[..., Mapping[str, Any]]
    data: tuple[str, ...]
    jitter: float = 1.0
    moves: Callable[..., float] | None = None

    def evaluate(self, x: FloatArray, **data: Any) -> tuple[float, FloatArray]:
        """Log-density and its gradient, shape (parameter,), at parameters and the model's data by name."""
        gradient = np.empty_like(x)
        return self.function(x, gradient, *self.arguments(**data)), gradient
