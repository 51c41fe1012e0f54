"""Basic indices (ints, slices, `...`, `None`) as slice, reverse and reshape, and their functional updates.

An index is read once into a `Region`: which elements, in which order, under which shape.  Reading takes
the region out of an array; writing lays values over it, by padding them to the whole shape.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from xarr import lax
from xarr.dtypes import COMPLEX, INTEGER, PREDICATE
from xarr.errors import BroadcastError, DTypeError, IndexingError, TracedValueError, ValueRangeError
from xarr.functions import elementwise_functions as elementwise
from xarr.functions._core import as_array, broadcasted_nodes, is_weak, nodes_of
from xarr.ir.graph import Node
from xarr.ir.op import Op
from xarr.ir.ops import Reshape, Reverse, Slice
from xarr.lax.core import ArrayLike, broadcast_node, scalar_node
from xarr.lazy import Handle, common_backend, wrap
from xarr.records import record

if TYPE_CHECKING:
    from xarr.array import Array

Ints = tuple[int, ...]


@record
class Region:
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
    def of(cls, index: Any, shape: Ints) -> Region:
        """Read an index for an array of `shape`.  IndexingError if out of bounds or not basic."""
        items = index if isinstance(index, tuple) else (index,)
        key = tuple([(item.start, item.stop, item.step) if type(item) is slice else item for item in items])
        if all(type(item) in _CACHED for item in items) and all(
            type(part) in _CACHED for item in key if type(item) is tuple for part in item
        ):
            return _cached_region(key, shape)
        return cls._of(items, shape)

    @classmethod
    def _of(cls, given: tuple[Any, ...], shape: Ints) -> Region:
        items = _expanded(given, shape)
        rows: list[tuple[int, int, int, bool]] = []
        result: list[int] = []
        for item in items:
            if item is None:
                result.append(1)
                continue
            size = shape[len(rows)]
            if isinstance(item, slice):
                rows.append(_slice_row(item, size))
                result.append(_length(rows[-1]))
            else:
                at = _integer(item, size, len(rows), shape)
                rows.append((at, at + 1, 1, False))
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
        found: list[Op] = [Slice(self.start, self.limit, self.stride)]
        if self.reversed:
            found.append(Reverse(self.reversed))
        if self.shape != self.sizes:
            found.append(Reshape(self.shape))
        return tuple(found)

    def read(self, array: Array) -> Array:
        """The region of `array`."""
        node = array._node
        for op in self._ops:
            node = Node(op, (node,))
        return wrap(node, array._backend)

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
            (start, size - start - _span(count, stride), stride - 1) for size, start, stride, count in rows
        ]
        return lax.pad(values, filler, config)


#: What the starts of updates are: int64 holds every index.
_START: Final = np.dtype(np.int64)

#: Types of index items that equal keys stand for equal indices of (a bool would equal an int).
_CACHED = (int, slice, type(None), type(Ellipsis))


@lru_cache(maxsize=4096)
def _cached_region(key: tuple[Any, ...], shape: Ints) -> Region:
    return Region._of(tuple([slice(*item) if type(item) is tuple else item for item in key]), shape)


def _length(row: tuple[int, int, int, bool]) -> int:
    start, limit, stride, _ = row
    return -(-(limit - start) // stride)


def _span(count: int, stride: int) -> int:
    """How far `count` elements with `stride` reach."""
    return (count - 1) * stride + 1 if count else 0


def _expanded(items: tuple[Any, ...], shape: Ints) -> list[Any]:
    """The items with `...` and missing trailing dimensions replaced by full slices."""
    dots = [place for place, item in enumerate(items) if item is Ellipsis]
    consuming = sum(item is not None and item is not Ellipsis for item in items)
    if len(dots) > 1:
        raise IndexingError(f"an index can have one ellipsis, got {len(dots)}")
    if consuming > len(shape):
        raise IndexingError(
            f"too many indices: {consuming} for an array of shape {shape}, which takes {len(shape)}"
        )
    missing = [slice(None)] * (len(shape) - consuming)
    if not dots:
        return [*items, *missing]
    return [*items[: dots[0]], *missing, *items[dots[0] + 1 :]]


def _slice_row(item: slice, size: int) -> tuple[int, int, int, bool]:
    try:
        chosen = range(*item.indices(size))
    except ValueError:
        raise IndexingError("a slice step cannot be zero") from None
    except TracedValueError:
        raise
    except TypeError:
        raise IndexingError(f"wanted ints or None in a slice, got {item}") from None
    if not chosen:
        return 0, 0, 1, False
    low, high = sorted((chosen[0], chosen[-1]))
    return low, high + 1, abs(chosen.step) if len(chosen) > 1 else 1, chosen.step < 0 and len(chosen) > 1


def _integer(item: Any, size: int, axis: int, shape: Ints) -> int:
    if isinstance(item, bool | np.bool_) or getattr(item, "dtype", None) == np.bool_:
        raise IndexingError("boolean masks cannot index yet; use xarr.where(mask, x, other)")
    if isinstance(item, list | tuple) or getattr(item, "ndim", 0) > 0:
        raise IndexingError("integer arrays cannot index yet: wanted ints, slices, ... or None")
    try:
        at = operator.index(item)
    except TracedValueError:
        raise
    except TypeError:
        raise IndexingError(f"wanted an int, a slice, ... or None as index, got {item!r}") from None
    if not -size <= at < size:
        raise IndexingError(f"index {at} is out of bounds for axis {axis} with size {size} (shape {shape})")
    return at % size


def read(array: Array, index: Any) -> Array:
    """array[index]."""
    return Region.of(index, array.shape).read(array)


def update(
    array: Array, index: Any, value: ArrayLike, combine: Callable[[Array, Array], Array] | None = None
) -> Array:
    """`array` with `value` on the region, or `combine(old, value)` there; element type and shape stay.

    `value` broadcasts to the region by NumPy's rule (leading dimensions of size 1 may be too many).
    """
    region = Region.of(index, array.shape)
    values = _fitted(array, value, region)
    if combine is not None:
        values = combine(region.read(array), values).astype(array.dtype)
    if region.is_block and 0 not in region.sizes:
        starts = [wrap(scalar_node(start, _START), None) for start in region.start]
        block = region.block(values)
        return lax.dynamic_update_slice(array, block, starts, allow_negative_indices=False)
    laid = region.lay(values, array.shape, wrap(scalar_node(0, array.dtype), None))
    everywhere = broadcast_node(scalar_node(True, PREDICATE), region.shape, ())
    mask = region.lay(wrap(everywhere, None), array.shape, False)
    return lax.select(mask, laid, array)


def _fitted(array: Array, value: ArrayLike, region: Region) -> Array:
    """`value` in the region's shape and the array's element type."""
    given = value if isinstance(value, Handle) or is_weak(value) else as_array(value)
    is_complex = isinstance(value, complex) or getattr(given, "dtype", None) in COMPLEX
    if is_complex and array.dtype not in COMPLEX:
        raise DTypeError(f"a complex value does not fit an array of {array.dtype}; take its real part")
    if isinstance(value, float) and is_weak(value) and array.dtype in INTEGER:
        if not math.isfinite(value):
            raise ValueRangeError(f"{value} does not fit an array of {array.dtype}, which holds integers")
        given = as_array(value)
    backend = common_backend([array, *([given] if isinstance(given, Handle) else [])])
    (node,), _ = nodes_of((given,), array.dtype)
    extra = len(node.shape) - len(region.shape)
    fitted = wrap(node, backend)
    if extra > 0 and node.shape[:extra] == (1,) * extra:
        fitted = lax.reshape(fitted, node.shape[extra:])
    like = broadcast_node(scalar_node(0, array.dtype), region.shape, ())
    placed, _ = broadcasted_nodes("setitem", (fitted._node, like))
    if placed.shape != region.shape:
        raise BroadcastError(f"setitem: wanted a value that fits shape {region.shape}, got {node.shape}")
    return wrap(placed, backend)


class At:
    """`x.at`: index it, then choose what to do, `x.at[1:, 0].add(2)`.  Nothing changes x itself."""

    __slots__ = ("_array",)

    def __init__(self, array: Array) -> None:
        self._array = array

    def __getitem__(self, index: Any) -> AtIndex:
        return AtIndex(self._array, index)


class AtIndex:
    """A place in an array.  Each method returns a new Array of the same shape and element type."""

    __slots__ = ("_array", "_index")

    def __init__(self, array: Array, index: Any) -> None:
        self._array = array
        self._index = index

    def get(self) -> Array:
        """x[index]."""
        return read(self._array, self._index)

    def set(self, values: ArrayLike) -> Array:
        """x with x[index] = values."""
        return update(self._array, self._index, values)

    def apply(self, function: Callable[[Array], Array]) -> Array:
        """x with x[index] = function(x[index])."""
        return update(self._array, self._index, function(self.get()))

    def add(self, values: ArrayLike) -> Array:
        """x with x[index] += values."""
        return update(self._array, self._index, values, elementwise.add)

    def subtract(self, values: ArrayLike) -> Array:
        """x with x[index] -= values."""
        return update(self._array, self._index, values, elementwise.subtract)

    def multiply(self, values: ArrayLike) -> Array:
        """x with x[index] *= values."""
        return update(self._array, self._index, values, elementwise.multiply)

    def divide(self, values: ArrayLike) -> Array:
        """x with x[index] /= values."""
        return update(self._array, self._index, values, elementwise.divide)

    def power(self, values: ArrayLike) -> Array:
        """x with x[index] **= values."""
        return update(self._array, self._index, values, elementwise.power)

    def min(self, values: ArrayLike) -> Array:
        """x with x[index] = minimum(x[index], values)."""
        return update(self._array, self._index, values, elementwise.minimum)

    def max(self, values: ArrayLike) -> Array:
        """x with x[index] = maximum(x[index], values)."""
        return update(self._array, self._index, values, elementwise.maximum)
