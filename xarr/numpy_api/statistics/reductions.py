"""Reductions: sums, products, extremes, means, variances, truth.

`axis` is None (all dimensions), an int, or a tuple of ints; negative ones count from the end, and () reduces
nothing.  With `keepdims` reduced dimensions stay with size 1.  `where`, a mask that broadcasts to the
array's shape, says which elements take part.  A scalar has no axis, not even 0: AxisError.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import DTypeLike

from xarr import lax
from xarr.base.broadcasting import Misfit, align_numpy
from xarr.base.typing import Array
from xarr.calls.arguments import apply_mask, convert, fill, initial_value, mask_for, stretch, truth
from xarr.calls.operands import DType, as_array
from xarr.calls.outputs import takes_out
from xarr.calls.remembered_calls import remembers_calls
from xarr.dtypes import BOOL, COMPLEX, FLOAT, PREDICATE, canonical, default_float, promote, total_type
from xarr.errors import ArgumentError, DTypeError, ShapeError, SizeError, pluralize
from xarr.explanation.errors import broadcast_error
from xarr.ir.types import replace_at
from xarr.lax.core import ArrayLike, flag, integer, real_number
from xarr.lax.dynamic_sizes import refuse_empty
from xarr.shapes import normalize_axes

__all__ = [
    "all",
    "amax",
    "amin",
    "any",
    "average",
    "count_nonzero",
    "cumprod",
    "cumsum",
    "cumulative_prod",
    "cumulative_sum",
    "max",
    "mean",
    "min",
    "prod",
    "std",
    "sum",
    "var",
]

Axis = int | Sequence[int] | None
INT64 = np.dtype(np.int64)


def _axes(array: Array, axis: Axis) -> tuple[int, ...]:
    return normalize_axes(axis, len(array.shape))


def _keep_dims(name: str, reduced: Array, axes: tuple[int, ...], keepdims: bool) -> Array:
    return lax.expand_dims(reduced, axes) if flag(name, "keepdims", keepdims) and axes else reduced


def _count(array: Array, axes: tuple[int, ...]) -> int:
    return math.prod(array.shape[axis] for axis in axes)


# --- sums and products ----------------------------------------------------------------------------


def _total(
    name: str,
    a: ArrayLike,
    axis: Axis,
    dtype: DTypeLike | None,
    keepdims: bool,
    initial: ArrayLike | None,
    where: ArrayLike,
) -> Array:
    array = as_array(a)
    axes = _axes(array, axis)
    mask = mask_for(name, array, where)
    element = total_type(array.dtype) if dtype is None else canonical(dtype)
    reduce, combine, neutral = _TOTALS[name, element in BOOL]
    array = truth(array) if element in BOOL else convert(array, element)
    total = reduce(apply_mask(array, mask, fill((), neutral, element)), axes)
    if initial is not None:
        start = initial_value(name, initial, element)
        total = combine(stretch(start, total.shape), total)
    return _keep_dims(name, total, axes, keepdims)


_Total = tuple[Callable[..., "Array"], Callable[..., "Array"], int]
#: (function, whether of bools) -> reduction, its combiner, its neutral element.
_TOTALS: dict[tuple[str, bool], _Total] = {
    ("sum", False): (lax.reduce_sum, lax.add, 0),
    ("sum", True): (lax.reduce_or, lax.bitwise_or, 0),
    ("prod", False): (lax.reduce_prod, lax.mul, 1),
    ("prod", True): (lax.reduce_and, lax.bitwise_and, 1),
}


@takes_out("unsafe", sums=True)
def sum(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: Array | None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike = True,
) -> Array:
    """Sum over `axis`, plus `initial`; 0 for no elements.

    Bools and integers narrower than 64 bits are summed as int64 or uint64 unless `dtype` is given, and wrap;
    floats narrower than 32 bits are summed as float32 and rounded once.  Raises AxisError, BroadcastError for
    `where`.  Source: NumPy, `sum`.
    """
    return _total("sum", a, axis, dtype, keepdims, initial, where)


@takes_out("unsafe", sums=True)
def prod(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: Array | None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike = True,
) -> Array:
    """Product over `axis`, times `initial`; 1 for no elements.  Element types and errors as `sum`.

    Source: NumPy and Array API, `prod`.
    """
    return _total("prod", a, axis, dtype, keepdims, initial, where)


# --- running sums and products ---------------------------------------------------------------------


_Running = Callable[..., "Array"]
#: (function, whether of bools) -> running reduction.
_RUNNING: dict[tuple[str, bool], _Running] = {
    ("sum", False): lax.cumsum,
    ("sum", True): lax.cummax,
    ("prod", False): lax.cumprod,
    ("prod", True): lax.cummin,
}


def _running(kind: str, array: Array, axis: int, dtype: DTypeLike | None) -> Array:
    (dim,) = _axes(array, integer(f"cum{kind}", "axis", axis))
    element = total_type(array.dtype) if dtype is None else canonical(dtype)
    array = truth(array) if element in BOOL else convert(array, element)
    return _RUNNING[kind, element in BOOL](array, dim)


def _running_of_all(kind: str, a: ArrayLike, axis: int | None, dtype: DTypeLike | None) -> Array:
    """As `_running`; without an axis of all elements, in one dimension."""
    array = as_array(a)
    if axis is None:
        return _running(kind, lax.reshape(array, (array.size,)), 0, dtype)
    return _running(kind, array, axis, dtype)


@takes_out("unsafe", sums=True)
def cumsum(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: Array | None = None
) -> Array:
    """The sum of the elements up to each one along `axis`; by default of all, in one dimension.

    Element types as `sum`.  Raises AxisError.  Source: NumPy, `cumsum`.
    """
    return _running_of_all("sum", a, axis, dtype)


@takes_out("unsafe", sums=True)
def cumprod(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: Array | None = None
) -> Array:
    """The product of the elements up to each one along `axis`.  Otherwise as `cumsum`.

    Source: NumPy, `cumprod`.
    """
    return _running_of_all("prod", a, axis, dtype)


def _cumulative(
    name: str, x: ArrayLike, axis: int | None, dtype: DTypeLike | None, include_initial: bool
) -> Array:
    array = as_array(x)
    if not array.shape:
        array = lax.reshape(array, (1,))
    if axis is None and len(array.shape) > 1:
        raise ShapeError(
            f"{name}: wanted an axis for an array of {pluralize(len(array.shape), 'dimension')}, got none; give axis= "
            f"as one of 0 … {len(array.shape) - 1}"
        )
    kind = name.removeprefix("cumulative_")
    sums = _running(kind, array, 0 if axis is None else axis, dtype)
    if not include_initial:
        return sums
    (dim,) = _axes(sums, 0 if axis is None else axis)
    shape = replace_at(sums.shape, dim, 1)
    start = stretch(fill((), _TOTALS[kind, False][2], sums.dtype, sums._node.device), shape)
    return lax.concatenate([start, sums], dim)


@takes_out("unsafe", sums=True)
def cumulative_sum(
    x: ArrayLike,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    out: Array | None = None,
    include_initial: bool = False,
) -> Array:
    """The sum of the elements up to each one along `axis`, which may be left out for one dimension or none.

    With `include_initial` 0 stands before them, so that there is one more.  Element types as `sum`.
    Raises AxisError, ShapeError without an axis for several dimensions.  Source: Array API, `cumulative_sum`.
    """
    return _cumulative("cumulative_sum", x, axis, dtype, include_initial)


@takes_out("unsafe", sums=True)
def cumulative_prod(
    x: ArrayLike,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    out: Array | None = None,
    include_initial: bool = False,
) -> Array:
    """The product of the elements up to each one, with `include_initial` after a 1.  As `cumulative_sum`.

    Source: NumPy and Array API, `cumulative_prod`.
    """
    return _cumulative("cumulative_prod", x, axis, dtype, include_initial)


@remembers_calls
def count_nonzero(a: ArrayLike, axis: Axis = None, *, keepdims: bool = False) -> Array:
    """Count the elements that differ from 0 (NaN does), as int64.  Source: NumPy, `count_nonzero`."""
    return sum(truth(a), axis, np.int64, keepdims=keepdims)


# --- truth ----------------------------------------------------------------------------------------


@takes_out("unsafe")
def all(
    a: ArrayLike,
    axis: Axis = None,
    out: Array | None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike = True,
) -> Array:
    """Whether all elements differ from 0 (NaN does); True for no elements.  Source: NumPy, `all`."""
    return _total("prod", truth(a), axis, PREDICATE, keepdims, None, where)


@takes_out("unsafe")
def any(
    a: ArrayLike,
    axis: Axis = None,
    out: Array | None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike = True,
) -> Array:
    """Whether any element differs from 0 (NaN does); False for no elements.  Source: NumPy, `any`."""
    return _total("sum", truth(a), axis, PREDICATE, keepdims, None, where)


# --- extremes -------------------------------------------------------------------------------------


def extreme(
    name: str,
    largest: bool,
    a: ArrayLike,
    axis: Axis,
    keepdims: bool,
    initial: ArrayLike | None = None,
    where: ArrayLike = True,
) -> Array:
    """The largest element over `axis`, or the smallest, for the function `name`.  Raises as `max`."""
    array = as_array(a)
    axes = _axes(array, axis)
    mask = mask_for(name, array, where)
    if initial is None:
        _refuse_nothing(name, array, axes, mask)
        result = (lax.reduce_max if largest else lax.reduce_min)(array, axes)
        return _keep_dims(name, refuse_empty(name, result, array, axes), axes, keepdims)
    start = initial_value(name, initial, array.dtype)
    result = (lax.reduce_max if largest else lax.reduce_min)(apply_mask(array, mask, start), axes)
    return _keep_dims(
        name, (lax.max if largest else lax.min)(stretch(start, result.shape), result), axes, keepdims
    )


def _refuse_nothing(name: str, array: Array, axes: tuple[int, ...], mask: Array | None) -> None:
    """Refuse an extreme of no elements, which has no value without `initial`."""
    if mask is not None:
        raise ShapeError(
            f"{name}: where= may select no element, and {name} of no elements has no value; give initial="
        )
    if 0 in array.shape and not _count(array, axes):
        raise ShapeError(
            # With NumPy's words, by which Dask knows that there is no more to an error of its empty stand-ins.
            f"{name}: wanted at least one element along axes {axes}, got shape {array.shape}: a zero-size array to "
            f"reduction operation {name} has no value; give initial="
        )


@takes_out("unsafe")
def max(
    a: ArrayLike,
    axis: Axis = None,
    out: Array | None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike = True,
) -> Array:
    """The largest element over `axis`, NaN if there is one, at least `initial`.

    Raises ShapeError, a ValueError, for no elements, or `where`, without `initial`.  Source: NumPy, `max`.
    """
    return extreme("max", True, a, axis, keepdims, initial, where)


@takes_out("unsafe")
def min(
    a: ArrayLike,
    axis: Axis = None,
    out: Array | None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike = True,
) -> Array:
    """The smallest element over `axis`, NaN if there is one, at most `initial`.

    Raises ShapeError, a ValueError, for no elements, or `where`, without `initial`.  Source: NumPy, `min`.
    """
    return extreme("min", False, a, axis, keepdims, initial, where)


amax, amin = max, min


# --- means ----------------------------------------------------------------------------------------


def _wide(dtype: DType) -> DType:
    """The type that means and variances of floats of `dtype` are computed in."""
    return np.dtype(np.float32) if dtype in FLOAT and dtype.itemsize < 4 else dtype


def _mean_dtype(array: Array, dtype: DTypeLike | None) -> DType:
    if dtype is not None:
        return canonical(dtype)
    return array.dtype if array.dtype in FLOAT | COMPLEX else default_float()


def _number_of(array: Array, axes: tuple[int, ...], mask: Array | None, dtype: DType) -> Array:
    """The number of elements that take part, as `dtype`: a scalar, or with a mask one for each result."""
    if mask is None:
        dynamic = array._node.tensor_type.dynamic_dimensions
        number = fill((), _count(array, tuple(axis for axis in axes if axis not in dynamic)), dtype)
        for axis in set(axes).intersection(dynamic):
            number = lax.mul(number, convert(lax.get_dimension_size(array, axis), dtype))
        return number
    return convert(lax.reduce_sum(convert(mask, INT64), axes), dtype)


def _divide(total: Array, number: Array) -> Array:
    """total / number, in the type of `number`; an integer type divides as float and drops the fraction."""
    if number.dtype in FLOAT | COMPLEX:
        return lax.div(convert(total, number.dtype), number)
    quotient = lax.div(convert(total, default_float()), convert(number, default_float()))
    return convert(quotient, number.dtype)


@takes_out("unsafe")
def mean(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: Array | None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike = True,
) -> Array:
    """Arithmetic mean over `axis`; NaN for no elements.

    Bools and integers give the default float; floats narrower than 32 bits are summed as float32.  Raises
    AxisError, BroadcastError for `where`.  Source: NumPy, `mean`.
    """
    array = as_array(a)
    axes = _axes(array, axis)
    element = _mean_dtype(array, dtype)
    mask = mask_for("mean", array, where)
    array = convert(array, _wide(element))
    total = _sum_of(array, axes, mask)
    quotient = _divide(total, _number_of(array, axes, mask, array.dtype))
    return _keep_dims("mean", convert(quotient, element), axes, keepdims)


def _sum_of(array: Array, axes: tuple[int, ...], mask: Array | None) -> Array:
    total: Array = lax.reduce_sum(apply_mask(array, mask, fill((), 0, array.dtype)), axes)
    return total


def _variance(
    name: str,
    array: Array,
    axes: tuple[int, ...],
    element: DType,
    degrees: float,
    where: ArrayLike,
    centre: ArrayLike | None,
) -> Array:
    """Mean squared distance from the mean, in a type wide enough to be summed in."""
    mask = mask_for(name, array, where)
    array = convert(array, _wide(element))
    if centre is None:
        total = _sum_of(array, axes, mask)
        middle = lax.expand_dims(lax.div(total, _number_of(array, axes, mask, array.dtype)), axes)
    else:
        middle = convert(as_array(centre), array.dtype)
    squares = _square_modulus(lax.sub(array, _spread(name, middle, array.shape)))
    number = _number_of(array, axes, mask, squares.dtype)
    least = fill(number.shape, 0, squares.dtype)
    left = lax.max(lax.sub(number, float(degrees)), least)
    return lax.div(_sum_of(squares, axes, mask), left)


def _square_modulus(x: Array) -> Array:
    """|x|²."""
    if x.dtype not in COMPLEX:
        return lax.mul(x, x)
    return lax.add(lax.square(lax.real(x)), lax.square(lax.imag(x)))


def _spread(name: str, centre: Array, shape: tuple[int, ...]) -> Array:
    """A mean with size 1 in the reduced dimensions, repeated along them as its meaning demands."""
    alignment = align_numpy(centre.shape, shape)
    if isinstance(alignment, Misfit) or alignment.result != shape:
        problem = f"{name}: a mean of shape {centre.shape} does not fit an array of shape {shape}"
        raise broadcast_error(name, (centre.shape, shape), names=("mean", "array"), problem=problem)
    return lax.broadcast_in_dim(centre, shape, alignment.dimensions[0])


def _degrees(name: str, ddof: float, correction: float | None) -> float:
    if correction is None:
        return real_number(name, "ddof", ddof)
    if ddof != 0:
        raise ArgumentError(
            f"{name}: ddof and correction mean the same; wanted one of them, got {ddof} and {correction}"
        )
    return real_number(name, "correction", correction)


def _deviation(
    name: str,
    a: ArrayLike,
    axis: Axis,
    dtype: DTypeLike | None,
    keepdims: bool,
    degrees: float,
    where: ArrayLike,
    centre: ArrayLike | None,
) -> Array:
    array = as_array(a)
    axes = _axes(array, axis)
    element = _mean_dtype(array, dtype)
    if element not in FLOAT | COMPLEX:
        raise DTypeError(f"{name}: wanted a float or complex dtype to compute in, got {element}")
    variance = _variance(name, array, axes, element, degrees, where, centre)
    real_type = np.dtype(f"f{element.itemsize // 2}") if element in COMPLEX else element
    return _keep_dims(
        name, convert(lax.sqrt(variance) if name == "std" else variance, real_type), axes, keepdims
    )


@takes_out("unsafe")
def var(
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
    """Mean of |x - mean|² over `axis`, with n - ddof instead of the number n; NaN or inf if that is 0.

    `correction` is the Array API's name of `ddof`; `mean`, if it is known, has the shape that
    `mean(keepdims=True)` gives.  Bools and integers give the default float, complexes their real type.
    Raises AxisError, BroadcastError, DTypeError for an integer dtype.  Source: NumPy, `var`.
    """
    return _deviation("var", a, axis, dtype, keepdims, _degrees("var", ddof, correction), where, mean)


@takes_out("same_kind")
def std(
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
    """Square root of `var`, with the same arguments.  Source: NumPy, `std`."""
    return _deviation("std", a, axis, dtype, keepdims, _degrees("std", ddof, correction), where, mean)


@overload
def average(
    a: ArrayLike,
    axis: Axis = None,
    weights: ArrayLike | None = None,
    returned: Literal[False] = False,
    *,
    keepdims: bool = False,
) -> Array: ...


@overload
def average(
    a: ArrayLike,
    axis: Axis = None,
    weights: ArrayLike | None = None,
    *,
    returned: Literal[True],
    keepdims: bool = False,
) -> tuple[Array, Array]: ...


@remembers_calls
def average(
    a: ArrayLike,
    axis: Axis = None,
    weights: ArrayLike | None = None,
    returned: bool = False,
    *,
    keepdims: bool = False,
) -> Any:
    """Weighted mean over `axis`: sum(a * weights) / sum(weights); the mean without weights.

    weights: the shape of `a`, or the sizes of `a` along `axis`, in its order.  With `returned` also the sums
    of the weights.  Weights that add up to 0 give NaN or inf, where NumPy, which looks at values, raises.
    Raises ShapeError for weights of another shape.  Source: NumPy, `average`.
    """
    array = as_array(a)
    axes = _axes(array, axis)
    if weights is None:
        result = mean(array, axes, keepdims=keepdims)
        number = fill(result.shape, _count(array, axes), result.dtype, result._node.device)
        return (result, number) if returned else result
    factors = as_array(weights)
    spread = _weights(factors, array.shape, axes, axis is not None)
    element = promote(array.dtype, factors.dtype)
    if array.dtype not in FLOAT | COMPLEX:
        element = promote(element, default_float())
    spread = convert(spread, element)
    total = lax.reduce_sum(spread, axes)
    result = lax.div(lax.reduce_sum(lax.mul(convert(array, element), spread), axes), total)
    result, total = (_keep_dims("average", each, axes, keepdims) for each in (result, total))
    return (result, total) if returned else result


def _weights(weights: Array, shape: tuple[int, ...], axes: tuple[int, ...], by_axis: bool) -> Array:
    if weights.shape == shape:
        return weights
    wanted = tuple(shape[axis] for axis in axes)
    if not by_axis or weights.shape != wanted:
        other = f" or, along axes {axes}, {wanted}" if by_axis else "; others need axis="
        error = ShapeError if by_axis else SizeError  # NumPy says ValueError and TypeError
        raise error(f"average: wanted weights of shape {shape}{other}, got {weights.shape}")
    order = sorted(range(len(axes)), key=axes.__getitem__)
    return lax.broadcast_in_dim(lax.transpose(weights, order), shape, sorted(axes))
