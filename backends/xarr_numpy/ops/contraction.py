"""DotGeneral: transposes and reshapes around np.matmul."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.lib.stride_tricks import as_strided

from xarr.base.host.memory import pool
from xarr.compiler.plan.program_plan import Step
from xarr.dtypes import BOOL, INTEGER, accumulator_dtype
from xarr.ir import ops
from xarr.ir.types import Ints
from xarr_numpy import blas
from xarr_numpy.functions.conversion import convert
from xarr_numpy.ops.table_rows import Rows

if TYPE_CHECKING:
    from xarr_numpy.program import Emitter

Array = np.ndarray[Any, Any]

TYPES_OF_BLAS: Final = frozenset({np.float32, np.float64, np.complex64, np.complex128})
#: Bytes of a page and of a typical element; the ways and the lines of a processor's first cache.
_PAGE: Final = 4096
_TYPICAL: Final = 4
_WAYS: Final = 8
_LINES: Final = 512
#: How much longer than in order it takes to read across lines that stay in the cache, or do not.
_NEAR: Final = 2
_FAR: Final = 16


@dataclass(frozen=True)
class Side:
    """The form in which an operand becomes matrices: transposed by `axes` to the batch dimensions and two groups.

    The groups are the rows and the columns of matrices of the shape `matrix`, or, if `swapped`, the columns
    and the rows.
    """

    axes: Ints
    matrix: Ints
    swapped: bool

    def free(self, is_left: bool) -> int:
        """The number of rows of a left matrix, or of columns of a right one."""
        return self.matrix[0 if is_left != self.swapped else 1]

    def matrices(self, x: Array, batches: int) -> Array:
        """The matrices of `x`, with dimensions transposed already; a copy if need be."""
        shape = (*x.shape[:batches], *self.matrix)
        view = view_of(x, shape)
        matrices = view if view is not None else _copy(x).reshape(shape)
        return matrices.swapaxes(-1, -2) if self.swapped else matrices


@dataclass(frozen=True)
class ContractionPlan:
    """The matrix products of a dot_general; `shape` is that of the result, `split` the batch dimension of
    which parts are multiplied at the same time, if that pays, and `each` the multiplications for one index of it.
    """

    left: Side
    right: Side
    batches: int
    shape: Ints
    split: int | None
    each: int

    @cached_property
    def is_in_order(self) -> bool:
        """Whether it is one product of operands in row-major order under other shapes."""
        sides = (self.left, self.right)
        return not self.batches and not any(
            [side.swapped or side.axes != tuple(range(len(side.axes))) for side in sides]
        )

    @cached_property
    def is_for_threads(self) -> bool:
        """Whether the products are so many, and so much work, that threads share them where BLAS lets them."""
        return self.split is not None and blas.are_for_threads(self.shape[self.split], self.each)


def plan_of(op: ops.DotGeneral, lhs: Ints, rhs: Ints) -> ContractionPlan:
    """The matrix products of an operation on operands of these shapes."""
    batch = (op.lhs_batching_dimensions, op.rhs_batching_dimensions)
    return plan(lhs, rhs, batch, (op.lhs_contracting_dimensions, op.rhs_contracting_dimensions))


def plan(lhs: Ints, rhs: Ints, batch: tuple[Ints, Ints], contract: tuple[Ints, Ints]) -> ContractionPlan:
    """The way in which least has to be copied, for operands of these shapes, in row-major order.

    BLAS takes matrices whose rows or columns lie together, and the order of the contracted dimensions is free
    as long as it is the same in both operands.
    """
    free = tuple(
        tuple(axis for axis in range(len(shape)) if axis not in batch[k] + contract[k])
        for k, shape in enumerate((lhs, rhs))
    )
    orders = [tuple(range(len(contract[0])))]
    orders += [tuple(sorted(orders[0], key=axes.__getitem__)) for axes in contract]
    ways = []
    for order in dict.fromkeys(orders):
        sides = [
            _side(shape, batch[k], free[k], tuple(contract[k][index] for index in order), k == 0)
            for k, shape in enumerate((lhs, rhs))
        ]
        ways.append((sum(cost for cost, _ in sides), sides[0][1], sides[1][1]))
    _, left, right = min(ways, key=lambda way: way[0])
    shape = (
        *(lhs[axis] for axis in batch[0]),
        *(lhs[axis] for axis in free[0]),
        *(rhs[axis] for axis in free[1]),
    )
    sizes = [lhs[axis] for axis in batch[0]]
    multiplications = prod(shape) * prod(lhs[axis] for axis in contract[0])
    split = max(range(len(sizes)), key=sizes.__getitem__, default=None)
    each = 0 if split is None else multiplications // max(1, sizes[split])
    return ContractionPlan(left, right, len(sizes), shape, split, each)


def _side(shape: Ints, batch: Ints, free: Ints, contracted: Ints, is_left: bool) -> tuple[int, Side]:
    """The cost of copying an operand into the better of two forms, and that form."""
    forms = []
    for swapped in (False, True):
        groups = (free, contracted) if is_left != swapped else (contracted, free)
        axes = (*batch, *groups[0], *groups[1])
        matrix = tuple(prod(shape[axis] for axis in group) for group in groups)
        forms.append(
            (_cost(shape, axes, (*(shape[axis] for axis in batch), *matrix)), Side(axes, matrix, swapped))
        )
    return min(forms, key=lambda each: each[0])


def _cost(shape: Ints, axes: Ints, matrices: Ints) -> int:
    """About how much longer than by reading in order it takes to transpose an array by `axes`; 0 for a view."""
    strides = [prod(shape[axis + 1 :]) for axis in range(len(shape))]
    x = as_strided(np.empty(0, np.int8), [shape[axis] for axis in axes], [strides[axis] for axis in axes])
    if view_of(x, matrices) is not None:
        return 0
    size, stride = next(
        (pair for pair in zip(x.shape[::-1], x.strides[::-1], strict=True) if pair[0] != 1), (1, 1)
    )
    if stride == 1:
        return prod(shape)
    # Reads that lie a multiple of a page apart push one another out of the cache, as do many of them.
    is_far = stride * _TYPICAL % _PAGE == 0 and size > _WAYS
    return prod(shape) * (_FAR if is_far or size > _LINES else _NEAR)


def reshaped_view(x: Array, shape: Ints) -> Array | None:
    """`x` in another shape, without a copy; None where NumPy makes one."""
    try:
        view: Array = np.reshape(x, shape, copy=False)
    except ValueError:
        return None
    return view


def view_of(x: Array, shape: Ints) -> Array | None:
    """`x` seen as matrices of this shape that BLAS takes as they are, if it can be."""
    matrices = reshaped_view(x, shape)
    return matrices if matrices is not None and is_for_blas(matrices) else None


def is_for_blas(x: Array) -> bool:
    """Whether rows or columns of matrices lie together; NumPy multiplies others slowly."""
    (rows, columns), (down, along), size = x.shape[-2:], x.strides[-2:], x.itemsize
    by_rows = (along == size or columns == 1) and (down >= columns * size or rows == 1) and down % size == 0
    by_columns = (down == size or rows == 1) and (along >= rows * size or columns == 1) and along % size == 0
    return by_rows or by_columns


def _copy(x: Array) -> Array:
    copy = np.empty(x.shape, x.dtype)
    blas.copy(copy, x)
    return copy


def dot_general(lhs: Array, rhs: Array, way: ContractionPlan, dtype: np.dtype[Any]) -> Array:
    """Sums of products in `dtype`: narrow floats accumulate in float32 and round once, integers wrap."""
    if way.is_in_order and _are_in_order(lhs, rhs, dtype):  # what is below, without a look at strides
        matrices: Array = np.matmul(lhs.reshape(way.left.matrix), rhs.reshape(way.right.matrix))
        return matrices.reshape(way.shape)
    left, right = lhs.transpose(way.left.axes), rhs.transpose(way.right.axes)
    batches = way.batches
    sizes = left.shape[:batches]
    if way.split is None or not (way.is_for_threads and blas.can_be_held()):
        product = _matmul(way.left.matrices(left, batches), way.right.matrices(right, batches), dtype)
        return product.reshape(way.shape)
    result = pool.empty((*sizes, way.left.free(True), way.right.free(False)), dtype)
    before = (slice(None),) * way.split

    def work(start: int, stop: int) -> None:
        part = (*before, slice(start, stop))
        operands = way.left.matrices(left[part], batches), way.right.matrices(right[part], batches)
        if dtype == operands[0].dtype == operands[1].dtype and dtype.kind in "fc":
            np.matmul(*operands, out=result[part])
        else:
            result[part] = _matmul(*operands, dtype)

    blas.share(work, sizes[way.split], way.each)
    return result.reshape(way.shape)


def _are_in_order(lhs: Array, rhs: Array, dtype: np.dtype[Any]) -> bool:
    """Whether both are in row-major order, and BLAS has products of their type."""
    is_known = dtype.type in TYPES_OF_BLAS and lhs.dtype is rhs.dtype is dtype
    return is_known and lhs.flags.c_contiguous and rhs.flags.c_contiguous


def _matmul(lhs: Array, rhs: Array, dtype: np.dtype[Any]) -> Array:
    if lhs.dtype in BOOL and dtype in BOOL:
        # A sum of ones may round but never becomes zero, and float32 is what BLAS is fast in.
        counts: Array = np.matmul(lhs.astype(np.float32), rhs.astype(np.float32))
        result: Array = counts != 0
        return result
    if lhs.dtype in INTEGER and dtype in INTEGER:
        return _integer_matmul(lhs, rhs, dtype)
    wide = _accumulator(lhs.dtype, dtype)
    return as_type(np.matmul(as_type(lhs, wide), as_type(rhs, wide)), dtype)


def as_type(x: Array, dtype: np.dtype[Any]) -> Array:
    """x itself if it has the type: what is multiplied need not be a copy."""
    return x if x.dtype == dtype else convert(x, dtype)


def _accumulator(operand: np.dtype[Any], result: np.dtype[Any]) -> np.dtype[Any]:
    parts = [_widen(dtype) for dtype in (operand, result)]
    return np.promote_types(*parts)


def _widen(dtype: np.dtype[Any]) -> np.dtype[Any]:
    if dtype in BOOL:
        return np.dtype(np.int8)
    return accumulator_dtype(dtype)


def _integer_matmul(lhs: Array, rhs: Array, dtype: np.dtype[Any]) -> Array:
    """Exact modulo 2**bits.  Sums that float64 holds exactly go through BLAS, which has no integers."""
    bits = 8 * lhs.dtype.itemsize
    if (lhs.shape[-1] << 2 * bits) <= 1 << 53:
        exact: Array = np.matmul(lhs.astype(np.float64), rhs.astype(np.float64))
        return exact.astype(np.int64).astype(dtype)
    wrapped: Array = np.matmul(lhs.astype(dtype), rhs.astype(dtype))
    return wrapped


def _dot_general(emitter: Emitter, step: Step) -> str:
    op = step.op.expect(ops.DotGeneral)
    lhs, rhs = emitter.operands(step)
    left, right = emitter.types(step.inputs)
    sums = op.sum_dtype(left.dtype)
    dtype = emitter.constant(sums)
    if not left.shape and not right.shape:
        # Of two scalars it is their product, which is also right for lanes.
        return _round_to_result(emitter, op, sums, f"multiply_as({lhs}, {rhs}, {dtype})")
    way = emitter.constant(plan_of(op, left.shape, right.shape), "way")
    return _round_to_result(emitter, op, sums, f"dot_general({lhs}, {rhs}, {way}, {dtype})")


def _round_to_result(emitter: Emitter, op: ops.DotGeneral, sums: np.dtype[Any], expression: str) -> str:
    return expression if sums == op.dtype else f"convert({expression}, {emitter.constant(op.dtype)})"


def multiply_as(lhs: Array, rhs: Array, dtype: np.dtype[Any]) -> Array:
    """The product in `dtype`, rounded once."""
    wide = _accumulator(lhs.dtype, dtype)
    return convert(np.multiply(convert(lhs, wide), convert(rhs, wide)), dtype)


SCOPE: Final[dict[str, Any]] = {f.__name__: f for f in (dot_general, multiply_as)}

ROWS: Final[Rows] = {ops.DotGeneral: _dot_general}
