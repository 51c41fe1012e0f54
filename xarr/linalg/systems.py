"""Systems of linear equations, inverses and determinants."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from xarr import lax
from xarr.base.typing import Array
from xarr.calls.arguments import convert
from xarr.calls.remembered_calls import remembers_calls
from xarr.dtypes import COMPLEX
from xarr.errors import MatrixShapeError
from xarr.lax import linalg as lapack
from xarr.lax.core import ArrayLike, integer
from xarr.linalg._arguments import axes_of, check_all, pair, square, squares, with_batch
from xarr.numpy_api.creation.matrices import diagonal_matrix


class SlogdetResult(NamedTuple):
    """The sign of a determinant, and the natural logarithm of its absolute value."""

    sign: Array
    logabsdet: Array


@remembers_calls
def solve(a: ArrayLike, b: ArrayLike) -> Array:
    """The x with a x = b, for square matrices a.

    a: (…, m, m).  b: (m,), one vector for all matrices, or (…, m, k); the leading dimensions broadcast.
    Raises MatrixShapeError, BroadcastError; LinAlgError for a singular matrix.
    Source: NumPy and Array API, `linalg.solve`.
    """
    left, right = pair("solve", a, b)
    square("solve", left)
    is_vector = right.ndim == 1
    if is_vector:
        right = lax.expand_dims(right, (1,))
    if right.ndim < 2 or right.shape[-2] != left.shape[-1]:
        raise MatrixShapeError(
            f"linalg.solve: wanted b of shape ({left.shape[-1]},) or (…, {left.shape[-1]}, k) for matrices of shape "
            f"{left.shape}, got {right.shape[:1] if is_vector else right.shape}"
        )
    left, right = with_batch("solve", (left, right), (2, 2))
    x = regular(left, right)
    return lax.squeeze(x, (x.ndim - 1,)) if is_vector else x


def regular(a: Array, b: Array) -> Array:
    """The x with a x = b; LinAlgError where a is singular."""
    x, singular = lapack.solve(a, b)
    return check_all("Singular matrix", lax.bitwise_not(singular), x)[0]


@remembers_calls
def inv(a: ArrayLike) -> Array:
    """The inverse of square matrices.

    Raises MatrixShapeError unless they are square; LinAlgError for a singular one.
    Source: NumPy and Array API, `linalg.inv`.
    """
    array = squares("inv", a)
    return regular(array, identities(array))


def identities(array: Array) -> Array:
    """An identity matrix for each matrix, of the same shape and element type."""
    size = array.shape[-1]
    one = diagonal_matrix((size, size), 0, array.dtype)
    return lax.broadcast_in_dim(one, array.shape, (array.ndim - 2, array.ndim - 1))


@remembers_calls
def slogdet(a: ArrayLike) -> SlogdetResult:
    """(sign, log |det a|); (0, -inf) for singular matrices.

    sign: of the element type of a, of absolute value 1 or 0.  Raises MatrixShapeError unless a is square.
    Source: NumPy and Array API, `linalg.slogdet`.
    """
    return SlogdetResult(*lapack.slogdet(squares("slogdet", a)))


@remembers_calls
def det(a: ArrayLike) -> Array:
    """The determinants of square matrices, sign exp(log |det a|) as NumPy has it.

    Raises MatrixShapeError unless a is square.  Source: NumPy and Array API, `linalg.det`.
    """
    sign, logarithm = lapack.slogdet(squares("det", a))
    size = lax.exp(logarithm)
    return lax.mul(sign, convert(size, sign.dtype) if sign.dtype in COMPLEX else size)


@remembers_calls
def tensorinv(a: ArrayLike, ind: int = 2) -> Array:
    """The inverse of the matrix that has the first `ind` dimensions as rows and the others as columns.

    tensordot(tensorinv(a), b, ind) solves tensordot(a, x, x.ndim) = b.  Raises MatrixShapeError for ind < 1 and
    for other sizes than those of a square matrix.  Source: NumPy, `linalg.tensorinv`.
    """
    count = integer("linalg.tensorinv", "ind", ind)
    array, _ = pair("tensorinv", a, a)
    if count < 1:
        raise MatrixShapeError(f"linalg.tensorinv: wanted ind of 1 or more, got {count}")
    rows, columns = array.shape[:count], array.shape[count:]
    if prod(rows) != prod(columns):
        raise MatrixShapeError(
            f"linalg.tensorinv: wanted as many elements in the first {count} dimensions as in the others, got shape "
            f"{array.shape}"
        )
    matrix = lax.reshape(array, (prod(rows), prod(columns)))
    return lax.reshape(regular(matrix, identities(matrix)), (*columns, *rows))


@remembers_calls
def tensorsolve(a: ArrayLike, b: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """The x with tensordot(a, x, x.ndim) = b, after moving the dimensions `axes` of a to the end.

    Raises MatrixShapeError unless a has b.size ** 2 elements.  Source: NumPy, `linalg.tensorsolve`.
    """
    left, right = pair("tensorsolve", a, b)
    if axes is not None:
        moved = axes_of("tensorsolve", axes, left.ndim)
        remaining = [axis for axis in range(left.ndim) if axis not in moved]
        left = lax.transpose(left, [*remaining, *moved])
    shape = left.shape[right.ndim :]
    if left.size != right.size**2 or prod(shape) != right.size:
        raise MatrixShapeError(
            f"linalg.tensorsolve: wanted a with {right.size} elements in the dimensions after those of b "
            f"{right.shape}, got {left.shape}"
        )
    matrix = lax.reshape(left, (right.size, right.size))
    return lax.reshape(regular(matrix, lax.reshape(right, (right.size, 1))), shape)
