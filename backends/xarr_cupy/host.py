"""The host's share: which steps of a plan leave the device, and why.  Nothing else does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from xarr.backend import get
from xarr.compiler.schedules.gpu.builders import RULES
from xarr.errors import BackendError
from xarr.ir import ops
from xarr.ir.graph import Graph, Node, element_types, parameter
from xarr.ir.op import Op
from xarr.ir.types import TensorType, TupleType

#: Whole operations that the NumPy backend computes, which no library of the GPU does.
OPERATIONS: Final[dict[type[Op], str]] = {
    ops.Rng: "random numbers of the host's generators",
    ops.CustomCall: "functions of the host, and checks of indices",
    ops.Check: "checks, whose errors are Python's",
    ops.OptimizationBarrier: "barriers, which compute nothing",
    **dict.fromkeys(
        (
            *(ops.Cholesky, ops.Eig, ops.Eigh, ops.Geqrf, ops.HouseholderProduct, ops.Lu),
            *(ops.Svd, ops.TriangularSolve),
        ),
        "factorisations and systems of element types that cuBLAS and cuSOLVER lack",
    ),
}
#: What is asked of an operation, where its class is not in the table.
EMPTY: Final = "arrays without elements, where a result with elements depends on another operand"
COMPUTATION: Final = "a computation that is more than an expression of scalars"
FORMULA: Final = "an element-wise operation without a formula for this type"
BATCHES: Final = "whether a loop goes on, after each batch of steps"
#: The words of steps whose numbers the host looks at, to know what comes next.
CONTROL: Final = {
    "loop": "the condition of a loop, after each iteration",
    "launch loop": BATCHES,
    "branch": "the number of a branch",
}
#: How many steps of which operation were left to the host, and why.
CALLS: Counter[tuple[str, str]] = Counter()


def reasons(node: Node) -> Iterator[str]:
    """Why no kernel computes an operation."""
    op = node.op
    types = [each for x in (node, *node.operands) for each in element_types(x.type)]
    if type(op) in OPERATIONS:
        yield OPERATIONS[type(op)]
    is_empty = any(isinstance(each, TensorType) and 0 in each.shape for each in types)
    if is_empty or (isinstance(op, ops.Gather) and 0 in op.slice_sizes):
        yield EMPTY
    if not all(_is_expression(each) for graph in op.graphs for each in graph.nodes):
        yield COMPUTATION
    if not op.graphs and type(op) not in RULES and (isinstance(op, ops.Iota) or not op.moves):
        yield FORMULA


def _is_expression(node: Node) -> bool:
    return type(node.op) not in RULES and not (
        node.op.graphs or isinstance(node.type, TupleType) or node.shape
    )


def compute(node: Node, arrays: list[np.ndarray[Any, Any]]) -> tuple[Any, ...]:
    """The results of an operation on arrays of the host.  BackendError if there is no reason to compute it there."""
    reason = next(reasons(node), None)
    if reason is None:
        operands = ", ".join(operand.type.short() for operand in node.operands)
        raise BackendError(f"backend 'cupy' has no kernel for {node.op.name} of ({operands})")
    CALLS[node.op.name, reason] += 1
    operands_of = [parameter(operand.type) for operand in node.operands]
    graph = Graph(operands_of, [Node(node.op, tuple(operands_of))])
    return tuple(get("numpy").compile(graph)(*arrays))
