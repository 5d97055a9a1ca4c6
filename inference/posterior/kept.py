"""Fits that are on disk as soon as they are done: a run that was stopped loses the one that it was at, no other."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from inference.progress import say

if TYPE_CHECKING:
    import pymc as pm

    from inference.posterior.arviz_adapter import InferenceData

__all__ = ["keep_fits", "kept"]

_folder: ContextVar[Path | None] = ContextVar("folder", default=None)


@contextmanager
def keep_fits(folder: Path | None) -> Iterator[None]:
    """Keep in a folder what is sampled inside the block, and take from there what was sampled before.

    Parameters
    ----------
    folder : Path, optional
        Of one run: the caller sees to it that settings, code and packages are those of the files in it. None keeps
        nothing.

    Examples
    --------
    >>> import inference, tempfile
    >>> from inference.examples import normal_model
    >>> settings = {"draws": 50, "tune": 50, "chains": 1, "seed": 1, "progress": False}
    >>> with tempfile.TemporaryDirectory() as folder, keep_fits(Path(folder)):
    ...     first = inference.sample(normal_model(), **settings)
    ...     again = inference.sample(normal_model(), **settings)
    >>> bool((first.posterior["mean"] == again.posterior["mean"]).all())
    True
    """
    token = _folder.set(folder)
    try:
        yield
    finally:
        _folder.reset(token)


def kept(model: pm.Model, settings: Mapping[str, Any], draw: Callable[[], InferenceData]) -> InferenceData:
    """Give the posterior that the folder of :func:`keep_fits` has of a model and settings, else draw and keep it."""
    folder = _folder.get()
    if folder is None:
        return draw()
    from inference.posterior.storage import load_posterior, save_posterior  # noqa: PLC0415 - few runs sample

    path = folder / f"{_key(model, settings)}.nc"
    if path.is_file():
        try:
            found = load_posterior(path)
        except (OSError, ValueError, KeyError) as problem:
            say(f"a fit that was kept cannot be read and is made again: {problem}")
        else:
            say("a fit is taken from the run before")
            return found
    found = draw()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        save_posterior(found, path)
    except OSError as problem:
        # the fit is here: only a run that is stopped would miss its file
        say(f"a fit cannot be kept for another run: {problem}")
    return found


def _key(model: pm.Model, settings: Mapping[str, Any]) -> str:
    """Hash of the sampler's settings and of the model: its operations in order, its constants, its data."""
    from pytensor.graph.basic import Constant  # noqa: PLC0415 - every run names a folder, few sample
    from pytensor.graph.traversal import ancestors  # noqa: PLC0415

    digest = hashlib.sha256(json.dumps(dict(settings), sort_keys=True).encode())
    for name, shared in sorted(model.named_vars.items()):
        digest.update(name.encode())
        if name in {data.name for data in model.data_vars}:
            _add(digest, shared.get_value())
    for node in ancestors([*model.basic_RVs, *model.rvs_to_values.values(), *model.potentials]):
        digest.update(type(node.owner.op if node.owner is not None else node).__name__.encode())
        if isinstance(node, Constant):
            _add(digest, node.data)
    return digest.hexdigest()


def _add(digest: Any, value: Any) -> None:
    array = np.asarray(value)
    plain = array.dtype != object
    digest.update(f"{array.dtype}{array.shape}{'' if plain else value}".encode())
    digest.update(array.tobytes() if plain else b"")
