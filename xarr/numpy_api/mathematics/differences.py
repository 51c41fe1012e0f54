"""Differences, integrals and interpolation of samples."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from xarr import lax
from xarr.base.typing import Array
from xarr.calls.arguments import convert, stretch
from xarr.calls.concrete_values import is_known
from xarr.calls.operands import DType, as_array, broadcast_operands, common_dtype, fresh, promote_operands
from xarr.calls.remembered_calls import remembers_calls
from xarr.dtypes import BOOL, COMPLEX, EXTENDED_FLOAT, INTEGER, default_float
from xarr.errors import DTypeError, InputError, ShapeError, ValueRangeError
from xarr.ir.types import replace_at
from xarr.lax.core import ArrayLike, integer
from xarr.lax.dynamic_sizes import refuse_dynamic
from xarr.numpy_api.mathematics import division, elementwise
from xarr.numpy_api.sorting.order import insertion_points
from xarr.numpy_api.sorting.sorting import argsort
from xarr.numpy_api.statistics import reductions as statistical
from xarr.numpy_api.statistics.lines import repeat_vector
from xarr.runtime.materialisation import to_host
from xarr.shapes import normalize_axes, normalize_axis

__all__ = ["diff", "ediff1d", "gradient", "interp", "trapezoid", "unwrap"]

#: Differences up to which each is an array of its own, instead of a loop.
_WRITTEN_OUT: Final = 32
_FLOAT64: Final = np.dtype(np.float64)


# --- interpolation ---------------------------------------------------------------------------------------


@remembers_calls
def interp(
    x: ArrayLike,
    xp: ArrayLike,
    fp: ArrayLike,
    left: complex | None = None,
    right: complex | None = None,
    period: float | None = None,
) -> Array:
    """The values at `x` of the line through the points (xp, fp), in float64 or complex128.

    xp: in increasing order, unless `period` is given; nothing checks it.  left, right: for x before and behind all
        points, by default the first and the last value.  period: that of the x, which replaces both.
    NaN in x stays.  Raises ShapeError for no points or vectors of two lengths, ValueRangeError for the period 0.
    Source: NumPy, `interp`.
    """
    values = as_array(fp)
    dtype = np.dtype(np.complex128) if values.dtype in COMPLEX else _FLOAT64
    queries, points, values = _real("x", x), _real("xp", xp), convert(values, dtype)
    if len(points.shape) != 1 or points.shape != values.shape or not points.size:
        raise ShapeError(
            f"interp: wanted vectors of one length, at least 1, for xp and fp, got {points.shape} and {values.shape}"
        )
    if period is not None:
        if period == 0:
            raise ValueRangeError("interp: wanted a period other than 0")
        left = right = None
        queries, points, values = _unroll_period(queries, points, values, math.fabs(period))
    ends = (values[0] if left is None else as_array(left), values[-1] if right is None else as_array(right))
    before, behind = (stretch(convert(end, dtype), queries.shape) for end in ends)
    return _interpolate(queries, points, values, before, behind)


def _real(name: str, x: ArrayLike) -> Array:
    array = as_array(x)
    if array.dtype in COMPLEX:
        raise DTypeError(f"interp: wanted real numbers for {name}, got {array.dtype}")
    return convert(array, _FLOAT64)


def _unroll_period(x: Array, points: Array, values: Array, period: float) -> tuple[Array, Array, Array]:
    """All in one period, with the last point once more before the first, and the first behind the last."""
    points = division.remainder(points, period)
    order = argsort(points)
    points, values = lax.take(points, order, 0), lax.take(values, order, 0)
    points = lax.concatenate([lax.sub(points[-1:], period), points, lax.add(points[:1], period)], 0)
    values = lax.concatenate([values[-1:], values, values[:1]], 0)
    return division.remainder(x, period), points, values


def _interpolate(x: Array, points: Array, values: Array, before: Array, behind: Array) -> Array:
    count = points.shape[0]
    index = lax.sub(insertion_points(points, x, right=True), 1)
    start = lax.max(index, lax.full_like(index, 0))
    end = lax.min(lax.add(start, 1), lax.full_like(index, count - 1))
    x0, x1 = lax.take(points, start, 0), lax.take(points, end, 0)
    y0, y1 = lax.take(values, start, 0), lax.take(values, end, 0)
    parts = [_on_line(x, x0, x1, *parts) for parts in zip(_parts(y0), _parts(y1), strict=True)]
    result = parts[0] if len(parts) == 1 else lax.complex(parts[0], parts[1])
    result = lax.select(lax.lt(x, x0), before, result)
    result = lax.select(lax.gt(x, repeat_vector(points[-1], x.shape, 0)), behind, result)
    # Of a single point NaN takes the value, as in NumPy.
    return result if count == 1 else lax.select(lax.ne(x, x), convert(x, result.dtype), result)


def _parts(z: Array) -> tuple[Array, ...]:
    return (lax.real(z), lax.imag(z)) if z.dtype in COMPLEX else (z,)


def _on_line(x: Array, x0: Array, x1: Array, y0: Array, y1: Array) -> Array:
    """The value at x of the line through two points; from the other end where infinities make it NaN."""
    slope = lax.div(lax.sub(y1, y0), lax.sub(x1, x0))
    from_start = lax.add(lax.mul(slope, lax.sub(x, x0)), y0)
    from_end = lax.add(lax.mul(slope, lax.sub(x, x1)), y1)
    level = lax.select(lax.eq(y0, y1), y0, from_end)
    from_end = lax.select(lax.ne(from_end, from_end), level, from_end)
    result = lax.select(lax.ne(from_start, from_start), from_end, from_start)
    return lax.select(lax.bitwise_or(lax.eq(x, x0), lax.eq(x0, x1)), y0, result)


# --- differences -----------------------------------------------------------------------------------------


@remembers_calls
def ediff1d(ary: ArrayLike, to_end: ArrayLike | None = None, to_begin: ArrayLike | None = None) -> Array:
    """The differences of neighbours in the flattened array, after `to_begin` and before `to_end`.

    Integers wrap.  Raises DTypeError for bools, and for ends that do not fit the array's type.
    Source: NumPy, `ediff1d`.
    """
    array = as_array(ary)
    if array.dtype in BOOL:
        raise DTypeError("ediff1d: bools have no difference; wanted numbers, e.g. x.astype('int64')")
    flat = lax.reshape(array, (array.size,))
    parts = [
        _end("to_begin", to_begin, array.dtype),
        lax.sub(flat[1:], flat[:-1]),
        _end("to_end", to_end, array.dtype),
    ]
    chosen = [part for part in parts if part is not None]
    return chosen[0] if len(chosen) == 1 else lax.concatenate(chosen, 0)


def _end(name: str, values: ArrayLike | None, dtype: DType) -> Array | None:
    if values is None:
        return None
    array = as_array(values)
    known = not EXTENDED_FLOAT.intersection((array.dtype, dtype))
    if known and not np.can_cast(array.dtype, dtype, casting="same_kind"):
        raise DTypeError(
            f"ediff1d: {name} of {array.dtype} does not fit an array of {dtype}; convert one of them"
        )
    return convert(lax.reshape(array, (array.size,)), dtype)


@remembers_calls
def gradient(f: ArrayLike, *varargs: ArrayLike, axis: Any = None, edge_order: int = 1) -> Any:
    """The derivative of samples along `axis`, all dimensions for None: central differences, one-sided at the ends.

    varargs: the spacing, 1 by default: a number for all axes, or for each axis a number or the coordinates, which
        are computed now (not in a traced function), as equal distances take another formula.
    edge_order: 1 or 2, that of the differences at the ends.

    One Array for one axis, else a tuple of them, in f's type, in float64 for integers.  Raises ShapeError for fewer
    than edge_order + 1 samples or other coordinates, InputError for another number of spacings, DTypeError for
    bools.  Source: NumPy, `gradient`.
    """
    array = as_array(f)
    axes = normalize_axes(axis, array.ndim)
    if array.dtype in BOOL:
        raise DTypeError("gradient: bools have no difference; wanted numbers, e.g. x.astype('int64')")
    if edge_order not in (1, 2):
        raise ValueRangeError(f"gradient: wanted an edge_order of 1 or 2, got {edge_order}")
    if array.dtype in INTEGER:
        array = convert(array, default_float())
    for dim in axes:
        if array.shape[dim] < edge_order + 1:
            raise ShapeError(
                f"gradient: wanted at least edge_order + 1 = {edge_order + 1} samples along axis {dim}, got "
                f"{array.shape[dim]}"
            )
    derivatives = [
        convert(_derivative(array, dim, steps, edge_order), array.dtype)
        for dim, steps in zip(axes, _spacings(varargs, array, axes), strict=True)
    ]
    return derivatives[0] if len(derivatives) == 1 else tuple(derivatives)


def _spacings(spacings: tuple[ArrayLike, ...], array: Array, axes: tuple[int, ...]) -> list[Any]:
    """For each axis a number, or the distances between the samples."""
    if not spacings:
        return [1.0] * len(axes)
    if len(spacings) == 1 and not as_array(spacings[0]).shape:
        return [spacings[0]] * len(axes)
    if len(spacings) != len(axes):
        raise InputError(
            f"gradient: wanted one spacing, or one for each of {len(axes)} axes, got {len(spacings)} of them"
        )
    return [_distances(each, array.shape[dim], dim) for each, dim in zip(spacings, axes, strict=True)]


def _distances(spacing: ArrayLike, size: int, dim: int) -> Any:
    points = as_array(spacing)
    if not points.shape:
        return spacing
    if points.shape != (size,):
        raise ShapeError(
            f"gradient: wanted a number or {size} coordinates for axis {dim}, got shape {points.shape}"
        )
    points = convert(points, _FLOAT64) if points.dtype in INTEGER else points
    steps = diff(points)
    if is_known(steps):
        values = to_host(steps)
        return steps[0] if (values == values[0]).all() else steps
    return steps


def _derivative(f: Array, dim: int, steps: Any, edge_order: int) -> Array:
    def samples(start: int, stop: int | None) -> Array:
        return lax.slice_in_dim(f, start, stop, axis=dim)

    size = f.shape[dim]
    first, last = (steps[0], steps[-1]) if np.ndim(steps) else (steps, steps)
    if edge_order == 1:
        start, end = (
            (samples(1, 2) - samples(0, 1)) / first,
            (samples(size - 1, size) - samples(size - 2, size - 1)) / last,
        )
    else:
        start = _weighted_sum(_start_shares(steps), [samples(index, index + 1) for index in range(3)])
        end = _weighted_sum(
            _end_shares(steps), [samples(index, index + 1) for index in range(size - 3, size)]
        )
    parts = [start, *([_inner(samples, steps, dim)] if size > 2 else []), end]
    dtype = common_dtype(*parts)
    return lax.concatenate([convert(part, dtype) for part in parts], dim)


def _inner(at: Callable[[int, int | None], Array], steps: Any, dim: int) -> Array:
    """The derivative where there are samples on both sides."""
    samples = [at(0, -2), at(1, -1), at(2, None)]
    if not np.ndim(steps):
        uniform: Array = (samples[2] - samples[0]) / (2.0 * steps)
        return uniform
    before, after = steps[:-1], steps[1:]
    shares = (
        -after / (before * (before + after)),
        (after - before) / (before * after),
        before / (after * (before + after)),
    )
    return _weighted_sum(tuple(repeat_vector(share, samples[0].shape, dim) for share in shares), samples)


def _start_shares(steps: Any) -> tuple[Any, Any, Any]:
    """The weights of the first three samples in the derivative at the first."""
    if not np.ndim(steps):
        return -1.5 / steps, 2.0 / steps, -0.5 / steps
    one, two = steps[0], steps[1]
    return -(2.0 * one + two) / (one * (one + two)), (one + two) / (one * two), -one / (two * (one + two))


def _end_shares(steps: Any) -> tuple[Any, Any, Any]:
    """The weights of the last three samples in the derivative at the last."""
    if not np.ndim(steps):
        return 0.5 / steps, -2.0 / steps, 1.5 / steps
    one, two = steps[-2], steps[-1]
    return two / (one * (one + two)), -(two + one) / (one * two), (2.0 * two + one) / (two * (one + two))


def _weighted_sum(shares: Sequence[Any], samples: Sequence[Array]) -> Array:
    first, second, third = (share * sample for share, sample in zip(shares, samples, strict=True))
    total: Array = first + second + third
    return total


# --- integrals and angles --------------------------------------------------------------------------------


@remembers_calls
def trapezoid(y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1) -> Array:
    """The integral along `axis` by the trapezoidal rule.

    x: the coordinates of the samples, a vector or an array that broadcasts with y; without it they are `dx` apart.
    Raises AxisError, ShapeError for a scalar, BroadcastError for coordinates that do not fit.
    Source: NumPy, `trapezoid`.
    """
    samples = as_array(y)
    dim = normalize_axis(integer("trapezoid", "axis", axis), samples.ndim)
    distances = as_array(dx) if x is None else _widths(as_array(x), samples, axis)
    before = lax.slice_in_dim(samples, 0, max(samples.shape[dim] - 1, 0), axis=dim)
    after = lax.slice_in_dim(samples, min(1, samples.shape[dim]), None, axis=dim)
    heights = elementwise.add(after, before)
    if distances.shape:
        distances, heights = broadcast_operands("trapezoid", distances, heights)
    widths: ArrayLike = dx if x is None and not distances.shape else distances
    return statistical.sum(elementwise.divide(elementwise.multiply(widths, heights), 2.0), axis)


def _widths(x: Array, samples: Array, axis: int) -> Array:
    if len(x.shape) != 1:
        return diff(x, axis=axis)
    dim = normalize_axis(axis, samples.ndim)
    shape = tuple(max(size - 1, 0) if k == dim else size for k, size in enumerate(samples.shape))
    steps = diff(x)
    if steps.shape[0] not in (1, shape[dim]):
        raise ShapeError(
            f"trapezoid: wanted {samples.shape[dim]} coordinates for axis {dim} of y, got {x.shape[0]}"
        )
    return repeat_vector(steps[0] if steps.shape[0] == 1 else steps, shape, dim)


@remembers_calls
def unwrap(
    p: ArrayLike, discont: float | None = None, axis: int = -1, *, period: float = 2 * math.pi
) -> Array:
    """Angles along `axis` with multiples of `period` added, so that none is more than half of it from the one before.

    discont: the least distance that is changed, if more than half the period.  Integers stay so for an int as the
    period.  Raises AxisError, DTypeError for complex numbers.  Source: NumPy, `unwrap`.
    """
    array = as_array(p)
    dim = normalize_axis(integer("unwrap", "axis", axis), array.ndim)
    steps = diff(array, axis=dim)
    dtype = common_dtype(steps, period)
    if dtype in COMPLEX:
        raise DTypeError(
            f"unwrap: wanted real angles, got {array.dtype}; xarr.angle gives those of complex numbers"
        )
    high: float
    high, odd = divmod(period, 2) if dtype in INTEGER else (period / 2, 0)
    steps = convert(steps, dtype)
    wrapped = division.remainder(steps + high, period) - high
    if not odd:
        at_edge = lax.bitwise_and(lax.eq(wrapped, -high), lax.gt(steps, 0))
        wrapped = lax.select(at_edge, lax.full_like(wrapped, high), wrapped)
    small = elementwise.less(elementwise.abs(steps), period / 2 if discont is None else discont)
    added = lax.select(small, lax.full_like(steps, 0), lax.sub(wrapped, steps))
    first = convert(lax.slice_in_dim(array, 0, min(1, array.shape[dim]), axis=dim), dtype)
    rest = convert(lax.slice_in_dim(array, min(1, array.shape[dim]), None, axis=dim), dtype)
    return lax.concatenate([first, lax.add(rest, lax.cumsum(added, dim))], dim)


@remembers_calls
def diff(
    a: ArrayLike,
    n: int = 1,
    axis: int = -1,
    prepend: ArrayLike | None = None,
    append: ArrayLike | None = None,
) -> Array:
    """Each element along `axis` minus the one before it, `n` times over; for bools whether they differ.

    prepend, append: put before and behind along `axis` first; a scalar is as long there as 1.  Their types take part
        in promotion, those of Python numbers as in an array of them.

    Raises ValueRangeError for a negative n, ShapeError for a scalar `a` or parts whose other sizes differ,
    AxisError.  Source: NumPy and Array API, `diff`.
    """
    array, times = as_array(a), integer("diff", "n", n)
    if times < 0:
        raise ValueRangeError(f"diff: wanted n of 0 or more, got {times}")
    if not times:
        return fresh(array)
    if not array.shape:
        raise ShapeError("diff: wanted an array of rank 1 or more, got a scalar")
    dim = normalize_axis(axis, len(array.shape))
    array = _extend(array, prepend, append, dim)
    refuse_dynamic("diff", array, "lax.sub of slices", (dim,))
    if times >= array.shape[dim]:
        return fresh(lax.slice_in_dim(array, 0, 0, axis=dim))
    if times > _WRITTEN_OUT:
        return _many_differences(array, times, dim)
    for _ in range(times):
        last = array.shape[dim]
        after = lax.slice_in_dim(array, 1, None, axis=dim)
        before = lax.slice_in_dim(array, 0, last - 1, axis=dim)
        array = (lax.ne if array.dtype in BOOL else lax.sub)(after, before)
    return fresh(array)


def _many_differences(array: Array, times: int, axis: int) -> Array:
    """A loop over arrays of one size, of whose elements the last one more means nothing each time."""
    last = array.shape[axis] - 1

    def step(values: Array, _: object) -> tuple[Array, tuple[()]]:
        after = lax.slice_in_dim(values, 1, None, axis=axis)
        behind = lax.slice_in_dim(values, last, None, axis=axis)
        after = lax.concatenate([after, behind], axis)
        return (lax.ne if values.dtype in BOOL else lax.sub)(after, values), ()

    values: Array = lax.scan(step, array, None, length=times)[0]
    return lax.slice_in_dim(values, 0, last + 1 - times, axis=axis)


def _extend(array: Array, prepend: ArrayLike | None, append: ArrayLike | None, axis: int) -> Array:
    # As in NumPy, which makes arrays of them first, Python numbers have the type of arrays of them here.
    values = [part if part is None else as_array(part) for part in (prepend, array, append)]
    parts = promote_operands("diff", *(part for part in values if part is not None))
    if len(parts) == 1:
        return array
    one = replace_at(array.shape, axis, 1)
    laid_out = [part if part.shape else lax.broadcast_in_dim(part, one, ()) for part in parts]
    for part in laid_out:
        if replace_at(part.shape, axis, 1) != one:
            raise ShapeError(
                f"diff: wanted prepend and append that differ from shape {array.shape} along axis {axis} alone, "
                f"got {part.shape}"
            )
    return lax.concatenate(laid_out, axis)
