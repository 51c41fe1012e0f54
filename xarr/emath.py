"""Roots, logarithms and inverse functions that are complex where real numbers have no real value.

Whether a result is complex depends on the values, which are computed for it; in a traced function, which has none,
give complex numbers to the functions of `xarr` itself.  NumPy has this module as `lib.scimath` too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from xarr.base.absent_names import hooks_of
from xarr.base.tracebacks import names_errors
from xarr.base.typing import Array
from xarr.calls.arguments import convert
from xarr.calls.concrete_values import look_at
from xarr.dtypes import BOOL, COMPLEX, EXTENDED_FLOAT, FLOAT
from xarr.lax.core import ArrayLike
from xarr.numpy_api.creation.arrays import argument
from xarr.numpy_api.mathematics import elementwise

__all__ = ["arccos", "arcsin", "arctanh", "log", "log2", "log10", "logn", "power", "sqrt"]

#: NumPy's choice of what becomes complex64: float16 is not in it.
_TO_COMPLEX64: Final = frozenset(map(np.dtype, ("int8", "uint8", "int16", "uint16", "float32")))


def _is_real(name: str, x: Array, outside: Callable[[Any], Any]) -> bool:
    """Whether no element of `x` is one for which `outside` holds: the function of it is real."""
    if x.dtype in COMPLEX:
        return False
    values = look_at(f"emath.{name}", "values", x, f"write xarr.{name}(x.astype(complex))")
    return not bool(np.any(outside(values)))


def _complex(x: Array) -> Array:
    if x.dtype in COMPLEX:
        return x
    is_narrow = x.dtype in _TO_COMPLEX64 | EXTENDED_FLOAT
    return convert(x, np.dtype(np.complex64 if is_narrow else np.complex128))


def _below_zero(values: Any) -> Any:
    return values < 0


def _beyond_one(values: Any) -> Any:
    return np.abs(values) > 1


def _select_domain(name: str, x: ArrayLike, outside: Callable[[Any], Any]) -> Array:
    array = argument(x)
    function: Callable[[Array], Array] = getattr(elementwise, name)
    return function(array if _is_real(name, array, outside) else _complex(array))


@names_errors
def sqrt(x: ArrayLike) -> Array:
    """The square root, complex if any element is below 0.  Source: NumPy, `emath.sqrt`."""
    return _select_domain("sqrt", x, _below_zero)


@names_errors
def log(x: ArrayLike) -> Array:
    """The natural logarithm, complex if any element is below 0.  Source: NumPy, `emath.log`."""
    return _select_domain("log", x, _below_zero)


@names_errors
def log2(x: ArrayLike) -> Array:
    """The logarithm to base 2, complex if any element is below 0.  Source: NumPy, `emath.log2`."""
    return _select_domain("log2", x, _below_zero)


@names_errors
def log10(x: ArrayLike) -> Array:
    """The logarithm to base 10, complex if any element is below 0.  Source: NumPy, `emath.log10`."""
    return _select_domain("log10", x, _below_zero)


@names_errors
def logn(n: ArrayLike, x: ArrayLike) -> Array:
    """The logarithm of x to base n, complex if any element of either is below 0.  Source: NumPy, `emath.logn`."""
    return elementwise.divide(log(x), log(n))


@names_errors
def power(x: ArrayLike, p: ArrayLike) -> Array:
    """x to the power p, complex if any element of x is below 0; integers of p below 0 are taken as floats.

    Source: NumPy, `emath.power`.
    """
    base, exponent = argument(x), argument(p)
    if not _is_real("power", base, _below_zero):
        base = _complex(base)
    if exponent.dtype not in FLOAT | COMPLEX | BOOL and not _is_real("power", exponent, _below_zero):
        exponent = convert(exponent, np.dtype(np.float64))
    return elementwise.power(base, exponent)


@names_errors
def arccos(x: ArrayLike) -> Array:
    """The inverse cosine, complex if any element is beyond [-1, 1].  Source: NumPy, `emath.arccos`."""
    return _select_domain("arccos", x, _beyond_one)


@names_errors
def arcsin(x: ArrayLike) -> Array:
    """The inverse sine, complex if any element is beyond [-1, 1].  Source: NumPy, `emath.arcsin`."""
    return _select_domain("arcsin", x, _beyond_one)


@names_errors
def arctanh(x: ArrayLike) -> Array:
    """The inverse hyperbolic tangent, complex if any element is beyond [-1, 1].  Source: NumPy, `emath.arctanh`."""
    return _select_domain("arctanh", x, _beyond_one)


if not TYPE_CHECKING:  # a module with __getattr__ has every name to a type checker
    __getattr__, __dir__ = hooks_of(__name__)
