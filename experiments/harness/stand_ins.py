"""Import a module of ours though packages of an extra are missing, to read its settings; nothing in it can run then."""

from __future__ import annotations

import sys
from collections.abc import Iterator, MutableSequence
from contextlib import contextmanager
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

__all__ = ["import_for_settings"]

_OURS = {"conf", "estimators", "experiments", "inference", "models"}


class _Any(type):
    """A class that has every attribute, and is called and subscripted as if it were something."""

    def __call__(cls, *arguments: Any, **keywords: Any) -> Any:
        # a decorator gives the function back, and a function of an array an array
        alone = len(arguments) == 1 and not keywords and isinstance(arguments[0], (FunctionType, type, np.ndarray))
        return arguments[0] if alone else super().__call__(*arguments, **keywords)

    def __getattr__(cls, name: str) -> Any:
        return _attribute(name)

    def __getitem__(cls, _: object) -> Any:
        return cls

    def __or__(cls, _: object) -> Any:
        return cls

    __ror__ = __or__


class _StandIn(metaclass=_Any):
    """Whatever a missing package would have given."""

    def __init__(self, *_: object, **__: object) -> None: ...

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        return _StandIn(*arguments, **keywords)

    def __getattr__(self, name: str) -> Any:
        return _attribute(name)

    def __getitem__(self, _: object) -> Any:
        return self

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __add__(self, _: object) -> Any:
        return self

    def __invert__(self) -> Any:
        return self

    __neg__ = __invert__
    __and__ = __or__ = __sub__ = __mul__ = __truediv__ = __radd__ = __add__
    __rsub__ = __rmul__ = __lt__ = __le__ = __gt__ = __ge__ = __add__


def _attribute(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return _StandIn()


class _Module(ModuleType):
    """A module whose every name is a stand-in."""

    __path__: MutableSequence[str] = []  # noqa: RUF012 - of a package, where its modules are: nowhere

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        # a class, because some are inherited from
        return _StandIn


class _Finder(MetaPathFinder, Loader):
    """Finds the packages that are known to be missing, and nothing else."""

    def __init__(self) -> None:
        self.missing: set[str] = set()

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:  # noqa: ARG002
        return ModuleSpec(fullname, self) if fullname.partition(".")[0] in self.missing else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Module(spec.name)

    def exec_module(self, module: ModuleType) -> None: ...


@contextmanager
def _installed(finder: _Finder) -> Iterator[None]:
    before = set(sys.modules)
    sys.meta_path.append(finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        if finder.missing:
            # what was made with stand-ins is of no use to anybody else
            for name in set(sys.modules) - before:
                if name.partition(".")[0] in finder.missing | _OURS:
                    del sys.modules[name]


def import_for_settings(target: str) -> tuple[Any, tuple[str, ...]]:
    """Import a function for its settings and docstring; packages that are missing have stand-ins.

    Examples
    --------
    >>> function, missing = import_for_settings("experiments.comparison.perplexity.perplexity")
    >>> function.__name__, missing
    ('perplexity', ())
    """
    module, _, name = target.rpartition(".")
    finder = _Finder()
    with _installed(finder):
        while True:
            try:
                return getattr(import_module(module), name), tuple(sorted(finder.missing))
            except ModuleNotFoundError as error:
                package = (error.name or "").partition(".")[0]
                if package in {"", *_OURS, *finder.missing, module.partition(".")[0]}:
                    raise
                finder.missing.add(package)
