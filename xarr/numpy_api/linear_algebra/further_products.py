"""Products of vectors and matrices beyond `matmul`: of Kronecker, of vectors in space, of one of each."""

from __future__ import annotations

from xarr import lax
from xarr.base.typing import Array
from xarr.calls.arguments import conjugate_complex
from xarr.calls.operands import broadcast_operands, promote_operands
from xarr.calls.ufuncs import gufunc
from xarr.dtypes import BOOL
from xarr.errors import DTypeError, ShapeError
from xarr.lax.core import ArrayLike, integer
from xarr.numpy_api.linear_algebra.products import matmul
from xarr.shapes import normalize_axis


def kron(a: ArrayLike, b: ArrayLike) -> Array:
    """result[i * n + k, j * m + l] = a[i, j] * b[k, l], for n by m matrices b and in any rank.

    The array of lower rank gets dimensions of size 1 in front.  Source: NumPy, `kron`.
    """
    x, y = promote_operands("kron", a, b)
    rank = max(x.ndim, y.ndim)
    left, right = ((1,) * (rank - array.ndim) + array.shape for array in (x, y))
    both = tuple(size for pair in zip(left, right, strict=True) for size in pair)
    blocks = lax.broadcast_in_dim(lax.reshape(x, left), both, range(0, 2 * rank, 2))
    copies = lax.broadcast_in_dim(lax.reshape(y, right), both, range(1, 2 * rank, 2))
    product = lax.bitwise_and(blocks, copies) if x.dtype in BOOL else lax.mul(blocks, copies)
    return lax.reshape(product, [one * other for one, other in zip(left, right, strict=True)])


def cross(
    a: ArrayLike,
    b: ArrayLike,
    axisa: int = -1,
    axisb: int = -1,
    axisc: int = -1,
    axis: int | None = None,
) -> Array:
    """The cross product of vectors of 3 elements along axisa and axisb; it lies along axisc of the result.

    axis: stands for all three.  Vectors of 2 elements have 0 as third; of two such, the third element
    of the product alone is given.  The other dimensions broadcast.
    Raises ShapeError for vectors of another length, DTypeError for bools, AxisError, BroadcastError.
    Source: NumPy, `cross`.
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = promote_operands("cross", a, b)
    if x.dtype in BOOL:
        raise DTypeError("cross: wanted numbers, got bools; x.astype('int8')")
    first, second = (_components(*each) for each in (("a", x, axisa), ("b", y, axisb)))
    parts = broadcast_operands("cross", *first, *second)
    left, right = list(parts[: len(first)]), list(parts[len(first) :])
    last = lax.sub(lax.mul(left[0], right[1]), lax.mul(left[1], right[0]))
    if len(left) == len(right) == 2:
        return last
    zero = lax.full_like(last, 0)
    (x0, x1, x2), (y0, y1, y2) = ((*vector, zero)[:3] for vector in (left, right))
    components = (lax.sub(lax.mul(x1, y2), lax.mul(x2, y1)), lax.sub(lax.mul(x2, y0), lax.mul(x0, y2)), last)
    dim = normalize_axis(integer("cross", "axisc", axisc), last.ndim + 1)
    return lax.concatenate([lax.expand_dims(part, (dim,)) for part in components], dim)


def _components(name: str, array: Array, axis: int) -> tuple[Array, ...]:
    """The vectors' elements, one array for each."""
    if not array.ndim:
        raise ShapeError(f"cross: wanted vectors {name}, got a scalar")
    dim = normalize_axis(integer("cross", f"axis{name}", axis), array.ndim)
    if array.shape[dim] not in (2, 3):
        raise ShapeError(
            f"cross: wanted 3 (or 2) elements along axis {axis} of {name}, got shape {array.shape}"
        )
    return tuple(lax.index_in_dim(array, index, dim, False) for index in range(array.shape[dim]))


@gufunc("(m,n),(n)->(m)", axes=None)
def matvec(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The products of matrices x1 (…, m, n) with vectors x2 (…, n); the leading dimensions broadcast.

    Raises ShapeError, BroadcastError.  Source: NumPy, `matvec`.
    """
    a, b = promote_operands("matvec", x1, x2)
    if a.ndim < 2 or not b.ndim:
        raise ShapeError(f"matvec: wanted x1 (…, m, n) and x2 (…, n), got {a.shape} and {b.shape}")
    return lax.squeeze(matmul(a, lax.expand_dims(b, (b.ndim,))), (max(a.ndim, b.ndim + 1) - 1,))


@gufunc("(n),(n,m)->(m)", axes=None)
def vecmat(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The products of conj(x1), vectors (…, m), with matrices x2 (…, m, n); the leading dimensions broadcast.

    Raises ShapeError, BroadcastError.  Source: NumPy, `vecmat`.
    """
    a, b = promote_operands("vecmat", x1, x2)
    if not a.ndim or b.ndim < 2:
        raise ShapeError(f"vecmat: wanted x1 (…, m) and x2 (…, m, n), got {a.shape} and {b.shape}")
    a = conjugate_complex(a)
    return lax.squeeze(matmul(lax.expand_dims(a, (a.ndim - 1,)), b), (max(a.ndim + 1, b.ndim) - 2,))
