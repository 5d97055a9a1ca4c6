"""Public names of a package that are imported when they are first used."""

from __future__ import annotations

from collections.abc import Callable

import lazy_loader

from shannon_game.estimators.errors import InputError, how_to_install


def public_names(package: str, file: str, extra: str) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Make ``__getattr__`` and ``__dir__`` of a package from the stub (``.pyi``) beside it."""
    load, names, _ = lazy_loader.attach_stub(package, file)

    def getter(name: str) -> object:
        try:
            return load(name)
        except ModuleNotFoundError as problem:
            top = (problem.name or "").partition(".")[0]
            if top in {"", "shannon_game"}:
                raise
            raise InputError(how_to_install(top, extra), source=f"{package}.{name}") from problem

    return getter, names
