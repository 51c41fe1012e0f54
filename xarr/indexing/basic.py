"""Basic indices (ints, slices, `...`, `None`) as slice, reverse and reshape.

A basic index is read once into a `BasicIndex`: which elements, in which order, under which shape.  Reading takes
the region out of an array; writing lays values over it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache
from types import EllipsisType, FrameType
from typing import Any, Final

import numpy as np

from xarr import lax
from xarr.base.at_once.obstacles import obstacles
from xarr.base.frozen_dataclasses import record
from xarr.base.typing import Array
from xarr.dtypes import PREDICATE
from xarr.errors import IndexTypeError, SliceStepError, TracedValueError
from xarr.indexing.bounds import out_of_bounds
from xarr.indexing.items import expand_ellipsis
from xarr.ir.graph import Node
from xarr.ir.op import Op
from xarr.ir.ops import Reshape, Reverse, Slice
from xarr.ir.source import known_files, locate
from xarr.ir.types import Ints, TensorType, Type
from xarr.ir.windows import dilate_size
from xarr.lax.core import ArrayLike, broadcast_node, scalar_node
from xarr.runtime.handles import wrap
from xarr.runtime.pending import StandIn
from xarr.runtime.small_ops import MOST_BYTES, Steps, records_all
from xarr.runtime.view_tracking import INDEX, mark


@record
class BasicIndex:
    """The elements that a basic index selects from an array of some shape.

    Per dimension of the array: `start`, `limit` and `stride` of an increasing slice, and in `reversed`
    the dimensions that run backwards.  `sizes` is the shape of that slice and `shape` the result's,
    with the integer-indexed dimensions gone and the new ones in.
    """

    start: Ints
    limit: Ints
    stride: Ints
    reversed: Ints
    sizes: Ints
    shape: Ints

    @classmethod
    def lookup(cls, index: Any, shape: Ints) -> BasicIndex | None:
        """The region of an index of plain ints, slices, `...` and None; None for any other index.

        Raises IndexingError for an index that is out of bounds or has too many items.
        """
        items = index if isinstance(index, tuple) else (index,)
        key = tuple([(item.start, item.stop, item.step) if type(item) is slice else item for item in items])
        if all(type(item) in _CACHED for item in items) and all(
            type(part) in _CACHED for item in key if type(item) is tuple for part in item
        ):
            return _cached_region(key, shape)
        return None

    @classmethod
    def of(cls, items: Sequence[slice | int | EllipsisType | None], shape: Ints) -> BasicIndex:
        """The region of items that name every dimension of `shape`."""
        rows: list[tuple[int, int, int, bool]] = []
        result: list[int] = []
        for item in items:
            if item is None or item is Ellipsis:
                result += [1] if item is None else []
                continue
            size = shape[len(rows)]
            if isinstance(item, slice):
                rows.append(_slice_row(item, size))
                result.append(_length(rows[-1]))
            else:
                if not -size <= item < size:
                    raise out_of_bounds(item, len(rows), size, shape)
                rows.append((item % size, item % size + 1, 1, False))
        start, limit, stride, backwards = zip(*rows, strict=True) if rows else ((), (), (), ())
        return cls(
            start,
            limit,
            stride,
            tuple(axis for axis, flag in enumerate(backwards) if flag),
            tuple(map(_length, rows)),
            tuple(result),
        )

    @cached_property
    def _ops(self) -> tuple[Op, ...]:
        """The ops that take the region out of an array, in order."""
        ops: list[Op] = [Slice(self.start, self.limit, self.stride)]
        if self.reversed:
            ops.append(Reverse(self.reversed))
        if self.shape != self.sizes:
            ops.append(Reshape(self.shape))
        return tuple(ops)

    def read(self, array: Array) -> Array:
        """The region of `array`."""
        node = array._node
        for op in self._ops:
            node = Node(op, (node,))
        return wrap(node)

    def is_whole(self, shape: Ints) -> bool:
        """Whether these are all elements of an array of `shape`, as they lie there."""
        return self.shape == shape == self.sizes and not self.reversed

    @property
    def is_block(self) -> bool:
        """Whether the elements lie next to each other in every dimension."""
        return all(stride == 1 for stride in self.stride)

    def block(self, values: Array) -> Array:
        """`values`, which have the region's shape, as they lie in the array."""
        values = lax.reshape(values, self.sizes)
        return lax.rev(values, self.reversed) if self.reversed else values

    def lay(self, values: Array, shape: Ints, filler: ArrayLike) -> Array:
        """An array of `shape` with `values`, which have the region's shape, on it and `filler` elsewhere."""
        values = self.block(values)
        rows = zip(shape, self.start, self.stride, self.sizes, strict=True)
        config = [
            (start, size - start - dilate_size(count, stride), stride - 1)
            for size, start, stride, count in rows
        ]
        return lax.pad(values, filler, config)


#: By the type of an array and the items of an index: the ops that were recorded of it, with what each gives, and
#: whether that is too large to be read at once.
_parts: Final[dict[tuple[Any, ...], tuple[Steps, bool]]] = {}
_MOST_PARTS: Final = 4096
_ENDS: Final = frozenset({int, type(None)})


def record_again(array: Array, index: Any, frame: FrameType) -> Array | None:
    """array[index] as it was recorded before, for the user's line in `frame`; None if it was not.

    None too for what may be read at once.
    """
    node = array._shown
    if node is None or (node.value is not None and not obstacles and _has_no_slice(index)):
        return None  # of what has a value that means few elements, most of the time
    key = _key_of(node.type, index)
    part = None if key is None else _parts.get(key)
    if part is None:
        return None
    steps, is_large = part
    if not is_large and (node.value is not None or type(node) is StandIn) and not records_all():
        return None
    code = frame.f_code
    location = (code, frame.f_lasti) if code.co_filename in known_files else locate(frame)
    for op, type_ in steps:
        node = Node(op, (node,), type_, location)
    return mark(array, wrap(node), INDEX, index)


def _has_no_slice(index: Any) -> bool:
    return type(index) is int or (type(index) is tuple and slice not in [*map(type, index)])


def _key_of(type_: Type, index: Any) -> tuple[Any, ...] | None:
    """The type and an index of slices, ints, `...` and None as a key; None for any other index."""
    key: list[Any] = [type_]
    for item in index if type(index) is tuple else (index,):
        kind = type(item)
        if kind is slice:
            start, stop, step = item.start, item.stop, item.step
            if type(start) not in _ENDS or type(stop) not in _ENDS or type(step) not in _ENDS:
                return None
            key.append((start, stop, step))
        elif kind is int or item is None or item is ...:
            key.append(item)
        else:
            return None
    return tuple(key)


def read_region(array: Array, index: Any, region: BasicIndex) -> Array:
    """array[index], recorded, where `region` is what the index means: a part if it is no single element."""
    node = array._node
    if not region.shape:
        return region.read(array)
    steps: list[tuple[Op, TensorType]] = []
    for op in region._ops:
        node = Node(op, (node,))
        steps.append((op, node.tensor_type))
    key = _key_of(array._node.type, index)
    if key is not None:
        if len(_parts) >= _MOST_PARTS:
            _parts.clear()
        _parts[key] = tuple(steps), node.type.nbytes > MOST_BYTES
    return mark(array, wrap(node), INDEX, index)


def write_region(array: Array, region: BasicIndex, values: Array) -> Array:
    """`array` with `values`, which have the shape of the region, on it."""
    if region.is_whole(array.shape):
        return values
    if region.is_block and 0 not in region.sizes:
        starts = [wrap(scalar_node(start, _START)) for start in region.start]
        return lax.dynamic_update_slice(array, region.block(values), starts, allow_negative_indices=False)
    laid = region.lay(values, array.shape, wrap(scalar_node(0, array.dtype)))
    everywhere = broadcast_node(scalar_node(True, PREDICATE), region.shape, ())
    mask = region.lay(wrap(everywhere), array.shape, False)
    return lax.select(mask, laid, array)


#: What the starts of updates are: int64 holds every index.
_START: Final = np.dtype(np.int64)

#: Types of index items that equal keys stand for equal indices of (a bool would equal an int).
_CACHED = (int, slice, type(None), type(Ellipsis))


@lru_cache(maxsize=4096)
def _cached_region(key: tuple[Any, ...], shape: Ints) -> BasicIndex:
    items = tuple([slice(*item) if type(item) is tuple else item for item in key])
    return BasicIndex.of(expand_ellipsis(items, shape), shape)


def _length(row: tuple[int, int, int, bool]) -> int:
    start, limit, stride, _ = row
    return -(-(limit - start) // stride)


def _slice_row(item: slice, size: int) -> tuple[int, int, int, bool]:
    try:
        chosen = range(*item.indices(size))
    except ValueError:
        raise SliceStepError("a slice step cannot be zero; x[::-1] reverses a dimension") from None
    except TracedValueError:
        raise
    except TypeError:
        raise IndexTypeError(f"wanted ints or None in a slice, got {item}") from None
    if not chosen:
        return 0, 0, 1, False
    low, high = sorted((chosen[0], chosen[-1]))
    return low, high + 1, abs(chosen.step) if len(chosen) > 1 else 1, chosen.step < 0 and len(chosen) > 1
