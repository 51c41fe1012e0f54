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
from functools import partial

from xarr.compiler.elements import Index, Lower, row_major
from xarr.compiler.loops import Affine, Kernel, Loop, Store
from xarr.compiler.scalars import Value
from xarr.compiler.window_loops import Ints, WindowLoops, computed, own_index
from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.ir.windows import Window, WindowDimension

#: Windows at an end that are worth a vector loop.
_MANY = 4

#: (what there is, index of an element of the array, whether it exists) -> what there is then.
Step = Callable[[Value, Index, "Value | None"], Value]


def build(fusion: ops.Fusion, lower: Lower) -> Kernel:
    """The loop program of a group around one reduction of windows."""
    (node,) = [node for node in fusion.computation.nodes if isinstance(node.op, ops.ReduceWindow)]
    return _Reduction(fusion, lower, node).kernel()


class WindowNest(WindowLoops):
    """Loops over the windows of `window` on an array of this shape, one element of the domain for each."""

    def __init__(self, fusion: ops.Fusion, lower: Lower, window: Window, base: Ints) -> None:
        super().__init__(fusion, lower)
        self.domain = fusion.domain
        self.window = window
        self.base = base
        self.axes = [axis for axis, size in enumerate(self.domain) if size != 1]
        self.index: list[Affine] = [Affine()] * len(self.domain)

    def window_values(self, around: Loop, innermost: int | None, checked: bool) -> None:
        """Compute and store the results of one turn; elements along `innermost` are written out."""
        raise NotImplementedError

    def kernel(self) -> Kernel:
        last = self.axes[-1] if self.axes else None
        slides = last is not None and not self.window.dimensions[last].is_trivial
        outer = self.axes[:-1] if last is not None else []
        if slides or last is None:
            phases = self._phases(outer, [], last)
        else:
            # One dimension stays a loop, so that what its windows have in common is computed once.
            inner = outer[1:][-1:]
            phases = self._phases(outer[: len(outer) - len(inner)], inner, last)
        return Kernel(self.inputs, self.outputs, (), (), phases)

    def _phases(self, outer: list[int], inner: list[int], last: int | None) -> list[Loop]:
        if not outer and last is not None:
            return list(self._innermost(last))
        first, places = self.flat([self.domain[axis] for axis in outer] or [1])
        for axis, place in zip(outer, places, strict=False):
            self.index[axis] = place
        around = first
        for axis in inner:
            loop, self.index[axis] = self.loop("i", self.domain[axis])
            around.body.append(loop)
            around = loop
        if last is None:
            self.window_values(around, None, False)
        else:
            around.body.extend(self._innermost(last))
        return [first]

    def _innermost(self, axis: int) -> Iterator[Loop]:
        """The loops over the windows along the innermost dimension."""
        dimension, extent = self.window.dimensions[axis], self.domain[axis]
        if dimension.is_trivial:
            loop, self.index[axis] = self.loop("i", extent, vector=True)
            self.window_values(loop, None, False)
            yield loop
            return
        low, high = inside(dimension, extent, self.base[axis])
        for start, stop in ((0, low), (low, high), (high, extent)):
            if start < stop:
                within = (start, stop) == (low, high)
                vector = within or stop - start >= _MANY
                loop, place = self.loop("i", stop - start, vector)
                self.index[axis] = place + start
                self.window_values(loop, axis if vector else None, not within)
                yield loop

    def start(self, axis: int) -> Affine:
        """Where the present window begins."""
        dimension = self.window.dimensions[axis]
        return self.index[axis] * dimension.stride + -dimension.padding_low

    def fold(self, around: Loop, first: Value, step: Step, innermost: int | None, checked: bool) -> Value:
        """What is there after `step` has seen every element of the present window that lies on the array."""
        sliding = [axis for axis, each in enumerate(self.window.dimensions) if not each.is_trivial]
        place = [*self.index[: len(self.base)]]
        found = self._fold(around, sliding, place, [], first, step, innermost if checked else None, innermost)
        return found

    def _fold(
        self,
        around: Loop,
        axes: list[int],
        place: list[Affine],
        taps: list[Affine],
        first: Value,
        step: Step,
        checked: int | None,
        innermost: int | None,
    ) -> Value:
        if not axes:
            return self._step(tuple(place), first, step, checked)
        axis, *others = axes
        dimension, start = self.window.dimensions[axis], self.start(axis)
        deeper = partial(self._fold, step=step, checked=checked, innermost=innermost)
        if axis == innermost:
            for tap in range(dimension.size):
                place[axis] = start + tap * dimension.window_dilation
                first = deeper(around, others, place, [*taps, Affine((), tap)], first)
            return first
        loop, tap_number, place[axis] = self.taps(around, dimension, start, self.base[axis])
        argument = self.carry(loop, first)
        following = deeper(loop, others, place, [*taps, tap_number], argument)
        (result,) = self.hand_on(loop, [following])
        return result

    def _step(self, place: Index, first: Value, step: Step, checked: int | None) -> Value:
        if checked is None:
            return step(first, place, None)
        inside = self.elements().inside(place[checked], 0, self.base[checked], None)
        return inside.select(step(first, place, inside), first)

    def stores(self, around: Loop, node: Node, value: Value) -> None:
        """Store the group's results, given the element of `node` at the present index."""
        self.sources[node] = lambda index, predicate: value
        elements = self.elements()
        for result, buffer in zip(self.graph.results, self.outputs, strict=True):
            index = own_index(result.shape, self.domain, tuple(self.index))
            around.body.append(Store(buffer, row_major(result.shape, index), elements.at(result, index)))


class _Reduction(WindowNest):
    def __init__(self, fusion: ops.Fusion, lower: Lower, node: Node) -> None:
        assert isinstance(node.op, ops.ReduceWindow)
        super().__init__(fusion, lower, node.op.window, node.operands[0].shape)
        self.node = node
        self.computation = node.op.computation

    def window_values(self, around: Loop, innermost: int | None, checked: bool) -> None:
        array, initial = self.node.operands
        elements = self.elements()

        def step(first: Value, index: Index, predicate: Value | None) -> Value:
            element = elements.at(array, index, predicate)
            (found,) = computed(self.computation, (first, element), self.values, self.lower)
            return found

        total = self.fold(around, elements.at(initial, ()), step, innermost, checked)
        self.stores(around, self.node, total)


def inside(dimension: WindowDimension, windows: int, size: int) -> tuple[int, int]:
    """The windows along a dimension from the first to the last that lie on the array as a whole."""
    low = max(0, -(-dimension.padding_low // dimension.stride))
    room = size - dimension.dilated_size + dimension.padding_low
    high = min(windows, room // dimension.stride + 1)
    return (low, high) if low < high else (0, 0)
