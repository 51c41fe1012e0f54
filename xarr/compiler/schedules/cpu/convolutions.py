"""Loops for convolutions: sums over windows, without copies of them.

* Depthwise ones: each feature of the result is made of one of the array.
* Those over all features, which lie side by side in the result: tiles of it are summed up in registers.

    for each position of the result:                            in parallel
        for each few registers of features:
            for each lane of a register:                        vector
                for each few images of the batch, or neighbouring windows:
                    for each element of a window that lies on the array, and each feature of that:
                        a sum for each image or window and register

Kernels too large for a cache are gone through once: then the loop over registers is the outermost.  The order of the
sums is that in which elements of the kernel lie in memory.  The gradient of a convolution by its kernel is one too,
whose windows are as large as the array.  An array with holes is read in as many ways as there are holes, and one more:
results of each way are made of other elements of the kernel, and no hole is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise, product
from math import prod
from typing import NamedTuple

from xarr.compiler.functions import apply_elementwise, multiply_add, register_dtype
from xarr.compiler.fusion.window_work import sum_dtype
from xarr.compiler.loop_ir.elements import Index
from xarr.compiler.loop_ir.loops import Affine, Kernel, Loop, in_threads
from xarr.compiler.loop_ir.scalars import DType, Value
from xarr.compiler.schedules.cpu.window_loops import WindowLoops, register_parts, several, tile_sums
from xarr.compiler.schedules.cpu.windows import Accumulated, Tap, WindowNest, whole_windows
from xarr.compiler.target import Target
from xarr.dtypes import BOOL
from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.ir.types import replace_at
from xarr.ir.windows import Window, WindowDimension


def build(fusion: ops.Fusion, target: Target) -> Kernel:
    """The loop program of a group around one convolution."""
    (node,) = [node for node in fusion.computation.nodes if isinstance(node.op, ops.Convolution)]
    nest = (_Depthwise if _is_depthwise(node) else _Tiled)(fusion, target, node)
    return Kernel(nest.inputs, nest.outputs, (), (), in_threads(nest.phases()))


def takes(node: Node, target: Target) -> bool:
    """Whether these loops are to compute a convolution: depthwise and of small windows, or over all features."""
    op = node.op.expect(ops.Convolution)
    sizes = tuple(node.operands[1].shape[axis] for axis in op.rhs_spec[2:])
    if _is_depthwise(node):
        return (
            node.dtype not in BOOL
            and max(sizes, default=1) < target.min_wide_window
            and prod(sizes) <= target.max_window
        )
    return has_tiles(node)


def _is_depthwise(node: Node) -> bool:
    """Whether each feature of the result is made of one feature of the array, all in one order of dimensions."""
    op = node.op.expect(ops.Convolution)
    features = node.operands[0].shape[op.lhs_spec[1]]
    return (
        op.feature_group_count == features == node.shape[op.out_spec[1]]
        and op.lhs_spec == op.out_spec
        and max(op.lhs_dilation, default=1) == 1
    )


def _window_of(node: Node) -> Window:
    """The windows along all dimensions of the array, in its order."""
    op = node.op.expect(ops.Convolution)
    dimensions = [WindowDimension(1)] * len(op.lhs_spec)
    for axis, each in zip(op.lhs_spec[2:], op.window(node.operands[1].tensor_type).dimensions, strict=True):
        dimensions[axis] = each
    return Window(tuple(dimensions))


class _Depthwise(WindowNest):
    def __init__(self, fusion: ops.Fusion, target: Target, node: Node) -> None:
        self.node = node
        self.op = node.op.expect(ops.Convolution)
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


# --- tiles of results over all features ---------------------------------------------------------------------


def has_tiles(node: Node) -> bool:
    """Whether tiles can compute a convolution: of all features, which lie side by side in the result."""
    op = node.op.expect(ops.Convolution)
    array, kernel = (operand.dtype for operand in node.operands)
    dimensions = op.window(node.operands[1].tensor_type).dimensions
    return (
        op.feature_group_count == op.batch_group_count == 1
        and op.out_spec[1] == len(op.out_spec) - 1
        and sum_dtype(array, node.dtype) == array == kernel == node.dtype
        and node.dtype.kind == "f"
        and all(each.base_dilation == 1 or each.stride == each.window_dilation == 1 for each in dimensions)
    )


class _Way(NamedTuple):
    """Positions along a dimension that meet the same elements of a kernel.

    They are `step` apart from `first` on, `extent` of them; element `number` of their `window`, which is None if they
    meet none, is `start + number * step` of the kernel.  `alike` such ways differ in `first` and `start` alone, each
    by so much from the one before.
    """

    first: int
    step: int
    extent: int
    window: WindowDimension | None
    start: int
    alike: int = 1
    first_apart: int = 0
    start_apart: int = 0


class _Cut(NamedTuple):
    """Of `extent` results those from `start` to `stop` are computed by so many at a time, the others one by one."""

    start: int
    stop: int
    extent: int
    height: int


class _TermIndex(NamedTuple):
    """A term: where it is along dimensions of the kernel and, for the first window of a tile, of the array."""

    kernel: Mapping[int, Affine]
    array: Mapping[int, Affine]

    def extend(self, kernel_axis: int, kernel: Affine, array_axis: int, array: Affine) -> _TermIndex:
        """It with its index along one more dimension of each."""
        return _TermIndex({**self.kernel, kernel_axis: kernel}, {**self.array, array_axis: array})


def ways(dimension: WindowDimension, size: int) -> list[_Way]:
    """The positions along a dimension of the result, of that size: several ways where the array has holes."""
    step = dimension.base_dilation
    if step == 1:
        return [_Way(0, 1, size, dimension, 0)]
    separate = []
    for first in range(min(step, size)):
        start = (dimension.padding_low - first) % step
        count = -(-(dimension.size - start) // step)
        low = (dimension.padding_low - first - start) // step
        window = WindowDimension(count, padding_low=low) if count > 0 else None
        separate.append(_Way(first, step, -(-(size - first) // step), window, start))
    return _alike(separate)


def _alike(separate: list[_Way]) -> list[_Way]:
    """One way instead of several that are alike, if all are."""
    apart = {(y.first - x.first, y.start - x.start) for x, y in pairwise(separate)}
    if len(apart) != 1 or len({(way.extent, way.window) for way in separate}) != 1:
        return separate
    return [separate[0]._replace(alike=len(separate), first_apart=1, start_apart=next(iter(apart))[1])]


class _Tiled(WindowLoops):
    """The loops of a group around a convolution."""

    def __init__(self, fusion: ops.Fusion, target: Target, node: Node) -> None:
        super().__init__(fusion, target)
        assert isinstance(node.op, ops.Convolution)
        self.node, self.op = node, node.op
        self.array, self.kernel = node.operands
        self.dimensions = node.op.window(self.kernel.tensor_type).dimensions
        self.sums = tile_sums(self.graph, target)
        batch, self.features, *spatial = node.op.out_spec
        #: For each dimension of the result that windows slide along the one of `dimensions`.
        self.sliding = {axis: number for number, axis in enumerate(spatial)}
        #: The dimension along which results of a tile are neighbours, besides features.
        self.along = batch
        if node.shape[batch] < target.min_matrix_rows and spatial:
            self.along = max((batch, *spatial), key=lambda axis: (self._rows_along(axis), axis))
        #: How dimensions are gone through in the present phase, and where the loops are along those of the result.
        self.way: dict[int, _Way] = {}
        self.at: dict[int, Affine] = {}
        #: Which of the ways that are alike it is.
        self.which: dict[int, Affine] = {}

    def _rows_along(self, axis: int) -> int:
        """Results along a dimension that a tile may hold, up to as many as it can."""
        count = self.node.shape[axis]
        if axis in self.sliding:
            each = self.dimensions[self.sliding[axis]]
            holes = each.base_dilation
            base = self.array.shape[self.op.lhs_spec[2 + self.sliding[axis]]]
            low, high = (0, count // holes) if holes > 1 else whole_windows(each, count, base)
            count = high - low
        return min(count, self.target.max_tile_rows)

    def phases(self) -> list[Loop]:
        every = [ways(self.dimensions[k], self.node.shape[axis]) for axis, k in self.sliding.items()]
        phases: list[Loop] = []
        for each in product(*every):
            self.way = dict(zip(self.sliding, each, strict=True))
            phases.extend(self._phases())
        return phases

    def _phases(self) -> Iterator[Loop]:
        """The loops over all positions of the present ways."""
        rows = self._rows()
        most = min(self.sums // rows.height, self.target.max_tile_rows)
        lanes = self.target.register_bytes // self.node.dtype.itemsize
        outer = [axis for axis in range(len(self.node.shape)) if axis not in (self.along, self.features)]
        extents = [self._extent(axis) for axis in outer] + [way.alike for way in self.way.values()]
        # A large kernel is read once, a small one stays in a cache.
        last = self.kernel.tensor_type.nbytes <= 2 * self.target.cache_bytes
        for part in register_parts(self.node.shape[self.features], lanes, most):
            phase, at = self.flat([*extents, part.blocks] if last else [part.blocks, *extents])
            block, positions = (at[-1], at[:-1]) if last else (at[0], at[1:])
            self.at = dict(zip(outer, positions, strict=False))
            self.which = dict(zip(self.way, positions[len(outer) :], strict=True))
            vector, features = self.lanes(part, block)
            phase.body.append(vector)
            for loop, first, together in self._groups(vector, rows):
                self._tile(loop, first, together, features)
            yield phase

    def _extent(self, axis: int) -> int:
        return self.way[axis].extent if axis in self.way else self.node.shape[axis]

    def _rows(self) -> _Cut:
        """The cut of the dimension along a tile: by several windows that lie on the array as a whole."""
        low, high = 0, self._extent(self.along)
        window = self.way[self.along].window if self.along in self.sliding else None
        if window is not None:
            low, high = whole_windows(window, high, self._base(self.along))
        height = several(high - low, min(self.target.max_tile_rows, self.sums))
        return _Cut(low, (high - low) // height * height + low, self._extent(self.along), height)

    def _groups(self, around: Loop, rows: _Cut) -> Iterator[tuple[Loop, Affine, int]]:
        """Loops inside `around` over all of them: each with where it is, and how many are together."""
        if rows.start < rows.stop:
            loop, position = self.loop("i", (rows.stop - rows.start) // rows.height)
            around.body.append(loop)
            yield loop, position * rows.height + rows.start, rows.height
        single = rows.start + rows.extent - rows.stop
        if not single:
            return
        loop, position = self.loop("i", single)
        around.body.append(loop)
        if rows.start and rows.stop < rows.extent:  # what is in front of the others, and what is behind
            behind = loop.index + (rows.stop - rows.start)
            chosen = loop.index.lt(rows.start).select(loop.index, behind)
            self.ranges[chosen] = (0, rows.extent - 1)
            position = Affine(((chosen, 1),))
        elif rows.stop < rows.extent:
            position = position + rows.stop
        yield loop, position, 1

    def _base(self, axis: int) -> int:
        """The size of the array along a dimension of the result."""
        return self.array.shape[self.op.lhs_spec[2 + self.sliding[axis]]]

    # --- tiles -------------------------------------------------------------------------------------------

    def _tile(self, around: Loop, first: Affine, height: int, features: Sequence[Affine]) -> None:
        """Sum up and store the results at so many indices along the tile, from the first one on, of a few features."""
        self.at[self.along] = first
        indices = [self._result(first + k, feature) for k in range(height) for feature in features]
        nothing = self.values.constant(0, self.node.dtype)
        totals = self._sums(
            around, self._terms(), height, features, [nothing] * len(indices), _TermIndex({}, {})
        )
        for index, total in zip(indices, totals, strict=True):
            self.index = list(index)
            self.stores(around, self.node, total, self.node.shape)

    def _result(self, along: Affine, feature: Affine) -> Index:
        """The index of a result."""
        index = [Affine()] * len(self.node.shape)
        for axis, at in {**self.at, self.along: along}.items():
            way = self.way.get(axis)
            index[axis] = (
                at if way is None else at * way.step + self.which[axis] * way.first_apart + way.first
            )
        index[self.features] = feature
        return tuple(index)

    def _terms(self) -> list[int]:
        """The dimensions of the kernel that a sum goes through, as they lie in memory."""
        return sorted(self.op.rhs_spec[1:])

    def _size(self, axis: int) -> int:
        """Elements of a sum along a dimension of the kernel, at most."""
        if axis == self.op.rhs_spec[1]:
            return self.kernel.shape[axis]
        window = self.way[self._slides_along(axis)].window
        return 0 if window is None else window.size

    def _slides_along(self, axis: int) -> int:
        """The dimension of the result that belongs to a spatial one of the kernel."""
        return self.op.out_spec[self.op.rhs_spec.index(axis)]

    def _sums(
        self,
        around: Loop,
        axes: Sequence[int],
        height: int,
        features: Sequence[Affine],
        totals: Sequence[Value],
        term: _TermIndex,
    ) -> list[Value]:
        """The totals, and the products of all terms along these dimensions of the kernel."""
        if not axes:
            return self._products(term, height, features, totals)
        if not prod(map(self._size, axes)):
            return list(totals)
        if len(axes) == 2 and self._lie_together(*axes):
            loop, inner = self._loop_along_both(around, axes[0], axes[1], term)
            inner_axes: Sequence[int] = ()
        else:
            loop, kernel, array = self._loop_along(around, axes[0])
            inner = term.extend(axes[0], kernel, self._array_axis(axes[0]), array)
            inner_axes = axes[1:]
        arguments = [self.carry(loop, total) for total in totals]
        # Long sums are sums of sums: their errors grow slowly.
        sizes = [self._size(axis) for axis in axes]
        is_cut = bool(inner_axes) and prod(sizes) > self.target.max_chain_terms >= prod(sizes[1:])
        nothing = self.values.constant(0, self.node.dtype)
        starts = [nothing] * len(totals) if is_cut else arguments
        sums = self._sums(loop, inner_axes, height, features, starts, inner)
        if is_cut:
            sums = [total + each for total, each in zip(arguments, sums, strict=True)]
        return list(self.hand_on(loop, sums))

    def _array_axis(self, axis: int) -> int:
        """The dimension of the array that belongs to one of the kernel."""
        return self.op.lhs_spec[self.op.rhs_spec.index(axis)]

    def _lie_together(self, axis: int, feature: int) -> bool:
        """Whether all features of neighbouring elements of a window lie side by side, as in the array."""
        op = self.op
        if self.kernel.shape[feature] == 1:  # no index steps along a dimension of one element
            return False
        if feature != op.rhs_spec[1] or axis != feature - 1 or op.lhs_spec[1] != self._array_axis(axis) + 1:
            return False
        if self.array not in self.sources or self.kernel not in self.sources:
            return False
        slides = self._slides_along(axis)
        way, window = self.way[slides], self.dimensions[self.sliding[slides]]
        return way.step == window.window_dilation == 1 and not window.window_reversal

    def _loop_along_both(
        self, around: Loop, axis: int, feature: int, term: _TermIndex
    ) -> tuple[Loop, _TermIndex]:
        """One loop over terms along two dimensions of the kernel that lie together, and where they are."""
        slides, count = self._slides_along(axis), self.kernel.shape[feature]
        window = self.way[slides].window
        assert window is not None
        start = self.at[slides] * window.stride + -window.padding_low
        first, taps = self.on_base(window, start, self._base(slides))
        most = window.size * count
        loop, position = self.loop("feature", most)
        if not isinstance(taps, int):
            terms = taps * count
            loop.extent = terms.lt(most).select(terms, most)
        else:
            loop.extent = taps * count
        around.body.append(loop)
        term = term.extend(axis, first, self._array_axis(axis), start + first)
        return loop, term.extend(feature, position, self.op.lhs_spec[1], position)

    def _loop_along(self, around: Loop, axis: int) -> tuple[Loop, Affine, Affine]:
        """A loop over terms along a dimension of the kernel: where they are there, and in the array."""
        if axis == self.op.rhs_spec[1]:
            loop, position = self.loop("feature", self.kernel.shape[axis])
            around.body.append(loop)
            return loop, position, position
        slides = self._slides_along(axis)
        way, size = self.way[slides], self.kernel.shape[axis]
        assert way.window is not None
        start = self.at[slides] * way.window.stride + -way.window.padding_low
        loop, number = self.taps(around, way.window, start, self._base(slides))
        kernel = number * way.step + self.which[slides] * way.start_apart + way.start
        if self.dimensions[self.sliding[slides]].window_reversal:
            kernel = kernel * -1 + (size - 1)
        return loop, kernel, start + number * way.window.window_dilation

    def _products(
        self, term: _TermIndex, height: int, features: Sequence[Affine], totals: Sequence[Value]
    ) -> list[Value]:
        """The totals and one product more in each."""
        elements, results = self.elements(), iter(totals)
        axes = range(len(self.node.shape))
        kernel = [term.kernel.get(axis, Affine()) for axis in axes]
        images = self.at.get(self.op.out_spec[0], Affine())
        array = [term.array.get(axis, images) for axis in axes]
        weights = []
        for feature in features:
            kernel[self.op.rhs_spec[0]] = feature
            weights.append(elements.at(self.kernel, tuple(kernel)))
        axis, step = self._along_array()
        sums = []
        for number in range(height):
            element = elements.at(self.array, replace_at(tuple(array), axis, array[axis] + number * step))
            sums += [element.fma(weight, next(results)) for weight in weights]
        return sums

    def _along_array(self) -> tuple[int, int]:
        """The dimension of the array along which windows of a tile are neighbours, and how far they are apart."""
        if self.along not in self.sliding:
            return self.op.lhs_spec[0], 1
        window = self.way[self.along].window
        return self.op.lhs_spec[2 + self.sliding[self.along]], 1 if window is None else window.stride
