"""Results of singular values: rank, pseudo-inverse, least squares."""

from __future__ import annotations

from typing import Any

import numpy as np

from xarr import lax
from xarr.base.typing import Array
from xarr.calls.arguments import adjoint, convert, truth
from xarr.calls.operands import as_array, broadcast_operands, promote_operands
from xarr.calls.remembered_calls import remembers_calls
from xarr.dtypes import real_part_of
from xarr.errors import ArgumentError, MatrixShapeError
from xarr.lax.core import ArrayLike, flag, real_number
from xarr.linalg._arguments import NO_VALUE, epsilon, matrices, pair, scalar, spread
from xarr.linalg.decompositions import svd
from xarr.numpy_api.linear_algebra.products import matmul
from xarr.numpy_api.statistics.reductions import sum as total


@remembers_calls
def matrix_rank(A: ArrayLike, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Array:
    """The number of singular values of each matrix that are above tol, or rtol times the largest one; int64.

    tol, rtol: a number, or one for each matrix; if neither is given rtol is max(m, n) times the distance from
    1 to the next number.  hermitian: take absolute eigenvalues.  A vector has rank 0 if it is 0, else 1.
    Raises InputError for both tol and rtol.  Source: NumPy and Array API, `linalg.matrix_rank`.
    """
    if tol is not None and rtol is not None:
        raise ArgumentError("linalg.matrix_rank: wanted tol or rtol, got both")
    array = as_array(A)
    if array.ndim < 2:
        return convert(lax.reduce_or(truth(array), range(array.ndim)), np.dtype(np.int64))
    array = matrices("matrix_rank", array)
    s = svd(array, compute_uv=False, hermitian=flag("linalg.matrix_rank", "hermitian", hermitian))
    if tol is None:
        default = max(array.shape[-2:]) * epsilon(array)
        bounds = _times_largest("matrix_rank", s, default if rtol is None else rtol)
    else:
        bounds = _each("matrix_rank", s, tol)
    return total(lax.gt(s, bounds), axis=-1)


def _each(name: str, s: Array, value: Any) -> Array:
    """A number, or one for each matrix, for all of its singular values."""
    (number,) = promote_operands(f"linalg.{name}", value, dtype=s.dtype)
    batch = lax.reduce_max(s, (s.ndim - 1,)) if s.shape[-1] else total(s, axis=-1)
    number, _ = broadcast_operands(f"linalg.{name}", number, batch) if number.shape else (number, batch)
    return spread(number, s.shape)


def _times_largest(name: str, s: Array, factor: Any) -> Array:
    """`factor`, a number or one for each matrix, times the largest singular value."""
    if not s.shape[-1]:
        return s
    # They descend.
    largest = lax.broadcast_in_dim(lax.index_in_dim(s, 0, s.ndim - 1, False), s.shape, range(s.ndim - 1))
    return lax.mul(largest, _each(name, s, factor))


@remembers_calls
def pinv(a: ArrayLike, rcond: Any = None, hermitian: bool = False, *, rtol: Any = NO_VALUE) -> Array:
    """The pseudo-inverse of Moore and Penrose.

    rcond or rtol: singular values up to so many times the largest one count as 0, a number or one for each
    matrix; 1e-15 if neither is given, and max(m, n) times the distance from 1 to the next number for rtol=None.
    hermitian: use eigenvalues.  Raises MatrixShapeError for rank 0 and 1, InputError for both rcond and rtol.
    Source: NumPy and Array API, `linalg.pinv`.
    """
    array = matrices("pinv", a)
    if rcond is not None and rtol is not NO_VALUE:
        raise ArgumentError("linalg.pinv: wanted rcond or rtol, got both")
    if rcond is None:
        default = max(array.shape[-2:]) * epsilon(array)
        rcond = 1e-15 if rtol is NO_VALUE else default if rtol is None else rtol
    u, s, vh = svd(array, full_matrices=False, hermitian=hermitian)
    return matmul(adjoint(vh), _scale_rows(_reciprocals(s, _times_largest("pinv", s, rcond)), adjoint(u)))


def _reciprocals(s: Array, bounds: Array) -> Array:
    """1 / s above the bounds, else 0."""
    is_large = lax.gt(s, bounds)
    safe = lax.select(is_large, s, lax.full_like(s, 1))
    return lax.select(is_large, lax.div(scalar(1, s), safe), lax.full_like(s, 0))


def _scale_rows(factors: Array, rows: Array) -> Array:
    """Each row of each matrix times its factor."""
    return lax.mul(convert(spread(factors, rows.shape), rows.dtype), rows)


@remembers_calls
def lstsq(a: ArrayLike, b: ArrayLike, rcond: float | None = None) -> tuple[Array, Array, Array, Array]:
    """(x, residuals, rank, s): the x of least norm among those for which the norm of b - a x is least.

    a: (m, n); b: (m,) or (m, k).  rcond: singular values up to so many times the largest one count as 0; max(m, n)
    times the distance from 1 to the next number if it is None, that distance itself if it is negative.
    residuals: the squares of the norms, of shape (k,), (1,) for a vector b, and (0,) unless m > n and a has rank
    n, which is looked at, and in a traced function taken for granted.  rank: int32.  s: singular values.
    Raises MatrixShapeError; LinAlgError if it does not converge.  Source: NumPy, `linalg.lstsq`.
    """
    left, right = pair("lstsq", a, b)
    is_vector = right.ndim == 1
    if is_vector:
        right = lax.expand_dims(right, (1,))
    if left.ndim != 2 or right.ndim != 2 or left.shape[0] != right.shape[0]:
        raise MatrixShapeError(
            f"linalg.lstsq: wanted a (m, n) and b (m,) or (m, k), got {left.shape} and "
            f"{right.shape[:1] if is_vector else right.shape}"
        )
    u, s, vh = svd(left, full_matrices=False)
    if rcond is not None:
        rcond = real_number("linalg.lstsq", "rcond", rcond)
    factor = epsilon(left) * max(left.shape) if rcond is None else epsilon(left) if rcond < 0 else rcond
    bounds = _times_largest("lstsq", s, factor)
    rank = convert(total(lax.gt(s, bounds)), np.dtype(np.int32))
    x = matmul(adjoint(vh), _scale_rows(_reciprocals(s, bounds), matmul(adjoint(u), right)))
    residuals = _residuals(left, x, right, rank)
    return lax.squeeze(x, (1,)) if is_vector else x, residuals, rank, s


def _residuals(a: Array, x: Array, b: Array, rank: Array) -> Array:
    rows, columns = a.shape
    if rows <= columns or (not rank._node.traced and int(rank) != columns):
        return lax.full_like(lax.real(b) if b.dtype != real_part_of(b.dtype) else b, 0, shape=(0,))
    rest = lax.abs(lax.sub(b, matmul(a, x)))
    return total(lax.mul(rest, rest), axis=0)
