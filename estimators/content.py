"""A digest of what a value says, the same in every process.

Data count by their bytes, functions by their compiled code and by what they name. What is of this project counts by the
project's code, and what comes with an installed package by :func:`environment`. Whatever has no content that is surely
the whole of it is refused, as two values with one digest would be taken for each other.
"""

from __future__ import annotations

import copyreg
import dis
import hashlib
import marshal
import re
import sys
import sysconfig
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, MappingProxyType, ModuleType
from typing import Any

import numpy as np

from shannon_game.estimators.code_identity import PACKAGES, code_hash, own_packages

_PLAIN = (type(None), bool, int, float, complex, str, bytes)
_COLLECTIONS = (tuple, list, dict, MappingProxyType, set, frozenset)
# what these give, or read, stands in no code
_OPAQUE = {"open", "eval", "exec", "globals", "input", "__import__"}


class UnsureError(Exception):
    """The message names what has no digest."""


def content_digest(value: Any) -> str:
    """64 hexadecimal digits of plain data, arrays, functions, and objects that can be copied."""
    try:
        return _Reader().digest(value)
    except (ValueError, RecursionError) as problem:  # code that marshal does not know, or a value without an end
        raise UnsureError(str(problem)) from problem


@cache
def environment() -> str:
    """Python and every installed distribution with its version."""
    from importlib.metadata import distributions  # noqa: PLC0415 - a twentieth of a second

    # not what a package carries inside, which is found only once the package is imported
    paths = [path for path in sys.path if re.search(r"[/\\](site|dist)-packages$", path)]
    return content_digest([sys.version, *sorted({(each.name, each.version) for each in distributions(path=paths)})])


def file_sha256(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class _Reader:
    def __init__(self) -> None:
        # the value stays alive, so that no other one gets its id
        self._known: dict[int, tuple[Any, str]] = {}

    def digest(self, value: Any) -> str:
        """64 hexadecimal digits."""
        if type(value) in _PLAIN:
            return _hash_parts(type(value).__name__, repr(value))
        if id(value) not in self._known:
            # as long as it is being read: functions call themselves
            self._known[id(value)] = value, f"again {len(self._known)}"
            self._known[id(value)] = value, _hash_parts(*self._parts(value))
        return self._known[id(value)][1]

    def _all(self, values: Iterable[Any]) -> list[str]:
        return [self.digest(value) for value in values]

    def _parts(self, value: Any) -> Sequence[str | bytes]:
        kind = type(value)
        if name := _fixed_name(value):
            return ["named", name]
        if kind is np.ndarray and not value.dtype.hasobject:
            return ["array", repr(value.dtype), repr(value.shape), value.tobytes()]
        if kind in _COLLECTIONS:
            is_mapping = kind in (dict, MappingProxyType)
            parts = self._all(one for pair in value.items() for one in pair) if is_mapping else self._all(value)
            return [kind.__name__, *(sorted(parts) if kind in (set, frozenset) else parts)]
        return self._code(value) if isinstance(value, (FunctionType, type, ModuleType)) else self._object(value)

    def _code(self, value: Any) -> Sequence[str | bytes]:
        if not isinstance(value, FunctionType):
            what = "class" if isinstance(value, type) else "module"
            raise UnsureError(f"the {what} {value.__name__}, which comes with no installed package")
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        held = [value.__defaults__, value.__kwdefaults__, value.__dict__, cells, _named(value)]
        return ["function", marshal.dumps(_bare(value.__code__), 2), *self._all(held)]

    def _object(self, value: Any) -> Sequence[str]:
        """What copies and pickles of it are made of."""
        if hasattr(value, "py_func"):  # compiled by Numba
            return ["compiled", *self._all([value.py_func, value.targetoptions])]
        try:
            reduce = copyreg.dispatch_table.get(type(value))
            made = reduce(value) if reduce is not None else value.__reduce_ex__(2)
        except Exception as problem:  # whatever a class of somebody else's raises
            raise UnsureError(f"{type(value).__qualname__} ({problem})") from problem
        if isinstance(made, str):
            raise UnsureError(f"{type(value).__qualname__} {made}")
        call, arguments, *rest = made
        state, *items = [*rest, None, None, None][:3]
        rows = [None if one is None else list(one) for one in items]
        return ["object", *self._all([type(value), call, arguments, state, *rows])]


def _hash_parts(*parts: str | bytes) -> str:
    """SHA-256 of parts, none of which can move into the next."""
    digest = hashlib.sha256()
    for part in parts:
        content = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        digest.update(f"{type(part).__name__}{len(content)}:".encode())
        digest.update(content)
    return digest.hexdigest()


def _fixed_name(value: Any) -> str | None:
    """Where an installed package has a class, function or module; None for what is in none."""
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if isinstance(value, ModuleType):
        module, name = value.__name__, ""
    if not isinstance(module, str) or not isinstance(name, str) or not _is_fixed(module):
        return None
    found, own = sys.modules.get(module), own_packages(module)
    for part in filter(None, name.split(".")):
        found = getattr(found, part, None)
    if found is not value:
        return None
    # imports point down: what is in a package is made of it and of those before it
    return f"{module}:{name}:{code_hash(*PACKAGES[: PACKAGES.index(own[-1]) + 1]) if own else environment()}"


def _bare(code: CodeType) -> CodeType:
    """Code without the place where it stands, which differs between two starts of a notebook."""
    constants = tuple(_bare(one) if isinstance(one, CodeType) else one for one in code.co_consts)
    return code.replace(co_filename="", co_firstlineno=1, co_linetable=b"", co_consts=constants)


def _named(function: FunctionType) -> dict[str, Any]:
    """What a function, or one inside it, takes from its module."""
    names: dict[str, None] = {}
    codes = [function.__code__]
    for code in codes:
        codes += [one for one in code.co_consts if isinstance(one, CodeType)]
        for step in dis.get_instructions(code):
            if step.opname == "IMPORT_NAME" and not _is_fixed(str(step.argval)):
                raise UnsureError(f"the module {step.argval or '.'}, which comes with no installed package")
            if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                names[step.argval] = None
    if read := sorted(_OPAQUE & names.keys()):
        raise UnsureError(f"a function that calls {read[0]}")
    return {name: function.__globals__[name] for name in names if name in function.__globals__}


@cache
def _is_fixed(module: str) -> bool:
    """Whether a module's code follows from the versions that are installed, or from this project's own hash."""
    top = module.partition(".")[0]
    if own_packages(module) or top in sys.stdlib_module_names:
        return True
    if top == "__main__":  # a notebook's, whatever file started it
        return False
    file = getattr(sys.modules.get(top), "__file__", None)
    paths = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    return file is not None and (
        any(Path(file).is_relative_to(path) for path in paths if path)
        or re.search(r"[/\\](site|dist)-packages[/\\]", file) is not None
    )
