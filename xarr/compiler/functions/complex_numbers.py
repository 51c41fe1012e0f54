"""Functions of complex numbers, computed of their parts.

Sums, products, magnitudes, comparisons and extremes are computed as NumPy computes them on processors with fma and
wide registers, and have its bits there.  Functions that are not here (power, sine …) stay with the backends.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from xarr.compiler.functions import conversion
from xarr.compiler.loop_ir.scalars import BOOL, DType, Value
from xarr.dtypes import real_part_of


def add(x: Value, y: Value) -> Value:
    """The sum, part by part."""
    return x.values.complex(x.real() + y.real(), x.imag() + y.imag())


def subtract(x: Value, y: Value) -> Value:
    """The difference, part by part."""
    return x.values.complex(x.real() - y.real(), x.imag() - y.imag())


def negate(x: Value) -> Value:
    """Both parts with the other sign."""
    return x.values.complex(-x.real(), -x.imag())


def multiply(x: Value, y: Value) -> Value:
    """(a c - b d) + (a d + b c) i, in each part the product with a rounded together with the sum."""
    (a, b), (c, d) = (x.real(), x.imag()), (y.real(), y.imag())
    return x.values.complex(a.fma(c, -(b * d)), a.fma(d, b * c))


def absolute(x: Value) -> Value:
    """The magnitude, by way of the quotient of the smaller part and the larger; infinite if a part is."""
    a, b = x.real().abs(), x.imag().abs()
    larger, smaller = a.lt(b).select(b, a), a.lt(b).select(a, b)
    quotient = larger.eq(0.0).select(0.0, smaller / larger)
    magnitude = larger * quotient.fma(quotient, 1.0).sqrt()
    infinite = a.eq(math.inf) | b.eq(math.inf)
    return infinite.select(math.inf, (a.isnan() | b.isnan()).select(math.nan, magnitude))


def equal(x: Value, y: Value) -> Value:
    """Whether both parts are equal."""
    return x.real().eq(y.real()) & x.imag().eq(y.imag())


def maximum(x: Value, y: Value) -> Value:
    """The larger, real parts first; a number with a NaN if there is one; y of equal ones."""
    return (_is_nan(y) | _follows(y, x)).select(y, x)


def minimum(x: Value, y: Value) -> Value:
    """The smaller, likewise."""
    return (_is_nan(y) | _follows(x, y)).select(y, x)


def _is_nan(x: Value) -> Value:
    return x.real().isnan() | x.imag().isnan()


def _follows(x: Value, y: Value) -> Value:
    """Whether x >= y, real parts first, none of the four being NaN where that matters."""
    larger = x.real().gt(y.real()) & ~(x.imag().isnan() | y.imag().isnan())
    return larger | (x.real().eq(y.real()) & x.imag().ge(y.imag()))


def convert(x: Value, old: DType, new: DType) -> Value:
    """Part by part; a real number gets the imaginary part 0; to bool whether it is not 0, to a real the real part."""
    part = real_part_of(new)
    if old.kind != "c":
        real = conversion.convert(x, old, part)
        return x.values.complex(real, real.constant(0.0))
    if new == BOOL:
        return x.real().ne(0.0) | x.imag().ne(0.0)
    real = conversion.convert(x.real(), real_part_of(old), part)
    return real if new.kind != "c" else x.values.complex(real, x.imag().convert(part))


#: By the name of the operation.
FUNCTIONS: Final[dict[str, Callable[..., Value]]] = {
    "stablehlo.abs": absolute,
    "stablehlo.add": add,
    "stablehlo.imag": Value.imag,
    "stablehlo.maximum": maximum,
    "stablehlo.minimum": minimum,
    "stablehlo.multiply": multiply,
    "stablehlo.negate": negate,
    "stablehlo.real": Value.real,
    "stablehlo.subtract": subtract,
}
