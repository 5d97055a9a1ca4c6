"""The nutpie program of a model whose log-density is written out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from shannon_game.estimators.arrays import FloatArray
from shannon_game.models.density import WrittenDensity

if TYPE_CHECKING:
    import pymc as pm


def nutpie_program(model: pm.Model, density: WrittenDensity) -> Any:
    """Make a program of which nutpie samples; it takes the values that the model's data have now."""
    from nutpie.compiled_pyfunc import from_pyfunc  # noqa: PLC0415 - one sampler of several

    values = _values(model, density)
    shapes = {name: np.shape(value) for name, value in density.expand(density.start, **values).items()}
    dims = _dims(model, shapes)

    def expand(x: FloatArray, **data: Any) -> dict[str, FloatArray]:
        return {name: np.asarray(value, order="C") for name, value in density.expand(x, **data).items()}

    return from_pyfunc(
        density.start.size,
        lambda: density.evaluate,
        lambda *_: expand,
        [np.dtype(float)] * len(shapes),
        list(shapes.values()),
        list(shapes),
        dims=dims,
        coords=_coords(model, dims),
        shared_data=values,
        make_initial_point_fn=lambda seed: _start(density, np.random.default_rng(seed)),
    )


def _values(model: pm.Model, density: WrittenDensity) -> dict[str, NDArray[Any]]:
    return {name: model[name].get_value() for name in density.data}


def _start(density: WrittenDensity, rng: np.random.Generator) -> FloatArray:
    return density.start + rng.uniform(-density.jitter, density.jitter, density.start.size)


def _dims(model: pm.Model, names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Dims of a model's variables, of those that have any."""
    found = {name: tuple(map(str, model.named_vars_to_dims.get(name, ()))) for name in names}
    return {name: dims for name, dims in found.items() if dims}


def _coords(model: pm.Model, dims: Mapping[str, tuple[str, ...]]) -> dict[str, pd.Index[Any]]:
    return {name: pd.Index(model.coords[name]) for name in {dim for found in dims.values() for dim in found}}
