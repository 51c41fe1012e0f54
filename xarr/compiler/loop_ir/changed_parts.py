"""Loops that write an array over the one they read: they visit what changes, the rest is there already.

    out[i] = i > k ? f(i) : in[i]

runs from k + 1 on where `out` lies in the memory of `in`.  An element is kept where a `select` gives the old one, and
where a number is added, subtracted or joined that changes no old one, as 0 that is subtracted; the conditions of its
change are bounds of loops if they compare indices, multiples of a number are its stride, and those that are the same
in all iterations are asked once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import copysign, inf
from typing import Final

from xarr.compiler.loop_ir.index_ranges import COMPARED, Literal, Ranges, conjuncts
from xarr.compiler.loop_ir.loop_bounds import Conditions, linear, settle, simplify
from xarr.compiler.loop_ir.loops import Affine, Buffer, Kernel, Loop, Store, index_value, offset_of
from xarr.compiler.loop_ir.scalars import BOOL, INT64, Value, constant_of, in_order

#: The second operand with which an operation changes no first one, of floats and of integers.
_NEUTRAL: Final[Mapping[str, tuple[float, int | None]]] = {
    "add": (-0.0, 0),
    "sub": (0.0, 0),
    "mul": (1.0, 1),
    "maximum": (-inf, None),
    "minimum": (inf, None),
    "or": (0.0, 0),
    "xor": (0.0, 0),
}
#: Operations whose operands may be exchanged.
_COMMUTATIVE: Final = frozenset(_NEUTRAL) - {"sub"}


def change_in_place(
    kernel: Kernel, written_over: Mapping[Buffer, Buffer], is_whole: Callable[[Loop], bool]
) -> Kernel:
    """The kernel where outputs lie in the memory of inputs; the same one if its loops leave nothing out.

    Each such output is read and written at the same offset alone.  Phases of which `is_whole` holds are run by one
    caller, for all iterations.
    """
    phases = [_leave_out(phase, written_over, is_whole(phase)) for phase in kernel.phases]
    return with_phases(kernel, phases)


def with_phases(kernel: Kernel, phases: list[Loop]) -> Kernel:
    """The kernel with other phases; itself with its own."""
    is_same = all(new is old for new, old in zip(phases, kernel.phases, strict=True))
    return kernel if is_same else _replace_phases(kernel, phases)


def _replace_phases(kernel: Kernel, phases: list[Loop]) -> Kernel:
    """The kernel with other phases, in full, where the given one is built when it is looked at."""
    return Kernel(kernel.inputs, kernel.outputs, kernel.scratch, kernel.locals, phases)


def read_before_written(kernel: Kernel, written_over: Mapping[Buffer, Buffer]) -> Kernel | None:
    """The kernel with stores over inputs behind the stores that read these; None if there is no such order.

    Where it is settled that a store keeps no old element, it no longer reads that before it writes over it.
    """
    phases = [_read_first(phase, written_over) for phase in kernel.phases]
    return _replace_phases(kernel, [each for each in phases if each]) if all(phases) else None


def _read_first(loop: Loop, written_over: Mapping[Buffer, Buffer]) -> Loop | None:
    left = [(part, _loaded_buffers(part)) for part in loop.body if isinstance(part, Store)]
    body: list[Loop | Store] = []
    for part in loop.body:
        if isinstance(part, Loop):
            inner = _read_first(part, written_over)
            if inner is None:
                return None
            body.append(inner)
            continue
        for k, (store, loaded) in enumerate(left):
            old = written_over.get(store.buffer)
            # What it reads itself is in a register before it writes, for others too.
            if old in loaded or not any(old in others for _, others in left):
                body.append(left.pop(k)[0])
                break
        else:
            return None
    return replace(loop, body=body)


def _loaded_buffers(store: Store) -> frozenset[Buffer]:
    """The buffers of which a store reads elements."""
    values = in_order(store.value, *[value for value, _ in store.offset.terms])
    return frozenset([value.attribute.buffer for value in values if value.op == "load"])


def _leave_out(phase: Loop, written_over: Mapping[Buffer, Buffer], is_whole: bool) -> Loop:
    """A phase whose loops visit what changes; the same one where that is everything."""
    chain = loops_around_stores(phase)
    if phase.bounds or not all(map(only_runs, chain)):
        return phase
    stores = list(chain[-1].stores())
    if stores != [store for loop in phase.walk() for store in loop.stores()]:
        return phase
    changes = [_conditions_of_change(store, written_over.get(store.buffer)) for store in stores]
    common = [each for each in changes[0] or () if all(each in (other or ()) for other in changes)]
    levels = chain if is_whole or len(chain) == 1 else chain[1:]
    settled = [placed for each in common if (placed := _assign_to_loop(each, levels)) is not None]
    if not settled or (not is_whole and all(each.loop is phase and each.bounds for each in settled)):
        return phase
    is_whole = is_whole or len(chain) == 1
    inner: Loop | None = None
    known = [each.literal for each in settled if each.multiples is None]
    for loop in reversed(chain):
        here = [each for each in settled if each.loop is loop]
        inner = _bound_loop(replace(loop, runs=loop.inner_runs) if is_whole else loop, inner, here, known)
    assert inner is not None, "a chain has loops"
    if not is_whole:
        return inner
    outer = index_value(phase.index.values, "once")
    return Loop(outer, 1, phase.runs & ~phase.inner_runs, [inner], label=phase.label)


def loops_around_stores(phase: Loop) -> list[Loop]:
    """The loops around all stores, outermost first."""
    chain = [phase]
    while not any(chain[-1].stores()):
        inner = [each for each in _loops_in(chain[-1]) if any(any(loop.stores()) for loop in each.walk())]
        if len(inner) != 1:
            break
        chain += inner
    return chain


def _loops_in(loop: Loop) -> Iterator[Loop]:
    return (part for part in loop.body if isinstance(part, Loop))


def only_runs(loop: Loop) -> bool:
    """Whether a loop does nothing but to run its body a known number of times."""
    has_more = loop.accumulators or loop.carries or loop.prefixes or loop.search or loop.condition
    return not has_more and isinstance(loop.extent, int) and loop.first is None


# --- where an element changes --------------------------------------------------------------------------------


def _conditions_of_change(store: Store, old: Buffer | None) -> list[Literal] | None:
    """Conditions that all hold where a store changes the element; None if that may be anywhere."""
    if old is None or store.atomic is not None:
        return None
    where = dict(store.offset.terms), store.offset.constant

    def is_old(value: Value) -> bool:
        if value.op != "load" or value.attribute.buffer is not old or value.attribute.masked:
            return False
        offset = offset_of(value)
        return (dict(offset.terms), offset.constant) == where

    # From the operands up, since many values may share one.
    changes: dict[Value, list[Literal] | None] = {}
    for value in in_order(store.value):
        changes[value] = _changes(value, is_old, changes)
    return changes[store.value]


def _changes(
    value: Value, is_old: Callable[[Value], bool], changes: Mapping[Value, list[Literal] | None]
) -> list[Literal] | None:
    """Conditions that all hold where a value is not the old one, given those of its operands."""
    if value.op == "select":
        predicate, *values = value.operands
        return _changes_by_choice(predicate, values, is_old, changes)
    if value.op == "and" and value.dtype == BOOL:
        for old, other in (value.operands, value.operands[::-1]):
            if is_old(old):
                return list(conjuncts(other, False))
    if value.op not in _NEUTRAL:
        return None
    orders = (value.operands, value.operands[::-1]) if value.op in _COMMUTATIVE else (value.operands,)
    for old, other in orders:
        if is_old(old):
            number = _NEUTRAL[value.op][value.dtype.kind != "f"]
            return _differs(other, number) if number is not None else None
    return None


def _changes_by_choice(
    predicate: Value,
    values: Sequence[Value],
    is_old: Callable[[Value], bool],
    changes: Mapping[Value, list[Literal] | None],
) -> list[Literal] | None:
    for kept, other, truth in ((values[1], values[0], True), (values[0], values[1], False)):
        if is_old(kept):
            return _join(conjuncts(predicate, truth), changes[other])
    first, second = (changes[each] or () for each in values)
    return [each for each in first if each in second] or None


def _join(one: Iterable[Literal], other: Iterable[Literal] | None) -> list[Literal]:
    return list(dict.fromkeys([*one, *(other or ())]))


def _differs(root: Value, number: float) -> list[Literal] | None:
    """Conditions that all hold where a value is not this number, to the bit; None if nothing is known."""
    differs: dict[Value, list[Literal] | None] = {}
    for value in in_order(root):
        if value.dtype == root.dtype:
            differs[value] = _differs_by_operands(value, number, differs)
    return differs[root]


def _differs_by_operands(
    value: Value, number: float, differs: Mapping[Value, list[Literal] | None]
) -> list[Literal] | None:
    if value.dtype == BOOL:
        return list(conjuncts(value, True))
    is_zero = not number and copysign(1, number) > 0
    if value.op == "convert" and value.operands[0].dtype == BOOL and is_zero:
        return list(conjuncts(value.operands[0], True))
    if value.op == "mul" and value.dtype.kind in "iu" and not number:
        # A product of integers is 0 where a factor is; of floats it may be -0.0 or NaN.
        left, right = (differs[factor] for factor in value.operands)
        return _join(left or (), right) or None
    if value.op != "select":
        return None
    predicate, *values = value.operands
    for rest, other, truth in ((values[1], values[0], True), (values[0], values[1], False)):
        if rest is rest.values.constant(number, rest.dtype):
            return _join(conjuncts(predicate, truth), differs[other])
    return None


# --- loops that leave the rest out ---------------------------------------------------------------------------


@dataclass(frozen=True)
class _Multiples:
    """The iterations whose number, added to `start`, is a multiple of `divisor`, of at least 2 where `is_known`."""

    start: int
    divisor: Value
    is_known: Value


@dataclass(frozen=True)
class _Placed:
    """A condition, and the loop that it bounds, strides, or is asked in front of."""

    literal: Literal
    loop: Loop
    bounds: bool = False
    multiples: _Multiples | None = None


def _assign_to_loop(literal: Literal, levels: Sequence[Loop]) -> _Placed | None:
    """Where a condition leaves iterations out: the outermost loop in which it does not change, or that it bounds."""
    if any(each.op == "load" and each.attribute.buffer.role != "in" for each in in_order(literal[0])):
        return None
    for loop in levels:
        inside = varying_values(loop)
        if inside.isdisjoint(in_order(literal[0])):
            return _Placed(literal, loop)
        assert isinstance(loop.extent, int), "only loops of a known number of iterations are bounded"
        conditions = Conditions(loop, loop.extent, inside)
        if loop.extent > 1 and literal[0].op in COMPARED and any(conditions.bounds_by(literal)):
            return _Placed(literal, loop, bounds=True)
        if loop is levels[-1] and not any(_loops_in(loop)):
            multiples = _multiples(literal, loop, conditions)
            if multiples is not None:
                return _Placed(literal, loop, multiples=multiples)
    return None


def varying_values(loop: Loop) -> frozenset[Value]:
    """The values that change while a loop runs."""
    inside: set[Value] = set()
    for each in loop.walk():
        inside.add(each.index)
        inside.update(value for a in each.accumulators for value in (*a.results, *a.left, *a.right))
        inside.update(value for carry in each.carries for value in (carry.argument, carry.result))
        inside.update(value for p in each.prefixes for value in (p.left, p.right, p.running))
        inside.update([each.search.result] if each.search else [])
    return frozenset(inside)


def _bound_loop(loop: Loop, inner: Loop | None, here: Sequence[_Placed], known: Sequence[Literal]) -> Loop:
    """Bound a loop, around the loop `inner`, or one whose stores know that conditions hold."""
    if inner is None:
        body: list[Loop | Store] = [
            part if isinstance(part, Loop) else replace(part, value=settle(part.value, known))
            for part in loop.body
        ]
    else:
        body = [inner if _holds_stores(part) else part for part in loop.body]
    conditions = Conditions(loop, loop.max_iterations, varying_values(loop))
    first, extent = conditions.bounds([each.literal for each in here if each.bounds])
    result = replace(loop, body=body, first=first, extent=extent)
    strides = [each for each in here if each.multiples is not None]
    if strides:
        result = _in_strides(result, strides[0])
    asked = [each for each in here if not each.bounds and each.multiples is None]
    if asked:
        result = once_if(_all_of(asked), [result])
    return result


def _holds_stores(part: Loop | Store) -> bool:
    return isinstance(part, Loop) and any(any(loop.stores()) for loop in part.walk())


def _all_of(placed: Iterable[_Placed]) -> Value:
    """Whether all of some conditions hold."""
    first, *others = [each.literal[0] if each.literal[1] else ~each.literal[0] for each in placed]
    for other in others:
        first = first & other
    return first


def once_if(condition: Value, body: list[Loop | Store]) -> Loop:
    """A loop that runs once or not at all."""
    values = condition.values
    extent = condition.select(values.constant(1, INT64), values.constant(0, INT64))
    return Loop(index_value(values, "once"), extent, body=body)


# --- multiples -----------------------------------------------------------------------------------------------


def _multiples(literal: Literal, loop: Loop, conditions: Conditions) -> _Multiples | None:
    """The multiples that an index is to be, by a condition such as `index % p == 0`, in whichever rule of signs."""
    comparison, truth = literal
    if comparison.op != ("eq" if truth else "ne") or comparison.operands[0].dtype != INT64:
        return None
    rest, zero = comparison.operands
    if zero.op != "constant" or constant_of(zero) != 0:
        return None
    for each in in_order(rest):
        if each.op != "rem":
            continue
        divisor = each.operands[1]
        divisor = divisor.operands[2] if divisor.op == "select" else divisor
        ranges = Ranges({loop.index: (0, loop.max_iterations - 1), divisor: (2, inf)})
        number = simplify(rest, ranges)
        if divisor.op == "constant" or number.op != "rem" or number.operands[1] is not divisor:
            continue
        pair = linear(number.operands[0], loop.index, loop.max_iterations)
        if pair is not None and pair[0] == 1 and pair[1] >= 0 and conditions.is_fixed(divisor):
            return _Multiples(pair[1], divisor, divisor.ge(2))
    return None


def _in_strides(loop: Loop, placed: _Placed) -> Loop:
    """A loop that visits multiples alone, or as before where the divisor is small."""
    multiples, values = placed.multiples, loop.index.values
    assert multiples is not None, "the condition says which multiples"
    divisor = multiples.divisor
    zero = values.constant(0, INT64)
    begin = (loop.first if loop.first is not None else zero) + multiples.start
    safe = multiples.is_known.select(divisor, values.constant(2, INT64))
    before = begin.rem(safe)
    begin = begin - multiples.start + before.eq(0).select(zero, safe - before)
    end = loop.extent if isinstance(loop.extent, Value) else values.constant(loop.extent, INT64)
    count = (end - begin + (safe - 1)) / safe
    count = count.lt(0).select(zero, count)
    most = loop.max_iterations
    step = index_value(values, "multiple")
    at = begin + safe * step
    body: list[Loop | Store] = []
    for part in loop.body:
        assert isinstance(part, Store), "loops with others inside have no strides"
        terms = tuple((at if value is loop.index else value, factor) for value, factor in part.offset.terms)
        value = values.rebuild(settle(part.value, [placed.literal]), {loop.index: at})
        body.append(replace(part, offset=Affine(terms, part.offset.constant), value=value))
    strided = Loop(step, count.lt(most).select(count, values.constant(most, INT64)), body=body)
    both: list[Loop | Store] = [
        once_if(multiples.is_known, [strided]),
        once_if(~multiples.is_known, [loop]),
    ]
    return Loop(index_value(values, "once"), 1, body=both)
