"""Roots of polynomials and polynomials from their roots, and fits: what eigenvalues and singular values give."""

from __future__ import annotations

from typing import Any

import numpy as np

from xarr import lax
from xarr.base.typing import Array
from xarr.calls.arguments import adjoint, convert, fill
from xarr.calls.concrete_values import is_known, look_at
from xarr.calls.operands import DType, as_array, promote_operands
from xarr.calls.remembered_calls import remembers_calls
from xarr.dtypes import COMPLEX, FLOAT, default_float, info, promote, promote_weak
from xarr.errors import ArgumentError, DTypeError, ShapeError, ValueRangeError
from xarr.lax.core import ArrayLike, flag, whole
from xarr.numpy_api.creation.matrices import diagonal_matrix
from xarr.numpy_api.linear_algebra.products import matmul
from xarr.numpy_api.statistics.lines import repeat_vector
from xarr.runtime.materialisation import to_host

__all__ = ["poly", "polyfit", "roots"]


@remembers_calls
def poly(seq_of_zeros: ArrayLike) -> Array:
    """The coefficients of the polynomial with these roots, or with the eigenvalues of a square matrix as roots.

    The highest power, whose coefficient is 1, comes first.  Complex roots that are conjugates in pairs give real
    coefficients, for which the roots are computed now; in a traced function, which has no values yet, complex ones.
    Raises ShapeError.
    Source: NumPy, `poly`.
    """
    array = as_array(seq_of_zeros)
    if len(array.shape) == 2 and array.shape[0] == array.shape[1] and array.size:
        array = _eigenvalues("poly", array)
    if len(array.shape) > 1:
        raise ShapeError(f"poly: wanted a vector of roots or a square matrix, got shape {array.shape}")
    zeros = lax.reshape(array, (array.size,))
    narrow = zeros.dtype not in FLOAT | COMPLEX or zeros.dtype.itemsize < 4
    zeros = convert(zeros, promote(zeros.dtype, default_float())) if narrow else zeros
    if not zeros.size:
        return fill((1,), 1, zeros.dtype, zeros._node.device)
    nothing = lax.full((), 0, zeros.dtype)
    first = lax.pad(lax.full((1,), 1, zeros.dtype), nothing, [(0, zeros.size, 0)])

    def step(result: Array, zero: Array) -> tuple[Array, tuple[()]]:
        shifted = lax.pad(result, lax.full((), 0, result.dtype), [(1, -1, 0)])
        return lax.sub(result, lax.mul(repeat_vector(zero, result.shape, 0), shifted)), ()

    result: Array = lax.scan(step, first, zeros)[0]
    if zeros.dtype in COMPLEX and is_known(zeros):
        values: np.ndarray[Any, Any] = to_host(zeros)
        if (np.sort(values) == np.sort(values.conj())).all():
            return lax.real(result)
    return result


def _eigenvalues(name: str, matrix: Array) -> Array:
    """Of a matrix: real ones as real numbers where values can be looked at."""
    matrix = convert(matrix, _lapack_type(name, matrix.dtype))
    values: Array = lax.linalg.eig(matrix, compute_left_eigenvectors=False, compute_right_eigenvectors=False)[
        0
    ]
    if matrix.dtype not in COMPLEX and is_known(values) and not to_host(lax.imag(values)).any():
        return lax.real(values)
    return values


def _lapack_type(name: str, dtype: DType) -> DType:
    element = dtype if dtype in FLOAT | COMPLEX else default_float()
    if element in FLOAT and element.itemsize < 4:
        raise DTypeError(f"{name}: wanted floats of 32 bits or more, got {element}; x.astype('float32')")
    return element


@remembers_calls
def roots(p: ArrayLike, *, strip_zeros: bool = True) -> Array:
    """The roots of a polynomial with the coefficients `p`, that of the highest power first.

    They are real numbers if all are; in a traced function, which has no values yet, complex ones.
    strip_zeros: leave out leading zeros, which the values tell; False takes the first coefficient for another
        number.

    Raises ShapeError for no vector, TracedValueError without strip_zeros=False in a traced function.
    Source: NumPy, `roots`; jax.numpy has `strip_zeros`.
    """
    array = as_array(p)
    if len(array.shape) > 1:
        raise ShapeError(f"roots: wanted a vector of coefficients, got shape {array.shape}")
    array, at_zero = lax.reshape(array, (array.size,)), 0
    if flag("roots", "strip_zeros", strip_zeros):
        nonzero = np.flatnonzero(look_at("roots", "the degree", array, "give strip_zeros=False"))
        if not nonzero.size:
            return fill((0,), 0, default_float(), array._node.device)
        at_zero = array.size - 1 - int(nonzero[-1])
        array = array[int(nonzero[0]) : int(nonzero[-1]) + 1]
    array = convert(array, promote_weak(array.dtype, float))
    count = array.size - 1
    if count < 1:
        return fill((at_zero,), 0, default_float(), array._node.device)
    row = lax.neg(lax.div(array[1:], repeat_vector(array[0], (count,), 0)))
    companion = lax.concatenate(
        [lax.reshape(row, (1, count)), diagonal_matrix((count - 1, count), 0, row.dtype)], 0
    )
    result = _eigenvalues("roots", companion)
    return lax.pad(result, lax.full((), 0, result.dtype), [(0, at_zero, 0)])


# --- fits ------------------------------------------------------------------------------------------------


@remembers_calls
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: float,
    rcond: float | None = None,
    full: bool = False,
    w: ArrayLike | None = None,
    cov: bool | str = False,
) -> Any:
    """The coefficients of the polynomial of degree `deg` that lies nearest to the points (x, y) in least squares.

    Computed in float64, or complex128, also for float32, as NumPy does.
    deg: an int, or a float that is one.  y: shape (n,), or (n, k) for k fits at once.  w: weights of the distances.
    rcond: singular values of the scaled powers of x less than this share of the greatest count as 0; by default n
        machine epsilons.
    full: (coefficients, sums of squared distances, rank, singular values, rcond) instead; the rank is computed now,
        and the second is empty for a lower rank or no more than deg + 1 points, except that a traced function, which
        does not know the rank, has it then too.
    cov: (coefficients, their covariances) instead, "unscaled" for weights that are inverse standard deviations.

    Nothing warns of a low rank.  Raises ArgumentError, ValueRangeError for a negative degree, or cov of too few points,
    DTypeError for narrow floats.  Source: NumPy, `polyfit`.
    """
    count = whole("polyfit", "deg", deg) + 1
    if count < 1:
        raise ValueRangeError(f"polyfit: wanted deg >= 0, got {deg}")
    points = as_array(x)
    points, values = convert(points, promote_weak(points.dtype, float)), _floating(y)
    _check_points(points, values)
    left = _powers(convert(points, _lapack_type("polyfit", promote(points.dtype, np.dtype(np.int64)))), count)
    right = values if len(values.shape) == 2 else lax.reshape(values, (values.size, 1))
    if w is not None:
        left, right = _weight_rows(left, w), _weight_rows(right, w)
    powers, dtype = left.dtype, promote(left.dtype, right.dtype)
    left, right = convert(left, dtype), convert(right, dtype)
    scale = lax.sqrt(lax.reduce_sum(lax.mul(left, left), (0,)))
    left = lax.div(left, repeat_vector(scale, left.shape, 1))
    share = points.size * float(info(points.dtype).eps) if rcond is None else float(rcond)
    u, s, vh = lax.linalg.svd(left, full_matrices=False)
    chosen = lax.gt(s, lax.mul(lax.reduce_max(s, (0,)), share))
    inverses = convert(lax.select(chosen, lax.div(1.0, s), lax.full_like(s, 0)), dtype)
    spread = lax.mul(adjoint(vh), repeat_vector(inverses, (count, inverses.size), 1))
    scaled = matmul(spread, matmul(adjoint(u), right))
    result = _match_rank(lax.div(scaled, repeat_vector(scale, scaled.shape, 0)), values)
    if not (flag("polyfit", "full", full) or cov):
        return result
    rest = lax.abs(lax.sub(right, matmul(left, scaled)))
    squares = lax.reduce_sum(lax.mul(rest, rest), (0,))
    rank = lax.reduce_sum(convert(chosen, np.dtype(np.int32)), (0,))
    if full:
        low = points.size <= count or (is_known(rank) and int(rank) < count)
        return result, squares[:0] if low else squares, rank, s, share
    inner = matmul(spread, adjoint(spread))
    outer = lax.mul(repeat_vector(scale, inner.shape, 0), repeat_vector(scale, inner.shape, 1))
    inner = convert(lax.real(lax.div(inner, outer)), powers) if powers in FLOAT else lax.div(inner, outer)
    return result, _covariances(inner, squares, values, points.size - count, cov)


def _floating(x: ArrayLike) -> Array:
    array = as_array(x)
    return convert(array, _lapack_type("polyfit", array.dtype))


def _check_points(x: Array, y: Array) -> None:
    if len(x.shape) != 1 or not x.size or len(y.shape) not in (1, 2) or y.shape[0] != x.shape[0]:
        raise ArgumentError(
            "polyfit: wanted n >= 1 points x, shape (n,), and values y of shape (n,) or (n, k), got "
            f"{x.shape} and {y.shape}"
        )


def _powers(x: Array, count: int) -> Array:
    """A column for each power of x, the highest first."""
    columns = [lax.full_like(x, 1)]
    for _ in range(count - 1):
        columns.append(lax.mul(columns[-1], x))
    return lax.concatenate([lax.reshape(column, (x.size, 1)) for column in reversed(columns)], 1)


def _weight_rows(rows: Array, w: ArrayLike) -> Array:
    weights = _floating(w)
    if weights.shape != rows.shape[:1]:
        raise ArgumentError(
            f"polyfit: wanted a weight for each of {rows.shape[0]} points, got shape {weights.shape}"
        )
    # NumPy multiplies in place: the products are rounded to the type of the rows.
    left, right = promote_operands("polyfit", rows, repeat_vector(weights, rows.shape, 0))
    return convert(lax.mul(left, right), rows.dtype)


def _match_rank(columns: Array, like: Array) -> Array:
    return columns if len(like.shape) == 2 else lax.reshape(columns, (columns.shape[0],))


def _covariances(inner: Array, squares: Array, values: Array, degrees: int, cov: bool | str) -> Array:
    """The covariances of the coefficients, with a last dimension for the fits if there are several."""
    several = len(values.shape) == 2
    if cov == "unscaled":
        return lax.reshape(inner, (*inner.shape, 1)) if several else inner
    if degrees <= 0:
        raise ValueRangeError(
            "polyfit: wanted more points than coefficients to estimate the covariance; "
            'cov="unscaled" takes the weights as inverse standard deviations'
        )
    shape = (*inner.shape, squares.size)
    variances = convert(lax.div(squares, float(degrees)), inner.dtype)
    result = lax.mul(lax.broadcast_in_dim(inner, shape, (0, 1)), repeat_vector(variances, shape, 2))
    return result if several else lax.reshape(result, inner.shape)
