"""Passes that make a cipher one element-wise operation, so that it is a part of the loops that use its bits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np

from xarr.ir import ops
from xarr.ir.graph import Graph, Node
from xarr.ir.op import Op
from xarr.ir.ops.ciphers import COST, U64, PhiloxPair, ThreefryBits, cipher_of


def by_words(graph: Graph, least: int) -> Graph:
    """`graph` with ciphers worth `least` instructions as two operations, one for each result.

    For loops that compute what both have in common once.
    """
    if not _has_calls(graph):
        return graph

    def replacement(node: Node) -> tuple[Node, Op] | None:
        found = _result(node)
        if found is None or _size(found[0]) * COST < least:
            return None
        if cipher_of(found[0]) == "philox4x32":
            return found[0], PhiloxPair(found[1])
        return found[0], ThreefryBits(("first", "second")[found[1]])

    return _replaced(graph, replacement)


def by_pairs(graph: Graph) -> Graph:
    """`graph` with Threefry as one operation where both words are used for one thing only."""
    if not _has_calls(graph):
        return graph
    uses = Counter(operand for node in graph.nodes for operand in node.operands)
    uses.update(graph.results)

    def replacement(node: Node) -> tuple[Node, Op] | None:
        found = _pair(node)
        if found is None or uses[found[0]] != 2 or any(uses[word] != 1 for word in found[1]):
            return None
        joined = "joined" if _result(found[1][0]) == (found[0], 0) else "swapped"
        return found[0], ThreefryBits("xor" if isinstance(node.op, ops.Xor) else joined)

    return _replaced(graph, replacement)


def _has_calls(graph: Graph) -> bool:
    """Whether there may be a cipher, which is a call, so that most graphs are not looked through."""
    return ops.Call in graph.op_classes


def _replaced(graph: Graph, replacement: Callable[[Node], tuple[Node, Op] | None]) -> Graph:
    new: dict[Node, Node] = {}
    for node in graph.nodes:
        found = replacement(node)
        operands, op = (node.operands, node.op) if found is None else (found[0].operands, found[1])
        operands = tuple(new.get(operand, operand) for operand in operands)
        if op is not node.op or any(a is not b for a, b in zip(operands, node.operands, strict=True)):
            new[node] = node.rebuilt(operands, op)
    if not new:
        return graph
    return Graph(graph.parameters, [new.get(node, node) for node in graph.results], graph.name)


def _result(node: Node) -> tuple[Node, int] | None:
    """The call of a cipher that a node takes a result of, and which one."""
    if not isinstance(node.op, ops.GetTupleElement) or cipher_of(node.operands[0]) is None:
        return None
    return node.operands[0], node.op.index


def _pair(node: Node) -> tuple[Node, tuple[Node, Node]] | None:
    """The call of Threefry of which a node combines both words, and these."""
    if isinstance(node.op, ops.Xor):
        first, second = node.operands
    elif isinstance(node.op, ops.Or) and node.dtype == U64 and isinstance(node.operands[0].op, ops.ShiftLeft):
        high, low = node.operands
        wide, count = high.operands
        if not _is_full_of(32, count) or not all(isinstance(each.op, ops.Convert) for each in (wide, low)):
            return None
        first, second = wide.operands[0], low.operands[0]
    else:
        return None
    both = [_result(each) for each in (first, second)]
    if both[0] is None or both[1] is None or both[0][0] is not both[1][0]:
        return None
    is_threefry = cipher_of(both[0][0]) == "threefry2x32"
    return (both[0][0], (first, second)) if is_threefry and both[0][1] != both[1][1] else None


def _is_full_of(number: int, node: Node) -> bool:
    while isinstance(node.op, ops.BroadcastInDim):
        (node,) = node.operands
    return isinstance(node.op, ops.Constant) and bool(np.all(node.op.array == number))


def _size(call: Node) -> int:
    return call.operands[-1].tensor_type.size
