"""Loops for convolutions that matrices do not suit: sums over windows, without copies of them.

* Depthwise ones: each feature of the result is made of one of the array.
* Those of few terms or little work, with features innermost: the vector loop runs along the features of the
  result, and several neighbouring windows share what is read of the kernel.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from functools import partial

from xarr.compiler.functions import apply_elementwise, multiply_add, register_dtype
from xarr.compiler.fusion.window_work import is_depthwise, sum_dtype, window_of
from xarr.compiler.loop_ir.elements import Index
from xarr.compiler.loop_ir.loops import Affine, Kernel, Loop, Runs, in_threads
from xarr.compiler.loop_ir.scalars import DType, Value
from xarr.compiler.schedules.cpu.window_loops import put, several
from xarr.compiler.schedules.cpu.windows import Accumulated, Step, Tap, WindowNest, whole_windows
from xarr.compiler.target import Target
from xarr.ir import ops
from xarr.ir.graph import Node


def build(fusion: ops.Fusion, target: Target) -> Kernel:
    """The loop program of a group around one convolution."""
    (node,) = [node for node in fusion.computation.nodes if isinstance(node.op, ops.Convolution)]
    nest = (_Depthwise if is_depthwise(node) else _Dense)(fusion, target, node)
    return Kernel(nest.inputs, nest.outputs, (), (), in_threads(nest.phases()))


class _Depthwise(WindowNest):
    def __init__(self, fusion: ops.Fusion, target: Target, node: Node) -> None:
        assert isinstance(node.op, ops.Convolution)
        self.node = node
        self.op = node.op
        self.array, self.kernel = node.operands
        self.dtype = sum_dtype(self.array.dtype, node.dtype)
        super().__init__(fusion, target, window_of(node), self.array.shape, node.shape)

    def add_iteration(self, around: Loop, innermost: int | None, checked: bool) -> None:
        elements = self.elements()

        def step(held: Accumulated, tap: Tap) -> Accumulated:
            (total,) = held
            element = self._wide(self.array, elements.at(self.array, tap.index, tap.predicate))
            weight = self._wide(self.kernel, elements.at(self.kernel, self.weight(tap)))
            return (self.sum(total, element, weight),)

        nothing = self.values.constant(0, self.dtype)
        (total,) = self.fold(around, (nothing,), step, innermost, checked)
        self.stores(around, self.node, self._convert(total, self.dtype, self.node.dtype), self.windows)

    def sum(self, total: Value, element: Value, weight: Value) -> Value:
        """The total and one product more."""
        return multiply_add(element, weight, total)

    def weight(self, tap: Tap) -> Index:
        """Which element of the kernel meets an element of the array."""
        output, _, *spatial = self.op.rhs_spec
        index = [Affine()] * len(self.op.rhs_spec)
        index[output] = self.index[self.op.out_spec[1]]
        for axis, along in zip(spatial, self.op.lhs_spec[2:], strict=True):
            dimension, number = self.window.dimensions[along], tap.number[along]
            index[axis] = number * -1 + (dimension.size - 1) if dimension.window_reversal else number
        return tuple(index)

    def _wide(self, node: Node, element: Value) -> Value:
        return self._convert(element, node.dtype, self.dtype)

    def _convert(self, value: Value, old: DType, new: DType) -> Value:
        if old == new:
            return value
        converted = apply_elementwise(ops.Convert(new), [old], [value])
        assert converted is not None and converted.dtype == register_dtype(new), (
            f"no loop converts {old} to {new}"
        )
        return converted


class _Dense(_Depthwise):
    """Several neighbouring windows at once, so that an element of the kernel is read once for all of them."""

    def __init__(self, fusion: ops.Fusion, target: Target, node: Node) -> None:
        super().__init__(fusion, target, node)
        self.feature = self.op.lhs_spec[1]
        #: The dimension along which windows are neighbours, and how many are at hand.
        self.along: int | None = None
        self.together = 1

    def phases(self) -> list[Loop]:
        *outer, last = [axis for axis, count in enumerate(self.windows) if count != 1]
        if not outer or outer[-1] not in self.op.lhs_spec[2:]:
            return super().phases()
        self.along = outer.pop()
        return self.nest(outer, [], partial(self._features, self.along, last))

    def _features(self, along: int, last: int) -> Iterator[Loop]:
        """A row of windows for a few features after the other: their part of the kernel stays in a cache."""
        vector, self.index[last] = self.loop("i", self.windows[last], Runs.LANES)
        low, high = whole_windows(self.window.dimensions[along], self.windows[along], self.base[along])
        width = several(high - low, self.target.max_register_sums)
        full = low + (high - low) // width * width
        # Windows that lie on the array as a whole, by several.
        for start, stop, together in ((0, low, 1), (low, full, width), (full, self.windows[along], 1)):
            if start < stop:
                loop, position = self.loop("i", (stop - start) // together)
                vector.body.append(loop)
                self.index[along], self.together = position * together + start, together
                self.add_iteration(loop, None, False)
        yield vector

    def add_tap(self, around: Loop, tap: Tap, first: Accumulated, step: Step) -> Accumulated:
        loop, position = self.loop("feature", self.base[self.feature])
        around.body.append(loop)
        arguments = tuple(self.carry(loop, each) for each in first)
        return self.hand_on(
            loop, step(arguments, dataclasses.replace(tap, index=put(tap.index, self.feature, position)))
        )

    def add_iteration(self, around: Loop, innermost: int | None, checked: bool) -> None:
        elements, along = self.elements(), self.along

        def step(held: Accumulated, tap: Tap) -> Accumulated:
            weight = elements.at(self.kernel, self.weight(tap))
            sums = []
            for number, total in enumerate(held):
                index = tap.index
                if along is not None:
                    far = number * self.window.dimensions[along].stride
                    index = put(index, along, index[along] + far)
                sums.append(self.sum(total, elements.at(self.array, index), weight))
            return tuple(sums)

        nothing = self.values.constant(0, self.dtype)
        totals = self.fold(around, (nothing,) * self.together, step, None, False)
        here = list(self.index)
        for number, total in enumerate(totals):
            if along is not None:
                self.index[along] = here[along] + number
            self.stores(around, self.node, total, self.windows)
        self.index = here

    def weight(self, tap: Tap) -> Index:
        return put(super().weight(tap), self.op.rhs_spec[1], tap.index[self.feature])
