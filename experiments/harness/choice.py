"""One question that several functions answer, of which a setting names one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from shannon_game.estimators.errors import unknown_choice
from shannon_game.experiments.harness.result import Experiment, ExperimentResult
from shannon_game.inference.settings import Settings

if TYPE_CHECKING:
    import xarray as xr

S = TypeVar("S", bound=Settings)

CHOICES = ("vary", "of", "look")
"""Groups of settings that change what an experiment asks."""


def choice(setting: str, own: str, others: Mapping[str, str]) -> Callable[[Experiment[S]], Experiment[S]]:
    """Let an experiment, whose own name for this is `own`, pass on to others by dotted name.

    On the command line the setting is a group of Hydra's, whose files name the same functions.
    """

    def decorate(first: Experiment[S]) -> Experiment[S]:
        @wraps(first)
        def call(study: xr.Dataset, settings: S | None = None, **changes: Any) -> ExperimentResult:
            name = changes.pop(setting, own)
            if name == own:
                return first(study, settings, **changes)
            if name not in others:
                raise unknown_choice(setting, name, [own, *others], source=first.__name__)
            module, _, function = others[name].rpartition(".")
            found: Experiment[Any] = getattr(import_module(module), function)
            return found(study, settings, **changes)

        call.choices = {setting: others}  # type: ignore[attr-defined]
        return call  # type: ignore[return-value]

    return decorate
