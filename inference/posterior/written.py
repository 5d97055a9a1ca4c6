"""Draws from a model whose log-density is written out: by our own Hamiltonian Monte Carlo, or by nutpie."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.errors import check_memory
from shannon_game.inference.posterior.arviz_adapter import InferenceData, from_groups
from shannon_game.inference.progress import Show
from shannon_game.models.density import WrittenDensity

if TYPE_CHECKING:
    import pymc as pm


def hmc(
    model: pm.Model, density: WrittenDensity, settings: Mapping[str, Any], *, seed: int, show: Show | None
) -> InferenceData:
    """Sample with :mod:`shannon_game.inference.posterior.hamiltonian`, one thread a chain."""
    from shannon_game.inference.posterior.hamiltonian import chain  # noqa: PLC0415 - Numba takes a second

    chains, draws = settings["chains"], settings["draws"]
    # draws, and what the model makes of them
    check_memory(16.0 * chains * draws * density.start.size, source="sampler", field="draws")
    values = _values(model, density)
    arguments = density.arguments(**values)
    lengths = {name: settings[name] for name in ("draws", "tune", "target_accept")}
    n_drawn, stopped, told = [0] * chains, threading.Event(), threading.Lock()

    # room for all chains at once: to put chains together later would hold everything twice
    shapes = {name: np.shape(value) for name, value in density.expand(density.start, **values).items()}
    posterior = {name: np.empty((chains, draws, *shape)) for name, shape in shapes.items()}

    def one(number: int, own: np.random.SeedSequence) -> Mapping[str, NDArray[Any]]:
        def tell(n: int) -> None:
            if stopped.is_set():
                raise InterruptedError
            with told:
                n_drawn[number] = n
                if show is not None:
                    show(sum(n_drawn))

        rng = np.random.default_rng(own)
        found = chain(density.function, arguments, _start(density, rng), rng=rng, tell=tell, **lengths)
        for draw, x in enumerate(found.draws):
            for name, value in density.expand(x, **values).items():
                posterior[name][number, draw] = value
        return found.stats

    workers = ThreadPoolExecutor(min(settings["cores"] or os.cpu_count() or 1, chains))
    try:
        made = list(workers.map(one, range(chains), np.random.SeedSequence(seed).spawn(chains)))
    finally:
        # Ctrl-C reaches the main thread alone
        stopped.set()
        workers.shutdown(cancel_futures=True)
    stats = {name: np.stack([each[name] for each in made]) for name in made[0]}
    return from_groups({"posterior": _dataset(model, posterior), "sample_stats": _dataset(model, stats)})


def _dataset(model: pm.Model, values: Mapping[str, NDArray[Any]]) -> xr.Dataset:
    """Values of every chain and draw, with the dims and coordinates that the model gives them."""
    dims = _dims(model, values)
    n_chains, n_draws = next(iter(values.values())).shape[:2]
    variables = {name: (("chain", "draw", *dims.get(name, ())), value) for name, value in values.items()}
    return xr.Dataset(variables, {"chain": np.arange(n_chains), "draw": np.arange(n_draws), **_coords(model, dims)})


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
