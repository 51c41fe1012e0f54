"""Results of arrays without elements: initial values, padding, zeros, or what there was before.

A backend whose loops need elements runs graphs without such operands; the reference defines what their results are.
"""

from __future__ import annotations

from collections.abc import Sequence

from xarr.ir import ops
from xarr.ir.constants import full, spread
from xarr.ir.graph import Graph, Node, element_types
from xarr.ir.ops.control import pack_results
from xarr.ir.rewriting import rewritten_throughout
from xarr.ir.types import TensorType, Type


def without_empty_operands(graph: Graph) -> Graph:
    """`graph` with results that no element of some operand matters to as broadcasts and parts of others."""
    return rewritten_throughout(graph, _replace) if any(map(_is_empty, graph.types)) else graph


def _is_empty(type: Type) -> bool:
    return isinstance(type, TensorType) and 0 in type.shape


def _replace(node: Node, operands: tuple[Node, ...]) -> Node | None:
    has_elements = not all(map(_is_empty, element_types(node.type)))
    is_one_empty = has_elements and any(_is_empty(operand.type) for operand in operands)
    results = _results(node, operands) if is_one_empty else None
    return None if results is None else pack_results(results)


def _results(node: Node, operands: tuple[Node, ...]) -> Sequence[Node] | None:
    """The results of an operation of which an operand is empty; None where they depend on the others."""
    types = [type for type in element_types(node.type) if isinstance(type, TensorType)]
    match node.op:
        case ops.Reduce() | ops.ReduceWindow():
            return [
                spread(value, type.shape) for value, type in zip(operands[len(types) :], types, strict=True)
            ]
        case ops.SelectAndScatter():
            return [spread(operands[2], types[0].shape)]
        case ops.Pad():
            return [spread(operands[1], types[0].shape)]
        case ops.DotGeneral() | ops.Convolution():
            return [full(0, types[0].shape, types[0].dtype)]
        # Where indices alone are empty, no index says where the updates go: each goes to the beginning.
        case ops.Scatter() if _is_empty(operands[-1].type):
            return operands[: len(types)]
        case ops.DynamicUpdateSlice():
            return operands[:1]
        case ops.Concatenate():
            parts = tuple([operand for operand in operands if not _is_empty(operand.type)])
            return [parts[0] if len(parts) == 1 else Node(node.op, parts)]
        case _:
            return None
