"""Rounding: to whole numbers in every direction, and to decimals."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from xarr import lax
from xarr.base.typing import Array
from xarr.calls.call_plans import real_type, to_float
from xarr.calls.factories import UnaryFunction
from xarr.calls.operands import (
    as_array,
    fresh,
)
from xarr.calls.outputs import takes_out
from xarr.calls.ufuncs import ufunc
from xarr.dtypes import (
    BOOL,
    COMPLEX,
    FLOAT,
)
from xarr.lax.core import ArrayLike, integer

__all__ = ["around", "ceil", "fix", "floor", "rint", "round", "trunc"]

#: The largest power of ten in float64.
_MOST: Final = sys.float_info.max_10_exp


def _whole(name: str, function: Callable[[Any], Array]) -> UnaryFunction:
    def rounding(x: ArrayLike, /) -> Array:
        array = as_array(x)
        dtype = real_type(name, array.dtype)
        return function(array) if dtype in FLOAT else fresh(array)

    rounding.__name__ = name
    rounding.__doc__ = f"{name} of each element; integers stay as they are.  Source: NumPy 2, {name}."
    return ufunc(rounding)


def _truncate(x: Array) -> Array:
    # No select between ceil and floor: compiled it is a jump, which no processor foresees.
    return lax.mul(lax.sign(x), lax.floor(lax.abs(x)))


ceil = _whole("ceil", lax.ceil)
floor = _whole("floor", lax.floor)
trunc = fix = _whole("trunc", _truncate)


@takes_out("same_kind", broadcasts=True)
def round(a: ArrayLike, decimals: int = 0, out: Array | None = None) -> Array:
    """Round to `decimals` decimals, ties to even.

    NaN where 10**decimals is beyond the element type.  Source: NumPy round.
    """
    array = as_array(a)
    decimals = integer("round", "decimals", decimals)
    if array.dtype in COMPLEX:
        return lax.complex(round(lax.real(array), decimals), round(lax.imag(array), decimals))
    if array.dtype in BOOL:
        return round(array.astype(np.float16), decimals)
    if array.dtype not in FLOAT:
        if decimals >= 0:
            return fresh(array)
        return round(array.astype(np.float64), decimals).astype(array.dtype)
    nearest = lax.RoundingMethod.TO_NEAREST_EVEN
    if decimals == 0:
        return lax.round(array, nearest)
    factor = 10.0 ** math.fabs(decimals) if -_MOST <= decimals <= _MOST else math.inf
    if decimals > 0:
        return lax.div(lax.round(lax.mul(array, factor), nearest), factor)
    return lax.mul(lax.round(lax.div(array, factor), nearest), factor)


around = round


@ufunc
def rint(x: ArrayLike, /) -> Array:
    """The nearest integer as a float, ties to even; both parts of a complex number.

    Source: NumPy, `rint`.
    """
    array = as_array(x)
    return round(array.astype(to_float("rint", array.dtype)))
