"""Products of matrices and vectors: those that sum are one `dot_general`, Kronecker's and the cross product are not.

Products of bools are logical: or of ands.  Floats narrower than 32 bits are multiplied and summed as float32
and rounded once; integers wrap.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from xarr import lax
from xarr.base.broadcasting import Misfit, align_numpy, refusal
from xarr.base.configuration import current as config
from xarr.base.typing import Array
from xarr.calls.arguments import conjugate_complex, convert
from xarr.calls.operands import align_observed, broadcast_operands, promote_operands
from xarr.calls.outputs import takes_out
from xarr.calls.remembered_calls import remembers_calls
from xarr.calls.ufuncs import gufunc
from xarr.dtypes import BOOL, FLOAT, PREDICATE, xla_name
from xarr.errors import DTypeError, InputError, ShapeError
from xarr.explanation.errors import product_error
from xarr.ir.source import written_operands
from xarr.lax.core import ArrayLike, integer
from xarr.shapes import normalize_axes, normalize_axis

__all__ = [
    "cross",
    "dot",
    "inner",
    "kron",
    "matmul",
    "matvec",
    "outer",
    "tensordot",
    "vdot",
    "vecdot",
    "vecmat",
]

Axes = int | Sequence[int]
Contraction = tuple[tuple[int, ...], tuple[int, ...]]


def product(a: Array, b: Array, contracting: Contraction, batch: Contraction = ((), ())) -> Array:
    """dot_general with NumPy's element types."""
    dtype = a.dtype
    if dtype in BOOL:
        counts = product(convert(a, np.dtype(np.int64)), convert(b, np.dtype(np.int64)), contracting, batch)
        return convert(counts, PREDICATE)
    wide = np.dtype(np.float32) if dtype in FLOAT and dtype.itemsize < 4 else dtype
    return convert(lax.dot_general(a, b, (contracting, batch), preferred_element_type=wide), dtype)


def _multiply_by_scalar(a: Array, b: Array) -> Array:
    """The product with a scalar."""
    multiply = lax.bitwise_and if a.dtype in BOOL else lax.mul
    return multiply(a, b)


# --- matmul ---------------------------------------------------------------------------------------


@gufunc("(n?,k),(k,m?)->(n?,m?)", axes=None)
def matmul(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Matrix product over the last dimension of x1 and the last but one of x2.

    x1: (…, m, k) or (k,); x2: (…, k, n) or (k,); the result is (…, m, n) without the dimensions that a vector
    lacks.  The leading dimensions broadcast, within what `config.broadcasting` allows.  Raises ShapeError for
    scalars and for contracted sizes that differ, with the transposes that would fit; BroadcastError.
    Source: NumPy and Array API, `matmul`.
    """
    a, b = promote_operands("matmul", x1, x2)
    for number, array in enumerate((a, b), 1):
        if not array.shape:
            raise ShapeError(
                f"matmul: x{number} is a scalar; wanted rank 1 or more, `*` multiplies by scalars"
            )
    inner = max(len(b.shape) - 2, 0)
    if a.shape[-1] != b.shape[inner]:
        raise _misfit("matmul", a, b)
    last = len(a.shape) - 1
    if len(b.shape) <= 2:
        return product(a, b, ((last,), (inner,)))
    if len(a.shape) <= 2:
        result = product(a, b, ((last,), (inner,)))
        return result if len(a.shape) == 1 else _first_to_last_but_one(result)
    return _multiply_batches(a, b)


def _first_to_last_but_one(array: Array) -> Array:
    """(m, …, n) as (…, m, n)."""
    rank = len(array.shape)
    return lax.transpose(array, [*range(1, rank - 1), 0, rank - 1])


def _multiply_batches(a: Array, b: Array) -> Array:
    batch = _common_batch("matmul", a, b, 2)
    count = len(batch)
    a, b = _with_batch(a, batch, 2), _with_batch(b, batch, 2)
    own = tuple(range(count))
    return product(a, b, ((count + 1,), (count,)), (own, own))


def _common_batch(name: str, a: Array, b: Array, core: int) -> tuple[int, ...]:
    """The shape that the dimensions before the last `core` ones broadcast to."""
    first, second = (array.shape[: len(array.shape) - core] for array in (a, b))
    alignment = align_numpy(first, second)
    if isinstance(alignment, Misfit):
        raise _misfit(name, a, b)
    mode: Any = config.broadcasting
    if mode != "numpy" and refusal(alignment, mode) is not None:
        problem = refusal(alignment, mode, written_operands(2) or ("a", "b"))
        raise _misfit(name, a, b, problem=f"{problem} of the batch axes")
    return align_observed(name, (first, second), (a.dtype, b.dtype)).result


def _with_batch(array: Array, batch: tuple[int, ...], core: int) -> Array:
    """`array` with its leading dimensions repeated to `batch`; the last `core` ones stay."""
    shape = batch + array.shape[len(array.shape) - core :]
    if array.shape == shape:
        return array
    missing = len(shape) - len(array.shape)
    return lax.broadcast_in_dim(array, shape, range(missing, len(shape)))


def _misfit(
    name: str,
    a: Array,
    b: Array,
    pairs: Sequence[tuple[int, int]] | None = None,
    problem: str | None = None,
) -> ShapeError:
    """The error for shapes that have no such product: its table, and what would work, with the user's names.

    `problem` is a refusal by the strictness in force.
    """
    dtypes = [xla_name(array.dtype) for array in (a, b)]
    # tensordot(a, b, axes) has a third argument.
    names = written_operands(2) or (written_operands(3) or ())[:2]
    return product_error(name, (a.shape, b.shape), names or None, dtypes, pairs, problem)


# --- products of vectors and tensors --------------------------------------------------------------


@takes_out("no")
def dot(a: ArrayLike, b: ArrayLike, out: Array | None = None) -> Array:
    """Sum of products over the last dimension of a and the last but one of b, for all pairs of the others.

    Unlike `matmul`, leading dimensions do not broadcast but combine, and scalars multiply.  Raises
    ShapeError.  Source: NumPy, `dot`.
    """
    x, y = promote_operands("dot", a, b)
    if not x.shape or not y.shape:
        return _multiply_by_scalar(x, y)
    return _contract("dot", x, y, (len(x.shape) - 1,), (max(len(y.shape) - 2, 0),))


@remembers_calls
def inner(a: ArrayLike, b: ArrayLike, /) -> Array:
    """Sum of products over the last dimension of both, for all pairs of the others; scalars multiply.

    Raises ShapeError for different sizes.  Source: NumPy, `inner`.
    """
    x, y = promote_operands("inner", a, b)
    if not x.shape or not y.shape:
        return _multiply_by_scalar(x, y)
    return _contract("inner", x, y, (len(x.shape) - 1,), (len(y.shape) - 1,))


def _contract(name: str, a: Array, b: Array, left: tuple[int, ...], right: tuple[int, ...]) -> Array:
    pairs = list(zip(left, right, strict=True))
    if any(a.shape[i] != b.shape[j] for i, j in pairs):
        raise _misfit(name, a, b, pairs)
    return product(a, b, (left, right))


@remembers_calls
def tensordot(a: ArrayLike, b: ArrayLike, axes: int | tuple[Axes, Axes] = 2) -> Array:
    """Sum of products over pairs of dimensions; the others follow, those of a before those of b.

    axes: n for the last n dimensions of a with the first n of b, or (axes of a, axes of b).  Raises
    ShapeError for sizes or counts that differ, AxisError.  Source: NumPy and Array API, `tensordot`.
    """
    x, y = promote_operands("tensordot", a, b)
    left, right = _pair_axes(axes, len(x.shape), len(y.shape))
    if len(left) != len(right):
        raise ShapeError(f"tensordot: wanted as many axes of a as of b, got {left} and {right}")
    return _contract("tensordot", x, y, left, right)


def _pair_axes(axes: int | tuple[Axes, Axes], rank: int, other: int) -> Contraction:
    if isinstance(axes, Sequence | np.ndarray):
        if len(axes) != 2:
            raise InputError(f"tensordot: wanted axes as an int or as (axes of a, axes of b), got {axes!r}")
        return normalize_axes(axes[0], rank, name="axes[0]"), normalize_axes(axes[1], other, name="axes[1]")
    count = integer("tensordot", "axes", axes)
    if not 0 <= count <= min(rank, other):
        raise ShapeError(
            f"tensordot: wanted axes between 0 and {min(rank, other)}, the lower rank of the two, got {count}"
        )
    return tuple(range(rank - count, rank)), tuple(range(count))


@gufunc("(n),(n)->()", axes=None, axis=-1, keepdims=False)
def vecdot(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Sum of conj(x1) * x2 over `axis` of each, by default the last; the other dimensions broadcast.

    Raises ShapeError for scalars and for sizes along `axis` that differ, BroadcastError.
    Source: NumPy and Array API, `vecdot`.
    """
    a, b = promote_operands("vecdot", x1, x2)
    for array in (a, b):
        normalize_axis(-1, len(array.shape))
    if a.shape[-1] != b.shape[-1]:
        raise _misfit("vecdot", a, b)
    batch = _common_batch("vecdot", a, b, 1)
    a, b = _with_batch(conjugate_complex(a), batch, 1), _with_batch(b, batch, 1)
    own = tuple(range(len(batch)))
    return product(a, b, ((len(batch),), (len(batch),)), (own, own))


@remembers_calls
def vdot(a: ArrayLike, b: ArrayLike, /) -> Array:
    """Sum of conj(a) * b over all elements in row-major order.

    Raises ShapeError for different numbers of elements.  Source: NumPy, `vdot`.
    """
    x, y = (_flat(array) for array in promote_operands("vdot", a, b))
    if x.shape != y.shape:
        raise ShapeError(f"vdot: wanted as many elements in a as in b, got {x.shape[0]} and {y.shape[0]}")
    return product(conjugate_complex(x), y, ((0,), (0,)))


@takes_out("same_kind")
def outer(a: ArrayLike, b: ArrayLike, out: Array | None = None) -> Array:
    """result[i, j] = a[i] * b[j], of arrays flattened in row-major order.  Source: NumPy, `outer`."""
    x, y = (_flat(array) for array in promote_operands("outer", a, b))
    shape = (x.shape[0], y.shape[0])
    return _multiply_by_scalar(lax.broadcast_in_dim(x, shape, (0,)), lax.broadcast_in_dim(y, shape, (1,)))


def _flat(array: Array) -> Array:
    return lax.reshape(array, (math.prod(array.shape),))


@remembers_calls
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


@remembers_calls
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
