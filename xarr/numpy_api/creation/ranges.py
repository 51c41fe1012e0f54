"""The counters under `arange` and `linspace`, rounding for rounding as NumPy's."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from xarr import lax
from xarr.base.typing import Array
from xarr.calls.arguments import convert, fill
from xarr.calls.operands import DType
from xarr.dtypes import COMPLEX, EXTENDED_FLOAT, INTEGER, SUB_BYTE, check_fits, info, widen_dtype
from xarr.errors import DivisionByZeroError, DTypeError, InputError, ValueRangeError
from xarr.ir.graph import Node
from xarr.ir.ops import Iota
from xarr.ir.types import TensorType
from xarr.lax.core import ArrayLike
from xarr.runtime.handles import Handle, wrap
from xarr.shapes import check_sizes

INT64 = np.dtype(np.int64)


def _counter(size: int, dtype: DType) -> Array:
    """0, 1 … size - 1; in the type of XLA's iota where it holds them, else wrapped or rounded from int64."""
    exact = 2 ** (info(dtype).nmant + 1) if widen_dtype(dtype) not in INTEGER else int(info(dtype).max) + 1
    counted = wrap(Node(Iota(TensorType((size,), dtype if size <= exact else INT64), 0)))
    return convert(counted, dtype)


def range_number(argument: str, value: ArrayLike) -> complex:
    """A Python number from a number or a 0-d array."""
    if isinstance(value, Handle | np.ndarray | np.generic):
        value = np.asarray(value)
        if value.shape:
            raise InputError(f"arange: wanted a number for {argument}, got an array of shape {value.shape}")
        value = value.item()
    if isinstance(value, complex):
        raise DTypeError(
            f"arange: wanted a real number for {argument}, got {value!r}; complex numbers have no order"
        )
    if not isinstance(value, int | float):
        raise InputError(f"arange: wanted a number for {argument}, got {value!r}")
    return int(value) if isinstance(value, bool) else value


def range_ends(only: Any, stop: Any, named: dict[str, Any]) -> tuple[Any, Any]:
    """Where a range begins and ends, by position or by name."""
    if unknown := [name for name in named if name != "start"]:
        raise InputError(
            f"arange: wanted start, stop, step, dtype and device, got the argument {unknown[0]!r}"
        )
    if only is not None and named:
        raise InputError("arange: got start both by position and by name")
    first, last = named.get("start", only), stop
    if stop is None:
        first, last = None, first
    if last is None:
        raise InputError("arange: wanted stop, as in xarr.arange(stop) or xarr.arange(start, stop), got none")
    return 0 if first is None else range_number("start", first), range_number("stop", last)


def range_length(start: Any, stop: Any, step: Any) -> int:
    """Count the elements of `arange`: NumPy's ceil((stop - start) / step) in floating point."""
    if step == 0:
        raise DivisionByZeroError("arange: wanted a step other than 0, got 0; xarr.full repeats one value")
    try:
        quotient = (stop - start) / step
    except OverflowError:
        quotient = math.inf
    if not math.isfinite(quotient):
        raise ValueRangeError(f"arange: wanted a finite length, got start {start}, stop {stop}, step {step}")
    if quotient == 0 and stop != start:
        return int((stop > start) == (step > 0))
    (size,) = check_sizes(max(math.ceil(quotient), 0), name="arange: the length")
    return size


def unusual_range(start: Any, step: Any, size: int, dtype: DType) -> Array:
    """A range of bools or complexes."""
    if dtype in COMPLEX:
        return convert(float_range(start, step, size, np.dtype(f"f{dtype.itemsize // 2}")), dtype)
    if size > 2:
        raise DTypeError(
            f"arange: wanted at most 2 elements for a range of bools, got {size}; give another dtype"
        )
    return lax.ne(float_range(start, step, size, np.dtype(np.float64)), 0.0)


def integer_range(start: Any, step: Any, size: int, dtype: DType) -> Array:
    """start + i * step of an integer type, wrapping."""
    first, second = int(start), int(start + step)
    for value in (first, second)[:size]:
        check_fits(value, dtype)
    if (first, second) == (0, 1) or size == 0:
        return _counter(size, dtype)
    counted = _counter(size, INT64)
    # Products and sums wrap, so int64 serves every integer type.
    values = lax.add(lax.mul(counted, _wrap_int64(second - first)), _wrap_int64(first))
    return convert(values, dtype)


def _wrap_int64(value: int) -> int:
    return (value + 2**63) % 2**64 - 2**63


def float_range(start: Any, step: Any, size: int, dtype: DType) -> Array:
    """start + i * delta of a float type, delta being (start + step) - start in that type."""
    narrow = dtype in EXTENDED_FLOAT or dtype in SUB_BYTE or dtype.itemsize == 2
    computed = np.dtype(np.float32) if narrow else dtype
    with np.errstate(all="ignore"):
        ends = np.array([start, start + step], np.float64).astype(dtype).astype(computed)
        delta = ends[1] - ends[0]
        ramp = ends[0] + np.arange(2, dtype=computed) * delta
    if ends.tobytes() == np.array([0, 1], computed).tobytes():
        return convert(_counter(size, computed), dtype)
    counted = _counter(size, computed)
    values = lax.add(lax.mul(counted, float(delta)), float(ends[0]))
    for index in range(2):
        # NumPy writes the first two elements as they are and extends them; rounding may tell the difference.
        if ramp[index].tobytes() != ends[index].tobytes():
            here = lax.eq(counted, float(index))
            values = lax.select(here, fill((size,), float(ends[index]), computed), values)
    return convert(values, dtype)


def space_evenly(
    first: Array,
    last: Array,
    count: int,
    endpoint: bool,
    known: tuple[complex, complex] | None,
) -> tuple[Array, Array]:
    """Values and step of `linspace` by NumPy's formula; `known` holds the ends if they are host scalars."""
    shape, element, parts = (count, *first.shape), first.dtype, count - 1 if endpoint else count
    real = convert(wrap(Node(Iota(TensorType(shape, INT64), 0))), element)
    delta = lax.sub(last, first)
    if parts > 0:
        step = lax.div(delta, parts)
        values = _multiples(real, delta, step, parts, known and _vanishes(known, element, parts))
    else:
        step = fill((), math.nan, element)
        values = lax.mul(real, _repeat_in_rows(delta, shape))
    values = lax.add(values, _repeat_in_rows(first, shape))
    if endpoint and count > 1:
        index = wrap(Node(Iota(TensorType(shape, INT64), 0)))
        values = lax.select(lax.eq(index, count - 1), _repeat_in_rows(last, shape), values)
    return values, step


def _vanishes(ends: tuple[complex, complex], dtype: DType, parts: int) -> bool:
    """Whether the step between two scalars is, or underflows to, 0."""
    with np.errstate(all="ignore"):
        low, high = (np.asarray(end).astype(dtype) for end in ends)
        return bool((high - low) / parts == 0)


def _multiples(index: Array, delta: Array, step: Array, parts: int, vanishes: bool | None) -> Array:
    """index * step, or (index / parts) * delta if a step is 0; None for "see when the values are there"."""
    usual = lax.mul(index, _repeat_in_rows(step, index.shape))
    if vanishes is False:
        return usual
    vanished = lax.eq(step, fill((), 0, step.dtype))
    if vanished.shape:
        vanished = lax.reduce_or(vanished, tuple(range(len(vanished.shape))))
    rare = lax.mul(lax.div(index, parts), _repeat_in_rows(delta, index.shape))
    return lax.select(vanished, rare, usual)


def _repeat_in_rows(array: Array, shape: tuple[int, ...]) -> Array:
    """`array` repeated along a new first dimension."""
    return lax.broadcast_in_dim(array, shape, range(1, len(shape)))
