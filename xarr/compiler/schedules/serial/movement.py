"""Moves whose index is computed: no loops, only another index for each element.

`xarr.compiler.loop_ir.elements` has the moves whose index needs no division and no clamping.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce
from operator import or_

import numpy as np

from xarr.compiler.functions import register_dtype
from xarr.compiler.loop_ir.computed_indices import clamp_index
from xarr.compiler.loop_ir.elements import Index, Source, compute_scalars, row_major, split_axes, strides
from xarr.compiler.loop_ir.loops import Affine, Buffer, Kernel, Store
from xarr.compiler.loop_ir.scalars import Value, constant_of
from xarr.compiler.schedules.serial.serial_loops import SerialLoops
from xarr.compiler.schedules.serial.windows import remove_holes
from xarr.dtypes import element_type
from xarr.ir import ops
from xarr.ir.graph import Graph, Node


def reshape(loops: SerialLoops, node: Node) -> Sequence[Source]:
    """The element as far from the first one as in the result."""
    (operand,) = node.operands
    if split_axes(operand.shape, node.shape) is not None:
        return ()

    def source(index: Index, predicate: Value | None) -> Value:
        position = row_major(node.shape, index).value(loops.values)
        rows = zip(operand.shape, strides(operand.shape), strict=True)
        at = [Affine((((position / stride).rem(size), 1),)) for size, stride in rows]
        return loops.at(operand, tuple(at), predicate)

    return [source]


def pad(loops: SerialLoops, node: Node) -> Sequence[Source]:
    """The element of the array, or the padding value beside it and in holes."""
    op = node.op.expect(ops.Pad)
    array, filler = node.operands
    if not any(op.interior):
        return ()

    def source(index: Index, predicate: Value | None) -> Value:
        at, exists = [], predicate
        for own, low, holes, size in zip(index, op.low, op.interior, array.shape, strict=True):
            inside = loops.elements.is_inside(own, low, low + (size - 1) * (holes + 1) + 1, exists)
            position, exists = remove_holes(loops, own + -low, holes + 1, inside)
            at.append(position)
        fill = loops.at(filler, ())
        return fill if exists is None else exists.select(loops.at(array, tuple(at), exists), fill)

    return [source]


def bitcast_convert(loops: SerialLoops, node: Node) -> Sequence[Source]:
    """A part of the bits of an element, or those of several elements, the first of which has the lowest."""
    (operand,) = node.operands
    old, new = (element_type(each.dtype).bits for each in (operand, node))
    if old == new:
        return ()
    kind = np.dtype(f"u{max(operand.dtype.itemsize, node.dtype.itemsize)}")

    def bits_at(index: Index, predicate: Value | None) -> Value:
        element = loops.at(operand, index, predicate)
        return element.bitcast(np.dtype(f"u{element.dtype.itemsize}")).convert(kind)

    def source(index: Index, predicate: Value | None) -> Value:
        if old > new:
            bits = bits_at(index[:-1], predicate) >> (index[-1] * new).value(loops.values, kind)
            bits = bits & (2**new - 1)
        else:
            parts = [bits_at((*index, Affine() + k), predicate) << k * old for k in range(new // old)]
            bits = reduce(or_, parts)
        return bits.convert(np.dtype(f"u{node.dtype.itemsize}")).bitcast(register_dtype(node.dtype))

    return [source]


def clamped_starts(loops: SerialLoops, starts: Sequence[Node], lasts: Sequence[int]) -> list[Affine]:
    """Start indices, brought to where the window fits; `lasts` are the greatest of these."""
    return [_clamped_start(loops, *row) for row in zip(starts, lasts, strict=True)]


def _clamped_start(loops: SerialLoops, start: Node, last: int) -> Affine:
    if not last:
        return Affine()
    number = loops.at(start, ())
    if number.op == "constant":
        return Affine(constant=min(max(int(constant_of(number)), 0), last))
    return Affine(((clamp_index(number, last), 1),))


def dynamic_slice(loops: SerialLoops, node: Node) -> Sequence[Source]:
    """The element as far from the start as in the result."""
    operand, *starts = node.operands
    lasts = [whole - size for whole, size in zip(operand.shape, node.shape, strict=True)]

    def source(index: Index, predicate: Value | None) -> Value:
        rows = zip(index, clamped_starts(loops, starts, lasts), strict=True)
        return loops.at(operand, tuple(own + start for own, start in rows), predicate)

    return [source]


def dynamic_update_slice(loops: SerialLoops, node: Node) -> Sequence[Source]:
    """The element of the update where it lies, else of the array around it."""
    array, update, *starts = node.operands
    lasts = [whole - size for whole, size in zip(array.shape, update.shape, strict=True)]

    def source(index: Index, predicate: Value | None) -> Value:
        rows = zip(index, clamped_starts(loops, starts, lasts), strict=True)
        own = tuple(at + start * -1 for at, start in rows)
        inside = predicate
        for at, size, last in zip(own, update.shape, lasts, strict=True):
            inside = loops.elements.is_inside(at, 0, size, inside) if last else inside
        if inside is predicate or inside is None:
            return loops.at(update, own, predicate)
        return inside.select(loops.at(update, own, inside), loops.at(array, index, predicate))

    return [source]


def update_in_place(loops: SerialLoops, node: Node) -> Kernel:
    """The program that stores an update where it lies in a result that holds the array already.

    loops: of the operands of the node but for the array, which the program does not read.
    """
    array, update, *starts = node.operands
    out = Buffer("out0", loops.inputs[0].dtype, array.tensor_type.size, "out")
    lasts = [whole - size for whole, size in zip(array.shape, update.shape, strict=True)]

    def shift(index: Index) -> Index:
        if isinstance(node.op, ops.StridedUpdate):
            apart = zip(index, node.op.strides, node.op.starts, strict=True)
            return tuple(own * stride + start for own, stride, start in apart)
        rows = zip(index, clamped_starts(loops, starts, lasts), strict=True)
        return tuple(own + start for own, start in rows)

    def store(index: Index) -> Sequence[Store]:
        offset = row_major(array.shape, shift(index))
        return [Store(out, offset, loops.at(update, index))]

    loops.label = node.op.called
    loops.phase(update.shape, store)
    return Kernel(tuple(loops.inputs), (out,), (), (), loops.phases)


def concatenate_in_order(loops: SerialLoops, node: Node) -> Kernel:
    """The program that stores one operand after the other, each where it lies in the result."""
    op = node.op.expect(ops.Concatenate)
    out = Buffer("out0", register_dtype(node.dtype), node.tensor_type.size, "out")
    start = 0

    def store(operand: Node, start: int, index: Index) -> Sequence[Store]:
        shifted = [at + start * (axis == op.dimension) for axis, at in enumerate(index)]
        return [Store(out, row_major(node.shape, tuple(shifted)), loops.at(operand, index))]

    loops.label = op.called
    for operand in node.operands:
        loops.phase(operand.shape, partial(store, operand, start))
        start += operand.shape[op.dimension]
    return Kernel(tuple(loops.inputs), (out,), (), (), loops.phases)


def map_elements(loops: SerialLoops, node: Node) -> Sequence[Source]:
    """The result of a computation of scalars on the elements of all operands."""
    op = node.op.expect(ops.Map)

    def source(index: Index, predicate: Value | None) -> Value:
        elements = [loops.at(operand, index, predicate) for operand in node.operands]
        return compute_scalars(op.computation, elements, loops.values)[0]

    return [source]


def call(loops: SerialLoops, node: Node) -> Sequence[Source]:
    """The results of a function or of a group, whose nodes are added in its stead."""
    results = node.op.graphs[0].inline(*node.operands)
    loops.add(Graph(loops.graph.parameters, results))
    return [partial(loops.at, result) for result in results]
