"""Convolution: a kernel against every window."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from xarr.dtypes import accumulator_dtype, widen_dtype
from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.ir.op import Op
from xarr.ir.types import Ints
from xarr_reference.elementwise import add, convert, multiply
from xarr_reference.scalars import DType
from xarr_reference.values import Array, Rule, empty, indices, join_index


def convolution(node: Node, lhs: Array, rhs: Array) -> Array:
    """result[n, o, w] = Σ over c and k of lhs[n, c, position of element k in window w] rhs[o, c, k]

    where the position is none of padding and holes.  Of groups, group g of the output features sees group g of
    the features, or of the batch, of lhs.  Products and sums are of the wider of the two element types.
    """
    op, result = node.op.expect(ops.Convolution), empty(node.type)
    dtype = accumulator(lhs.dtype, result.dtype)
    for index in indices(result.shape):
        n, o, *windows = (index[dim] for dim in op.out_spec)
        total = convert(np.False_, dtype)
        for element, weight in terms(node, n, o, tuple(windows)):
            x, y = convert(lhs[element], dtype), convert(rhs[weight], dtype)
            total = add(total, multiply(x, y))
        result[index] = convert(total, result.dtype)
    return result


def terms(node: Node, n: int, o: int, windows: Ints) -> Iterator[tuple[Ints, Ints]]:
    """The indices of lhs and of rhs that meet for this index of the batch, output feature and window."""
    op = node.op.expect(ops.Convolution)
    lhs, rhs = (operand.tensor_type for operand in node.operands)
    window, spatial = op.window(rhs), tuple(lhs.shape[dim] for dim in op.lhs_spec[2:])
    features, depth = rhs.shape[op.rhs_spec[0]], rhs.shape[op.rhs_spec[1]]
    batch = lhs.shape[op.lhs_spec[0]] // op.batch_group_count
    first = o // (features // op.feature_group_count) * depth
    row = n + o // (features // op.batch_group_count) * batch
    for c in range(depth):
        for k in window.elements():
            position = window.position(windows, k, spatial)
            if position is not None:
                yield (
                    join_index((op.lhs_spec, (row, first + c, *position))),
                    join_index((op.rhs_spec, (o, c, *k))),
                )


def accumulator(operand: DType, result: DType) -> DType:
    """The wider of two element types, but float32 for narrower floats."""
    wide = [accumulator_dtype(widen_dtype(dtype)) for dtype in (operand, result)]
    if all(dtype.kind in "iu" for dtype in wide):
        return max(wide, key=lambda dtype: dtype.itemsize)
    return np.promote_types(*wide)


TABLE: Final[dict[type[Op], Rule]] = {ops.Convolution: convolution}
