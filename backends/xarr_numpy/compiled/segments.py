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
from xarr_numpy.compiled.codegen.shorthand import expand
from xarr_numpy.compiled.cpython_abi import builtin

#: Elements of a window that is written out.
_UNROLLED: Final = 8
#: By name the instruction, and by the code of the element type what LLVM calls it, and its bytes.
_INSTRUCTIONS: Final = {
    **{"add": "fadd {type} {x}, {y}", "multiply": "fmul {type} {x}, {y}"},
    **{
        name: f"call {{type}} @llvm.{name}.f{{bits}}({{type}} {{x}}, {{type}} {{y}})"
        for name in ("maximum", "minimum")
    },
}
_TYPES: Final = {"d": ("double", 8), "f": ("float", 4)}

_FOLD: Final = Template("""
; Of arrays of elements, starts, the numbers of both and a flag, and results: the flag is set for a start out of bounds.
define void @fold(ptr %buffers, i64 %begin, i64 %end) nounwind {
entry:
  %stack = alloca [64 x $type], align 16
  %x = load ptr, ptr %buffers, align 8
  %starts = load ptr, ptr %buffers[1]
  %numbers = load ptr, ptr %buffers[2]
  %results = load ptr, ptr %buffers[3]
  %size = load i64, ptr %numbers, align 8
  %count = load i64, ptr %numbers[1]
  then next:
  %k = phi i64 [ 0, %entry ], [ %k.next, %put ]
  %is = icmp slt i64 %k, %count
  unless %is goto done, more:
  %start = load i64, ptr %starts[%k]
  %inside = icmp ult i64 %start, %size
  unless %inside goto bad, ask:
  %k.next = add i64 %k, 1
  %is.last = icmp eq i64 %k.next, %count
  if %is.last goto measure, follow:
  %following = load i64, ptr %starts[%k.next]
  %follow.inside = icmp ult i64 %following, %size
  unless %follow.inside goto bad, measure:
  %stop = phi i64 [ %size, %ask ], [ %following, %follow ]
  %length = sub i64 %stop, %start
  %grows = icmp sgt i64 %length, 1
  %beyond = sub i64 %length, 1
  %left = select i1 %grows, i64 %beyond, i64 0
  %first.slot = getelementptr $type, ptr %x, i64 %start
  %first = load $type, ptr %first.slot, align $bytes
  %second = add i64 %start, 1
  then bits:
  %width = phi i64 [ 1, %measure ], [ %width.next, %step ]
  %at = phi i64 [ %second, %measure ], [ %at.next, %step ]
  %total = phi $type [ %first, %measure ], [ %total.next, %step ]
  %goes = icmp ule i64 %width, %left
  unless %goes goto put, look:
  %bit = and i64 %left, %width
  %has = icmp ne i64 %bit, 0
  unless %has goto step, take:
  %window.slot = getelementptr $type, ptr %x, i64 %at
  %window = call $type @window(ptr %window.slot, i64 %width, ptr %stack)
  %folded = $fold
  %moved = add i64 %at, %width
  then step:
  %at.next = phi i64 [ %at, %look ], [ %moved, %take ]
  %total.next = phi $type [ %total, %look ], [ %folded, %take ]
  %width.next = shl i64 %width, 1
  br label %bits
put:
  %result.slot = getelementptr $type, ptr %results, i64 %k
  store $type %total, ptr %result.slot, align $bytes
  br label %next
bad:
  %flag.slot = getelementptr i64, ptr %numbers, i64 2
  store i64 1, ptr %flag.slot, align 8
  ret void
done:
  ret void
}
; A window of a power of two elements: blocks that are written out, folded by twos as they come, as a counter carries.
define internal $type @window(ptr %x, i64 %width, ptr %stack) nounwind {
entry:
  switch i64 %width, label %many [ $cases ]
$small
many:
  %blocks = lshr i64 %width, $log
  then next:
  %k = phi i64 [ 0, %many ], [ %k.next, %keep ]
  %offset = shl i64 %k, $log
  %slot = getelementptr $type, ptr %x, i64 %offset
  %block = call $type @block$unrolled(ptr %slot)
  %k.next = add i64 %k, 1
  then carry:
  %level = phi i64 [ 0, %next ], [ %level.next, %join ]
  %counter = phi i64 [ %k.next, %next ], [ %counter.next, %join ]
  %sum = phi $type [ %block, %next ], [ %joined, %join ]
  %level.slot = getelementptr $type, ptr %stack, i64 %level
  %odd = and i64 %counter, 1
  %is.odd = icmp eq i64 %odd, 1
  if %is.odd goto keep, join:
  %before = load $type, ptr %level.slot, align $bytes
  %joined = $join
  %level.next = add i64 %level, 1
  %counter.next = lshr i64 %counter, 1
  br label %carry
keep:
  store $type %sum, ptr %level.slot, align $bytes
  %is.last = icmp eq i64 %k.next, %blocks
  unless %is.last goto next, give:
  ret $type %sum
}
""")


@lru_cache
def segment_fold(name: str, char: str) -> Callable[..., bool] | None:
    """The fold by NumPy's ufunc of this name of elements of the type with this code; None if there is none.

    It is called with arrays: the elements of a vector; where segments begin, as int64; int64 numbers of both and 0; and
    the results, which it fills.  It gives False if one of them does not lie in row-major order; the last number is 1
    where a start is out of bounds.
    """
    if name not in _INSTRUCTIONS or char not in _TYPES:
        return None
    code = llvm_jit.compile_module(fold_text(name, char), ["fold"])
    return builtin.phase_entries(code.addresses["fold"], 1, 4, 1, code)[0]


def fold_text(name: str, char: str) -> str:
    """The function `fold` in LLVM IR."""
    own, nbytes = _TYPES[char]

    def apply(x: str, y: str) -> str:
        return _INSTRUCTIONS[name].format(type=own, bits=8 * nbytes, x=x, y=y)

    widths = [1 << k for k in range(_UNROLLED.bit_length())]
    small = [
        f"of{width}:\n  %sum{width} = call {own} @block{width}(ptr %x)\n  ret {own} %sum{width}"
        for width in widths
    ]
    text = _FOLD.substitute(
        {"type": own, "bytes": nbytes, "unrolled": _UNROLLED, "log": _UNROLLED.bit_length() - 1},
        fold=apply("%total", "%window"),
        join=apply("%before", "%sum"),
        small="\n".join(small),
        cases="  ".join(f"i64 {width}, label %of{width}" for width in widths),
    )
    bits = 8 * nbytes
    declared = [f"declare {own} @llvm.{each}.f{bits}({own}, {own})" for each in ("maximum", "minimum")]
    return "\n".join([*declared, expand(text), *[_block_text(width, own, nbytes, apply) for width in widths]])


def _block_text(width: int, own: str, nbytes: int, apply: Callable[[str, str], str]) -> str:
    """The function of a window of so many elements, written out."""
    lines = [f"define internal {own} @block{width}(ptr %x) alwaysinline nounwind {{"]
    names = []
    for k in range(width):
        lines += [f"  %at{k} = getelementptr {own}, ptr %x, i64 {k}"]
        lines += [f"  %v{k} = load {own}, ptr %at{k}, align {nbytes}"]
        names.append(f"%v{k}")
    while len(names) > 1:
        pairs = list(zip(names[::2], names[1::2], strict=True))
        names = [f"{first}.{len(names)}" for first, _ in pairs]
        lines += [f"  {name} = {apply(*pair)}" for name, pair in zip(names, pairs, strict=True)]
    return "\n".join([*lines, f"  ret {own} {names[0]}", "}"])


def fold(name: str, x: np.ndarray[Any, Any], starts: np.ndarray[Any, Any]) -> np.ndarray[Any, Any] | None:
    """The folds of a vector from each start up to the next; None where there is none, or a start out of bounds."""
    call = segment_fold(name, x.dtype.char)
    if call is None:
        return None
    numbers = np.array([x.size, starts.size, 0])
    results = np.empty(starts.size, x.dtype)
    is_done = call(np.ascontiguousarray(x), np.ascontiguousarray(starts), numbers, results)
    return results if is_done and not numbers[2] else None
