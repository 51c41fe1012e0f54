"""Checks of the operands of the functions of `xarr.linalg`: element types, ranks, leading dimensions."""

from __future__ import annotations

from typing import Final

import numpy as np

from xarr import lax
from xarr.base.typing import Array
from xarr.calls.arguments import convert, fill
from xarr.calls.operands import DType, align_observed, as_array, common_dtype, promote_operands
from xarr.dtypes import BOOL, INTEGER, real_part_of
from xarr.errors import DTypeError, MatrixShapeError
from xarr.ir.ops.systems import rows_of
from xarr.ir.types import Ints
from xarr.lax import linalg as lapack
from xarr.lax.core import ArrayLike
from xarr.runtime.handles import wrap
from xarr.runtime.materialisation import read_checks, stand_for_arguments
from xarr.runtime.trace_stack import is_tracing
from xarr.shapes import normalize_axes

#: The default of an argument that may be None as well, as NumPy has it.
NO_VALUE: Final = np._NoValue
_LAPACK: Final = frozenset(map(np.dtype, (np.float32, np.float64, np.complex64, np.complex128)))


def computed_type(name: str, dtype: DType) -> DType:
    """float64 for integers and bools; DTypeError for what LAPACK does not know."""
    if dtype in BOOL | INTEGER:
        return np.dtype(np.float64)
    if dtype not in _LAPACK:
        raise DTypeError(
            f"linalg.{name}: wanted integers, or floats or complex numbers of 32 bits or more, got {dtype}; "
            "x.astype('float32')"
        )
    return dtype


def matrices(name: str, a: ArrayLike) -> Array:
    """`a` as matrices of floats or complex numbers.  Raises DTypeError, MatrixShapeError for rank 0 and 1."""
    array = as_array(a)
    converted = convert(array, computed_type(name, array.dtype))
    if converted.ndim < 2:
        raise MatrixShapeError(
            f"linalg.{name}: wanted matrices in the last two dimensions, got shape {converted.shape}"
        )
    return converted


def squares(name: str, a: ArrayLike) -> Array:
    """`matrices`, and MatrixShapeError unless they are square."""
    return square(name, matrices(name, a))


def square(name: str, array: Array) -> Array:
    if array.ndim < 2 or array.shape[-1] != array.shape[-2]:
        raise MatrixShapeError(
            f"linalg.{name}: wanted square matrices in the last two dimensions, got shape {array.shape}"
        )
    return array


def pair(name: str, a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
    """Both in the one element type that they are computed in."""
    first, second = promote_operands(name, a, b, dtype=computed_type(name, common_dtype(a, b)))
    return first, second


def spread(array: Array, shape: Ints) -> Array:
    """One number for each matrix, laid out to matrices or rows of `shape`."""
    return lax.broadcast_in_dim(array, shape, range(array.ndim))


def with_batch(name: str, arrays: tuple[Array, ...], cores: tuple[int, ...]) -> tuple[Array, ...]:
    """The arrays with their leading dimensions, before the last `cores`, broadcast to common ones."""
    batches = tuple(array.shape[: array.ndim - core] for array, core in zip(arrays, cores, strict=True))
    if all(batch == batches[0] for batch in batches):
        return arrays
    alignment = align_observed(f"linalg.{name}", batches, tuple(array.dtype for array in arrays))
    return tuple(
        lax.broadcast_in_dim(
            array,
            alignment.result + array.shape[array.ndim - core :],
            (*dims, *range(len(alignment.result), len(alignment.result) + core)),
        )
        for array, core, dims in zip(arrays, cores, alignment.dimensions, strict=True)
    )


def swap_last_axes(array: Array) -> Array:
    rank = array.ndim
    return lax.transpose(array, (*range(rank - 2), rank - 1, rank - 2))


def scalar(value: float, like: Array) -> Array:
    """A number of the element type of `like`."""
    return fill((), value, like.dtype)


def epsilon(array: Array) -> float:
    """The distance from 1 to the next number in the precision of the array."""
    return float(np.finfo(real_part_of(array.dtype)).eps)


def axes_of(name: str, axis: object, rank: int) -> Ints:
    """`axis` as one or several numbers of dimensions."""
    return normalize_axes(axis, rank, name=f"linalg.{name}: axis")  # type: ignore[arg-type]


def free_of_nan(values: Array) -> Array:
    """For each row whether none of its numbers is NaN."""
    return lax.reduce_and(lax.eq(values, values), (values.ndim - 1,))


def check_all(message: str, good: Array, *values: Array) -> tuple[Array, ...]:
    """The values as they are; LinAlgError with `message` unless all of the bools `good` are true.

    Outside of a traced function the values are computed here, so that `except LinAlgError` around the call catches
    it; in a traced function the error comes when that function runs.
    """
    results = tuple(lapack.check(value, good, message) for value in values)
    if not is_tracing() and not stand_for_arguments(*results):
        read_checks(*results)
    return results


def in_order(matrices: Array, order: Array) -> Array:
    """The rows of each matrix in the order that its own row of `order` says."""
    return wrap(rows_of(matrices._node, order._node))


def refuse_empty(name: str, array: Array) -> None:
    """MatrixShapeError for matrices without elements."""
    if 0 in array.shape[-2:]:
        raise MatrixShapeError(f"linalg.{name}: wanted matrices with elements, got shape {array.shape}")
