"""Quantiles of sorted elements: the rules of Hyndman and Fan, and NumPy's others.

A rule gives the virtual index of a quantile among n sorted elements; between two elements a share of either is
taken.  Source: Hyndman and Fan, "Sample quantiles in statistical packages", 1996; NumPy, `quantile`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from xarr import lax
from xarr.base.frozen_dataclasses import record
from xarr.base.typing import Array
from xarr.calls.arguments import convert, fill, is_nan, stretch
from xarr.calls.concrete_values import is_known, values_of
from xarr.calls.operands import DType, as_array
from xarr.dtypes import BOOL, COMPLEX, FLOAT, INTEGER, promote, promote_weak
from xarr.errors import DTypeError, ShapeError, ValueRangeError
from xarr.lax.core import ArrayLike
from xarr.numpy_api.mathematics.rounding import ceil, floor, rint
from xarr.numpy_api.sorting.order import insertion_points_in_lines
from xarr.numpy_api.statistics.lines import Axis, Lines, repeat_vector
from xarr.runtime.handles import weak_kind
from xarr.runtime.materialisation import to_host
from xarr.shapes import normalize_axes

#: (n, q) -> virtual index.
Rule = Callable[[Any, Any], Any]


def _index_rule(alpha: float, beta: float) -> Rule:
    return lambda n, q: n * q + (alpha + q * (1 - alpha - beta)) - 1


def _inverted_cdf(n: Any, q: Any) -> Any:
    return _round_up(n * q - 1, lambda index: lax.eq(index, floor(index)))


def _closest_observation(n: Any, q: Any) -> Any:
    def stays(index: Array) -> Array:
        whole = floor(index)
        return lax.bitwise_and(lax.eq(index, whole), lax.eq(whole % 2, 1))

    return _round_up(n * q - 1 - 0.5, stays)


def _round_up(index: Array, stays: Callable[[Array], Array]) -> Array:
    """The whole number below the index where it `stays`, else the one after that."""
    below = floor(index)
    return lax.select(stays(index), below, lax.add(below, 1))


def _middle_of_neighbours(n: Any, q: Any) -> Any:
    return 0.5 * (floor((n - 1) * q) + ceil((n - 1) * q))


#: Rules that choose an element.
_CHOOSING: Final[dict[str, Rule]] = {
    "inverted_cdf": _inverted_cdf,
    "closest_observation": _closest_observation,
    "lower": lambda n, q: floor((n - 1) * q),
    "higher": lambda n, q: ceil((n - 1) * q),
    "nearest": lambda n, q: rint((n - 1) * q),
}
#: Rules by which a share of two elements is taken.
_MIXING: Final[dict[str, Rule]] = {
    "averaged_inverted_cdf": lambda n, q: n * q - 1,
    "interpolated_inverted_cdf": _index_rule(0, 1),
    "hazen": _index_rule(0.5, 0.5),
    "weibull": _index_rule(0, 0),
    "linear": lambda n, q: (n - 1) * q,
    "median_unbiased": _index_rule(1 / 3.0, 1 / 3.0),
    "normal_unbiased": _index_rule(3 / 8.0, 3 / 8.0),
    "midpoint": _middle_of_neighbours,
}
METHODS: Final = (*_CHOOSING, *_MIXING)


@record
class Quantiles:
    """Quantiles asked for: a vector of floats in [0, 1], the shape they came in, the rule.

    weak: whether a Python number was given, which leaves the type of the result to the array.
    whole: whether q is of integers, 0 or 1, which the linear rule takes for the first and the last element.
    """

    name: str
    q: Array
    shape: tuple[int, ...]
    method: str
    weak: bool
    whole: bool

    @classmethod
    def of(cls, name: str, q: ArrayLike, method: str, *, percent: bool) -> Quantiles:
        """Read q, in [0, 100] if `percent`.  Raises ValueRangeError for another q, or for an unknown method."""
        if method not in METHODS:
            raise ValueRangeError(f"{name}: wanted a method of {', '.join(METHODS)}, got {method!r}")
        argument = as_array(q)
        if argument.dtype in COMPLEX:
            raise DTypeError(f"{name}: wanted real q, got {argument.dtype}")
        if len(argument.shape) > 2:
            raise ShapeError(f"{name}: wanted q with at most 2 dimensions, got shape {argument.shape}")
        most = 100 if percent else 1
        values = values_of(argument) if is_known(argument) else None
        if values is not None and not ((values >= 0) & (values <= most)).all():
            raise ValueRangeError(f"{name}: wanted q in [0, {most}], got {values}")
        whole = argument.dtype in INTEGER | BOOL
        part = convert(argument, np.dtype(np.float64)) if whole else argument
        part = lax.div(part, 100.0) if percent else part
        weak = weak_kind(q) in (int, float)
        return cls(name, lax.reshape(part, (part.size,)), argument.shape, method, weak, whole and not percent)

    def refuse_unordered(self, array: Array) -> None:
        """DTypeError for an array that has no quantiles by this rule."""
        if array.dtype in COMPLEX:
            raise DTypeError(
                f"{self.name}: complex numbers have no order, got {array.dtype}; take abs or real"
            )
        if array.dtype in BOOL and array.size and self.method in _MIXING and not self._chooses:
            chosen = ", ".join(_CHOOSING)
            raise DTypeError(
                f"{self.name}: bools have no mean for the method {self.method!r}; use {chosen}, or "
                "x.astype('int64')"
            )

    @property
    def _chooses(self) -> bool:
        return self.method in _CHOOSING or (self.method == "linear" and self.whole)

    def select_from_sorted(self, lines: Lines, count: int | Array) -> Array:
        """The quantiles of the first `count` elements of sorted lines, of shape (quantiles, lines)."""
        shape = (self.q.shape[0], lines.values.shape[0])
        q = repeat_vector(self.q, shape, 0)
        n: Any = count if isinstance(count, int) else convert(repeat_vector(count, shape, 1), q.dtype)
        index = (_CHOOSING | _MIXING)[self.method](n, q)
        last = _last(count, shape)
        if self._chooses:
            return lines.elements_at(_clip(index, last))
        # Before the first element and behind the last one that element counts alone.
        inside = lax.bitwise_and(lax.ge(index, 0), lax.lt(index, convert(last, index.dtype)))
        nearest = lax.select(lax.lt(index, 0), lax.full_like(last, 0), last)
        below, above = _clip(floor(index), last), _clip(lax.add(floor(index), 1), last)
        start, end = (lines.elements_at(lax.select(inside, position, nearest)) for position in (below, above))
        share = lax.select(inside, self._share(index), lax.full_like(index, 0))
        return self._interpolate(start, end, share)

    def _share(self, index: Array) -> Array:
        share = lax.sub(index, floor(index))
        if self.method == "averaged_inverted_cdf":
            return lax.select(lax.eq(share, 0), lax.full_like(share, 0.5), lax.full_like(share, 1.0))
        if self.method == "midpoint":
            return lax.select(lax.eq(share, 0), share, lax.full_like(share, 0.5))
        return share

    def _interpolate(self, start: Array, end: Array, share: Array) -> Array:
        """start + (end - start) * share, from the nearer end so that it never leaves the two."""
        dtype = self._result(start.dtype, share.dtype)
        rest = convert(lax.sub(1.0, share), dtype)
        near_end = lax.ge(share, 0.5)
        start, end, share = (convert(each, dtype) for each in (start, end, share))
        distance = lax.sub(end, start)
        from_start = lax.add(start, lax.mul(distance, share))
        return lax.select(near_end, lax.sub(end, lax.mul(distance, rest)), from_start)

    def _result(self, dtype: DType, of_q: DType) -> DType:
        return promote_weak(dtype, float) if self.weak else promote(dtype, of_q)


def _last(count: int | Array, shape: tuple[int, ...]) -> Array:
    """The index of the last element, 0 if there is none."""
    if isinstance(count, int):
        return fill(shape, max(count - 1, 0), np.dtype(np.int64))
    return repeat_vector(lax.max(lax.sub(count, 1), lax.full_like(count, 0)), shape, 1)


def _clip(index: Array, last: Array) -> Array:
    whole = convert(index, last.dtype)
    return lax.min(lax.max(whole, lax.full_like(whole, 0)), last)


# --- weighted ------------------------------------------------------------------------------------------


def weighted_quantiles(
    asked: Quantiles, array: Array, axis: Axis, weights: ArrayLike, *, keepdims: bool, ignore_nan: bool
) -> Array:
    """The first elements at which the sum of the weights so far reaches q of their total."""
    name = asked.name
    if asked.method != "inverted_cdf":
        raise ValueRangeError(f"{name}: only the method 'inverted_cdf' takes weights, got {asked.method!r}")
    spread = _spread(name, as_array(weights), array, axis)
    lines, its = Lines.along_axes(name, array, axis), Lines.along_axes(name, spread, axis)
    if not lines.length:
        raise ShapeError(f"{name}: wanted at least one element along axis {axis}, got shape {array.shape}")
    shares = convert(its.values, np.dtype(np.float64))
    if ignore_nan:
        shares = lax.select(is_nan(lines.values), lax.full_like(shares, 0), shares)
    values, shares = lax.sort_key_val(lines.values, shares, 1)
    ordered = Lines(values, lines.outer_shape, lines.with_ones)
    reached = _distribution(shares, asked.q.dtype)
    shape = (asked.q.shape[0], values.shape[0])
    indices = insertion_points_in_lines(reached, repeat_vector(asked.q, shape, 0))
    count = ordered.numbers() if ignore_nan else lines.length
    result = ordered.elements_at(lax.min(indices, _last(count, shape)))
    if not ignore_nan and values.dtype in FLOAT:
        last = repeat_vector(ordered.column(lines.length - 1), shape, 1)
        result = lax.select(is_nan(last), last, result)
    return lines.reshape_results(result, asked.shape, keepdims=keepdims)


def _distribution(shares: Array, dtype: DType) -> Array:
    """The sums of the weights so far over their total; -1 where they are 0, so that 0 is reached later."""
    sums = lax.cumsum(shares, 1)
    total = stretch(lax.slice_in_dim(sums, sums.shape[1] - 1, sums.shape[1], axis=1), sums.shape)
    reached = convert(lax.div(sums, total), dtype)
    return lax.select(lax.eq(reached, 0), lax.full_like(reached, -1), reached)


def _spread(name: str, weights: Array, array: Array, axis: Axis) -> Array:
    """The weights in the shape of the array."""
    if is_known(weights):
        values = to_host(weights)
        if not (values >= 0).all() or not np.isfinite(values).all() or (values.size and not values.any()):
            raise ValueRangeError(f"{name}: wanted finite weights of 0 or more, not all 0")
    if weights.shape == array.shape:
        return weights
    axes = normalize_axes(axis, array.ndim)
    wanted = tuple(array.shape[dim] for dim in axes)
    if axis is None or weights.shape != wanted:
        other = "; others need axis=" if axis is None else f" or, along axes {axes}, {wanted}"
        raise ShapeError(f"{name}: wanted weights of shape {array.shape}{other}, got {weights.shape}")
    order = sorted(range(len(axes)), key=axes.__getitem__)
    return lax.broadcast_in_dim(lax.transpose(weights, order), array.shape, sorted(axes))
