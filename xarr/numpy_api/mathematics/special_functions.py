"""Special functions: of Bessel, the normalised sine over its argument, the step of Heaviside."""

from __future__ import annotations

import math

from xarr import lax
from xarr.base.typing import Array
from xarr.calls.arguments import convert, widen_narrow
from xarr.calls.call_plans import common_real_float
from xarr.calls.operands import as_array, prepare_operands
from xarr.calls.remembered_calls import remembers_calls
from xarr.calls.ufuncs import ufunc
from xarr.dtypes import COMPLEX, FLOAT, default_float
from xarr.errors import DTypeError
from xarr.lax.core import ArrayLike
from xarr.numpy_api.mathematics import elementwise

__all__ = ["heaviside", "i0", "sinc"]


@remembers_calls
def i0(x: ArrayLike) -> Array:
    """The modified Bessel function of the first kind, of order 0; integers as the default float.

    Raises DTypeError for complex numbers.  Source: NumPy, `i0`; Cephes.
    """
    array = as_array(x)
    if array.dtype in COMPLEX:
        raise DTypeError(f"i0: wanted real numbers, got {array.dtype}; complex numbers have no such function")
    dtype = array.dtype if array.dtype in FLOAT else default_float()
    wide = lax.abs(widen_narrow(convert(array, dtype)))
    return convert(lax.mul(lax.exp(wide), lax.bessel_i0e(wide)), dtype)


@remembers_calls
def sinc(x: ArrayLike) -> Array:
    """sin(pi x) / (pi x), 1 for 0; integers as the default float.  Source: NumPy, `sinc`."""
    scaled = elementwise.multiply(math.pi, as_array(x))
    wide = widen_narrow(scaled)
    zero = lax.eq(wide, 0)
    one = lax.full_like(wide, 1)
    divisor = lax.select(zero, one, wide)
    return convert(lax.select(zero, one, lax.div(lax.sin(wide), divisor)), scaled.dtype)


@ufunc
def heaviside(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """0 for a negative x1, x2 for 0, 1 for a positive one, NaN for NaN.  Source: NumPy, `heaviside`."""
    dtype = common_real_float("heaviside", x1, x2)
    x, at_zero = prepare_operands("heaviside", x1, x2, dtype=dtype)
    zero, one = (lax.full_like(x, value) for value in (0, 1))
    result = lax.select(lax.eq(x, 0), at_zero, lax.select(lax.lt(x, 0), zero, one))
    return lax.select(lax.ne(x, x), x, result)
