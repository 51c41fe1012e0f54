"""Factors and systems of matrices: `jax.lax.linalg`'s names and arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from xarr.base.absent_names import missing
from xarr.base.tracebacks import names_errors
from xarr.base.typing import Array
from xarr.dtypes import COMPLEX, INTEGER
from xarr.errors import DTypeError, InputError, ShapeError
from xarr.ir import ops
from xarr.ir.ops.systems import permutation
from xarr.lax.contraction import dot_general
from xarr.lax.core import ArrayLike, flag, integer, operands
from xarr.lax.creation import broadcasted_iota, full_like
from xarr.lax.elementwise import add, complex, conj, convert_element_type, div, ge, mul, select, sub
from xarr.lax.lapack import (
    check as check,
    geev as geev,
    geqrf as geqrf,
    gesdd as gesdd,
    getrf as getrf,
    householder_product as householder_product,
    slogdet as slogdet,
    solve as solve,
    syevd as syevd,
)
from xarr.lax.movement import expand_dims, pad, slice, squeeze, transpose
from xarr.runtime.handles import wrap
from xarr.runtime.small_ops import apply_op


@names_errors
def cholesky(x: ArrayLike, *, symmetrize_input: bool = True) -> Array:
    """The lower triangular L with L L* = x, for each Hermitian matrix in the last two dimensions.

    symmetrize_input: take (x + x*) / 2; else only the lower triangle of x is read.

    Returns an array of the operand's shape, NaN for a matrix that is not positive definite.
    Raises DTypeError [C1] for integers, ShapeError [C2], [C3].  Source: XLA's Cholesky, with jax's argument.
    """
    (node,) = operands("cholesky", x)
    symmetrize_input = flag("cholesky", "symmetrize_input", symmetrize_input)
    op = ops.Cholesky(True)
    op.infer(node.type)
    array = wrap(node)
    if symmetrize_input:
        array = div(add(array, _adjoint(array)), 2)
    return _triangle(apply_op(op, (array._node,)), is_lower=True)


def _triangle(array: Array, is_lower: bool) -> Array:
    """The lower or the upper triangle, with zeros in the other one, where a factor that failed has NaN."""
    rank, shape = array.ndim, array.shape
    row, column = (broadcasted_iota(np.int32, shape, rank - back) for back in (2, 1))
    return select(ge(row, column) if is_lower else ge(column, row), array, full_like(array, 0))


def _adjoint(array: Array) -> Array:
    rank = array.ndim
    swapped = transpose(array, (*range(rank - 2), rank - 1, rank - 2))
    return conj(swapped) if array.dtype in COMPLEX else swapped


@names_errors
def cholesky_of_triangle(x: ArrayLike, lower: bool = True) -> Array:
    """The factor of the Hermitian matrix of which one triangle is given: XLA's Cholesky as it is.

    lower: read the lower triangle and give L; else read the upper one and give L*.
    """
    (node,) = operands("cholesky", x)
    return apply_op(ops.Cholesky(flag("cholesky", "lower", lower)), (node,))


@names_errors
def triangular_solve(
    a: ArrayLike,
    b: ArrayLike,
    *,
    left_side: bool = False,
    lower: bool = False,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
) -> Array:
    """The x with op(a) x = b, or x op(a) = b if not `left_side`, for triangular matrices a.

    a: shape (..., n, n), of which only the lower (or else upper) triangle is read, and with `unit_diagonal`
        not the diagonal; b: shape (..., n, m), (..., m, n) for the right side, or (..., n).
    transpose_a, conjugate_a: what op does.

    Returns an array of b's shape; where a is singular, infinities and NaN.
    Raises DTypeError [C1], ShapeError [C2]-[C4].  Source: XLA's TriangularSolve, with jax's arguments.
    """
    left_side, lower, transpose_a, conjugate_a, unit_diagonal = (
        flag("triangular_solve", argument, value)
        for argument, value in (
            ("left_side", left_side),
            ("lower", lower),
            ("transpose_a", transpose_a),
            ("conjugate_a", conjugate_a),
            ("unit_diagonal", unit_diagonal),
        )
    )
    left, right = operands("triangular_solve", a, b)
    if len(left.shape) - len(right.shape) == 1:
        return _of_vectors(
            wrap(left),
            wrap(right),
            left_side=left_side,
            lower=lower,
            transpose_a=transpose_a,
            conjugate_a=conjugate_a,
            unit_diagonal=unit_diagonal,
        )
    kind = "NO_TRANSPOSE"
    if transpose_a:
        kind = "ADJOINT" if conjugate_a and left.dtype in COMPLEX else "TRANSPOSE"
    elif conjugate_a and left.dtype in COMPLEX:
        left = conj(wrap(left))._node
    op = ops.TriangularSolve(left_side, lower, unit_diagonal, kind)
    return apply_op(op, (left, right))


def _of_vectors(a: Array, b: Array, *, left_side: bool, **flags: bool) -> Array:
    """Solve for vectors, which are columns on the left side and rows on the right."""
    if not b.ndim:
        raise ShapeError("triangular_solve [C2]: wanted vectors or matrices b, got a scalar")
    axis = b.ndim if left_side else b.ndim - 1
    return squeeze(triangular_solve(a, expand_dims(b, (axis,)), left_side=left_side, **flags), (axis,))


# --- factorisations -------------------------------------------------------------------------------


@names_errors
def lu(x: ArrayLike) -> tuple[Array, Array, Array]:
    """(lu, pivots, permutation) with x[permutation] = L U, for each matrix in the last two dimensions.

    lu: U on and above the diagonal, L, whose diagonal is 1, below it; pivots: row i was exchanged with row
    pivots[i], one after the other, int32; permutation: the rows of x in their new order, int32.
    Raises DTypeError [C1], ShapeError [C2].  Source: jax.lax.linalg.
    """
    factors, rows, _ = getrf(x)
    pivots = sub(rows, 1)
    return factors, pivots, lu_pivots_to_permutation(pivots, factors.shape[-2])


@names_errors
def lu_pivots_to_permutation(pivots: ArrayLike, permutation_size: int) -> Array:
    """The order of rows 0, 1 … after exchanging row i with row pivots[i], one after the other; int32.

    pivots: integers of shape (..., k) with k <= permutation_size.  Raises ShapeError for others.
    Source: jax.lax.linalg.
    """
    size = integer("lu_pivots_to_permutation", "permutation_size", permutation_size)
    (node,) = operands("lu_pivots_to_permutation", pivots)
    if node.dtype not in INTEGER:
        raise DTypeError(f"lu_pivots_to_permutation: wanted integers, got {node.dtype}")
    if not node.shape or node.shape[-1] > size:
        raise ShapeError(
            f"lu_pivots_to_permutation: wanted pivots (..., k) with k <= {size}, got shape {node.shape}"
        )
    counted = add(convert_element_type(wrap(node), np.int32), 1)
    return wrap(permutation(counted._node, size))


@names_errors
def qr(x: ArrayLike, *, pivoting: bool = False, full_matrices: bool = True) -> tuple[Array, Array]:
    """(q, r) with q r = x, the columns of q orthonormal and r zero below its diagonal.

    full_matrices: q of shape (..., m, m) and r (..., m, n), else (..., m, k) and (..., k, n), k = min(m, n).
    Raises InputError for pivoting, which is not there; DTypeError [C1], ShapeError [C2].
    Source: jax.lax.linalg.
    """
    if flag("qr", "pivoting", pivoting):
        raise InputError("qr: pivoting=True is not supported; wanted pivoting=False")
    full = flag("qr", "full_matrices", full_matrices)
    factors, taus = geqrf(x)
    rows, columns = factors.shape[-2:]
    size = min(rows, columns)
    wide = rows if full else size
    return _first_columns(factors, taus, wide), _triangle(_cut(factors, wide, columns), is_lower=False)


def _first_columns(factors: Array, taus: Array, count: int) -> Array:
    """So many columns of the product of the reflections that lie below the diagonal of `factors`."""
    rows, columns = factors.shape[-2:]
    more = max(count - columns, 0)
    if more:
        zero = full_like(factors, 0, shape=())
        factors = pad(factors, zero, [(0, 0, 0)] * (factors.ndim - 1) + [(0, more, 0)])
    return householder_product(_cut(factors, rows, count), taus)


def _cut(array: Array, rows: int, columns: int) -> Array:
    """The first rows and columns of each matrix."""
    limits = (*array.shape[:-2], rows, columns)
    return array if array.shape == limits else slice(array, (0,) * array.ndim, limits)


@names_errors
def svd(x: ArrayLike, *, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    """(u, s, vh) with u s vh = x, s descending; s alone without compute_uv.

    full_matrices: u of shape (..., m, m) and vh (..., n, n), else (..., m, k) and (..., k, n), k = min(m, n).
    NaN where it does not converge.  Raises DTypeError [C1], ShapeError [C2].  Source: jax.lax.linalg.
    """
    _, s, u, vh, _ = gesdd(x, full_matrices, compute_uv)
    return (u, s, vh) if compute_uv else s


@names_errors
def eigh(
    x: ArrayLike, *, lower: bool = True, symmetrize_input: bool = True, sort_eigenvalues: bool = True
) -> tuple[Array, Array]:
    """(v, w) with x v = v w for Hermitian x, the columns of v orthonormal.

    lower: the triangle that is read; symmetrize_input: take (x + x*) / 2 first.  The eigenvalues ascend,
    asked for by sort_eigenvalues or not.  NaN where it does not converge.
    Raises DTypeError [C1], ShapeError [C2], [C3].  Source: jax.lax.linalg.
    """
    flag("eigh", "sort_eigenvalues", sort_eigenvalues)
    (node,) = operands("eigh", x)
    ops.Eigh().infer(node.type)
    array = wrap(node)
    if flag("eigh", "symmetrize_input", symmetrize_input):
        array = div(add(array, _adjoint(array)), 2)
    v, w, _ = syevd(array, lower)
    return v, w


@names_errors
def eig(
    x: ArrayLike, *, compute_left_eigenvectors: bool = True, compute_right_eigenvectors: bool = True
) -> list[Array]:
    """[w, vl, vr] with x vr = vr w and vl* x = w vl*, all complex; without the vectors not asked for.

    NaN where it does not converge.  Raises DTypeError [C1], ShapeError [C2], [C3].  Source: jax.lax.linalg.
    """
    *values, left, right, _ = geev(x, compute_left_eigenvectors, compute_right_eigenvectors)
    w = values[0] if len(values) == 1 else complex(values[0], values[1])
    wanted = ((left, compute_left_eigenvectors), (right, compute_right_eigenvectors))
    return [w, *[vectors for vectors, is_wanted in wanted if is_wanted]]


@names_errors
def symmetric_product(
    a_matrix: ArrayLike,
    c_matrix: ArrayLike,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    symmetrize_output: bool = False,
) -> Array:
    """alpha a aT + beta c, of which the lower triangle counts; with symmetrize_output all of it.

    a_matrix: shape (..., n, k); c_matrix: (..., n, n).  Raises ShapeError, DTypeError.  Source: jax.lax.linalg.
    """
    a, c = operands("symmetric_product", a_matrix, c_matrix)
    left, addend = wrap(a), wrap(c)
    rank = left.ndim
    if rank < 2 or addend.shape != (*left.shape[:-1], left.shape[-2]):
        raise ShapeError(
            f"symmetric_product: wanted a (..., n, k) and c (..., n, n), got {a.type.short()} and {c.type.short()}"
        )
    own = tuple(range(rank - 2))
    product = dot_general(left, left, (((rank - 1,), (rank - 1,)), (own, own)))
    result = add(mul(product, alpha), mul(addend, beta))
    if not flag("symmetric_product", "symmetrize_output", symmetrize_output):
        return result
    row, column = (broadcasted_iota(np.int32, result.shape, rank - back) for back in (2, 1))
    return select(ge(row, column), result, transpose(result, (*own, rank - 1, rank - 2)))


if not TYPE_CHECKING:  # a module with __getattr__ has every name to a type checker

    def __getattr__(name: str) -> object:
        raise missing(__name__, name)
