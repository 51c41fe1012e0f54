"""Factors and systems of matrices: `jax.lax.linalg`'s names and arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from xarr.dtypes import COMPLEX
from xarr.errors import ShapeError
from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.lax.core import ArrayLike, flag, operands
from xarr.lax.creation import broadcasted_iota, full_like
from xarr.lax.elementwise import add, conj, div, ge, select
from xarr.lax.movement import expand_dims, squeeze, transpose
from xarr.lazy import wrap

if TYPE_CHECKING:
    from xarr.array import Array


def cholesky(x: ArrayLike, *, symmetrize_input: bool = True) -> Array:
    """The lower triangular L with L L* = x, for each Hermitian matrix in the last two dimensions.

    symmetrize_input: take (x + x*) / 2; else only the lower triangle of x is read.

    Returns an array of the operand's shape, NaN for a matrix that is not positive definite.
    Raises DTypeError [C1] for integers, ShapeError [C2], [C3].  Source: XLA's Cholesky, with jax's argument.
    """
    (node,), backend = operands("cholesky", x)
    symmetrize_input = flag("cholesky", "symmetrize_input", symmetrize_input)
    op = ops.Cholesky(True)
    op.infer(node.type)
    array = wrap(node, backend)
    if symmetrize_input:
        array = div(add(array, _adjoint(array)), 2)
    return _lower_triangle(wrap(Node(op, (array._node,)), backend))


def _lower_triangle(array: Array) -> Array:
    """Zeros above the diagonal, where a factor that failed has NaN."""
    rank, shape = array.ndim, array.shape
    row, column = (broadcasted_iota(np.int32, shape, rank - back) for back in (2, 1))
    return select(ge(row, column), array, full_like(array, 0))


def _adjoint(array: Array) -> Array:
    rank = array.ndim
    swapped = transpose(array, (*range(rank - 2), rank - 1, rank - 2))
    return conj(swapped) if array.dtype in COMPLEX else swapped


def cholesky_of_triangle(x: ArrayLike, lower: bool = True) -> Array:
    """The factor of the Hermitian matrix of which one triangle is given: XLA's Cholesky as it is.

    lower: read the lower triangle and give L; else read the upper one and give L*.
    """
    (node,), backend = operands("cholesky", x)
    return wrap(Node(ops.Cholesky(flag("cholesky", "lower", lower)), (node,)), backend)


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
    (left, right), backend = operands("triangular_solve", a, b)
    if len(left.shape) - len(right.shape) == 1:
        return _of_vectors(
            wrap(left, backend),
            wrap(right, backend),
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
        left = conj(wrap(left, backend))._node
    op = ops.TriangularSolve(left_side, lower, unit_diagonal, kind)
    return wrap(Node(op, (left, right)), backend)


def _of_vectors(a: Array, b: Array, *, left_side: bool, **flags: bool) -> Array:
    """The same for vectors, which are columns on the left side and rows on the right."""
    if not b.ndim:
        raise ShapeError("triangular_solve [C2]: wanted vectors or matrices b, got a scalar")
    axis = b.ndim if left_side else b.ndim - 1
    return squeeze(triangular_solve(a, expand_dims(b, (axis,)), left_side=left_side, **flags), (axis,))
