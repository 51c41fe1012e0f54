"""Norms of vectors and matrices, and condition numbers."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from math import inf
from typing import Any, Final

import numpy as np

from xarr import lax
from xarr.base.typing import Array
from xarr.calls.arguments import convert
from xarr.calls.operands import as_array
from xarr.calls.remembered_calls import remembers_calls
from xarr.dtypes import BOOL, COMPLEX, INTEGER
from xarr.errors import MatrixShapeError, ValueRangeError
from xarr.ir.types import Ints
from xarr.lax import linalg as lapack
from xarr.lax.core import ArrayLike, flag
from xarr.linalg._arguments import axes_of, matrices, refuse_empty, scalar, square
from xarr.linalg.decompositions import svdvals
from xarr.linalg.systems import identities
from xarr.numpy_api.statistics import reductions as statistics
from xarr.runtime.handles import Handle


@remembers_calls
def norm(x: ArrayLike, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Array:
    """The norm of vectors along one axis or of matrices along two.

    ord: for vectors any number: (sum of |x| ** ord) ** (1 / ord), inf and -inf for the largest and least |x|, 0 for
    the number of elements other than 0.  For matrices 1, -1, inf, -inf (column and row sums of |x|), 2, -2, "nuc"
    (the largest and least singular value, their sum), "fro".  None: the root of the sum of |x| ** 2.
    axis: None for all of x, which has rank 1 or 2 unless ord is None too.  keepdims: leave those axes with size 1.
    Integers count as float64.  Raises ValueRangeError for another ord, MatrixShapeError for other numbers of axes,
    AxisError.  Source: NumPy, `linalg.norm`.
    """
    array = _inexact(x)
    keeps = flag("linalg.norm", "keepdims", keepdims)
    if axis is None:
        axes = tuple(range(array.ndim))
        is_frobenius = isinstance(ord, str) and ord in ("f", "fro") and array.ndim == 2
        is_plain = ord is None or is_frobenius or (_is(ord, 2) and array.ndim == 1)
        if is_plain:
            return _keep_axes(_root_of_squares(array, axes), array, axes, keeps)
    else:
        axes = axes_of("norm", axis, array.ndim)
    if len(axes) == 1:
        return _keep_axes(_of_vectors(array, ord, axes), array, axes, keeps)
    if len(axes) == 2:
        return _keep_axes(_of_matrices(array, ord, axes), array, axes, keeps)
    raise MatrixShapeError(f"linalg.norm: wanted one or two axes, got {len(axes)} of shape {array.shape}")


@remembers_calls
def vector_norm(x: ArrayLike, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Array:
    """The norm of vectors: of all elements, or along one or several axes, which count as one.

    ord: any number, as in `norm`.  Raises ValueRangeError for another one, AxisError.
    Source: NumPy and Array API, `linalg.vector_norm`.
    """
    array = _inexact(x)
    axes = tuple(range(array.ndim)) if axis is None else axes_of("vector_norm", axis, array.ndim)
    return _keep_axes(
        _of_vectors(array, ord, axes), array, axes, flag("linalg.vector_norm", "keepdims", keepdims)
    )


@remembers_calls
def matrix_norm(x: ArrayLike, /, *, keepdims: bool = False, ord: Any = "fro") -> Array:
    """The norm of the matrices in the last two dimensions.

    ord: as in `norm`.  Raises ValueRangeError for another one, MatrixShapeError for rank 0 and 1.
    Source: NumPy and Array API, `linalg.matrix_norm`.
    """
    array = _inexact(x)
    if array.ndim < 2:
        raise MatrixShapeError(f"linalg.matrix_norm: wanted rank 2 or more, got shape {array.shape}")
    axes = (array.ndim - 2, array.ndim - 1)
    return _keep_axes(
        _of_matrices(array, ord, axes), array, axes, flag("linalg.matrix_norm", "keepdims", keepdims)
    )


@remembers_calls
def cond(x: ArrayLike, p: Any = None) -> Array:
    """The condition number: the norm of x times the norm of its inverse, inf for singular matrices.

    p: None or 2 for the largest singular value over the least, -2 for the reverse, which take any matrices; else
    as ord in `norm`.  Raises MatrixShapeError for empty matrices, and unless square where they must be.
    Source: NumPy, `linalg.cond`.
    """
    array = matrices("cond", x)
    refuse_empty("cond", array)
    if p is None or _is(p, 2) or _is(p, -2):
        s = svdvals(array)
        first, last = (lax.index_in_dim(s, index, s.ndim - 1, False) for index in (0, s.shape[-1] - 1))
        ratio = lax.div(last, first) if _is(p, -2) else lax.div(first, last)
    else:
        inverse, _ = lapack.solve(square("cond", array), identities(array))
        axes = (array.ndim - 2, array.ndim - 1)
        ratio = lax.mul(_of_matrices(array, p, axes), _of_matrices(inverse, p, axes))
    # NaN that is not the operand's is what dividing by 0 left.
    had_none = lax.reduce_and(lax.eq(array, array), (array.ndim - 2, array.ndim - 1))
    spoilt = lax.bitwise_and(lax.ne(ratio, ratio), had_none)
    return lax.select(spoilt, lax.full_like(ratio, inf), ratio)


# --- kinds ----------------------------------------------------------------------------------------


def _inexact(x: ArrayLike) -> Array:
    array = as_array(x)
    return convert(array, np.dtype(np.float64)) if array.dtype in BOOL | INTEGER else array


def _is(ord: Any, number: float) -> bool:
    """Whether a norm is the one of this number; an Array would compare element by element."""
    return not isinstance(ord, str | Handle) and bool(ord == number)


def _keep_axes(norms: Array, array: Array, axes: Ints, keeps: bool) -> Array:
    if not keeps:
        return norms
    return lax.reshape(norms, [1 if axis in axes else size for axis, size in enumerate(array.shape)])


def _root_of_squares(array: Array, axes: Ints) -> Array:
    if array.dtype in COMPLEX:
        real, imag = lax.real(array), lax.imag(array)
        squares = lax.add(lax.mul(real, real), lax.mul(imag, imag))
    else:
        squares = lax.mul(array, array)
    return lax.sqrt(statistics.sum(squares, axis=axes))


def _of_vectors(array: Array, ord: Any, axes: Ints) -> Array:
    """The norms over `axes`, which count as one."""
    if ord is None or _is(ord, 2):
        return _root_of_squares(array, axes)
    if isinstance(ord, str | Handle) or not isinstance(ord, int | float | np.integer | np.floating):
        raise ValueRangeError(f"linalg.norm: wanted a number as ord of vectors, got {ord!r}")
    sizes = lax.abs(array)
    if ord == inf:
        return statistics.max(sizes, axis=axes, initial=0)
    if ord == -inf:
        return statistics.min(sizes, axis=axes)
    if ord == 0:
        return statistics.sum(convert(lax.ne(sizes, scalar(0, sizes)), sizes.dtype), axis=axes)
    if ord == 1:
        return statistics.sum(sizes, axis=axes)
    total = statistics.sum(lax.pow(sizes, scalar(float(ord), sizes)), axis=axes)
    return lax.pow(total, scalar(1 / float(ord), sizes))


def _of_singular_values(reduce: Callable[..., Array], **initial: float) -> Callable[[Array, Ints], Array]:
    def reduction(array: Array, axes: Ints) -> Array:
        rest = [axis for axis in range(array.ndim) if axis not in axes]
        return reduce(svdvals(lax.transpose(array, [*rest, *axes])), axis=-1, **initial)

    return reduction


def _of_sums(over: int, reduce: Callable[..., Array], **initial: float) -> Callable[[Array, Ints], Array]:
    """Sums of |x| over one of the two axes, of which the largest or least counts."""

    def reduction(array: Array, axes: Ints) -> Array:
        summed, other = axes[over], axes[1 - over]
        sums = statistics.sum(lax.abs(array), axis=summed)
        return reduce(sums, axis=other - (other > summed), **initial)

    return reduction


_MATRIX_NORMS: Final[dict[Any, Callable[[Array, Ints], Array]]] = {
    2: _of_singular_values(statistics.max, initial=0),
    -2: _of_singular_values(statistics.min),
    "nuc": _of_singular_values(statistics.sum),
    1: _of_sums(0, statistics.max, initial=0),
    -1: _of_sums(0, statistics.min),
    inf: _of_sums(1, statistics.max, initial=0),
    -inf: _of_sums(1, statistics.min),
    None: _root_of_squares,
    "fro": _root_of_squares,
    "f": _root_of_squares,
}


def _of_matrices(array: Array, ord: Any, axes: Ints) -> Array:
    if isinstance(ord, Handle) or not isinstance(ord, Hashable) or ord not in _MATRIX_NORMS:
        wanted = ", ".join(map(repr, _MATRIX_NORMS))
        raise ValueRangeError(f"linalg.norm: wanted one of {wanted} as ord of matrices, got {ord!r}")
    return _MATRIX_NORMS[ord](array, axes)
