"""Fits that are on disk as soon as they are done: a run that was stopped loses the one that it was at, no other.

A kept fit is found again by the version of the package, the name of the question, the data's bytes and the settings::

    idata = kept.posterior("human_loss", model, of=settings, draw=lambda: sample(model))
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from inspect import unwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shannon_game.estimators.code_identity import code_hash, own_packages
from shannon_game.estimators.content import content_digest, environment
from shannon_game.inference.disk import is_signed
from shannon_game.inference.progress import say

if TYPE_CHECKING:
    import pymc as pm

    from shannon_game.inference.posterior.arviz_adapter import InferenceData

_place: ContextVar[tuple[Path, Any] | None] = ContextVar("place", default=None)


@contextmanager
def keep_fits(folder: Path | None, question: Callable[..., Any] | None = None, *, of: Any = None) -> Iterator[None]:
    """Keep in a folder what a question, `of` some data and settings, samples inside the block, or sampled before."""
    # the hash of the code has the questions of this project
    code = None if question is None or own_packages(question.__module__) else unwrap(question)
    token = _place.set(None if folder is None else (folder, [code, of]))
    try:
        yield
    finally:
        _place.reset(token)


def posterior(
    purpose: str, model: pm.Model | None = None, *, of: Any, draw: Callable[[], InferenceData]
) -> InferenceData:
    """Give the posterior that the folder of :func:`keep_fits` has for a purpose, else draw and keep it.

    `purpose` names the fit in its question. `of` is all besides the question's code and the numbers of `model` that
    decides the draws: settings, seed, other data, functions of a user's.
    """
    place = _place.get()
    if place is None:
        return draw()
    folder, question = place
    try:
        code = code_hash("shannon_game.estimators", "shannon_game.models", "shannon_game.inference")
        numbers = [] if model is None else numbers_of(model)
        key = content_digest([environment(), code, question, purpose, numbers, of])[:32]
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


def numbers_of(model: pm.Model) -> list[Any]:
    """Names, dims and coordinates of a model's variables, and the numbers that it holds: answers, data, constants."""
    from pytensor.compile.sharedvalue import SharedVariable  # noqa: PLC0415 - every run names a folder, few sample
    from pytensor.graph.basic import Constant  # noqa: PLC0415
    from pytensor.graph.traversal import ancestors  # noqa: PLC0415
    from pytensor.tensor.random.type import RandomType  # noqa: PLC0415

    values = [model.rvs_to_values[one] for one in model.observed_RVs]
    parts = list(ancestors([*model.basic_RVs, *model.deterministics, *model.potentials, *model.data_vars, *values]))
    # the sampler's seed decides what random generators give
    shared = [one for one in parts if isinstance(one, SharedVariable) and not isinstance(one.type, RandomType)]
    named = [list(model.named_vars), list(model.named_vars_to_dims.items()), list(model.coords.items())]
    constants = [one.data for one in parts if isinstance(one, Constant)]
    held = [(one.name, one.get_value(borrow=True)) for one in shared]  # type: ignore[no-untyped-call]
    return [*named, constants, held]


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
