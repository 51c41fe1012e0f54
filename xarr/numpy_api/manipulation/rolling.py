"""Elements moved around the dimensions of an array, also by numbers that a traced function gets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from xarr import lax
from xarr.base.typing import Array
from xarr.calls.arguments import is_listed, traced_integer
from xarr.errors import ShapeError
from xarr.lax.core import integer
from xarr.lax.dynamic_sizes import refuse_dynamic
from xarr.runtime.handles import Handle
from xarr.runtime.materialisation import to_host

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
