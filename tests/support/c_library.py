"""The library of the toy engine of c_engine.py, the reference interpreter: it gets only what has a reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final

from xarr.backend import get
from xarr.compiler.schedules.serial.builders import RULES
from xarr.dtypes import SUB_BYTE
from xarr.ir import ops
from xarr.ir.graph import Graph, Node, element_types
from xarr.ir.op import Op
from xarr.ir.types import TensorType, TupleType

#: Whole operations that a library has.
OPERATIONS: Final[dict[type[Op], str]] = {
    ops.Sort: "a sort: the definition's merges show where the comparator is no order",
    ops.Fft: "a transform",
    ops.Rng: "random numbers of the host",
    ops.CustomCall: "a function of the host",
    ops.OptimizationBarrier: "a tuple as it is",
    **dict.fromkeys(
        (
            ops.Cholesky,
            ops.Eig,
            ops.Eigh,
            ops.Geqrf,
            ops.HouseholderProduct,
            ops.Lu,
            ops.Svd,
            ops.TriangularSolve,
        ),
        "a factorisation",
    ),
}
#: How many programs of which operation were left to it, and why.
CALLS: Counter[tuple[str, str]] = Counter()


def reasons(node: Node) -> Iterator[str]:
    """Why no loop program computes an operation."""
    op = node.op
    types = [each for x in (node, *node.operands) for each in element_types(x.type)]
    if type(op) in OPERATIONS:
        yield OPERATIONS[type(op)]
    if any(isinstance(each, TensorType) and 0 in each.shape for each in types):
        yield "arrays without elements"
    if any(isinstance(each, TensorType) and each.dtype in SUB_BYTE for each in types):
        yield "elements of less than a byte"
    if isinstance(op, ops.Gather) and 0 in op.slice_sizes:
        yield "windows without elements"
    if not all(_is_expression(each) for graph in op.graphs for each in graph.nodes):
        yield "a computation that is more than an expression of scalars"
    if not op.graphs and not op.moves and type(op) not in RULES:
        yield "an element-wise operation without a formula for this type"


def _is_expression(node: Node) -> bool:
    return type(node.op) not in RULES and not (
        node.op.graphs or isinstance(node.type, TupleType) or node.shape
    )


def library_program(graph: Graph) -> Callable[..., Any]:
    """A graph of one operation as the library computes it; there must be a reason for it."""
    (node,) = graph.results
    reason = next(reasons(node), None)
    assert reason is not None, f"no loop program, and no reason: {node.op.name} of {node.operands}"
    CALLS[node.op.name, reason] += 1
    return get("reference").compile(graph)
