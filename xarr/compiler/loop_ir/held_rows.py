"""Values that threads keep in registers between the loops that they share, so that a row is read once.

The loops of a phase that holds its rows (`Loop.sharers`) go through the same elements and have one index: equal values
of an iteration are one value.  What an iteration of one loop computes of elements, and one of a later loop needs too, a
thread keeps, for each of the iterations that it has in all of these loops.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xarr.compiler.loop_ir.loops import Loop, Memory, Runs, grid_loops, loads_of
from xarr.compiler.loop_ir.scalars import Value, in_order


@dataclass
class HeldLoop:
    """The values of a loop of a phase that holds its rows.

    * `common` - those that are equal in all iterations, as far as others need them,
    * `loads` - the elements that it loads, the first to do so,
    * `kept` - those of its own that later loops need too, what they need before them,
    * `held` - those that threads keep while it runs: its own, and of loops before for it or for later ones.
    """

    loop: Loop
    common: list[Value]
    loads: list[Value]
    kept: list[Value] = field(default_factory=list)
    held: list[Value] = field(default_factory=list)


def held_loops(phase: Loop) -> list[HeldLoop]:
    """The loops of a phase that holds its rows, in order."""
    loops = [part for part in grid_loops(phase)[-1].body if isinstance(part, Loop)]
    home: dict[Value, int] = {}
    last: dict[Value, int] = {}
    result: list[HeldLoop] = []
    for number, loop in enumerate(loops):
        order, needed = _needed_values(loop, home)
        varying, of_elements = _varying_values(order, loop)
        own = [value for value in order if value in needed and value not in home]
        last.update((value, number) for value in order if value in needed and value in home)
        common = [x for value in own if value in varying for x in value.operands if x not in varying]
        common += [value for value in _roots(loop) if value not in varying]
        loads = [value for value in own if value in varying and value.op == "load"]
        plain = [value for value in dict.fromkeys(common) if value.op not in ("constant", "index")]
        result.append(HeldLoop(loop, plain, loads))
        home.update((value, number) for value in own if value in of_elements)
    for value, number in home.items():
        if value in last:
            result[number].kept.append(value)
            for each in result[number : last[value] + 1]:
                each.held.append(value)
    return result


def can_hold(phase: Loop) -> bool:
    """Whether the loops that threads share can have one index, and nothing reads what is stored meanwhile."""
    *_, last = grid_loops(phase)
    loops = [part for part in last.body if isinstance(part, Loop)]
    extents, words = ({getattr(loop, name) for loop in loops} for name in ("extent", "runs"))
    stores = [store for loop in phase.walk() for store in loop.stores()]
    read = {load.attribute.buffer for load in loads_of(phase)}
    return (
        len(extents) == len(words) == 1
        and all(isinstance(each, int) for each in extents)
        and all(_is_plain(loop) for loop in loops)
        and not any(
            each.atomic or each.buffer in read or each.buffer.memory is not Memory.GLOBAL for each in stores
        )
    )


def _is_plain(loop: Loop) -> bool:
    """Whether threads share a loop that does nothing but to accumulate, or to store."""
    if loop.runs in (Runs.SERIAL, Runs.LOCKSTEP) or loop.vector:
        return False
    has_more = loop.carries or loop.prefixes or loop.search or loop.condition or loop.bounds or loop.first
    has_loops = any(isinstance(part, Loop) for part in loop.body)
    return not (has_more or has_loops or (loop.body and loop.accumulators))


def _roots(loop: Loop) -> list[Value]:
    """Values that an iteration needs, its own number apart."""
    return [value for value in loop.roots() if value is not loop.index]


def _needed_values(loop: Loop, home: dict[Value, int]) -> tuple[list[Value], set[Value]]:
    """The values of an iteration, operands first, and those of them that it needs where some are known."""
    order = in_order(*_roots(loop))
    needed = set(_roots(loop))
    for value in reversed(order):
        if value in needed and value not in home:
            needed.update(value.operands)
    return order, needed


def _varying_values(order: Sequence[Value], loop: Loop) -> tuple[set[Value], set[Value]]:
    """The values that differ among iterations, and those of them that are computed of elements that differ."""
    varying = {loop.index}
    of_elements: set[Value] = set()
    for value in order:
        if not varying.isdisjoint(value.operands):
            varying.add(value)
            if value.op == "load" or not of_elements.isdisjoint(value.operands):
                of_elements.add(value)
    return varying, of_elements
