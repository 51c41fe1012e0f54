"""Complex numbers: their parts, conjugates and angles, and real parts where the imaginary ones are small."""

from __future__ import annotations

import math

from xarr import lax
from xarr.base.typing import Array
from xarr.calls.concrete_values import look_at
from xarr.calls.operands import (
    as_array,
    as_numbers,
    fresh,
)
from xarr.calls.remembered_calls import remembers_calls
from xarr.calls.ufuncs import ufunc
from xarr.dtypes import (
    COMPLEX,
    info,
)
from xarr.lax.core import ArrayLike, flag
from xarr.numpy_api.mathematics import elementwise
from xarr.runtime.view_tracking import IMAG, REAL, mark

__all__ = ["angle", "conj", "conjugate", "imag", "real", "real_if_close"]


@remembers_calls
def angle(z: ArrayLike, deg: bool = False) -> Array:
    """The angle of a complex number, in radians or degrees: 0 or pi for real numbers.  Source: NumPy, `angle`."""
    array = as_array(z)
    parts = (lax.imag(array), lax.real(array)) if array.dtype in COMPLEX else (0, array)
    radians = elementwise.arctan2(*parts)
    return lax.mul(radians, 180 / math.pi) if flag("angle", "deg", deg) else radians


@remembers_calls
def real_if_close(a: ArrayLike, tol: float = 100) -> Array:
    """The real parts if all imaginary parts are less than `tol` machine epsilons, or than `tol` itself up to 1.

    The values are looked at, for the type of the result depends on them: TracedValueError in a traced function.
    Source: NumPy, `real_if_close`.
    """
    array = as_array(a)
    if array.dtype not in COMPLEX:
        return fresh(array)
    limit = float(info(array.dtype).eps) * tol if tol > 1 else tol
    small = lax.lt(lax.abs(lax.imag(array)), float(limit))
    all_small = lax.reduce_and(small, range(len(array.shape)))
    is_real = look_at(
        "real_if_close", "the element type", all_small, "take xarr.real(x), or keep complex numbers"
    )
    return lax.real(array) if is_real else fresh(array)


@remembers_calls
def real(val: ArrayLike) -> Array:
    """Real part; the array itself for a real type.  Source: NumPy and Array API, `real`."""
    array = as_array(val)
    if array.dtype not in COMPLEX:
        dynamic = array._node.tensor_type.dynamic  # else an op of its own tells where the part was made
        return mark(array, fresh(array) if dynamic else lax.reshape(array, array.shape), REAL, True)
    return mark(array, lax.real(array), REAL, False)


@remembers_calls
def imag(val: ArrayLike) -> Array:
    """Imaginary part; zeros for a real type.  Source: NumPy and Array API, `imag`."""
    array = as_array(val)
    if array.dtype not in COMPLEX:
        return lax.full_like(array, 0)
    return mark(array, lax.imag(array), IMAG, None)


@ufunc
def conj(x: ArrayLike, /) -> Array:
    """Complex conjugate; x itself for a real type, int8 for bools.  Source: NumPy and Array API, `conj`."""
    array = as_numbers(x)
    return lax.conj(array) if array.dtype in COMPLEX else fresh(array)


conjugate = conj
