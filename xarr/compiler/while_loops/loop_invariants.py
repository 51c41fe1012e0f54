"""What every step of a loop computes anew from what never changes, computed once and carried along instead."""

from __future__ import annotations

from typing import Final, NamedTuple

from xarr.compiler.while_loops.loop_rewriting import carry
from xarr.ir import ops
from xarr.ir.constants import repeats_one
from xarr.ir.graph import Graph, Node
from xarr.ir.op import Op
from xarr.ir.types import TensorType


class HoistedLoop(NamedTuple):
    """A loop that carries more values, and the graph that computes these from what it carried before."""

    loop: ops.While
    initial: Graph


#: What reads a part of its first operand, and what goes through its operands again and again.
_PARTS: Final = (ops.DynamicSlice, ops.Gather)
_PRODUCTS: Final = (ops.Convolution, ops.DotGeneral)


def without_invariants(loop: ops.While, min_read: int | None = None) -> HoistedLoop | None:
    """The loop with such computations of arrays in front of it; None if there are none.

    min_read: only those of so many elements of which a step reads a part, but makes all of it, or which it multiplies.
    """
    body = loop.body
    invariants = _invariants(body)
    used = {operand for node in body.nodes if node not in invariants for operand in node.operands}
    used.update(body.results)
    for node in reversed(body.nodes):
        if node in used and node in invariants and repeats_one(node):
            used.remove(node)
            used.update(node.operands)
    moved = [node for node in body.nodes if node in used and invariants.get(node)]
    if min_read is not None:
        parts = {node.operands[0] for node in body.nodes if isinstance(node.op, _PARTS)}
        parts.update(each for node in body.nodes if isinstance(node.op, _PRODUCTS) for each in node.operands)
        # A view costs the same for each size.
        is_made = (node for node in moved if not node.op.is_view and node.tensor_type.size >= min_read)
        moved = [node for node in is_made if node in parts]
    if not moved:
        return None
    return HoistedLoop(carry(loop, moved), Graph(body.parameters, moved))


def _invariants(body: Graph) -> dict[Node, bool]:
    """The nodes that no step changes, and that may be computed where there is no step: whether arrays have a part."""
    pairs = zip(body.parameters, body.results, strict=True)
    fixed = [old for old, new in pairs if old is new and isinstance(old.type, TensorType)]
    known = {node: node.tensor_type.size > 1 for node in fixed}
    invariants: dict[Node, bool] = {}
    for node in body.nodes:
        if not isinstance(node.type, TensorType) or node.type.dynamic or not is_quiet(node.op):
            continue
        if all(operand in known for operand in node.operands):
            parts = (known[operand] for operand in node.operands)
            invariants[node] = known[node] = node.tensor_type.size > 1 or any(parts)
    return invariants


def is_quiet(op: Op) -> bool:
    """Whether it cannot be observed that an operation ran: it does nothing else, raises nothing and comes to an end."""
    inner = [node.op for graph in op.graphs for each in graph.walk() for node in each.nodes]
    return not any(
        not each.is_pure or isinstance(each, ops.Check | ops.CustomCall | ops.While) for each in (op, *inner)
    )
