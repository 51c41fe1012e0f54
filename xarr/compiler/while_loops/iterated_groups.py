"""Loops that repeat one group of fused operations: iterated stencils, and small groups step by step.

A step of a stencil reads rows at most `radius` away from those that it writes, and what lies around the rows stays
as it is.  Then the rows of a large grid may go through several steps while they lie in a cache.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from functools import lru_cache
from textwrap import indent

from xarr.compiler.loop_ir.loops import Affine, Buffer, Kernel, Loop, offset_of
from xarr.compiler.loop_ir.scalars import Value, in_order
from xarr.compiler.schedule import Schedule
from xarr.compiler.while_loops.native_loops import NativeLoop, native_loop
from xarr.ir import ops
from xarr.ir.graph import Graph, Node
from xarr.ir.types import TensorType


@dataclass(frozen=True, eq=False)
class IteratedGroup:
    """A loop of scalars, which says how many iterations there are, and a group that each iteration runs.

    * `scalars`, `scalar_indices` - the loop of the scalars, and which carried values are its own,
    * `kernel` - the loop program of the group,
    * `operands`, `results` - for each of its inputs and outputs the carried value,
    * `radius` - how many rows away from those that it writes an iteration reads; None for any distance.
    """

    scalars: NativeLoop
    scalar_indices: tuple[int, ...]
    kernel: Kernel
    operands: tuple[int, ...]
    results: tuple[int, ...]
    radius: int | None

    def sizes(self) -> dict[int, int]:
        """The numbers of elements of the carried values of the group and of the scalars, by their indices."""
        kernel, scalars = self.kernel, self.scalars.sizes().values()
        buffers = zip((*self.operands, *self.results), (*kernel.inputs, *kernel.outputs), strict=True)
        return {k: buffer.size for k, buffer in buffers} | dict(
            zip(self.scalar_indices, scalars, strict=True)
        )

    def changing_scalars(self) -> list[int]:
        """The carried values of the scalars that change."""
        rows = zip(self.scalar_indices, self.scalars.carried, strict=True)
        return [k for k, each in rows if not each.is_fixed]

    def describe(self) -> str:
        """Text that says what it repeats."""
        if self.radius is None:
            return "native loop: repeats one group"
        return f"native loop: repeats one group, several steps a pass; they reach {self.radius} rows"

    def __str__(self) -> str:
        """The loop program of the group, and what an iteration computes of the scalars."""
        reads, writes = (", ".join(f"p{k}" for k in each) for each in (self.operands, self.results))
        carried = ", ".join(f"p{k}" for k in self.scalar_indices)
        parts = [f"the group, {writes} of {reads}:\n{self.kernel}", f"the scalars {carried}, {self.scalars}"]
        return "\n".join([f"{self.describe()}", *[indent(part.rstrip(), "    ") for part in parts]])


def iterated_group(loop: ops.While, schedule: Schedule) -> IteratedGroup | None:
    """The one group that a loop repeats; its body is fused, but for its scalars.

    None if there is more in the loop, or if its arrays take more than the target's `max_serial_bytes` and
    steps reach rows at any distance.
    """
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
    results = tuple(_index_of_result(body, arrays, number) for number in range(len(group.op.results(group))))
    fixed = [k for k in range(len(body.results)) if k not in changing]
    known = {body.parameters[k]: k for k in (*fixed, *arrays)}
    if not isinstance(group.op, ops.Fusion) or None in results or not set(group.operands) <= set(known):
        return None
    counted = _scalar_loop(loop, scalars, fixed)
    program = counted and native_loop(counted[0], schedule.target.max_native_values)
    if counted is None or program is None:
        return None
    operands = tuple(known[operand] for operand in group.operands)
    indices = tuple(index for index in results if index is not None)
    kernel = schedule.build(group.op)
    iterated = IteratedGroup(program, counted[1], kernel, operands, indices, None)
    arrays_in_use = (*kernel.inputs, *kernel.outputs, *kernel.scratch)
    if sum(buffer.nbytes for buffer in arrays_in_use) <= schedule.target.max_serial_bytes:
        return iterated
    # Rows run ahead of others in a loop that goes through all of them.
    iterated = replace(iterated, kernel=_without_cuts(schedule).build(group.op))
    radius = _radius(iterated, group.op)
    return None if radius is None else replace(iterated, radius=radius)


@lru_cache(64)
def _without_cuts(schedule: Schedule) -> Schedule:
    """A schedule whose loops are not cut where elements come from other operands."""
    return replace(schedule, target=schedule.target.replace(min_cut_elements=sys.maxsize))


def _source(node: Node) -> Node:
    return node.operands[0] if isinstance(node.op, ops.GetTupleElement) else node


def _index_of_result(body: Graph, arrays: list[int], number: int) -> int | None:
    """The only carried value that result `number` of the group becomes."""
    candidates = [
        k
        for k in arrays
        if not isinstance((op := body.results[k].op), ops.GetTupleElement) or op.index == number
    ]
    return candidates[0] if len(candidates) == 1 else None


def _scalar_loop(
    loop: ops.While, scalars: list[int], fixed: list[int]
) -> tuple[ops.While, tuple[int, ...]] | None:
    """The loop without its arrays; None if its scalars depend on them."""
    ones = [k for k in fixed if loop.body.parameters[k].tensor_type.size == 1]
    indices = sorted([*scalars, *ones])
    cond = Graph([loop.cond.parameters[k] for k in indices], loop.cond.results)
    body = Graph([loop.body.parameters[k] for k in indices], [loop.body.results[k] for k in indices])
    for graph in (cond, body):
        if any(node.op.is_leaf and not isinstance(node.op, ops.Constant) for node in graph.nodes):
            return None
    return (ops.While(cond, body), tuple(indices)) if scalars else None


# --- how far a step reaches ------------------------------------------------------------------------------


def _radius(iterated: IteratedGroup, fusion: ops.Fusion) -> int | None:
    """The number of rows away from those that it writes that a step reads; None if it is not the same everywhere."""
    graph, kernel = fusion.computation, iterated.kernel
    phase = kernel.phases[-1]
    if kernel.scratch or kernel.locals or fusion.reduced or phase.vector:
        return None
    if any(loop.accumulators for loop in phase.walk()) or not isinstance(phase.extent, int):
        return None
    for index, node in zip(iterated.results, graph.results, strict=True):
        if isinstance(node.op, ops.DynamicUpdateSlice):
            around = node.operands[0]
            if around not in graph.parameters or iterated.operands[graph.parameters.index(around)] != index:
                return None
        elif len(kernel.phases) > 1:
            return None
    written = _written_rows(phase)
    if written is None:
        return None
    carried = {index: written[buffer] for index, buffer in zip(iterated.results, kernel.outputs, strict=True)}
    reach = 0
    for index, buffer in zip(iterated.operands, kernel.inputs, strict=True):
        for rows in _read_ranges(phase, buffer) if index in carried else ():
            row, stride = carried[index]
            if rows is None or rows[0] != stride:
                return None
            reach = max(reach, abs(rows[1] // stride - row), abs(rows[2] // stride - row))
    return reach


def _written_rows(phase: Loop) -> dict[Buffer, tuple[int, int]] | None:
    """For each result the row that iteration 0 writes, and elements from row to row; None if these are no rows."""
    rows: dict[Buffer, tuple[int, int]] = {}
    extents = _extents(phase)
    if extents is None:
        return None
    for loop in phase.walk():
        for store in loop.stores():
            span = _range(store.offset, phase, extents)
            if span is None or span[0] < 1 or span[1] // span[0] != span[2] // span[0]:
                return None
            row = (span[1] // span[0], span[0])
            if rows.setdefault(store.buffer, row) != row:
                return None
    return rows


def _extents(phase: Loop) -> dict[Value, int] | None:
    extents = {}
    for loop in phase.walk():
        if not isinstance(loop.extent, int):
            return None
        extents[loop.index] = loop.extent
    return extents


def _range(offset: Affine, phase: Loop, extents: dict[Value, int]) -> tuple[int, int, int] | None:
    """Elements from iteration to iteration of the phase, and the first and the last offset of iteration 0."""
    step, low, high = 0, offset.constant, offset.constant
    for value, factor in offset.terms:
        if value is phase.index:
            step = factor
        elif value in extents:
            reach = factor * (extents[value] - 1)
            low, high = low + min(0, reach), high + max(0, reach)
        else:
            return None
    return step, low, high


def _read_ranges(phase: Loop, buffer: Buffer) -> list[tuple[int, int, int] | None]:
    extents = _extents(phase) or {}
    roots = [root for loop in phase.walk() for root in loop.roots()]
    ranges: list[tuple[int, int, int] | None] = []
    for value in in_order(*roots):
        if value.op == "load" and value.attribute.buffer is buffer:
            ranges.append(_range(offset_of(value), phase, extents))
    return ranges
