"""About how long compiled loops take, in nanoseconds of one processor of 2021: operations, and bytes that they move.

Good to a factor of two, which is enough to choose how many threads share a phase.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final
from weakref import WeakKeyDictionary

from xarr.compiler.loop_ir.loops import Access, Loop
from xarr.compiler.loop_ir.scalars import Value, in_order
from xarr_numpy.processor import PROCESSOR

#: Operations in place of one running total in a register.
TOTALS: Final = 8
#: What is part of another instruction, or computed before the loop.
_FREE: Final = frozenset({"constant", "index", "argument", "result", "bitcast", "load"})
#: Instructions that take as long as so many others; division of integers is not one in lanes, nor by a constant.
_SLOW: Final = {"div": 8, "rem": 1000, "sqrt": 8, "rarely": 2, "convert": 2}
_INTEGERS: Final = {"div": 30, "rem": 30}
_IN_LANES: Final = 8
_BY_A_CONSTANT: Final = 4
#: What `iteration` gave, which is asked several times of each phase that is compiled.
_iterations: Final[WeakKeyDictionary[Loop, float]] = WeakKeyDictionary()


def extent_of(phase: Loop) -> int:
    """The number of iterations of a phase, whose outermost loop has a fixed one."""
    assert isinstance(phase.extent, int), "the outermost loop has a fixed number of iterations"
    return phase.extent


def work(phase: Loop) -> float:
    """Of a phase."""
    return extent_of(phase) * iteration(phase)


def is_shared(phase: Loop) -> bool:
    """Whether a phase may be run in ranges: less work is one call for all iterations, which threads do not share."""
    return extent_of(phase) > 1 and work(phase) >= PROCESSOR.min_shared_nanoseconds


def iteration(phase: Loop) -> float:
    """Of one iteration of the outermost loop; those of inner loops count as often as they run at most."""
    time = _iterations.get(phase)
    if time is None:
        time = _iterations[phase] = _iteration(phase)
    return time


def _iteration(phase: Loop) -> float:
    total = _loop(phase, phase.vector)
    if phase.bounds:  # the body is shared among all iterations
        total = sum(_loop(part, part.vector) for part in phase.body if isinstance(part, Loop))
    return total / max(1, phase.max_iterations)


def _loop(loop: Loop, in_lanes: bool) -> float:
    own = _own_iteration(loop, in_lanes) + (0.0 if loop.vector else PROCESSOR.iteration_time)
    inner = sum(_loop(part, in_lanes or part.vector) for part in loop.body if isinstance(part, Loop))
    return loop.max_iterations * (own + inner)


def _own_iteration(loop: Loop, in_lanes: bool) -> float:
    """Nanoseconds of what the loop's own iteration computes, reads and writes."""
    combinations = [value for each in loop.accumulators for value in in_order(*(each.step or each.combined))]
    totals = [value for each in loop.prefixes for value in in_order(each.combined)]
    values = in_order(*loop.roots())
    time = operations(values, in_lanes) + operations(combinations, in_lanes)
    time += TOTALS * operations(totals, in_lanes)
    time += sum(_load_time(value, loop.index) for value in values if value.op == "load")
    return time + PROCESSOR.byte_time * sum(part.value.dtype.itemsize for part in loop.stores())


def operations(values: Iterable[Value], in_lanes: bool) -> float:
    """Nanoseconds of values, each computed once."""
    time = 0.0
    for value in values:
        if value.op not in _FREE:
            size = max([each.dtype.itemsize for each in (value, *value.operands)])
            time += _weight(value, in_lanes) * (
                PROCESSOR.lane_byte_time * size if in_lanes else PROCESSOR.scalar_time
            )
    return time


def _weight(value: Value, in_lanes: bool) -> int:
    if value.dtype.kind in "iu" and value.op in _INTEGERS:
        otherwise = _IN_LANES if in_lanes else _INTEGERS[value.op]
        return _BY_A_CONSTANT if value.operands[1].op == "constant" else otherwise
    return _SLOW.get(value.op, 1)


def _load_time(load: Value, index: Value) -> float:
    access = load.attribute
    indices = load.operands[: len(access.factors)] if isinstance(access, Access) else load.operands
    is_next = index in indices or all(index_value.op == "index" for index_value in indices)
    return load.dtype.itemsize * PROCESSOR.byte_time if is_next else PROCESSOR.random_access_time
