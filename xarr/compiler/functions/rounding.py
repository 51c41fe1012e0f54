"""Roundings of one float format to another that processors do not have, on the bits."""

from __future__ import annotations

import numpy as np

from xarr.compiler.loop_ir.scalars import Value


def float32_to_odd(x: Value) -> Value:
    """A float64 as float32, an inexact one as the neighbour whose last bit is set.

    Rounded once more, to a format at least two bits narrower, it is as if rounded once from float64.
    Source: Boldo and Melquiond, Emulation of FMA and correctly rounded sums (2008).
    """
    narrow = x.convert(np.float32)
    wide = narrow.convert(np.float64)
    bits = narrow.bitcast(np.int32)
    # The neighbour towards x: one unit up in magnitude if rounding has lost some, else one down.
    step = wide.abs().lt(x.abs()).select(bits.constant(1), bits.constant(-1))
    inexact_even = wide.ne(x) & ~x.isnan() & (bits & 1).eq(0)
    return inexact_even.select(bits + step, bits).bitcast(np.float32)


def float16_of_float64(x: Value) -> Value:
    """A float64 as float16, rounded once to nearest even."""
    return float32_to_odd(x).convert(np.float16)
