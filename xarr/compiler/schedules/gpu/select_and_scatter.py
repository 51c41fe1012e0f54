"""Scatters to elements that windows select, without atomics: the gradient of a pooling.

Two phases.  In the first a thread has a window, and notes the number of the element that the window selects, in the
smallest type that holds it.  In the second a thread has a few elements of the result, those that lie in the same
windows, and goes through these windows in row-major order: what several windows add to one element meets in the order
of the CPU, and has its bits.

One phase that selects again wherever an element needs it would move 5 % (float32) to 10 % (bfloat16) less, but compute
each selection about four times, for windows of 3×3 with steps of 2: more time than these bytes take.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

import numpy as np

from xarr.compiler.functions import register_dtype
from xarr.compiler.loop_ir.elements import Index, Source, compute_scalars, row_major
from xarr.compiler.loop_ir.loops import Affine, Loop, Store
from xarr.compiler.loop_ir.scalars import INT64, DType, Value
from xarr.compiler.schedules.gpu.grid_loops import GridLoops
from xarr.compiler.schedules.serial.serial_loops import Scratch, SerialLoops, sources_of
from xarr.compiler.schedules.serial.windows import element_of_window, select_if
from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.ir.types import Ints
from xarr.ir.windows import WindowDimension

#: The types of notes, and the numbers that each holds.
_NOTES = tuple((np.dtype(dtype), int(np.iinfo(dtype).max)) for dtype in (np.uint8, np.uint16, np.int64))


def add_phases(loops: SerialLoops, node: Node) -> Sequence[Source]:
    """A phase in which windows select, and one in which elements go through their windows."""
    assert isinstance(loops, GridLoops)
    selection = _Selection(loops, node)
    selection.add_selecting()
    target = loops.target
    strides, sizes = selection.op.window_strides, selection.op.window_dimensions
    if prod(strides) <= target.max_thread_results and prod(sizes) <= target.max_unrolled_terms:
        return selection.add_scattering_by_blocks()
    return selection.add_scattering()


class _Selection:
    """The phases of a `SelectAndScatter`."""

    def __init__(self, loops: GridLoops, node: Node) -> None:
        assert isinstance(node.op, ops.SelectAndScatter)
        self.loops, self.values, self.node, self.op = loops, loops.values, node, node.op
        self.array, self.source, self.initial = node.operands
        self.dimensions = node.op.window.dimensions
        #: What a window without elements notes: the number behind the last one.
        self.nothing = prod(node.op.window_dimensions)
        self.note_dtype: DType = next(dtype for dtype, most in _NOTES if self.nothing <= most)
        self.notes: Scratch

    def add_selecting(self) -> None:
        """Note for each window the number of the element that it selects."""
        number_dtype: DType = np.dtype(np.int32) if self.nothing < 2**31 else INT64

        def start(index: Index) -> list[Value]:
            zero = self.values.constant(0, register_dtype(self.array.dtype))
            return [zero, self.values.constant(self.nothing, number_dtype)]

        def step(own: Index, term: Index, held: Sequence[Value]) -> list[Value]:
            at, exists = element_of_window(self.loops, self.op.window, self.array.shape, own, term)
            best, number = held
            element = self.loops.at(self.array, at, exists)
            (stays,) = compute_scalars(self.op.select, (best, element), self.values)
            stays = stays & number.ne(self.nothing)
            here = row_major(self.op.window_dimensions, term).value(self.values).convert(number_dtype)
            new = stays.select(best, element), stays.select(number, here)
            return [select_if(exists, *pair) for pair in zip(new, held, strict=True)]

        def finish(index: Index, held: Sequence[Value]) -> list[Value]:
            return [held[1].convert(self.note_dtype)]

        shape, sizes, notes = self.source.shape, self.op.window_dimensions, [self.note_dtype]
        if self.nothing * len(self.op.select.nodes) <= self.loops.target.max_unrolled_terms:
            (self.notes,) = self.loops.fold_unrolled(shape, sizes, start, step, finish, notes)
        else:
            held_types = [self.array.dtype, number_dtype]
            (self.notes,) = self.loops.fold(shape, sizes, held_types, start, step, finish, notes)

    def join_source(self, held: Value, window: Index, number: Value | int, exists: Value | None) -> Value:
        """An element behind a window, of which it has a number: combined with the source if that window selected it."""
        note = self.notes.load(window, exists)
        is_selected = note.eq(number if isinstance(number, int) else number.convert(self.note_dtype))
        source = self.loops.at(self.source, window, exists)
        (joined,) = compute_scalars(self.op.scatter, (held, source), self.values)
        return (is_selected if exists is None else exists & is_selected).select(joined, held)

    # --- each element by itself --------------------------------------------------------------------------

    def add_scattering(self) -> Sequence[Source]:
        """A thread for each element, in loops over the windows that it may lie in."""
        counts = tuple(-(-each.size // each.stride) for each in self.dimensions)

        def step(own: Index, term: Index, held: Sequence[Value]) -> list[Value]:
            window, numbers, exists = [], [], None
            rows = zip(self.dimensions, own, term, counts, self.source.shape, strict=True)
            for dimension, at, each, count, windows in rows:
                if dimension.is_trivial:
                    window.append(at)
                    numbers.append(Affine())
                    continue
                padded = at + dimension.padding_low
                last = padded
                if dimension.stride > 1:
                    last = Affine(((padded.value(self.values) / dimension.stride, 1),))
                window.append(last + each + (1 - count))
                numbers.append(padded + window[-1] * -dimension.stride)
                exists = self.loops.elements.is_inside(window[-1], 0, windows, exists)
                exists = self.loops.elements.is_inside(numbers[-1], 0, dimension.size, exists)
            number = row_major(self.op.window_dimensions, tuple(numbers)).value(self.values)
            return [self.join_source(held[0], tuple(window), number, exists)]

        results = self.loops.fold(
            self.array.shape, counts, [self.array.dtype], lambda index: [self._start()], step
        )
        return sources_of(results)

    def _start(self) -> Value:
        return self.loops.at(self.initial, ())

    # --- elements that lie in the same windows -----------------------------------------------------------

    def add_scattering_by_blocks(self) -> Sequence[Source]:
        """A thread for as many elements along each axis as windows are apart: they lie in the same windows."""
        rows = zip(self.dimensions, self.array.shape, self.source.shape, strict=True)
        axes = [_BlockAxis(*row) for row in rows]
        (result,) = self.loops.results_of(self.node)

        def body(index: Index) -> list[Loop | Store]:
            parts: list[Loop | Store] = []
            for offsets in product(*[range(each.dimension.stride) for each in axes]):
                parts += self._store_element(result, axes, index, offsets)
            return parts

        self.loops.phase(tuple(each.blocks for each in axes), body)
        return sources_of([result])

    def _store_element(
        self, result: Scratch, axes: Sequence[_BlockAxis], block: Index, offsets: Ints
    ) -> Sequence[Loop | Store]:
        """Go through the windows of the element at these offsets in a block, and store it if it is one."""
        element, is_element = [], None
        for axis, at, offset in zip(axes, block, offsets, strict=True):
            index, is_inside = axis.element(at, offset)
            element.append(index)
            if not is_inside:
                is_element = self.loops.elements.is_inside(index, 0, axis.size, is_element)
        held = self._start()
        windows = [axis.windows_of(at, offset) for axis, at, offset in zip(axes, block, offsets, strict=True)]
        for each in product(*windows):
            window, numbers, are_inside = zip(*each, strict=True) if each else ((), (), ())
            exists = None
            for axis, at, is_inside in zip(axes, window, are_inside, strict=True):
                if not is_inside:
                    exists = self.loops.elements.is_inside(at, 0, axis.windows, exists)
            number = int(np.ravel_multi_index(numbers, self.op.window_dimensions)) if numbers else 0
            held = self.join_source(held, tuple(window), number, exists)
        store = result.store(tuple(element), held)
        return [store] if is_element is None else self.loops.only_if(is_element, [store])


class _BlockAxis:
    """Blocks along an axis: the elements of one lie in the window of its number and in those before it.

    Elements are counted with the padding before them, windows from 0.
    """

    def __init__(self, dimension: WindowDimension, size: int, windows: int) -> None:
        self.dimension, self.size, self.windows = dimension, size, windows
        self.first = dimension.padding_low // dimension.stride
        last = (size - 1 + dimension.padding_low) // dimension.stride
        self.blocks = last - self.first + 1

    def element(self, block: Affine, offset: int) -> tuple[Affine, bool]:
        """The index of an element of a block, and whether it is one in each block."""
        stride = self.dimension.stride
        start = self.first * stride + offset - self.dimension.padding_low
        return block * stride + start, start >= 0 and start + (self.blocks - 1) * stride < self.size

    def windows_of(self, block: Affine, offset: int) -> list[tuple[Affine, int, bool]]:
        """The windows in which such an element lies, its number in each, and whether each block has such a window."""
        numbers = range(offset, self.dimension.size, self.dimension.stride)
        firsts = [self.first - k for k in range(len(numbers))]
        rows = [
            (block + first, number, first >= 0 and first + self.blocks <= self.windows)
            for first, number in zip(firsts, numbers, strict=True)
        ]
        return rows[::-1]
