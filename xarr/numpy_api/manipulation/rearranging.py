"""Rearrange elements: flips, rolls and rotations by 90 degrees; rolls also by numbers that a traced function gets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from xarr import lax
from xarr.base.typing import Array
from xarr.calls.arguments import (
    is_listed,
    traced_integer,
)
from xarr.calls.operands import as_array, fresh
from xarr.calls.remembered_calls import remembers_calls
from xarr.errors import (
    ShapeError,
)
from xarr.lax.core import ArrayLike, integer, integers, whole
from xarr.lax.dynamic_sizes import refuse_dynamic
from xarr.numpy_api.manipulation.shapes import Axes, ravel, require_rank, reshape, swapaxes
from xarr.runtime.handles import Handle
from xarr.runtime.materialisation import to_host
from xarr.runtime.view_tracking import FLIP, mark
from xarr.shapes import normalize_axes, normalize_axis

__all__ = ["flip", "fliplr", "flipud", "roll", "rot90"]

#: An int, or without a value an int64 scalar.
Shift = Any


def shifts_of(shift: Any) -> tuple[Shift, ...]:
    """One shift or several, as ints where they have values.  ArgumentError for what is no real number."""
    if isinstance(shift, Handle) and shift._node.traced and len(shift._node.shape) == 1:
        values = [lax.index_in_dim(shift, at, keepdims=False) for at in range(shift._node.shape[0])]
    else:
        values = list(shift) if is_listed(shift) else [shift]
    traced = [traced_integer("roll", "shift", value) for value in values]
    pairs = zip(traced, values, strict=True)
    return tuple([_whole(value) if one is None else one for one, value in pairs])


def _whole(shift: Any) -> int:
    """The int of a shift that may be a bool, or a float, whose fraction is dropped, as in NumPy."""
    value = to_host(shift)[()] if isinstance(shift, Handle) else shift
    if isinstance(value, bool | np.bool_):
        return int(value)
    if isinstance(value, float | np.floating) and math.isfinite(value):
        return int(value)
    return integer("roll", "shift", value)


def roll_axes(array: Array, shifts: Sequence[Shift], axes: Sequence[int]) -> Array:
    """`array` rolled by each shift along its axis; one of them may stand for all.  ShapeError for other counts."""
    if len(shifts) != len(axes) and 1 not in (len(shifts), len(axes)):
        raise ShapeError(
            f"roll: wanted one shift for each axis, got {len(shifts)} for the axes {tuple(axes)}"
        )
    count = max(len(shifts), len(axes)) if shifts and axes else 0
    for one, axis in zip(_repeat_single(shifts, count), _repeat_single(axes, count), strict=True):
        array = _roll_axis(array, one, axis)
    return array


def _repeat_single(values: Sequence[Any], count: int) -> Sequence[Any]:
    return [values[0]] * count if len(values) == 1 else values


def _roll_axis(array: Array, shift: int | Array, axis: int) -> Array:
    refuse_dynamic("roll", array, "lax.slice and lax.concatenate", (axis,))
    size = array.shape[axis]
    if isinstance(shift, Handle):
        if not size:
            return array
        start = lax.rem(lax.sub(size, lax.rem(lax.add(lax.rem(shift, size), size), size)), size)
        return lax.dynamic_slice_in_dim(lax.concatenate([array, array], axis), start, size, axis)
    cut = -shift % size if size else 0
    if not cut:
        return array
    tail, head = (lax.slice_in_dim(array, *ends, axis=axis) for ends in ((cut, size), (0, cut)))
    return lax.concatenate([tail, head], axis)


@remembers_calls
def flip(m: ArrayLike, axis: Axes | None = None) -> Array:
    """Elements in reverse order along `axis` (all by default).  Raises AxisError.  Source: NumPy."""
    array = as_array(m)
    axes = normalize_axes(axis, len(array.shape))
    return mark(array, lax.rev(array, axes), FLIP, axes)


@remembers_calls
def flipud(m: ArrayLike) -> Array:
    """`flip` along the first dimension.  Raises ShapeError for a scalar.  Source: NumPy."""
    return flip(require_rank("flipud", m, 1), 0)


@remembers_calls
def fliplr(m: ArrayLike) -> Array:
    """`flip` along the second dimension.  Raises ShapeError below rank 2.  Source: NumPy."""
    return flip(require_rank("fliplr", m, 2), 1)


@remembers_calls
def rot90(m: ArrayLike, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """Rotate by k times 90 degrees, from the first of `axes` towards the second.

    Raises ShapeError unless there are two axes, AxisError if they are the same.  Source: NumPy, `rot90`.
    """
    array = as_array(m)
    plane = normalize_axes(axes, len(array.shape), name="axes")
    if len(plane) != 2:
        raise ShapeError(f"rot90: wanted two axes, got {plane}")
    quarters = whole("rot90", "k", k) % 4
    if quarters in (0, 2):
        return flip(array, plane if quarters else ())
    return (
        swapaxes(flip(array, plane[1]), *plane) if quarters == 1 else flip(swapaxes(array, *plane), plane[1])
    )


@remembers_calls
def roll(a: ArrayLike, shift: Axes | Array | Sequence[Array], axis: Axes | None = None) -> Array:
    """Move elements on by `shift`; what leaves at the end enters at the start.

    Without `axis` over the flattened array.  A tuple of shifts goes with a tuple of axes, which may name
    a dimension twice; one of them may be a single number for all.  In a traced function the shifts may depend on
    its arguments.  Of floats the fractions are dropped.  Raises AxisError, ShapeError for different counts,
    ArgumentError for what is no real number.  Source: NumPy, `roll`.
    """
    array, shifts = as_array(a), shifts_of(shift)
    if axis is None:
        return reshape(roll(ravel(array), sum(shifts), 0), array.shape)
    axes = tuple(normalize_axis(one, len(array.shape)) for one in _ints("roll", "axis", axis))
    return fresh(roll_axes(array, shifts, axes))


def _ints(name: str, argument: str, value: Axes) -> tuple[int, ...]:
    return integers(name, argument, value if is_listed(value) else (value,))
