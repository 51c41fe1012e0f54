"""Loops for convolutions that matrices do not suit: sums over windows, without copies of them.

* Depthwise ones: each feature of the result is made of one of the array.
* Those of few terms or little work, with features innermost: the vector loop runs along the features of the
  result, and several neighbouring windows share what is read of the kernel.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from functools import partial
from math import prod

from xarr.compiler.functions import apply_elementwise, multiply_add, register_dtype
from xarr.compiler.fusion.window_work import sum_dtype, work
from xarr.compiler.loop_ir.elements import Index
from xarr.compiler.loop_ir.loops import Affine, Kernel, Loop, Runs, in_threads
from xarr.compiler.loop_ir.scalars import DType, Value
from xarr.compiler.schedules.cpu.window_loops import put, several
from xarr.compiler.schedules.cpu.windows import Accumulated, Step, Tap, WindowNest, whole_windows
from xarr.compiler.target import Target
from xarr.dtypes import BOOL
from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.ir.windows import Window, WindowDimension


def build(fusion: ops.Fusion, target: Target) -> Kernel:
    """The loop program of a group around one convolution."""
    (node,) = [node for node in fusion.computation.nodes if isinstance(node.op, ops.Convolution)]
    nest = (_Depthwise if _is_depthwise(node) else _Dense)(fusion, target, node)
    return Kernel(nest.inputs, nest.outputs, (), (), in_threads(nest.phases()))


def takes(node: Node, target: Target) -> bool:
    """Whether these loops are to compute a convolution: of small windows, depthwise or over all features.

    The latter if the kernel stays in a cache or all is small: a BLAS is better at others.
    """
    op = node.op
    assert isinstance(op, ops.Convolution)
    sizes = tuple(node.operands[1].shape[axis] for axis in op.rhs_spec[2:])
    if (
        node.dtype in BOOL
        or max(sizes, default=1) >= target.min_wide_window
        or prod(sizes) > target.max_window
    ):
        return False
    return _is_depthwise(node) or (_is_dense(node) and _suits_lanes(node, target))


def _suits_lanes(node: Node, target: Target) -> bool:
    """Whether a convolution over all features has enough of them, and a kernel that is near."""
    op, kernel = node.op, node.operands[1].tensor_type
    assert isinstance(op, ops.Convolution)
    is_little = work(node) * prod(node.shape) <= target.max_loop_products
    is_near = kernel.size * node.dtype.itemsize <= target.max_kernel_bytes
    is_wide = node.shape[op.out_spec[1]] >= target.min_vector_features and node.dtype.kind == "f"
    return (is_little or is_near) and is_wide


def _is_depthwise(node: Node) -> bool:
    """Whether each feature of the result is made of one feature of the array, all in one order of dimensions."""
    op = node.op
    assert isinstance(op, ops.Convolution)
    features = node.operands[0].shape[op.lhs_spec[1]]
    return (
        op.feature_group_count == features == node.shape[op.out_spec[1]]
        and op.lhs_spec == op.out_spec
        and max(op.lhs_dilation, default=1) == 1
    )


def _is_dense(node: Node) -> bool:
    """Whether each feature of the result is made of all those of the array, and they lie together in memory."""
    op = node.op
    assert isinstance(op, ops.Convolution)
    last = len(op.out_spec) - 1
    return (
        op.feature_group_count == op.batch_group_count == 1
        and op.lhs_spec == op.out_spec
        and op.out_spec[1] == last
        and max(op.lhs_dilation, default=1) == 1
        and sum_dtype(node.operands[0].dtype, node.dtype) == node.operands[0].dtype == node.dtype
    )


def _window_of(node: Node) -> Window:
    """The windows along all dimensions of the array, in its order."""
    op = node.op
    assert isinstance(op, ops.Convolution)
    dimensions = [WindowDimension(1)] * len(op.lhs_spec)
    for axis, each in zip(op.lhs_spec[2:], op.window(node.operands[1].tensor_type).dimensions, strict=True):
        dimensions[axis] = each
    return Window(tuple(dimensions))


class _Depthwise(WindowNest):
    def __init__(self, fusion: ops.Fusion, target: Target, node: Node) -> None:
        assert isinstance(node.op, ops.Convolution)
        self.node = node
        self.op = node.op
        self.array, self.kernel = node.operands
        self.dtype = sum_dtype(self.array.dtype, node.dtype)
        super().__init__(fusion, target, _window_of(node), self.array.shape, node.shape)

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
