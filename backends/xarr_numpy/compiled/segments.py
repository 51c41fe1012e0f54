"""Folds of segments of a vector in one pass, in machine code.

A segment is put together of windows of 1, 2, 4 … elements, for the bits of its length, and each window of its halves:
the order in which `xarr.numpy_api.ufuncs.folds.segments` adds, so that both give the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from string import Template
from typing import Any, Final

import numpy as np

from xarr_numpy.compiled.codegen import llvm_jit
from xarr_numpy.compiled.codegen.typed_python import compile_functions
from xarr_numpy.compiled.cpython_abi import builtin

#: Elements of a window that is written out.
_UNROLLED: Final = 8
#: By name how two elements are combined, and by the code of the element type what LLVM calls it, and its bits.
_COMBINATIONS: Final = {
    **{"add": "({x} + {y})", "multiply": "({x} * {y})"},
    **{name: f"llvm_{name}_f{{bits}}({{x}}, {{y}})" for name in ("maximum", "minimum")},
}
_TYPES: Final = {"d": ("double", 64), "f": ("float", 32)}

_FOLD: Final = Template("""
def llvm_maximum_f$bits(x: $type, y: $type) -> $type: ...
def llvm_minimum_f$bits(x: $type, y: $type) -> $type: ...

# Of arrays of elements, starts, the numbers of both and a flag, and results: the flag is set for a start out of bounds.
@exported
def fold(buffers: ptr, begin: i64, end: i64):
    windows = stack($type, 64)
    x = buffers.ptr[0]
    starts = buffers.ptr[1]
    numbers = buffers.ptr[2]
    results = buffers.ptr[3]
    size = numbers.i64[0]
    count = numbers.i64[1]
    for k in range(count):
        start = starts.i64[k]
        is_last = k + 1 == count
        stop = size if is_last else starts.i64[k + 1]
        if unsigned(start) >= size or not is_last and unsigned(stop) >= size:
            numbers.i64[2] = 1
            return
        total = x.$type[start]
        at = start + 1
        left = stop - at
        width = 1
        while width <= left:
            if left & width:
                total = $fold
                at += width
            width <<= 1
        results.$type[k] = total

# A window of a power of two elements: blocks that are written out, folded by twos as they come, as a counter carries.
def window(x: ptr, width: i64, windows: ptr) -> $type:
$small
    for k in range(width / $unrolled):
        sum = block$unrolled(x + $bytes * $unrolled * k)
        level = 0
        counter = k + 1
        while not (counter & 1):
            sum = $join
            level += 1
            counter >>= 1
        windows.$type[level] = sum
    return sum
""")


@lru_cache
def segment_fold(name: str, char: str) -> Callable[..., bool] | None:
    """The fold by NumPy's ufunc of this name of elements of the type with this code; None if there is none.

    It is called with arrays: the elements of a vector; where segments begin, as int64; int64 numbers of both and 0; and
    the results, which it fills.  It gives False if one of them does not lie in row-major order; the last number is 1
    where a start is out of bounds.
    """
    if name not in _COMBINATIONS or char not in _TYPES:
        return None
    code = llvm_jit.compile_module(fold_text(name, char), ["fold"], serial=("",))
    return builtin.phase_entries(code.addresses["fold"], 1, 4, 1, code)[0]


def fold_text(name: str, char: str) -> str:
    """The function `fold` in LLVM IR."""
    own, bits = _TYPES[char]

    def apply(x: str, y: str) -> str:
        return _COMBINATIONS[name].format(bits=bits, x=x, y=y)

    def combine(first: int, count: int) -> str:
        """Elements that follow one another, by pairs."""
        half = count // 2
        return apply(combine(first, half), combine(first + half, half)) if half else f"x.{own}[{first}]"

    widths = [1 << k for k in range(_UNROLLED.bit_length())]
    text = _FOLD.substitute(
        {"type": own, "bits": bits, "bytes": bits // 8, "unrolled": _UNROLLED},
        fold=apply("total", f"window(x + {bits // 8} * at, width, windows)"),
        join=apply(f"windows.{own}[level]", "sum"),
        small="\n".join([f"    if width == {width}:\n        return block{width}(x)" for width in widths]),
    )
    blocks = [
        f"@inline\ndef block{width}(x: ptr) -> {own}:\n    return {combine(0, width)}\n" for width in widths
    ]
    return compile_functions("".join([text, *blocks]))


def fold(name: str, x: np.ndarray[Any, Any], starts: np.ndarray[Any, Any]) -> np.ndarray[Any, Any] | None:
    """The folds of a vector from each start up to the next; None where there is none, or a start out of bounds."""
    call = segment_fold(name, x.dtype.char)
    if call is None:
        return None
    numbers = np.array([x.size, starts.size, 0])
    results = np.empty(starts.size, x.dtype)
    is_done = call(np.ascontiguousarray(x), np.ascontiguousarray(starts), numbers, results)
    return results if is_done and not numbers[2] else None
