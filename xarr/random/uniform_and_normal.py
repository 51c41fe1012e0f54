"""The parts of distributions: parameters brought to one shape, uniform and normal numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from xarr import lax
from xarr.base.broadcasting import Misfit, align_numpy
from xarr.base.host_arrays import is_weak
from xarr.base.typing import Array
from xarr.dtypes import COMPLEX, FLOAT, canonical, default_float, info
from xarr.errors import DTypeError
from xarr.explanation.errors import broadcast_error
from xarr.ir.ops.formula import Term, xla_log1p
from xarr.ir.ops.special import Erf, xla_erf_inv
from xarr.lax.core import ArrayLike
from xarr.numpy_api.creation.arrays import argument
from xarr.random.keys import Key, Shape, check_fits, random_bits, sizes_of, split
from xarr.runtime.handles import wrap

DType = np.dtype[Any]
Sizes = tuple[int, ...]


def float_type(name: str, dtype: DTypeLike | None, also: frozenset[DType] = frozenset()) -> DType:
    """The element type asked for, by default xarr's; DTypeError for other kinds and for float8."""
    element = default_float() if dtype is None else canonical(dtype)
    if element not in FLOAT | also or element.itemsize < 2:
        kinds = "float or complex" if also else "float"
        raise DTypeError(f"{name}: wanted a {kinds} type of at least 16 bits, got {element}")
    return element


def widest_float(*dtypes: DType) -> DType:
    """The widest of the float types among these, the first of equally wide ones; xarr's default if none is one."""
    floats = [dtype for dtype in dtypes if dtype in FLOAT]
    return max(floats, key=lambda dtype: dtype.itemsize) if floats else default_float()


def spread_to(name: str, value: ArrayLike, shape: Sizes, dtype: DType) -> Array:
    """A parameter in the type and the shape of the result, to which it broadcasts by NumPy's rule."""
    operand = value if is_weak(value) else argument(value)
    if dtype not in COMPLEX and (isinstance(operand, complex) or getattr(operand, "dtype", None) in COMPLEX):
        raise DTypeError(
            f"{name}: wanted real parameters, got complex ones; take .real, .imag or abs() first"
        )
    if is_weak(value):
        return lax.full(shape, float(value) if dtype in FLOAT else value, dtype)
    array = lax.convert_element_type(operand, dtype)
    check_fits(name, shape, array.shape)
    return lax.broadcast_in_dim(array, shape, range(len(shape) - array.ndim, len(shape)))


def shape_like(name: str, shape: Shape | None, **parameters: ArrayLike) -> Sizes:
    """The shape asked for, else that to which the parameters broadcast.  BroadcastError if they do not."""
    shapes = [() if is_weak(value) else argument(value).shape for value in parameters.values()]
    if shape is None:
        alignment = align_numpy(*shapes)
        if isinstance(alignment, Misfit):
            raise broadcast_error(name, shapes, names=tuple(parameters))
        return alignment.result
    sizes = sizes_of(name, shape)
    check_fits(name, sizes, *shapes)
    return sizes


def split_up(key: Key, count: int) -> list[Key]:
    """New keys of a single one, one by one."""
    new = split(key, count)
    return [Key(lax.index_in_dim(new.data, at, keepdims=False), key.impl) for at in range(count)]


def pair(key: Key) -> tuple[Key, Key]:
    """Two new keys."""
    first, second = split_up(key, 2)
    return first, second


def number(value: float, dtype: DType) -> Any:
    """A scalar of that type."""
    return np.asarray(value, dtype)[()]


def log1p(x: Array) -> Array:
    """log(1 + x) with XLA's error."""
    return wrap(xla_log1p(Term(x._node)).node)


def draw_uniform(
    name: str, key: Key, shape: Sizes, dtype: DType, minval: ArrayLike = 0.0, maxval: ArrayLike = 1.0
) -> Array:
    """Uniform floats in [minval, maxval) from a single key, or from a key for each element."""
    low, high = (spread_to(name, value, shape, dtype) for value in (minval, maxval))
    width, mantissa = 8 * dtype.itemsize, int(info(dtype).nmant)
    drawn = 8 if mantissa < 8 else width
    unsigned = np.dtype(f"uint{width}")
    bits = lax.convert_element_type(random_bits(key, drawn, shape), unsigned)
    # Random mantissa bits behind the exponent of 1 make a float in [1, 2).
    one = np.asarray(1, dtype).view(unsigned)[()]
    bits = lax.bitwise_or(lax.shift_right_logical(bits, unsigned.type(drawn - mantissa)), one)
    unit = lax.sub(lax.bitcast_convert_type(bits, dtype), number(1, dtype))
    return lax.max(low, lax.add(lax.mul(unit, lax.sub(high, low)), low))


def draw_normal(key: Key, shape: Sizes, dtype: DType) -> Array:
    """Normal numbers from a single key, or from a key for each element."""
    low = np.nextafter(number(-1, dtype), number(0, dtype))
    u = draw_uniform("normal", key, shape, dtype, low, number(1, dtype))
    return lax.mul(number(math.sqrt(2), dtype), erf_inv(u))


def erf(x: Array) -> Array:
    """erf with XLA's error, which `erf_inv` magnifies; compiled loops have another formula for `lax.erf`."""
    return wrap(Erf().decompose(x._node))


def erf_inv(x: Array) -> Array:
    """erf_inv with XLA's error, which is that of `lax.erf_inv` but in float64."""
    return lax.erf_inv(x) if x.dtype.itemsize < 8 else wrap(xla_erf_inv(Term(x._node)).node)
