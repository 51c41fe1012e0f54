"""Loops for convolutions: sums over windows, without copies of them.

* Depthwise ones: each feature of the result is made of one of the array.
* Those over all features, with features innermost: `tiled_convolutions`.
"""

from __future__ import annotations

from math import prod

from xarr.compiler.functions import apply_elementwise, multiply_add, register_dtype
from xarr.compiler.fusion.window_work import sum_dtype
from xarr.compiler.loop_ir.elements import Index
from xarr.compiler.loop_ir.loops import Affine, Kernel, Loop, in_threads
from xarr.compiler.loop_ir.scalars import DType, Value
from xarr.compiler.schedules.cpu import tiled_convolutions
from xarr.compiler.schedules.cpu.windows import Accumulated, Tap, WindowNest
from xarr.compiler.target import Target
from xarr.dtypes import BOOL
from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.ir.windows import Window, WindowDimension


def build(fusion: ops.Fusion, target: Target) -> Kernel:
    """The loop program of a group around one convolution."""
    (node,) = [node for node in fusion.computation.nodes if isinstance(node.op, ops.Convolution)]
    nest = (_Depthwise if _is_depthwise(node) else tiled_convolutions.TiledConvolution)(fusion, target, node)
    return Kernel(nest.inputs, nest.outputs, (), (), in_threads(nest.phases()))


def takes(node: Node, target: Target) -> bool:
    """Whether these loops are to compute a convolution: depthwise and of small windows, or over all features."""
    op = node.op
    assert isinstance(op, ops.Convolution)
    sizes = tuple(node.operands[1].shape[axis] for axis in op.rhs_spec[2:])
    if _is_depthwise(node):
        return (
            node.dtype not in BOOL
            and max(sizes, default=1) < target.min_wide_window
            and prod(sizes) <= target.max_window
        )
    return tiled_convolutions.takes(node) and node.shape[op.out_spec[1]] >= target.min_vector_features


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
