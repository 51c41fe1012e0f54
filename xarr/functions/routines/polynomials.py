"""Polynomials as vectors of coefficients, that of the highest power first.

Leading zeros count in none of them.  Where leaving them out decides the shape of a result, values are looked at;
`trim_leading_zeros=False` keeps them, and works in traced functions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from xarr import lax
from xarr.dtypes import default_float, promote_weak
from xarr.errors import ShapeError, ValueRangeError
from xarr.functions import elementwise_functions as elementwise
from xarr.functions._arguments import convert, fill, stretch
from xarr.functions._core import as_array, broadcast_operands, fresh, promote_operands
from xarr.functions.routines._lines import along
from xarr.functions.routines._values import looked_at
from xarr.functions.routines.correlations import convolve
from xarr.lax.core import ArrayLike, whole
from xarr.lax.dynamic_sizes import refuse_dynamic

if TYPE_CHECKING:
    from xarr.arrays.array import Array

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


def polyadd(a1: ArrayLike, a2: ArrayLike) -> Array:
    """The coefficients of the sum of two polynomials.  Raises ShapeError.  Source: NumPy, `polyadd`."""
    return elementwise.add(*_of_one_degree("polyadd", a1, a2))


def polysub(a1: ArrayLike, a2: ArrayLike) -> Array:
    """The coefficients of the difference of two polynomials.  Raises ShapeError, DTypeError for bools.

    Source: NumPy, `polysub`.
    """
    return elementwise.subtract(*_of_one_degree("polysub", a1, a2))


def _of_one_degree(name: str, a1: ArrayLike, a2: ArrayLike) -> tuple[Array, Array]:
    """The coefficients of both, after zeros for the higher powers of the other."""
    first, second = _coefficients(name, a1), _coefficients(name, a2)
    count = max(first.size, second.size)
    return _led(first, count), _led(second, count)


def _led(p: Array, count: int) -> Array:
    if p.size == count:
        return p
    return lax.pad(p, lax.full((), 0, p.dtype), [(count - p.size, 0, 0)])


def polymul(a1: ArrayLike, a2: ArrayLike, *, trim_leading_zeros: bool = True) -> Array:
    """The coefficients of the product of two polynomials, without leading zeros of either.

    Raises ShapeError, TracedValueError without trim_leading_zeros=False in a traced function.
    Source: NumPy, `polymul`; jax.numpy has `trim_leading_zeros`.
    """
    first, second = _coefficients("polymul", a1), _coefficients("polymul", a2)
    if trim_leading_zeros:
        first, second = _trimmed("polymul", first), _trimmed("polymul", second)
    return convolve(first, second)


def _trimmed(name: str, p: Array) -> Array:
    """From the first coefficient that differs from 0 on; a 0 if there is none."""
    places = np.flatnonzero(
        looked_at(name, "the number of leading zeros", p, "give trim_leading_zeros=False")
    )
    return p[int(places[0]) :] if places.size else fill((1,), 0, p.dtype, p._node.device)


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

        def step(rest: Array, place: Array) -> tuple[Array, Array]:
            window = lax.dynamic_slice(rest, (place,), (size,))
            share = lax.mul(scale, lax.index_in_dim(window, 0, 0, keepdims=False))
            window = lax.sub(window, lax.mul(along(share, (size,), 0), divisor))
            return lax.dynamic_update_slice(rest, window, (place,)), share

        rest, quotient = lax.scan(step, dividend, lax.iota(np.int64, count))
    return quotient, _without_small(rest) if trim_leading_zeros else rest


def _floating(p: Array) -> Array:
    return convert(p, promote_weak(p.dtype, float))


def _without_small(rest: Array) -> Array:
    values = looked_at("polydiv", "the degree of the remainder", rest, "give trim_leading_zeros=False")
    places = np.flatnonzero(~(np.abs(values) <= 1e-8))
    return rest[min(int(places[0]) if places.size else rest.size, rest.size - 1) :]


class _DeepError(ValueRangeError, RecursionError):
    """NumPy says RecursionError."""


def _refuse_many(name: str, times: int) -> None:
    if times > _MOST_TIMES:
        raise _DeepError(f"{name}: wanted m of at most {_MOST_TIMES}, as NumPy can, got {times}")


def polyder(p: ArrayLike, m: int = 1) -> Array:
    """The coefficients of the `m`-th derivative.  Raises ShapeError, ValueRangeError for a negative m.

    Source: NumPy, `polyder`.
    """
    found, times = _coefficients("polyder", p), whole("polyder", "m", m)
    if times < 0:
        raise ValueRangeError(f"polyder: wanted m >= 0, got {times}; polyint integrates")
    if times >= found.size:
        return found[:0]
    _refuse_many("polyder", times)
    for _ in range(times):
        powers = lax.rev(lax.add(lax.iota(np.int64, found.size - 1), 1), (0,))
        found = elementwise.multiply(found[:-1], powers)
    return fresh(found)


def polyint(p: ArrayLike, m: int = 1, k: ArrayLike | None = None) -> Array:
    """The coefficients of the `m`-th antiderivative, as floats, with constants `k`, by default 0.

    k: a number for all, or one for each integration.  Raises ShapeError, ValueRangeError for a negative m.
    Source: NumPy, `polyint`.
    """
    found, times = _coefficients("polyint", p), whole("polyint", "m", m)
    if times < 0:
        raise ValueRangeError(f"polyint: wanted m >= 0, got {times}; polyder derives")
    _refuse_many("polyint", times)
    added = fill((max(times, 1),), 0, default_float()) if k is None else _coefficients("polyint", k)
    if added.size == 1 and times > 1:
        added = along(added[0], (times,), 0)
    if added.size < times:
        raise ShapeError(f"polyint: wanted one constant, or {times} of them, for k, got {added.size}")
    for place in range(times):
        powers = lax.rev(lax.add(lax.iota(np.int64, found.size), 1), (0,))
        parts = promote_operands("polyint", elementwise.divide(found, powers), added[place : place + 1])
        found = lax.concatenate(list(parts), 0)
    return fresh(found)


def _several(coefficients: Array, places: Array) -> tuple[Array, Array]:
    """The coefficients of several polynomials, and x, in the shape that they broadcast to."""
    first, spread = broadcast_operands("polyval", coefficients[0], places)
    count, rank = coefficients.shape[0], len(first.shape)
    dimensions = (0, *range(1 + rank - len(coefficients.shape[1:]), 1 + rank))
    return lax.broadcast_in_dim(coefficients, (count, *first.shape), dimensions), spread


def polyval(p: ArrayLike, x: ArrayLike) -> Array:
    """The values of a polynomial at x, by Horner's scheme, which gives NaN for an infinite x.

    p: coefficients, that of the highest power first; in further dimensions, which broadcast with those of x, those of
        several polynomials.  Raises BroadcastError.  Source: NumPy, `polyval`.
    """
    coefficients, places = as_array(p), as_array(x)
    if len(coefficients.shape) < 2:
        coefficients = _coefficients("polyval", coefficients)
    if not coefficients.shape[0]:
        return lax.full_like(places, 0)
    coefficients, places = promote_operands("polyval", coefficients, places)
    if len(coefficients.shape) > 1:
        coefficients, places = _several(coefficients, places)

    def step(found: Array, coefficient: Array) -> tuple[Array, tuple[()]]:
        product = elementwise.multiply(found, places)
        return elementwise.add(product, stretch(coefficient, places.shape)), ()

    # From zero on, as NumPy, so that an infinite x gives NaN.
    found = lax.full_like(places, 0)
    if coefficients.shape[0] > _WRITTEN_OUT:
        result: Array = lax.scan(step, found, coefficients)[0]
        return result
    for place in range(coefficients.shape[0]):
        found, _ = step(found, coefficients[place])
    return fresh(found)
