"""Windows of an array as further dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from xarr import lax
from xarr.base.absent_names import hooks_of
from xarr.base.tracebacks import names_errors
from xarr.base.typing import Array
from xarr.calls.arguments import fill, is_listed
from xarr.calls.operands import as_array, fresh
from xarr.calls.remembered_calls import remembers_calls
from xarr.errors import ArgumentError, ShapeError, ValueRangeError
from xarr.lax.core import ArrayLike, flag, integers
from xarr.lax.dynamic_sizes import refuse_dynamic
from xarr.runtime.handles import from_host
from xarr.runtime.materialisation import device_of
from xarr.shapes import normalize_axis

__all__ = ["as_strided", "sliding_window_view"]


@names_errors
def as_strided(
    x: ArrayLike,
    shape: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
    subok: bool = False,
    writeable: bool = True,
) -> Array:
    """Elements by distances in memory: result[i, j] lies i * strides[0] + j * strides[1] bytes after x[0, …].

    x: array of any type.  shape, strides: by default those of x.  The result is an array of its own, read on the host
    at once; writing to it changes no other.

    Raises ValueRangeError for elements that lie outside of the memory of x, ShapeError for another number of strides
    than sizes, TracedValueError in a traced function.  Source: NumPy, `lib.stride_tricks.as_strided`.
    """
    array = as_array(x)
    refuse_dynamic("as_strided", array, "lax.gather")
    host = np.asarray(array)
    sizes = host.shape if shape is None else integers("as_strided", "shape", shape)
    steps = host.strides if strides is None else integers("as_strided", "strides", strides)
    if len(sizes) != len(steps) or any(size < 0 for size in sizes):
        raise ShapeError(
            f"as_strided: wanted sizes of 0 or more and a stride for each, got {sizes} and {steps}"
        )
    first, end = (
        bound - host.__array_interface__["data"][0] for bound in np.lib.array_utils.byte_bounds(host)
    )
    ends = [(size - 1) * step for size, step in zip(sizes, steps, strict=True)]
    lowest, highest = sum(min(each, 0) for each in ends), sum(max(each, 0) for each in ends) + host.itemsize
    if 0 not in sizes and (lowest < first or highest > end):
        raise ValueRangeError(
            f"as_strided: wanted bytes {first} to {end} of x, which has shape {host.shape} and strides {host.strides}; "
            f"shape {sizes} with strides {steps} reads {lowest} to {highest}"
        )
    values = np.lib.stride_tricks.as_strided(host, sizes, steps).copy()
    return from_host(values, device_of(array._node))


@remembers_calls
def sliding_window_view(
    x: ArrayLike,
    window_shape: int | Sequence[int],
    axis: int | Sequence[int] | None = None,
    *,
    subok: bool = False,
    writeable: bool = False,
) -> Array:
    """All windows of `window_shape` in `x`, their dimensions last: result[i, k] = x[i + k] for a vector.

    x: array of any type.  window_shape: a size for each of `axis`, by default for each dimension of x; a dimension
        of n elements becomes one of n - size + 1 windows.  An axis that is named twice is slid over twice.

    The result is an array of its own (a gather, which a reduction over the windows does not lay into memory), so
    `writeable=True` is refused.  Raises ShapeError for a window that is larger than its dimension or another number
    of sizes than axes, AxisError.  Source: NumPy, `lib.stride_tricks.sliding_window_view`.
    """
    if flag("sliding_window_view", "writeable", writeable):
        raise ArgumentError(
            "sliding_window_view: wanted writeable=False, as windows are not views, and writing to them would not "
            "change x; x.at[i + k].add(v) changes elements that windows share"
        )
    array = as_array(x)
    refuse_dynamic("sliding_window_view", array, "lax.reduce_window")
    sizes = integers(
        "sliding_window_view", "window_shape", window_shape if is_listed(window_shape) else (window_shape,)
    )
    axes = _axes(array, axis, len(sizes))
    if any(size < 0 for size in sizes):
        raise ShapeError(f"sliding_window_view: wanted sizes of 0 or more for window_shape, got {sizes}")
    rank, slid, order = len(array.shape), array, list[int]()
    while len(order) < len(axes):  # once, unless an axis is named twice
        left = [number for number in range(len(axes)) if number not in order]
        now = [number for number in left if axes[number] not in [axes[one] for one in left if one < number]]
        slid = _slide(slid, {axes[number]: sizes[number] for number in now})
        order += now
    lasts = [rank + order.index(number) for number in range(len(axes))]
    return fresh(lax.transpose(slid, (*range(rank), *lasts)))


def _slide(array: Array, sizes: dict[int, int]) -> Array:
    """The windows of these sizes along each axis, their dimensions last, in the order of `sizes`."""
    for axis, size in sizes.items():
        if size > array.shape[axis]:
            raise ShapeError(
                f"sliding_window_view: wanted windows of at most {array.shape[axis]} elements along axis {axis}, "
                f"got {size}"
            )
    starts = tuple([array.shape[axis] - size + 1 for axis, size in sizes.items()])
    shape = [array.shape[axis] - sizes.get(axis, 1) + 1 for axis in range(len(array.shape))]
    if 0 in (*shape, *sizes.values()):
        return fill((*shape, *sizes.values()), 0, array.dtype, array._node.device)
    if not sizes:
        return array
    count, rank = len(sizes), len(array.shape)
    grid = [lax.broadcasted_iota(np.int64, (*starts, 1), dim) for dim in range(count)]
    axes = tuple(sizes)
    windows = lax.gather(
        array,
        lax.concatenate(grid, count),
        lax.GatherDimensionNumbers(tuple(range(count, count + rank)), (), axes),
        [sizes.get(axis, size) for axis, size in enumerate(array.shape)],
    )
    # Its dimensions are the starts of windows, then those of a window, which are whole for all other axes.
    permutation = [axes.index(axis) if axis in sizes else count + axis for axis in range(rank)]
    return lax.transpose(windows, (*permutation, *[count + axis for axis in axes]))


def _axes(array: Array, axis: int | Sequence[int] | None, count: int) -> tuple[int, ...]:
    rank = len(array.shape)
    if axis is None:
        if count != rank:
            raise ShapeError(
                f"sliding_window_view: wanted {rank} sizes in window_shape, one for each dimension of x, or axis=, "
                f"got {count}"
            )
        return tuple(range(rank))
    axes = integers("sliding_window_view", "axis", axis if is_listed(axis) else (axis,))
    if len(axes) != count:
        raise ShapeError(
            f"sliding_window_view: wanted a size in window_shape for each axis, got {count} sizes for {len(axes)} axes"
        )
    return tuple([normalize_axis(one, rank) for one in axes])


if not TYPE_CHECKING:  # a module with __getattr__ has every name to a type checker
    __getattr__, __dir__ = hooks_of(__name__)
