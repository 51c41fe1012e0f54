"""Functions of complex numbers, computed of their parts.

Sums, products, quotients, magnitudes, comparisons and extremes are computed as NumPy computes them on processors with
fma and wide registers, and have its bits there.  Functions such as exp are those of `complex_functions`.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from xarr.base.at_once.complex_quotients import ordinary_sizes
from xarr.compiler.functions import conversion
from xarr.compiler.functions.floating_point import Formulas
from xarr.compiler.loop_ir.scalars import BOOL, DType, Value
from xarr.dtypes import real_part_of
from xarr.ir import ops


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


def multiply_rounded(x: Value, y: Value) -> Value:
    """(a c - b d) + (a d + b c) i, each product rounded before the sum."""
    (a, b), (c, d) = (x.real(), x.imag()), (y.real(), y.imag())
    return x.values.complex(a * c - b * d, a * d + b * c)


def divide(x: Value, y: Value) -> Value:
    """The quotient by Smith's formula; infinities and zeros in either as in C99, Annex G.5.1.

    Source: R. L. Smith, Algorithm 116: Complex division (1962), as NumPy has it.
    """
    usual = plain_quotient(x, y)
    size_x, size_y = larger_part(x), larger_part(y)
    is_extreme = ~(_is_ordinary(size_y) & (_is_ordinary(size_x) | size_x.eq(0.0)))
    exceptional = _any_quotient(x, y)
    return x.values.complex(
        is_extreme.rarely(exceptional.real(), usual.real()),
        is_extreme.rarely(exceptional.imag(), usual.imag()),
    )


def multiply_add(x: Value, y: Value, addend: Value) -> Value:
    """x y + addend, in each part one product after the other rounded together with the sum."""
    (a, b), (c, d) = (x.real(), x.imag()), (y.real(), y.imag())
    real, imag = a.fma(c, addend.real()), a.fma(d, addend.imag())
    return x.values.complex((-b).fma(d, real), b.fma(c, imag))


def larger_part(x: Value) -> Value:
    """The magnitude of the larger part; that of a NaN may get lost."""
    a, b = x.real(), x.imag()
    return a.abs().lt(b.abs()).select(b, a).abs()


def plain_quotient(x: Value, y: Value) -> Value:
    """x / y by way of the quotient of the smaller part of y and the larger."""
    (a, b), (c, d) = (x.real(), x.imag()), (y.real(), y.imag())
    swapped = c.abs().lt(d.abs())
    larger, smaller = swapped.select(d, c), swapped.select(c, d)
    first, second = swapped.select(b, a), swapped.select(a, b)
    ratio = smaller / larger
    inverse = 1.0 / (larger + smaller * ratio)
    difference = swapped.select(first * ratio - second, second - first * ratio)
    return x.values.complex((first + second * ratio) * inverse, difference * inverse)


def _any_quotient(x: Value, y: Value) -> Value:
    """x / y, of extreme numbers by way of ordinary ones."""
    size_x, size_y = larger_part(x), larger_part(y)
    of_x, of_y = moderating_factor(size_x), moderating_factor(size_y)
    down, up = _powers_of_two(x)
    # Where both factors were up, a large dividend would overflow; where x alone is huge, its sums do.
    is_large = size_x.gt(down * _limits(x).max / 4) & of_y.eq(up)
    is_plain = of_y.eq(1.0)
    of_x = is_plain.select(of_x, of_y)
    of_x = (is_large | (of_x.eq(down) & is_plain)).select(0.25, of_x)
    quotient = plain_quotient(multiply_parts(x, of_x), multiply_parts(y, of_y))
    # One of the two factors, or one is a quarter: the product is a power of two that there is.
    quotient = multiply_parts(quotient, of_y / of_x)
    real, imag = quotient.real().isnan(), quotient.imag().isnan()
    vanishing = is_infinite(y) & size_x.lt(math.inf)
    is_lost = (real & imag) | _is_zero(y) | (vanishing & (real | imag))
    return is_lost.select(_quotient_at_the_ends(x, y, vanishing), quotient)


def _quotient_at_the_ends(x: Value, y: Value, vanishing: Value) -> Value:
    """x / y of infinite numbers or by zero; NaN else."""
    infinite = is_infinite(x) & larger_part(y).lt(math.inf)
    signed = y.real().constant(math.inf).copysign(y.real())
    scale = infinite.select(signed.constant(math.inf), vanishing.select(signed.constant(0.0), math.nan))
    # A quarter, so that sums of large parts do not overflow before they meet the scale.
    a, b = (infinite.select(unit_part(part), part * 0.25) for part in (x.real(), x.imag()))
    c, d = (vanishing.select(unit_part(part), part) for part in (y.real(), y.imag()))
    quotient = x.values.complex(scale * (a * c + b * d), scale * (b * c - a * d))
    return _is_zero(y).select(multiply_parts(x, signed), quotient)


def unit_part(part: Value) -> Value:
    """1 for an infinite part, 0 for a finite one, with its sign."""
    return part.abs().eq(math.inf).select(part.constant(1.0), 0.0).copysign(part)


def is_infinite(x: Value) -> Value:
    """Whether a part is infinite."""
    return x.real().abs().eq(math.inf) | x.imag().abs().eq(math.inf)


def _is_zero(x: Value) -> Value:
    return x.real().eq(0.0) & x.imag().eq(0.0)


def _limits(x: Value) -> Any:
    return np.finfo(x.dtype)


def _is_ordinary(size: Value) -> Value:
    """Whether numbers with a larger part of this size are neither huge nor tiny."""
    least, greatest = ordinary_sizes(size.dtype)
    return size.le(greatest) & size.ge(least)


def moderating_factor(size: Value) -> Value:
    """The power of two by which a huge or tiny number becomes one of ordinary size; 1 for others."""
    (least, greatest), (down, up) = ordinary_sizes(size.dtype), _powers_of_two(size)
    huge = size.gt(greatest) & size.lt(math.inf)
    tiny = size.lt(least) & size.ne(0.0)
    return huge.select(size.constant(down), tiny.select(size.constant(up), 1.0))


def _powers_of_two(x: Value) -> tuple[float, float]:
    """Two inverse powers of two, that which makes huge numbers ordinary and that for tiny ones."""
    exponent = _limits(x).maxexp * 5 // 8
    return 2.0**-exponent, 2.0**exponent


def multiply_parts(x: Value, factor: Value) -> Value:
    """Both parts times a real number, infinities and NaN of one part without effect on the other."""
    return x.values.complex(x.real() * factor, x.imag() * factor)


def sign(x: Value) -> Value:
    """x / |x|, part by part; a zero stays itself."""
    size = larger_part(x)
    # |x| may overflow, or be subnormal.
    scaled = multiply_parts(x, moderating_factor(size))
    magnitude = absolute(scaled)
    parts = scaled.real() / magnitude, scaled.imag() / magnitude
    return magnitude.eq(0.0).select(x, x.values.complex(*parts))


def absolute(x: Value) -> Value:
    """The magnitude, by way of the quotient of the smaller part and the larger; infinite if a part is."""
    a, b = x.real().abs(), x.imag().abs()
    larger, smaller = a.lt(b).select(b, a), a.lt(b).select(a, b)
    quotient = larger.eq(0.0).select(0.0, smaller / larger)
    magnitude = larger * quotient.fma(quotient, 1.0).sqrt()
    return is_infinite(x).select(math.inf, (a.isnan() | b.isnan()).select(math.nan, magnitude))


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


FORMULAS: Final[Formulas] = {
    ops.Abs: absolute,
    ops.Add: add,
    ops.Divide: divide,
    ops.Imag: Value.imag,
    ops.Maximum: maximum,
    ops.Minimum: minimum,
    ops.Multiply: multiply,
    ops.Negate: negate,
    ops.Real: Value.real,
    ops.Sign: sign,
    ops.Subtract: subtract,
}
