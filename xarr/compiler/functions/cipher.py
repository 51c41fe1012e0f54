"""Threefry-2x32 with 20 rounds and Philox-4x32 with 10 on scalars.

Source: J. Salmon and others, Parallel random numbers: as easy as 1, 2, 3 (2011).
"""

from __future__ import annotations

import numpy as np

from xarr.compiler.loop_ir.scalars import Value
from xarr.ir.ops.ciphers import PHILOX_MULTIPLIERS, PHILOX_WEYL, THREEFRY_PARITY, THREEFRY_ROTATIONS


def threefry2x32(form: str, *operands: Value) -> Value:
    """One of the forms of ThreefryBits for a key and a counter, two uint32 each."""
    first, second = _words(*operands)
    if form == "joined":
        return _joined(first, second)
    if form == "swapped":
        return _joined(second, first)
    return {"first": first, "second": second, "xor": first ^ second}[form]


def _words(key0: Value, key1: Value, x0: Value, x1: Value) -> tuple[Value, Value]:
    keys = (key0, key1, key0 ^ key1 ^ THREEFRY_PARITY)
    x0, x1 = x0 + keys[0], x1 + keys[1]
    for step in range(5):
        for rotation in THREEFRY_ROTATIONS[step % 2]:
            x0 = x0 + x1
            x1 = ((x1 << rotation) | (x1 >> (32 - rotation))) ^ x0
        x0 = x0 + keys[(step + 1) % 3]
        # The sum of key and step is the same for all counters of one key.
        x1 = x1 + (keys[(step + 2) % 3] + (step + 1))
    return x0, x1


def philox4x32(index: int, *operands: Value) -> Value:
    """The pair of PhiloxPair for a key of two and a counter of four uint32."""
    key0, key1, x0, x1, x2, x3 = operands
    for step in range(10):
        if step:
            key0, key1 = key0 + PHILOX_WEYL[0], key1 + PHILOX_WEYL[1]
        first, second = (
            x.convert(np.uint64) * factor for x, factor in zip((x0, x2), PHILOX_MULTIPLIERS, strict=True)
        )
        x0, x2 = _high(second) ^ x1 ^ key0, _high(first) ^ x3 ^ key1
        x1, x3 = second.convert(np.uint32), first.convert(np.uint32)
    return _joined(x3, x2) if index else _joined(x1, x0)


def _high(x: Value) -> Value:
    return (x >> 32).convert(np.uint32)


def _joined(high: Value, low: Value) -> Value:
    return (high.convert(np.uint64) << 32) | low.convert(np.uint64)
