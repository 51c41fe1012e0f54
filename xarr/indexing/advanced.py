"""Advanced indices (arrays of ints and bools): one gather or scatter, with the region that ints and slices leave."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from xarr import lax
from xarr.base.broadcasting import Misfit, align_numpy
from xarr.base.frozen_dataclasses import record
from xarr.base.typing import Array
from xarr.calls.operands import as_array, broadcast_operands
from xarr.calls.ufuncs import is_ufunc
from xarr.dtypes import info
from xarr.errors import IndexingError, TracedValueError
from xarr.indexing.assigned_values import fit_value
from xarr.indexing.basic import write_region
from xarr.indexing.bounds import Mode, bring_host_into_bounds, bring_into_bounds
from xarr.indexing.index_plan import IndexPlan
from xarr.indexing.items import IndexArray, Mask
from xarr.ir.graph import parameter
from xarr.ir.op import Op
from xarr.ir.ops import Gather
from xarr.ir.source import here
from xarr.ir.types import Ints, TensorType, Type
from xarr.lax.core import ArrayLike, broadcast_node, put, scalar_node
from xarr.lax.indexing import GatherDimensionNumbers, ScatterDimensionNumbers, default_fill
from xarr.runtime.handles import wrap
from xarr.runtime.materialisation import to_host
from xarr.runtime.small_ops import apply_op
from xarr.runtime.trace_stack import is_tracing

if TYPE_CHECKING:
    from xarr.ir.device import Device

Combine = Callable[[Any, Any], Any]

_INT64: Final = np.dtype(np.int64)


@record(eq=False)
class Vectors:
    """The index arrays of a layout, in one shape, the batch, and with values that count from 0."""

    batch: Ints
    arrays: tuple[Array, ...]

    def clip(self, windows: SelectedWindows) -> Vectors:
        """Clip every value into its dimension."""
        sizes = [windows.layout.folded_shape[dim] for dim in windows.axes]
        pairs = zip(self.arrays, sizes, strict=True)
        return Vectors(self.batch, tuple([_clip(array, size) for array, size in pairs]))

    @property
    def indices(self) -> Array:
        """Index vectors in the last dimension, or the index of the only dimension without one."""
        if len(self.arrays) == 1:
            return self.arrays[0]
        dtypes = {array.dtype for array in self.arrays}
        arrays = self.arrays if len(dtypes) == 1 else [_int64(array) for array in self.arrays]
        rank = len(self.batch)
        return lax.concatenate([lax.expand_dims(array, (rank,)) for array in arrays], rank)


def _clip(array: Array, size: int) -> Array:
    last = min(size - 1, int(info(array.dtype).max))
    low, high = (wrap(scalar_node(bound, array.dtype)) for bound in (0, last))
    return lax.clamp(low, array, high)


def _int64(array: Array) -> Array:
    return array if array.dtype == np.int64 else lax.convert_element_type(array, np.int64)


def vectors_of(name: str, array: Array, layout: IndexPlan, mode: Mode) -> Vectors:
    """The index arrays of `layout` for `array`, masks as the indices where they hold.

    Raises IndexingError for known values out of bounds, if the mode is "error", and for shapes that do not
    broadcast; BroadcastError if `config.broadcasting` refuses that they do; TracedValueError for a mask without
    a value.
    """
    device = array._node.device
    masks = {item: indices_in_mask(item, device) for item in layout.arrays if isinstance(item, Mask)}
    counts = [int(np.all(host_of(mask))) for mask in layout.scalars]
    sizes = [item.shape for item in layout.arrays if isinstance(item, IndexArray)]
    is_away = 0 in counts or any(0 in shape for shape in (*sizes, *[each.shape for each in masks.values()]))
    arrays = []
    for item, axis in zip(layout.arrays, layout.axes, strict=True):
        if isinstance(item, Mask):
            arrays.append(masks[item])
            continue
        # As in NumPy, indices that are broadcast away may be anything, unless they have no dimensions.
        own = Mode.PROMISE if is_away and item.shape else mode
        arrays.append(valid_indices(item, axis, layout.shape[axis], own, device))
    shapes = [*[each.shape for each in arrays if each.shape], *[(count,) for count in counts]]
    batch = _batch(name, shapes)
    if not batch:
        return Vectors((), tuple(arrays))
    fillers = [broadcast_node(scalar_node(0, np.dtype(np.int64)), (count,), ()) for count in counts]
    whole = iter(
        broadcast_operands("getitem", *[a for a in arrays if a.shape], *[wrap(node) for node in fillers])
    )
    return Vectors(batch, tuple([next(whole) if each.shape else _spread(each, batch) for each in arrays]))


def _batch(name: str, shapes: list[Ints]) -> Ints:
    alignment = align_numpy(*shapes) if shapes else None
    if isinstance(alignment, Misfit):
        raise IndexingError(
            f"{name}: the arrays of an index broadcast among themselves, and shapes "
            f"{' and '.join(map(str, shapes))} do not; xarr.ix_ selects the combinations of 1-d arrays"
        )
    return () if alignment is None else alignment.result


def _spread(scalar: Array, batch: Ints) -> Array:
    return wrap(broadcast_node(scalar._node, batch, ()))


def valid_indices(item: IndexArray, axis: int, size: int, mode: Mode, device: Device | None) -> Array:
    """The integers of an item as indices into a dimension of `size`.

    Raises IndexingError for known ones out of bounds, if the mode is "error".  In a function that is being recorded,
    those of an Array raise it only where they are used: in a branch that is taken, in a step that is run.
    """
    if not size and 0 not in item.shape and mode not in (Mode.FILL, Mode.PROMISE):
        raise IndexingError(f"no index is in bounds for axis {axis} with size 0")
    if item.host is None or _is_checked_late(item, size, mode):
        assert item.array is not None
        return bring_into_bounds(item.array, axis, size, mode, item.from_end)
    if item.array is not None and item.host.size and item.host.min() >= 0 and item.host.max() < size:
        return item.array
    return bring_host_into_bounds(item.host, axis, size, mode, device, item.from_end)


def _is_checked_late(item: IndexArray, size: int, mode: Mode) -> bool:
    """Whether known values of an Array are out of bounds in a function that is being recorded: it may not use them."""
    if (
        item.array is None
        or item.host is None
        or not item.host.size
        or mode is not Mode.ERROR
        or not is_tracing()
    ):
        return False
    return bool(item.host.min() < (-size if item.from_end else 0) or item.host.max() >= size)


def host_of(mask: Mask) -> np.ndarray[Any, Any]:
    """The values of a mask, computed if need be.  Raises TracedValueError in a traced function."""
    if mask.host is not None:
        return mask.host
    assert mask.array is not None
    node = mask.array._node
    if node.traced:
        looked = here()
        location = f"\nIt was asked for at {looked}" if looked else ""
        raise TracedValueError(
            f"how many elements a boolean mask selects depends on its values, and the mask {node.type.short()} "
            "of a traced function has none yet, so that the shape of the result is not known; choose element by "
            "element with xarr.where(mask, x, other), write with x[mask] = scalar or x.at[mask].set(scalar), "
            "x.at[mask].add(v) for x[mask] += v, index by xarr.nonzero(mask, size=n) for at most n elements, or "
            f"compute the mask outside of the function{location}"
        )
    return to_host(mask.array)


def indices_in_mask(mask: Mask, device: Device | None) -> Array:
    """Where a mask holds, as indices into its dimensions taken as one."""
    return put(np.flatnonzero(host_of(mask)), device)


# --- windows -------------------------------------------------------------------------------------------------


@record(eq=False)
class SelectedWindows:
    """The elements that the arrays of a layout select from its region, one window for each index vector."""

    layout: IndexPlan
    vectors: Vectors

    @property
    def axes(self) -> Ints:
        """The dimensions of the folded region that index vectors index."""
        return tuple([dim for dim, array in enumerate(self.layout.indexed) if array is not None])

    @property
    def offsets(self) -> Ints:
        """The dimensions of the result that run over a window."""
        before, batch = self.layout.batch_position, len(self.vectors.batch)
        rank = batch + len(self.layout.kept_sizes)
        return tuple([dim for dim in range(rank) if not before <= dim < before + batch])

    @property
    def sizes(self) -> Ints:
        """The sizes of a window in the folded region."""
        rows = zip(self.layout.folded_shape, self.layout.indexed, strict=True)
        return tuple([size if array is None else min(1, size) for size, array in rows])

    @property
    def is_one(self) -> bool:
        """Whether there is one window, with indices without dimensions."""
        return not self.vectors.batch

    @property
    def starts(self) -> list[Array]:
        """Where the one window starts, for each dimension of the folded region."""
        own = iter(self.vectors.arrays)
        zero = wrap(scalar_node(0, _INT64))
        return [zero if array is None else _int64(next(own)) for array in self.layout.indexed]

    def read(self, folded: Array, mode: Mode, fill_value: ArrayLike | None) -> Array:
        """The windows of the folded region, in the shape `layout.result_without_new`."""
        if self.is_one and mode is not Mode.FILL:
            window = lax.dynamic_slice(folded, self.starts, self.sizes, allow_negative_indices=False)
            return _reshape(window, self.layout.kept_sizes)
        indices, vector_dim = self.vectors.indices, len(self.vectors.batch)
        if mode is Mode.FILL:
            numbers = GatherDimensionNumbers(self.offsets, self.axes, self.axes)
            return lax.gather(
                folded, indices, numbers, self.sizes,
                mode="fill", fill_value=fill_value, index_vector_dim=vector_dim,
            )  # fmt: skip
        types = folded._node.tensor_type, indices._node.tensor_type
        op, type = _gather(self.offsets, self.axes, self.sizes, vector_dim, *types)
        return apply_op(op, (folded._node, indices._node), type)

    def write(self, folded: Array, values: Array, combine: Combine | None, mode: Mode) -> Array:
        """The folded region with `values` in the windows or combined with them.

        values: in the shape `layout.result_without_new`.
        """
        if self.is_one and mode is not Mode.FILL:
            if combine is not None:
                values = combine(self.read(folded, mode, None), values).astype(folded.dtype)
            window = _reshape(values, self.sizes)
            return lax.dynamic_update_slice(folded, window, self.starts, allow_negative_indices=False)
        vectors = self.vectors.clip(self) if mode is Mode.CLIP else self.vectors
        arrays = folded, vectors.indices, values
        numbers = ScatterDimensionNumbers(self.offsets, self.axes, self.axes)
        vector_dim = len(vectors.batch)
        if not _is_known(combine):
            return _scatter_windows(arrays, numbers, vector_dim, combine)
        nodes = tuple([array._node for array in arrays])
        op, type = _scatter(numbers, vector_dim, combine, *[node.tensor_type for node in nodes])
        return apply_op(op, nodes, type)


@lru_cache(maxsize=4096)
def _gather(
    offsets: Ints, axes: Ints, sizes: Ints, vector_dim: int, operand: TensorType, indices: TensorType
) -> tuple[Op, Type]:
    """The op that reads windows from arrays of these types, and its type."""
    op = Gather(offsets, axes, (), (), axes, vector_dim, sizes)
    return op, op.infer(operand, indices)


#: Ufuncs with which values are often combined, in the same way each time.
_COMBINERS: Final = frozenset(("add", "subtract", "multiply", "divide", "power", "minimum", "maximum"))


def _is_known(combine: Combine | None) -> bool:
    return combine is None or (is_ufunc(combine) and combine.__name__ in _COMBINERS)


@lru_cache(maxsize=4096)
def _scatter(
    numbers: ScatterDimensionNumbers, vector_dim: int, combine: Combine | None, *types: TensorType
) -> tuple[Op, Type]:
    """The op that writes windows into arrays of these types, and its type."""
    arrays = tuple([wrap(parameter(type)) for type in types])
    node = _scatter_windows(arrays, numbers, vector_dim, combine)._node
    return node.op, node.type


def _scatter_windows(
    arrays: Sequence[Array], numbers: ScatterDimensionNumbers, vector_dim: int, combine: Combine | None
) -> Array:
    folded, indices, values = arrays
    result: Array = lax.scatter_with(
        folded,
        indices,
        values,
        lambda old, new: new if combine is None else combine(old, new).astype(folded.dtype),
        numbers,
        index_vector_dim=vector_dim,
    )
    return result


def _reshape(array: Array, shape: Ints) -> Array:
    return array if array.shape == shape else lax.reshape(array, shape)


def _fold(array: Array, layout: IndexPlan) -> Array:
    inner = array if layout.region.is_whole(array.shape) else layout.region.read(array)
    return _reshape(inner, layout.folded_shape)


def _reaches_nothing(layout: IndexPlan, batch: Ints, mode: Mode) -> bool:
    """Whether index vectors go into a dimension without elements; IndexingError unless the mode is "fill"."""
    if 0 in batch:
        return False
    for axis in layout.axes:
        if not layout.shape[axis]:
            if mode is not Mode.FILL:
                raise IndexingError(f"no index is in bounds for axis {axis} with size 0")
            return True
    return False


def read_arrays(array: Array, layout: IndexPlan, mode: Mode, fill_value: ArrayLike | None) -> Array:
    """Read the elements of `array` that the index of `layout` selects."""
    vectors = vectors_of("getitem", array, layout, mode)
    batch = vectors.batch
    if _reaches_nothing(layout, batch, mode):
        value = default_fill(array.dtype) if fill_value is None else fill_value
        return lax.full_like(array, value, shape=layout.result(batch))
    folded = _fold(array, layout)
    if not vectors.arrays:
        return _take_all_or_nothing(folded, layout, batch)
    windows = SelectedWindows(layout, vectors).read(folded, mode, fill_value)
    return _reshape(windows, layout.result(batch))


def _take_all_or_nothing(folded: Array, layout: IndexPlan, batch: Ints) -> Array:
    """All of the region or nothing, for bools without dimensions."""
    whole = lax.reshape(folded, layout.result_without_new((1,)))
    if batch == (0,):
        whole = lax.slice_in_dim(whole, 0, 0, axis=layout.batch_position)
    return _reshape(whole, layout.result(batch))


def write_arrays(
    array: Array, layout: IndexPlan, value: ArrayLike, combine: Combine | None, mode: Mode
) -> Array:
    """`array` with `value` where the index of `layout` says, or `combine(old, value)` there.

    Where an element is meant more than once, the last value stays; `combine` is called for one after the other.
    """
    vectors = vectors_of("setitem", array, layout, mode)
    batch = vectors.batch
    values = fit_value(array, value, layout.result(batch))
    if 0 in values.shape or _reaches_nothing(layout, batch, mode):
        return wrap(array._node)
    values = _reshape(values, layout.result_without_new(batch))
    folded = _fold(array, layout)
    if vectors.arrays:
        folded = SelectedWindows(layout, vectors).write(folded, values, combine, mode)
    else:
        new = _reshape(values, layout.folded_shape)
        folded = new if combine is None else combine(folded, new).astype(array.dtype)
    return write_region(array, layout.region, _reshape(folded, layout.inner))


def apply_arrays(array: Array, layout: IndexPlan, function: Callable[[Any], Any], mode: Mode) -> Array:
    """`array` with `function`, of scalars, applied to each element that is meant, each time that it is."""
    return write_arrays(array, layout, _nothing(array), lambda old, _: as_array(function(old)), mode)


def _nothing(array: Array) -> Array:
    return wrap(scalar_node(False, array.dtype))
