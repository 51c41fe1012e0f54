"""Scatters whose updates are sorted by where they go, for backends that sort long rows of numbers by a library.

The key of an update is the start of its window, a field for each component, and beside it lies the update's number.  A
radix sort goes through all bits of a key's type, so that is as narrow as it can be: on an H200 CUB sorts 10^7 keys of
16 bits with their numbers in 251 us, of 32 in 445 to 483, of 64 in 950.

Fields have the order of the dimensions that they index, whatever that of the components, so that starts are sorted as
elements lie in memory.  Those of one start stay in their order, so that the bits of what they are combined to are the
same.  Of an update that goes nowhere the first field is too great.

Such a sort of keys, which a user may ask for too, is an operation of its own for a library that makes the numbers.

The promise that indices are sorted, which users may give, is not relied on: what is sorted was sorted here.
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
from xarr.ir.graph import Graph, Node
from xarr.ir.op import Op, operation
from xarr.ir.ops.control import unpack_results
from xarr.ir.ops.indexing import Windows
from xarr.ir.rewriting import rewritten_throughout
from xarr.ir.stablehlo.printer import Printer
from xarr.ir.types import Ints, TensorType, TupleType, Type

_INT64: Final = np.dtype(np.int64)
#: The types of keys by their bits.
_KEYS: Final[dict[int, np.dtype[Any]]] = {
    16: np.dtype(np.uint16),
    32: np.dtype(np.uint32),
    64: np.dtype(np.uint64),
}


@operation
class NumberedSort(Op):
    """The elements of a long row in ascending order, and the number that each had, equal ones in their order."""

    name = "xarr.numbered_sort"
    lax_name = "sort"
    is_internal = True
    has_several_results = True

    def infer(self, *operands: Type) -> Type:
        (keys,) = self.tensors(operands, 1)
        return TupleType((keys, TensorType(keys.shape, _INT64)))

    def assembly(self, node: Node, printer: Printer) -> str:
        return printer.generic(node, "", [], node.operands)


def sort_updates(graph: Graph, is_sorted: Callable[[Node], bool]) -> Graph:
    """`graph` with the updates of those scatters sorted for which `is_sorted` says so, in the graphs of operations too.

    Only these have the attribute `indices_are_sorted` then.
    """
    if not any(op is ops.Scatter or op.runs_graphs for op in graph.op_classes):
        return graph

    def rule(node: Node, operands: tuple[Node, ...]) -> Node | None:
        if not isinstance(node.op, ops.Scatter):
            return None
        op = replace(node.op, indices_are_sorted=False)
        if is_sorted(node) and _can_be_sorted(node):
            return _sort(node, op, operands)
        return None if op == node.op else node.rebuilt(operands, op)

    return rewritten_throughout(graph, rule)


def _can_be_sorted(node: Node) -> bool:
    """Whether windows are the same or apart, and there is a key for each start."""
    op, types = node.op.expect(ops.Scatter), [each.tensor_type for each in node.operands]
    if len(types) != 3 or op.input_batching_dims or any(type.dynamic for type in types):
        return False
    windows = op.windows(*types)
    starts = zip(windows.index_map, windows.last_starts, strict=True)
    are_apart = all(windows.sizes[dim] == 1 or last == 0 for dim, last in starts)
    return are_apart and bool(windows.last_starts) and sum(_widths(windows)) <= max(_KEYS)


def _order_of_fields(windows: Windows) -> Ints:
    """The components of a start in the order of their fields."""
    return tuple(sorted(range(len(windows.index_map)), key=lambda each: windows.index_map[each]))


def _last_starts(windows: Windows) -> Ints:
    """The greatest start for each field."""
    return tuple([windows.last_starts[each] for each in _order_of_fields(windows)])


def _widths(windows: Windows) -> Ints:
    """The bits of the fields of a key: those of the components of a start."""
    first, *others = _last_starts(windows)
    return tuple([number.bit_length() for number in (first + 1, *others)])


def _sort(node: Node, op: ops.Scatter, operands: tuple[Node, ...]) -> Node:
    """The scatter of sorted updates, with one dimension of indices."""
    array, indices, updates = operands
    windows = op.windows(*[each.tensor_type for each in operands])
    widths, count = _widths(windows), prod(windows.batch_shape)
    order, components = _order_of_fields(windows), _components(op, indices, count)
    starts = _starts([components[each] for each in order], windows, count)
    keys = _join(starts, widths)
    numbers = Node(ops.Iota(TensorType((count,), _INT64), 0))
    keys, numbers = unpack_results(
        _op(ops.Sort(0, True, lexicographic([keys.dtype, _INT64], 1)), keys, numbers)
    )
    *fields, number = [_reshape(each, (count, 1)) for each in (*_fields(keys, widths), numbers)]
    components = [fields[order.index(each)] for each in range(len(order))]
    vectors = components[0] if len(components) == 1 else _op(ops.Concatenate(1), *components)
    rows = _rows(op, updates, windows, number)
    return node.rebuilt(
        (array, vectors, rows),
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
        part = _op(ops.Slice.cut(shape, axis, k, k + 1), indices) if shape[axis] > 1 else indices
        parts.append(_convert(_reshape(part, (count,)), _INT64))
    return parts


def _starts(components: list[Node], windows: Windows, count: int) -> list[Node]:
    """The fields of each start, of its components in the order of the fields."""
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
    return [
        _op(ops.Select(), fits, component, full(other, (count,), _INT64))
        for component, other in zip(components, outside, strict=True)
    ]


def _join(fields: list[Node], widths: Ints) -> Node:
    """Keys of fields, the first one in the upper bits."""
    dtype = next(dtype for most, dtype in _KEYS.items() if sum(widths) <= most)
    key, *others = [_convert(each, dtype) for each in fields]
    for field, width in zip(others, widths[1:], strict=True):
        key = _op(ops.Or(), _op(ops.ShiftLeft(), key, full(width, key.shape, dtype)), field)
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


def number_sorts(graph: Graph, is_long: Callable[[Node], bool]) -> Graph:
    """`graph` with sorts of keys beside the numbers of their elements as NumberedSort, where `is_long` says so."""

    def rule(node: Node, operands: tuple[Node, ...]) -> Node | None:
        return node.rebuilt(operands[:1], NumberedSort()) if _has_numbers(node) and is_long(node) else None

    return rewritten_throughout(graph, rule)


def _has_numbers(node: Node) -> bool:
    """Whether a sort goes by keys alone, and has beside them the number of each."""
    op, operands = node.op, node.operands
    if not isinstance(op, ops.Sort) or len(operands) != 2:
        return False
    numbers = ops.Iota(TensorType(node.operands[0].shape, _INT64), op.dimension)
    return operands[1].op == numbers and op.comparator == lexicographic([operands[0].dtype, _INT64], 1)
