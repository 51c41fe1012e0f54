"""The one comparator of the tests: do two arrays hold the same values, to the bit or within some ULP?"""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from xarr.dtypes import COMPLEX, FLOAT, float8_e8m0fnu, real_part_of
from xarr.runtime.handles import Handle
from xarr.runtime.materialisation import to_host

HostArray = np.ndarray[Any, Any]

_SIGNED = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}
_UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def assert_same(actual: Any, expected: Any, *, ulp: float = 0, normwise: bool = False) -> None:
    """Raise AssertionError unless `actual` and `expected` have the same dtype, shape and values.

    Both are xarr Arrays or anything with a dtype; of an Array the inferred type must be the computed one.

    * ulp = 0: the same bits, so -0.0 is not 0.0; any NaN is the same as any other.
    * ulp > 0: floats may lie that many representable numbers apart (0.0 and -0.0 are one number, infinity
      follows the largest).  Complex numbers are compared part by part.  Integers and bools stay exact.
    * normwise: a complex number may err by `ulp` spacings of its larger part, in both parts: the error bound
      that complex multiplication and functions have, in which cancellation may spoil the smaller part.
    """
    got, wanted = compute(actual), compute(expected)
    assert got.dtype == wanted.dtype, f"dtype: got {got.dtype}, wanted {wanted.dtype}"
    assert got.shape == wanted.shape, f"shape: got {got.shape}, wanted {wanted.shape}"
    allowed = ulp if got.dtype in FLOAT | COMPLEX else 0
    with np.errstate(all="ignore"):
        distances = _distances(got, wanted, exactly=allowed == 0, normwise=normwise)
    if np.any(distances > allowed):
        raise AssertionError(_message(got, wanted, distances, allowed))


def ulp_distances(got: HostArray, wanted: HostArray) -> HostArray:
    """The distances of the floats of two arrays in representable numbers; inf where one of them is NaN."""
    ahead, behind = _position(got), _position(wanted)
    # Positions of float64 may differ by more than an int64 holds, but never by more than a uint64.
    steps = np.where(ahead > behind, _difference(ahead, behind), _difference(behind, ahead))
    nan, other_nan = np.isnan(got), np.isnan(wanted)
    return np.where(
        nan & other_nan, np.longdouble(0), np.where(nan | other_nan, inf, steps.astype(np.longdouble))
    )


def compute(value: Any) -> HostArray:
    """The values on the host; for an Array, checked against the type that was inferred without computing."""
    if not isinstance(value, Handle):
        if not hasattr(value, "dtype"):
            raise TypeError(f"wanted something with a dtype, got {value!r}, which could be of any")
        return np.asarray(value)
    host, inferred = to_host(value), value._node.tensor_type
    assert host.dtype == inferred.dtype, f"dtype: inferred {inferred.dtype}, computed {host.dtype}"
    assert host.shape == inferred.shape, f"shape: inferred {inferred.shape}, computed {host.shape}"
    return host


def _distances(got: HostArray, wanted: HostArray, *, exactly: bool, normwise: bool) -> HostArray:
    if got.dtype in COMPLEX:
        if normwise and not exactly:
            return _normwise(got, wanted)
        parts = ((got.real, wanted.real), (got.imag, wanted.imag))
        first, second = (_distances(a, b, exactly=exactly, normwise=False) for a, b in parts)
        return np.maximum(first, second)
    if got.dtype not in FLOAT:
        apart = np.abs(got.astype(np.longdouble) - wanted.astype(np.longdouble))
        return np.where(got == wanted, np.longdouble(0), np.maximum(apart, 1))
    distances = ulp_distances(got, wanted)
    if exactly:
        same_bits = (_bits(got) == _bits(wanted)) | (np.isnan(got) & np.isnan(wanted))
        return np.where(same_bits, np.longdouble(0), np.maximum(distances, 1))
    return distances


def _normwise(got: HostArray, wanted: HostArray) -> HostArray:
    part = real_part_of(got.dtype).type
    larger = np.maximum(np.abs(wanted.real), np.abs(wanted.imag)).astype(part)
    spacing = np.spacing(larger).astype(np.longdouble)
    pairs = ((got.real, wanted.real), (got.imag, wanted.imag))
    errors = [np.abs(a.astype(np.longdouble) - b.astype(np.longdouble)) / spacing for a, b in pairs]
    exact = np.maximum(*[ulp_distances(a, b) for a, b in pairs])
    return np.where(np.isfinite(got) & np.isfinite(wanted), np.maximum(*errors), exact)


def _bits(x: HostArray) -> HostArray:
    return np.ascontiguousarray(x).view(_UNSIGNED[x.dtype.itemsize]).reshape(x.shape)


def _position(x: HostArray) -> HostArray:
    """The position of each float on the line of all floats of its type, 0.0 and -0.0 being at 0."""
    bits = _bits(x)
    if x.dtype == float8_e8m0fnu:
        return bits.astype(np.int64)
    signed = bits.view(_SIGNED[x.dtype.itemsize]).astype(np.int64)
    magnitude = signed & np.int64(2 ** (8 * x.dtype.itemsize - 1) - 1)
    return np.where(signed < 0, -magnitude, magnitude)


def _difference(larger: HostArray, smaller: HostArray) -> HostArray:
    result: HostArray = np.asarray(larger).view(np.uint64) - np.asarray(smaller).view(np.uint64)
    return result


def _message(got: HostArray, wanted: HostArray, distances: HostArray, ulp: float) -> str:
    worst = tuple(int(i) for i in np.unravel_index(int(np.argmax(distances)), distances.shape))
    a, b = got[worst], wanted[worst]
    count, distance = int(np.sum(distances > ulp)), distances[worst]
    if np.isinf(distance):
        apart = "a NaN against a number"
    elif got.dtype in FLOAT | COMPLEX:
        apart = f"{float(distance):g} ULP apart" if ulp or a != b else "equal, but the bits differ"
    else:
        apart = f"{int(distance)} apart"
    return (
        f"{count} of {got.size} elements of {got.dtype}{list(got.shape)} differ by more than {ulp:g} ULP; "
        f"the worst at index {worst}: got {_show(a)}, wanted {_show(b)}: {apart}"
    )


def _show(x: Any) -> str:
    """The number, and for floats its bits."""
    if x.dtype in COMPLEX:
        return f"{_show(x.real)} + {_show(x.imag)} i"
    text = str(x)
    return f"{text} (0x{int(_bits(np.asarray(x))):0{2 * x.dtype.itemsize}x})" if x.dtype in FLOAT else text
