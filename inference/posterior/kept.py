"""Fits that are on disk as soon as they are done: a run that was stopped loses the one that it was at, no other."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shannon_game.estimators.code_identity import code_hash
from shannon_game.estimators.content import environment
from shannon_game.inference.disk import is_signed
from shannon_game.inference.progress import say

if TYPE_CHECKING:
    import pymc as pm

    from shannon_game.inference.posterior.arviz_adapter import InferenceData

_folder: ContextVar[Path | None] = ContextVar("folder", default=None)


@contextmanager
def keep_fits(folder: Path | None) -> Iterator[None]:
    """Keep in a folder what is sampled inside the block, and take from there what was sampled before."""
    token = _folder.set(folder)
    try:
        yield
    finally:
        _folder.reset(token)


def kept(
    model: pm.Model, settings: Mapping[str, Any], draw: Callable[[], InferenceData], *, by_model: bool = True
) -> InferenceData:
    """Give the posterior that the folder of :func:`keep_fits` has of a model and settings, else draw and keep it."""
    folder = _folder.get()
    if folder is None:
        return draw()
    try:
        key = _key(model, settings, by_model=by_model)
    except Exception as problem:
        say(f"this fit is not kept for another run, as what it is of cannot be told surely: {problem}")
        return draw()
    path = folder / f"{key}.nc"
    found = _found(path)
    if found is not None:
        say("a fit is taken from the run before")
        return found
    found = draw()
    from shannon_game.inference.posterior.storage import save_posterior  # noqa: PLC0415 - few runs sample

    try:
        folder.mkdir(parents=True, exist_ok=True)
        save_posterior(found, path)
    except OSError as problem:
        # the fit is here: only a run that is stopped would miss its file
        say(f"a fit cannot be kept for another run: {problem}")
    return found


def _found(path: Path) -> InferenceData | None:
    """The fit of a file, if it is as it was written; a damaged one goes."""
    from shannon_game.inference.posterior.storage import load_posterior  # noqa: PLC0415 - few runs sample

    if not path.is_file():
        return None
    try:
        if is_signed(path):
            return load_posterior(path)
        problem: object = "its bytes are not those that were written"
    except (OSError, ValueError, KeyError) as error:
        problem = error
    path.unlink(missing_ok=True)
    say(f"a fit that was kept cannot be read and is made again: {problem}")
    return None


def _key(model: pm.Model, settings: Mapping[str, Any], *, by_model: bool = True) -> str:
    """Hash of all that decides what the file of a fit says."""
    from shannon_game.inference.posterior.graph_content import GraphReader  # noqa: PLC0415 - every run names a folder, few sample

    values = {rv.name: model.rvs_to_values[rv] for rv in model.basic_RVs}
    free = [(rv.name, values[rv.name].name) for rv in model.free_RVs]
    said = {
        "settings": dict(settings),
        "versions": environment(),
        "code": code_hash("shannon_game.estimators", "shannon_game.models", "shannon_game.inference"),
        "model": [model.name, list(model.named_vars), free],
        "terms": [[one.name for one in some] for some in (model.observed_RVs, model.deterministics, model.potentials)],
        "dims": [list(model.named_vars_to_dims.items()), list(model.coords.items())],
        "lengths": list(model.dim_lengths.items()),
        "data": [(one.name, one.get_value(borrow=True)) for one in model.data_vars],
        "observed": [values[rv.name] for rv in model.observed_RVs],
        "graph": _graph(model) if by_model else [],
    }
    leaves = {id(values[rv.name]): f"value of {rv.name}" for rv in model.free_RVs}
    return GraphReader(leaves).digest(said)[:32]


def _graph(model: pm.Model) -> list[Any]:
    """What samplers compute: the density's terms, whatever functions of a user's wrote them, draws, and starts."""
    from pymc.initial_point import make_initial_point_expression  # noqa: PLC0415 - few runs sample

    with warnings.catch_warnings():
        # the sampler says them again
        warnings.simplefilter("ignore")
        start = make_initial_point_expression(
            free_rvs=model.free_RVs,
            rvs_to_transforms=model.rvs_to_transforms,
            initval_strategies=model.rvs_to_initial_values,
            return_transformed=True,
        )
        return [model.logp(sum=False), model.unobserved_value_vars, start]
