"""Functions of complex numbers whose parts NumPy rounds, or lets overflow, otherwise than XLA."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from xarr.base.at_once.complex_quotients import ordinary_sizes
from xarr_numpy.functions.conversion import make_complex

Array = np.ndarray[Any, Any]


def complex_sign(x: Array) -> Array:
    """x / |x|, part by part; a zero stays itself."""
    # |x| may overflow, or be subnormal.
    scaled = x if _is_ordinary(x) else _multiply_parts(x, _moderating_factor(x))
    magnitude = np.abs(scaled)
    parts = (np.divide(part, magnitude) for part in (scaled.real, scaled.imag))
    return np.where(magnitude == 0, x, make_complex(*parts))


def _largest_part(x: Array) -> Array:
    """The magnitude of the larger part; NaN if a part is."""
    larger: Array = np.maximum(np.abs(x.real), np.abs(x.imag))
    return larger


def _is_ordinary(x: Array) -> bool:
    """Whether all numbers are finite and neither huge nor tiny, so that each has the moderating factor 1."""
    (least, greatest), larger = ordinary_sizes(x.dtype), _largest_part(x)
    if not np.max(larger, initial=0) <= greatest:
        return False
    return bool(np.min(larger, initial=np.inf) >= least or not np.any((larger < least) & (larger != 0)))


def _moderating_factor(x: Array) -> Array:
    """A power of two for each number, by which a huge or tiny one becomes one of ordinary size; 1 for others."""
    limits, larger = np.finfo(x.dtype), _largest_part(x)
    (down, up), (least, greatest) = _powers_of_two(limits), ordinary_sizes(x.dtype)
    huge = (larger > greatest) & np.isfinite(larger)
    tiny = (larger < least) & (larger != 0)
    factor: Array = np.where(huge, down, np.where(tiny, up, limits.dtype.type(1)))
    return factor


def _powers_of_two(limits: Any) -> tuple[Any, Any]:
    """Two inverse powers of two, that which makes huge numbers ordinary and that for tiny ones."""
    exponent = limits.maxexp * 5 // 8
    return limits.dtype.type(2.0**-exponent), limits.dtype.type(2.0**exponent)


def _multiply_parts(x: Array, factor: Array) -> Array:
    """Both parts times a real number, infinities and NaN of one part without effect on the other."""
    return make_complex(x.real * factor, x.imag * factor)


def complex_expm1(x: Array) -> Array:
    """exp(x) - 1.  NumPy's imaginary part is infinity times zero on the real axis, and parts overflow early."""
    result = np.expm1(x)
    if (large := (x.real > 30) & np.isfinite(x)).any():
        power = np.exp(x)
        shifted = make_complex(np.subtract(power.real, power.real.dtype.type(1)), power.imag)
        result = np.where(large, shifted, result)
    return make_complex(result.real, np.where(x.imag == 0, x.imag, result.imag))


def complex_log1p(x: Array) -> Array:
    """log(1 + x).  Near 0, where |1 + x| rounds to 1, the real part comes from |1 + x|² - 1."""
    a, b = x.real, x.imag
    two, half = a.dtype.type(2), a.dtype.type(0.5)
    result = np.log(make_complex(np.add(a, a.dtype.type(1)), b))
    near = (np.abs(a) < half) & (np.abs(b) < half)
    return make_complex(np.where(near, half * np.log1p(a * (two + a) + b * b), result.real), result.imag)


def complex_divide(x: Array, y: Array) -> Array:
    """x / y where infinities and zeros in either give the infinities and zeros of C99, Annex G.5.1."""
    quotient = _quotient(x, y)
    vanishing = np.isnan(quotient) & np.isinf(y) & np.isfinite(x)
    lost = (np.isnan(quotient.real) & np.isnan(quotient.imag)) | (y == 0) | vanishing
    return np.where(lost, _recover(x, y), quotient) if lost.any() else quotient


def _quotient(x: Array, y: Array) -> Array:
    """x / y, of extreme numbers by way of ordinary ones."""
    if _is_ordinary(x) and _is_ordinary(y):
        return np.true_divide(x, y)
    of_x, of_y = _moderating_factor(x), _moderating_factor(y)
    one = of_y.dtype.type(1)
    limits = np.finfo(x.dtype)
    down, up = _powers_of_two(limits)
    # Where both factors were up, a large dividend would overflow; where x alone is huge, its sums do.
    large = (_largest_part(x) > down * (limits.max / 4)) & (of_y == up)
    quarter = limits.dtype.type(0.25)
    of_x = np.where(large | ((of_x == down) & (of_y == one)), quarter, np.where(of_y == one, of_x, of_y))
    quotient = np.true_divide(_multiply_parts(x, of_x), _multiply_parts(y, of_y))
    # One of the two factors, or one is a quarter: the product is a power of two that there is.
    return _multiply_parts(quotient, of_y / of_x)


def complex_rsqrt(x: Array) -> Array:
    """1 / sqrt(x), with the signs of zero of an inverse: those of the root, conjugated."""
    root = np.sqrt(x)
    inverse = complex_divide(root.dtype.type(1), root)
    return make_complex(np.copysign(inverse.real, root.real), np.copysign(inverse.imag, -root.imag))


def _recover(x: Array, y: Array) -> Array:
    a, b, c, d = x.real, x.imag, y.real, y.imag
    one, zero = a.dtype.type(1), a.dtype.type(0)
    infinity, nan = a.dtype.type(np.inf), a.dtype.type(np.nan)
    by_zero, by_finite, of_finite = y == 0, np.isfinite(c) & np.isfinite(d), np.isfinite(a) & np.isfinite(b)
    infinite = (np.isinf(a) | np.isinf(b)) & by_finite
    vanishing = (np.isinf(c) | np.isinf(d)) & of_finite
    scale = np.where(infinite, infinity, np.where(vanishing, zero, nan))
    # A quarter, so that sums of large parts do not overflow before they meet the scale.
    quarter = a.dtype.type(0.25)
    a, b = (
        np.where(infinite, np.copysign(np.where(np.isinf(part), one, zero), part), part * quarter)
        for part in (a, b)
    )
    c, d = (
        np.where(vanishing, np.copysign(np.where(np.isinf(part), one, zero), part), part) for part in (c, d)
    )
    signed = np.copysign(infinity, y.real)
    return make_complex(
        np.where(by_zero, signed * x.real, scale * (a * c + b * d)),
        np.where(by_zero, signed * x.imag, scale * (b * c - a * d)),
    )


SCOPE: Final[dict[str, Any]] = {
    function.__name__: function
    for function in (
        complex_sign,
        complex_expm1,
        complex_log1p,
        complex_divide,
        complex_rsqrt,
    )
}
