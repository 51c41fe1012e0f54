"""Which arrays of a program share memory with no other one, once it has run."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from xarr.compiler.plan.overwriting import is_carried_through, is_update
from xarr.ir import ops
from xarr.ir.graph import Graph, Node

#: The classes of the ops whose results may be arrays that nothing else shares.
MAKERS: Final = frozenset({ops.DynamicUpdateSlice, ops.Fusion, ops.NativeWhile})


def unshared(graph: Graph) -> frozenset[Node]:
    """The parameters and results whose memory no other of them has once a program of `graph` has run.

    A result among them is made by a group, a native loop or an update, in new memory or over an operand that nothing
    else needs; and there is no view of any, nor has code outside seen it.
    """
    # No product is a view of an operand.
    elsewhere = _seen_elsewhere(graph, ops.Fusion | ops.NativeWhile | ops.DotGeneral)
    count = Counter(map(_array, graph.results))
    seen = {*map(_array, elsewhere), *(array for array, times in count.items() if times > 1)}
    held = elsewhere.union(graph.results)  # who holds a tuple holds its arrays
    made = {
        node
        for node in graph.results
        if _is_made_here(node)
        and _array(node) not in seen
        and not (isinstance(node.op, ops.GetTupleElement) and node.operands[0] in held)
    }
    return frozenset(made.union(set(graph.parameters) - held))


def _array(node: Node) -> tuple[Node, object]:
    """What equal nodes show the same array by: of a loop the value that its body gives, else a part or all."""
    if not isinstance(node.op, ops.GetTupleElement):
        return node, None
    source, index = node.operands[0], node.op.index
    return source, source.op.body.results[index] if isinstance(source.op, ops.NativeWhile) else index


def _seen_elsewhere(graph: Graph, makes_new: Any) -> set[Node]:
    """Nodes that others read than updates and ops of the classes `makes_new`, or that one of these shows.

    makes_new: ops no result of which is a view of an operand, but for what a loop carries through.
    """
    shared: set[Node] = set()
    for node in graph.nodes:
        if not (isinstance(node.op, makes_new | ops.GetTupleElement) or is_update(node)):
            shared.update(node.operands)
        elif len(set(node.operands)) < len(node.operands):
            shared.update(each for each in node.operands if node.operands.count(each) > 1)
        elif (shown := _carried_through(node)) is not None:
            shared.add(shown)
    return shared


def _carried_through(node: Node) -> Node | None:
    """The operand of a native loop that a node shows, since no step changes it; None if it shows another array."""
    if not isinstance(node.op, ops.GetTupleElement) or not isinstance(
        loop := node.operands[0].op, ops.NativeWhile
    ):
        return None
    index = node.op.index
    return node.operands[0].operands[index] if is_carried_through(loop, index) else None


def _is_made_here(node: Node) -> bool:
    """Whether a node is a new array that a group, a native loop or an update makes."""
    if isinstance(node.op, ops.GetTupleElement):
        made = node.operands[0].op
        if isinstance(made, ops.NativeWhile):
            return _carried_through(node) is None
        return isinstance(made, ops.Fusion) and made.describe is not None
    return is_update(node) or (isinstance(node.op, ops.Fusion) and node.op.describe is not None)
