"""Continuous distributions: each function's result follows from the key as jax.random's does.  Source: jax.random."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from numpy.typing import DTypeLike

from xarr import lax
from xarr.base.tracebacks import names_errors
from xarr.base.typing import Array
from xarr.dtypes import COMPLEX, info, real_part_of
from xarr.errors import InputError
from xarr.lax.core import ArrayLike
from xarr.random.keys import KeyLike, Shape, one_key, sizes_of
from xarr.random.uniform_and_normal import (
    DType,
    draw_normal,
    draw_uniform,
    erf,
    erf_inv,
    float_type,
    log1p,
    number,
    pair,
    shape_like,
    spread_to,
)

_INT64: Final = np.dtype(np.int64)


# --- uniform -----------------------------------------------------------------------------------------


def uniform(
    key: KeyLike,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    minval: ArrayLike = 0.0,
    maxval: ArrayLike = 1.0,
) -> Array:
    """Floats in [minval, maxval).

    minval, maxval: numbers, or arrays that broadcast to `shape`.
    Raises DTypeError for a type that is no float, ShapeError for parameters that do not fit.
    Source: jax.random.uniform.
    """
    element = float_type("uniform", dtype)
    sizes = sizes_of("uniform", shape)
    return draw_uniform("uniform", one_key("uniform", key), sizes, element, minval, maxval)


# --- the normal and its relatives --------------------------------------------------------------------


def normal(key: KeyLike, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """Numbers of mean 0 and variance 1; complex ones have it in both parts together.

    Raises DTypeError for a type that is neither float nor complex.  Source: jax.random.normal.
    """
    element = float_type("normal", dtype, COMPLEX)
    sizes, single = sizes_of("normal", shape), one_key("normal", key)
    if element not in COMPLEX:
        return draw_normal(single, sizes, element)
    real = real_part_of(element)
    first, second = (draw_normal(words, sizes, real) for words in pair(single))
    return lax.div(lax.complex(first, second), number(math.sqrt(2), element))


@names_errors
def truncated_normal(
    key: KeyLike,
    lower: ArrayLike,
    upper: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Normal numbers between `lower` and `upper`, numbers or arrays that broadcast to `shape`.

    Source: jax.random.truncated_normal.
    """
    element = float_type("truncated_normal", dtype)
    sizes = shape_like("truncated_normal", shape, lower=lower, upper=upper)
    low, high = (spread_to("truncated_normal", value, sizes, element) for value in (lower, upper))
    root = number(math.sqrt(2), element)
    a, b = (erf(lax.div(value, root)) for value in (low, high))
    u = draw_uniform("truncated_normal", one_key("truncated_normal", key), sizes, element, a, b)
    values = lax.mul(root, erf_inv(u))
    above = lax.nextafter(low, lax.full_like(low, math.inf))
    below = lax.nextafter(high, lax.full_like(high, -math.inf))
    return lax.min(lax.max(values, above), below)


def lognormal(
    key: KeyLike, sigma: ArrayLike = 1.0, shape: Shape | None = None, dtype: DTypeLike | None = None
) -> Array:
    """exp(sigma x) of normal x.  Source: jax.random.lognormal."""
    element = float_type("lognormal", dtype)
    sizes = shape_like("lognormal", shape, sigma=sigma)
    drawn = draw_normal(one_key("lognormal", key), sizes, element)
    return lax.exp(lax.mul(drawn, spread_to("lognormal", sigma, sizes, element)))


# --- by inverting the distribution -------------------------------------------------------------------


def _draw_uniform(
    name: str, key: KeyLike, shape: Shape, dtype: DTypeLike | None, low: str | float = 0.0
) -> tuple[Array, DType]:
    """Uniform numbers from `low`, a number or the name of one that finfo knows, up to 1."""
    element = float_type(name, dtype)
    least = getattr(info(element), low) if isinstance(low, str) else low
    return draw_uniform(name, one_key(name, key), sizes_of(name, shape), element, least, 1.0), element


def exponential(key: KeyLike, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """Numbers of the density exp(-x), x >= 0.  Source: jax.random.exponential."""
    u, _ = _draw_uniform("exponential", key, shape, dtype)
    return lax.neg(log1p(lax.neg(u)))


def gumbel(key: KeyLike, shape: Shape = (), dtype: DTypeLike | None = None, mode: str | None = None) -> Array:
    """Numbers of the standard Gumbel distribution, exp(-exp(-x)).

    mode: "low" (the default), or "high" for twice the random bits, which reach further into the tail.
    Source: jax.random.gumbel.
    """
    element = float_type("gumbel", dtype)
    sizes, single = sizes_of("gumbel", shape), one_key("gumbel", key)
    check_mode("gumbel", mode)
    tiny = float(info(element).tiny)
    if mode != "high":
        u = draw_uniform("gumbel", single, sizes, element, tiny, 1.0)
        return lax.neg(lax.log(lax.neg(lax.log(u))))
    both = draw_uniform("gumbel", single, (2, *sizes), element)
    high, low = (lax.index_in_dim(both, at, keepdims=False) for at in range(2))
    fine = lax.mul(low, number(2.0 ** -int(info(element).nmant), element))
    u = lax.select(lax.ge(high, 0.5), high, lax.add(lax.add(high, fine), number(tiny, element)))
    return lax.neg(lax.log(lax.neg(log1p(lax.neg(u)))))


def check_mode(name: str, mode: Any) -> None:
    """InputError unless the mode of Gumbel numbers is "low", "high" or None."""
    if mode not in (None, "low", "high"):
        raise InputError(f"{name}: wanted 'low' or 'high' for mode, got {mode!r}")


def laplace(key: KeyLike, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """Numbers of the density exp(-|x|) / 2.  Source: jax.random.laplace."""
    element = float_type("laplace", dtype)
    u, _ = _draw_uniform("laplace", key, shape, element, -1.0 + float(info(element).epsneg))
    return lax.mul(lax.sign(u), log1p(lax.neg(lax.abs(u))))


def logistic(key: KeyLike, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """Numbers whose distribution function is 1 / (1 + exp(-x)).  Source: jax.random.logistic."""
    u, _ = _draw_uniform("logistic", key, shape, dtype, "tiny")
    return lax.sub(lax.log(u), log1p(lax.neg(u)))


@names_errors
def cauchy(key: KeyLike, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """Numbers of the density 1 / (pi (1 + x²)).  Source: jax.random.cauchy."""
    u, element = _draw_uniform("cauchy", key, shape, dtype, "eps")
    return lax.tan(lax.mul(number(math.pi, element), lax.sub(u, number(0.5, element))))


def pareto(key: KeyLike, b: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None) -> Array:
    """Numbers of the density b / x**(b + 1), x >= 1.  Source: jax.random.pareto."""
    element = float_type("pareto", dtype)
    sizes = shape_like("pareto", shape, b=b)
    return lax.exp(lax.div(exponential(key, sizes, element), spread_to("pareto", b, sizes, element)))


@names_errors
def weibull_min(
    key: KeyLike,
    scale: ArrayLike,
    concentration: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Numbers of the Weibull distribution, scale (-log u)**(1 / concentration).

    Source: jax.random.weibull_min.
    """
    element = float_type("weibull_min", dtype)
    sizes = shape_like("weibull_min", shape, scale=scale, concentration=concentration)
    base = exponential(key, sizes, element)
    power = lax.div(number(1, element), spread_to("weibull_min", concentration, sizes, element))
    return lax.mul(lax.pow(base, power), spread_to("weibull_min", scale, sizes, element))


def rayleigh(
    key: KeyLike, scale: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None
) -> Array:
    """Numbers of the density x / scale² exp(-x² / (2 scale²)), x >= 0.  Source: jax.random.rayleigh."""
    element = float_type("rayleigh", dtype)
    sizes = shape_like("rayleigh", shape, scale=scale)
    u, _ = _draw_uniform("rayleigh", key, sizes, element)
    root = lax.sqrt(lax.mul(lax.log(u), number(-2, element)))
    return lax.mul(spread_to("rayleigh", scale, sizes, element), root)


def triangular(
    key: KeyLike,
    left: ArrayLike,
    mode: ArrayLike,
    right: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Numbers between `left` and `right` whose density is a triangle with its top at `mode`.

    Source: jax.random.triangular.
    """
    element = float_type("triangular", dtype)
    sizes = shape_like("triangular", shape, left=left, mode=mode, right=right)
    a, c, b = (spread_to("triangular", value, sizes, element) for value in (left, mode, right))
    top = lax.div(lax.sub(c, a), lax.sub(b, a))
    u, _ = _draw_uniform("triangular", key, sizes, element)
    rest = lax.sub(number(1, element), u)
    rising = lax.add(a, lax.sqrt(lax.mul(lax.mul(u, lax.sub(b, a)), lax.sub(c, a))))
    falling = lax.sub(b, lax.sqrt(lax.mul(lax.mul(rest, lax.sub(b, a)), lax.sub(b, c))))
    return lax.select(lax.lt(u, top), rising, falling)


# --- choosing ----------------------------------------------------------------------------------------
