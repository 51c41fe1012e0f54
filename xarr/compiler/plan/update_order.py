"""The order of a loop's body: what reads an array comes before its update, which then needs no copy.

A swap of two elements, `x.at[i].set(x[j]).at[j].set(x[i])`, is written with a read behind the first update.
"""

from __future__ import annotations

from collections.abc import Sequence

from xarr.compiler.passes.checks import checks_indices
from xarr.compiler.plan.overwriting import updated_array
from xarr.compiler.while_loops.loop_invariants import is_quiet
from xarr.ir.graph import Graph, Node
from xarr.ir.operands_first import reach
from xarr.ir.rewriting import find_users
from xarr.ir.types import TensorType


def reads_before_updates(graph: Graph) -> Sequence[Node]:
    """The nodes of a graph, reads of each updated array before the update, where no read needs what is updated.

    What is moved to the front runs without an effect but checks of indices, in their order, and takes no more memory
    than the array.
    """
    nodes = graph.nodes
    updates = [(node, array) for node in nodes if (array := updated_array(node)) is not None]
    if not updates:
        return nodes
    users = find_users(graph)
    # So far apart that all others fit in front of a node.  Updates never move.
    distance = len(nodes) + 1
    positions = {node: k * distance for k, node in enumerate(nodes)}
    for update, array in updates:
        first = positions[update] - len(nodes)
        for k, node in enumerate(_list_moved_reads(positions, update, array, users)):
            positions[node] = first + k
    return sorted(nodes, key=positions.__getitem__)


def _list_moved_reads(
    positions: dict[Node, int], update: Node, array: Node, users: dict[Node, list[Node]]
) -> list[Node]:
    """The reads of the array of an update behind it, and what these need, in order; none if some of it has to stay."""
    index = positions[update]
    reads = [node for node in _readers(array, users) if positions[node] > index]
    needed = _list_needed(reads, positions, update) if reads else set()
    last = max([positions[node] for node in needed if not is_quiet(node.op)], default=index)
    if last > index:
        before = [node for node, k in positions.items() if index < k <= last and not is_quiet(node.op)]
        needed = _list_needed([*reads, *before], positions, update)
    if not needed:
        return []
    own = [node for node in needed if not node.op.is_view]
    if not all(isinstance(node.type, TensorType) and _may_move(node) for node in own):
        return []
    if sum(node.tensor_type.nbytes for node in own) > array.tensor_type.nbytes:
        return []
    return sorted(needed, key=positions.__getitem__)


def _may_move(node: Node) -> bool:
    """Whether a node does nothing but check indices, and writes over no array."""
    return checks_indices(node) or (is_quiet(node.op) and updated_array(node) is None)


def _readers(array: Node, users: dict[Node, list[Node]]) -> list[Node]:
    """The nodes that read an array, and its views, which others read."""
    readers, stack = [], [array]
    while stack:
        for user in users.get(stack.pop(), ()):
            readers.append(user)
            if user.op.is_view:
                stack.append(user)
    return readers


def _list_needed(reads: Sequence[Node], positions: dict[Node, int], update: Node) -> set[Node]:
    """The nodes behind an update that reads need, themselves too; none if one needs the update."""

    def is_behind(node: Node) -> bool:
        return positions.get(node, -1) > positions[update]

    reached = set(reach(reads, lambda node: node.operands if is_behind(node) else ()))
    return set() if update in reached else set(filter(is_behind, reached))
