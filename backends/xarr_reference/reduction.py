"""Operations over whole dimensions: folds, sums of products, sorting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from xarr.dtypes import accumulator_dtype, widen_dtype
from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.ir.op import Op
from xarr.ir.types import Ints, TensorType
from xarr_reference.elementwise import add, convert, multiply
from xarr_reference.values import Array, Computation, Rule, Value, cell, empty, indices, join_index, pack

Row = tuple[Array, ...]


def reduce(node: Node, computation: Computation, *operands: Array) -> Value:
    """result[i] = f(… f(f(initial, operand[i, first]), operand[i, second]) …, operand[i, last])

    in row-major order of the reduced dimensions; N accumulators and N elements for N arrays.
    """
    count = len(operands) // 2
    arrays, initial = operands[:count], operands[count:]
    shape, reduced = arrays[0].shape, tuple(sorted(node.op.expect(ops.Reduce).dimensions))
    remaining = tuple(dim for dim in range(len(shape)) if dim not in reduced)
    results = tuple(empty(TensorType(_sizes(shape, remaining), array.dtype)) for array in arrays)
    for outer in indices(_sizes(shape, remaining)):
        accumulated: tuple[Value, ...] = initial
        for inner in indices(_sizes(shape, reduced)):
            index = join_index((remaining, outer), (reduced, inner))
            accumulated = computation(*accumulated, *[cell(array, index) for array in arrays])
        for result, value in zip(results, accumulated, strict=True):
            result[outer] = value[()]
    return pack(results)


def _sizes(shape: Ints, dimensions: Ints) -> Ints:
    return tuple(shape[dim] for dim in dimensions)


def dot_general(node: Node, lhs: Array, rhs: Array) -> Array:
    """result[b, i, j] = Σ over k of lhs[b, i, k] rhs[b, j, k]

    b over the batching, k over the contracting, i and j over the free dimensions of lhs and rhs.  Products
    and sums are of the element type that the op says, but of float32 where that is a narrower float.
    """
    op, result = node.op.expect(ops.DotGeneral), empty(node.type)
    left, right = (operand.tensor_type for operand in node.operands)
    i_dims, j_dims = op.lhs_free(left), op.rhs_free(right)
    rank, middle = len(op.lhs_batching_dimensions), len(i_dims)
    contracted = _sizes(lhs.shape, op.lhs_contracting_dimensions)
    sums = op.sum_dtype(lhs.dtype)
    dtype = accumulator_dtype(widen_dtype(sums))
    for index in indices(result.shape):
        b, i, j = index[:rank], index[rank : rank + middle], index[rank + middle :]
        total = convert(np.False_, dtype)
        for k in indices(contracted):
            x = lhs[
                join_index((op.lhs_batching_dimensions, b), (i_dims, i), (op.lhs_contracting_dimensions, k))
            ]
            y = rhs[
                join_index((op.rhs_batching_dimensions, b), (j_dims, j), (op.rhs_contracting_dimensions, k))
            ]
            total = add(total, multiply(convert(x, dtype), convert(y, dtype)))
        result[index] = convert(convert(total, sums), result.dtype)
    return result


def sort(node: Node, comparator: Computation, *arrays: Array) -> Value:
    """Each line along `dimension`, ordered so that no element goes before one that stands ahead of it

    and elements of which neither goes before the other keep their order.
    """
    along, shape = (node.op.expect(ops.Sort).dimension,), arrays[0].shape
    across = tuple(dim for dim in range(len(shape)) if dim not in along)
    results = tuple(np.empty_like(array) for array in arrays)

    def is_before(first: Row, second: Row) -> bool:
        pairs = zip(first, second, strict=True)
        return bool(comparator(*[element for pair in pairs for element in pair])[0])

    for line in indices(_sizes(shape, across)):
        line_indices = [join_index((across, line), (along, at)) for at in indices(_sizes(shape, along))]
        rows = [tuple(cell(array, index) for array in arrays) for index in line_indices]
        for index, row in zip(line_indices, merge_sorted(rows, is_before), strict=True):
            for result, element in zip(results, row, strict=True):
                result[index] = element[()]
    return pack(results)


def merge_sorted(rows: list[Row], before: Callable[[Row, Row], bool]) -> list[Row]:
    """A stable merge sort: an element of the right half passes one of the left only if it goes before it."""
    if len(rows) < 2:
        return rows
    middle = len(rows) // 2
    left, right = merge_sorted(rows[:middle], before), merge_sorted(rows[middle:], before)
    merged: list[Row] = []
    while left and right:
        merged.append((right if before(right[0], left[0]) else left).pop(0))
    return merged + left + right


TABLE: Final[dict[type[Op], Rule]] = {
    ops.DotGeneral: dot_general,
    ops.Reduce: reduce,
    ops.Sort: sort,
}
