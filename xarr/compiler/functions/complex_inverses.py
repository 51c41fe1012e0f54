"""The inverse trigonometric and hyperbolic functions of complex numbers, computed of their parts.

Special values and the signs of zeros are those of C99, Annex G.  Errors are a few units in the last place of either
part: a part that is small beside the other is a sum and a product of positive terms, too.

Sources: W. Kahan, Branch cuts for complex elementary functions (1987), whose formulas are here with sqrt(1 - z) and
sqrt(1 + z) multiplied out; T. E. Hull, T. F. Fairgrieve and P. T. P. Tang, Implementing the complex arcsine and
arccosine functions using exception handling (1997), for the ranges that need care.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from xarr.compiler.functions.arctangent import atan2
from xarr.compiler.functions.complex_functions import of_imaginary
from xarr.compiler.functions.complex_numbers import is_infinite, larger_part
from xarr.compiler.functions.floating_point import Formulas, two_sum
from xarr.compiler.functions.logarithm import log
from xarr.compiler.loop_ir.scalars import Value
from xarr.ir import ops


def _limits(x: Value) -> Any:
    return np.finfo(x.dtype)


# --- asin, acos and acosh ----------------------------------------------------------------------------


def _arcsine(z: Value) -> tuple[Value, Value]:
    """The real part of cos(asin z) = sqrt(1 - z) sqrt(1 + z), and the magnitude of the imaginary one of asin z.

    Let x be positive, S = |1 - x| + |1 - z| and R = 1 + x + |1 + z|.  Multiplied out, the first of these and sinh of
    the second are (sqrt(S R) + y² / sqrt(S R)) / 2 and |y| (S + R) / (2 sqrt(S R)): in this order where x is at most
    1, in the other one beyond.  No sum cancels.
    """
    a, b = z.real().abs(), z.imag().abs()
    is_huge, factor = _factor_for_squares(larger_part(z))
    left, right = (1.0 - a).abs(), a + 1.0
    # Where x is 1, y² may vanish; elsewhere the other square is larger than what is lost.
    near = left + left.eq(0.0).select(b, left.fma(left, b * b).sqrt())
    scaled, height = right * factor, b * factor
    distance = scaled.fma(scaled, height * height).sqrt()
    far = right + distance
    root = (near * far).sqrt()
    ratio = root.eq(0.0).select(b, b / root)
    first, second = b.fma(ratio, root) * 0.5, ratio * (near + far) * 0.5
    is_inside = a.le(1.0)
    cosine, sine = is_inside.select(first, second), is_inside.select(second, first)
    # 1 is nothing beside a huge number.
    magnitude = _asinh(sine, is_huge, distance)
    magnitude = is_infinite(z).select(math.inf, magnitude)
    return is_huge.select(b, cosine), magnitude


def _factor_for_squares(size: Value) -> tuple[Value, Value]:
    """Whether a number with a larger part of this size is huge, and the power of two by which it can be squared."""
    limits = _limits(size)
    is_huge = size.gt(2.0 ** (limits.maxexp // 2 - 4))
    return is_huge, is_huge.select(size.constant(2.0 ** -(limits.maxexp * 3 // 4)), 1.0)


def _asinh(x: Value, is_huge: Value, scaled: Value) -> Value:
    """log1p(x + x² / (1 + sqrt(1 + x²))) for x >= 0; log(2 x) of a huge x, which is given in scale."""
    square = x * x
    argument = x + square / ((square + 1.0).sqrt() + 1.0)
    total, lost = two_sum(x.constant(1.0), argument)
    shift = math.log(2.0) * (1 + _limits(x).maxexp * 3 // 4)
    result = log(is_huge.select(scaled, total), is_huge.select(0.0, lost))
    result = result + is_huge.select(x.constant(shift), 0.0)
    return (argument.lt(_limits(x).epsneg / 2) & ~is_huge).select(argument, result)


def complex_asin(z: Value) -> Value:
    """atan2(x, Re cos(asin z)) + i asinh(…), with the sign of y."""
    x, y = z.real(), z.imag()
    cosine, imag = _arcsine(z)
    return z.values.complex(x.eq(0.0).select(x, atan2(x, cosine)), imag.copysign(y))


def _acos(z: Value) -> tuple[Value, Value]:
    """The real part of acos z, and the magnitude of the imaginary one."""
    x = z.real()
    sine, imag = _arcsine(z)
    return x.eq(0.0).select(math.pi / 2, atan2(sine, x)), imag


def complex_acos(z: Value) -> Value:
    """atan2(Re sin(acos z), x) - i asinh(…), with the sign of y."""
    real, imag = _acos(z)
    # Not the sign of -y: devices differ in that of a NaN that they compute.
    return z.values.complex(real, -imag.copysign(z.imag()))


def complex_acosh(z: Value) -> Value:
    """i acos z or its opposite, whichever is on the right."""
    imag, real = _acos(z)
    return z.values.complex(real, imag.copysign(z.imag()))


# --- atanh -------------------------------------------------------------------------------------------


def complex_atanh(z: Value) -> Value:
    """log1p(4 x / ((1 - x)² + y²)) / 4 + i atan2(2 y, (1 - x) (1 + x) - y²) / 2."""
    x, y = z.real(), z.imag()
    a, b = x.abs(), y.abs()
    limits = _limits(x)
    # Beyond it 1 is nothing beside the number.
    is_far = larger_part(z).gt(2.0 ** (limits.nmant + 8))
    down = x.constant(2.0 ** -(limits.maxexp // 2 + 2))
    width, height = a * down, b * down
    left = 1.0 - a
    square = is_far.select(width.fma(width, height * height), left.fma(left, b * b))
    ratio = is_far.select(a, a * 4.0) / square
    real = is_far.select(ratio * down * down, _quarter_of_log1p(ratio, left.eq(0.0) & b.lt(limits.eps), b))
    real = x.eq(0.0).select(x, is_infinite(z).select(0.0, real).copysign(x))
    imag = atan2(y * 2.0, b.fma(-b, left * (a + 1.0))) * 0.5
    half_pi = y.isnan().select(y, y.constant(math.pi / 2).copysign(y))
    return z.values.complex(real, (is_far | is_infinite(z)).select(half_pi, imag))


def _quarter_of_log1p(ratio: Value, is_at_pole: Value, distance: Value) -> Value:
    """log1p(ratio) / 4; at the pole, where the ratio may overflow, log(2 / distance) / 2."""
    total, lost = two_sum(ratio.constant(1.0), ratio)
    result = log(is_at_pole.select(distance, total), is_at_pole.select(0.0, lost))
    small = ratio.lt(_limits(ratio).epsneg / 2).select(ratio, result) * 0.25
    return is_at_pole.select(result * -0.5 + math.log(2.0) / 2, small)


FORMULAS: Final[Formulas] = {
    ops.Acos: complex_acos,
    ops.Acosh: complex_acosh,
    ops.Asin: complex_asin,
    ops.Asinh: of_imaginary(complex_asin),
    ops.Atan: of_imaginary(complex_atanh),
    ops.Atanh: complex_atanh,
}
