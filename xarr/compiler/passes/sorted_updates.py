"""Scatters whose updates are sorted by where they go, for backends that sort long rows of numbers by a library.

The key of an update has the start of its window in the upper bits, a field for each component, and its own number in
the lower ones; the sorted keys say which updates follow one another.  Fields have the order of the dimensions that they
index, whatever that of the components, so that starts are sorted as elements lie in memory.  Those of one start stay in
their order, so that the bits of what they are combined to are the same.  Of an update that goes nowhere the first field
is too great.

The promise that indices are sorted, which users may give, is not relied on: what is found sorted was sorted here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import Any, Final

import numpy as np

from xarr.ir import ops
from xarr.ir.computations import lexicographic
from xarr.ir.constants import full
from xarr.ir.graph import Graph, Node, OncePerGraph, map_graphs, rewritten
from xarr.ir.op import Op
from xarr.ir.ops.indexing import Windows
from xarr.ir.types import Ints, TensorType

_INT64: Final = np.dtype(np.int64)
_UINT32: Final = np.dtype(np.uint32)
_UINT64: Final = np.dtype(np.uint64)


def sort_updates(graph: Graph, is_sorted: Callable[[Node], bool]) -> Graph:
    """`graph` with the updates of those scatters sorted for which `is_sorted` says so, in the graphs of operations too.

    Only these have the attribute `indices_are_sorted` then.
    """
    if not any(op is ops.Scatter or op.runs_graphs for op in graph.op_classes):
        return graph

    def rewrite(graph: Graph, inner: OncePerGraph[Graph]) -> Graph:
        def rule(node: Node, operands: tuple[Node, ...]) -> Node | None:
            op = map_graphs(node.op, inner) if node.op.runs_graphs else node.op
            if isinstance(op, ops.Scatter):
                op = replace(op, indices_are_sorted=False)
                if is_sorted(node) and _can_be_sorted(node):
                    return _sort(node, op, operands)
            return None if op == node.op else node.rebuilt(operands, op)

        return rewritten(graph, rule)

    return OncePerGraph(rewrite)(graph)


def _can_be_sorted(node: Node) -> bool:
    """Whether windows are the same or apart, and there is a number for each key."""
    op, types = node.op, [each.tensor_type for each in node.operands]
    assert isinstance(op, ops.Scatter)
    if len(types) != 3 or op.input_batching_dims or any(type.dynamic for type in types):
        return False
    windows = op.windows(*types)
    starts = zip(windows.index_map, windows.last_starts, strict=True)
    are_apart = all(windows.sizes[dim] == 1 or last == 0 for dim, last in starts)
    return are_apart and bool(windows.last_starts) and sum(_widths(windows)) <= 64


def _order_of_fields(windows: Windows) -> Ints:
    """The components of a start in the order of their fields."""
    return tuple(sorted(range(len(windows.index_map)), key=lambda each: windows.index_map[each]))


def _last_starts(windows: Windows) -> Ints:
    """The greatest start for each field."""
    return tuple([windows.last_starts[each] for each in _order_of_fields(windows)])


def _widths(windows: Windows) -> Ints:
    """The bits of the fields of a key: those of the components of a start, and that of the number of the update."""
    first, *others = _last_starts(windows)
    numbers = (first + 1, *others, prod(windows.batch_shape) - 1)
    return tuple([number.bit_length() for number in numbers])


def _sort(node: Node, op: ops.Scatter, operands: tuple[Node, ...]) -> Node:
    """The scatter of sorted updates, with one dimension of indices."""
    array, indices, updates = operands
    windows = op.windows(*[each.tensor_type for each in operands])
    widths, count = _widths(windows), prod(windows.batch_shape)
    dtype = _UINT32 if sum(widths) <= 32 else _UINT64
    order, components = _order_of_fields(windows), _components(op, indices, count)
    keys = _keys([components[each] for each in order], windows, count, dtype)
    keys = _op(ops.Sort(0, True, lexicographic([dtype], 1)), keys)
    *fields, number = [_op(ops.Reshape((count, 1)), each) for each in _fields(keys, widths)]
    components = [fields[order.index(each)] for each in range(len(order))]
    starts = components[0] if len(components) == 1 else _op(ops.Concatenate(1), *components)
    rows = _rows(op, updates, windows, number)
    return node.rebuilt(
        (array, starts, rows),
        replace(
            op,
            update_window_dims=tuple(range(1, rows.tensor_type.rank)),
            scatter_indices_batching_dims=(),
            index_vector_dim=1,
            indices_are_sorted=True,
        ),
    )


def _components(op: ops.Scatter, indices: Node, count: int) -> list[Node]:
    """The components of all index vectors in a row each, as int64."""
    axis, shape = op.index_vector_dim, indices.shape
    if axis == len(shape):
        return [_convert(_reshape(indices, (count,)), _INT64)]
    parts = []
    for k in range(shape[axis]):
        begin = tuple([k if dim == axis else 0 for dim in range(len(shape))])
        end = tuple([k + 1 if dim == axis else size for dim, size in enumerate(shape)])
        part = _op(ops.Slice(begin, end, (1,) * len(shape)), indices) if shape[axis] > 1 else indices
        parts.append(_convert(_reshape(part, (count,)), _INT64))
    return parts


def _keys(components: list[Node], windows: Windows, count: int, dtype: np.dtype[Any]) -> Node:
    """The key of each update, of the components of its start in the order of their fields."""
    fits: Node | None = None
    for component, last in zip(components, _last_starts(windows), strict=True):
        least, most = (full(each, (count,), _INT64) for each in (0, last))
        inside = _op(
            ops.And(),
            _op(ops.Compare("GE"), component, least),
            _op(ops.Compare("LE"), component, most),
        )
        fits = inside if fits is None else _op(ops.And(), fits, inside)
    assert fits is not None, "a scatter of several windows has indices"
    outside = [_last_starts(windows)[0] + 1, *[0] * (len(components) - 1)]
    fields = [
        _convert(_op(ops.Select(), fits, component, full(other, (count,), _INT64)), dtype)
        for component, other in zip(components, outside, strict=True)
    ]
    key, *others = [*fields, Node(ops.Iota(TensorType((count,), dtype), 0))]
    for field, width in zip(others, _widths(windows)[1:], strict=True):
        key = _op(ops.Or(), _op(ops.ShiftLeft(), key, full(width, (count,), dtype)), field)
    return key


def _fields(keys: Node, widths: Ints) -> list[Node]:
    """The fields of keys as int64."""
    fields: list[Node] = []
    below = sum(widths)
    for width in widths:
        below -= width
        field = _op(ops.ShiftRightLogical(), keys, full(below, keys.shape, keys.dtype)) if below else keys
        if fields:  # There is nothing above the first one.
            field = _op(ops.And(), field, full(2**width - 1, keys.shape, keys.dtype))
        fields.append(_convert(field, _INT64))
    return fields


def _rows(op: ops.Scatter, updates: Node, windows: Windows, numbers: Node) -> Node:
    """The updates of these numbers, a row each."""
    sizes = tuple([updates.shape[dim] for dim in op.update_window_dims])
    order = (*windows.batch_dims, *op.update_window_dims)
    if order != tuple(range(len(order))):
        updates = _op(ops.Transpose(order), updates)
    updates = _reshape(updates, (numbers.shape[0], *sizes))
    inner = tuple(range(1, 1 + len(sizes)))
    return _op(ops.Gather(inner, (0,), (), (), (0,), 1, (1, *sizes)), updates, numbers)


def _reshape(node: Node, shape: Ints) -> Node:
    return node if node.shape == shape else _op(ops.Reshape(shape), node)


def _convert(node: Node, dtype: np.dtype[Any]) -> Node:
    return node if node.dtype == dtype else _op(ops.Convert(dtype), node)


def _op(op: Op, *operands: Node) -> Node:
    return Node(op, operands)
