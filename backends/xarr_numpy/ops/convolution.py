"""Convolution: windows laid out as rows of a matrix, in blocks that fit in the cache, times the kernel.

Base dilation is taken apart first: windows that start at the same offset between two elements of the base meet
the same elements of the kernel, so each such class is a convolution of its own without holes.

Beside the result and the kernel in the type of the sums, no more than 100 MB are held at a time, or twice
what one window needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from math import gcd, prod
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from xarr.base.host.memory import pool
from xarr.compiler.plan.program_plan import Step
from xarr.dtypes import BOOL, COMPLEX, EXTENDED_FLOAT, FLOAT, INTEGER
from xarr.ir import ops
from xarr.ir.types import Ints, replace_at
from xarr.ir.windows import Window, WindowDimension
from xarr_numpy import blas, workers
from xarr_numpy.functions.conversion import convert
from xarr_numpy.ops.contraction import as_type, is_for_blas, view_of
from xarr_numpy.ops.table_rows import Rows

if TYPE_CHECKING:
    from xarr_numpy.program import Emitter

Array = np.ndarray[Any, Any]
Slices = tuple[slice, ...]

#: Bytes of windows, and of what they give, that are worked on at a time: a share of the cache.
_BLOCK: Final = 2 << 20
#: The same where one element after the other is added, which passes over them again and again.
_SLICES: Final = 1 << 19
#: Bytes of the base that one block may copy; windows with wider holes are taken element by element.
_REGION: Final = 64 << 20
#: Fewer windows than this are too short a run to lay out side by side.
_RUN: Final = 16


class Line(NamedTuple):
    """Windows along one dimension: element k of window w is at index first + w stride + k step.

    There are no holes between elements of the base; what is outside of the base adds nothing.
    """

    first: int
    stride: int
    step: int

    def reads(self, windows: int, elements: int) -> range:
        """All indices from the first that is read to the last."""
        last = self.first + (windows - 1) * self.stride + (elements - 1) * self.step
        return range(self.first, last + 1)

    def meeting(self, element: int, windows: int, size: int) -> tuple[slice, slice]:
        """The windows whose `element` lies in a base of this size, and the indices at which it does."""
        position = self.first + element * self.step
        low = max(0, -(position // self.stride))
        count = max(0, min(windows - 1, (size - 1 - position) // self.stride) + 1 - low)
        start = position + low * self.stride
        stop = start + (count - 1) * self.stride + 1 if count else start
        return slice(low, low + count), slice(start, stop, self.stride)


@dataclass(frozen=True)
class Problem:
    """One convolution without base dilation.

    * `base` (G, N, C, spatial …), `kernel` (G, O, C, spatial …), `result` (G, N, O, windows …) - G groups; the
      kernel is of the type in which sums are formed, the result is written to,
    * `lines` - how the windows lie along each spatial dimension,
    * `wraps` - whether the sums are exact integers, to be taken modulo 2**width.
    """

    base: Array
    kernel: Array
    result: Array
    lines: tuple[Line, ...]
    wraps: bool

    @property
    def dtype(self) -> np.dtype[Any]:
        """In which sums are formed."""
        dtype: np.dtype[Any] = self.kernel.dtype
        return dtype

    @property
    def windows(self) -> Ints:
        shape: Ints = self.result.shape
        return shape[3:]

    @property
    def elements(self) -> Ints:
        shape: Ints = self.kernel.shape
        return shape[3:]

    @property
    def reads(self) -> tuple[range, ...]:
        """The ranges that are read along each spatial dimension."""
        rows = zip(self.lines, self.windows, self.elements, strict=True)
        return tuple(line.reads(windows, elements) for line, windows, elements in rows)

    @property
    def is_inside(self) -> bool:
        """Whether every element that is read exists."""
        return all(
            reads.start >= 0 and reads.stop <= size
            for reads, size in zip(self.reads, self.base.shape[3:], strict=True)
        )

    def block(self, parts: Slices) -> Problem:
        """The part with these rows of the batch and these windows."""
        rows, *windows = parts
        lines = tuple(
            line._replace(first=line.first + part.start * line.stride)
            for line, part in zip(self.lines, windows, strict=True)
        )
        return replace(self, base=self.base[:, rows], result=self.result[:, rows, :, *windows], lines=lines)

    def blocks(self, shape: Ints) -> Iterator[Problem]:
        """All parts of this shape, batch first; the last ones may be smaller."""
        starts = [range(0, size, step) for size, step in zip(self.outer, shape, strict=True)]
        for corner in product(*starts):
            rows = zip(corner, shape, self.outer, strict=True)
            yield self.block(tuple(slice(start, min(start + step, size)) for start, step, size in rows))

    @property
    def outer(self) -> Ints:
        """The batch and the windows."""
        return (self.result.shape[1], *self.windows)

    def block_shape(self, each: int, limit: int) -> Ints:
        """Equal parts with as many whole last dimensions as fit, a window taking `each` elements of its own."""
        budget = max(1, limit // (each * self.dtype.itemsize))
        sizes = []
        for size in reversed(self.outer):
            parts = -(-size // min(size, budget))
            sizes.append(-(-size // parts))
            budget = max(1, budget // size)
        return tuple(reversed(sizes))

    def round_to_result(self, sums: Array) -> Array:
        """Sums in the type of the result."""
        return (
            sums.astype(np.int64).astype(self.result.dtype)
            if self.wraps
            else convert(sums, self.result.dtype)
        )


# --- from the operands to problems -------------------------------------------------------------------


def convolution(lhs: Array, rhs: Array, op: ops.Convolution, window: Window, shape: Ints) -> Array:
    """XLA's convolution."""
    if 0 in shape or not lhs.size or not rhs.size:
        return np.zeros(shape, op.dtype)
    # Some windows of a dilated base may meet none of its elements, and are not written to.
    result = pool.empty(shape, op.dtype)
    if max(op.lhs_dilation, default=1) > 1:
        result.fill(0)
    backwards = [dim for dim, back in zip(op.rhs_spec[2:], op.window_reversal, strict=True) if back]
    groups, by_batch = op.feature_group_count * op.batch_group_count, op.batch_group_count > 1
    base = _group(lhs.transpose(op.lhs_spec), 0 if by_batch else 1, groups)
    kernel = _group(np.flip(rhs, tuple(backwards)).transpose(op.rhs_spec), 0, groups)
    dtype = _working_type(lhs, rhs, op.dtype, prod(kernel.shape[2:]))
    out = _group(result.transpose(op.out_spec), 1, groups)
    wraps = lhs.dtype in INTEGER and dtype in FLOAT and op.dtype in INTEGER
    for problem in _without_holes(Problem(base, as_type(kernel, dtype), out, (), wraps), window.dimensions):
        _solve(_condense(problem))
    return result


def _group(x: Array, axis: int, groups: int) -> Array:
    """A view of `x` with an axis split into groups, which come first."""
    split = replace_at(x.shape, axis, groups, x.shape[axis] // groups)
    return np.moveaxis(np.reshape(x, split, copy=False), axis, 0)


def _working_type(lhs: Array, rhs: Array, result: np.dtype[Any], terms: int) -> np.dtype[Any]:
    """The type in which products and sums are formed.

    Integers whose sums a float holds exactly become floats, as BLAS knows no others.
    """
    operand = lhs.dtype
    if operand in BOOL and result in BOOL:
        # A sum of ones may round but never becomes zero.
        return np.dtype(np.float32)
    if operand in INTEGER and result in INTEGER:
        largest = terms * _magnitude(lhs) * _magnitude(rhs)
        if largest <= 1 << 53:
            return np.dtype(np.float32 if largest <= 1 << 24 else np.float64)
        return max(operand, result, key=lambda dtype: dtype.itemsize)
    narrow = EXTENDED_FLOAT | {np.dtype(np.float16)}
    return np.promote_types(
        *[np.dtype(np.float32) if dtype in narrow else dtype for dtype in (operand, result)]
    )


def _magnitude(x: Array) -> int:
    return max(int(x.max()), -int(x.min()))


def _without_holes(whole: Problem, dimensions: tuple[WindowDimension, ...]) -> Iterator[Problem]:
    """A problem for each class of windows of the dilated base, with the part of the kernel that they meet."""
    choices = [
        list(_classes(dimension, count)) for dimension, count in zip(dimensions, whole.windows, strict=True)
    ]
    for classes in product(*choices):
        windows, elements = (tuple(each[k] for each in classes) for k in range(2))
        kernel = whole.kernel[_last(elements)]
        if kernel.size:
            lines = tuple(each[2] for each in classes)
            yield replace(whole, kernel=kernel, result=whole.result[_last(windows)], lines=lines)


def _classes(window: WindowDimension, count: int) -> Iterator[tuple[slice, slice, Line]]:
    """Windows, the elements of the kernel that meet the base in them, and how those lie.

    Element k of window w is at w stride + k dilation - padding of the dilated base, and meets an element of
    the base where that is a multiple of base_dilation.  Windows that are equal modulo `period` agree on k,
    which is then determined modulo `every`.
    """
    holes, stride, dilation = window.base_dilation, window.stride, window.window_dilation
    common = gcd(holes, dilation)
    period, every = holes // gcd(holes, stride), holes // common
    for w in range(min(period, count)):
        offset = w * stride - window.padding_low
        if offset % common == 0:
            k = -(offset // common) * pow(dilation // common, -1, every) % every
            first = (offset + k * dilation) // holes
            line = Line(first, period * stride // holes, every * dilation // holes)
            yield slice(w, None, period), slice(k, None, every), line


def _condense(problem: Problem) -> Problem:
    """The problem without the positions that no window reads because all distances have a common divisor."""
    base, lines = problem.base, []
    rows = zip(problem.lines, problem.windows, problem.elements, strict=True)
    for axis, (line, windows, elements) in enumerate(rows, 3):
        divisor = gcd(line.stride if windows > 1 else 0, line.step if elements > 1 else 0)
        if divisor > 1:
            base = base[(slice(None),) * axis + (slice(line.first % divisor, None, divisor),)]
            line = Line(line.first // divisor, max(1, line.stride // divisor), max(1, line.step // divisor))
        lines.append(line)
    return replace(problem, base=base, lines=tuple(lines))


def _last(index: Iterable[Any]) -> Any:
    """An index of the last dimensions, the spatial ones."""
    return (..., *index)


# --- two ways to solve them --------------------------------------------------------------------------


def _solve(problem: Problem) -> None:
    groups, features, depth = problem.kernel.shape[:3]
    each = groups * (depth * prod(problem.elements) + features)
    shape = problem.block_shape(each, _BLOCK)
    region = _region_bytes(problem, shape)
    if _is_skipping(problem) or region > _REGION:
        _by_slices(problem)
        return
    last = _is_feature_last(problem)
    matrix = _kernel_matrix(problem.kernel, last)
    multiply = _rows_times if last else _times_columns
    blocks = list(problem.blocks(shape))
    multiplications = prod(problem.result.shape) * depth * prod(problem.elements) // len(blocks)

    def work(start: int, stop: int) -> None:
        scratch = BlockScratch(problem.dtype)
        for block in blocks[start:stop]:
            multiply(block, matrix, scratch)

    if region * workers.count() <= _REGION and blas.is_worth_sharing(len(blocks), multiplications):
        blas.share(work, len(blocks), multiplications)
    else:
        work(0, len(blocks))


class BlockScratch:
    """Memory for what one block after the other needs: a part of the base, and its windows."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self._dtype = dtype
        self._memory = {name: np.empty(0, dtype) for name in ("region", "windows")}

    def _empty(self, name: str, shape: Ints) -> Array:
        """An array whose contents are those of the block before."""
        size = prod(shape)
        if size > self._memory[name].size:
            self._memory[name] = pool.empty((size,), self._dtype)
        return self._memory[name][:size].reshape(shape)

    def windows(self, windows: Array) -> Array:
        """The windows laid out in order."""
        copy = self._empty("windows", windows.shape)
        np.copyto(copy, windows)
        return copy

    def zeros(self, shape: Ints) -> Array:
        zeros = self._empty("region", shape)
        zeros.fill(0)
        return zeros


def _is_skipping(problem: Problem) -> bool:
    """Whether the zeros of padding would make a NaN of an element of the kernel, instead of adding nothing."""
    return problem.dtype in FLOAT | COMPLEX and not (problem.is_inside or np.isfinite(problem.kernel).all())


def _region_bytes(problem: Problem, shape: Ints) -> int:
    """The most bytes of the base that a block of this shape must copy."""
    if problem.is_inside and problem.base.dtype == problem.dtype:
        return 0
    rows = zip(problem.lines, shape[1:], problem.elements, strict=True)
    extents = [len(line.reads(windows, elements)) for line, windows, elements in rows]
    groups, _, depth = problem.base.shape[:3]
    return int(groups * shape[0] * depth * prod(extents) * problem.dtype.itemsize)


def _is_feature_last(problem: Problem) -> bool:
    """Whether windows become rows, their features together; else columns, with the windows side by side.

    Whichever suits how features lie in memory: those of the base, or if there is one, those of the result.
    """
    if prod(problem.windows) < _RUN:
        return True
    x = problem.base if problem.base.shape[2] > 1 else problem.result
    others = [abs(stride) for stride, size in zip(x.strides[3:], x.shape[3:], strict=True) if size > 1]
    return bool(x.shape[2] > 1 and abs(x.strides[2]) <= min(others, default=0))


def _kernel_matrix(kernel: Array, last: bool) -> Array:
    """The kernel (G, O, C, k) as matrices (G, k C, O) if features are last, else (G, O, C k); a copy if need be."""
    groups, features = kernel.shape[:2]
    if not last:
        return np.ascontiguousarray(kernel).reshape(groups, features, -1)
    rows = np.moveaxis(kernel, 2, -1)
    columns = np.moveaxis(rows, 1, -1)
    shape = (groups, prod(columns.shape[1:-1]), features)
    view = view_of(columns, shape)
    if view is not None:
        return view
    # The copy keeps the order in which features lie, which reads memory in order.
    if abs(kernel.strides[1]) < abs(kernel.strides[2]):
        return np.ascontiguousarray(columns).reshape(shape)
    return np.swapaxes(np.ascontiguousarray(rows).reshape(groups, features, -1), 1, 2)


def _rows_times(block: Problem, matrix: Array, scratch: BlockScratch) -> None:
    """Windows (G, N w, k C) times the kernel (G, k C, O)."""
    base = _region(block, scratch, last=True)
    count, spatial = len(block.lines), base.strides[3:]
    windows = as_strided(
        base,
        (base.shape[0], base.shape[1], *block.windows, *block.elements, base.shape[2]),
        (
            *base.strides[:2],
            *_scale(spatial, block.lines, 1),
            *_scale(spatial, block.lines, 2),
            base.strides[2],
        ),
        writeable=False,
    )
    shape = (base.shape[0], prod(windows.shape[1 : 2 + count]), prod(windows.shape[2 + count :]))
    _multiply(block, _matrices(windows, shape, scratch), matrix, np.moveaxis(block.result, 2, -1))


def _matrices(windows: Array, shape: Ints, scratch: BlockScratch) -> Array:
    """Windows as matrices that BLAS takes, copied if need be."""
    view = view_of(windows, shape)
    return view if view is not None else scratch.windows(windows).reshape(shape)


def _times_columns(block: Problem, matrix: Array, scratch: BlockScratch) -> None:
    """The kernel (G, O, C k) times windows (N, G, C k, w)."""
    base = np.swapaxes(_region(block, scratch, last=False), 0, 1)
    spatial = base.strides[3:]
    windows = as_strided(
        base,
        (*base.shape[:3], *block.elements, *block.windows),
        (*base.strides[:3], *_scale(spatial, block.lines, 2), *_scale(spatial, block.lines, 1)),
        writeable=False,
    )
    shape = (*base.shape[:2], prod(windows.shape[2 : 3 + len(block.lines)]), prod(block.windows))
    _multiply(block, matrix, _matrices(windows, shape, scratch), np.swapaxes(block.result, 0, 1))


def _multiply(block: Problem, left: Array, right: Array, target: Array) -> None:
    """Let `target`, a view of the result, hold left times right."""
    shape = (*np.broadcast_shapes(left.shape[:-2], right.shape[:-2]), left.shape[-2], right.shape[-1])
    out = view_of(target, shape) if block.dtype == target.dtype else None
    if out is not None:
        np.matmul(left, right, out=out)
    else:
        target[...] = block.round_to_result(np.matmul(left, right)).reshape(target.shape)


def _scale(strides: Ints, lines: tuple[Line, ...], field: int) -> Ints:
    return tuple(stride * line[field] for stride, line in zip(strides, lines, strict=True))


def _region(block: Problem, scratch: BlockScratch, last: bool) -> Array:
    """The part of the base that is read, with zeros where there is none, in the type of the sums."""
    reads, sizes = block.reads, block.base.shape[3:]
    starts = [min(max(each.start, 0), size) for each, size in zip(reads, sizes, strict=True)]
    stops = [max(min(each.stop, size), start) for each, size, start in zip(reads, sizes, starts, strict=True)]
    part: Array = block.base[_last(map(slice, starts, stops))]
    if part.dtype != block.dtype:
        part = convert(part, block.dtype)
    if block.is_inside:
        return part
    groups, rows, depth = block.base.shape[:3]
    extents = tuple(map(len, reads))
    if last:
        zeros = np.moveaxis(scratch.zeros((rows, *extents, groups, depth)), (-2, -1), (0, 2))
    else:
        zeros = np.swapaxes(scratch.zeros((rows, groups, depth, *extents)), 0, 1)
    spans = zip(starts, stops, reads, strict=True)
    zeros[_last(slice(start - each.start, stop - each.start) for start, stop, each in spans)] = part
    return zeros


def _for_blas(x: Array) -> Array:
    """`x` or a copy of it, so that rows or columns lie together; NumPy multiplies others slowly."""
    return x if is_for_blas(x) else np.ascontiguousarray(x)


def _by_slices(problem: Problem) -> None:
    """One element of the kernel after the other, with all the windows in which it meets the base."""
    each = problem.kernel.shape[0] * max(problem.kernel.shape[1:3])
    for block in problem.blocks(problem.block_shape(each, _SLICES)):
        sums = np.zeros_like(block.result, block.dtype, subok=False)
        for element in np.ndindex(block.elements):
            rows = zip(block.lines, element, block.windows, block.base.shape[3:], strict=True)
            meeting = [line.meeting(*row) for line, *row in rows]
            windows, ranges = (tuple(pair[k] for pair in meeting) for k in range(2))
            part = block.base[_last(ranges)]
            if part.size:
                sums[_last(windows)] += _products(part, block.kernel[_last(element)])
        block.result[...] = block.round_to_result(sums)


def _products(base: Array, weights: Array) -> Array:
    """Sums over the features of base (G, N, C, …), times weights (G, O, C), as (G, N, O, …)."""
    base = convert(base, weights.dtype) if base.dtype != weights.dtype else base
    groups, rows, depth = base.shape[:3]
    matrix = np.moveaxis(base, 2, -1).reshape(groups, -1, depth)
    flat = np.matmul(_for_blas(matrix), np.swapaxes(weights, 1, 2))
    products: Array = np.moveaxis(flat.reshape(groups, rows, *base.shape[3:], -1), -1, 2)
    return products


# --- rows --------------------------------------------------------------------------------------------


def _convolution(emitter: Emitter, step: Step) -> str:
    op = step.op.expect(ops.Convolution)
    lhs, rhs = emitter.operands(step)
    window = op.window(emitter.type(step.inputs[1]))
    shape = emitter.result_type(step).shape
    return f"convolution({lhs}, {rhs}, {emitter.constant(op)}, {emitter.constant(window)}, {shape})"


SCOPE: Final[dict[str, Any]] = {"convolution": convolution}

ROWS: Final[Rows] = {ops.Convolution: _convolution}
