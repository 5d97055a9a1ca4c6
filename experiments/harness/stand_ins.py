"""Import a module of ours though packages of an extra are missing, to read its settings; nothing in it can run then."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec
from typing import Any
from unittest.mock import MagicMock

__all__ = ["import_for_settings"]

_OURS = {"shannon_game"}


class _StandIn(MagicMock):
    """Whatever a missing package would have given."""

    __path__ = ()
    __spec__ = ModuleSpec("stand_in", None)

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        # a decorator gives the function back, and a function of an array an array
        alone = len(arguments) == 1 and not keywords and (callable(arguments[0]) or hasattr(arguments[0], "dtype"))
        return arguments[0] if alone else super().__call__(*arguments, **keywords)

    def __mro_entries__(self, _bases: object) -> tuple[type]:
        return (_Base,)


class _Anything(type):
    """A class that has every attribute, as its objects have."""

    def __getattr__(cls, name: str) -> Any:
        return getattr(_StandIn(), name)


class _Base(metaclass=_Anything):
    """What a class of ours inherits from instead."""

    def __init__(self, *_: object, **__: object) -> None: ...

    def __getattr__(self, name: str) -> Any:
        return getattr(_StandIn(), name)


def import_for_settings(target: str) -> tuple[Any, tuple[str, ...]]:
    """Import a function for its settings and docstring, and name the packages that stand-ins had to replace."""
    module, _, name = target.rpartition(".")
    before, missing = set(sys.modules), set[str]()
    try:
        while True:
            try:
                return getattr(import_module(module), name), tuple(sorted(missing))
            except ModuleNotFoundError as error:
                package = (error.name or "").partition(".")[0]
                if package in {"", *_OURS, module.partition(".")[0]} or error.name in sys.modules:
                    raise
                missing.add(package)
                sys.modules[str(error.name)] = _StandIn()
    finally:
        # what was made with stand-ins is of no use to anybody else
        for each in set(sys.modules) - before if missing else ():
            if each.partition(".")[0] in missing | _OURS:
                del sys.modules[each]
