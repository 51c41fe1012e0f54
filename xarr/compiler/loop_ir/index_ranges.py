"""The numbers that the integers of a loop program may be, as intervals.

Indices are known numbers or intervals; of what is loaded that is known which its array declares, else nothing, and the
ends of its interval are infinite.
Arithmetic is that of intervals, of which nothing is known where a number may wrap around, and a `select` by a
comparison of what it selects narrows it, so that clamped numbers are known to lie where they were brought.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from math import inf
from typing import Final, TypeAlias

import numpy as np

from xarr.compiler.loop_ir.loops import Access, Affine
from xarr.compiler.loop_ir.scalars import BOOL, MIRRORED, DType, Value, constant_of
from xarr.ir.operands_first import compute_operands_first

#: The least and the greatest number.
Range: TypeAlias = tuple[float, float]
#: A condition, and whether it holds.
Literal: TypeAlias = tuple[Value, bool]

#: Of a number, and of a bool, of which nothing is known.
_ANY: Final = (-inf, inf)
_EITHER: Final = (0, 1)

#: For each comparison the one that holds where it does not.
COMPARED: Final = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt", "eq": "ne", "ne": "eq"}


class Ranges:
    """The ranges of values, given those of some: indices, and what else a loop gives."""

    def __init__(self, known: dict[Value, Range]) -> None:
        self.known = known

    def inside_loop(self, index: Value, iterations: Range) -> Ranges:
        """The ranges inside a loop, whose index is in `iterations`."""
        return Ranges({**self.known, index: iterations})

    def assuming(self, condition: Value) -> Ranges:
        """The ranges where a condition holds: values that it compares are where it wants them."""
        known = dict(self.known)
        for each, truth in conjuncts(condition, True):
            for operand in each.operands if each.op in COMPARED else ():
                if operand.dtype.kind in "iu":
                    known[operand] = _narrow(Ranges(known), operand, each, truth)
        return Ranges(known)

    def of(self, value: Value) -> Range:
        """The range of an integer or bool; a bool is 0 or 1."""
        known = self.known.get(value)  # as most are
        return known or compute_operands_first(value, self.known, _ruled_operands, self._apply_rule)

    def _apply_rule(self, value: Value) -> Range:
        if value.op == "load":
            return _range_of_load(value)
        rule = _RULES.get(value.op)
        if rule is None or value.dtype.kind not in "iub":
            return _unknown(value.dtype)
        low, high = rule(self, value)
        return (low, high) if _fits(low, value.dtype) and _fits(high, value.dtype) else _ANY

    def of_offset(self, offset: Affine) -> Range:
        """The range of an index into a buffer."""
        low: float = offset.constant
        high: float = offset.constant
        for value, factor in offset.terms:
            ends = [factor * end for end in self.of(value)]
            low, high = low + min(ends), high + max(ends)
        return low, high


def _ruled_operands(value: Value) -> tuple[Value, ...]:
    return value.operands if value.op in _RULES else ()


def _unknown(dtype: DType) -> Range:
    return _EITHER if dtype == BOOL else _ANY


def _fits(end: float, dtype: DType) -> bool:
    """Whether a number does not wrap around in its type."""
    if abs(end) == inf or dtype == BOOL:
        return True
    least, greatest = _ends_of(dtype)
    return least <= end <= greatest


@lru_cache(32)
def _ends_of(dtype: DType) -> tuple[int, int]:
    """The least and the greatest number of an integer type."""
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def conjuncts(predicate: Value, truth: bool) -> Iterator[Literal]:
    """Conditions that all hold, or fail, where a predicate has this truth, each once."""
    stack, seen = [(predicate, truth)], set[Literal]()
    while stack:
        literal = value, holds = stack.pop()
        if literal in seen:
            continue
        seen.add(literal)
        if value.op == "not":
            stack.append((value.operands[0], not holds))
        elif value.op == ("and" if holds else "or"):
            stack += [(operand, holds) for operand in value.operands[::-1]]
        else:
            yield literal


# --- rules -----------------------------------------------------------------------------------------------


def _constant(ranges: Ranges, value: Value) -> Range:
    number = int(constant_of(value))
    return number, number


def _range_of_load(value: Value) -> Range:
    """The range that the array declares, and 0, which is what a predicate leaves out."""
    access = value.attribute
    if not isinstance(access, Access) or access.buffer.range is None:
        return _unknown(value.dtype)
    low, high = access.buffer.range
    return (min(low, 0), max(high, 0)) if access.masked else (low, high)


def _sum(x: Range, y: Range) -> Range:
    return x[0] + y[0], x[1] + y[1]


def _difference(x: Range, y: Range) -> Range:
    return x[0] - y[1], x[1] - y[0]


def _product(x: Range, y: Range) -> Range:
    ends = [a * b if a and b else 0 for a in x for b in y]
    return min(ends), max(ends)


def _negate(x: Range) -> Range:
    return -x[1], -x[0]


#: The ranges of results that do not wrap around.
_ARITHMETIC: Final[dict[str, Callable[..., Range]]] = {
    "add": _sum,
    "sub": _difference,
    "mul": _product,
    "neg": _negate,
    "convert": lambda x: x,
}


def _compute(ranges: Ranges, value: Value) -> Range:
    """The range of arithmetic, if no numbers of the operands' types wrap around in it that are in their ranges."""
    rule, operands = _ARITHMETIC[value.op], [ranges.of(operand) for operand in value.operands]
    rows = zip(operands, value.operands, strict=True)
    fits = all(_fits(end, value.dtype) for end in rule(*[_within_type(each, x.dtype) for each, x in rows]))
    return rule(*operands) if fits else _ANY


def _within_type(range: Range, dtype: DType) -> Range:
    least, greatest = (0, 1) if dtype == BOOL else _ends_of(dtype)
    return max(range[0], least), min(range[1], greatest)


def _div(ranges: Ranges, value: Value) -> Range:
    (low, high), (divisor, same) = map(ranges.of, value.operands)
    if divisor != same or divisor < 1:
        return _ANY
    return _quotient(low, divisor), _quotient(high, divisor)


def _quotient(number: float, divisor: float) -> float:
    """Rounded towards zero."""
    if abs(number) == inf:
        return number
    return number // divisor if number >= 0 else -(-number // divisor)


def _rem(ranges: Ranges, value: Value) -> Range:
    """Not beyond the dividend, and smaller than the divisor, where the dividend is not negative."""
    (low, high), (least, greatest) = map(ranges.of, value.operands)
    if low < 0:
        return _ANY
    if least == greatest > 0 and high < inf and high - low + low % least < least:
        return low % least, high % least
    return 0, min(high, max(abs(least), abs(greatest)) - 1)


def _convert(ranges: Ranges, value: Value) -> Range:
    (operand,) = value.operands
    if operand.dtype.kind not in "iub":
        return _unknown(value.dtype)
    if value.dtype != BOOL:
        return _compute(ranges, value)
    low, high = ranges.of(operand)
    return (1, 1) if low > 0 or high < 0 else (0, 0) if low == high else (0, 1)


def _compare(ranges: Ranges, value: Value) -> Range:
    x, y = value.operands
    if x.dtype.kind not in "iub":
        return _EITHER
    (a, b), (c, d) = ranges.of(x), ranges.of(y)
    always: dict[str, tuple[bool, bool]] = {
        "lt": (b < c, a >= d),
        "le": (b <= c, a > d),
        "gt": (a > d, b <= c),
        "ge": (a >= d, b < c),
        "eq": (a == b == c == d, b < c or a > d),
        "ne": (b < c or a > d, a == b == c == d),
    }
    holds, fails = always[value.op]
    return (1, 1) if holds else (0, 0) if fails else (0, 1)


def _range_of_and(ranges: Ranges, value: Value) -> Range:
    (a, b), (c, d) = map(ranges.of, value.operands)
    if value.dtype == BOOL:
        return min(a, c), min(b, d)
    # No bit is set that is not set in a number that is not negative.
    bounds = [high for low, high in ((a, b), (c, d)) if low >= 0]
    return (0, min(bounds)) if bounds else _ANY


def _range_of_or(ranges: Ranges, value: Value) -> Range:
    if value.dtype != BOOL:
        return _ANY
    (a, b), (c, d) = map(ranges.of, value.operands)
    return max(a, c), max(b, d)


def _range_of_not(ranges: Ranges, value: Value) -> Range:
    if value.dtype != BOOL:
        return _ANY
    low, high = ranges.of(value.operands[0])
    return 1 - high, 1 - low


def _select(ranges: Ranges, value: Value) -> Range:
    predicate, x, y = value.operands
    always, ever = ranges.of(predicate)
    if always:
        return ranges.of(x)
    if not ever:
        return ranges.of(y)
    return _hull([_narrow(ranges, x, predicate, True), _narrow(ranges, y, predicate, False)])


def _narrow(ranges: Ranges, value: Value, predicate: Value, truth: bool) -> Range:
    """The range of a value where the predicate has this truth, if that compares the value or what it is a sum of."""
    narrowed = ranges.of(value)
    for literal in conjuncts(predicate, truth):
        # Of alternatives one holds: those of `not (a and b)` are `not a` and `not b`.
        alternatives = [(each, not holds) for each, holds in conjuncts(literal[0], not literal[1])]
        ends = [_narrow_by_literal(ranges, value, *_simplify_literal(ranges, each)) for each in alternatives]
        narrowed = _common(narrowed, _hull(ends))
    return narrowed


def _hull(ranges: Iterable[Range]) -> Range:
    """The least range around some."""
    lows, highs = zip(*ranges, strict=True)
    return min(lows), max(highs)


def _common(x: Range, y: Range) -> Range:
    """The range that two have in common; the first where that is nothing, which is never computed."""
    low, high = max(x[0], y[0]), min(x[1], y[1])
    return (low, high) if low <= high else x


def _simplify_literal(ranges: Ranges, literal: Literal) -> Literal:
    """Remove comparisons with bools that are known from a literal: `x == False` is `not x`."""
    value, holds = literal
    while value.op in ("eq", "ne") and value.operands[0].dtype == BOOL:
        x, y = value.operands
        if _may_be_either(ranges, y):
            x, y = y, x
        if _may_be_either(ranges, y):
            break
        value, holds = x, bool(ranges.of(y)[0]) == (holds == (value.op == "eq"))
    return value, holds


def _may_be_either(ranges: Ranges, value: Value) -> bool:
    low, high = ranges.of(value)
    return low != high


def _narrow_by_literal(ranges: Ranges, value: Value, predicate: Value, truth: bool) -> Range:
    low, high = ranges.of(value)
    if predicate.op not in COMPARED:
        return low, high
    if value not in predicate.operands:
        if value.op not in ("add", "sub") or not any(each in predicate.operands for each in value.operands):
            return low, high
        # As an index from the end, select(k < 0, k + n, k).
        operands = {
            operand: _narrow_by_literal(ranges, operand, predicate, truth) for operand in value.operands
        }
        return Ranges(operands)._apply_rule(value)
    x, y = predicate.operands
    op = predicate.op if truth else COMPARED[predicate.op]
    if value is y:
        op, y = MIRRORED[op], x
    first, last = ranges.of(y)
    if op in ("lt", "le"):
        high = min(high, last - (op == "lt"))
    elif op in ("gt", "ge"):
        low = max(low, first + (op == "gt"))
    elif op == "eq":
        low, high = max(low, first), min(high, last)
    return (low, high) if low <= high else ranges.of(value)


_RULES: Final[dict[str, Callable[[Ranges, Value], Range]]] = {
    "constant": _constant,
    **dict.fromkeys(("add", "sub", "mul", "neg"), _compute),
    "div": _div,
    "rem": _rem,
    "convert": _convert,
    **dict.fromkeys(COMPARED, _compare),
    "and": _range_of_and,
    "or": _range_of_or,
    "not": _range_of_not,
    "select": _select,
}
