"""Indices that grow or fall by one from lane to lane, but for where they are clamped: `x[clip(k - i, 0, n - 1)]`.

Where no lane of a register is clamped, its elements lie side by side, and one load reads them all.  Whether that is so
is asked of the first and the last lane, register by register.

An index that never falls from lane to lane, the greatest so far, is one for all lanes if the first and the last have
the same: `x[maximum.accumulate(where(starts, arange(n), 0))]` mostly reads one element for many.

Comparisons of lanes with one number, `i + 2 < 513`, are of integers that fill one register: they have as few bits as
lanes allow, and the number is cut off at the first and the last lane.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container
from typing import Final, NamedTuple

from xarr.compiler.loop_ir.loops import Prefix
from xarr.compiler.loop_ir.scalars import COMPARISONS, INT64, MIRRORED, Value, constant_of
from xarr_numpy.compiled.codegen.instructions import intrinsic_suffix

#: Clamps and sums that are looked through.
_DEEPEST: Final = 16
#: Greatest distance from an index that is looked for: sums of indices and it are never near the ends of int64.
_MAX_OFFSET: Final = 2**48


class LaneLine(NamedTuple):
    """The index `root`, of which the lanes have `step` times their number more, if it is within the limits.

    * `root` - the value that moves by `step`, 1 or -1,
    * `lows`, `highs` - the least and greatest numbers that no clamp changes.
    """

    root: Value
    step: int
    lows: tuple[Value | int, ...]
    highs: tuple[Value | int, ...]


def lane_line(index: Value, lanes: Container[Value], varies: Callable[[Value], bool]) -> LaneLine | None:
    """The line that an index follows from lane to lane; None where it may be anything.

    `lanes` are the indices whose neighbours are lanes, and limits do not vary.
    """
    lows: list[Value | int] = []
    highs: list[Value | int] = []
    for _ in range(_DEEPEST):
        step = _step(index, lanes, varies, _DEEPEST)
        if step in (1, -1):
            return LaneLine(index, step, tuple(lows), tuple(highs))
        if index.op != "select" or index.dtype != INT64:
            return None
        clamped = _clamp_of(index, varies)
        if clamped is None:
            return None
        index, is_low, limit = clamped
        (lows if is_low else highs).append(limit)
    return None


def rises(prefix: Prefix) -> bool:
    """Whether a running total is the greatest integer so far."""
    combined, pair = prefix.combined, {prefix.left, prefix.right}
    if combined.op != "select" or combined.dtype.kind not in "iu":
        return False
    predicate, greater, less = combined.operands
    if predicate.op not in ("gt", "ge", "lt", "le") or {greater, less} != pair:
        return False
    return predicate.operands == ((greater, less) if predicate.op in ("gt", "ge") else (less, greater))


def is_rising(index: Value, rising: Container[Value], varies: Callable[[Value], bool]) -> bool:
    """Whether an index is one of the values that never fall from lane to lane, perhaps clamped."""
    for _ in range(_DEEPEST):
        if index in rising:
            return True
        clamped = _clamp_of(index, varies) if index.op == "select" and index.dtype == INT64 else None
        if clamped is None:
            return False
        index = clamped[0]
    return False


def _step(value: Value, lanes: Container[Value], varies: Callable[[Value], bool], depth: int) -> int | None:
    """By how much a number grows from lane to lane, if that is known and int64 alone is added or subtracted."""
    if value in lanes:
        return 1
    if not varies(value):
        return 0
    if value.op not in ("add", "sub", "neg") or value.dtype != INT64 or not depth:
        return None
    steps = [_step(each, lanes, varies, depth - 1) for each in value.operands]
    known = [each for each in steps if each is not None]
    if len(known) < len(steps):
        return None
    return (
        known[0] + known[1] if value.op == "add" else known[0] - known[1] if value.op == "sub" else -known[0]
    )


def _clamp_of(index: Value, varies: Callable[[Value], bool]) -> tuple[Value, bool, Value | int] | None:
    """The number that a select clamps, whether from below, and the limit up to which it stays the same."""
    predicate, on_true, on_false = index.operands
    if predicate.op not in ("lt", "le", "gt", "ge"):
        return None
    x, y = predicate.operands
    op = predicate.op
    if varies(y):
        (x, y), op = (y, x), MIRRORED[op]
    if varies(y) or x.dtype != INT64:
        return None
    if x is on_false:  # the other side holds where the comparison does not
        other, is_low = on_true, op in ("lt", "le")
    elif x is on_true:
        other, is_low = on_false, op in ("gt", "ge")
    else:
        return None
    if other is y:
        return x, is_low, y
    # Negative indices count from the end.
    is_wrapped = is_low and op == "lt" and y.op == "constant" and constant_of(y) == 0
    return (x, True, 0) if is_wrapped and x is on_false else None


def load_of_line(kind: str, width: int, alignment: int, step: int) -> tuple[str, str, set[str]]:
    """A function that loads the lanes of a mask: side by side if its first argument says so, else one by one.  With
    step 0 all lanes have the first one's element then.

    Its name, its text, and declarations of what it calls.
    """
    suffix, lanes = intrinsic_suffix(kind), f"<{width} x i1>"
    load, gather = f"llvm.masked.load.{suffix}.p0", f"llvm.masked.gather.{suffix}.v{width}p0"
    name = f"line.{suffix}.{('all', 'up', 'down')[step]}"
    order = ", ".join(f"i32 {lane}" for lane in reversed(range(width)))

    def reverse_lanes(vector: str, register: str) -> str:
        return f"shufflevector {vector} {register}, {vector} poison, <{width} x i32> <{order}>"

    reverse_mask = f"  %wanted = {reverse_lanes(lanes, '%mask')}\n" if step == -1 else ""
    reverse = f"  %reversed = {reverse_lanes(kind, '%side')}\n" if step == -1 else ""
    mask, result = ("%wanted", "%reversed") if step == -1 else ("%mask", "%side")
    first = f"ptr %near, i32 {alignment}, {lanes} {mask}, {kind} zeroinitializer"
    element = kind.split(" x ")[1].rstrip(">")
    together = (
        f"""\
  %element = load {element}, ptr %near, align {alignment}
  %first = insertelement {kind} poison, {element} %element, i64 0
  %side = shufflevector {kind} %first, {kind} poison, <{width} x i32> zeroinitializer
"""
        if step == 0
        else f"  %side = call {kind} @{load}({first})\n"
    )
    text = f"""\
define internal {kind} @{name}(i1 %inside, ptr %near, <{width} x ptr> %each, {lanes} %mask) alwaysinline nounwind {{
entry:
  br i1 %inside, label %together, label %apart
together:
{reverse_mask}{together}{reverse}  br label %done
apart:
  %one = call {kind} @{gather}(<{width} x ptr> %each, i32 {alignment}, {lanes} %mask, {kind} zeroinitializer)
  br label %done
done:
  %result = phi {kind} [ {result}, %together ], [ %one, %apart ]
  ret {kind} %result
}}"""
    declarations = {
        f"declare {kind} @{load}(ptr, i32, {lanes}, {kind})",
        f"declare {kind} @{gather}(<{width} x ptr>, i32, {lanes}, {kind})",
    }
    return name, text, declarations


class LaneTest(NamedTuple):
    """`lane + offset` compared with `bound`."""

    op: str
    lane: Value
    offset: int
    bound: Value


def lane_test(value: Value, lanes: Collection[Value]) -> LaneTest | None:
    """The comparison of an index among `lanes` that a value is; its bound may be anything.  None for others."""
    if value.op not in COMPARISONS or value.operands[0].dtype != INT64:
        return None
    for op, (x, y) in ((value.op, value.operands), (MIRRORED[value.op], value.operands[::-1])):
        index, offset = _index_and_offset(x)
        if index in lanes:
            return LaneTest(op, index, offset, y)
    return None


def _index_and_offset(value: Value) -> tuple[Value, int]:
    """A value without the constants that are added to it, and their sum, where that is small."""
    offset, inner = 0, value
    while inner.op == "add" and any(each.op == "constant" for each in inner.operands):
        x, y = inner.operands
        x, y = (y, x) if x.op == "constant" else (x, y)
        offset, inner = offset + int(constant_of(y)), x
    return (inner, offset) if abs(offset) < _MAX_OFFSET else (value, 0)


def integer_bits(width: int) -> int:
    """Bits of integers that count so many lanes, and one less than none, and fill no more than a register."""
    return 8 if width < 127 else 16
