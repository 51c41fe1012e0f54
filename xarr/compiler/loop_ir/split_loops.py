"""Loops cut where a condition of their index decides what is stored: sums that no element of a part needs are left out.

    out[i] = i >= k ? sum of f(i, j) over j : 0

becomes a loop up to k that stores zeros, and one from there on, which alone goes through sums.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_

from xarr.compiler.loop_ir.changed_parts import (
    loops_around_stores,
    once_if,
    only_runs,
    varying_values,
    with_phases,
)
from xarr.compiler.loop_ir.index_ranges import Literal
from xarr.compiler.loop_ir.loop_bounds import Conditions, literals_of, settle
from xarr.compiler.loop_ir.loops import Affine, Kernel, Loop, Store, index_value
from xarr.compiler.loop_ir.scalars import INT64, Value, in_order


def split_by_conditions(kernel: Kernel, is_whole: Callable[[Loop], bool]) -> Kernel:
    """The kernel with such loops in parts; the same one if there are none.

    Phases of which `is_whole` holds are run by one caller, for all iterations; of others each iteration asks whether it
    needs the loops inside.
    """
    phases = [_split_phase(phase, is_whole(phase)) for phase in kernel.phases]
    return with_phases(kernel, phases)


def _split_phase(phase: Loop, is_whole: bool) -> Loop:
    *around, loop = loops_around_stores(phase)
    stores = list(loop.stores())
    if phase.bounds or stores != [store for each in phase.walk() for store in each.stores()]:
        return phase
    decision = _decision_on(loop, stores)
    if decision is None:
        return phase
    if loop is phase and not is_whole:
        return phase if loop.vector else _ask_in_iterations(loop, stores, decision)
    parts = _parts_of(loop, stores, decision)
    for outer in reversed(around):
        body = [each for part in outer.body for each in (parts if part is loop else [part])]
        parts, loop = [replace(outer, body=body)], outer
    if around:
        return parts[0]
    once = index_value(phase.index.values, "once")
    return Loop(once, 1, phase.runs & ~phase.inner_runs, [*parts], label=phase.label)


@dataclass(frozen=True)
class _Decision:
    """A condition that has one truth where sums are needed, and literals that all hold there."""

    predicate: Value
    truth: bool
    literals: tuple[Literal, ...]


def _decision_on(loop: Loop, stores: list[Store]) -> _Decision | None:
    """The decision outside of which what a loop stores needs none of the loops inside; None without one."""
    inner = [part for part in loop.body if isinstance(part, Loop)]
    if not inner or not only_runs(loop) or loop.max_iterations == 1:
        return None
    varying = varying_values(loop)
    results = varying - {loop.index}
    conditions = Conditions(loop, loop.max_iterations, varying)
    for decision in _decisions(stores[0].value, conditions):
        outside = [settle(store.value, [(decision.predicate, not decision.truth)]) for store in stores]
        if results.isdisjoint(in_order(*outside)):
            return decision
    return None


def _decisions(value: Value, conditions: Conditions) -> Iterator[_Decision]:
    for each in in_order(value):
        if each.op == "select":
            for truth in (True, False):
                literals = [
                    literal
                    for literal in literals_of(each.operands[0], truth)
                    if _reads_inputs(literal[0]) and any(conditions.bounds_by(literal))
                ]
                if literals:
                    yield _Decision(each.operands[0], truth, tuple(literals))


def _reads_inputs(condition: Value) -> bool:
    return all(each.attribute.buffer.role == "in" for each in in_order(condition) if each.op == "load")


def _parts_of(loop: Loop, stores: list[Store], decision: _Decision) -> list[Loop]:
    """The loop where the decision may be, and loops over the iterations before and behind."""
    values, most = loop.index.values, loop.max_iterations
    first, end = Conditions(loop, most, varying_values(loop)).bounds(decision.literals)
    parts = []
    begin: Value | int = 0
    if first is not None:
        begin = first.lt(most).select(first, values.constant(most, INT64))
        parts.append(_copy_outside(loop, stores, decision, None, begin))
    body = [
        replace(part, value=settle(part.value, decision.literals)) if isinstance(part, Store) else part
        for part in loop.body
    ]
    parts.append(replace(loop, runs=loop.inner_runs, first=first, extent=end, body=body))
    if isinstance(end, Value):
        behind = end if first is None else end.lt(begin).select(begin, end)
        parts.append(_copy_outside(loop, stores, decision, behind, most))
    return parts


def _ask_in_iterations(loop: Loop, stores: list[Store], decision: _Decision) -> Loop:
    """The loop whose iterations go through the loops inside where all literals hold."""
    holds = reduce(and_, [each if truth else ~each for each, truth in decision.literals])
    inside = [
        replace(part, value=settle(part.value, decision.literals)) if isinstance(part, Store) else part
        for part in loop.body
    ]
    outside = [
        replace(store, value=settle(store.value, [(decision.predicate, not decision.truth)]))
        for store in stores
    ]
    return replace(loop, body=[once_if(holds, inside), once_if(~holds, [*outside])])


def _copy_outside(
    loop: Loop, stores: list[Store], decision: _Decision, first: Value | None, extent: int | Value
) -> Loop:
    """A loop over iterations in which the decision has the other truth."""
    values = loop.index.values
    index = index_value(values, "outside")
    names = {loop.index: index}
    body: list[Loop | Store] = []
    for store in stores:
        terms = tuple([(values.rebuild(value, names), factor) for value, factor in store.offset.terms])
        value = settle(store.value, [(decision.predicate, not decision.truth)])
        offset = Affine(terms, store.offset.constant)
        body.append(replace(store, offset=offset, value=values.rebuild(value, names)))
    return Loop(index, extent, loop.inner_runs, body, first=first)
