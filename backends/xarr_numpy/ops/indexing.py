"""Gather, scatter and dynamic slices: flat positions of all windows at once, then whole-array moves.

A scatter whose windows cannot overlap in part, such as one into rows, moves blocks: the last dimensions of
the operand that each window covers whole.  Duplicates are combined in order, by a compiled loop over all updates
or in rounds, the k-th update of every target in round k, so that any computation runs on whole arrays; what few
targets have more than the others, by operators on scalars.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from xarr.compiler.plan.program_plan import Step
from xarr.dtypes import COMPLEX
from xarr.ir import ops
from xarr.ir.graph import Graph
from xarr.ir.ops.indexing import Windows
from xarr.ir.types import Ints, replace_at
from xarr_numpy import engine
from xarr_numpy.ops import zero_signs
from xarr_numpy.ops.reductions import ufunc_of
from xarr_numpy.ops.table_rows import Rows

if TYPE_CHECKING:
    from xarr_numpy.program import Emitter

Array = np.ndarray[Any, Any]
Function = Callable[..., tuple[Any, ...]]

_LARGEST: Final = np.iinfo(np.int64).max


# --- where the windows lie ---------------------------------------------------------------------------


def start_vectors(indices: Array, windows: Windows) -> Array:
    """The index vectors as int64, components first: shape (K, *batch)."""
    if indices.dtype == np.uint64:
        indices = np.minimum(indices, np.uint64(_LARGEST))
    indices = np.asarray(indices).astype(np.int64, copy=False)
    if windows.index_vector_dim == indices.ndim:
        return indices[None]
    return np.moveaxis(indices, windows.index_vector_dim, 0)


def strides_of(shape: Ints) -> Ints:
    """Row-major strides in elements."""
    return tuple(accumulate(reversed(shape[1:]), int.__mul__, initial=1))[::-1] if shape else ()


def first_elements(starts: Array, windows: Windows, strides: Ints) -> Array:
    """The flat position of the first element of each window, in the shape of the batch."""
    rank = len(windows.batch_shape)
    parts = [
        start if strides[dim] == 1 else start * strides[dim]
        for start, dim in zip(starts, windows.index_map, strict=True)
        if strides[dim]
    ]
    for dim, position in windows.batching:
        parts.append(_extend_axis(np.arange(windows.batch_shape[position]) * strides[dim], position, rank))
    total = sum(parts[1:], start=parts[0]) if parts else np.zeros((), np.int64)
    return np.broadcast_to(total, windows.batch_shape)


def _extend_axis(values: Array, axis: int, rank: int) -> Array:
    return values.reshape([-1 if dim == axis else 1 for dim in range(rank)])


def offsets(sizes: Ints, strides: Ints) -> Array:
    """The flat distance of each element of a window from its first."""
    total = np.zeros((1,) * len(sizes), np.int64)
    for dim, (size, stride) in enumerate(zip(sizes, strides, strict=True)):
        total = total + _extend_axis(np.arange(size) * stride, dim, len(sizes))
    return total.reshape(sizes)


def blocks(windows: Windows) -> tuple[int, int, Ints]:
    """The blocks of windows that lie together in memory: the last dimensions, which each covers whole.

    The first dimension of a block, its number of elements, and the strides of the dimensions in blocks.
    """
    dim = len(windows.sizes)
    while dim and windows.sizes[dim - 1] == windows.operand_shape[dim - 1] and dim - 1 in windows.kept_dims:
        dim -= 1
    # Starts in the dimensions of a block are 0, whatever the stride.
    strides = strides_of(windows.operand_shape[:dim]) + (0,) * (len(windows.sizes) - dim)
    return dim, prod(windows.operand_shape[dim:]), strides


def block_rows(starts: Array, windows: Windows) -> tuple[Array, int]:
    """The blocks of each window, in the shape of the batch and one more dimension; and a block's size."""
    dim, size, strides = blocks(windows)
    first = first_elements(starts, windows, strides)
    inside = offsets(windows.sizes[:dim], strides[:dim]).reshape(-1)
    return first[..., None] + inside if inside.size > 1 else first[..., None], size


# --- gather ------------------------------------------------------------------------------------------


def gather(operand: Array, indices: Array, windows: Windows) -> Array:
    """XLA's gather: starts are clamped, so that windows lie in the operand."""
    if 0 in windows.sizes or 0 in windows.batch_shape:
        return np.zeros(windows.windowed_shape, operand.dtype)
    starts = start_vectors(indices, windows)
    axis = _taken_axis(windows)
    if axis is not None:
        elements = np.take(operand, starts[0], axis=axis, mode="clip")
        batch = len(windows.batch_shape)
        elements = np.moveaxis(elements, range(axis, axis + batch), range(batch))
    else:
        rows, size = block_rows(np.clip(starts, 0, _last(windows)), windows)
        elements = np.take(np.reshape(operand, (-1, size)), rows, axis=0, mode="clip")
    elements = elements.reshape(windows.batch_shape + windows.window_shape)
    return np.moveaxis(elements, range(elements.ndim), windows.batch_dims + windows.window_dims)


def _last(windows: Windows) -> Array:
    return np.array(windows.last_starts, np.int64).reshape(-1, *(1 for _ in windows.batch_shape))


def _taken_axis(windows: Windows) -> int | None:
    """The axis along which the gather is a np.take of single slices, if it is one."""
    if len(windows.index_map) != 1 or windows.batching:
        return None
    (axis,) = windows.index_map
    wanted = replace_at(windows.operand_shape, axis, 1)
    return axis if windows.sizes == wanted else None


# --- scatter -----------------------------------------------------------------------------------------


def placed_updates(indices: Array, updates: Sequence[Array], windows: Windows) -> tuple[Array, list[Array]]:
    """The block that each update goes to, in order, and the updates as rows of blocks: what fits in whole.

    Blocks of one element are no rows but elements.
    """
    starts = start_vectors(indices, windows)
    fits = _fitting(starts, windows)
    rows, size = block_rows(starts, windows)
    order = windows.batch_dims + windows.window_dims
    flat = [
        np.transpose(each, order).reshape((*rows.shape, size) if size != 1 else rows.shape)
        for each in updates
    ]
    if fits is not None:
        rows, flat = rows[fits], [each[fits] for each in flat]
    tail = (size,) if size != 1 else ()
    return rows.reshape(-1), [each.reshape((rows.size, *tail)) for each in flat]


def _fitting(starts: Array, windows: Windows) -> Array | None:
    """Which windows lie in the operand, in the shape of the batch; None if all do, the common case."""
    last = windows.last_starts
    if all(start.min() >= 0 and start.max() <= limit for start, limit in zip(starts, last, strict=True)):
        return None
    fits: Array = np.all((starts >= 0) & (starts <= _last(windows)), axis=0)
    return fits


def as_blocks(operand: Array, size: int) -> Array:
    """A copy of the operand as rows of blocks of `size`, or as elements."""
    copy = np.array(operand, order="C")
    return copy.reshape((-1, size) if size != 1 else -1)


def scatter_replace(operand: Array, indices: Array, updates: Array, windows: Windows) -> Array:
    """Windows in place of what stood there."""
    if 0 in operand.shape or 0 in updates.shape:
        return operand
    targets, (new,) = placed_updates(indices, [updates], windows)
    result = as_blocks(operand, blocks(windows)[1])
    # Where a target is named twice, NumPy keeps the value that comes last.
    result[targets] = new
    return result.reshape(operand.shape)


#: Rounds with fewer elements than this are slower than combining one element after the other.
_WORTHWHILE: Final = 2000


def scatter_ufunc(ufunc: np.ufunc, operand: Array, indices: Array, updates: Array, windows: Windows) -> Array:
    """Windows combined by a ufunc, in order and in the element type."""
    if 0 in operand.shape or 0 in updates.shape:
        return operand
    targets, (new,) = placed_updates(indices, [updates], windows)
    size = blocks(windows)[1]
    result = as_blocks(operand, size)
    groups = Groups(targets, len(result)) if size > 1 else None
    if groups is not None and groups.depth * _WORTHWHILE <= new.size:
        in_rounds(lambda old, now: (ufunc(old, now),), [result], [new], groups)
    elif size > 1:
        elements = (targets[:, None] * size + np.arange(size)).reshape(-1)
        ufunc.at(result.reshape(-1), elements, new.reshape(-1))
    else:
        ufunc.at(result, targets, new)

    def is_among(test: Callable[[Any], Any]) -> Array:
        present: Array = test(as_blocks(operand, size))
        matches, *rest = np.nonzero(test(new))
        present[(targets[matches], *rest)] = True
        return present

    settled: Array = zero_signs.settle_zeros(ufunc, result, is_among)
    return settled.reshape(operand.shape)


def scatter_any(
    combine: Function | Graph,
    operands: tuple[Array, ...],
    indices: Array,
    updates: tuple[Array, ...],
    windows: Windows,
) -> tuple[Array, ...]:
    """Windows of N arrays combined in order by a computation on lanes, or by one of scalars, compiled."""
    if 0 in operands[0].shape or 0 in updates[0].shape:
        return operands
    targets, new = placed_updates(indices, updates, windows)
    size = blocks(windows)[1]
    results = [as_blocks(operand, size) for operand in operands]
    in_order(combine, results, new, targets)
    return tuple(result.reshape(operand.shape) for result, operand in zip(results, operands, strict=True))


def in_order(
    combine: Function | Graph, results: list[Array], updates: Sequence[Array], targets: Array
) -> None:
    """results[t] = combine(results[t], update) for every update and its target t, in order."""
    if isinstance(combine, Graph):
        ready = tuple(np.ascontiguousarray(update) for update in updates)
        compiled = engine.sequential_module()
        compiled.scatter(combine, tuple(results), np.ascontiguousarray(targets, np.int64), ready)
    else:
        in_rounds(combine, results, updates, Groups(targets, len(results[0])))


class Groups:
    """Updates by their target, the targets with most updates first.

    * `targets` - each target once, `counts` - its number of updates, `depth` - the greatest number,
    * `order` - the updates, those of one target together and as they came, `first` - where a target's begin.
    """

    def __init__(self, targets: Array, bound: int) -> None:
        ordered, order = _sort(targets, bound)
        first = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])[: ordered.size])
        counts = np.diff(first, append=ordered.size)
        self.depth = int(counts.max(initial=0))
        # NumPy sorts 16 bits by radix, much faster than more.
        rarity = self.depth - counts
        most_first = np.argsort(rarity.astype(np.uint16) if self.depth < 1 << 16 else rarity, kind="stable")
        self.order = order
        self.first = first[most_first]
        self.counts = counts[most_first]
        self.targets = ordered[self.first]

    def rounds(self) -> Array:
        """The number of targets that have a k-th update, for k = 0, 1 …"""
        with_count = np.bincount(self.counts)
        rounds: Array = np.cumsum(with_count[:0:-1])[::-1]
        return rounds


def _sort(targets: Array, bound: int) -> tuple[Array, Array]:
    """The targets in increasing order and the indices where they stood, equal ones in order."""
    if (targets[1:] >= targets[:-1]).all():
        return targets, np.arange(targets.size)
    bits = max(targets.size - 1, 0).bit_length()
    if bits + bound.bit_length() > 63:
        order = np.argsort(targets, kind="stable")
        return targets[order], order
    # One sort of distinct integers is several times faster than a stable sort of indices.
    keys = targets << bits
    keys |= np.arange(targets.size)
    keys.sort()
    return keys >> bits, keys & ((1 << bits) - 1)


def in_rounds(combine: Function, results: list[Array], updates: Sequence[Array], groups: Groups) -> None:
    """results[t] = combine(results[t], update) on lanes: the k-th update of every target in round k."""
    current = [result[groups.targets] for result in results]
    for number, active in enumerate(groups.rounds().tolist()):
        targets = [each[:active] for each in current]
        indices = groups.order[groups.first[:active] + number]
        write(targets, combine(*targets, *[np.take(each, indices, axis=0) for each in updates]))
    for result, each in zip(results, current, strict=True):
        result[groups.targets] = each


def write(targets: Sequence[Array], values: Sequence[Any]) -> None:
    """Lay each value down in its target."""
    # One result may be another's operand, so none is written before all are known to be apart.
    apart = [np.copy(value) for value in values] if len(values) > 1 else values
    for target, value in zip(targets, apart, strict=True):
        target[...] = value


# --- dynamic slices ----------------------------------------------------------------------------------


def dynamic_slice(operand: Array, starts: Sequence[Any], sizes: Ints) -> Array:
    """The window at `starts`, which are clamped so that it lies in the operand."""
    return operand[_window(operand.shape, starts, sizes)]


def dynamic_update_slice(
    operand: Array, update: Array, starts: Sequence[Any], strides: Ints | None = None
) -> Array:
    """A copy of the operand with `update` at `starts`, which are clamped so that it lies in it; `strides` apart."""
    return dynamic_update_in_place(np.array(operand), update, starts, strides)


def dynamic_update_in_place(
    operand: Array, update: Array, starts: Sequence[Any], strides: Ints | None = None
) -> Array:
    """The operand itself, with `update` written into it."""
    operand[_window(operand.shape, starts, update.shape, strides)] = update
    return operand


def dynamic_update_if_writeable(
    operand: Array, update: Array, starts: Sequence[Any], strides: Ints | None = None
) -> Array:
    """The operand, which nothing else needs, with `update` written into it where it is writeable, else a copy."""
    return dynamic_update_in_place(
        operand if operand.flags.carray else np.array(operand), update, starts, strides
    )


def _window(
    shape: Ints, starts: Sequence[Any], sizes: Ints, strides: Ints | None = None
) -> tuple[slice, ...]:
    steps = strides or (1,) * len(sizes)
    reaches = [(size - 1) * step + 1 for size, step in zip(sizes, steps, strict=True)]
    rows = zip(starts, shape, reaches, strict=True)
    first = [min(max(int(start), 0), whole - reach) for start, whole, reach in rows]
    return tuple(
        slice(low, low + reach, step) for low, reach, step in zip(first, reaches, steps, strict=True)
    )


# --- rows --------------------------------------------------------------------------------------------


def _gather(emitter: Emitter, step: Step) -> str:
    windows = emitter.constant(step.op.expect(ops.Gather).windows(*emitter.types(step.inputs)))
    return f"gather({emitter.values(step.inputs)}, {windows})"


def _scatter(emitter: Emitter, step: Step) -> str:
    op = step.op.expect(ops.Scatter)
    count, names = len(step.inputs) // 2, emitter.operands(step)
    types = emitter.types(step.inputs)
    windows = emitter.constant(op.windows(types[0], types[count], types[count + 1]))
    if count == 1:
        arguments = f"{', '.join(names)}, {windows}"
        if op.update_computation.results == op.update_computation.parameters[1:]:
            return f"scatter_replace({arguments})"
        ufunc = scatter_ufunc_of(op.update_computation)
        if ufunc is not None:
            return f"scatter_ufunc({ufunc}, {arguments})"
    combine = combiner(emitter, op.update_computation, types[count + 1].size)
    inputs, updates = (
        f"({''.join(f'{name}, ' for name in half)})" for half in (names[:count], names[count + 1 :])
    )
    call = f"scatter_any({combine}, {inputs}, {names[count]}, {updates}, {windows})"
    return call if count > 1 else f"{call}[0]"


def combiner(emitter: Emitter, graph: Graph, updates: int) -> str:
    """A computation for `in_order`: itself if it is compiled, else its program on lanes."""
    if engine.sequential(graph, updates):
        return emitter.constant(graph)
    return emitter.function(graph, lanes=True)


def scatter_ufunc_of(graph: Graph) -> str | None:
    """The NumPy ufunc that an update computation is: one of those of a reduction, or a subtraction.

    Not the extremes of complex numbers, which NumPy orders otherwise where there is NaN.
    """
    if graph.parameters[0].dtype in COMPLEX and isinstance(graph.results[0].op, ops.Maximum | ops.Minimum):
        return None
    if len(graph.nodes) == 1 and graph.results == graph.nodes and isinstance(graph.nodes[0].op, ops.Subtract):
        return "np.subtract" if graph.nodes[0].operands == graph.parameters else None
    return ufunc_of(graph)


def _dynamic_slice(emitter: Emitter, step: Step) -> str:
    assert isinstance(step.op, ops.DynamicSlice)
    operand, *starts = emitter.operands(step)
    # A scalar has one window, itself; for lanes it has no dimensions either.
    return f"dynamic_slice({operand}, ({', '.join(starts)},), {step.op.slice_sizes})" if starts else operand


def _dynamic_update_slice(emitter: Emitter, step: Step) -> str:
    operand, update, *starts = emitter.operands(step)
    own = ""
    if isinstance(step.op, ops.StridedUpdate):
        starts, own = [*map(str, step.op.starts)], f", {step.op.strides}"
    if not starts:
        return update
    kernel = "dynamic_update_slice"
    if emitter.in_place_pairs(step):
        # What a loop carries is its own, whatever else is written over may be read-only.
        is_carried = emitter.name != "program" and step.inputs[0] in emitter.plan.parameters
        kernel = "dynamic_update_in_place" if is_carried else "dynamic_update_if_writeable"
    return f"{kernel}({operand}, {update}, ({', '.join(starts)},){own})"


SCOPE: Final[dict[str, Any]] = {
    f.__name__: f
    for f in (
        *(gather, scatter_replace, scatter_ufunc, scatter_any),
        *(dynamic_slice, dynamic_update_slice, dynamic_update_in_place, dynamic_update_if_writeable),
    )
}

ROWS: Final[Rows] = {
    ops.DynamicSlice: _dynamic_slice,
    ops.DynamicUpdateSlice: _dynamic_update_slice,
    ops.Gather: _gather,
    ops.Scatter: _scatter,
    ops.StridedUpdate: _dynamic_update_slice,
}
