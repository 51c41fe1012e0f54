"""Loops that scatter a source into what its windows choose: select_and_scatter.

First every window notes which element it chooses, as the distance from the window's first index, so that this
can be done for many windows at once.  Then

* if windows do not slide along the innermost dimension, each element of the result goes through the windows
  that it lies in, in row-major order, and joins with the source of those that chose it: no two iterations write
  to one element, and the vector loop runs along the innermost dimension,
* otherwise each plane of the result is filled, and its windows go through it in row-major order.

Either way what meets at one element meets in the order in which the reference has it.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from xarr.compiler.loop_ir.elements import Index, compute_scalars, row_major, strides
from xarr.compiler.loop_ir.loops import (
    Affine,
    Buffer,
    Kernel,
    Loop,
    Runs,
    Store,
    in_threads,
    index_value,
    lanes_if,
    load,
)
from xarr.compiler.loop_ir.scalars import Value
from xarr.compiler.schedules.cpu.windows import Accumulated, Tap, WindowNest, are_small
from xarr.compiler.target import Target
from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.ir.windows import WindowDimension

#: What a window that has no element chooses.
NOTHING: Final = -1
#: Distances inside an array are counted in int32.
_MAX_DISTANCE: Final = 2**31


def build(fusion: ops.Fusion, target: Target) -> Kernel:
    """The loop program of a group around one select_and_scatter."""
    (node,) = [node for node in fusion.computation.nodes if isinstance(node.op, ops.SelectAndScatter)]
    choice = _Choice(fusion, target, node)
    phases = choice.phases()
    scatter = _PlaneByPlane if choice.slides else _ElementByElement
    phases += scatter(choice).phases()
    return Kernel(choice.inputs, choice.outputs, (choice.chosen,), (), in_threads(phases))


def takes(node: Node, target: Target) -> bool:
    """Whether these loops are to compute a select_and_scatter: of small windows, in an array with short distances."""
    op = node.op.expect(ops.SelectAndScatter)
    return node.operands[0].tensor_type.size < _MAX_DISTANCE and are_small(op.window_dimensions, target)


class _Choice(WindowNest):
    """The phases in which windows choose."""

    def __init__(self, fusion: ops.Fusion, target: Target, node: Node) -> None:
        self.node = node
        self.op = node.op.expect(ops.SelectAndScatter)
        self.operand, self.source, self.initial = node.operands
        window = self.op.window
        super().__init__(fusion, target, window, self.operand.shape, self.source.shape)
        self.chosen = Buffer("chosen", np.dtype(np.int32), self.source.tensor_type.size, "scratch")
        self.strides = strides(self.base)

    def add_iteration(self, around: Loop, innermost: int | None, checked: bool) -> None:
        elements = self.elements()
        index = tuple(self.index)
        first = Affine()
        for axis, stride in enumerate(self.strides):
            first = first + self.start(axis) * stride

        def step(held: Accumulated, tap: Tap) -> Accumulated:
            best, distance = held
            element = elements.at(self.operand, tap.index, tap.predicate)
            here = (self._flat(tap.index) + first * -1).value(self.values).convert(np.int32)
            (stays,) = compute_scalars(self.op.select, (best, element), self.values)
            stays = stays & distance.ge(0)
            return stays.select(best, element), stays.select(distance, here)

        dtype = elements.at(self.initial, ()).dtype
        nothing = (self.values.constant(0, dtype), self.values.constant(NOTHING, np.int32))
        _, distance = self.fold(around, nothing, step, innermost, checked)
        around.body.append(Store(self.chosen, row_major(self.windows, index), distance))

    def _flat(self, index: Index) -> Affine:
        offset = Affine()
        for at, stride in zip(index, self.strides, strict=True):
            offset = offset + at * stride
        return offset


class _SourceScatter:
    """The phases in which the source is brought to where the windows chose."""

    def __init__(self, choice: _Choice) -> None:
        self.choice = choice
        self.values = choice.values
        self.shape = choice.base
        self.dimensions = choice.window.dimensions
        self.index: list[Affine] = [Affine()] * len(self.shape)
        (self.result,) = choice.outputs

    def first(self) -> Value:
        return self.choice.elements().at(self.choice.initial, ())

    def join_source(self, what: Value, window: Index) -> Value:
        """The element after the source of a window has joined it."""
        source = self.choice.elements().at(self.choice.source, window)
        (joined,) = compute_scalars(self.choice.op.scatter, (what, source), self.values)
        return joined

    def distance(self, window: Index) -> Value:
        return load(self.values, self.choice.chosen, row_major(self.choice.windows, window))


class _ElementByElement(_SourceScatter):
    def phases(self) -> list[Loop]:
        """One dimension is the vector loop, one a loop around it, and the others are cut among threads."""
        axes = [axis for axis, size in enumerate(self.shape) if size != 1]
        outer, inner = (axes[:-2], axes[-2:]) if len(axes) > 2 else (axes[:-1], axes[-1:])
        nest = self.choice
        first, indices = nest.flat([self.shape[axis] for axis in outer] or [1])
        for axis, at in zip(outer, indices, strict=False):
            self.index[axis] = at
        around = first
        for axis in inner:
            loop, self.index[axis] = nest.loop(
                "i", self.shape[axis], lanes_if(axis == inner[-1] and self.dimensions[axis].is_trivial)
            )
            around.body.append(loop)
            around = loop
        self._element(around)
        return [first]

    def _element(self, around: Loop) -> None:
        sliding = [axis for axis, each in enumerate(self.dimensions) if not each.is_trivial]
        total = self._accumulate_windows(around, sliding, list(self.index), Affine(), self.first())
        around.body.append(Store(self.result, row_major(self.shape, tuple(self.index)), total))

    def _accumulate_windows(
        self, around: Loop, axes: list[int], window: list[Affine], distance: Affine, held: Value
    ) -> Value:
        """`held` after the windows that the present element lies in have come by."""
        nest = self.choice
        if not axes:
            wanted = distance.value(self.values).convert(np.int32)
            hit = self.distance(tuple(window)).eq(wanted)
            return hit.select(self.join_source(held, tuple(window)), held)
        axis, *others = axes
        dimension, at = self.dimensions[axis], self.index[axis]
        first, count = self._windows(dimension, at, nest.windows[axis])
        loop = Loop(index_value(self.values, "window"), count)
        nest.ranges[loop.index] = (0, dimension.size - 1)
        around.body.append(loop)
        window[axis] = Affine(((loop.index, 1),)) + first
        start = window[axis] * dimension.stride + -dimension.padding_low
        distance = distance + (at + start * -1) * nest.strides[axis]
        argument = nest.carry(loop, held)
        (total,) = nest.hand_on(loop, [self._accumulate_windows(loop, others, window, distance, argument)])
        return total

    def _windows(self, dimension: WindowDimension, at: Affine, windows: int) -> tuple[Affine, Value]:
        """The first window that an element lies in, and in how many it does."""
        stride, at = dimension.stride, at + dimension.padding_low
        low = (at + (stride - dimension.size)).value(self.values)
        first = low.gt(0).select(low / stride if stride > 1 else low, 0)
        after = (at + stride).value(self.values)
        after = after / stride if stride > 1 else after
        after = after.lt(windows).select(after, windows)
        count = after - first
        most = -(-dimension.size // stride)
        return Affine(((first, 1),)), count.lt(most).select(count, most)


class _PlaneByPlane(_SourceScatter):
    def phases(self) -> list[Loop]:
        nest = self.choice
        planes = [
            axis for axis, each in enumerate(self.dimensions) if each.is_trivial and self.shape[axis] != 1
        ]
        first, indices = nest.flat([self.shape[axis] for axis in planes] or [1])
        for axis, at in zip(planes, indices, strict=False):
            self.index[axis] = at
        within = [axis for axis, each in enumerate(self.dimensions) if not each.is_trivial]
        first.body.append(self._fill(within))
        first.body.append(self._windows(within))
        return [first]

    def _fill(self, axes: list[int]) -> Loop:
        index = list(self.index)
        loops = self._loops(axes, self.shape, index, Runs.LANES)
        loops[-1].body.append(Store(self.result, row_major(self.shape, tuple(index)), self.first()))
        return loops[0]

    def _windows(self, axes: list[int]) -> Loop:
        nest = self.choice
        window = list(self.index)
        loops = self._loops(axes, nest.windows, window)
        distance = self.distance(tuple(window))
        is_some = distance.ge(0)
        start, plane = Affine(), Affine()
        for axis, (at, stride) in enumerate(zip(self.index, nest.strides, strict=True)):
            dimension = self.dimensions[axis]
            begin = window[axis] * dimension.stride + -dimension.padding_low
            start = start + begin * stride
            plane = plane + at * stride
        chosen = start.value(self.values) + distance.convert(np.int64)
        offset = Affine(((is_some.select(chosen, plane.value(self.values)), 1),))
        there = load(self.values, self.result, offset)
        value = is_some.select(self.join_source(there, tuple(window)), there)
        loops[-1].body.append(Store(self.result, offset, value))
        return loops[0]

    def _loops(
        self, axes: list[int], extents: tuple[int, ...], index: list[Affine], runs: Runs = Runs.SERIAL
    ) -> list[Loop]:
        """Loops inside one another over these dimensions, outermost first."""
        loops: list[Loop] = []
        for axis in axes:
            loop, index[axis] = self.choice.loop(
                "i", extents[axis], runs if axis == axes[-1] else Runs.SERIAL
            )
            if loops:
                loops[-1].body.append(loop)
            loops.append(loop)
        return loops
