"""Powers of complex numbers, computed of their parts, by NumPy's rules.

A whole exponent between -100 and 100 makes products, the same as those of a known exponent (`complex_powers` of the
passes), with their bits, infinities and NaN.  Of others the power is exp(w log z), in which what the logarithm and the
products round off is kept: complex64 is computed in float64, complex128 in pairs.

Sources: NumPy, `npy_cpow` in `npy_math_complex.c`; C99, 7.3.8.2, which defines no special values, and Annex G.5.1, by
which infinite products are no NaN.
"""

from __future__ import annotations

import math
from functools import reduce
from operator import or_
from typing import Final

import numpy as np

from xarr.compiler.functions.arctangent import angle_as_pair, atan2
from xarr.compiler.functions.complex_functions import complex_exp, square_of_magnitude
from xarr.compiler.functions.complex_numbers import is_infinite, multiply_rounded, plain_quotient, unit_part
from xarr.compiler.functions.floating_point import (
    DOUBLE,
    SINGLE,
    Formulas,
    Pair,
    two_product,
    two_sum,
)
from xarr.compiler.functions.logarithm import log
from xarr.compiler.functions.power import LN2_WITH_ZEROS, logarithm_as_pair
from xarr.compiler.loop_ir.scalars import Value
from xarr.ir import ops

#: Exponents of this magnitude, and larger ones, make no products.
_EXPONENTS: Final = 100
#: Up to it exp(x) is 1 + x, but for less than what the angle errs.
_SMALL: Final = 2.0**-20


def complex_power(z: Value, w: Value) -> Value:
    """z to the power w; 1 for w = 0; 0 is 0 to a power with a positive real part, else NaN."""
    exponent = w.real()
    is_real = w.imag().eq(0.0)
    is_product = is_real & exponent.abs().lt(_EXPONENTS) & exponent.floor().eq(exponent)
    product = _whole_power(z, is_product.select(exponent, 0.0))
    usual = _exponential_power(z, w)
    of_zero = exponent.gt(0.0).select(exponent.constant(0.0), math.nan)
    is_zero, is_one = z.real().eq(0.0) & z.imag().eq(0.0), is_real & exponent.eq(0.0)
    parts = []
    for part, of_one in ((Value.real, 1.0), (Value.imag, 0.0)):
        power = is_zero.select(of_zero, is_product.select(part(product), part(usual)))
        parts.append(is_one.select(of_one, power))
    return z.values.complex(*parts)


# --- whole exponents ---------------------------------------------------------------------------------


def _whole_power(z: Value, exponent: Value) -> Value:
    """z to a whole power by repeated squaring, its inverse for a negative one."""
    one = z.values.constant(1, z.dtype)
    count = exponent.abs().convert(np.dtype(np.int32))
    product, square = one, z
    for bit in range(_EXPONENTS.bit_length()):
        if bit:
            square = multiply_rounded(square, square)
        product = (count & (1 << bit)).ne(0).select(multiply_rounded(product, square), product)
    # Products with 1 would make NaN of infinities.
    second = multiply_rounded(z, z)
    product = exponent.eq(1.0).select(z, exponent.eq(2.0).select(second, product))
    product = exponent.eq(3.0).select(multiply_rounded(z, second), product)
    vanishes = product.real().eq(0.0) & product.imag().eq(0.0)
    inverse = vanishes.select(
        z.values.constant(complex(math.inf, math.nan), z.dtype), plain_quotient(one, product)
    )
    return exponent.lt(0.0).select(inverse, product)


# --- other ones --------------------------------------------------------------------------------------


def _exponential_power(z: Value, w: Value) -> Value:
    """exp(w log z), where z is not 0."""
    part = z.real().dtype
    z, w = _widen(z), _widen(w)
    magnitude, angle = (_log if part == SINGLE else _log_as_pairs)(z)
    real = _sum_of_products(w.real(), magnitude, -w.imag(), angle)
    imag = _sum_of_products(w.imag(), magnitude, w.real(), angle)
    is_lost = real[0].isnan() & imag[0].isnan()
    recovered = _infinite_product(w, z.values.complex(magnitude[0], angle[0]))
    power = complex_exp(is_lost.select(recovered, z.values.complex(real[0], imag[0])))
    if part == DOUBLE:
        power = _times_exp_of_small(power, real[1], imag[1])
    return z.values.complex(power.real().convert(part), power.imag().convert(part))


def _widen(z: Value) -> Value:
    return z.values.complex(z.real().convert(DOUBLE), z.imag().convert(DOUBLE))


def _log(z: Value) -> tuple[Pair, Pair]:
    """log z of what was complex64: its squares are ordinary numbers of float64, and not rounded."""
    x, y = z.real(), z.imag()
    result = log(*two_sum(x * x, y * y)) * 0.5
    zero = x.constant(0.0)
    return (is_infinite(z).select(math.inf, result), zero), (atan2(y, x), zero)


def _log_as_pairs(z: Value) -> tuple[Pair, Pair]:
    """log z with what its parts lack."""
    square, lost, exponent = square_of_magnitude(z)
    high, low = logarithm_as_pair(square)
    high, more = two_sum(high * 0.5, exponent * LN2_WITH_ZEROS[0])
    low = exponent.fma(LN2_WITH_ZEROS[1], (low + lost / square) * 0.5)
    high, low = two_sum(high, low + more)
    is_finite = square.lt(math.inf)
    magnitude = is_finite.select(high, square), is_finite.select(low, 0.0)
    return magnitude, angle_as_pair(z.imag(), z.real())


def _sum_of_products(a: Value, b: Pair, c: Value, d: Pair) -> Pair:
    """a b + c d, each product rounded, and what the roundings lose."""
    (first, first_low), (second, second_low) = two_product(a, b[0]), two_product(c, d[0])
    total, lost = two_sum(first, second)
    return total, lost + (a.fma(b[1], first_low) + c.fma(d[1], second_low))


def _infinite_product(x: Value, y: Value) -> Value:
    """The product where both parts are NaN for usual: infinite if a number or a product of parts is.

    Source: C99, Annex G.5.1.6, example 1.
    """
    parts = [(each.real(), each.imag()) for each in (x, y)]
    products = x.values.complex(*(p * q for p, q in zip(*parts, strict=True)))
    crossed = x.values.complex(*(p * q for p, q in zip(parts[0], reversed(parts[1]), strict=True)))
    scale = x.real().constant(math.inf)
    scale = reduce(or_, map(is_infinite, (x, y, products, crossed))).select(scale, math.nan)
    product = multiply_rounded(_box_infinities(x), _box_infinities(y))
    return x.values.complex(scale * product.real(), scale * product.imag())


def _box_infinities(x: Value) -> Value:
    """Infinite parts as 1 and the others as 0 where there is one; NaN as 0, all with their signs."""
    whole = is_infinite(x)
    parts = []
    for part in (x.real(), x.imag()):
        known = part.isnan().select(part.constant(0.0).copysign(part), part)
        parts.append(whole.select(unit_part(part), known))
    return x.values.complex(*parts)


def _times_exp_of_small(power: Value, real: Value, imag: Value) -> Value:
    """The power times 1 + real + imag i; itself where that is no small change."""
    x, y = power.real(), power.imag()
    is_small = x.abs().lt(math.inf) & y.abs().lt(math.inf) & real.abs().lt(_SMALL) & imag.abs().lt(_SMALL)
    changes = (x, x * real - y * imag), (y, x * imag + y * real)
    # A sum with 0 would lose the sign of a zero.
    parts = [(is_small & change.ne(0.0)).select(part + change, part) for part, change in changes]
    return power.values.complex(*parts)


FORMULAS: Final[Formulas] = {ops.Power: complex_power}
