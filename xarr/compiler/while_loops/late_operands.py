"""Minima and maxima of what one step of a loop leaves to the next, in the order in which their operands are there.

    here = maximum(best, maximum(across - 0.5, left - 10.0))          left is the last step's `here`

A step waits for the last one, so what counts is the way from `left` to `here`: a subtraction and two maxima.  Which of
several numbers is greatest does not depend on the order in which they are compared, so what is there first is compared
first, and `left - 10.0` last, and the way is one maximum shorter.  A number that is added to a maximum is added to its
operands instead, since rounding keeps their order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import Final

import numpy as np

from xarr.compiler.loop_ir.scalars import Value, constant_of, in_order

_EXTREMES: Final = frozenset({"maximum", "minimum"})
#: Steps after which it is known which of the carried values is there last.
_STEPS: Final = 4
#: Operands that are compared in another order, at most.
_MOST_OPERANDS: Final = 8
#: Cycles until a result is there, about: of operations on floats, of some others, and of all else.
_FLOAT_CYCLES: Final = 4
_CYCLES: Final[Mapping[str, int]] = {"load": 5, "div": 15, "rem": 25, "sqrt": 18, "maximum": 5, "minimum": 5}


def compare_late_operands_last(
    roots: Sequence[Value], carried: Mapping[Value, Value]
) -> dict[Value, Value] | None:
    """Values in place of those that `roots` need, given what a step leaves for each argument; None for the same."""
    order = in_order(*roots)
    if not any(_is_extreme(value) for value in order):
        return None
    times = _arrival_times(order, carried)
    known: dict[Value, Value] = {}
    for value in order:
        operands = [known[each] for each in value.operands]
        if _is_extreme(value):
            known[value] = _in_time(value, known, times)
        elif all(new is old for new, old in zip(operands, value.operands, strict=True)):
            known[value] = value
        else:
            known[value] = value.values.make(value.op, tuple(operands), value.dtype, value.attribute)
    return known


def _is_extreme(value: Value) -> bool:
    return value.op in _EXTREMES and value.dtype.kind == "f"


def _arrival_times(order: Sequence[Value], carried: Mapping[Value, Value]) -> dict[Value, int]:
    """After how many cycles values are there, in one of the steps in which that grows evenly."""
    times = dict.fromkeys(carried, 0)
    for _ in range(_STEPS):
        for value in order:
            if value not in carried:
                times[value] = max([times[each] for each in value.operands], default=0) + _cycles(value)
        last = dict(times)
        times.update({old: last[new] for old, new in carried.items() if new in last})
    return last


def _cycles(value: Value) -> int:
    if not value.operands:
        return 0
    return _CYCLES.get(value.op, _FLOAT_CYCLES if value.dtype.kind == "f" else 1)


def _in_time(value: Value, known: Mapping[Value, Value], times: Mapping[Value, int]) -> Value:
    """An extreme value, by comparing the two operands that are there first, again and again."""
    operands = _operands(value) or [(each, ()) for each in value.operands]
    waiting = []
    for number, (operand, added) in enumerate(operands):
        new = known[operand]
        for op, addend in added:
            new = value.values.make(op, (new, addend), new.dtype)
        waiting.append((times[operand] + _FLOAT_CYCLES * len(added), number, new))
    heapify(waiting)
    while len(waiting) > 1:
        (_, _, first), (time, number, second) = heappop(waiting), heappop(waiting)
        both = value.values.make(value.op, (first, second), value.dtype)
        heappush(waiting, (time + _CYCLES[value.op], number, both))
    return waiting[0][2]


#: What is added to an operand, or subtracted from it, one after the other.
_Added = tuple[tuple[str, Value], ...]


def _operands(extreme: Value) -> list[tuple[Value, _Added]]:
    """The operands that an extreme value is one of, and the numbers that are added to each; none for too many."""
    operands: list[tuple[Value, _Added]] = []
    left: list[tuple[Value, _Added]] = [(extreme, ())]
    # Each that is left has an operand at least: what is shared by several may have more than can be counted.
    while left and len(operands) + len(left) <= _MOST_OPERANDS:
        value, added = left.pop()
        inner, addend = _addition(value)
        if value.op == extreme.op:
            left += [(operand, added) for operand in reversed(value.operands)]
        elif addend is not None and inner.op == extreme.op:
            left.append((inner, ((value.op, addend), *added)))
        else:
            operands.append((value, added))
    return [] if left else operands


def _addition(value: Value) -> tuple[Value, Value | None]:
    """The operand of a sum with a constant, and the constant: finite, and not 0, since sums of zeros have signs."""
    if value.op in ("add", "sub") and value.dtype.kind == "f":
        left, right = value.operands
        for inner, other in ((left, right), (right, left))[: 2 if value.op == "add" else 1]:
            if other.op == "constant" and np.isfinite(constant_of(other)) and constant_of(other) != 0:
                return inner, other
    return value, None
