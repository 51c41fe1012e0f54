"""Functions that find elements: choice by a condition, places of extremes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from xarr import lax
from xarr.errors import InputError, ShapeError
from xarr.functions._arguments import refuse_out, truth
from xarr.functions._core import as_array, broadcasted, promoted
from xarr.lax.core import ArrayLike, flag
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
