"""The digest of a PyMC model's graphs, whose pickles differ from process to process: operations, wiring and leaves."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import HasInnerGraph
from pytensor.graph.traversal import toposort
from pytensor.graph.utils import MetaObject
from pytensor.tensor.random.type import RandomType

from shannon_game.estimators.content import Reader, hash_parts

# what operations with a graph inside remember of having been compiled
_CACHES = {
    *("_fn", "_lop_op_cache", "_rop_op_cache", "_connection_pattern", "_cmodule_key", "_hash_inner_graph", "_name"),
    *("_fgraph", "fgraph", "_py_perform_fn", "_c_code", "prepare_node_called", "nodenames"),
}


class GraphReader(Reader):
    """Digests of values, variables among them; `leaves` are names, by id, of variables at which graphs end."""

    def __init__(self, leaves: Mapping[int, str]) -> None:
        super().__init__()
        self._variables = dict(leaves)
        self._n_unnamed = 0

    def _code(self, value: Any) -> Sequence[str | bytes]:
        parts = super()._code(value)
        # what Numba and JAX call in place of an operation's own code
        for module in ("numba", "jax"):
            funcify = getattr(sys.modules.get(f"pytensor.link.{module}.dispatch.basic"), f"{module}_funcify", None)
            own = None if funcify is None or not isinstance(value, type) else funcify.registry.get(value)
            parts = parts if own is None else [*parts, module, self.digest(own)]
        return parts

    def _object(self, value: Any) -> Sequence[str | bytes]:
        if isinstance(value, Variable):
            return self._graph([value], self._variables)
        if isinstance(value, FunctionGraph):
            return self._inner(value)
        if not isinstance(value, MetaObject):
            return super()._object(value)
        props = {name: getattr(value, name) for name in getattr(value, "__props__", ())}
        what = [self.digest(type(value))]
        if isinstance(value, HasInnerGraph):
            state = {name: one for name, one in vars(value).items() if name not in _CACHES | {"inputs", "outputs"}}
            return [*what, *self._inner(value.fgraph), *self._all([props, state])]
        # two of a library's that agree in these are merged by PyTensor itself
        complete = hasattr(value, "__props__") and self._fixed_name(type(value))
        return [*what, *self._all([props, {} if complete else getattr(value, "__dict__", {})])]

    def _inner(self, graph: Any) -> Sequence[str]:
        """A graph inside an operation, whose inputs have no names outside."""
        inputs = {id(one): f"inner {number}" for number, one in enumerate(graph.inputs)}
        return ["inner", *self._all([one.type for one in graph.inputs]), *self._graph(graph.outputs, inputs)]

    def _graph(self, outputs: Sequence[Any], known: dict[int, str]) -> list[str]:
        def of(variable: Any) -> str:
            if id(variable) not in known:
                known[id(variable)] = hash_parts(*self._leaf(variable))
            return known[id(variable)]

        for node in toposort(outputs):
            if id(node.outputs[0]) not in known:
                own = hash_parts(self.digest(node.op), *map(of, node.inputs))
                for number, one in enumerate(node.outputs):
                    known.setdefault(id(one), hash_parts(own, str(number), self.digest(one.type)))
        return ["graph", *map(of, outputs)]

    def _leaf(self, variable: Any) -> Sequence[str]:
        kind = self.digest(variable.type)
        if isinstance(variable, Constant):
            return ["constant", kind, self.digest(variable.data)]
        # the sampler's seed decides what random generators give
        if isinstance(variable, SharedVariable) and not isinstance(variable.type, RandomType):
            held = variable.get_value(borrow=True)  # type: ignore[no-untyped-call]
            return ["shared", kind, *self._all([variable.name, held])]
        self._n_unnamed += 1
        return ["input", kind, str(self._n_unnamed)]
