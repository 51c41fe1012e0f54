"""Reductions that leave NaN out: sums, products, extremes, means, variances, order statistics.

A complex number with a NaN in either part is left out.  Types without NaN are reduced as by the functions without
`nan` in their names.  `axis`, `keepdims`, `where` and element types are those of these functions; nothing warns of
slices in which all is NaN.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from xarr import lax
from xarr.base.typing import Array
from xarr.calls.arguments import convert, is_nan, mask_for
from xarr.calls.operands import DType, as_array
from xarr.calls.outputs import THERE_AND_BACK, takes_out
from xarr.dtypes import COMPLEX, FLOAT, canonical, highest, lowest
from xarr.errors import DTypeError
from xarr.lax.core import ArrayLike, flag
from xarr.numpy_api.sorting import searching
from xarr.numpy_api.statistics import reductions as statistical
from xarr.numpy_api.statistics.lines import Axis, Lines
from xarr.numpy_api.statistics.quantiles import Quantiles, weighted_quantiles

__all__ = [
    "nanargmax",
    "nanargmin",
    "nancumprod",
    "nancumsum",
    "nanmax",
    "nanmean",
    "nanmedian",
    "nanmin",
    "nanpercentile",
    "nanprod",
    "nanquantile",
    "nanstd",
    "nansum",
    "nanvar",
]


def _has_nan(dtype: DType) -> bool:
    return dtype in FLOAT | COMPLEX


def _without_nan(array: Array, value: Any) -> Array:
    """Replace NaN by `value`."""
    return lax.select(is_nan(array), lax.full_like(array, value), array) if _has_nan(array.dtype) else array


# --- sums and products ---------------------------------------------------------------------------------


@takes_out("unsafe", sums=True)
def nansum(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: Array | None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike = True,
) -> Array:
    """Sum over `axis` with NaN as 0.  Otherwise as `sum`.  Source: NumPy, `nansum`."""
    return statistical.sum(_without_nan(as_array(a), 0), axis, dtype, None, keepdims, initial, where)


@takes_out("unsafe", sums=True)
def nanprod(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: Array | None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike = True,
) -> Array:
    """Product over `axis` with NaN as 1.  Otherwise as `prod`.  Source: NumPy, `nanprod`."""
    return statistical.prod(_without_nan(as_array(a), 1), axis, dtype, None, keepdims, initial, where)


@takes_out("unsafe", sums=True)
def nancumsum(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: Array | None = None
) -> Array:
    """The sums so far along `axis` with NaN as 0.  Otherwise as `cumsum`.  Source: NumPy, `nancumsum`."""
    return statistical.cumsum(_without_nan(as_array(a), 0), axis, dtype)


@takes_out("unsafe", sums=True)
def nancumprod(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: Array | None = None
) -> Array:
    """The products so far along `axis` with NaN as 1.  Otherwise as `cumprod`.  Source: NumPy, `nancumprod`."""
    return statistical.cumprod(_without_nan(as_array(a), 1), axis, dtype)


# --- extremes --------------------------------------------------------------------------------------------


@takes_out("unsafe")
def nanmax(
    a: ArrayLike,
    axis: Axis = None,
    out: Array | None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike = True,
) -> Array:
    """The largest element over `axis` that is no NaN, at least `initial`; NaN if there is none.

    Raises ShapeError, a ValueError, for no elements, or `where`, without `initial`.  Source: NumPy, `nanmax`.
    """
    return _extreme("nanmax", a, axis, keepdims, initial, where)


@takes_out("unsafe")
def nanmin(
    a: ArrayLike,
    axis: Axis = None,
    out: Array | None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike = True,
) -> Array:
    """The smallest element over `axis` that is no NaN, at most `initial`; NaN if there is none.  As `nanmax`.

    Source: NumPy, `nanmin`.
    """
    return _extreme("nanmin", a, axis, keepdims, initial, where)


def _extreme(
    name: str, a: ArrayLike, axis: Axis, keepdims: bool, initial: ArrayLike | None, where: ArrayLike
) -> Array:
    array = as_array(a)
    largest = name == "nanmax"
    if not _has_nan(array.dtype):
        return statistical.extreme(name, largest, array, axis, keepdims, initial, where)
    numbers = _without_nan(array, (lowest if largest else highest)(array.dtype))
    result = statistical.extreme(name, largest, numbers, axis, keepdims, initial, where)
    if initial is not None:
        return result
    nothing = statistical.all(is_nan(array), axis, None, keepdims)
    return lax.select(nothing, lax.full_like(result, math.nan), result)


@takes_out(THERE_AND_BACK)
def nanargmax(
    a: ArrayLike, axis: int | None = None, out: Array | None = None, *, keepdims: bool = False
) -> Array:
    """The int64 index of the largest element along `axis` that is no NaN, the first of equal ones.

    -1 where all is NaN: NumPy, which looks at values, raises there.  NaN counts as -inf, so that of a slice of
    these two the first is taken.  Errors as `argmax`, and DTypeError for complex numbers.
    Source: NumPy and jax.numpy, `nanargmax`.
    """
    return _extreme_index("nanargmax", a, axis, keepdims)


@takes_out(THERE_AND_BACK)
def nanargmin(
    a: ArrayLike, axis: int | None = None, out: Array | None = None, *, keepdims: bool = False
) -> Array:
    """The int64 index of the smallest element that is no NaN, -1 where all is NaN.  As `nanargmax`.

    Source: NumPy, `nanargmin`.
    """
    return _extreme_index("nanargmin", a, axis, keepdims)


def _extreme_index(name: str, a: ArrayLike, axis: int | None, keepdims: bool) -> Array:
    array = as_array(a)
    largest = name == "nanargmax"
    search = searching.argmax if largest else searching.argmin
    if array.dtype in COMPLEX:
        raise DTypeError(f"{name}: wanted real numbers, got complex {array.dtype}; take abs or real")
    if not _has_nan(array.dtype):
        return search(array, axis, keepdims=keepdims)
    result = search(_without_nan(array, -math.inf if largest else math.inf), axis, keepdims=keepdims)
    nothing = statistical.all(is_nan(array), axis, None, keepdims)
    return lax.select(nothing, lax.full_like(result, -1), result)


# --- means -----------------------------------------------------------------------------------------------


@takes_out("unsafe", keeps_inexact=True)
def nanmean(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: Array | None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike = True,
) -> Array:
    """Mean over `axis` of what is no NaN; NaN for nothing.

    Element types as `mean`.  Raises DTypeError for an integer dtype of floats.  Source: NumPy, `nanmean`.
    """
    array = as_array(a)
    if not _has_nan(array.dtype):
        return statistical.mean(array, axis, dtype, None, keepdims, where=where)
    element = _float_dtype("nanmean", array, dtype)
    taking_part = _taking_part("nanmean", array, where)
    return statistical.mean(array, axis, element, None, keepdims, where=taking_part)


def _taking_part(name: str, array: Array, where: ArrayLike) -> Array:
    """The mask of elements that are no NaN and wanted by `where`."""
    numbers = lax.bitwise_not(is_nan(array))
    mask = mask_for(name, array, where)
    return numbers if mask is None else lax.bitwise_and(numbers, mask)


def _float_dtype(name: str, array: Array, dtype: DTypeLike | None) -> DType:
    element = array.dtype if dtype is None else canonical(dtype)
    if not _has_nan(element):
        raise DTypeError(
            f"{name}: wanted a float or complex dtype for elements of {array.dtype}, got {element}"
        )
    return element


@takes_out("unsafe", keeps_inexact=True)
def nanvar(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: Array | None = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: ArrayLike = True,
    mean: ArrayLike | None = None,
    correction: float | None = None,
) -> Array:
    """Variance over `axis` of what is no NaN, NaN where that is no more than ddof elements.

    Arguments and element types as `var`; floats narrower than 32 bits are computed with as float32.
    Source: NumPy, `nanvar`.
    """
    return _deviation("nanvar", a, axis, dtype, ddof, keepdims, where, mean, correction)


@takes_out("same_kind", keeps_inexact=True)
def nanstd(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: Array | None = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: ArrayLike = True,
    mean: ArrayLike | None = None,
    correction: float | None = None,
) -> Array:
    """Square root of `nanvar`, with the same arguments.  Source: NumPy, `nanstd`."""
    return _deviation("nanstd", a, axis, dtype, ddof, keepdims, where, mean, correction)


def _deviation(
    name: str,
    a: ArrayLike,
    axis: Axis,
    dtype: DTypeLike | None,
    ddof: float,
    keepdims: bool,
    where: ArrayLike,
    mean: ArrayLike | None,
    correction: float | None,
) -> Array:
    array = as_array(a)
    spread = statistical.var if name == "nanvar" else statistical.std
    if _has_nan(array.dtype):
        element = _float_dtype(name, array, dtype)
        where = _taking_part(name, array, where)
        result = spread(
            array, axis, element, None, ddof, keepdims, where=where, mean=mean, correction=correction
        )
        degrees = ddof if correction is None else correction
        count = statistical.sum(where, axis, keepdims=keepdims)
        few = lax.le(convert(count, np.dtype(np.float64)), float(degrees))
        return lax.select(few, lax.full_like(result, math.nan), result)
    return spread(array, axis, dtype, None, ddof, keepdims, where=where, mean=mean, correction=correction)


# --- order statistics --------------------------------------------------------------------------------------


@takes_out("unsafe")
def nanmedian(
    a: ArrayLike,
    axis: Axis = None,
    out: Array | None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Array:
    """`median` over `axis` of what is no NaN; NaN for nothing.  Source: NumPy, `nanmedian`."""
    array = as_array(a)
    keepdims = flag("nanmedian", "keepdims", keepdims)
    if not array.size:
        return statistical.mean(array, axis, keepdims=keepdims)
    lines = Lines.along_axes("nanmedian", array, axis).sort()
    count = lines.numbers()
    nothing = lax.full_like(count, 0)
    upper = lax.min(lax.div(count, 2), lax.full_like(count, lines.length - 1))
    lower = lax.max(lax.sub(lax.div(lax.add(count, 1), 2), 1), nothing)
    above, below = lines.elements_at(upper), lines.elements_at(lower)
    pair = lax.concatenate([lax.expand_dims(each, (0,)) for each in (below, above)], 0)
    middle = statistical.mean(lax.expand_dims(above, (0,)), 0)
    result = lax.select(lax.eq(upper, lower), middle, statistical.mean(pair, 0))
    return lines.reshape_results(result, keepdims=keepdims)


@takes_out("unsafe", broadcasts=True)
def nanquantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axis = None,
    out: Array | None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """`quantile` over `axis` of what is no NaN; NaN for nothing.  Source: NumPy, `nanquantile`."""
    asked = Quantiles.of("nanquantile", q, method, percent=False)
    return _nanquantile(asked, as_array(a), axis, keepdims, weights)


@takes_out("unsafe", broadcasts=True)
def nanpercentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axis = None,
    out: Array | None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """`percentile` over `axis` of what is no NaN; NaN for nothing.  Source: NumPy, `nanpercentile`."""
    asked = Quantiles.of("nanpercentile", q, method, percent=True)
    return _nanquantile(asked, as_array(a), axis, keepdims, weights)


def _nanquantile(
    asked: Quantiles, array: Array, axis: Axis, keepdims: bool, weights: ArrayLike | None
) -> Array:
    asked.refuse_unordered(array)
    keepdims = flag(asked.name, "keepdims", keepdims)
    if not array.size:
        return statistical.mean(array, axis, keepdims=keepdims)
    if weights is not None:
        return weighted_quantiles(asked, array, axis, weights, keepdims=keepdims, ignore_nan=True)
    lines = Lines.along_axes(asked.name, array, axis).sort()
    result = asked.select_from_sorted(lines, lines.numbers() if _has_nan(array.dtype) else lines.length)
    return lines.reshape_results(result, asked.shape, keepdims=keepdims)
