"""Parts of the graphs of tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from xarr import backend
from xarr.compiler.pipeline import make_program
from xarr.ir import graph as graphs, ops
from xarr.ir.graph import Graph, Node, parameter
from xarr.ir.op import Op
from xarr.ir.types import TensorType, Type

Array = np.ndarray[Any, Any]
Literal = Sequence[Any]


def tensor(dtype: Any, *shape: int) -> TensorType:
    return TensorType(shape, np.dtype(dtype))


def node(op: Op, *operands: Node) -> Node:
    return Node(op, operands)


def graph(function: Callable[..., Any], *types: Type, name: str = "main") -> Graph:
    """A graph of what `function` of nodes returns, one node or a tuple of them, over `types`."""
    parameters = [parameter(type) for type in types]
    results = function(*parameters)
    return Graph(parameters, results if isinstance(results, tuple) else (results,), name)


def constant(value: Any, dtype: Any = np.float32) -> Node:
    return node(ops.Constant.of(np.array(value, dtype)))


def data(type: Type, value: Any) -> Node:
    """A leaf with a value of the NumPy backend."""
    return graphs.data(type, value, backend.get("numpy"))


def part(index: int, whole: Node) -> Node:
    return node(ops.GetTupleElement(index), whole)


def parts(count: int, whole: Node) -> tuple[Node, ...]:
    return tuple(part(index, whole) for index in range(count))


def add(x: Node, y: Node) -> Node:
    return node(ops.Add(), x, y)


def less(x: Node, y: Node) -> Node:
    return node(ops.Compare("LT"), x, y)


def scalars(function: Callable[..., Any], *dtypes: Any, name: str = "main") -> Graph:
    """A graph over scalars: a combiner, a comparator, the body of a map."""
    return graph(function, *[tensor(dtype) for dtype in dtypes], name=name)


def on_numpy(graph: Graph, *inputs: Array) -> list[Array]:
    """The results of the NumPy backend."""
    return [np.asarray(value) for value in make_program(graph, backend.get("numpy")).program(*inputs)]


@dataclass(frozen=True)
class Case:
    """A graph and inputs for it; `expected` is None where the NumPy backend is what to compare with."""

    graph: Graph
    inputs: tuple[Array, ...]
    expected: tuple[Any, ...] | None = None
