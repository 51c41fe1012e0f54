"""Products and convolutions of narrow numbers by way of types in which a BLAS, and loops in lanes, compute them.

    a @ b       a, b: float16     convert(convert(a, float32) @ convert(b, float32), float16)
    a @ b       a, b: int8        convert(convert(a, float32) @ convert(b, float32), int8), by way of int32

Sums of narrow floats are formed in float32 and rounded once, wherever that is done.  Sums of integers become those of
floats where each number on the way is exact.  The conversions join the groups around.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import Final

import numpy as np

from xarr.compiler.fusion.window_work import sum_dtype, work
from xarr.compiler.loop_ir.scalars import DType
from xarr.compiler.schedule import Schedule, kind_around
from xarr.dtypes import BOOL, FLOAT, INTEGER, UNSIGNED
from xarr.ir import ops
from xarr.ir.constants import full
from xarr.ir.graph import Graph, Node
from xarr.ir.rewriting import rewritten_throughout

#: Floats, the bits of the integers that they hold exactly, and a type of such integers.
_EXACT: Final = (
    (np.dtype(np.float32), 24, np.dtype(np.int32)),
    (np.dtype(np.float64), 53, np.dtype(np.int64)),
)


def widen_products(graph: Graph, schedule: Callable[[], Schedule]) -> Graph:
    """`graph` with products of narrow numbers as such of wider ones, in the graphs of its operations too.

    Those that loops of `schedule` compute as they are stay.
    """
    if graph.op_classes.isdisjoint((ops.DotGeneral, ops.Convolution)):
        return graph
    converted: dict[tuple[Node, DType], Node] = {}

    def rule(node: Node, operands: tuple[Node, ...]) -> Node | None:
        op = node.op
        if not isinstance(op, ops.DotGeneral | ops.Convolution):
            return None
        types = _wide_types(node, op)
        if types is None or (work(node) and schedule().takes(kind_around(node), node)):
            return None
        wide, whole = types
        factors = [converted.setdefault((each, wide), _convert(each, wide)) for each in operands]
        sums = node.rebuilt(tuple(factors), replace(op, dtype=wide))
        if node.dtype in BOOL:
            # A sum of ones may round but never becomes zero.
            return Node(ops.Compare("NE"), (sums, full(0, node.shape, wide)))
        return _convert(_convert(sums, whole), node.dtype)

    return rewritten_throughout(graph, rule)


def _convert(node: Node, dtype: DType) -> Node:
    return node if node.dtype == dtype else Node(ops.Convert(dtype), (node,))


def _wide_types(node: Node, op: ops.DotGeneral | ops.Convolution) -> tuple[DType, DType] | None:
    """The types in which sums are formed, and finished; None if they are those of the operands, or not exact."""
    dtype, result = node.operands[0].dtype, node.dtype
    if dtype in BOOL and result in BOOL:
        return _EXACT[0][0], result
    if dtype in INTEGER and result in INTEGER:
        largest = _terms(node, op) << (2 * 8 * dtype.itemsize - (0 if dtype in UNSIGNED else 2))
        return next(((wide, whole) for wide, bits, whole in _EXACT if largest <= 1 << bits), None)
    if dtype not in FLOAT | INTEGER | BOOL or result not in FLOAT:
        return None
    wide = sum_dtype(dtype, result)
    return None if wide == dtype == result else (wide, result)


def _terms(node: Node, op: ops.DotGeneral | ops.Convolution) -> int:
    """Products of which each sum is made, at most."""
    if isinstance(op, ops.DotGeneral):
        return prod(node.operands[0].shape[axis] for axis in op.lhs_contracting_dimensions)
    return prod(node.operands[1].shape[axis] for axis in op.rhs_spec[1:])
