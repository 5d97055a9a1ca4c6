"""Data of a model whose likelihood is a potential: what PyMC knows of observed variables and not of potentials."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["OutsideLikelihood"]


@dataclass(frozen=True, eq=False)
class OutsideLikelihood:
    """What a builder says of its potentials, as the attribute ``outside`` of the model that it returns.

    :func:`inference.complete` makes log_likelihood, observed_data and both predictive groups from it, as it makes them
    from observed variables elsewhere.

    Attributes
    ----------
    log_likelihood : mapping of str to TensorVariable
        Expressions of the model's variables by the name of a potential: its log-likelihood by row.
    observed : callable
        Gives what was observed, by name, for the values that the model's data have now.
    simulate : callable
        Takes parameters by name at one draw and a :class:`numpy.random.Generator`, gives what would be observed.
    parameters : tuple of str
        What `simulate` takes: variables of the model that have a proper prior.
    dims : mapping of str to tuple of str
        Dims of each log-likelihood and of everything observed.
    """

    log_likelihood: Mapping[str, Any]
    observed: Callable[[], Mapping[str, NDArray[Any]]]
    simulate: Callable[[Mapping[str, NDArray[Any]], np.random.Generator], Mapping[str, NDArray[Any]]]
    parameters: tuple[str, ...]
    dims: Mapping[str, tuple[str, ...]]
