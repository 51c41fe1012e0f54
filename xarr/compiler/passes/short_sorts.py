"""Sorts of which a few elements are wanted: medians of windows, `top_k`.

Short rows of which one sorted element is wanted are sorted by comparisons in a loop.

A library sorts a row after the other.  A network of comparisons, which are the same for every row, sorts as many rows
at once as there are lanes, reads them where they lie, and leaves out what the wanted element does not depend on.

Of vectors and rows of which only the first elements are wanted, each is looked for among those behind the one before:
a reduction in lanes takes as long as reading the keys.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from xarr.compiler.sort_keys import are_ranked, integer_keys, order_of, turn_negative_bits
from xarr.compiler.target import Target
from xarr.dtypes import COMPLEX, INTEGER
from xarr.ir import ops
from xarr.ir.computations import combiner, lexicographic
from xarr.ir.constants import constant, full
from xarr.ir.graph import Graph, Node, rewritten
from xarr.ir.rewriting import find_users
from xarr.ir.types import TensorType

_INT64: Final = np.dtype(np.int64)


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
    return node.op.expect(ops.Sort).dimension


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
    op = node.op.expect(ops.Sort)
    if len(node.operands) > 1 or node.operands[0].tensor_type.dynamic:
        return False
    (array,) = node.operands
    size, dtype = array.shape[op.dimension], array.dtype
    if dtype in COMPLEX or op.comparator != lexicographic([dtype], 1):
        return False
    if op.dimension == len(array.shape) - 1 and not _joined_elements(array, op.dimension):
        return False  # whose elements do not lie side by side with those of other rows
    return 1 < size <= target.max_compared_row


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


def _joined_elements(array: Node, axis: int) -> Sequence[Node]:
    """The arrays that a stack along an axis is made of; none if it is no stack."""
    joined = array.operands if isinstance(array.op, ops.Concatenate) and array.op.dimension == axis else ()
    return joined if all(operand.shape[axis] == 1 for operand in joined) else ()


def _element(array: Node, axis: int, number: int) -> Node:
    joined = _joined_elements(array, axis)
    if joined:
        return joined[number]
    return Node(ops.Slice.cut(array.shape, axis, number, number + 1), (array,))


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


# --- the first elements of rows ----------------------------------------------------------------------------------


def look_for_first_elements(graph: Graph, target: Target) -> Graph:
    """The graph with the first elements of sorted vectors one by one, where the others are not wanted.

    Of rows of an array too, if the elements are those that are compared, or say where they stand.
    """
    if ops.Sort not in graph.op_classes:
        return graph
    users = find_users(graph)
    sorts = [node for node in graph.nodes if isinstance(node.op, ops.Sort)]
    counts = {node: _count_first(node, users, graph.results) for node in sorts}
    few = {node for node, count in counts.items() if count and _are_few(node, count, users, target)}
    if not few:
        return graph
    firsts: dict[Node, list[_First]] = {}

    def rule(node: Node, operands: tuple[Node, ...]) -> Node | None:
        old, which = _sort_of(node.operands[0]) if isinstance(node.op, ops.Slice) else (node, 0)
        if old not in few or not isinstance(node.op, ops.Slice):
            return None
        new, _ = _sort_of(operands[0])
        if new not in firsts:
            firsts[new] = _first_elements(new, counts[old])
        axis = _axis_of(new)
        wanted = slice(
            *(each[axis] for each in (node.op.start_indices, node.op.limit_indices, node.op.strides))
        )
        parts = [_element_of(new, which, first) for first in firsts[new][wanted]]
        return parts[0] if len(parts) == 1 else Node(ops.Concatenate(axis), tuple(parts))

    return rewritten(graph, rule)


class _First(NamedTuple):
    """Where a first element of each row stands, and its key, of size 1 along the dimension that is sorted."""

    position: Node
    key: Node


def _sort_of(result: Node) -> tuple[Node, int]:
    """The operation of which a node is a result, and which one."""
    is_part = isinstance(result.op, ops.GetTupleElement)
    return (result.operands[0], result.op.index) if is_part else (result, 0)  # type: ignore[attr-defined]


def _count_first(node: Node, users: Mapping[Node, Sequence[Node]], results: Sequence[Node]) -> int:
    """The number of elements that are sliced from the front of all rows; 0 if something else uses a sort."""
    parts = [node] if isinstance(node.type, TensorType) else users.get(node, [])
    readers = [reader for part in parts for reader in users.get(part, [])]
    axis = _axis_of(node)
    is_known = all(part is node or isinstance(part.op, ops.GetTupleElement) for part in parts)
    if not is_known or any(each in results for each in (node, *parts)):
        return 0
    if not all(_slices_rows(each, axis) for each in readers):
        return 0
    return max([each.op.limit_indices[axis] for each in readers if isinstance(each.op, ops.Slice)], default=0)


def _slices_rows(node: Node, axis: int) -> bool:
    """Whether a node takes a part along an axis of all that there is along the others."""
    if not isinstance(node.op, ops.Slice) or not node.tensor_type.size:
        return False
    sizes = enumerate(zip(node.shape, node.operands[0].shape, strict=True))
    return all(part == whole for k, (part, whole) in sizes if k != axis)


def _are_few(node: Node, count: int, users: Mapping[Node, Sequence[Node]], target: Target) -> bool:
    """Whether so many elements of rows are looked for: their order is that of one number for each."""
    (*batch, size), types = node.operands[0].shape, [each.tensor_type for each in node.operands]
    if _axis_of(node) != len(batch) or any(type.dynamic for type in types):
        return False
    is_less = count <= target.max_first_elements and count * target.min_elements_behind <= size
    if batch and (not target.looks_for_firsts_of_rows or are_ranked(size, types[0].size, target)):
        return False
    if not is_less or _keys(node) is None:
        return False
    parts = [node] if isinstance(node.type, TensorType) else users.get(node, [])
    read = [_sort_of(part)[1] for part in parts if users.get(part)]
    return not batch or all(
        _stands_at(node.operands[which], len(batch)) or which == _compared_array(node) for which in read
    )


def _stands_at(array: Node, axis: int) -> bool:
    """Whether each element of an array says where it stands along an axis."""
    return isinstance(array.op, ops.Iota) and array.op.dimension == axis


def _compared_array(node: Node) -> int | None:
    """The operand of a sort whose elements are compared as they stand."""
    order = order_of(node.op.expect(ops.Sort).comparator)
    return None if order is None else order.array


def _keys(node: Node) -> Node | None:
    """An int64 for each element, in ascending order where the elements are in that of the sort; None without one."""
    order = order_of(node.op.expect(ops.Sort).comparator)
    (kind, *others) = [key.dtype for key in order.key.results] if order is not None else [np.dtype(bool)]
    if others or kind.kind not in "iuf" or kind == np.uint64 or kind.itemsize < 4:
        return None
    keys = integer_keys(node)
    return None if keys is None else keys[0]


def _element_of_key(keys: Node, dtype: np.dtype[Any], is_descending: bool) -> Node:
    """The elements, which are compared as they stand, of which these are the keys."""
    keys = Node(ops.Not(), (keys,)) if is_descending else keys
    if dtype.kind != "f":
        return keys if dtype == _INT64 else Node(ops.Convert(dtype), (keys,))
    kind = np.dtype(f"i{dtype.itemsize}")
    bits = keys if kind == _INT64 else Node(ops.Convert(kind), (keys,))
    return Node(ops.BitcastConvert(dtype), (turn_negative_bits(bits),))


def _first_elements(node: Node, count: int) -> list[_First]:
    """The first elements of each row of a sort, each behind the one before."""
    keys, axis = _keys(node), _axis_of(node)
    assert keys is not None, "it is one of those that are few"
    numbers = Node(ops.Iota(TensorType(keys.shape, _INT64), axis))
    most = full(np.iinfo(_INT64).max, keys.shape, _INT64)
    firsts: list[_First] = []
    is_left: Node | None = None
    for _ in range(count):
        least = _least(keys if is_left is None else Node(ops.Select(), (is_left, keys, most)))
        is_least = Node(ops.Compare("EQ"), (keys, least))
        fits = is_least if is_left is None else Node(ops.And(), (is_least, is_left))
        at = _least(Node(ops.Select(), (fits, numbers, most)))
        firsts.append(_First(_element(at, axis, 0), _element(least, axis, 0)))
        is_behind = Node(ops.And(), (is_least, Node(ops.Compare("GT"), (numbers, at))))
        is_left = Node(ops.Or(), (Node(ops.Compare("GT"), (keys, least)), is_behind))
    return firsts


def _least(numbers: Node) -> Node:
    """The least number of a row, in each element of it."""
    axis = len(numbers.shape) - 1
    reduce = ops.Reduce((axis,), combiner(ops.Minimum(), _INT64))
    least = Node(reduce, (numbers, constant(np.iinfo(_INT64).max, _INT64)))
    return Node(ops.BroadcastInDim(numbers.shape, tuple(range(axis))), (least,))


def _element_of(node: Node, which: int, first: _First) -> Node:
    """The element of an operand of a sort there, of size 1 along the dimension that is sorted."""
    array, axis = node.operands[which], _axis_of(node)
    if _stands_at(array, axis):
        position = first.position
        return position if array.dtype == _INT64 else Node(ops.Convert(array.dtype), (position,))
    if axis:
        order = order_of(node.op.expect(ops.Sort).comparator)
        assert order is not None, "it has keys"
        return _element_of_key(first.key, array.dtype, order.columns[0].descending)
    return Node(ops.DynamicSlice((1,)), (array, Node(ops.Reshape(()), (first.position,))))
