"""Single ops and small graphs, run on a backend: what the tests of backends are made of."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from xarr.backend import get
from xarr.compiler.pipeline import make_program
from xarr.ir.graph import Graph, Node, parameter
from xarr.ir.op import Op
from xarr.ir.types import TensorType, Type
from xarr.runtime import trace_to_graph

#: Backends whose results are compared: those that are always there, and the one that the run is about.
BACKENDS: Final = tuple(dict.fromkeys(("numpy", "reference", os.environ.get("XARR_BACKEND", "numpy"))))


def type_of(array: Any) -> TensorType:
    return TensorType(np.shape(array), np.asarray(array).dtype)


def scalar(dtype: Any) -> TensorType:
    return TensorType((), np.dtype(dtype))


def run(op: Op, *arrays: Any, backend: str = "reference") -> Any:
    """The value of one op for these operands as a host array, or a tuple of them for several results."""
    engine, parameters = get(backend), [parameter(type_of(array)) for array in arrays]
    graph = Graph(parameters, [Node(op, tuple(parameters))]).verify()
    (value,) = make_program(graph, engine).program(*[engine.from_host(np.asarray(array)) for array in arrays])
    return tuple(map(engine.to_host, value)) if isinstance(value, tuple) else engine.to_host(value)


def graph(function: Callable[..., Sequence[Any]], *types: Type) -> Graph:
    """The graph of a function that maps arrays to a sequence of arrays by way of lax."""
    graph, captured = trace_to_graph.trace(function, types)
    assert not captured, "the function uses values from outside"
    return graph
