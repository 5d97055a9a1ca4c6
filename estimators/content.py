"""A digest of what a value says: the same in every process, another one wherever anything differs.

What comes with an installed package counts by its name, so that a key needs :func:`environment` besides. What has no
content that is surely the whole of it is refused, as two values with one digest would be taken for each other.
"""

from __future__ import annotations

import copyreg
import dis
import hashlib
import re
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from functools import cache, cached_property
from pathlib import Path
from types import CodeType, FunctionType, GetSetDescriptorType, MappingProxyType, MemberDescriptorType, ModuleType
from typing import Any

import numpy as np

from shannon_game.estimators.code_identity import code_hash, own_packages

_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(...), type(NotImplemented))
# what these give, or read, stands in no code
_OPAQUE = {"open", "eval", "exec", "globals", "input", "__import__"}
_GLOBAL = {"LOAD_GLOBAL", "LOAD_NAME"}
_OF_EVERY_CLASS = {
    *("__dict__", "__weakref__", "__doc__", "__module__", "__annotations__", "__annotate_func__"),
    *("__annotations_cache__", "__abstractmethods__", "_abc_impl"),
    *("__firstlineno__", "__static_attributes__", "__dataclass_fields__"),
}
_COLLECTIONS = (tuple, list, dict, MappingProxyType, set, frozenset, slice)
_CODE = (FunctionType, CodeType, type, ModuleType)
_MADE_OF: dict[type, tuple[str, ...]] = {
    staticmethod: ("__func__",),
    classmethod: ("__func__",),
    property: ("fget", "fset", "fdel"),
    cached_property: ("func",),
    MemberDescriptorType: ("__name__",),
    GetSetDescriptorType: ("__name__",),
}


class UnsureError(Exception):
    """The message names what has no digest."""


def content_digest(value: Any) -> str:
    """64 hexadecimal digits of plain data, arrays, functions, classes, and objects that can be copied."""
    return Reader().digest(value)


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


class Reader:
    """Digests of many values; with `into_own` code of this project counts by its functions, else by all its files."""

    def __init__(self, *, into_own: bool = False) -> None:
        self._into_own = into_own
        # the value stays alive, so that no other one gets its id
        self._known: dict[int, tuple[Any, str]] = {}
        self._open: list[int] = []

    def digest(self, value: Any) -> str:
        """64 hexadecimal digits."""
        if type(value) in _PLAIN:
            return hash_parts(type(value).__name__, repr(value))
        if id(value) in self._known:
            return self._known[id(value)][1]
        if id(value) in self._open:
            return hash_parts("again", str(self._open.index(id(value))))
        self._open.append(id(value))
        try:
            found = hash_parts(*self._parts(value))
        finally:
            self._open.pop()
        self._known[id(value)] = value, found
        return found

    def _all(self, values: Sequence[Any] | Iterator[Any]) -> list[str]:
        return [self.digest(value) for value in values]

    def _parts(self, value: Any) -> Sequence[str | bytes]:
        if name := self._fixed_name(value):
            return ["named", name]
        kind = type(value)
        names = next((names for one, names in _MADE_OF.items() if issubclass(kind, one)), ())
        if hasattr(value, "py_func"):  # compiled by Numba
            names = ("py_func", "targetoptions")
        if names:
            return [kind.__name__, *self._all([getattr(value, name) for name in names])]
        if issubclass(kind, (np.ndarray, np.generic)) and kind.__module__.partition(".")[0] == "numpy":
            return self._array(value)
        if kind in _COLLECTIONS:
            return self._collection(value)
        return self._code(value) if isinstance(value, _CODE) else self._object(value)

    def _fixed_name(self, value: Any) -> str | None:
        """Where an installed package has a class, function or module; None for what is in none."""
        module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
        if isinstance(value, ModuleType):
            module, name = value.__name__, ""
        if not isinstance(module, str) or not isinstance(name, str) or not _is_fixed(module):
            return None
        found, own = sys.modules.get(module), own_packages(module)
        for part in filter(None, name.split(".")):
            found = getattr(found, part, None)
        if found is not value or (self._into_own and own and name):
            return None
        return f"{module}:{name}:{code_hash(*own) if own and not self._into_own else ''}"

    def _array(self, array: Any) -> Sequence[str | bytes]:
        if isinstance(array, np.ma.MaskedArray):
            return ["masked", *self._all([np.asarray(array.data), np.ma.getmaskarray(array)])]
        array = np.asarray(array)
        what = ["array", repr(array.dtype), repr(array.shape)]
        return [*what, *self._all(array.ravel().tolist())] if array.dtype.hasobject else [*what, array.tobytes()]

    def _collection(self, value: Any) -> Sequence[str]:
        if isinstance(value, (set, frozenset)):
            return ["set", *sorted(self._all(iter(value)))]
        if isinstance(value, slice):
            return ["slice", *self._all([value.start, value.stop, value.step])]
        if isinstance(value, (dict, MappingProxyType)):
            return ["mapping", *(one for pair in value.items() for one in self._all(pair))]
        return [type(value).__name__, *self._all(value)]

    def _code(self, value: Any) -> Sequence[str | bytes]:
        if isinstance(value, FunctionType):
            outside = [value.__defaults__, value.__kwdefaults__, value.__dict__]
            cells = [cell.cell_contents for cell in value.__closure__ or () if _is_filled(cell)]
            there = {name: value.__globals__[name] for name in _globals(value.__code__) if name in value.__globals__}
            return ["function", *self._all([value.__code__, *outside, cells, there])]
        if isinstance(value, CodeType):
            counts = [value.co_argcount, value.co_posonlyargcount, value.co_kwonlyargcount, value.co_flags]
            names = [value.co_names, value.co_varnames, value.co_freevars, value.co_cellvars]
            table = getattr(value, "co_exceptiontable", b"")
            return ["code", value.co_code, table, *self._all([*counts, *names, value.co_consts])]
        if isinstance(value, type):
            own = {name: vars(value)[name] for name in sorted(vars(value).keys() - _OF_EVERY_CLASS)}
            return ["class", value.__qualname__, *self._all([type(value), value.__bases__, own])]
        raise UnsureError(f"the module {value.__name__}, which comes with no installed package")

    def _object(self, value: Any) -> Sequence[str | bytes]:
        """What copies and pickles of it are made of."""
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


def hash_parts(*parts: str | bytes) -> str:
    """SHA-256 of parts, none of which can move into the next."""
    digest = hashlib.sha256()
    for part in parts:
        content = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        digest.update(f"{type(part).__name__}{len(content)}:".encode())
        digest.update(content)
    return digest.hexdigest()


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False


def _globals(code: CodeType) -> list[str]:
    """Names that a function takes from its module, in order; functions inside it too."""
    found: dict[str, None] = {}
    for step in dis.get_instructions(code):
        if step.opname == "IMPORT_NAME" and not _is_fixed(str(step.argval)):
            raise UnsureError(f"the module {step.argval or '.'}, which comes with no installed package")
        if step.opname in _GLOBAL:
            if step.argval in _OPAQUE:
                raise UnsureError(f"a function that calls {step.argval}")
            found[step.argval] = None
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            found |= dict.fromkeys(_globals(inner))
    return list(found)


@cache
def _is_fixed(module: str) -> bool:
    """Whether a module's code follows from the versions that are installed, or from this project's own hash."""
    top = module.partition(".")[0]
    if own_packages(module) or top in sys.stdlib_module_names:
        return True
    file = getattr(sys.modules.get(top), "__file__", None)
    paths = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    return file is not None and (
        any(Path(file).is_relative_to(path) for path in paths if path)
        or re.search(r"[/\\](site|dist)-packages[/\\]", file) is not None
    )
