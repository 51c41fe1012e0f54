"""Loops for convolutions in which each feature is a group of its own: sums over windows, without matrices."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

from xarr.compiler.elements import Lower, register_dtype
from xarr.compiler.loops import Affine, Kernel, Loop
from xarr.compiler.scalars import DType, Value
from xarr.compiler.windows import Gathered, Tap, WindowNest
from xarr.dtypes import FLOAT
from xarr.ir import ops
from xarr.ir.graph import Graph, Node
from xarr.ir.windows import Window, WindowDimension


def build(fusion: ops.Fusion, lower: Lower) -> Kernel:
    """The loop program of a group around one depthwise convolution."""
    (node,) = [node for node in fusion.computation.nodes if isinstance(node.op, ops.Convolution)]
    nest = _Depthwise(fusion, lower, node)
    return Kernel(nest.inputs, nest.outputs, (), (), nest.phases())


def is_depthwise(node: Node) -> bool:
    """Whether each feature of the result is made of one feature of the array, all in one order of dimensions."""
    op = node.op
    assert isinstance(op, ops.Convolution)
    features = node.operands[0].shape[op.lhs_spec[1]]
    return (
        op.feature_group_count == features == node.shape[op.out_spec[1]]
        and op.lhs_spec == op.out_spec
        and max(op.lhs_dilation, default=1) == 1
    )


def window_of(node: Node) -> Window:
    """The windows along all dimensions of the array, in its order."""
    op = node.op
    assert isinstance(op, ops.Convolution)
    found = [WindowDimension(1)] * len(op.lhs_spec)
    for axis, each in zip(op.lhs_spec[2:], op.window(node.operands[1].tensor_type).dimensions, strict=True):
        found[axis] = each
    return Window(tuple(found))


def sum_dtype(operand: DType, result: DType) -> DType:
    """In which products and sums are formed: the wider of the two, float32 for narrower floats."""
    wide = [np.dtype(np.float32) if d in FLOAT and d.itemsize < 4 else d for d in (operand, result)]
    if all(dtype.kind in "iu" for dtype in wide):
        return max(wide, key=lambda dtype: dtype.itemsize)
    return np.promote_types(*wide)


def with_kernels_in_order(graph: Graph, is_wanted: Callable[[Node], bool]) -> Graph:
    """The same, the kernels of depthwise convolutions transposed so that neighbouring features lie together.

    Only where neighbouring elements of the result belong to different features.
    """
    new: dict[Node, Node] = {node: node for node in graph.parameters}
    for node in graph.nodes:
        operands = tuple(new[operand] for operand in node.operands)
        if isinstance(node.op, ops.Convolution) and is_wanted(node) and _crosses_features(node):
            output, *others = node.op.rhs_spec
            turned = node.rebuilt((operands[1],), ops.Transpose((*others, output)))
            places = range(len(others))
            op = dataclasses.replace(node.op, rhs_spec=(len(others), *places))
            new[node] = node.rebuilt((operands[0], turned), op)
        else:
            same = all(a is b for a, b in zip(operands, node.operands, strict=True))
            new[node] = node if same else node.rebuilt(operands)
    return Graph(graph.parameters, [new[node] for node in graph.results], graph.name)


def _crosses_features(node: Node) -> bool:
    op, last = node.op, max((axis for axis, size in enumerate(node.shape) if size != 1), default=None)
    assert isinstance(op, ops.Convolution)
    return last == op.out_spec[1] and op.rhs_spec[0] != len(op.rhs_spec) - 1


class _Depthwise(WindowNest):
    def __init__(self, fusion: ops.Fusion, lower: Lower, node: Node) -> None:
        assert isinstance(node.op, ops.Convolution)
        self.node = node
        self.op = node.op
        self.array, self.kernel = node.operands
        self.dtype = sum_dtype(self.array.dtype, node.dtype)
        super().__init__(fusion, lower, window_of(node), self.array.shape, node.shape)

    def turn(self, around: Loop, innermost: int | None, checked: bool) -> None:
        elements = self.elements()

        def step(held: Gathered, tap: Tap) -> Gathered:
            (total,) = held
            element = self._wide(self.array, elements.at(self.array, tap.place, tap.predicate))
            weight = self._wide(self.kernel, elements.at(self.kernel, self._place(tap)))
            is_float = self.dtype.kind == "f"
            return (element.fma(weight, total) if is_float else total + element * weight,)

        nothing = self.values.constant(0, self.dtype)
        (total,) = self.fold(around, (nothing,), step, innermost, checked)
        self.stores(around, self.node, self._converted(total, self.dtype, self.node.dtype), self.windows)

    def _place(self, tap: Tap) -> tuple[Affine, ...]:
        """Which element of the kernel meets an element of the array."""
        output, _, *spatial = self.op.rhs_spec
        found = [Affine()] * len(self.op.rhs_spec)
        found[output] = tap.place[self.op.lhs_spec[1]]
        for axis, along in zip(spatial, self.op.lhs_spec[2:], strict=True):
            dimension, number = self.window.dimensions[along], tap.number[along]
            found[axis] = number * -1 + (dimension.size - 1) if dimension.window_reversal else number
        return tuple(found)

    def _wide(self, node: Node, element: Value) -> Value:
        return self._converted(element, node.dtype, self.dtype)

    def _converted(self, value: Value, old: DType, new: DType) -> Value:
        if old == new:
            return value
        found = self.lower(ops.Convert(new), [old], [value])
        assert found is not None and found.dtype == register_dtype(new), f"no loop converts {old} to {new}"
        return found
