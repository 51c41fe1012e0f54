"""Wide windows axis by axis: each result of one axis is an element of the windows along the next one.

A window of 31×31 elements so takes 62 steps instead of 961.  Only by operations that need no order, and not of complex
numbers, the signs of whose zeros tell it.  Narrow floats are added up in float32.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TypeAlias

from xarr.compiler.functions import register_dtype
from xarr.compiler.fusion.scan_windows import scan_axis
from xarr.compiler.loop_ir.elements import Index, Source
from xarr.compiler.loop_ir.loops import Affine
from xarr.compiler.loop_ir.scalars import Value
from xarr.compiler.schedules.gpu import scans
from xarr.compiler.schedules.gpu.grid_loops import GridLoops
from xarr.compiler.schedules.serial import windows
from xarr.compiler.schedules.serial.serial_loops import Scratch, SerialLoops, sources_of
from xarr.compiler.schedules.serial.windows import element_of_window, select_if
from xarr.dtypes import COMPLEX, accumulator_dtype
from xarr.ir import ops
from xarr.ir.computations import monoids
from xarr.ir.graph import Node
from xarr.ir.types import Ints
from xarr.ir.windows import Window, WindowDimension

#: The element at an index, which need not exist where a predicate is false, as what accumulates it.
_ElementAt: TypeAlias = Callable[[Index, "Value | None"], Value]


def reduce_window(loops: SerialLoops, node: Node) -> Sequence[Source]:
    """A phase for each axis of wide windows; running totals as `scans` has them, others one by one."""
    assert isinstance(loops, GridLoops) and isinstance(node.op, ops.ReduceWindow)
    if scan_axis(node) is not None:
        return scans.running_totals(loops, node)
    sizes = [size for size in node.op.window_dimensions if size > 1]
    is_wide = prod(sizes) >= loops.target.min_wide_window_elements and 2 * sum(sizes) <= prod(sizes)
    if is_wide and len(node.operands) == 2 and node.dtype not in COMPLEX and monoids(node.op.computation):
        return _AxisWindows(loops, node).add_phases()
    return windows.reduce_window(loops, node)


class _AxisWindows:
    """The phases of a reduction of windows, one for each axis along which they are wider than an element."""

    def __init__(self, loops: GridLoops, node: Node) -> None:
        assert isinstance(node.op, ops.ReduceWindow)
        self.loops, self.node, self.op = loops, node, node.op
        self.array, self.initial = node.operands
        monoid = monoids(node.op.computation)
        assert monoid is not None
        self.monoid = monoid[0]()
        self.held = accumulator_dtype(node.dtype)

    def add_phases(self) -> Sequence[Source]:
        """Along the innermost axis first; what comes last begins with the initial value."""
        axes = [axis for axis, each in enumerate(self.op.window.dimensions) if not each.is_trivial]
        shape, elements = self.array.shape, self._element
        for axis in reversed(axes):
            phase = _AxisPhase(self, shape, elements, axis)
            shape, results = phase.shape, phase.add(axis == axes[0])
            elements = results.load
        return sources_of([results])

    def _element(self, index: Index, predicate: Value | None = None) -> Value:
        return self.loops.convert(self.loops.at(self.array, index, predicate), self.node.dtype, self.held)

    def start(self, is_last: bool) -> Value:
        """The value that a window begins with: the initial value once, else the neutral one."""
        if is_last:
            return self.loops.convert(self.loops.at(self.initial, ()), self.node.dtype, self.held)
        return self.loops.values.constant(self.monoid.identity(self.held), register_dtype(self.held))


class _AxisPhase:
    """The windows along one axis of what an array has."""

    def __init__(self, reduction: _AxisWindows, shape: Ints, elements: _ElementAt, axis: int) -> None:
        self.reduction, self.elements, self.axis, self.before = reduction, elements, axis, shape
        own = reduction.op.window.dimensions[axis]
        self.window = Window(tuple(own if k == axis else WindowDimension(1) for k in range(len(shape))))
        self.shape = (*shape[:axis], own.output_size(shape[axis]), *shape[axis + 1 :])
        self.size = own.size

    def add(self, is_last: bool) -> Scratch:
        """Add the phase, in which a thread has a window."""
        reduction, loops = self.reduction, self.reduction.loops
        dtype = reduction.node.dtype if is_last else reduction.held

        def step(own: Index, number: Index, held: Sequence[Value]) -> list[Value]:
            numbers = tuple(number[0] if k == self.axis else Affine() for k in range(len(own)))
            at, exists = element_of_window(loops, self.window, self.before, own, numbers)
            new = loops.apply(reduction.monoid, reduction.held, held[0], self.elements(at, exists))
            return [select_if(exists, new, held[0])]

        (results,) = loops.fold(
            self.shape,
            (self.size,),
            [reduction.held],
            lambda index: [reduction.start(is_last)],
            step,
            lambda index, held: [loops.convert(held[0], reduction.held, dtype)],
            [dtype],
        )
        return results
