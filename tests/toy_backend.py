"""A backend in an afternoon: arrays of float64 and bool as plain Python lists."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar

import numpy as np

from xarr.backend import AbstractBackend
from xarr.errors import BackendError
from xarr.ir import ops
from xarr.ir.graph import Graph, Node
from xarr.ir.op import Op
from xarr.ir.types import TensorType

DTYPES = (np.dtype(np.float64), np.dtype(np.bool_))


@dataclass(frozen=True)
class Buffer:
    """The elements in row-major order, and the type that says which shape they have."""

    type: TensorType
    elements: list[Any]


# --- 1. What each op does: rule(node, *buffers) -> elements ----------------------------------------

Rule = Callable[..., list[Any]]


def elementwise(function: Callable[..., Any]) -> Rule:
    return lambda node, *operands: list(map(function, *[operand.elements for operand in operands]))


def constant(node: Node) -> list[Any]:
    return list(node.op.array.reshape(-1).tolist())  # type: ignore[attr-defined]


def reshape(node: Node, operand: Buffer) -> list[Any]:
    return operand.elements


def broadcast_in_dim(node: Node, operand: Buffer) -> list[Any]:
    dims, sizes = node.op.broadcast_dimensions, operand.type.shape  # type: ignore[attr-defined]
    elements = []
    for index in product(*map(range, node.shape)):
        position = 0
        for dim, size in zip(dims, sizes, strict=True):
            position = position * size + (index[dim] if size > 1 else 0)
        elements.append(operand.elements[position])
    return elements


def maximum(x: float, y: float) -> float:
    return x + y if math.isnan(x) or math.isnan(y) else max(x, y)


def minimum(x: float, y: float) -> float:
    return x + y if math.isnan(x) or math.isnan(y) else min(x, y)


RULES: dict[type[Op], Rule] = {
    ops.Add: elementwise(operator.add),
    ops.BroadcastInDim: broadcast_in_dim,
    ops.Constant: constant,
    ops.Maximum: elementwise(maximum),
    ops.Minimum: elementwise(minimum),
    ops.Multiply: elementwise(operator.mul),
    ops.Negate: elementwise(operator.neg),
    ops.Reshape: reshape,
    ops.Subtract: elementwise(operator.sub),
}


# --- 2. A program: run the nodes in order ------------------------------------------------------------


@dataclass(frozen=True)
class Program:
    """The nodes of a graph, operands before users."""

    graph: Graph

    @property
    def text(self) -> str:
        return "".join(f"{node.op.name} -> {node.type}\n" for node in self.graph.nodes)

    def __call__(self, *arguments: Buffer) -> tuple[Buffer, ...]:
        values = dict(zip(self.graph.parameters, arguments, strict=True))
        for node in self.graph.nodes:
            operands = [values[operand] for operand in node.operands]
            values[node] = Buffer(node.tensor_type, RULES[type(node.op)](node, *operands))
        return tuple(values[node] for node in self.graph.results)


# --- 3. The backend: what xarr asks for --------------------------------------------------------------


class Backend(AbstractBackend):
    """`xarr.use_backend("toy")` finds this class in a module called `xarr_toy`."""

    name: ClassVar[str] = "toy"

    def supports(self, op: type[Op]) -> bool:
        return op in RULES

    def compile(self, graph: Graph) -> Program:
        for node in graph.nodes:
            check(node.tensor_type)
        return Program(graph)

    def from_host(self, array: np.ndarray[Any, Any]) -> Buffer:
        type = check(TensorType(array.shape, array.dtype))
        return Buffer(type, array.reshape(-1).tolist())

    def to_host(self, buffer: Buffer) -> np.ndarray[Any, Any]:
        return np.array(buffer.elements, buffer.type.dtype).reshape(buffer.type.shape)


def check(type: TensorType) -> TensorType:
    if type.dtype not in DTYPES:
        wanted = "wanted float64 or bool elements; convert the array, e.g. x.astype('float64')"
        raise BackendError(f"backend 'toy' cannot hold {type.short()}: {wanted}")
    return type
