"""Polynomials as vectors of coefficients, that of the highest power first.

Leading zeros count in none of them.  Where leaving them out decides the shape of a result, values are looked at;
`trim_leading_zeros=False` keeps them, and works in traced functions.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from xarr import lax
from xarr.base.typing import Array
from xarr.calls.arguments import convert, fill, stretch
from xarr.calls.concrete_values import look_at
from xarr.calls.operands import as_array, broadcast_operands, fresh, promote_operands
from xarr.calls.remembered_calls import remembers_calls
from xarr.dtypes import default_float, promote_weak
from xarr.errors import ShapeError, ValueRangeError
from xarr.lax.core import ArrayLike, whole
from xarr.lax.dynamic_sizes import refuse_dynamic
from xarr.numpy_api.mathematics import elementwise
from xarr.numpy_api.statistics.correlations import convolve
from xarr.numpy_api.statistics.lines import repeat_vector

__all__ = ["polyadd", "polyder", "polydiv", "polyint", "polymul", "polysub", "polyval"]

#: Coefficients up to which a polynomial is written out, instead of a loop.
_WRITTEN_OUT: Final = 32
#: Derivatives and integrals at once: about what Python's limit of recursion leaves NumPy.
_MOST_TIMES: Final = 1000


def _coefficients(name: str, p: ArrayLike) -> Array:
    array = as_array(p)
    if len(array.shape) > 1:
        raise ShapeError(f"{name}: wanted a vector of coefficients, got shape {array.shape}")
    refuse_dynamic(name, array, "coefficients of a known number")
    return lax.reshape(array, (array.size,))


@remembers_calls
def polyadd(a1: ArrayLike, a2: ArrayLike) -> Array:
    """The coefficients of the sum of two polynomials.  Raises ShapeError.  Source: NumPy, `polyadd`."""
    return elementwise.add(*_of_one_degree("polyadd", a1, a2))


@remembers_calls
def polysub(a1: ArrayLike, a2: ArrayLike) -> Array:
    """The coefficients of the difference of two polynomials.  Raises ShapeError, DTypeError for bools.

    Source: NumPy, `polysub`.
    """
    return elementwise.subtract(*_of_one_degree("polysub", a1, a2))


def _of_one_degree(name: str, a1: ArrayLike, a2: ArrayLike) -> tuple[Array, Array]:
    """The coefficients of both, after zeros for the higher powers of the other."""
    first, second = _coefficients(name, a1), _coefficients(name, a2)
    count = max(first.size, second.size)
    return _pad_front(first, count), _pad_front(second, count)


def _pad_front(p: Array, count: int) -> Array:
    if p.size == count:
        return p
    return lax.pad(p, lax.full((), 0, p.dtype), [(count - p.size, 0, 0)])


@remembers_calls
def polymul(a1: ArrayLike, a2: ArrayLike, *, trim_leading_zeros: bool = True) -> Array:
    """The coefficients of the product of two polynomials, without leading zeros of either.

    Raises ShapeError, TracedValueError without trim_leading_zeros=False in a traced function.
    Source: NumPy, `polymul`; jax.numpy has `trim_leading_zeros`.
    """
    first, second = _coefficients("polymul", a1), _coefficients("polymul", a2)
    if trim_leading_zeros:
        first, second = _trim_leading_zeros("polymul", first), _trim_leading_zeros("polymul", second)
    return convolve(first, second)


def _trim_leading_zeros(name: str, p: Array) -> Array:
    """From the first coefficient that differs from 0 on; a 0 if there is none."""
    nonzero = np.flatnonzero(look_at(name, "the number of leading zeros", p, "give trim_leading_zeros=False"))
    return p[int(nonzero[0]) :] if nonzero.size else fill((1,), 0, p.dtype, p._node.device)


@remembers_calls
def polydiv(u: ArrayLike, v: ArrayLike, *, trim_leading_zeros: bool = True) -> tuple[Array, Array]:
    """(quotient, remainder) of two polynomials, as floats; the remainder without leading coefficients within 1e-8.

    Raises ShapeError, TracedValueError without trim_leading_zeros=False in a traced function.
    Source: NumPy, `polydiv`; jax.numpy has `trim_leading_zeros`.
    """
    first, second = (_floating(_coefficients("polydiv", p)) for p in (u, v))
    if not first.size or not second.size:
        raise ShapeError(f"polydiv: wanted at least one coefficient, got {first.size} and {second.size}")
    dividend, divisor = promote_operands("polydiv", first, second)
    count, size = first.size - second.size + 1, second.size
    if count < 1:
        quotient, rest = fill((1,), 0, dividend.dtype, dividend._node.device), dividend
    else:
        scale = convert(lax.div(1.0, second[0]), divisor.dtype)  # rounded as NumPy does

        def step(rest: Array, start: Array) -> tuple[Array, Array]:
            window = lax.dynamic_slice(rest, (start,), (size,))
            share = lax.mul(scale, lax.index_in_dim(window, 0, 0, keepdims=False))
            window = lax.sub(window, lax.mul(repeat_vector(share, (size,), 0), divisor))
            return lax.dynamic_update_slice(rest, window, (start,)), share

        rest, quotient = lax.scan(step, dividend, lax.iota(np.int64, count))
    return quotient, _without_small(rest) if trim_leading_zeros else rest


def _floating(p: Array) -> Array:
    return convert(p, promote_weak(p.dtype, float))


def _without_small(rest: Array) -> Array:
    values = look_at("polydiv", "the degree of the remainder", rest, "give trim_leading_zeros=False")
    large = np.flatnonzero(~(np.abs(values) <= 1e-8))
    return rest[min(int(large[0]) if large.size else rest.size, rest.size - 1) :]


class _DeepError(ValueRangeError, RecursionError):
    """NumPy says RecursionError."""


def _refuse_many(name: str, times: int) -> None:
    if times > _MOST_TIMES:
        raise _DeepError(f"{name}: wanted m of at most {_MOST_TIMES}, as NumPy can, got {times}")


@remembers_calls
def polyder(p: ArrayLike, m: int = 1) -> Array:
    """The coefficients of the `m`-th derivative.  Raises ShapeError, ValueRangeError for a negative m.

    Source: NumPy, `polyder`.
    """
    result, times = _coefficients("polyder", p), whole("polyder", "m", m)
    if times < 0:
        raise ValueRangeError(f"polyder: wanted m >= 0, got {times}; polyint integrates")
    if times >= result.size:
        return elementwise.multiply(result[:0], lax.full((0,), 0, np.int64)) if times else fresh(result)
    _refuse_many("polyder", times)
    for _ in range(times):
        powers = lax.rev(lax.add(lax.iota(np.int64, result.size - 1), 1), (0,))
        result = elementwise.multiply(result[:-1], powers)
    return fresh(result)


@remembers_calls
def polyint(p: ArrayLike, m: int = 1, k: ArrayLike | None = None) -> Array:
    """The coefficients of the `m`-th antiderivative, as floats, with constants `k`, by default 0.

    k: a number for all, or one for each integration.  Raises ShapeError, ValueRangeError for a negative m.
    Source: NumPy, `polyint`.
    """
    result, times = _coefficients("polyint", p), whole("polyint", "m", m)
    if times < 0:
        raise ValueRangeError(f"polyint: wanted m >= 0, got {times}; polyder derives")
    _refuse_many("polyint", times)
    added = fill((max(times, 1),), 0, default_float()) if k is None else _coefficients("polyint", k)
    if added.size == 1 and times > 1:
        added = repeat_vector(added[0], (times,), 0)
    if added.size < times:
        raise ShapeError(f"polyint: wanted one constant, or {times} of them, for k, got {added.size}")
    for index in range(times):
        powers = lax.rev(lax.add(lax.iota(np.int64, result.size), 1), (0,))
        parts = promote_operands("polyint", elementwise.divide(result, powers), added[index : index + 1])
        result = lax.concatenate(list(parts), 0)
    return fresh(result)


def _broadcast_several(coefficients: Array, x: Array) -> tuple[Array, Array]:
    """The coefficients of several polynomials, and x, in the shape that they broadcast to."""
    first, spread = broadcast_operands("polyval", coefficients[0], x)
    count, rank = coefficients.shape[0], len(first.shape)
    dimensions = (0, *range(1 + rank - len(coefficients.shape[1:]), 1 + rank))
    return lax.broadcast_in_dim(coefficients, (count, *first.shape), dimensions), spread


@remembers_calls
def polyval(p: ArrayLike, x: ArrayLike) -> Array:
    """The values of a polynomial at x, by Horner's scheme, which gives NaN for an infinite x.

    p: coefficients, that of the highest power first; in further dimensions, which broadcast with those of x, those of
        several polynomials.  Raises BroadcastError.  Source: NumPy, `polyval`.
    """
    coefficients, points = as_array(p), as_array(x)
    if len(coefficients.shape) < 2:
        coefficients = _coefficients("polyval", coefficients)
    if not coefficients.shape[0]:
        return lax.full_like(points, 0)
    coefficients, points = promote_operands("polyval", coefficients, points)
    if len(coefficients.shape) > 1:
        coefficients, points = _broadcast_several(coefficients, points)

    def step(value: Array, coefficient: Array) -> tuple[Array, tuple[()]]:
        product = elementwise.multiply(value, points)
        return elementwise.add(product, stretch(coefficient, points.shape)), ()

    # From zero on, as NumPy, so that an infinite x gives NaN.
    value = lax.full_like(points, 0)
    if coefficients.shape[0] > _WRITTEN_OUT:
        total: Array = lax.scan(step, value, coefficients)[0]
        return total
    for index in range(coefficients.shape[0]):
        value, _ = step(value, coefficients[index])
    return fresh(value)
