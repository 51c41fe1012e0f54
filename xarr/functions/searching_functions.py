"""Functions that find elements: choice by a condition, places of extremes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from xarr import lax
from xarr.dtypes import COMPLEX, FLOAT, INTEGER
from xarr.errors import DTypeError, InputError, ShapeError, ValueRangeError
from xarr.functions._arguments import refuse_out, truth
from xarr.functions._core import as_array, broadcasted, promoted
from xarr.lax.core import ArrayLike, flag
from xarr.lax.dynamic_sizes import refuse_dynamic
from xarr.shapes import normalize_axis

if TYPE_CHECKING:
    from xarr.array import Array


def where(condition: ArrayLike, x: ArrayLike | None = None, y: ArrayLike | None = None, /) -> Array:
    """x where `condition` differs from 0, else y; all three broadcast, x and y promote.

    Raises BroadcastError, InputError for one array alone (the places of nonzero elements have no shape
    before they are counted).  Source: NumPy, `where`.
    """
    if x is None or y is None:
        raise InputError(
            "where: wanted condition, x and y; the places of nonzero elements, where(condition), have a "
            "shape that depends on values and are not offered: np.nonzero(np.asarray(condition)) finds them"
        )
    choice, yes, no = broadcasted("where", truth(condition), *promoted("where", x, y))
    return lax.select(choice, yes, no)


def _extreme_place(name: str, a: ArrayLike, axis: int | None, keepdims: bool) -> Array:
    array = as_array(a)
    rank = len(array.shape)
    place = None if axis is None else normalize_axis(axis, rank)
    flat = lax.reshape(array, (array.size,)) if place is None else array
    dimension = 0 if place is None else place
    if not flat.shape[dimension]:
        raise ShapeError(
            f"{name}: no elements along axis {axis} of shape {array.shape}, so no place among them"
        )
    found: Array = (lax.argmax if name == "argmax" else lax.argmin)(flat, dimension, np.int64)
    if not flag(name, "keepdims", keepdims):
        return found
    return lax.expand_dims(found, range(rank) if place is None else (place,))


def argmax(a: ArrayLike, axis: int | None = None, out: None = None, *, keepdims: bool = False) -> Array:
    """The int64 index of the largest element along `axis`, or in the flattened array: of the first NaN if
    there is one, else of the first of equal ones.

    Raises ShapeError, a ValueError, for no elements, AxisError, DTypeError for complex numbers.
    Source: NumPy, `argmax`.
    """
    refuse_out("argmax", out)
    return _extreme_place("argmax", a, axis, keepdims)


def argmin(a: ArrayLike, axis: int | None = None, out: None = None, *, keepdims: bool = False) -> Array:
    """The int64 index of the smallest element; NaN, ties and errors as `argmax`.  Source: NumPy, `argmin`."""
    refuse_out("argmin", out)
    return _extreme_place("argmin", a, axis, keepdims)


def searchsorted(a: ArrayLike, v: ArrayLike, side: str = "left", sorter: ArrayLike | None = None) -> Array:
    """Where each of `v` would go into the sorted vector `a`: before equal elements for side "left", after
    them for "right".

    sorter: the integers that sort `a`, as `argsort` gives them.  NaN comes last; complex numbers go by real,
    then imaginary part.  Returns int64 of the shape of `v`, from 0 to the size of `a`.  Raises ShapeError if
    `a` or `sorter` is no vector of one size, ValueRangeError for another side, DTypeError for a sorter that
    is not of integers.  Source: NumPy and Array API, `searchsorted`.
    """
    if side not in ("left", "right"):
        raise ValueRangeError(f"searchsorted: wanted side 'left' or 'right', got {side!r}")
    within, wanted = promoted("searchsorted", a, v)
    if len(within.shape) != 1:
        raise ShapeError(f"searchsorted: wanted a sorted vector, got shape {within.shape}")
    for array in (within, wanted):
        refuse_dynamic("searchsorted", array, "a static array")
    if sorter is not None:
        within = lax.take(within, _sorter(sorter, within.shape), 0) if within.size else within
    return _bisected(within, wanted, side == "left")


def _sorter(sorter: ArrayLike, shape: tuple[int, ...]) -> Array:
    order = as_array(sorter)
    if order.dtype not in INTEGER:
        raise DTypeError(f"searchsorted: wanted integers for sorter, got {order.dtype}; argsort gives them")
    if order.shape != shape:
        raise ShapeError(f"searchsorted: wanted a sorter of shape {shape}, that of a, got {order.shape}")
    return order


def _bisected(within: Array, wanted: Array, left: bool) -> Array:
    """Halve the range of each element, as often as the longest range can be halved."""
    size = within.shape[0]
    low = lax.full_like(wanted, 0, np.int64)
    high = lax.full_like(wanted, size, np.int64)
    for _ in range(size.bit_length()):
        middle = lax.shift_right_logical(lax.add(low, high), 1)
        there = lax.take(within, middle, 0)  # of an empty range at the end the last, which is not used
        goes_on = lax.bitwise_and(_precedes(there, wanted, not left), lax.lt(low, high))
        low = lax.select(goes_on, lax.add(middle, 1), low)
        high = lax.select(goes_on, high, middle)
    return low


def _precedes(x: Array, y: Array, or_equals: bool) -> Array:
    """x < y, or x <= y, in the order of `sort`: NaN last, complex numbers part by part."""
    if x.dtype in COMPLEX:
        first, second = (lax.real(x), lax.real(y)), (lax.imag(x), lax.imag(y))
        equal = lax.bitwise_not(lax.bitwise_or(_precedes(*first, False), _precedes(*first[::-1], False)))
        later = lax.bitwise_and(equal, _precedes(*second, or_equals))
        return lax.bitwise_or(_precedes(*first, False), later)
    if x.dtype not in FLOAT:
        return lax.le(x, y) if or_equals else lax.lt(x, y)
    y_is_nan = lax.ne(y, y)
    if or_equals:
        return lax.bitwise_or(lax.le(x, y), y_is_nan)
    return lax.bitwise_or(lax.lt(x, y), lax.bitwise_and(y_is_nan, lax.eq(x, x)))
