"""The memory that a graph's arrays take while it runs op by op, each freed after its last use."""

from __future__ import annotations

from collections.abc import Callable

from xarr.ir.graph import Graph, Node, element_types
from xarr.ir.ops.movement import BroadcastInDim, Reshape, Reverse, Slice, Transpose
from xarr.ir.types import Type
from xarr.records import record

#: What gives another view of an array, which then lives as long as the view.
_VIEWS = (BroadcastInDim, Reshape, Reverse, Slice, Transpose)


@record
class Peak:
    """Bytes in use at once at most, and those of the arguments among them, which the caller holds."""

    total: int
    arguments: int


def shown_bytes(count: int) -> str:
    """`12 B`, `1.2 kB`, `1.2 MB`, `1.2 GB`."""
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} B"


def nbytes(type: Type) -> int:
    """Bytes of the arrays of a type; sizes that are not known count with their bounds."""
    return sum(each.nbytes for each in element_types(type))


def peak(graph: Graph, inside: Callable[[Node], int]) -> Peak:
    """The most memory in use at once; `inside` says what an op needs besides operands and results."""
    owner = _owners(graph)
    last: dict[Node, int] = {}
    for place, node in enumerate(graph.nodes):
        last.update((owner[each], place) for each in (node, *node.operands))
    arguments = sum(nbytes(node.type) for node in graph.parameters)
    kept = {owner[node] for node in graph.results}.union(graph.parameters)
    in_use = most = arguments
    for place, node in enumerate(graph.nodes):
        if owner[node] is node and node not in graph.parameters:
            in_use += nbytes(node.type)
        most = max(most, in_use + inside(node))
        done = {owner[each] for each in (node, *node.operands)} - kept
        in_use -= sum(nbytes(each.type) for each in done if last[each] == place)
    return Peak(most, arguments)


def _owners(graph: Graph) -> dict[Node, Node]:
    """For each node the one whose memory its value lies in."""
    found = {node: node for node in graph.parameters}
    for node in graph.nodes:
        is_view = isinstance(node.op, _VIEWS) or node.op.result_number(node) is not None
        found[node] = found[node.operands[0]] if is_view else node
    return found
