"""Compute with numbers of less than 8 bits by way of a wider type: backends only hold, move and convert them."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from xarr.dtypes import SUB_BYTE
from xarr.ir import ops
from xarr.ir.graph import Graph, Node
from xarr.ir.op import Op
from xarr.ir.rewriting import rewritten_throughout
from xarr.ir.types import TensorType, Type

#: What computes with elements; all other ops hand them on, or leave it to the computations that they carry.
_COMPUTING: Final = (ops.Elementwise, ops.Clamp, ops.Iota)


def widen(graph: Graph) -> Graph:
    """`graph` with each operation on elements of less than 8 bits done in the wider type; itself without any.

    Results become integers modulo 2 ** bits again, and floats the nearest ones, as XLA does it.
    """
    dtypes = {type.dtype for type in graph.types if isinstance(type, TensorType)}
    return graph if dtypes.isdisjoint(SUB_BYTE) else rewritten_throughout(graph, _widen)


def _is_narrow(type: Type) -> bool:
    return isinstance(type, TensorType) and type.dtype in SUB_BYTE


def _widen(node: Node, operands: tuple[Node, ...]) -> Node | None:
    op = node.op
    if not isinstance(op, _COMPUTING) or not any(map(_is_narrow, (node.type, *map(_type, operands)))):
        return None
    widened = node.rebuilt(tuple([_wide(each) for each in operands]), _of_wide(op))
    return Node(ops.Convert(node.dtype), (widened,)) if _is_narrow(node.type) else widened


def _type(node: Node) -> Type:
    return node.type


def _of_wide(op: Op) -> Op:
    return replace(op, type=op.type.with_dtype(SUB_BYTE[op.type.dtype])) if isinstance(op, ops.Iota) else op


def _wide(node: Node) -> Node:
    return Node(ops.Convert(SUB_BYTE[node.dtype]), (node,)) if _is_narrow(node.type) else node
