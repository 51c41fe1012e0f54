"""Phases that follow one another over the same rows as one phase, so that a softmax is one kernel.

Who works on a row, a block, a warp or a thread, goes on with what the next phase does there.  A later phase over all
elements of the rows becomes a loop that they share, and one over the rows alone, as a division by their length, a
store of one thread.  That gives the same only if nobody needs what is done in another row: what an earlier phase stores
is read where it was stored, and nothing is written that is read elsewhere.  What is stored so need not be loaded again,
nor stored if nothing else loads it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from math import prod

from xarr.compiler.loop_ir.held_rows import can_hold, held_loops
from xarr.compiler.loop_ir.index_ranges import Ranges
from xarr.compiler.loop_ir.loops import (
    Accumulator,
    Affine,
    Buffer,
    Carry,
    Kernel,
    Loop,
    Prefix,
    Runs,
    Store,
    copied_buffers,
    grid_loops,
    loads_of,
    nest_loops,
    offset_of,
)
from xarr.compiler.loop_ir.scalars import Value, Values, in_order
from xarr.compiler.schedules.gpu.target import GpuTarget
from xarr.ir.types import Ints


def merge_phases(
    kernel: Kernel, values: Values, overwritable: Sequence[Collection[int]] | None = None
) -> list[Loop]:
    """The phases of a program, those that can follow one another in each row as one.

    overwritable: for each output the numbers of the inputs that it may lie over; None for those of its size.
    """
    merged: list[Loop] = []
    in_place = _buffers_in_place(kernel, overwritable)
    for phase in kernel.phases:
        pair = _Pair(kernel, values, merged[-1], phase, in_place) if merged else None
        if pair is not None and pair.can_be_one():
            merged[-1] = pair.as_one()
        else:
            merged.append(phase)
    loaded = {load.attribute.buffer for phase in merged for load in loads_of(phase)}
    for phase in merged:
        for loop in phase.walk():
            loop.body = [part for part in loop.body if isinstance(part, Loop) or _is_needed(part, loaded)]
    return merged


def _is_needed(store: Store, loaded: set[Buffer]) -> bool:
    """Whether something is read that a store wrote."""
    return store.buffer.role != "scratch" or store.buffer in loaded


def _buffers_in_place(kernel: Kernel, overwritable: Sequence[Collection[int]] | None) -> set[Buffer]:
    """The outputs that may lie over an input, and these inputs."""
    buffers: set[Buffer] = set()
    for number, output in enumerate(kernel.outputs):
        if overwritable is None:
            inputs = [each for each in kernel.inputs if each.nbytes == output.nbytes]
        else:
            inputs = [kernel.inputs[k] for k in overwritable[number]]
        if inputs:
            buffers.update(inputs, (output,))
    return buffers


def _address(buffer: Buffer, offset: Affine) -> tuple[object, ...]:
    """A key that is equal for equal elements."""
    return buffer, frozenset(offset.terms), offset.constant


def _word(phase: Loop) -> Runs:
    """The word of the loops of a phase that those who have a row share; none where a thread has it."""
    if phase.runs == Runs.GRID:
        return Runs.BLOCK
    return Runs.WARP if any(Runs.WARP in loop.runs for loop in phase.walk()) else Runs.SERIAL


def _is_point(phase: Loop) -> bool:
    """Whether a phase does nothing but store for each point, which one thread of those who have a row does."""
    return all(isinstance(part, Store) for part in grid_loops(phase)[-1].body)


def _extents(loops: Iterable[Loop]) -> Ints:
    return tuple(loop.max_iterations for loop in loops)


class _Pair:
    """Two phases, one after the other."""

    def __init__(
        self, kernel: Kernel, values: Values, first: Loop, second: Loop, in_place: set[Buffer]
    ) -> None:
        self.kernel, self.values, self.phases = kernel, values, (first, second)
        self.in_place = in_place
        self.word = _word(first)
        self.rows, own = grid_loops(first), grid_loops(second)
        #: How many loops of the second phase are rows: none where there is one row.
        is_shared = self.word is not Runs.SERIAL and _word(second) is Runs.SERIAL
        one_row = is_shared and _extents(self.rows) == (1,)
        self.depth = 0 if one_row else len(self.rows)
        self.own, self.inner = own[: self.depth], own[self.depth :]
        self.fits = (
            _extents(self.own) == _extents(self.rows[: self.depth])
            and (is_shared if self.inner else not is_shared or _is_point(second))
            and (is_shared or _word(second) is self.word)
        )
        #: The indices of rows in the second phase as those of the first, and what it loads of what this stores.
        self.moved = _MovedParts(
            values, {each.index: row.index for each, row in zip(self.own, self.rows, strict=False)}
        )

    # --- whether they can be one ---------------------------------------------------------------------------

    def can_be_one(self) -> bool:
        """Whether each row needs nothing of another row's."""
        if not self.fits or any(copied_buffers(phase) for phase in self.phases):
            return False
        # `_MovedParts` knows none of these.
        loops = [loop for phase in self.phases for loop in phase.walk()]
        if any(loop.search or loop.bounds or loop.condition or Runs.LOCKSTEP in loop.runs for loop in loops):
            return False
        (stores, loads), (later_stores, later_loads) = map(_accesses, self.phases)
        if any(store.atomic for store in (*stores, *later_stores)):
            return False
        before = {store.buffer for store in stores}
        touched = before | {load.attribute.buffer for load in loads}
        if any(store.buffer in touched for store in later_stores):
            return False
        own = [part for part in self.rows[-1].body if isinstance(part, Store)]
        stored = {_address(store.buffer, store.offset): store.value for store in own}
        for load in later_loads:
            offset, buffer = self.moved.offset(offset_of(load)), load.attribute.buffer
            if buffer not in before:
                continue
            value = stored.get(_address(buffer, offset))
            if value is None or not self._is_of_row(offset):
                return False
            self.moved.known[load] = value
        return self._may_overwrite()

    def _is_of_row(self, offset: Affine) -> bool:
        """Whether an offset depends on the row alone."""
        rows = {loop.index for loop in self.rows}
        return all(value in rows for value, _ in offset.terms)

    def _may_overwrite(self) -> bool:
        """Whether an output may lie where an input does: each row reads and writes its own part of both."""
        strides = set()
        for phase in self.phases:
            stores, loads = _accesses(phase)
            accesses = [(store.buffer, store.offset) for store in stores]
            accesses += [(load.attribute.buffer, offset_of(load)) for load in loads]
            for buffer, offset in accesses:
                if buffer in self.in_place:
                    strides.add(self._row_bytes(buffer, self.moved.offset(offset)))
        return None not in strides and len(strides) <= 1

    def _row_bytes(self, buffer: Buffer, offset: Affine) -> int | None:
        """Bytes from one row to the next, if all that is accessed lies in the own one; else None."""
        terms = dict(offset.terms)
        factors = [terms.pop(loop.index, 0) for loop in self.rows]
        extents = _extents(self.rows)
        own = buffer.size // prod(extents)
        wanted = [own * prod(extents[axis + 1 :]) for axis in range(len(extents))]
        rows = zip(factors, wanted, extents, strict=True)
        loops = [loop for phase in self.phases for loop in phase.walk()]
        ranges = Ranges({loop.index: (0, loop.max_iterations - 1) for loop in loops})
        low, high = ranges.of_offset(Affine(tuple(terms.items()), offset.constant))
        is_own = all(factor == each or size == 1 for factor, each, size in rows) and low >= 0 and high < own
        return own * buffer.dtype.itemsize if is_own else None

    # --- the one phase -------------------------------------------------------------------------------------

    def as_one(self) -> Loop:
        """The phase that does in each row what the first does, and then what the second does."""
        second = self.phases[1]
        grid = [Loop(loop.index, loop.extent, loop.runs) for loop in self.rows]
        nest_loops(grid)
        inner = grid[-1:]
        grid[-1].body += self.rows[-1].body
        if self.inner:
            inner = [Loop(loop.index, loop.extent) for loop in self.inner]
            inner[-1].runs = self.word
            grid[-1].body.append(nest_loops(inner)[0])
        inner[-1].body += self.moved.parts(grid_loops(second)[-1].body)
        labels = [label for phase in self.phases for label in phase.label.split(", ")]
        grid[0].label = ", ".join(dict.fromkeys(labels))
        return grid[0]


def _accesses(phase: Loop) -> tuple[list[Store], list[Value]]:
    """All stores and loads of a phase."""
    return [store for loop in phase.walk() for store in loop.stores()], loads_of(phase)


class _MovedParts:
    """Parts of loops of values of which some have become others."""

    def __init__(self, values: Values, known: dict[Value, Value]) -> None:
        self.values, self.known = values, known

    def parts(self, parts: Sequence[Loop | Store]) -> list[Loop | Store]:
        """Parts of the body of a loop."""
        return [self.loop(part) if isinstance(part, Loop) else self._store(part) for part in parts]

    def loop(self, loop: Loop) -> Loop:
        extent = self._value(loop.extent) if isinstance(loop.extent, Value) else loop.extent
        return Loop(
            loop.index,
            extent,
            loop.runs,
            self.parts(loop.body),
            [self._accumulator(each) for each in loop.accumulators],
            [
                Carry(self._value(each.initial), each.argument, self._value(each.following), each.result)
                for each in loop.carries
            ],
            [
                Prefix(
                    self._value(each.initial),
                    self._value(each.term),
                    each.left,
                    each.right,
                    each.combined,
                    each.running,
                )
                for each in loop.prefixes
            ],
        )

    def _accumulator(self, each: Accumulator) -> Accumulator:
        identities, terms = (tuple(map(self._value, values)) for values in (each.identities, each.terms))
        return Accumulator(
            identities, terms, each.left, each.right, each.combined, each.results, each.arguments, each.step
        )

    def _store(self, store: Store) -> Store:
        return Store(store.buffer, self.offset(store.offset), self._value(store.value), store.atomic)

    def offset(self, offset: Affine) -> Affine:
        return Affine(tuple((self._value(value), factor) for value, factor in offset.terms), offset.constant)

    def _value(self, value: Value) -> Value:
        return self.values.rebuild(value, self.known)


# --- what threads keep of rows -------------------------------------------------------------------------------


def hold_rows(phase: Loop, values: Values, target: GpuTarget) -> Loop:
    """The phase whose threads keep what they load and compute of their rows, if they have the registers for that."""
    grid = grid_loops(phase)
    if Runs.GRID not in phase.runs or not can_hold(phase):
        return phase
    loops = [part for part in grid[-1].body if isinstance(part, Loop)]
    sharers, extent = target.block_threads, loops[0].max_iterations
    if loops[0].runs == Runs.WARP:
        sharers = _count_sharing_lanes(extent, target)
    copies = [Loop(loop.index, loop.extent, loop.runs) for loop in grid]
    copies[0].label, copies[-1].sharers = phase.label, sharers
    nest_loops(copies)[-1].body += _with_one_index(grid[-1].body, values)
    held, count = held_loops(copies[0]), -(-extent // sharers)
    registers = max(_count_registers([*each.held, *each.loads]) for each in held)
    computed = sum(_count_computed(each.loop) for each in held)
    fits = count * registers <= target.held_registers and count * computed <= target.max_held_values
    return copies[0] if fits else phase


def _count_sharing_lanes(extent: int, target: GpuTarget) -> int:
    """Count the lanes of a warp that share a row: fewer of them have more terms each, and less to combine."""
    lanes = 32
    while lanes > target.held_lanes and extent * 2 <= lanes * target.held_elements:
        lanes //= 2
    return lanes


def _with_one_index(parts: Sequence[Loop | Store], values: Values) -> list[Loop | Store]:
    """Parts of the body of a grid, the loops among which have one index instead of one each."""
    index = next(part.index for part in parts if isinstance(part, Loop))
    alike: list[Loop | Store] = []
    for part in parts:
        if isinstance(part, Loop):
            part = replace(_MovedParts(values, {part.index: index}).loop(part), index=index)
        alike.append(part)
    return alike


def _count_registers(values: Iterable[Value]) -> int:
    """Count the registers of 4 bytes that hold these values."""
    return sum(-(-value.dtype.itemsize // 4) for value in dict.fromkeys(values))


def _count_computed(loop: Loop) -> int:
    """Count the values that an iteration computes."""
    return sum(value.op not in ("load", "constant", "index") for value in in_order(*loop.roots()))
