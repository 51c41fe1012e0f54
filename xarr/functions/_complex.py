"""Where NumPy and the Array API give complex numbers with infinite parts values that XLA's formulas do not."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from xarr import lax

if TYPE_CHECKING:
    from xarr.array import Array


def complex_expm1(found: Array, x: Array) -> Array:
    """`found`, which is expm1(x), where the modulus is known, if not the angle: -1 at -inf, infinite at inf."""
    part, angle = lax.real(x), lax.imag(x)
    turns = lax.bitwise_not(lax.is_finite(angle))
    least = lax.complex(lax.full_like(part, -1), lax.full_like(part, 0))
    most = lax.complex(lax.full_like(part, math.inf), lax.full_like(part, math.nan))
    found = lax.select(lax.bitwise_and(turns, lax.eq(part, -math.inf)), least, found)
    found = lax.select(lax.bitwise_and(turns, lax.eq(part, math.inf)), most, found)
    # The sum of the real part's two terms is +0 of any zero.
    return lax.select(lax.eq(x, 0), lax.complex(lax.full_like(part, 0), angle), found)


def complex_sign(x: Array) -> Array:
    """x / |x|, by the infinite part alone where one is."""
    parts = lax.real(x), lax.imag(x)
    a, b = (lax.select(lax.eq(lax.abs(p), math.inf), lax.sign(p), lax.full_like(p, 0)) for p in parts)
    return lax.select(lax.ne(lax.abs(a), lax.abs(b)), lax.complex(a, b), lax.sign(x))
