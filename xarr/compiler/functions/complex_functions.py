"""exp, log, roots and what is made of them, of complex numbers, computed of their parts.

Special values are those of C99, Annex G, and of NumPy where that says nothing; errors are a few units in the last place
of the larger part.

Inverse trigonometric and hyperbolic functions are in `complex_inverses`, powers in `complex_power`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from xarr.compiler.functions.arctangent import atan2
from xarr.compiler.functions.arithmetic import is_finite
from xarr.compiler.functions.complex_numbers import add, divide, larger_part, negate
from xarr.compiler.functions.exponential import cosh, exp, expm1, reduce_exponent, sinh
from xarr.compiler.functions.floating_point import (
    DOUBLE,
    SINGLE,
    Formulas,
    at_least,
    at_most,
    quick_two_sum,
    scale_by_power,
    two_product,
    two_sum,
)
from xarr.compiler.functions.logarithm import log, log1p
from xarr.compiler.functions.trigonometric import cos, sin
from xarr.compiler.loop_ir.scalars import Value
from xarr.ir import ops

#: Up to this magnitude exp is an ordinary number, with room for a factor.
_ORDINARY: Final = {SINGLE: 80.0, DOUBLE: 700.0}
#: Beyond these exp is 0 and infinite, even times the least sine.
_ENDS: Final = {SINGLE: (-105.0, 200.0), DOUBLE: (-747.0, 1700.0)}
#: The exponent of a power of two that is left aside where exp(x) is no ordinary number.
_ASIDE: Final = {SINGLE: 60, DOUBLE: 600}
#: Beyond it tanh is 1, and sinh and cosh are exp / 2.
_FLAT: Final = {SINGLE: 10.0, DOUBLE: 22.0}


# --- exp and its kin ---------------------------------------------------------------------------------


def complex_exp(z: Value) -> Value:
    """exp(x) (cos y + i sin y)."""
    x, y = z.real(), z.imag()
    magnitude = exp(x)
    is_extreme = ~x.abs().lt(_ORDINARY[x.dtype])
    cosine, sine = cos(y), sin(y)
    real, imag = _times_exp(cosine, x), y.eq(0.0).select(y, _times_exp(sine, x))
    lost = x.abs().eq(math.inf) & ~is_finite(y)
    real = lost.select(exp(x), real)
    imag = lost.select(x.lt(0.0).select(x.constant(0.0).copysign(y), math.nan), imag)
    return z.values.complex(
        is_extreme.rarely(real, magnitude * cosine), is_extreme.rarely(imag, magnitude * sine)
    )


def _times_exp(factor: Value, x: Value, halvings: int = 0) -> Value:
    """exp(x) 2**-halvings times a factor up to 1, which is finite where exp(x) is not."""
    low, high = _ENDS[x.dtype]
    aside = _ASIDE[x.dtype]
    n, tail = reduce_exponent(at_most(at_least(x, low), high))
    is_large = x.gt(_ORDINARY[x.dtype])
    factor = factor * is_large.select(x.constant(2.0**aside), 1.0)
    return scale_by_power(factor * (tail + 1.0), n - is_large.select(x.constant(aside + halvings), halvings))


def complex_expm1(z: Value) -> Value:
    """exp(z) - 1 by way of expm1(x) cos y - 2 sin(y/2)²."""
    x, y = z.real(), z.imag()
    half = sin(y * 0.5)
    real, imag = expm1(x).fma(cos(y), half * half * -2.0), exp(x) * sin(y)
    whole = complex_exp(z)
    is_large = x.gt(30.0) & is_finite(x) & is_finite(y)
    real = is_large.select(whole.real() - 1.0, real)
    return z.values.complex(real, y.eq(0.0).select(y, is_large.select(whole.imag(), imag)))


def complex_logistic(z: Value) -> Value:
    """1 / (1 + exp(-z)), and exp(z) where exp(-z) overflows."""
    x = z.real()
    one = z.values.constant(1, z.dtype)
    ratio = divide(one, add(one, complex_exp(negate(z))))
    is_far = x.lt(-0.95 * math.log(_limits(x).max)) & is_finite(x) & is_finite(z.imag())
    return is_far.select(complex_exp(z), ratio)


# --- hyperbolic and trigonometric --------------------------------------------------------------------


def complex_cosh(z: Value) -> Value:
    """cosh x cos y + i sinh x sin y."""
    x, y = z.real(), z.imag()
    real, imag = _hyperbolic_product(x, cosh(x), cos(y)), _hyperbolic_product(x, sinh(x), sin(y))
    real = (x.abs().eq(math.inf) & ~is_finite(y)).select(math.inf, real)
    one = x.constant(1.0)
    zero = is_finite(y).select(x * one.copysign(sin(y)), 0.0)
    zero = y.eq(0.0).select(x.isnan().select(y, y * one.copysign(x)), zero)
    return z.values.complex(real, (x.eq(0.0) | y.eq(0.0)).select(zero, imag))


def complex_sinh(z: Value) -> Value:
    """sinh x cos y + i cosh x sin y."""
    x, y = z.real(), z.imag()
    real, imag = _hyperbolic_product(x, sinh(x), cos(y)), _hyperbolic_product(x, cosh(x), sin(y))
    real = is_finite(y).select(real, x.eq(0.0).select(x, x.abs().eq(math.inf).select(x.abs(), real)))
    return z.values.complex(real, y.eq(0.0).select(y, imag))


def _hyperbolic_product(x: Value, hyperbolic: Value, circular: Value) -> Value:
    """sinh x or cosh x times a sine or cosine, which is finite where sinh and cosh are not."""
    far = _times_exp(circular * circular.constant(1.0).copysign(hyperbolic), x.abs(), halvings=1)
    return (~x.abs().lt(_ORDINARY[x.dtype])).rarely(far, hyperbolic * circular)


def complex_tanh(z: Value) -> Value:
    """(sinh x cosh x + i sin y cos y) / (sinh² x + cos² y)."""
    x, y = z.real(), z.imag()
    size = at_most(x.abs(), _FLAT[x.dtype])
    hyperbolic, other, cosine, sine = sinh(size), cosh(size), cos(y), sin(y)
    inverse = 1.0 / hyperbolic.fma(hyperbolic, cosine * cosine)
    real, imag = hyperbolic * other * inverse, sine * cosine * inverse
    is_flat = x.abs().ge(_FLAT[x.dtype])
    far = sine * cosine * 4.0 * exp(x.abs() * -2.0)
    is_infinite = x.abs().eq(math.inf)
    # sin 2y, with a sign for every y
    far = is_infinite.select(is_finite(y).select(far, x.constant(0.0).copysign(y)), far)
    flat = (is_infinite | is_finite(y)).select(x.constant(1.0), math.nan)
    real = x.eq(0.0).select(x, is_flat.select(flat, real).copysign(x))
    return z.values.complex(real, y.eq(0.0).select(y, is_flat.select(far, imag)))


def of_imaginary(function: Callable[[Value], Value]) -> Callable[[Value], Value]:
    """f(i z) / i for an odd f with conjugate values of conjugate numbers: the trigonometric one of a hyperbolic one."""

    def trigonometric(z: Value) -> Value:
        result = function(z.values.complex(z.imag(), z.real()))
        return z.values.complex(result.imag(), result.real())

    return trigonometric


def complex_cos(z: Value) -> Value:
    """cosh(i z)."""
    return complex_cosh(z.values.complex(-z.imag(), z.real()))


# --- roots -------------------------------------------------------------------------------------------


def complex_sqrt(z: Value) -> Value:
    """t + y / (2 t) i for t = sqrt((|x| + |z|) / 2), the parts exchanged for x < 0."""
    x, y = z.real(), z.imag()
    down, up = _powers_for_squares(x)
    factor = _factor_for_squares(larger_part(z))
    root_of_factor = factor.eq(down).select(
        x.constant(math.sqrt(up)), factor.eq(up).select(x.constant(math.sqrt(down)), 1.0)
    )
    a, b = x.abs() * factor, y * factor
    magnitude = a.eq(math.inf).select(a, a.fma(a, b * b).sqrt())
    root = ((a + magnitude) * 0.5).sqrt() * root_of_factor
    other = root.eq(0.0).select(y, y / (root + root))
    is_left = x.lt(0.0)
    real, imag = is_left.select(other.abs(), root), is_left.select(root.copysign(y), other)
    is_infinite = y.abs().eq(math.inf)
    return z.values.complex(is_infinite.select(math.inf, real), is_infinite.select(y, imag))


def complex_rsqrt(z: Value) -> Value:
    """1 / sqrt(z), with the signs of zero of an inverse: those of the root, conjugated."""
    root = complex_sqrt(z)
    inverse = divide(z.values.constant(1, z.dtype), root)
    # Devices differ in the sign of a NaN that they compute, not in that of an operand.
    sign = root.imag().isnan().select(z.imag(), root.imag())
    return z.values.complex(inverse.real().copysign(root.real()), -inverse.imag().copysign(sign))


def _limits(x: Value) -> Any:
    return np.finfo(x.dtype)


def _powers_for_squares(x: Value) -> tuple[float, float]:
    """Two inverse powers of two, with even exponents, by which squares of huge and tiny numbers are ordinary."""
    exponent = _limits(x).maxexp * 3 // 4
    return 2.0**-exponent, 2.0**exponent


def _factor_for_squares(size: Value) -> Value:
    """The power of two by which a number with a larger part of this size can be squared; 1 for most."""
    half, (down, up) = _limits(size).maxexp // 2, _powers_for_squares(size)
    huge, tiny = size.gt(2.0 ** (half - 4)), size.lt(2.0 ** -(half - 14))
    return huge.select(size.constant(down), tiny.select(size.constant(up), 1.0))


# --- logarithms --------------------------------------------------------------------------------------


def complex_log(z: Value) -> Value:
    """log |z| + i atan2(y, x)."""
    return z.values.complex(_log_of_magnitude(z), atan2(z.imag(), z.real()))


def _log_of_magnitude(z: Value) -> Value:
    """log(x² + y²) / 2, of which next to |z| = 1 no digit is lost."""
    square, lost, exponent = square_of_magnitude(z)
    return log(square, lost) * 0.5 + exponent * math.log(2.0)


def square_of_magnitude(z: Value) -> tuple[Value, Value, Value]:
    """The square of the magnitude of z / 2**k with what it lacks, and the whole float k, which is 0 for most."""
    down, up = _powers_for_squares(z.real())
    factor = _factor_for_squares(larger_part(z))
    scale = math.log2(up)
    exponent = factor.eq(down).select(
        factor.constant(scale), factor.eq(up).select(factor.constant(-scale), 0.0)
    )
    a, b = z.real().abs() * factor, z.imag().abs() * factor
    (first, first_low), (second, second_low) = two_product(a, a), two_product(b, b)
    square, lost = two_sum(first, second)
    low, rest = two_sum(first_low, second_low)
    lost, more = two_sum(lost, low)
    square, lost = quick_two_sum(square, lost)
    infinite = a.eq(math.inf) | b.eq(math.inf)
    return infinite.select(math.inf, square), infinite.select(0.0, lost + (more + rest)), exponent


def complex_log1p(z: Value) -> Value:
    """log(1 + z); near 0, where |1 + z| rounds to 1, the real part comes from |1 + z|² - 1."""
    a, b = z.real(), z.imag()
    result = complex_log(z.values.complex(a + 1.0, b))
    near = a.abs().lt(0.5) & b.abs().lt(0.5)
    real = near.select(log1p(a * (a + 2.0) + b * b) * 0.5, result.real())
    return z.values.complex(real, result.imag())


FORMULAS: Final[Formulas] = {
    ops.Cosh: complex_cosh,
    ops.Cosine: complex_cos,
    ops.Exponential: complex_exp,
    ops.ExponentialMinusOne: complex_expm1,
    ops.Log: complex_log,
    ops.LogPlusOne: complex_log1p,
    ops.Logistic: complex_logistic,
    ops.Rsqrt: complex_rsqrt,
    ops.Sine: of_imaginary(complex_sinh),
    ops.Sinh: complex_sinh,
    ops.Sqrt: complex_sqrt,
    ops.Tan: of_imaginary(complex_tanh),
    ops.Tanh: complex_tanh,
}
