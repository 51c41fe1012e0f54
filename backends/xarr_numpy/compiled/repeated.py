"""Loops that repeat one group of fused operations, as native loops over its kernel.

Two arrays for each carried one take turns as what a step reads and what it writes.  A small group runs step
after step.  The rows of a large grid go through several steps while they lie in a processor's cache: behind
the front of the first step, `radius` rows later, follows that of the second, and so on.  That needs that a step
reads rows at most `radius` away from those that it writes, and that what lies around the rows stays as it is.

Threads take ranges of rows.  Near the seams between them each step leaves out `radius` rows more than the one
before; these are done when all threads have ended.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from xarr.compiler.group_programs import build
from xarr.compiler.loop_ir.loops import Affine, Buffer, Kernel, Loop
from xarr.compiler.loop_ir.scalars import Value, in_order
from xarr.ir import ops
from xarr.ir.graph import Graph, Node
from xarr.ir.types import TensorType
from xarr_numpy import workers
from xarr_numpy.compiled import assembler, costs, emitter, front_code
from xarr_numpy.compiled.loop_kernel import LoopKernel, Report, plan as plan_of_points
from xarr_numpy.compiled.sharing import Phase
from xarr_numpy.memory import pool

Array = np.ndarray[Any, Any]

#: Bytes of rows that may be in use at once, so that they stay in a cache.
CACHE: Final = 2**20
#: Bytes of all arrays up to which steps run one after the other, in one thread.
SMALL: Final = 2**17
#: Steps of a small group between looks at interrupts: elements that they compute.
MANY_ELEMENTS: Final = 2**26


@dataclass(frozen=True, eq=False)
class Repetition:
    """A loop of scalars, and a group whose results are the other carried values.

    operands: for each operand of the group the carried value; results: for each result the carried value.
    """

    scalars: ops.While
    scalar_places: tuple[int, ...]
    fusion: ops.Fusion
    operands: tuple[int, ...]
    results: tuple[int, ...]
    radius: int | None

    def describe(self) -> str:
        if self.radius is None:
            return "native loop: repeats one group"
        return f"native loop: repeats one group, several steps a pass; they reach {self.radius} rows"


def plan(loop: ops.While) -> Repetition | None:
    """The loop as a repetition, if it is one; its body is fused, but for its scalars."""
    body = loop.body
    changing = [k for k, new in enumerate(body.results) if new is not body.parameters[k]]
    if not all(type(node.type) is TensorType for node in body.parameters):
        return None
    scalars = [k for k in changing if body.parameters[k].tensor_type.size == 1]
    arrays = [k for k in changing if k not in scalars]
    sources = {_source(body.results[k]) for k in arrays}
    if len(sources) != 1:
        return None
    (group,) = sources
    results = tuple(_place_of_result(body, arrays, number) for number in range(_count(group)))
    fixed = [k for k in range(len(body.results)) if k not in changing]
    known = {body.parameters[k]: k for k in (*fixed, *arrays)}
    if not isinstance(group.op, ops.Fusion) or None in results or not set(group.operands) <= set(known):
        return None
    counted = _scalar_loop(loop, scalars, fixed)
    if counted is None or plan_of_points(counted[0]) is None:
        return None
    operands = tuple(known[operand] for operand in group.operands)
    places = tuple(place for place in results if place is not None)
    found = Repetition(*counted, group.op, operands, places, None)
    kernel = build(group.op)
    arrays_in_use = (*kernel.inputs, *kernel.outputs, *kernel.scratch)
    if sum(buffer.nbytes for buffer in arrays_in_use) <= SMALL:
        return found
    radius = _radius(found, kernel)
    return None if radius is None else Repetition(*counted, group.op, operands, places, radius)


def _source(node: Node) -> Node:
    return node.operands[0] if isinstance(node.op, ops.GetTupleElement) else node


def _count(group: Node) -> int:
    return len(group.op.results(group))


def _place_of_result(body: Graph, arrays: list[int], number: int) -> int | None:
    """The only carried value that result `number` of the group becomes."""
    found = [
        k
        for k in arrays
        if not isinstance((op := body.results[k].op), ops.GetTupleElement) or op.index == number
    ]
    return found[0] if len(found) == 1 else None


def _scalar_loop(
    loop: ops.While, scalars: list[int], fixed: list[int]
) -> tuple[ops.While, tuple[int, ...]] | None:
    """The loop without its arrays; None if its scalars depend on them."""
    ones = [k for k in fixed if loop.body.parameters[k].tensor_type.size == 1]
    places = sorted([*scalars, *ones])
    cond = Graph([loop.cond.parameters[k] for k in places], loop.cond.results)
    body = Graph([loop.body.parameters[k] for k in places], [loop.body.results[k] for k in places])
    for graph in (cond, body):
        if any(node.op.is_leaf and not isinstance(node.op, ops.Constant) for node in graph.nodes):
            return None
    return (ops.While(cond, body), tuple(places)) if scalars else None


# --- how far a step reaches ------------------------------------------------------------------------------


def _radius(found: Repetition, kernel: Kernel) -> int | None:
    """How many rows away from those that it writes a step reads; None if that is not the same everywhere."""
    graph, phase = found.fusion.computation, kernel.phases[-1]
    if kernel.scratch or kernel.locals or found.fusion.reduced or phase.vector:
        return None
    if any(loop.accumulators for loop in phase.walk()) or not isinstance(phase.extent, int):
        return None
    for place, node in zip(found.results, graph.results, strict=True):
        if isinstance(node.op, ops.DynamicUpdateSlice):
            around = node.operands[0]
            if around not in graph.parameters or found.operands[graph.parameters.index(around)] != place:
                return None
        elif len(kernel.phases) > 1:
            return None
    written = _written_rows(phase)
    if written is None:
        return None
    carried = {place: written[buffer] for place, buffer in zip(found.results, kernel.outputs, strict=True)}
    reach = 0
    for place, buffer in zip(found.operands, kernel.inputs, strict=True):
        for rows in _read_places(phase, buffer) if place in carried else ():
            row, stride = carried[place]
            if rows is None or rows[0] != stride:
                return None
            reach = max(reach, abs(rows[1] // stride - row), abs(rows[2] // stride - row))
    return reach


def _written_rows(phase: Loop) -> dict[Buffer, tuple[int, int]] | None:
    """For each result the row that turn 0 writes, and elements from row to row; None if these are no rows."""
    found: dict[Buffer, tuple[int, int]] = {}
    extents = _extents(phase)
    if extents is None:
        return None
    for loop in phase.walk():
        for store in loop.stores():
            span = _range(store.place, phase, extents)
            if span is None or span[0] < 1 or span[1] // span[0] != span[2] // span[0]:
                return None
            row = (span[1] // span[0], span[0])
            if found.setdefault(store.buffer, row) != row:
                return None
    return found


def _extents(phase: Loop) -> dict[Value, int] | None:
    found = {}
    for loop in phase.walk():
        if not isinstance(loop.extent, int):
            return None
        found[loop.index] = loop.extent
    return found


def _range(place: Affine, phase: Loop, extents: dict[Value, int]) -> tuple[int, int, int] | None:
    """Elements from turn to turn of the phase, and the first and the last place of turn 0."""
    step, low, high = 0, place.constant, place.constant
    for value, factor in place.terms:
        if value is phase.index:
            step = factor
        elif value in extents:
            reach = factor * (extents[value] - 1)
            low, high = low + min(0, reach), high + max(0, reach)
        else:
            return None
    return step, low, high


def _read_places(phase: Loop, buffer: Buffer) -> list[tuple[int, int, int] | None]:
    extents = _extents(phase) or {}
    roots = [root for loop in phase.walk() for root in loop.roots()]
    found: list[tuple[int, int, int] | None] = []
    for value in in_order(*roots):
        if value.op == "load" and value.attribute.buffer is buffer:
            access = value.attribute
            terms = tuple(zip(value.operands, access.factors, strict=False))
            found.append(_range(Affine(terms, access.constant), phase, extents))
    return found


# --- running it ------------------------------------------------------------------------------------------


class RepeatedKernel:
    """The machine code of a repetition.  `call` is that of a `LoopKernel`."""

    def __init__(self, found: Repetition) -> None:
        self.found = found
        self.program = build(found.fusion)
        scalars = plan_of_points(found.scalars)
        assert scalars is not None, "the scalars were found to be a native loop"
        self._scalars = LoopKernel(scalars)
        text, names = emitter.emit(self.program)
        self._code = assembler.made(
            text + front_code.driver(self.program, names), ["steps", "ranges", "seams"]
        )
        pointer, integer = ctypes.c_void_p, ctypes.c_int64
        steps = ctypes.CFUNCTYPE(None, pointer, pointer, integer)
        self._steps = steps(self._code.addresses["steps"])
        buffers = (*self.program.inputs, *self.program.outputs, *self.program.scratch)
        self._table = pointer * len(buffers)

    @property
    def origin(self) -> str:
        """Where the machine code comes from, and how long that took."""
        return f"{self._code.origin}, its scalars {self._scalars.origin}"

    def part(self, steps: int) -> None:
        """It is never one function: who takes the steps depends on how many there are."""

    def call(
        self, wanted: Sequence[int], free: Sequence[int], report: Report | None, *operands: Any
    ) -> tuple[Any, ...]:
        """The carried values after the loop; `report` is told how many steps were taken.

        All of them, `wanted` or not: a step makes every array.  The places `free` may be written to.
        """
        steps, state = self._count([operands[k] for k in self.found.scalar_places])
        results = list(operands)
        for place, value in zip(self.found.scalar_places, state, strict=True):
            results[place] = value
        for place, value in self._repeat(steps, frozenset(free), report, operands).items():
            results[place] = value
        return tuple(results)

    def _count(self, state: list[Any]) -> tuple[int, tuple[Any, ...]]:
        """How many steps there are, and the scalars after them."""
        counts: list[int] = []
        everything = range(len(state))
        after = self._scalars.call(everything, (), counts.append, *state)
        return sum(counts), after

    def _repeat(
        self, steps: int, free: frozenset[int], report: Report | None, operands: tuple[Any, ...]
    ) -> dict[int, Any]:
        """The arrays after so many steps, by carried value."""
        found = self.found
        run = _Tables(self, free, operands)
        done = 0
        # Two steps of all phases: after them both arrays hold what no step changes.
        while done < min(steps, 2):
            self._steps(run.address(done), run.address(done + 1), 1)
            run.made()
            done += 1
            if report is not None:
                report(1)
        most, block = self._chunk()
        while done < steps:
            count = min(most, steps - done)
            if found.radius is None:
                self._steps(run.address(done), run.address(done + 1), count)
            else:
                self._fronts(run, done, count, block)
            done += count
            if report is not None:
                report(count)
        return run.results(steps)

    def _chunk(self) -> tuple[int, int]:
        """Steps that are taken at once, and rows that go through them together."""
        program, radius = self.program, self.found.radius
        if radius is None:
            elements = sum(buffer.size for buffer in (*program.inputs, *program.outputs))
            return max(1, MANY_ELEMENTS // elements), 1
        phase = program.phases[-1]
        assert isinstance(phase.extent, int), "rows were counted"
        buffers = [
            b for k, b in zip(self.found.operands, program.inputs, strict=True) if k in self.found.results
        ]
        row = sum(buffer.nbytes for buffer in (*buffers, *program.outputs)) // max(1, phase.extent)
        rows = CACHE // max(1, row)
        steps = max(1, min((rows // 2 - radius) // max(1, radius), phase.extent // 8))
        return steps, max(1, rows - (steps + 2) * radius)

    def _fronts(self, run: _Tables, done: int, steps: int, block: int) -> None:
        phase, radius = self.program.phases[-1], self.found.radius
        assert isinstance(phase.extent, int) and radius is not None
        rows = phase.extent
        ranges = max(1, min(workers.count(), rows // max(1, 4 * steps * radius)))
        numbers = (run.address(done), run.address(done + 1), rows, ranges, steps, radius, block)
        given = (ctypes.c_int64 * front_code.FIELDS)(*numbers)
        address = ctypes.addressof(given)
        row = costs.turn(phase)
        held = (self, run, given)
        Phase(self._code.addresses["ranges"], ranges, steps * rows * row / ranges).run(address, held)
        if ranges > 1:
            seam = steps * steps * radius * row
            Phase(self._code.addresses["seams"], ranges - 1, seam).run(address, held)


class _Tables:
    """The arrays of one call, and the tables of their addresses for steps with even and odd numbers."""

    def __init__(self, kernel: RepeatedKernel, free: frozenset[int], operands: tuple[Any, ...]) -> None:
        self.found = kernel.found
        self.operands = operands
        self.free = free
        self.given = {k: np.ascontiguousarray(operands[k]) for k in kernel.found.operands}
        self.pairs = {k: _pair(np.asarray(operands[k]), k in free) for k in kernel.found.results}
        self.scratch = [np.empty(buffer.size, buffer.dtype) for buffer in kernel.program.scratch]
        self._kernel = kernel
        self._taken = 0
        self._tables = [self._table(0), self._table(1)]

    def _table(self, parity: int) -> Any:
        """For a step of this parity, which reads what the step before wrote."""
        is_own = self._taken >= 2 - parity
        before = [
            self.pairs[k][1 - parity] if is_own and k in self.pairs else self.given[k]
            for k in self.found.operands
        ]
        after = [self.pairs[k][parity] for k in self.found.results]
        return self._kernel._table(*[array.ctypes.data for array in (*before, *after, *self.scratch)])

    def made(self) -> None:
        """Note that one of the first two steps was taken."""
        self._taken += 1
        self._tables = [self._table(0), self._table(1)]

    def address(self, step: int) -> int:
        return ctypes.addressof(self._tables[step % 2])

    def results(self, steps: int) -> dict[int, Any]:
        if not steps:
            return {k: self._as_it_came(k) for k in self.found.results}
        return {k: pair[(steps - 1) % 2] for k, pair in self.pairs.items()}

    def _as_it_came(self, place: int) -> Any:
        """What another group may write over, and so no view of what somebody else may need."""
        operand = self.operands[place]
        return operand if place in self.free else np.array(operand)


def _pair(operand: Array, is_free: bool) -> list[Array]:
    """What steps with even and with odd numbers write: step 1 may write over what step 0 alone has read."""
    first = pool.empty(operand.shape, operand.dtype)
    if is_free and operand.flags.carray:
        return [first, operand]
    return [first, pool.empty(operand.shape, operand.dtype)]
