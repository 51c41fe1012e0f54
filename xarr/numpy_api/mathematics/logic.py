"""Questions about elements and element types: infinite with which sign, real or complex."""

from __future__ import annotations

import math

import numpy as np

from xarr import lax
from xarr.base.typing import Array
from xarr.calls.operands import as_array
from xarr.calls.outputs import takes_out
from xarr.dtypes import COMPLEX, FLOAT, PREDICATE
from xarr.errors import DTypeError
from xarr.lax.core import ArrayLike

__all__ = ["iscomplex", "iscomplexobj", "isneginf", "isposinf", "isreal", "isrealobj"]


def iscomplex(x: ArrayLike) -> Array:
    """Whether the imaginary part differs from 0.  Source: NumPy, `iscomplex`."""
    array = as_array(x)
    return lax.ne(lax.imag(array), 0) if array.dtype in COMPLEX else lax.full_like(array, False, PREDICATE)


def isreal(x: ArrayLike) -> Array:
    """Whether the imaginary part is 0.  Source: NumPy, `isreal`."""
    array = as_array(x)
    return lax.eq(lax.imag(array), 0) if array.dtype in COMPLEX else lax.full_like(array, True, PREDICATE)


def iscomplexobj(x: ArrayLike) -> bool:
    """Whether the element type is complex, also of an object that is no array and has a `dtype`.

    Source: NumPy, `iscomplexobj`.
    """
    kind = getattr(getattr(x, "dtype", None), "type", None)
    if isinstance(kind, type):
        return issubclass(kind, np.complexfloating)
    return as_array(x).dtype in COMPLEX


def isrealobj(x: ArrayLike) -> bool:
    """Whether the element type is not complex.  Source: NumPy, `isrealobj`."""
    return not iscomplexobj(x)


@takes_out("same_kind", broadcasts=True)
def isposinf(x: ArrayLike, out: Array | None = None) -> Array:
    """Whether each element is inf.  Raises DTypeError for complex numbers.  Source: NumPy, `isposinf`."""
    return _equals_infinity("isposinf", x, math.inf)


@takes_out("same_kind", broadcasts=True)
def isneginf(x: ArrayLike, out: Array | None = None) -> Array:
    """Whether each element is -inf.  Raises DTypeError for complex numbers.  Source: NumPy, `isneginf`."""
    return _equals_infinity("isneginf", x, -math.inf)


def _equals_infinity(name: str, x: ArrayLike, infinity: float) -> Array:
    array = as_array(x)
    if array.dtype in COMPLEX:
        raise DTypeError(
            f"{name}: wanted real numbers, got {array.dtype}; ask for xarr.real(x) or xarr.imag(x)"
        )
    return lax.eq(array, infinity) if array.dtype in FLOAT else lax.full_like(array, False, PREDICATE)
