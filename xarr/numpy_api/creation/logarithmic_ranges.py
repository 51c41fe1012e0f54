"""Ranges of numbers whose logarithms are evenly spaced."""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike

from xarr import lax
from xarr.base.typing import Array
from xarr.calls.arguments import convert
from xarr.calls.operands import as_array, broadcast_operands, promote_operands
from xarr.calls.remembered_calls import remembers_calls
from xarr.dtypes import EXTENDED_FLOAT, canonical, promote, promote_weak
from xarr.errors import ValueRangeError
from xarr.lax.core import ArrayLike, integer
from xarr.lax.dynamic_sizes import refuse_dynamic
from xarr.numpy_api.creation.arrays import asarray, linspace
from xarr.numpy_api.mathematics.elementwise import divide, log10, multiply, power, sign
from xarr.runtime.handles import common_device
from xarr.runtime.materialisation import to_host
from xarr.shapes import normalize_axis

__all__ = ["geomspace", "logspace"]


@remembers_calls
def logspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    base: ArrayLike = 10.0,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Array:
    """base ** y for `num` evenly spaced y from `start` to `stop`; see `linspace`.

    An array `base` broadcasts with the ends.  Source: NumPy, `logspace`.
    """
    if isinstance(base, float | int) or not np.ndim(base):
        values = power(base, linspace(start, stop, num, endpoint, axis=axis, device=None))
    else:
        operands = as_array(start), as_array(stop), as_array(base)
        first, last, bases = broadcast_operands("logspace", *operands)
        exponents = linspace(first, last, num, endpoint, axis=axis, device=common_device(operands))
        target = normalize_axis(axis, len(exponents.shape))
        kept = [dim for dim in range(len(exponents.shape)) if dim != target]
        values = power(lax.broadcast_in_dim(bases, exponents.shape, kept), exponents)
    return values if dtype is None else convert(values, canonical(dtype))


@remembers_calls
def geomspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Array:
    """`num` numbers from `start` to `stop`, each the one before times a constant.

    The ends are computed now, and NumPy computes what lies between; in a traced function, and for narrow
    floats, xarr's operations do, whose last bits may differ.

    Negative ends of one sign and complex ends do: between the latter lies a spiral.  Raises ValueRangeError
    for an end of 0 (in a traced function it cannot be seen, and gives NaN) and for a negative `num`.
    Source: NumPy, `geomspace`.
    """
    count = integer("geomspace", "num", num)
    if count < 0:
        raise ValueRangeError(f"geomspace: wanted num >= 0, got {count}")
    low, high = as_array(start), as_array(stop)
    for end in (low, high):
        refuse_dynamic("geomspace", end, "xarr.logspace")
        if not end._node.traced and not bool(np.all(to_host(end))):
            raise ValueRangeError(
                "geomspace: wanted ends other than 0, as a geometric sequence cannot include 0"
            )
    low, high = promote_operands("geomspace", low, high)
    asked = canonical(dtype)
    computed = promote(promote_weak(low.dtype, float), asked)
    wanted = computed if dtype is None else asked
    low, high = broadcast_operands("geomspace", convert(low, computed), convert(high, computed))
    if not low._node.traced and not high._node.traced and computed not in EXTENDED_FLOAT:
        # Looked at already; rounded as NumPy does, so that powers come out as the same integers.
        ends = to_host(low), to_host(high)
        dim = normalize_axis(axis, len(low.shape) + 1)
        with np.errstate(
            all="ignore"
        ):  # NaN between ends of different signs, as where NumPy does not compute it
            sequence = np.geomspace(*ends, count, endpoint, wanted, dim)
        return asarray(sequence, device=low._node.device)
    direction = sign(low)
    first, last = divide(low, direction), divide(high, direction)
    values = logspace(log10(first), log10(last), count, endpoint, dtype=computed)
    row = lax.broadcasted_iota(np.int64, values.shape, 0)
    under = range(1, len(values.shape))
    values = lax.select(lax.eq(row, 0), lax.broadcast_in_dim(first, values.shape, under), values)
    if count > 1 and endpoint:
        values = lax.select(lax.eq(row, count - 1), lax.broadcast_in_dim(last, values.shape, under), values)
    values = multiply(values, lax.broadcast_in_dim(direction, values.shape, under))
    dim = normalize_axis(axis, len(values.shape))
    order = [*range(1, dim + 1), 0, *range(dim + 1, len(values.shape))]
    return convert(lax.transpose(values, order), wanted)
