"""Native loops for a grid of threads: a thread for each point, which takes all steps of it, and one for the scalars.

A launch takes a number of steps at most, so that none holds the device for long: what it leaves is where the next one
begins.  Where there is one launch it leaves what is wanted alone.  Its phases, one after the other:

1. the tables that steps write are copied to their results,
2. points: each thread carries its point, and the scalars beside it, from step to step in registers.  It ends with the
   condition of the scalars, with the mask of the point, or when no step changes the point any more,
3. scalars: one thread carries them, and writes what they write of tables.  Where masks end the loop it takes as many
   steps as the last point did, which the points have combined atomically.

All is computed by the operations of a step in their order, so the bits are those of the CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, reduce
from operator import or_
from typing import Final, NamedTuple

import numpy as np

from xarr.compiler.functions import register_dtype
from xarr.compiler.loop_ir.index_ranges import conjuncts
from xarr.compiler.loop_ir.loops import (
    Affine,
    Atomic,
    Buffer,
    Carry,
    Kernel,
    Loop,
    Runs,
    Store,
    index_value,
    load,
    loads_of,
    new_carry,
)
from xarr.compiler.loop_ir.scalars import BOOL, INT64, Value, constant_of, in_order
from xarr.compiler.loop_ir.verifier import verify
from xarr.compiler.schedules.gpu.target import TARGET
from xarr.compiler.while_loops.fully_written import fully_written_tables
from xarr.compiler.while_loops.native_loops import NativeLoop, Row, Write
from xarr.ir.constants import integer_of, repeated_number
from xarr.ir.graph import Node

_POINTS: Final = Runs.GRID | Runs.BLOCK


class PointLoop(NamedTuple):
    """The launches of a native loop.

    * `kernel` - the loop program of one.  Its inputs are all carried values, its outputs those that change; where it is
      launched again, its inputs are what the launch before left, in place,
    * `launches` - how many there are at most.  None where the program has one output more, a bool: whether there may be
      another one,
    * `results` - the carried value that each output is.
    """

    kernel: Kernel
    launches: int | None
    results: tuple[int, ...]


def point_loop(loop: NativeLoop, operands: Sequence[Node], wanted: frozenset[int]) -> PointLoop:
    """The launches of a native loop over these nodes, whose constants may say how many steps it takes.

    wanted: the carried values of which something reads the result.  Where one launch takes all steps, its outputs are
    these and the tables, and what is a constant before the loop is no memory but a part of the text.
    """
    all_results = tuple([k for k, each in enumerate(loop.carried) if not each.is_fixed])
    numbers = {k: integer_of(node) for k, node in enumerate(operands)}
    known = {k: number for k, number in numbers.items() if number is not None}
    bound, unread = bound_of_steps(loop, known), unread_tables(loop, known)
    steps = max(1, TARGET.launch_operations // max(1, loop.cost()))
    if bound is None or bound > TARGET.max_loop_launches * steps:
        return PointLoop(program(loop, steps, True, unread), None, all_results)
    least = max(1, min(bound, steps))
    launches = max(1, -(-bound // least))
    if launches > 1 or not wanted:
        return PointLoop(program(loop, least, False, unread), launches, all_results)
    constants = {k: repeated_number(node) for k, node in enumerate(operands)}
    initial = tuple([(k, number.tobytes()) for k, number in constants.items() if number is not None])
    wanted |= {write.number for write in loop.writes}
    results = tuple([k for k in all_results if k in wanted])
    return PointLoop(program(loop, least, False, unread, frozenset(results), initial), 1, results)


def unread_inputs(loop: PointLoop) -> set[int]:
    """The carried values whose memory no launch reads."""
    if loop.launches != 1:
        return set()
    read = {value.attribute.buffer for phase in loop.kernel.phases for value in loads_of(phase)}
    return {k for k, buffer in enumerate(loop.kernel.inputs) if buffer not in read}


@lru_cache(1024)
def program(
    loop: NativeLoop,
    most_steps: int,
    tells: bool,
    unread: frozenset[int] = frozenset(),
    wanted: frozenset[int] | None = None,
    initial: tuple[tuple[int, bytes], ...] = (),
) -> Kernel:
    """The loop program of at most so many steps of a native loop.

    tells: whether it has an output for whether there may be more; unread: tables of which each element is written;
    wanted: the carried values that are outputs, tables among them, None for all that change; initial: the bytes of the
    element that carried values begin with, where that is known.
    """
    return verify(_Builder(loop, most_steps, tells, unread, wanted, dict(initial)).kernel())


def unread_tables(loop: NativeLoop, known: Mapping[int, int]) -> frozenset[int]:
    """The tables of which each element is written; `known` are integers that carried values begin with."""
    rows = fully_written_tables(loop).items()
    return frozenset(
        k
        for k, each in rows
        if {each.counter, each.limit} <= set(known) and each.holds(known[each.counter], known[each.limit])
    )


def bound_of_steps(loop: NativeLoop, known: Mapping[int, int]) -> int | None:
    """The number of steps that a loop does not exceed, by a counter of it; None if there is none that is known."""
    assert loop.going is not None
    bounds = [_bound_by(loop, term, known) for term, holds in conjuncts(loop.going, True) if holds]
    return min([each for each in bounds if each is not None], default=None)


def _bound_by(loop: NativeLoop, condition: Value, known: Mapping[int, int]) -> int | None:
    """The steps after which a condition does not hold, if it says that a counter is less than a known number."""
    number_of = loop.numbers()
    if condition.op != "lt" or condition.operands[0] not in number_of:
        return None

    def integer(value: Value) -> int | None:
        if value.op == "constant" and value.dtype.kind in "iu":
            return int(constant_of(value))
        number = number_of.get(value)
        return known.get(number) if number is not None and loop.carried[number].is_fixed else None

    counter, limit = condition.operands
    start, following, end = known.get(number_of[counter]), loop.following[number_of[counter]], integer(limit)
    if following is None or following.op != "add" or following.operands[0] is not counter:
        return None
    step = integer(following.operands[1])
    if (
        start is None
        or end is None
        or step is None
        or step < 1
        or end - 1 + step > np.iinfo(counter.dtype).max
    ):
        return None
    return max(0, -(-(end - start) // step))


class _Builder:
    def __init__(
        self,
        loop: NativeLoop,
        most_steps: int,
        tells: bool,
        unread: frozenset[int],
        wanted: frozenset[int] | None,
        initial: Mapping[int, bytes],
    ) -> None:
        self.loop, self.values = loop, loop.values
        self.most_steps, self.unread, self.initial = most_steps, unread, initial
        dtypes = [register_dtype(each.dtype) for each in loop.carried]
        rows = list(enumerate(zip(dtypes, loop.carried, strict=True)))
        self.before = [Buffer(f"p{k}", dtype, each.size, "in") for k, (dtype, each) in rows]
        self.after = {
            k: Buffer(f"q{k}", dtype, each.size, "out")
            for k, (dtype, each) in rows
            if not each.is_fixed and (wanted is None or k in wanted)
        }
        self.points = [k for k in loop.points() if k in self.after]
        self.scalars = [k for k in loop.scalars() if k in self.after]
        self.more = Buffer("more", BOOL, 1, "out") if tells else None
        self.has_scalars = bool(self.scalars or self.more or not all(write.wide for write in loop.writes))
        #: The steps of the point that takes most.
        counts = loop.alive is not None and self.has_scalars
        self.longest = Buffer("longest", INT64, 1, "scratch") if counts else None

    def kernel(self) -> Kernel:
        phases = [self._copy(write.number) for write in self.loop.writes if write.number not in self.unread]
        if self.longest is not None:
            zero = self.values.constant(0, INT64)
            begin = Store(self.longest, Affine(), zero)
            phases.append(self._grid(1, lambda _: [begin]))
        if self.points or self.longest or any(write.wide for write in self.loop.writes):
            phases.append(self._grid(self.loop.count, self._point))
        if self.has_scalars:
            phases.append(self._grid(1, self._scalars))
        outputs = (*self.after.values(), *([self.more] if self.more else []))
        scratch = () if self.longest is None else (self.longest,)
        return Kernel(tuple(self.before), outputs, scratch, (), phases)

    # --- phases --------------------------------------------------------------------------------------------

    def _grid(self, count: int, body: Callable[[Value], Sequence[Loop | Store]]) -> Loop:
        """A phase in which each of `count` threads runs `body` of its number."""
        phase = Loop(index_value(self.values, "point"), count, _POINTS)
        phase.body += body(phase.index)
        return phase

    def _copy(self, number: int) -> Loop:
        """A table before the loop, as the result that steps write to."""
        before, after = self.before[number], self.after[number]

        def body(index: Value) -> Sequence[Store]:
            offset = Affine(((index, 1),))
            return [Store(after, offset, load(self.values, before, offset))]

        return self._grid(before.size, body)

    def _point(self, point: Value) -> Sequence[Loop | Store]:
        """All steps of a point, and then what it has."""
        loop = self.loop
        assert loop.going is not None
        condition = loop.going
        if loop.alive is not None:
            condition = condition & loop.alive
        elif loop.done:
            moving = [mask if not end else ~mask for mask, end in loop.done.items()]
            condition = condition & reduce(or_, moving)
        writes = [write for write in loop.writes if write.wide]
        steps = _StepLoop(self, point, condition, self.points, writes)
        stores = [steps.store(self.after[k], Affine(((point, 1),)), k) for k in self.points]
        if self.longest is not None:
            stores.append(Store(self.longest, Affine(), steps.count(), Atomic.MAXIMUM))
        return [steps.loop, *stores]

    def _scalars(self, point: Value) -> Sequence[Loop | Store]:
        """All steps of the scalars."""
        loop, one = self.loop, Affine()
        assert loop.going is not None
        writes = [write for write in loop.writes if not write.wide]
        steps = _StepLoop(self, point, loop.going, self.scalars, writes)
        if self.longest is not None:
            longest = steps.carry(load(self.values, self.longest, one))
            assert steps.loop.condition is not None
            steps.loop.condition = steps.loop.index.lt(longest) & steps.loop.condition
        stores = [steps.store(self.after[k], one, k) for k in self.scalars]
        if self.more is not None:
            stores.append(Store(self.more, one, steps.count().eq(self.most_steps)))
        return [steps.loop, *stores]


class _StepLoop:
    """The loop over the steps of a point, which carries those of `wanted`, and all that these are computed from."""

    def __init__(
        self,
        builder: _Builder,
        point: Value,
        condition: Value,
        wanted: Sequence[int],
        writes: Sequence[Write],
    ) -> None:
        self.builder, self.values, self.point = builder, builder.values, point
        self.loop = Loop(index_value(self.values, "step"), builder.most_steps)
        self.results: dict[int, Value] = {}
        #: What stands for the values of the native loop.
        self.known: dict[Value, Value] = {builder.loop.point: point}
        native = builder.loop
        roots = [condition, *[each for write in writes for each in (write.start, write.value)]]
        carried = native.list_sources(roots, wanted)
        names = {k: new_carry(self.values, builder.before[k].dtype) for k in carried}
        for k, (argument, _) in names.items():
            own = native.arguments[k]
            assert own is not None
            self.known[own] = argument
        for k, (argument, result) in names.items():
            following = native.following[k]
            assert following is not None
            buffer, raw = builder.before[k], builder.initial.get(k)
            if raw is not None and len(raw) == buffer.dtype.itemsize:
                initial = self.values.constant_of_bytes(raw, buffer.dtype)
            else:
                initial = load(self.values, buffer, self._offset_of_own(k))
            self.loop.carries.append(Carry(initial, argument, self._move(following), result))
            self.results[k] = result
        self.loop.condition = self._move(condition)
        for write in writes:
            offset = self._offset(self._move(write.start), write.wide)
            self.loop.body.append(Store(builder.after[write.number], offset, self._move(write.value)))

    def carry(self, value: Value) -> Value:
        """A value from outside, inside of the loop."""
        argument, result = new_carry(self.values, value.dtype)
        self.loop.carries.append(Carry(value, argument, argument, result))
        return argument

    def count(self) -> Value:
        """The number of steps that were taken, behind the loop."""
        argument, result = new_carry(self.values, INT64)
        self.loop.carries.append(Carry(self.values.constant(0, INT64), argument, argument + 1, result))
        return result

    def store(self, buffer: Buffer, offset: Affine, number: int) -> Store:
        """A store of what is carried at the end."""
        return Store(buffer, offset, self.results[number])

    def _offset_of_own(self, number: int) -> Affine:
        return Affine(((self.point, 1),)) if self.builder.loop.carried[number].kind == "points" else Affine()

    def _offset(self, start: Value, wide: bool) -> Affine:
        offset = Affine((), int(constant_of(start))) if start.op == "constant" else Affine(((start, 1),))
        return offset + Affine(((self.point, 1),)) if wide else offset

    def _move(self, root: Value) -> Value:
        """A value of the native loop as one of this loop."""
        builder = self.builder
        for value in in_order(root):
            if value.op == "load" and value not in self.known:
                row: Row = value.attribute
                is_fixed = builder.loop.carried[row.number].is_fixed
                buffer = builder.before[row.number] if is_fixed else builder.after[row.number]
                offset = self._offset(self._move(value.operands[0]), row.wide)
                self.known[value] = load(self.values, buffer, offset)
            else:
                self.values.rebuild(value, self.known)
        return self.known[root]
