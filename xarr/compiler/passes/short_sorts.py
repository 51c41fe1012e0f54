"""Short rows of which one sorted element is wanted, such as medians of windows, by comparisons in a loop.

A library sorts a row after the other.  A network of comparisons, which are the same for every row, sorts as many rows
at once as there are lanes, reads them where they lie, and leaves out what the wanted element does not depend on.
"""

from __future__ import annotations

from collections.abc import Sequence

from xarr.compiler.target import Target
from xarr.dtypes import COMPLEX, INTEGER
from xarr.ir import ops
from xarr.ir.computations import lexicographic
from xarr.ir.graph import Graph, Node, rewritten
from xarr.ir.rewriting import find_users


def compare_short_rows(graph: Graph, target: Target) -> Graph:
    """The graph with the elements of sorted short rows by comparisons, where the row is sliced at one number alone.

    Rows are sorted as before, stably: -0 = +0, NaN last.
    """
    if ops.Sort not in graph.op_classes:
        return graph
    short = _short_sorts(graph, target)
    if not short:
        return graph
    networks: dict[Node, list[Node]] = {}

    def rule(node: Node, operands: tuple[Node, ...]) -> Node | None:
        if not isinstance(node.op, ops.Slice) or node.operands[0] not in short:
            return None
        (ordered,) = operands
        if ordered not in networks:
            networks[ordered] = _sorted_elements(ordered)
        axis = _axis_of(node.operands[0])
        return _take_rest(networks[ordered][node.op.start_indices[axis]], node.op, axis)

    return rewritten(graph, rule)


def _axis_of(node: Node) -> int:
    assert isinstance(node.op, ops.Sort)
    return node.op.dimension


def _short_sorts(graph: Graph, target: Target) -> set[Node]:
    """Sorts of one array of short rows, of which one element is sliced, and nothing else is read."""
    users = find_users(graph)
    return {
        node
        for node in graph.nodes
        if isinstance(node.op, ops.Sort)
        and _is_short(node, target)
        and node not in graph.results
        and _takes_one(node.op.dimension, users.get(node, ()))
    }


def _is_short(node: Node, target: Target) -> bool:
    op = node.op
    assert isinstance(op, ops.Sort)
    if len(node.operands) > 1 or node.operands[0].tensor_type.dynamic:
        return False
    (array,) = node.operands
    size, dtype = array.shape[op.dimension], array.dtype
    if dtype in COMPLEX or op.comparator != lexicographic([dtype], 1) or op.dimension == len(array.shape) - 1:
        return False
    # What fits into no group needs arrays between several, which may be larger than the rows.
    exchange = 2 if dtype in INTEGER else 6
    fits = exchange * size * (size - 1) // 2 + size <= target.max_group_members
    return 1 < size <= target.max_compared_row and (fits or array.tensor_type.nbytes <= target.spare_bytes)


def _takes_one(axis: int, users: Sequence[Node]) -> bool:
    numbers = set()
    for user in users:
        if not isinstance(user.op, ops.Slice) or user.shape[axis] != 1:
            return False
        numbers.add(user.op.start_indices[axis])
    return len(numbers) == 1


def _sorted_elements(node: Node) -> list[Node]:
    """The elements of each row in order: neighbours are exchanged until none is before the one in front of it."""
    op, (array,) = node.op, node.operands
    assert isinstance(op, ops.Sort)
    size = array.shape[op.dimension]
    elements = [_element(array, op.dimension, k) for k in range(size)]
    for last in range(size - 1, 0, -1):
        for k in range(last):
            elements[k : k + 2] = _in_order(*elements[k : k + 2])
    return elements


def _element(array: Node, axis: int, number: int) -> Node:
    joined = array.operands if isinstance(array.op, ops.Concatenate) and array.op.dimension == axis else ()
    if joined and all(operand.shape[axis] == 1 for operand in joined):
        return joined[number]
    starts, limits = [0] * len(array.shape), list(array.shape)
    starts[axis], limits[axis] = number, number + 1
    return Node(ops.Slice(tuple(starts), tuple(limits), (1,) * len(starts)), (array,))


def _in_order(first: Node, second: Node) -> list[Node]:
    """Both, exchanged where the second is less, or the first is NaN and the second is not."""
    if first.dtype in INTEGER:
        return [Node(op, (first, second)) for op in (ops.Minimum(), ops.Maximum())]
    is_number, is_right = Node(ops.Compare("EQ"), (second, second)), Node(ops.Compare("LE"), (first, second))
    is_wrong = Node(ops.And(), (is_number, Node(ops.Not(), (is_right,))))
    return [Node(ops.Select(), (is_wrong, second, first)), Node(ops.Select(), (is_wrong, first, second))]


def _take_rest(element: Node, op: ops.Slice, axis: int) -> Node:
    """Take what a slice takes along the other axes."""
    starts, limits = list(op.start_indices), list(op.limit_indices)
    starts[axis], limits[axis] = 0, 1
    return Node(ops.Slice(tuple(starts), tuple(limits), op.strides), (element,))
