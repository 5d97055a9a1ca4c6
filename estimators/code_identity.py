"""Which code this is: its version, and hashes of its files, for the keys of everything that is stored."""

from __future__ import annotations

import hashlib
import inspect
import os
import sys
from collections.abc import Callable, Iterator
from functools import cache, partial
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

from shannon_game.estimators.errors import InputError

PACKAGES = tuple(f"shannon_game.{name}" for name in ("estimators", "models", "inference", "experiments"))
"""The packages of this distribution that hold code."""

# tables inside a package decide numbers too: published values, hashes of the files that a download must match
_SUFFIXES = (".py", ".csv")
_UNKNOWN = "not installed"
_SAMPLERS = ("numpy", "scipy", "numba", "pytensor", "pymc", "nutpie", "jax", "numpyro", "blackjax", "arviz", "xarray")


def own_packages(module: str) -> tuple[str, ...]:
    """Which of :data:`PACKAGES` a module is in: all for ``shannon_game`` itself, none for somebody else's module."""
    inside = tuple(package for package in PACKAGES if f"{module}.".startswith(f"{package}."))
    return inside or (PACKAGES if module.partition(".")[0] == "shannon_game" else ())


@cache
def package_version(name: str = "shannon-game") -> str:
    """Version of an installed distribution; ``"not installed"`` if there is none, as in a bare checkout."""
    # 50 ms of imports and of reading metadata, which `import shannon_game.estimators` should not cost
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415

    try:
        return version(name)
    except PackageNotFoundError:
        return _UNKNOWN


@cache
def sampler_versions() -> dict[str, str]:
    """Versions of the packages that draw from posteriors."""
    return {name: package_version(name) for name in _SAMPLERS}


@cache
def code_hash(*names: str) -> str:
    """SHA-256 of the code of packages and modules."""
    if not names:
        raise InputError("are none; name a package or a module", field="names")
    digest = hashlib.sha256()
    for name in sorted(set(names)):
        place = _place(name)
        for relative, file in sorted(_files(place)):
            content = file.read_bytes()
            # the length, so that no byte can move from one file to the next
            digest.update(f"{name}\n{relative}\n{len(content)}\n".encode("utf-8", "surrogateescape"))
            digest.update(content)
    return digest.hexdigest()


def source_hash(function: Callable[..., Any]) -> str:
    """SHA-256 of the source of one function, without what it calls."""
    function = _inside(function)
    try:
        source = inspect.getsource(function)
    except (OSError, TypeError):
        problem = f"{function!r} has no source that Python knows; write it in a file"
        raise InputError(problem, field="function") from None
    return hashlib.sha256(source.encode()).hexdigest()


def work_hash(work: Callable[..., Any], *packages: str) -> str:
    """SHA-256 of packages and of the module that defines a function."""
    file = getattr(inspect.getmodule(_inside(work)), "__file__", None)
    own = source_hash(work) if file is None else hashlib.sha256(Path(file).read_bytes()).hexdigest()
    return hashlib.sha256("\n".join([own, *map(code_hash, packages)]).encode()).hexdigest()


def _files(place: Path) -> Iterator[tuple[str, Path]]:
    """Files of code below a folder, with their paths in it; a module's file is its own."""
    if place.is_file():
        yield "", place
    # os.walk takes a third of the time of Path.rglob
    for folder, folders, names in os.walk(place):
        folders[:] = [name for name in folders if name != "__pycache__"]
        for name in names:
            if name.endswith(_SUFFIXES):
                path = Path(folder, name)
                yield path.relative_to(place).as_posix(), path


def _inside(function: Callable[..., Any]) -> Callable[..., Any]:
    while isinstance(function, partial):
        function = function.func
    return function


def _place(name: str) -> Path:
    """Folder of a package or file of a module, without an import of what was not imported yet."""
    module = sys.modules.get(name)
    if module is not None and getattr(module, "__file__", None):
        file = Path(str(module.__file__))
        return file.parent if hasattr(module, "__path__") else file
    parent, _, _ = name.rpartition(".")
    # a checkout's packages lie beside the folder of their parent
    within = getattr(sys.modules.get(parent), "__path__", None)
    spec = PathFinder.find_spec(name, list(within or [str(_place(parent))]) if parent else None)
    if spec is None or spec.origin is None:
        raise InputError(f"{name!r} is no package or module with a file here", field="names")
    return Path(spec.origin).parent if spec.submodule_search_locations is not None else Path(spec.origin)
