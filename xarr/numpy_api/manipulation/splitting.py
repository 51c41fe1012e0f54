"""Split arrays into parts along an axis."""

from __future__ import annotations

import builtins
from itertools import pairwise
from typing import Final

import numpy as np

from xarr import lax
from xarr.base.typing import Array
from xarr.calls.arguments import (
    is_listed,
)
from xarr.calls.operands import as_array, fresh
from xarr.calls.remembered_calls import remembers_calls
from xarr.errors import (
    DivisionByZeroError,
    ShapeError,
    pluralize,
)
from xarr.lax.core import ArrayLike, integers, whole
from xarr.lax.dynamic_sizes import refuse_dynamic
from xarr.numpy_api.manipulation.shapes import Axes, require_rank
from xarr.runtime.view_tracking import INDEX, mark
from xarr.shapes import normalize_axis

__all__ = ["array_split", "dsplit", "hsplit", "split", "unstack", "vsplit"]


@remembers_calls
def array_split(ary: ArrayLike, indices_or_sections: Axes, axis: int = 0) -> list[Array]:
    """Parts along `axis`: that many, the first ones larger by 1 if need be, or cut before each index.

    Indices mean what they mean in a slice.  Raises AxisError, DivisionByZeroError for fewer than one part.
    Source: NumPy, `array_split`.
    """
    array = as_array(ary)
    dim = normalize_axis(axis, len(array.shape))
    refuse_dynamic("array_split", array, "lax.slice_in_dim", (dim,))
    size = array.shape[dim]
    parts: dict[tuple[int, int], Array] = {}  # of very many parts most are empty

    def part(start: int, stop: int) -> Array:
        low, high, _ = slice(start, stop).indices(size)
        key = low, builtins.max(low, high)
        if key in parts:
            return mark(array, fresh(parts[key]), INDEX, _slice_index(key, dim))
        elements = lax.slice_in_dim(array, *key, axis=dim)
        parts[key] = mark(array, elements, INDEX, _slice_index(key, dim))
        return parts[key]

    cuts = [0, *_cuts("array_split", indices_or_sections, size), size]
    return [part(start, stop) for start, stop in pairwise(cuts)]


def _slice_index(ends: tuple[int, int], axis: int) -> tuple[slice, ...]:
    """The index of a slice along `axis`."""
    return (*[slice(None)] * axis, slice(*ends))


class _TooManyPartsError(ShapeError, MemoryError, OverflowError):
    """NumPy says MemoryError or OverflowError."""


_MOST_PARTS: Final = 2**27


def _part_count(name: str, sections: Axes) -> int:
    count = whole(name, "indices_or_sections", sections)
    if count < 1:
        raise DivisionByZeroError(f"{name}: wanted at least one part, got {count}")
    return count


def _cuts(name: str, indices_or_sections: Axes, size: int) -> tuple[int, ...]:
    if is_listed(indices_or_sections):
        return integers(name, "indices_or_sections", indices_or_sections)
    sections = _part_count(name, indices_or_sections)
    if sections > _MOST_PARTS:
        raise _TooManyPartsError(f"{name}: a list holds at most {_MOST_PARTS} parts, got {sections}")
    each, larger = divmod(size, sections)
    return tuple(number * each + builtins.min(number, larger) for number in range(1, sections))


@remembers_calls
def split(ary: ArrayLike, indices_or_sections: Axes, axis: int = 0) -> list[Array]:
    """`array_split` into equal parts, or before each index.

    Raises ShapeError if a number of parts does not divide the size.  Source: NumPy, `split`.
    """
    array = as_array(ary)
    size = array.shape[normalize_axis(axis, len(array.shape))]
    if np.ndim(indices_or_sections) == 0:
        sections = _part_count("split", indices_or_sections)
        if size % sections:
            raise ShapeError(
                f"split: {pluralize(size, 'element')} along axis {axis} cannot be split into {sections} equal parts; "
                "array_split allows unequal ones"
            )
    return array_split(array, indices_or_sections, axis)


@remembers_calls
def hsplit(ary: ArrayLike, indices_or_sections: Axes) -> list[Array]:
    """`split` along the second dimension, of vectors along their only one.  Source: NumPy."""
    array = require_rank("hsplit", ary, 1)
    return split(array, indices_or_sections, 1 if len(array.shape) > 1 else 0)


@remembers_calls
def vsplit(ary: ArrayLike, indices_or_sections: Axes) -> list[Array]:
    """`split` along the first dimension.  Raises ShapeError below rank 2.  Source: NumPy."""
    return split(require_rank("vsplit", ary, 2), indices_or_sections, 0)


@remembers_calls
def dsplit(ary: ArrayLike, indices_or_sections: Axes) -> list[Array]:
    """`split` along the third dimension.  Raises ShapeError below rank 3.  Source: NumPy."""
    return split(require_rank("dsplit", ary, 3), indices_or_sections, 2)


@remembers_calls
def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple[Array, ...]:
    """The arrays that `stack` along `axis` would join to `x`.

    Raises AxisError for a scalar.  Source: Array API, `unstack`.
    """
    array = as_array(x)
    dim = normalize_axis(axis, len(array.shape))
    whole = (slice(None),) * dim
    return tuple(
        mark(array, part, INDEX, (*whole, number)) if part.shape else part
        for number, part in enumerate(lax.unstack(array, dim))
    )
