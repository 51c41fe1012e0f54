"""Values of complex functions at infinite parts, by NumPy and the Array API, where XLA's formulas differ."""

from __future__ import annotations

import math

from xarr import lax
from xarr.base.typing import Array


def complex_expm1(result: Array, x: Array) -> Array:
    """Mend `result`, expm1(x), where the modulus is known, if not the angle: -1 at -inf, infinite at inf."""
    part, angle = lax.real(x), lax.imag(x)
    is_rotating = lax.bitwise_not(lax.is_finite(angle))
    least = lax.complex(lax.full_like(part, -1), lax.full_like(part, 0))
    most = lax.complex(lax.full_like(part, math.inf), lax.full_like(part, math.nan))
    result = lax.select(lax.bitwise_and(is_rotating, lax.eq(part, -math.inf)), least, result)
    result = lax.select(lax.bitwise_and(is_rotating, lax.eq(part, math.inf)), most, result)
    # The sum of the real part's two terms is +0 of any zero.
    return lax.select(lax.eq(x, 0), lax.complex(lax.full_like(part, 0), angle), result)


def complex_sign(x: Array) -> Array:
    """x / |x|, by the infinite part alone where one is."""
    parts = lax.real(x), lax.imag(x)
    a, b = (lax.select(lax.eq(lax.abs(p), math.inf), lax.sign(p), lax.full_like(p, 0)) for p in parts)
    return lax.select(lax.ne(lax.abs(a), lax.abs(b)), lax.complex(a, b), lax.sign(x))
