"""DotGeneral: transposes and reshapes around np.matmul."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from xarr.dtypes import BOOL, EXTENDED_FLOAT, INTEGER
from xarr.ir import ops
from xarr.ir.graph import Node
from xarr_numpy.kernels import convert
from xarr_numpy.rows import Rows

if TYPE_CHECKING:
    from xarr_numpy.program import Emitter

Array = np.ndarray[Any, Any]
Ints = tuple[int, ...]


def dot_general(
    lhs: Array, rhs: Array, batch: tuple[Ints, Ints], contract: tuple[Ints, Ints], dtype: Any
) -> Array:
    """Sums of products in `dtype`: narrow floats accumulate in float32 and round once, integers wrap."""
    left, left_shape = _as_matrices(lhs, batch[0], contract[0], contracted_last=True)
    right, right_shape = _as_matrices(rhs, batch[1], contract[1], contracted_last=False)
    sizes = tuple(lhs.shape[axis] for axis in batch[0])
    product: Array = _matmul(left, right, dtype).reshape(sizes + left_shape + right_shape)
    return product


def _as_matrices(x: Array, batch: Ints, contract: Ints, contracted_last: bool) -> tuple[Array, Ints]:
    """x as (batch, free, contracted) or (batch, contracted, free), and the free sizes.

    There is no batch axis where `batch` is empty.
    """
    free = tuple(axis for axis in range(x.ndim) if axis not in batch + contract)
    groups = (free, contract) if contracted_last else (contract, free)
    sizes = [prod(x.shape[axis] for axis in group) for group in groups]
    if batch:
        sizes.insert(0, prod(x.shape[axis] for axis in batch))
    matrices = x.transpose((*batch, *groups[0], *groups[1])).reshape(sizes)
    return matrices, tuple(x.shape[axis] for axis in free)


def _matmul(lhs: Array, rhs: Array, dtype: np.dtype[Any]) -> Array:
    if lhs.dtype in BOOL and dtype in BOOL:
        # A sum of ones may round but never becomes zero, and float32 is what BLAS is fast in.
        counts: Array = np.matmul(lhs.astype(np.float32), rhs.astype(np.float32))
        found: Array = counts != 0
        return found
    if lhs.dtype in INTEGER and dtype in INTEGER:
        return _integer_matmul(lhs, rhs, dtype)
    wide = _accumulator(lhs.dtype, dtype)
    return convert(np.matmul(convert(lhs, wide), convert(rhs, wide)), dtype)


def _accumulator(operand: np.dtype[Any], result: np.dtype[Any]) -> np.dtype[Any]:
    parts = [_widened(dtype) for dtype in (operand, result)]
    return np.promote_types(*parts)


def _widened(dtype: np.dtype[Any]) -> np.dtype[Any]:
    if dtype in BOOL:
        return np.dtype(np.int8)
    return np.dtype(np.float32) if dtype in EXTENDED_FLOAT or dtype == np.float16 else dtype


def _integer_matmul(lhs: Array, rhs: Array, dtype: np.dtype[Any]) -> Array:
    """Exact modulo 2**bits.  Sums that float64 holds exactly go through BLAS, which has no integers."""
    bits = 8 * lhs.dtype.itemsize
    if (lhs.shape[-1] << 2 * bits) <= 1 << 53:
        exact: Array = np.matmul(lhs.astype(np.float64), rhs.astype(np.float64))
        return exact.astype(np.int64).astype(dtype)
    wrapped: Array = np.matmul(lhs.astype(dtype), rhs.astype(dtype))
    return wrapped


def _dot_general(emitter: Emitter, node: Node) -> str:
    op = node.op
    assert isinstance(op, ops.DotGeneral)
    lhs, rhs = (emitter.full(operand) for operand in node.operands)
    sums = op.sum_dtype(node.operands[0].tensor_type.dtype)
    dtype = emitter.constant(sums)
    if not any(operand.shape for operand in node.operands):
        # Of two scalars it is their product, which is also right for lanes.
        return _converted(emitter, op, sums, f"multiply_as({lhs}, {rhs}, {dtype})")
    batch = (op.lhs_batching_dimensions, op.rhs_batching_dimensions)
    contract = (op.lhs_contracting_dimensions, op.rhs_contracting_dimensions)
    return _converted(emitter, op, sums, f"dot_general({lhs}, {rhs}, {batch}, {contract}, {dtype})")


def _converted(emitter: Emitter, op: ops.DotGeneral, sums: np.dtype[Any], expression: str) -> str:
    return expression if sums == op.dtype else f"convert({expression}, {emitter.constant(op.dtype)})"


def multiply_as(lhs: Array, rhs: Array, dtype: np.dtype[Any]) -> Array:
    """The product in `dtype`, rounded once."""
    wide = _accumulator(lhs.dtype, dtype)
    return convert(np.multiply(convert(lhs, wide), convert(rhs, wide)), dtype)


SCOPE: Final[dict[str, Any]] = {f.__name__: f for f in (dot_general, multiply_as)}

ROWS: Final[Rows] = {ops.DotGeneral: _dot_general}
