"""Read StableHLO text and run it: programs exported by JAX and others, without JAX.

    module = xarr.stablehlo.load("model.mlir")
    y, = xarr.stablehlo.run(module, x)

The text is MLIR's, in the generic form, in the pretty forms, or in both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from xarr import backend as backends
from xarr.backend import AbstractBackend
from xarr.base.host_arrays import host_array
from xarr.base.names import public_names as _public_names
from xarr.base.typing import Array
from xarr.compiler.pipeline import make_program
from xarr.errors import BackendError, InputError, ParseError, ShapeError
from xarr.ir.device import Device
from xarr.ir.graph import Graph, Node, data
from xarr.ir.ops import Call, GetTupleElement
from xarr.ir.ops.control import unpack_results
from xarr.ir.stablehlo.graph_builder import Builder
from xarr.ir.stablehlo.parser import read_module
from xarr.ir.stablehlo.syntax_tree import SourceModule
from xarr.ir.types import TensorType, TupleType
from xarr.runtime.check_flags import read
from xarr.runtime.effects import add_ordered
from xarr.runtime.evaluation import execute, results_of
from xarr.runtime.handles import Handle, common_device, wrap
from xarr.runtime.live_values import live_leaf
from xarr.shapes import Shape


class Module:
    """The functions of a StableHLO module as graphs.

    * `name` - the module's, or None,
    * `functions` - name -> Graph, `main` first.  A function whose argument sizes are unknown
      (`tensor<?xf32>`) has no graph before `refine` gives it types.
    """

    def __init__(self, source: SourceModule) -> None:
        self._source = source
        self.name = source.name
        graphs = Builder(source, _fold).build()
        order = sorted(graphs, key=lambda name: name != "main")
        self.functions: Mapping[str, Graph] = MappingProxyType({name: graphs[name] for name in order})

    @property
    def main(self) -> Graph:
        """The function `main`."""
        return self.function("main")

    def function(self, name: str) -> Graph:
        """The function `name`.  ParseError if there is none, or if its sizes are unknown."""
        graph = self.functions.get(name)
        if graph is not None:
            return graph
        if name not in self._source.functions:
            raise ParseError(f"no function @{name}; the module has {', '.join(self._source.functions)}")
        function = self._source.functions[name]
        shown = ", ".join(str(argument.type) for argument in function.arguments)
        what = (
            "is declared without a body"
            if function.body is None
            else f"takes sizes that are unknown: ({shown})"
        )
        raise self._source.text.error(f"@{name} {what}; Module.refine gives it types", function.position)

    def refine(self, types: Sequence[TensorType | Shape | str], function: str = "main") -> Graph:
        """The function for arguments of these types, with every unknown size computed from theirs.

        types: one for each argument, a type or a shape such as "f32[8,4]".

        Raises ParseError where a size depends on the values of arguments, and where an assertion about sizes
        that JAX put into the module does not hold.
        """
        wanted = [type if isinstance(type, TensorType) else _type_of(type) for type in types]
        if function in self.functions and self.functions[function].parameter_types == tuple(wanted):
            return self.functions[function]
        if function not in self._source.functions or self._source.functions[function].body is None:
            return self.function(function)
        return Builder(self._source, _fold).refine(function, wanted)

    def __repr__(self) -> str:
        return f"<stablehlo.Module {self.name or ''} of {', '.join(self._source.functions)}>"


def _type_of(shape: Shape | str) -> TensorType:
    parsed = Shape.parse(shape) if isinstance(shape, str) else shape
    return TensorType(parsed.dimensions, parsed.dtype, parsed.dynamic_dimensions)


def parse(text: str) -> Module:
    """The module that `text` holds: MLIR with operations of StableHLO, CHLO and func.

    Raises ParseError with the line, the column and what was expected; one that lists everything xarr does not
    support, if there is something.
    """
    if not isinstance(text, str):
        raise InputError(f"parse wants the text of a module, got {type(text).__name__}; see stablehlo.load")
    return Module(read_module(text))


def load(path: str | Path) -> Module:
    """`parse` of a file, whose name is in the messages."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ParseError(
            f"{path} is not text: {error}; MLIR bytecode must be converted to text first"
        ) from None
    return Module(read_module(text, str(path)))


def run(
    module: Module | str, *inputs: Any, function: str = "main", backend: str | AbstractBackend | None = None
) -> list[Array]:
    """The results of a function of `module` (a Module, or text) for `inputs`.

    inputs: one for each argument, anything that `asarray` takes, of exactly the argument's shape and element
    type; a Python number takes the argument's.  backend: where to compute, else where the inputs live.

    Results are lazy as all Arrays are, but for those of modules with effects, such as collectives, which run now; a
    tuple gives its elements.  Raises ParseError for text, InputError
    for another number of inputs, ShapeError for inputs of other types.
    """
    parsed = module if isinstance(module, Module) else parse(module)
    device = _device(inputs, backend)
    wanted = _parameter_types(parsed, function, len(inputs))
    nodes = [_node(value, type, device) for value, type in zip(inputs, wanted, strict=True)]
    graph = parsed.refine([node.tensor_type for node in nodes], function)
    _check(function, graph, nodes)
    # Not inlined: evaluation settles nodes, and those of the module belong to it.
    node = Node(Call(graph), tuple(nodes), device=device)
    results = add_ordered(node) if node.op.is_ordered else unpack_results(node)
    return [wrap(leaf) for node in results for leaf in _leaves(node)]


def _device(inputs: Sequence[Any], backend: str | AbstractBackend | None) -> Device:
    chosen = backends.get(backend) if isinstance(backend, str) else backend
    own = common_device(inputs)
    if own is None or not own.is_committed:
        return (chosen or backends.default()).device()
    if chosen is not None and chosen.device() is not own:
        raise BackendError(f'run: an input lives on {own.name}; move it, e.g. x.to("{chosen.name}")')
    return own


def _parameter_types(module: Module, function: str, count: int) -> Sequence[Any]:
    if function not in module._source.functions:
        module.function(function)
    wanted = [argument.type for argument in module._source.functions[function].arguments]
    if len(wanted) != count:
        shown = ", ".join(map(str, wanted))
        raise InputError(f"run: @{function} takes {len(wanted)} inputs ({shown}), got {count}")
    return wanted


def _node(value: Any, wanted: Any, device: Device) -> Node:
    if isinstance(value, Handle):
        return value._node
    is_number = isinstance(value, bool | int | float | complex) and not isinstance(value, np.generic)
    array = host_array(value, wanted.dtype if is_number and hasattr(wanted, "dtype") else None)
    if isinstance(wanted, TensorType) and wanted.dynamic and _fits(array, wanted):
        return live_leaf(array, wanted, device)
    return data(TensorType(array.shape, array.dtype), device.backend.from_host(array), device)


def _fits(array: np.ndarray[Any, Any], type: TensorType) -> bool:
    """Whether `array` can be the live part of an array of a dynamic type."""
    sizes = type.dynamic or (False,) * type.rank
    return (
        array.dtype == type.dtype
        and array.ndim == type.rank
        and all(
            size <= bound if dynamic else size == bound
            for size, bound, dynamic in zip(array.shape, type.shape, sizes, strict=True)
        )
    )


def _check(function: str, graph: Graph, nodes: Sequence[Node]) -> None:
    for index, (wanted, node) in enumerate(zip(graph.parameter_types, nodes, strict=True)):
        if node.type is not wanted:
            raise ShapeError(
                f"run: input {index} of @{function} must be {wanted.short()}, got {node.type.short()}"
            )


def _leaves(node: Node) -> list[Node]:
    """An array itself; the arrays in a tuple, in order."""
    if not isinstance(node.type, TupleType):
        return [node]
    parts = [Node(GetTupleElement(index), (node,)) for index in range(len(node.type.elements))]
    return [leaf for part in parts for leaf in _leaves(part)]


def _fold(node: Node) -> np.ndarray[Any, Any]:
    """The value of a node that depends on no argument, computed on the default backend."""
    return _fold_graph(Graph((), (node,)))


@lru_cache(maxsize=256)
def _fold_graph(graph: Graph) -> np.ndarray[Any, Any]:
    backend = backends.default()
    compiled, device = make_program(graph, backend), backend.device()
    (node,) = results_of(compiled, graph.result_types, (0,), execute(compiled, ()), device)
    read(node)
    return backend.to_host(node.value)


__all__ = ["Module", "load", "parse", "run"]


def __dir__() -> list[str]:
    return _public_names(globals())
