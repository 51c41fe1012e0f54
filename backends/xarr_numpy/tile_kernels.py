"""What tiles compute with: functions that write their result where they are told.

Each gives the bits of its namesake in `kernels`, where there is one.  None may be told to write into an
operand, unless its description says so.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from xarr.dtypes import EXTENDED_FLOAT
from xarr_numpy import kernels
from xarr_numpy.extremes import settled

Array = np.ndarray[Any, Any]
Ints = tuple[int, ...]

#: Integers by width.
BITS: Final = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}


def select_into(predicate: Array, x: Array, y: Array, out: Array, negative: Array, mask: Array) -> None:
    """x where the predicate is true, else y, bit by bit, which no processor has to guess.

    negative: int8, mask: integers as wide as `out`, both of the predicate's shape: room to work in.
    """
    kind = mask.dtype
    x, y, bits = x.view(kind), y.view(kind), out.view(kind)
    np.negative(predicate.view(np.int8), negative)
    np.copyto(mask, negative)
    np.bitwise_xor(x, y, bits)
    np.bitwise_and(bits, mask, bits)
    np.bitwise_xor(bits, y, bits)


def maximum_into(x: Array, y: Array, out: Array, flags: Array) -> None:
    """The larger float, 0.0 being larger than -0.0.  flags: bool, of the shape of `out`."""
    np.maximum(x, y, out=out)
    np.equal(out, 0, flags)
    if flags.any():
        kind = BITS[out.dtype.itemsize]
        np.equal(x, y, flags)
        # Equal numbers have equal bits, but for the sign of zeros.
        np.bitwise_and(x.view(kind), y.view(kind), out.view(kind), where=flags)


def minimum_into(x: Array, y: Array, out: Array, flags: Array) -> None:
    """The smaller float, -0.0 being smaller than 0.0.  flags: bool, of the shape of `out`."""
    np.minimum(x, y, out=out)
    np.equal(out, 0, flags)
    if flags.any():
        kind = BITS[out.dtype.itemsize]
        np.equal(x, y, flags)
        np.bitwise_or(x.view(kind), y.view(kind), out.view(kind), where=flags)


def logistic_into(x: Array, out: Array, small: Array, flags: Array, negative: Array, mask: Array) -> None:
    """1 / (1 + exp(-x)).  The last four have the shape of `out` and its type, bool, int8, integers as wide."""
    one = np.ones((), out.dtype)
    np.abs(x, small)
    np.negative(small, small)
    np.exp(small, small)
    np.less(x, 0, flags)
    select_into(flags, small, one, out, negative, mask)
    np.add(one, small, small)
    np.true_divide(out, small, out)


def counted(place: slice, dtype: np.dtype[Any], axis: int, rank: int) -> Array:
    """The numbers of a range along `axis`."""
    counts = kernels.convert(np.arange(place.start, place.stop), dtype)
    return counts.reshape([-1 if other == axis else 1 for other in range(rank)])


def width(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type in which elements are combined."""
    return np.dtype(np.float32) if dtype in EXTENDED_FLOAT or dtype == np.float16 else dtype


def combined(ufunc: np.ufunc, x: Array, axes: Ints) -> Array:
    """All elements along `axes`, each of which keeps size 1; narrow floats as float32."""
    dtype = width(x.dtype)
    return _folded(ufunc, x.astype(dtype, copy=False), axes, keepdims=True)


def reduced(ufunc: np.ufunc, x: Array, initial: Array, axes: Ints) -> Array:
    """The same with an initial value, in the type of x."""
    return begun(ufunc, combined(ufunc, x, axes), initial, x.dtype)


def joined(ufunc: np.ufunc, parts: Array, initial: Array, dtype: np.dtype[Any]) -> Array:
    """The result of a reduction from the partial ones along axis 0."""
    return begun(ufunc, _folded(ufunc, parts, (0,), keepdims=False), initial, dtype)


def _folded(ufunc: np.ufunc, x: Array, axes: Ints, *, keepdims: bool) -> Array:
    options: dict[str, Any] = {"axis": axes, "dtype": x.dtype, "keepdims": keepdims}
    if ufunc is np.add and x.dtype.kind in "fc":
        options["initial"] = -0.0  # NumPy's is 0.0, in which the sign is lost
    found: Array = ufunc.reduce(x, **options)
    return settled(ufunc, found, lambda test: test(x).any(axis=axes, keepdims=keepdims))  # type: ignore[no-any-return]


def begun(ufunc: np.ufunc, total: Array, initial: Array, dtype: np.dtype[Any]) -> Array:
    first = initial.astype(total.dtype, copy=False)
    found = settled(ufunc, ufunc(first, total), lambda test: test(first) | test(total))
    return found.astype(dtype, copy=False)  # type: ignore[no-any-return]


SCOPE: Final[dict[str, Any]] = {
    function.__name__: function
    for function in (
        *(select_into, maximum_into, minimum_into, logistic_into),
        *(counted, combined, reduced, joined),
    )
}
