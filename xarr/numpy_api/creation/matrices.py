"""Matrices made of zeros, ones and what stands on one side of a diagonal, or on it."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import DTypeLike

from xarr import lax
from xarr.base.typing import Array
from xarr.calls.arguments import DeviceLike, as_device, check_order, convert, fill, stretch, traced_integer
from xarr.calls.operands import DType, as_array
from xarr.calls.remembered_calls import remembers_calls
from xarr.dtypes import canonical, promote
from xarr.errors import ShapeError
from xarr.ir.graph import Node
from xarr.ir.ops import Iota
from xarr.ir.types import TensorType
from xarr.lax.core import ArrayLike, integer, whole
from xarr.lax.dynamic_sizes import refuse_dynamic
from xarr.numpy_api.creation.ranges import INT64
from xarr.runtime.handles import commit, wrap
from xarr.runtime.view_tracking import DIAGONAL, mark
from xarr.shapes import check_sizes

__all__ = ["diag", "eye", "identity", "tri", "tril", "triu", "vander"]

#: The number of a diagonal, which in a traced function may be an argument of it.
Diagonal: TypeAlias = "int | Array"


def _diagonal_number(name: str, shape: tuple[int, ...], k: Diagonal) -> tuple[Array, Array]:
    """(column numbers, row numbers + k) of matrices of `shape`."""
    rank, type = len(shape), TensorType(shape, INT64)
    rows, columns = (wrap(Node(Iota(type, axis))) for axis in (rank - 2, rank - 1))
    # A diagonal outside the matrix is as good as the first one outside, whose number int64 can hold.
    traced = traced_integer(name, "k", k)
    if traced is not None:
        return columns, lax.add(rows, lax.clamp(-shape[-2], traced, shape[-1]))
    return columns, lax.add(rows, max(-shape[-2], min(shape[-1], whole(name, "k", k))))


@remembers_calls
def eye(
    N: int,
    M: int | None = None,
    k: Diagonal = 0,
    dtype: DTypeLike | None = None,
    order: str | None = "C",
    *,
    device: DeviceLike = None,
) -> Array:
    """An N by M matrix with ones on diagonal k (above the main one for k > 0).  Source: NumPy, `eye`."""
    check_order("eye", order)
    shape = check_sizes((N, N if M is None else M))
    return commit(diagonal_matrix(shape, k, canonical(dtype)), as_device(device))


def diagonal_matrix(shape: tuple[int, ...], k: Diagonal, dtype: DType) -> Array:
    """Ones on diagonal k of a matrix of zeros, committed to no device unless k is."""
    return convert(lax.eq(*_diagonal_number("eye", shape, k)), dtype)


@remembers_calls
def identity(n: int, dtype: DTypeLike | None = None, *, device: DeviceLike = None) -> Array:
    """The n by n identity matrix.  Source: NumPy, `identity`."""
    return eye(n, dtype=dtype, device=device)


@remembers_calls
def tri(
    N: int,
    M: int | None = None,
    k: Diagonal = 0,
    dtype: DTypeLike | None = None,
    *,
    device: DeviceLike = None,
) -> Array:
    """An N by M matrix with ones at and below diagonal k.  Source: NumPy, `tri`."""
    sizes = (whole("tri", "N", N), whole("tri", "M", N if M is None else M))
    shape = check_sizes([max(size, 0) for size in sizes])  # as NumPy does it, unlike in `eye`
    return commit(convert(lax.le(*_diagonal_number("tri", shape, k)), canonical(dtype)), as_device(device))


def _triangle(name: str, m: ArrayLike, k: Diagonal, upper: bool) -> Array:
    matrix = as_array(m)
    if not matrix.shape:
        raise ShapeError(f"{name}: wanted an array of rank 1 or more, got a scalar")
    if len(matrix.shape) == 1:
        refuse_dynamic(name, matrix, "a matrix")
        matrix = lax.broadcast_in_dim(matrix, matrix.shape * 2, (1,))
    distances = _diagonal_number(name, matrix.shape, k)
    zero = stretch(fill((), 0, matrix.dtype), matrix.shape)
    return lax.select(lax.ge(*distances) if upper else lax.le(*distances), matrix, zero)


@remembers_calls
def tril(m: ArrayLike, k: Diagonal = 0) -> Array:
    """Matrices (…, N, M) with zeros above diagonal k; a vector counts as a matrix of equal rows.

    Raises ShapeError for a scalar.  Source: NumPy, `tril`.
    """
    return _triangle("tril", m, k, upper=False)


@remembers_calls
def triu(m: ArrayLike, k: Diagonal = 0) -> Array:
    """Matrices (…, N, M) with zeros below diagonal k; a vector counts as a matrix of equal rows.

    Raises ShapeError for a scalar.  Source: NumPy, `triu`.
    """
    return _triangle("triu", m, k, upper=True)


@remembers_calls
def diag(v: ArrayLike, k: int = 0) -> Array:
    """A vector as diagonal k of a square matrix of zeros, or diagonal k of a matrix as a vector.

    Raises ShapeError for any other rank than 1 and 2.  Source: NumPy, `diag`.
    """
    array, offset = as_array(v), whole("diag", "k", k)
    if len(array.shape) == 2:
        return mark(array, diagonal_of_last_two(array, offset), DIAGONAL, (offset,))
    if len(array.shape) != 1:
        raise ShapeError(f"diag: wanted a vector or a matrix, got shape {array.shape}")
    refuse_dynamic("diag", array, "lax.select")
    size = array.shape[0] + abs(offset)
    if not array.shape[0]:
        return fill((size, size), 0, array.dtype, array._node.device)
    # In row-major order the diagonal is every (size + 1)-th element.
    first = offset if offset >= 0 else -offset * size
    behind = size * size - 1 - first - (array.shape[0] - 1) * (size + 1)
    flat = lax.pad(array, fill((), 0, array.dtype), [(first, behind, size)])
    return lax.reshape(flat, (size, size))


def diagonal_of_last_two(array: Array, offset: int) -> Array:
    """The diagonal of the last two dimensions: every (n + 1)-th element of the n by n block that it divides."""
    refuse_dynamic("a diagonal", array, "lax.gather", (array.ndim - 1,))
    *batch, rows, columns = array.shape
    top, left = max(-offset, 0), max(offset, 0)
    size = max(min(rows - top, columns - left), 0)
    starts = [0] * len(batch)
    if not size:
        return lax.reshape(lax.slice(array, (*starts, 0, 0), (*batch, 0, columns)), (*batch, 0))
    block = lax.slice(array, (*starts, top, left), (*batch, top + size, left + size))
    flat = lax.reshape(block, (*batch, size * size))
    return lax.slice_in_dim(flat, 0, size * size, size + 1, axis=len(batch))


@remembers_calls
def vander(x: ArrayLike, N: int | None = None, increasing: bool = False) -> Array:
    """The matrix of powers of a vector: column j has x ** (N - 1 - j), or x ** j if `increasing`.

    Raises ShapeError for what is no vector and for a negative N.  Source: NumPy, `vander`.
    """
    vector = as_array(x)
    if len(vector.shape) != 1:
        raise ShapeError(f"vander: wanted a vector, got shape {vector.shape}")
    refuse_dynamic("vander", vector, "xarr.power")
    (columns,) = check_sizes(vector.shape[0] if N is None else integer("vander", "N", N), name="N")
    vector = convert(vector, promote(vector.dtype, np.dtype(np.int64)))
    size = vector.shape[0]
    ones = fill((size, min(columns, 1)), 1, vector.dtype, vector._node.device)
    each = lax.broadcast_in_dim(vector, (size, max(columns - 1, 0)), (0,))
    powers = lax.concatenate([ones, lax.cumprod(each, 1) if each.size else each], 1)
    return powers if increasing else lax.rev(powers, (1,))
