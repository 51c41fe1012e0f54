"""Threefry-2x32 with 20 rounds on scalars.  Source: Salmon and others, Parallel random numbers (2011)."""

from __future__ import annotations

import numpy as np

from xarr.compiler.scalars import Value
from xarr.ir.ops.ciphers import THREEFRY_PARITY, THREEFRY_ROTATIONS


def threefry2x32(form: str, *operands: Value) -> Value:
    """One of the forms of ThreefryBits for a key and a counter, two uint32 each."""
    first, second = _words(*operands)
    if form == "joined":
        return (first.convert(np.uint64) << 32) | second.convert(np.uint64)
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
