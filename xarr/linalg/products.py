"""Products of matrices: powers, chains, and what the Array API puts among linear algebra with other arguments."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import pairwise
from typing import Any

from numpy.typing import DTypeLike

from xarr import lax
from xarr.base.typing import Array
from xarr.calls.operands import as_array
from xarr.calls.outputs import takes_out
from xarr.calls.remembered_calls import remembers_calls
from xarr.errors import MatrixShapeError, ShapeError
from xarr.lax.core import ArrayLike, integer, items
from xarr.linalg._arguments import square
from xarr.linalg.systems import identities, inv
from xarr.numpy_api.indexing_routines import diagonals
from xarr.numpy_api.linear_algebra import products
from xarr.shapes import normalize_axis

__all__ = ["cross", "diagonal", "matrix_power", "multi_dot", "outer", "tensordot", "trace"]


@remembers_calls
def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Array:
    """The cross product of vectors of 3 elements along `axis`; the other dimensions broadcast.

    Raises ShapeError for vectors of another length, AxisError, BroadcastError.
    Source: NumPy and Array API, `linalg.cross`.
    """
    for array in (as_array(x1), as_array(x2)):
        if not array.ndim or array.shape[normalize_axis(axis, array.ndim)] != 3:
            raise ShapeError(f"linalg.cross: wanted 3 elements along axis {axis}, got shape {array.shape}")
    return products.cross(x1, x2, axis=axis)


@remembers_calls
def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Array:
    """The diagonals of the matrices in the last two dimensions.  Source: NumPy and Array API."""
    return diagonals.diagonal(x, offset, -2, -1)


@remembers_calls
def trace(x: ArrayLike, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> Array:
    """The sums of `diagonal`, with the element types of `sum`.  Source: NumPy and Array API, `linalg.trace`."""
    return diagonals.trace(x, offset, -2, -1, dtype)


@remembers_calls
def outer(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """result[i, j] = x1[i] * x2[j], of vectors.

    Raises ShapeError for other ranks than 1.  Source: NumPy and Array API, `linalg.outer`.
    """
    for array in (as_array(x1), as_array(x2)):
        if array.ndim != 1:
            raise ShapeError(f"linalg.outer: wanted two vectors, got shape {array.shape}; ravel it")
    return products.outer(x1, x2)


@remembers_calls
def tensordot(x1: ArrayLike, x2: ArrayLike, /, *, axes: Any = 2) -> Array:
    """`xarr.tensordot` with `axes` as keyword.  Source: NumPy and Array API, `linalg.tensordot`."""
    return products.tensordot(x1, x2, axes=axes)


@remembers_calls
def matrix_power(a: ArrayLike, n: int) -> Array:
    """The product of n times the same square matrix: the identity for n = 0, of the inverse for n < 0.

    Integers stay integers for n >= 0, and wrap.  Raises MatrixShapeError unless the matrices are square;
    LinAlgError for singular ones and n < 0.  Source: NumPy and Array API, `linalg.matrix_power`.
    """
    array, power = square("matrix_power", as_array(a)), integer("linalg.matrix_power", "n", n)
    if power == 0:
        return identities(array)
    base = inv(array) if power < 0 else array
    # As NumPy multiplies: squares, of which those that n has as binary digits from the lowest on are factors.
    digits, factors = abs(power), []
    if digits == 3:
        return products.matmul(products.matmul(base, base), base)
    while digits:
        if digits % 2:
            factors.append(base)
        digits //= 2
        if digits:
            base = products.matmul(base, base)
    return reduce(products.matmul, factors)


@takes_out("no")
def multi_dot(arrays: Sequence[ArrayLike], *, out: Array | None = None) -> Array:
    """The product of two or more matrices, in the order of multiplications that costs the least.

    The first may be a row vector and the last a column vector of rank 1.
    Two arrays of any rank are multiplied by `dot`.
    Raises MatrixShapeError for fewer than two, other ranks, and sizes that do not fit.
    Source: NumPy, `linalg.multi_dot`; Cormen, Introduction to Algorithms, 15.2.
    """
    factors = [as_array(array) for array in items("linalg.multi_dot", "arrays", arrays)]
    if len(factors) == 2:
        return products.dot(factors[0], factors[1])
    _check_chain(factors)
    first, last = factors[0].ndim == 1, factors[-1].ndim == 1
    factors[0] = lax.expand_dims(factors[0], (0,)) if first else factors[0]
    factors[-1] = lax.expand_dims(factors[-1], (1,)) if last else factors[-1]
    product = _product_of_chain(factors, _splits([array.shape for array in factors]), 0, len(factors) - 1)
    return lax.squeeze(product, [axis for axis, is_vector in enumerate((first, last)) if is_vector])


def _check_chain(factors: list[Array]) -> None:
    shapes = [array.shape for array in factors]
    if len(factors) < 2:
        raise MatrixShapeError(f"linalg.multi_dot: wanted two or more arrays, got {len(factors)}")
    inner_ranks = all(len(shape) == 2 for shape in shapes[1:-1])
    if not inner_ranks or any(len(shape) not in (1, 2) for shape in (shapes[0], shapes[-1])):
        raise MatrixShapeError(
            f"linalg.multi_dot: wanted matrices, or vectors as first and last, got shapes {shapes}"
        )
    if any(one[-1] != other[0] for one, other in pairwise(shapes)):
        raise MatrixShapeError(f"linalg.multi_dot: wanted sizes that fit one another, got shapes {shapes}")


def _splits(shapes: list[tuple[int, ...]]) -> dict[tuple[int, int], int]:
    """For each part of the chain where to cut it, so that the fewest numbers are multiplied."""
    sizes = [shape[0] for shape in shapes] + [shapes[-1][1]]
    cost = {(i, i): 0 for i in range(len(shapes))}
    best = {}
    for length in range(1, len(shapes)):
        for i in range(len(shapes) - length):
            j = i + length
            costs = [
                cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1] for k in range(i, j)
            ]
            cost[i, j] = min(costs)
            best[i, j] = i + costs.index(cost[i, j])
    return best


def _product_of_chain(factors: list[Array], splits: dict[tuple[int, int], int], i: int, j: int) -> Array:
    if i == j:
        return factors[i]
    k = splits[i, j]
    return products.dot(
        _product_of_chain(factors, splits, i, k), _product_of_chain(factors, splits, k + 1, j)
    )
