"""Covariance and correlation, convolution."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import DTypeLike

from xarr import lax
from xarr.base.typing import Array
from xarr.calls.arguments import conjugate_complex, convert, fill, truth
from xarr.calls.concrete_values import is_known
from xarr.calls.operands import DType, as_array, promote_operands
from xarr.calls.remembered_calls import remembers_calls
from xarr.dtypes import BOOL, COMPLEX, FLOAT, canonical, default_float, promote
from xarr.errors import ArgumentError, DTypeError, ShapeError, ValueRangeError
from xarr.lax.core import ArrayLike, flag
from xarr.lax.dynamic_sizes import refuse_dynamic
from xarr.numpy_api.creation.matrices import diag
from xarr.numpy_api.linear_algebra.products import matmul
from xarr.numpy_api.mathematics.elementwise import clip, isfinite
from xarr.numpy_api.statistics.lines import repeat_vector
from xarr.runtime.materialisation import to_host

__all__ = ["convolve", "corrcoef", "correlate", "cov"]


# --- covariance -----------------------------------------------------------------------------------------


@remembers_calls
def cov(
    m: ArrayLike,
    y: ArrayLike | None = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: ArrayLike | None = None,
    aweights: ArrayLike | None = None,
    *,
    dtype: DTypeLike | None = None,
) -> Array:
    """The covariances of variables: rows of `m`, columns unless `rowvar`, with those of `y` after them.

    bias, ddof: divided is by n - ddof, which is n - 1 by default and n with `bias`.
    fweights, aweights: how often each observation was made, and how much it counts; n is the sum of the former.
        They are computed now, to be looked at.

    At least float64, or `dtype`; a scalar for one variable.  Raises ShapeError for more than 2 dimensions or weights
    of another length, ValueRangeError for negative weights, which in a traced function go unseen, or a fractional
    ddof, DTypeError for fractional fweights.  Source: NumPy, `cov`.
    """
    if ddof is not None and ddof != int(ddof):
        raise ValueRangeError(f"cov: wanted an int for ddof, got {ddof}")
    rows = _variables("cov", m, y, flag("cov", "rowvar", rowvar), dtype)
    if not rows.shape[0]:
        return fill((0, 0), 0, default_float(), rows._node.device)
    degrees = (0 if flag("cov", "bias", bias) else 1) if ddof is None else int(ddof)
    frequencies = _weights("fweights", fweights, rows.shape[1], whole=True)
    importances = _weights("aweights", aweights, rows.shape[1], whole=False)
    weights = _product(frequencies, importances)
    count = rows.shape[1]
    if weights is None:
        total, factor = (lax.full((), each, np.float64) for each in (count, max(count - degrees, 0)))
        weighted = rows
    else:
        total = lax.reduce_sum(weights, (0,))
        factor = _factor(weights, importances, total, degrees)
        weighted = lax.mul(rows, repeat_vector(convert(weights, rows.dtype), rows.shape, 1))
    means = lax.div(
        lax.reduce_sum(weighted, (1,)), repeat_vector(convert(total, rows.dtype), rows.shape[:1], 0)
    )
    centred = lax.sub(rows, repeat_vector(means, rows.shape, 0))
    other = (
        centred
        if weights is None
        else lax.mul(centred, repeat_vector(convert(weights, rows.dtype), rows.shape, 1))
    )
    other = conjugate_complex(other)
    result = matmul(centred, lax.transpose(other, (1, 0)))
    result = lax.mul(result, repeat_vector(convert(lax.div(1.0, factor), result.dtype), result.shape, 0))
    return lax.reshape(result, () if result.shape == (1, 1) else result.shape)


def _factor(weights: Array, importances: Array | None, total: Array, degrees: int) -> Array:
    """The divisor of weighted sums: the sum of the weights without the degrees of freedom, at least 0."""
    if not degrees:
        factor = total
    elif importances is None:
        factor = lax.sub(total, float(degrees))
    else:
        squares = lax.reduce_sum(lax.mul(weights, importances), (0,))
        factor = lax.sub(total, lax.div(lax.mul(squares, float(degrees)), total))
    return lax.max(factor, lax.full_like(factor, 0))


def _variables(name: str, m: ArrayLike, y: ArrayLike | None, rowvar: bool, dtype: DTypeLike | None) -> Array:
    """A row for each variable."""
    arrays = [as_array(each) for each in (m, y) if each is not None]
    for array in arrays:
        refuse_dynamic(name, array, "sums and products of x with xarr.mean(x)")
        if len(array.shape) > 2:
            raise ShapeError(
                f"{name}: wanted at most 2 dimensions, variables and observations, got {array.shape}"
            )
    element = default_float() if dtype is None else canonical(dtype)
    if element not in FLOAT | COMPLEX:
        raise DTypeError(f"{name}: wanted a float or complex dtype, got {element}: means are not integers")
    for array in arrays if dtype is None else ():
        element = promote(element, array.dtype)
    rows = [_rows(convert(array, element), rowvar, first=array is arrays[0]) for array in arrays]
    if len(rows) == 2 and rows[0].shape[1] != rows[1].shape[1] and rows[0].shape[0]:
        raise ShapeError(
            f"{name}: wanted as many observations in y as in m, {rows[0].shape[1]}, got {rows[1].shape[1]}"
        )
    return rows[0] if len(rows) == 1 or not rows[0].shape[0] else lax.concatenate(rows, 0)


def _rows(array: Array, rowvar: bool, first: bool) -> Array:
    if len(array.shape) < 2:
        return lax.reshape(array, (1, array.size))
    is_transposed = not rowvar and (first or array.shape[0] != 1)
    return lax.transpose(array, (1, 0)) if is_transposed else array


class _WeightsShapeError(ShapeError, RuntimeError):
    """NumPy says RuntimeError."""


def _weights(name: str, weights: ArrayLike | None, count: int, *, whole: bool) -> Array | None:
    if weights is None:
        return None
    factors = convert(as_array(weights), np.dtype(np.float64))
    if factors.shape != (count,):
        raise _WeightsShapeError(
            f"cov: wanted {name} for each of {count} observations, got shape {factors.shape}"
        )
    if is_known(factors):
        values = to_host(factors)
        if whole and (values != np.rint(values)).any():
            raise DTypeError(f"cov: wanted whole numbers for {name}, got {values}; aweights= takes others")
        if (values < 0).any():
            raise ValueRangeError(f"cov: wanted {name} that are not negative, got {values}")
    return factors


def _product(first: Array | None, second: Array | None) -> Array | None:
    if first is None or second is None:
        return first if second is None else second
    return lax.mul(first, second)


@remembers_calls
def corrcoef(
    x: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True, *, dtype: DTypeLike | None = None
) -> Array:
    """Pearson's correlations of variables, in [-1, 1]: covariances over the roots of the variances.

    Arguments, types and errors as `cov`; NaN for a variable that does not vary.  Source: NumPy, `corrcoef`.
    """
    result = cov(x, y, rowvar, dtype=dtype)
    if not result.shape:
        return lax.div(result, result)
    variances = diag(result)
    spread = lax.sqrt(lax.real(variances) if result.dtype in COMPLEX else variances)
    for dim in (0, 1):
        result = lax.div(result, repeat_vector(convert(spread, result.dtype), result.shape, dim))
    if result.dtype in COMPLEX:
        return lax.complex(clip(lax.real(result), -1, 1), clip(lax.imag(result), -1, 1))
    return clip(result, -1, 1)


# --- convolution ----------------------------------------------------------------------------------------

#: By mode: how much is added to the longer sequence before and behind, for `n` elements of the shorter one.
_PADDINGS: Final[dict[str, Callable[[int], tuple[int, int]]]] = {
    "full": lambda n: (n - 1, n - 1),
    "same": lambda n: (n // 2, n - n // 2 - 1),
    "valid": lambda n: (0, 0),
}
#: The modes by NumPy's numbers of them.
_NUMBERED: Final = ("valid", "same", "full")


#: Sequences are convolved by products of matrices for at least so many products of elements, by a kernel of at most
#: so many elements, with at most so many elements of all matrices.
_LEAST: Final = 1 << 20
_LONGEST: Final = 8192
_MOST: Final = 1 << 26


@remembers_calls
def convolve(a: ArrayLike, v: ArrayLike, mode: str | int = "full") -> Array:
    """The sums of a[k] * v[n - k] for each n: of two sequences as the coefficients of a product of polynomials.

    mode: "full", all len(a) + len(v) - 1 of them; "same", the middle max(len(a), len(v)); "valid", those in which
        all of the shorter sequence takes part; as numbers 2, 1 and 0.
    Bools give whether any product holds.  Raises ShapeError for no elements or several dimensions, ValueRangeError
    for another mode.  Source: NumPy, `convolve`.
    """
    chosen = _mode("convolve", mode)
    first, second = _sequences("convolve", a, v)
    if second.size > first.size:
        first, second = second, first
    return _slide(first, lax.rev(second, (0,)), chosen)


@remembers_calls
def correlate(a: ArrayLike, v: ArrayLike, mode: str | int = "valid") -> Array:
    """The sums of a[n + k] * conj(v[k]) for each n.  Modes, types and errors as `convolve`.

    Source: NumPy, `correlate`.
    """
    chosen = _mode("correlate", mode)
    first, second = _sequences("correlate", a, v)
    second = conjugate_complex(second)
    if second.size > first.size:
        return lax.rev(_slide(second, first, chosen), (0,))
    return _slide(first, second, chosen)


def _mode(name: str, mode: str | int) -> str:
    """One of `_PADDINGS` from its name, or from NumPy's number of it."""
    if type(mode) is int and 0 <= mode < len(_NUMBERED):
        return _NUMBERED[mode]
    if not isinstance(mode, str):
        raise ArgumentError(f"{name}: wanted a mode of {', '.join(map(repr, _PADDINGS))}, got {mode!r}")
    if mode not in _PADDINGS:
        raise ValueRangeError(f"{name}: wanted a mode of {', '.join(map(repr, _PADDINGS))}, got {mode!r}")
    return mode


def _sequences(name: str, a: ArrayLike, v: ArrayLike) -> tuple[Array, Array]:
    if name == "correlate" and () in (as_array(a).shape, as_array(v).shape):
        raise ShapeError("correlate: wanted two vectors, got a scalar; [x] is a vector of one element")
    first, second = promote_operands(name, a, v)
    for array in (first, second):
        if len(array.shape) > 1 or not array.size:
            raise ShapeError(
                f"{name}: wanted vectors of at least one element, got shapes {first.shape} and {second.shape}"
            )
    return lax.reshape(first, (first.size,)), lax.reshape(second, (second.size,))


def _slide(array: Array, kernel: Array, mode: str) -> Array:
    """The inner products of the kernel with the elements under it as it slides along."""
    dtype = array.dtype
    if dtype in BOOL:
        counts = _slide(convert(array, np.dtype(np.int64)), convert(kernel, np.dtype(np.int64)), mode)
        return truth(counts)
    wide = _accumulator(dtype)
    signal, window = convert(array, wide), convert(kernel, wide)
    low, high = _PADDINGS[mode](kernel.size)
    block = _block(array.size + low + high, kernel.size, wide)
    if block is None:
        products = _by_windows(signal, window, low, high)
    else:
        # Products with the zeros of a Toeplitz matrix are 0 unless a factor is infinite or NaN.
        finite = lax.bitwise_and(_all_finite(signal), _all_finite(window))
        products = lax.cond(
            finite,
            lambda x, v: _by_blocks(x, v, low, high, block),
            lambda x, v: _by_windows(x, v, low, high),
            signal,
            window,
        )
    return convert(products, dtype)


def _accumulator(dtype: DType) -> DType:
    return np.dtype(np.float32) if dtype.kind == "f" and dtype.itemsize < 4 else dtype


def _all_finite(x: Array) -> Array:
    return lax.reduce_and(isfinite(x), (0,))


def _by_windows(signal: Array, kernel: Array, low: int, high: int) -> Array:
    """One inner product for each position of the kernel."""
    batch, filters = (lax.reshape(each, (1, 1, each.size)) for each in (signal, kernel))
    products = lax.conv_general_dilated(batch, filters, (1,), [(low, high)])
    return lax.reshape(products, (products.size,))


def _block(length: int, size: int, dtype: DType) -> int | None:
    """The number of positions to compute at once by a product of matrices; None where that does not pay."""
    if dtype not in FLOAT | COMPLEX or size > _LONGEST or length * size < _LEAST:
        return None
    # Both matrices are small, and their product has few zeros.
    block = min(max(1 << min((size // 4).bit_length(), math.isqrt(length).bit_length() - 1), 64), 1024)
    blocks = -(-(block + size - 1) // block)
    return block if 4 * block <= length and length * blocks <= _MOST else None


def _by_blocks(signal: Array, kernel: Array, low: int, high: int, block: int) -> Array:
    """The product of a matrix whose rows are overlapping pieces of the signal with a Toeplitz matrix of the kernel.

    Each row gives `block` inner products.
    """
    count = signal.size + low + high - kernel.size + 1
    rows, width = -(-count // block), -(-(block + kernel.size - 1) // block)
    zero = lax.full((), 0, signal.dtype)
    more = (rows + width - 1) * block - signal.size - low
    padded = lax.pad(signal, zero, [(low, more, 0)])
    pieces = lax.reshape(padded, (rows + width - 1, block))
    overlapping = lax.concatenate([lax.slice_in_dim(pieces, k, k + rows, axis=0) for k in range(width)], 1)
    shape = (width * block, block)
    diagonals = lax.sub(lax.broadcasted_iota(np.int64, shape, 0), lax.broadcasted_iota(np.int64, shape, 1))
    spread = lax.pad(kernel, zero, [(block - 1, width * block - kernel.size, 0)])
    toeplitz = lax.take(spread, lax.add(diagonals, block - 1), 0)
    products = lax.reshape(matmul(overlapping, toeplitz), (rows * block,))
    return lax.slice_in_dim(products, 0, count, axis=0)
