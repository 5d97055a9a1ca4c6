"""A digest of what a value says: the same in every process, another one wherever anything differs.

Data count by their content, a function by its bytecode and by all that it takes from outside, an object by its class
and its state, a PyTensor graph by its operations, their parameters, its wiring and its leaves. What comes with an
installed package counts by its name, so that a key needs :func:`environment` besides. Whatever has no content that is
surely the whole of it is refused, as two values with one digest would be taken for each other.
"""

from __future__ import annotations

import copyreg
import dis
import hashlib
import re
import sys
import sysconfig
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from types import CodeType, FunctionType, GetSetDescriptorType, MappingProxyType, MemberDescriptorType, ModuleType
from typing import Any

import numpy as np

from estimators.code_identity import PACKAGES, code_hash

__all__ = ["UnsureError", "content_digest", "environment"]

_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(...), type(NotImplemented))
# what these give, or read, stands in no code
_OPAQUE = {"open", "eval", "exec", "globals", "input", "__import__"}
_GLOBAL = {"LOAD_GLOBAL", "LOAD_NAME"}
_OF_EVERY_CLASS = {
    *("__dict__", "__weakref__", "__doc__", "__module__", "__annotations__", "__annotate_func__", "__abstractmethods__"),
    *("_abc_impl", "__firstlineno__", "__static_attributes__", "__dataclass_fields__", "__annotations_cache__"),
}
# what PyTensor's operations with a graph inside remember of having been compiled
_CACHES = {
    *("_fn", "_lop_op_cache", "_rop_op_cache", "_connection_pattern", "_cmodule_key", "_hash_inner_graph", "_name"),
    *("_fgraph", "fgraph", "_py_perform_fn", "_c_code", "prepare_node_called", "nodenames"),
}


class UnsureError(Exception):
    """The message names what has no digest."""


def content_digest(value: Any, *, leaves: Mapping[int, str] | None = None) -> str:
    """64 hexadecimal digits; `leaves` are names, by id, of variables at which graphs end."""
    return _Reader(leaves or {}).digest(value)


@cache
def environment() -> str:
    """Python and every installed distribution with its version."""
    from importlib.metadata import distributions  # noqa: PLC0415 - a twentieth of a second

    return content_digest([sys.version, *sorted((each.name, each.version) for each in distributions())])


class _Reader:
    def __init__(self, leaves: Mapping[int, str]) -> None:
        self._variables = dict(leaves)
        self._n_unnamed = 0
        # the value stays alive, so that no other one gets its id
        self._known: dict[int, tuple[Any, str]] = {}
        self._open: list[int] = []

    def digest(self, value: Any) -> str:
        if type(value) in _PLAIN:
            return _hash(type(value).__name__, repr(value))
        if id(value) in self._known:
            return self._known[id(value)][1]
        if id(value) in self._open:
            return _hash("again", str(self._open.index(id(value))))
        self._open.append(id(value))
        try:
            found = _hash(*self._parts(value))
        finally:
            self._open.pop()
        self._known[id(value)] = value, found
        return found

    def _all(self, values: Sequence[Any] | Iterator[Any]) -> list[str]:
        return [self.digest(value) for value in values]

    def _parts(self, value: Any) -> Sequence[str | bytes]:
        if name := _fixed_name(value):
            return ["named", name]
        kind = type(value)
        if isinstance(value, (np.ndarray, np.generic)) and kind.__module__.partition(".")[0] == "numpy":
            return self._array(value)
        if kind in (tuple, list, dict, MappingProxyType, set, frozenset, slice):
            return self._collection(value)
        if isinstance(value, (FunctionType, CodeType, type, ModuleType)):
            return self._code(value)
        if isinstance(value, (staticmethod, classmethod)):
            return [kind.__name__, self.digest(value.__func__)]
        if isinstance(value, property):
            return ["property", *self._all([value.fget, value.fset, value.fdel])]
        if isinstance(value, cached_property):
            return ["cached_property", self.digest(value.func)]
        if isinstance(value, (MemberDescriptorType, GetSetDescriptorType)):
            return ["slot", value.__name__]
        if hasattr(value, "py_func"):  # compiled by Numba
            return ["compiled", *self._all([value.py_func, getattr(value, "targetoptions", None)])]
        return self._graph_part(value) if "pytensor" in sys.modules else self._object(value)

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
            return ["class", value.__qualname__, *self._all([type(value), value.__bases__, own, *_registered(value)])]
        raise UnsureError(f"the module {value.__name__}, which comes with no installed package")

    def _graph_part(self, value: Any) -> Sequence[str]:
        from pytensor.graph.basic import Variable  # noqa: PLC0415 - few values are of graphs
        from pytensor.graph.fg import FunctionGraph  # noqa: PLC0415
        from pytensor.graph.op import HasInnerGraph  # noqa: PLC0415
        from pytensor.graph.utils import MetaObject  # noqa: PLC0415

        if isinstance(value, Variable):
            return self._graph([value], self._variables)
        if isinstance(value, FunctionGraph):
            return self._inner(value)
        if not isinstance(value, MetaObject):
            return self._object(value)
        props = {name: getattr(value, name) for name in getattr(value, "__props__", ())}
        what = [self.digest(type(value))]
        if isinstance(value, HasInnerGraph):
            state = {name: one for name, one in vars(value).items() if name not in _CACHES | {"inputs", "outputs"}}
            return [*what, *self._inner(value.fgraph), *self._all([props, state])]
        # two of a library's that agree in these are merged by PyTensor itself
        complete = hasattr(value, "__props__") and _fixed_name(type(value))
        return [*what, *self._all([props, {} if complete else getattr(value, "__dict__", {})])]

    def _inner(self, graph: Any) -> Sequence[str]:
        """A graph inside an operation, whose inputs have no names outside."""
        inputs = {id(one): f"inner {number}" for number, one in enumerate(graph.inputs)}
        return ["inner", *self._all([one.type for one in graph.inputs]), *self._graph(graph.outputs, inputs)]

    def _graph(self, outputs: Sequence[Any], known: dict[int, str]) -> list[str]:
        from pytensor.graph.traversal import toposort  # noqa: PLC0415

        def of(variable: Any) -> str:
            if id(variable) not in known:
                known[id(variable)] = _hash(*self._leaf(variable))
            return known[id(variable)]

        for node in toposort(outputs):
            if id(node.outputs[0]) not in known:
                own = _hash(self.digest(node.op), *map(of, node.inputs))
                for number, one in enumerate(node.outputs):
                    known.setdefault(id(one), _hash(own, str(number), self.digest(one.type)))
        return ["graph", *map(of, outputs)]

    def _leaf(self, variable: Any) -> Sequence[str]:
        from pytensor.compile.sharedvalue import SharedVariable  # noqa: PLC0415
        from pytensor.graph.basic import Constant  # noqa: PLC0415
        from pytensor.tensor.random.type import RandomType  # noqa: PLC0415

        kind = self.digest(variable.type)
        if isinstance(variable, Constant):
            return ["constant", kind, self.digest(variable.data)]
        # the sampler's seed decides what random generators give
        if isinstance(variable, SharedVariable) and not isinstance(variable.type, RandomType):
            return ["shared", kind, *self._all([variable.name, variable.get_value(borrow=True)])]
        self._n_unnamed += 1
        return ["input", kind, str(self._n_unnamed)]

    def _object(self, value: Any) -> Sequence[str]:
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


def _hash(*parts: str | bytes) -> str:
    digest = hashlib.sha256()
    for part in parts:
        content = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        # the length, so that nothing can move from one part to the next
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


def _registered(kind: Hashable) -> list[Any]:
    """What Numba and JAX call in place of an operation's own ``perform``."""
    found = []
    for module, name in (("numba", "numba_funcify"), ("jax", "jax_funcify")):
        funcify = getattr(sys.modules.get(f"pytensor.link.{module}.dispatch.basic"), name, None)
        if funcify is not None:
            own = funcify.registry.get(kind)
            found += [] if own is None else [own]
    return found


def _fixed_name(value: Any) -> str | None:
    """Where an installed package or this project has a class, function or module; None for what is in neither."""
    if isinstance(value, ModuleType):
        module, name = value.__name__, ""
    else:
        module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str) or not _is_fixed(module):
        return None
    found = sys.modules.get(module)
    for part in filter(None, name.split(".")):
        found = getattr(found, part, None)
    if found is not value:
        return None
    top = module.partition(".")[0]
    return f"{module}:{name}:{code_hash(top) if top in PACKAGES else ''}"


@cache
def _is_fixed(module: str) -> bool:
    """Whether a module's code follows from the versions that are installed, or from this project's own hash."""
    top = module.partition(".")[0]
    if top in PACKAGES or top in sys.stdlib_module_names:
        return True
    file = getattr(sys.modules.get(top), "__file__", None)
    paths = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    return file is not None and (
        any(Path(file).is_relative_to(path) for path in paths if path)
        or re.search(r"[/\\](site|dist)-packages[/\\]", file) is not None
    )
