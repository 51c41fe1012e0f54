"""What loops over windows have in common: their indices, and which elements of a window lie on the array.

Padding is never made.  Along each dimension the loop over a window's elements runs from the first to the last
that lies on the array; where that is the same for all indices of the loops around, its ends are constants.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import NamedTuple

from xarr.compiler.loop_ir.elements import (
    Elements,
    Index,
    Source,
    buffer_of,
    input_buffers,
    reader,
    row_major,
    strides,
)
from xarr.compiler.loop_ir.loops import Affine, Carry, Loop, Runs, Store, index_value, new_carry
from xarr.compiler.loop_ir.scalars import Value, Values
from xarr.compiler.target import Target
from xarr.ir import ops
from xarr.ir.graph import Graph, Node
from xarr.ir.types import Ints
from xarr.ir.windows import WindowDimension


class RegisterPart(NamedTuple):
    """Neighbours from `start` on: `blocks` of them, each of `width` registers of so many `lanes`."""

    start: int
    blocks: int
    width: int
    lanes: int


class WindowLoops:
    """The buffers of a group's loops, and loops whose ranges are known."""

    def __init__(self, fusion: ops.Fusion, target: Target) -> None:
        self.target = target
        self.graph = fusion.computation
        self.values = Values()
        self.inputs = input_buffers(self.graph, fusion.ranges)
        self.outputs = tuple(buffer_of(f"out{k}", node, "out") for k, node in enumerate(self.graph.results))
        self.sources: dict[Node, Source] = {
            node: reader(self.values, each, node)
            for each, node in zip(self.inputs, self.graph.parameters, strict=True)
        }
        #: Where the loops are, along each dimension of the result.
        self.index: list[Affine] = [Affine()] * len(fusion.domain)
        #: The least and the greatest number that an index may be.
        self.ranges: dict[Value, tuple[int, int]] = {}

    def elements(self) -> Elements:
        return Elements(self.values, self.sources)

    # --- loops -------------------------------------------------------------------------------------------

    def loop(self, name: str, extent: int, runs: Runs = Runs.SERIAL) -> tuple[Loop, Affine]:
        """A loop and its index."""
        index = index_value(self.values, name)
        self.ranges[index] = (0, extent - 1)
        return Loop(index, extent, runs), Affine(((index, 1),))

    def flat(self, extents: Sequence[int]) -> tuple[Loop, list[Affine]]:
        """One loop over several dimensions, and the index of each."""
        loop, at = self.loop("iteration", prod(extents))
        if len(extents) == 1:
            return loop, [at]
        indices = []
        for axis, (extent, stride) in enumerate(zip(extents, strides(tuple(extents)), strict=True)):
            index = loop.index if stride == 1 else self._quotient(loop.index, stride)
            index = index.rem(extent) if axis else index
            self.ranges[index] = (0, extent - 1)
            indices.append(Affine() if extent == 1 else Affine(((index, 1),)))
        return loop, indices

    def registers(
        self, around: Loop, count: int, size: int, most: int
    ) -> Iterator[tuple[Loop, list[Affine]]]:
        """Loops inside `around` over lanes: `count` neighbours of `size` bytes each, by at most so many registers of
        them at a time.  Each with the positions of a lane in its registers.
        """
        for part in register_parts(count, self.target.register_bytes // size, most):
            loop, block = self.loop("j", part.blocks)
            around.body.append(loop)
            vector, positions = self.lanes(part, block)
            loop.body.append(vector)
            yield vector, positions

    def lanes(self, part: RegisterPart, block: Affine) -> tuple[Loop, list[Affine]]:
        """The loop over the lanes of a block, and the positions of a lane in its registers."""
        vector, lane = self.loop("i", part.lanes, Runs.LANES if part.lanes > 1 else Runs.SERIAL)
        start = block * (part.lanes * part.width) + part.start
        return vector, [start + lane + part.lanes * k for k in range(part.width)]

    def tiles(self, around: Loop, stop: int, together: int) -> Iterator[tuple[Loop, Affine, int]]:
        """Loops inside `around` up to `stop`, so many at a time: each with where it is, and how many."""
        full = stop // together * together
        for first, end, width in ((0, full, together), (full, stop, stop - full)):
            if first < end:
                loop, position = self.loop("i", (end - first) // width)
                around.body.append(loop)
                yield loop, position * width + first, width

    def _quotient(self, value: Value, divisor: int) -> Value:
        return value if divisor == 1 else value / divisor

    def range_of(self, number: Affine) -> tuple[int, int]:
        """The least and the greatest number that an index may be."""
        low = high = number.constant
        for value, factor in number.terms:
            ends = [factor * end for end in self.ranges[value]]
            low, high = low + min(ends), high + max(ends)
        return low, high

    # --- elements of a window ----------------------------------------------------------------------------

    def on_base(self, dimension: WindowDimension, start: Affine, size: int) -> tuple[Affine, int | Value]:
        """Of a window that begins at `start`: the first element that lies on `size` indices, and how many do."""
        low, high = self.range_of(start)
        step = dimension.window_dilation
        first = self._at_least_zero(start * -1, step) if low < 0 else Affine()
        if high + (dimension.size - 1) * step < size:
            if not first.terms:
                return first, dimension.size - first.constant
            count = first.value(self.values) * -1 + dimension.size
        else:
            after = self._quotient((start * -1 + (size - 1 + step)).value(self.values), step)
            last = after.lt(dimension.size).select(after, dimension.size)
            count = (Affine(((last, 1),)) + first * -1).value(self.values)
        return first, count.lt(dimension.size).select(count, dimension.size)

    def _at_least_zero(self, distance: Affine, step: int) -> Affine:
        """distance / step, rounded up, or 0 if that is more."""
        quotient = self._quotient((distance + (step - 1)).value(self.values), step)
        positive = quotient.gt(0).select(quotient, 0)
        low, high = self.range_of(distance)
        self.ranges[positive] = (max(0, -(-low // step)), max(0, -(-high // step)))
        return Affine(((positive, 1),))

    def taps(self, around: Loop, dimension: WindowDimension, start: Affine, size: int) -> tuple[Loop, Affine]:
        """A loop inside `around` over the elements of a window that lie on the array, and the number of each."""
        first, count = self.on_base(dimension, start, size)
        index = index_value(self.values, "tap")
        self.ranges[index] = (0, dimension.size - 1)
        loop = Loop(index, count)
        around.body.append(loop)
        return loop, Affine(((index, 1),)) + first

    def carry(self, loop: Loop, initial: Value) -> Value:
        """The values that an iteration starts from; `hand_on` says what it leaves."""
        argument, result = new_carry(self.values, initial.dtype)
        loop.carries.append(Carry(initial, argument, argument, result))
        return argument

    @staticmethod
    def hand_on(loop: Loop, following: Sequence[Value]) -> tuple[Value, ...]:
        """Let the iterations of a loop leave these, one for each carry; what is there after the loop."""
        rows = zip(loop.carries, following, strict=True)
        loop.carries = [Carry(carry.initial, carry.argument, value, carry.result) for carry, value in rows]
        return tuple(carry.result for carry in loop.carries)

    def stores(self, around: Loop, node: Node, value: Value, domain: Ints) -> None:
        """Store the group's results, given the element of `node` at the present index of the domain."""
        self.sources[node] = lambda index, predicate: value
        elements = self.elements()
        for result, buffer in zip(self.graph.results, self.outputs, strict=True):
            index = own_index(result.shape, domain, tuple(self.index))
            around.body.append(Store(buffer, row_major(result.shape, index), elements.at(result, index)))


def several(count: int, most: int) -> int:
    """The number of results to sum up at once, of `count`: about `most`, which registers hold, so that few are left."""
    if count <= most:
        return max(1, count)
    return min(range(most, most // 2, -1), key=lambda together: count % together)


def register_parts(count: int, lanes: int, most: int) -> list[RegisterPart]:
    """`count` neighbours by at most so many whole registers at a time, and those that fill none."""
    lanes = max(1, lanes)
    width = several(count // lanes, most) if count > lanes else 1
    blocks = count // (lanes * width)
    full = blocks * lanes * width
    parts = [RegisterPart(0, blocks, width, lanes)] if blocks else []
    # What is left of several registers is one loop, whose last register is filled in part.
    return [*parts, RegisterPart(full, 1, 1, count - full)] if full < count else parts


def tile_sums(graph: Graph, target: Target) -> int:
    """Registers of sums of a tile: fewer where much is computed of each, since that is code for each register."""
    others = max(1, len(graph.nodes) - 1)
    return max(min(target.max_tile_sums, target.max_unrolled_values // others), target.max_register_sums)


def own_index(shape: Ints, domain: Ints, index: Index) -> Index:
    """Where an array with the dimensions of the domain, those of size 1 apart, stands at an index of it."""
    present = iter([at for at, size in zip(index, domain, strict=True) if size != 1])
    return tuple(Affine() if size == 1 else next(present) for size in shape)
