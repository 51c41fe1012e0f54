"""Loops that reduce windows.

    for each window, but the innermost dimension:                   in parallel
        for each window of the innermost dimension:                 vector
            for each element of the window that lies on the array:  in row-major order
                combine it with what there is

If the windows slide along the innermost dimension as well, those that stick out at its ends run apart from
those that do not, whose elements are written out one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import TypeAlias

from xarr.compiler.loop_ir.elements import Index, compute_scalars
from xarr.compiler.loop_ir.loops import Affine, Kernel, Loop, Runs, in_threads, lanes_if
from xarr.compiler.loop_ir.scalars import Value
from xarr.compiler.schedules.cpu.window_loops import WindowLoops
from xarr.compiler.target import Target
from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.ir.types import Ints
from xarr.ir.windows import Window, WindowDimension

#: What is accumulated from the elements of a window.
Accumulated: TypeAlias = "tuple[Value, ...]"


@dataclass(frozen=True)
class Tap:
    """An element of a window: its index in the array and in the window, and whether it exists, None for always."""

    index: Index
    number: Index
    predicate: Value | None = None


#: (what there is, an element) -> what there is when it has joined.
Step = Callable[[Accumulated, Tap], Accumulated]


def build(fusion: ops.Fusion, target: Target) -> Kernel:
    """The loop program of a group around one reduction of windows."""
    (node,) = [node for node in fusion.computation.nodes if isinstance(node.op, ops.ReduceWindow)]
    nest = _Reduction(fusion, target, node)
    return Kernel(nest.inputs, nest.outputs, (), (), in_threads(nest.phases()))


def takes(node: Node, target: Target) -> bool:
    """Whether these loops are to compute a reduction of windows: small ones, of an array without holes."""
    op = node.op.expect(ops.ReduceWindow)
    has_holes = max(op.base_dilations, default=1) > 1
    return (
        not has_holes
        and are_small(op.window_dimensions, target)
        and op.window.size <= target.max_reduced_window
    )


def are_small(sizes: Ints, target: Target) -> bool:
    """Whether windows of these sizes have so few elements that reading each is the fastest way."""
    return max(sizes, default=1) < target.min_wide_window and 1 < prod(sizes) <= target.max_window


class WindowNest(WindowLoops):
    """Loops over the windows of `window` on an array of the shape `base`; there are `windows` of them."""

    def __init__(self, fusion: ops.Fusion, target: Target, window: Window, base: Ints, windows: Ints) -> None:
        super().__init__(fusion, target)
        self.window = window
        self.base = base
        self.windows = windows
        self.index: list[Affine] = [Affine()] * len(windows)

    def add_iteration(self, around: Loop, innermost: int | None, checked: bool) -> None:
        """Compute and store the results of one iteration.

        Elements along the dimension `innermost` are written out, and where `checked` looked at one by one.
        """
        raise NotImplementedError

    @property
    def innermost(self) -> int | None:
        """The last dimension that has more than one window."""
        return max((axis for axis, count in enumerate(self.windows) if count != 1), default=None)

    @property
    def slides(self) -> bool:
        """Whether windows differ along the innermost dimension by more than their position."""
        last = self.innermost
        return last is not None and not self.window.dimensions[last].is_trivial

    def phases(self) -> list[Loop]:
        """The loops."""
        last = self.innermost
        if last is None:
            once, _ = self.loop("once", 1)
            self.add_iteration(once, None, False)
            return [once]
        outer = [axis for axis, count in enumerate(self.windows[:last]) if count != 1]
        # One dimension stays a loop, so that what its windows have in common is computed once.
        inner = [] if self.slides else outer[1:][-1:]
        return self.nest(outer[: len(outer) - len(inner)], inner, partial(self._innermost, last))

    def nest(self, outer: list[int], inner: list[int], loops: Callable[[], Iterator[Loop]]) -> list[Loop]:
        """`loops` inside one loop over the dimensions `outer` and a loop for each of `inner`."""
        if not outer:
            return list(loops())
        first, indices = self.flat([self.windows[axis] for axis in outer])
        for axis, at in zip(outer, indices, strict=True):
            self.index[axis] = at
        around = first
        for axis in inner:
            loop, self.index[axis] = self.loop("i", self.windows[axis])
            around.body.append(loop)
            around = loop
        around.body.extend(loops())
        return [first]

    def _innermost(self, axis: int) -> Iterator[Loop]:
        """The loops over the windows along the innermost dimension."""
        dimension, extent = self.window.dimensions[axis], self.windows[axis]
        if not self.slides:
            loop, self.index[axis] = self.loop("i", extent, Runs.LANES)
            self.add_iteration(loop, None, False)
            yield loop
            return
        low, high = whole_windows(dimension, extent, self.base[axis])
        for start, stop in ((0, low), (low, high), (high, extent)):
            if start < stop:
                within = (start, stop) == (low, high)
                vector = within or stop - start >= self.target.min_edge_windows
                loop, position = self.loop("i", stop - start, lanes_if(vector))
                self.index[axis] = position + start
                self.add_iteration(loop, axis if vector else None, not within)
                yield loop

    def start(self, axis: int) -> Affine:
        """Where the present window begins."""
        dimension = self.window.dimensions[axis]
        return self.index[axis] * dimension.stride + -dimension.padding_low

    def fold(
        self, around: Loop, first: Accumulated, step: Step, innermost: int | None, checked: bool
    ) -> Accumulated:
        """The accumulated values after `step` has seen every element of the present window that lies on the array."""
        sliding = [axis for axis, each in enumerate(self.window.dimensions) if not each.is_trivial]
        if checked and innermost is not None:
            step = self._with_bounds(step, innermost)
        tap = Tap(tuple(self.index), (Affine(),) * len(self.index))
        return self._fold(around, sliding, tap, first, step, innermost)

    def _fold(
        self, around: Loop, axes: list[int], tap: Tap, first: Accumulated, step: Step, innermost: int | None
    ) -> Accumulated:
        if not axes:
            return self.add_tap(around, tap, first, step)
        axis, *others = axes
        dimension, start = self.window.dimensions[axis], self.start(axis)
        if axis == innermost:
            for k in range(dimension.size):
                each = self._move_tap(tap, axis, start, Affine((), k))
                first = self._fold(around, others, each, first, step, innermost)
            return first
        loop, number = self.taps(around, dimension, start, self.base[axis])
        arguments = tuple(self.carry(loop, each) for each in first)
        tap = self._move_tap(tap, axis, start, number)
        return self.hand_on(loop, self._fold(loop, others, tap, arguments, step, innermost))

    def add_tap(self, around: Loop, tap: Tap, first: Accumulated, step: Step) -> Accumulated:
        """The accumulated values when one element of the window has joined."""
        return step(first, tap)

    def _move_tap(self, tap: Tap, axis: int, start: Affine, number: Affine) -> Tap:
        """The element with this number along an axis."""
        index, numbers = list(tap.index), list(tap.number)
        index[axis] = start + number * self.window.dimensions[axis].window_dilation
        numbers[axis] = number
        return Tap(tuple(index), tuple(numbers), tap.predicate)

    def _with_bounds(self, step: Step, axis: int) -> Step:
        """`step` for elements that may lie beside the array along one dimension."""

        def check(first: Accumulated, tap: Tap) -> Accumulated:
            inside = self.elements().is_inside(tap.index[axis], 0, self.base[axis], tap.predicate)
            following = step(first, replace(tap, predicate=inside))
            return tuple(inside.select(new, old) for new, old in zip(following, first, strict=True))

        return check


class _Reduction(WindowNest):
    def __init__(self, fusion: ops.Fusion, target: Target, node: Node) -> None:
        assert isinstance(node.op, ops.ReduceWindow)
        super().__init__(fusion, target, node.op.window, node.operands[0].shape, node.shape)
        self.node = node
        self.computation = node.op.computation

    def add_iteration(self, around: Loop, innermost: int | None, checked: bool) -> None:
        array, initial = self.node.operands
        elements = self.elements()

        def step(first: Accumulated, tap: Tap) -> Accumulated:
            element = elements.at(array, tap.index, tap.predicate)
            return compute_scalars(self.computation, (*first, element), self.values)

        (total,) = self.fold(around, (elements.at(initial, ()),), step, innermost, checked)
        self.stores(around, self.node, total, self.windows)


def whole_windows(dimension: WindowDimension, windows: int, size: int) -> tuple[int, int]:
    """The windows along a dimension from the first to the last that lie on the array as a whole."""
    low = max(0, -(-dimension.padding_low // dimension.stride))
    reach = size - dimension.dilated_size + dimension.padding_low
    high = min(windows, reach // dimension.stride + 1)
    return (low, high) if low < high else (0, 0)
