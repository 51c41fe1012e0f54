"""Reductions of windows, and scatters to what windows choose.

Every window goes through its elements in row-major order.  An element that lies in padding, or in a hole of a dilated
array, is not read, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xarr.compiler.functions import register_dtype
from xarr.compiler.loop_ir.elements import Index, Source, compute_scalars, row_major
from xarr.compiler.loop_ir.loops import Affine, Store, load
from xarr.compiler.loop_ir.scalars import INT64, Value
from xarr.compiler.schedules.serial.serial_loops import SerialLoops, Step, sources_of, tensor_types
from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.ir.types import Ints
from xarr.ir.windows import Window, WindowDimension, dilate_size

#: What a window that has no element chooses.
NOTHING = -1


def reduce_window(loops: SerialLoops, node: Node) -> Sequence[Source]:
    """The initial values, and then all elements of each window."""
    assert isinstance(node.op, ops.ReduceWindow)
    types = tensor_types(node.type)
    start, step = start_and_step(loops, node)
    dtypes = [type.dtype for type in types]
    return sources_of(loops.fold(types[0].shape, node.op.window_dimensions, dtypes, start, step))


def start_and_step(loops: SerialLoops, node: Node) -> tuple[Callable[[Index], Sequence[Value]], Step]:
    """The initial values of a window, and what they are after one element more."""
    op = node.op.expect(ops.ReduceWindow)
    arrays, initial = node.operands[: len(node.operands) // 2], node.operands[len(node.operands) // 2 :]

    def start(index: Index) -> list[Value]:
        return [loops.at(each, ()) for each in initial]

    def step(own: Index, number: Index, held: Sequence[Value]) -> list[Value]:
        at, exists = element_of_window(loops, op.window, arrays[0].shape, own, number)
        elements = [loops.at(each, at, exists) for each in arrays]
        new = compute_scalars(op.computation, [*held, *elements], loops.values)
        return [select_if(exists, *pair) for pair in zip(new, held, strict=True)]

    return start, step


def select_and_scatter(loops: SerialLoops, node: Node) -> Sequence[Source]:
    """Four phases: no window has chosen; all choose; the initial value everywhere; the source to what was chosen."""
    op = node.op.expect(ops.SelectAndScatter)
    array, source, initial = node.operands
    rank = len(array.shape)

    def nothing(index: Index) -> list[Value]:
        return [loops.values.constant(0, register_dtype(array.dtype)), loops.values.constant(NOTHING, INT64)]

    def choose(own: Index, number: Index, before: Sequence[Value]) -> list[Value]:
        at, exists = element_of_window(loops, op.window, array.shape, own, number)
        held, where = before
        element = loops.at(array, at, exists)
        (stays,) = compute_scalars(op.select, (held, element), loops.values)
        stays = stays & where.ge(0)
        new = stays.select(held, element), stays.select(where, row_major(array.shape, at).value(loops.values))
        return [select_if(exists, *pair) for pair in zip(new, before, strict=True)]

    _, position = loops.fold(source.shape, op.window_dimensions, [array.dtype, INT64], nothing, choose)
    (result,) = loops.results_of(node)

    def scatter(index: Index) -> list[Store]:
        where = position.load(index)
        last = result.buffer.size - 1
        inside = where.lt(0).select(0, where)
        at = Affine(((inside.gt(last).select(last, inside), 1),))
        old = load(loops.values, result.buffer, at)
        (new,) = compute_scalars(op.scatter, (old, loops.at(source, index)), loops.values)
        return [Store(result.buffer, at, where.ge(0).select(new, old))]

    loops.phase(array.shape, lambda index: [result.store(index, loops.at(initial, ()))])
    loops.phase(source.shape, scatter, range(rank))
    return sources_of([result])


def select_if(condition: Value | None, new: Value, old: Value) -> Value:
    """`new` where a condition holds, None for always; else `old`."""
    return new if condition is None else condition.select(new, old)


def element_of_window(
    loops: SerialLoops, window: Window, shape: Ints, index: Index, number: Index
) -> tuple[Index, Value | None]:
    """The index in an array of an element of a window, and whether it exists, None for always."""
    at, exists = [], None
    rows = zip(window.dimensions, shape, index, number, strict=True)
    for dimension, size, own, element in rows:
        position, exists = _position(loops, dimension, size, own, element, exists)
        at.append(position)
    return tuple(at), exists


def _position(
    loops: SerialLoops,
    dimension: WindowDimension,
    size: int,
    window: Affine,
    element: Affine,
    predicate: Value | None,
) -> tuple[Affine, Value | None]:
    """The index of the element along one dimension; the predicate says whether it exists along those before."""
    if dimension.window_reversal:
        element = element * -1 + (dimension.size - 1)
    position = window * dimension.stride + element * dimension.window_dilation + -dimension.padding_low
    if dimension.base_dilation == 1 and lies_inside(dimension, size):
        return position, predicate
    extent = (size - 1) * dimension.base_dilation + 1
    exists = loops.elements.is_inside(position, 0, extent, predicate)
    return remove_holes(loops, position, dimension.base_dilation, exists)


def lies_inside(dimension: WindowDimension, size: int) -> bool:
    """Whether no window along a dimension of so many elements sticks out of these."""
    last = (dimension.output_size(size) - 1) * dimension.stride + dimension.dilated_size - 1
    return dimension.padding_low <= 0 and last - dimension.padding_low < dilate_size(
        size, dimension.base_dilation
    )


def remove_holes(loops: SerialLoops, position: Affine, step: int, exists: Value) -> tuple[Affine, Value]:
    """Of a position in a dilated array that in the array, and whether it is one and not a hole."""
    if step == 1:
        return position, exists
    number = position.value(loops.values)
    return Affine(((number / step, 1),)), exists & number.rem(step).eq(0)
