"""Distributions: each function's result follows from the key as jax.random's does.  Source: jax.random."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import DTypeLike

from xarr import lax
from xarr.base.host import is_weak
from xarr.base.typing import Array
from xarr.dtypes import COMPLEX, FLOAT, INTEGER, canonical, default_float, default_of, info, real_part_of
from xarr.errors import DTypeError, InputError, ShapeError, ValueRangeError, counted
from xarr.lax.core import ArrayLike, flag, integer
from xarr.lax.dynamic_sizes import refuse_dynamic
from xarr.numpy_api.creation.arrays import argument
from xarr.random.draws import (
    DType,
    Sizes,
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
from xarr.random.keys import Key, KeyLike, Shape, check_fits, one_key, random_bits, sizes_of
from xarr.shapes import normalize_axis

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


def randint(
    key: KeyLike, shape: Shape, minval: ArrayLike, maxval: ArrayLike, dtype: DTypeLike | None = None
) -> Array:
    """Integers in [minval, maxval); minval where that is empty.

    minval, maxval: ints, or integer arrays that broadcast to `shape`.  maxval may be one more than the
    greatest number of the type.  Raises DTypeError for types that are no integers.
    Source: jax.random.randint.
    """
    element = default_of(int) if dtype is None else canonical(dtype)
    if element not in INTEGER:
        raise DTypeError(f"randint: wanted an integer type, got {element}")
    sizes, single = sizes_of("randint", shape), one_key("randint", key)
    sampled = np.dtype(np.int32) if element.itemsize < 4 else element
    limits = info(element)
    # One more than the greatest is a bound that the sampled type may not hold.
    low = _bound("randint minval", minval, int(limits.min), int(limits.max) + 1)
    high = _bound("randint maxval", maxval, int(limits.min), int(limits.max) + 1)
    numbers = _randint(single, sizes, sampled, low, high)
    return lax.convert_element_type(numbers, element)


def _bound(name: str, value: ArrayLike, low: int, high: int) -> Any:
    """A bound, moved into [low, high]."""
    if is_weak(value):
        return min(max(integer("randint", name.split()[1], value), low), high)
    array = argument(value)
    if array.dtype not in INTEGER:
        raise DTypeError(f"{name}: wanted integers, got {array._node.tensor_type.short()}")
    own = info(array.dtype)
    return lax.clamp(
        array.dtype.type(max(low, int(own.min))), array, array.dtype.type(min(high, int(own.max)))
    )


def _randint(single: Key, shape: Sizes, dtype: DType, low: Any, high: Any) -> Array:
    """Two draws for each number, so that the remainder is hardly biased."""
    if isinstance(low, int) and isinstance(high, int):
        return _randint_between(single, shape, dtype, low, high)
    greatest, width = int(info(dtype).max), 8 * dtype.itemsize
    beyond = _exceeds_type(high, greatest, shape)
    low, high = (_integers(value, greatest, shape, dtype) for value in (low, high))
    unsigned = np.dtype(f"uint{width}")
    first, second = (random_bits(words, width, shape) for words in pair(single))
    span = lax.convert_element_type(lax.sub(high, low), unsigned)
    span = lax.select(lax.le(high, low), lax.full_like(span, 1), span)
    span = lax.select(lax.bitwise_and(beyond, lax.gt(high, low)), lax.add(span, unsigned.type(1)), span)
    multiplier = lax.rem(lax.full_like(span, 2 ** (width // 2)), span)
    multiplier = lax.rem(lax.mul(multiplier, multiplier), span)
    offset = lax.add(lax.mul(lax.rem(first, span), multiplier), lax.rem(second, span))
    return lax.add(low, lax.convert_element_type(lax.rem(offset, span), dtype))


def _randint_between(single: Key, shape: Sizes, dtype: DType, low: int, high: int) -> Array:
    """Draw between bounds that are known: the remainders are by numbers, and the upper draw may be needless."""
    greatest, width = int(info(dtype).max), 8 * dtype.itemsize
    unsigned = np.dtype(f"uint{width}")
    low = min(low, greatest)
    span = max(high - low, 1)
    upper, lower = pair(single)
    offset = random_bits(lower, width, shape)
    if span < 2**width:
        number_of = unsigned.type(span)
        offset = lax.rem(offset, number_of)
        # As in JAX the square wraps around.
        if multiplier := (2 ** (width // 2) % span) ** 2 % 2**width % span:
            more = lax.mul(lax.rem(random_bits(upper, width, shape), number_of), unsigned.type(multiplier))
            offset = lax.rem(lax.add(more, offset), number_of)
    return lax.add(dtype.type(low), lax.convert_element_type(offset, dtype))


def _exceeds_type(high: Any, greatest: int, shape: Sizes) -> Array:
    """Whether the bound is beyond the greatest number of the type."""
    if isinstance(high, int):
        return lax.full(shape, high > greatest, np.bool_)
    own = high.dtype
    if int(info(own).max) <= greatest:
        return lax.full(shape, False, np.bool_)
    return spread_to("randint", lax.gt(high, own.type(greatest)), shape, np.dtype(np.bool_))


def _integers(value: Any, greatest: int, shape: Sizes, dtype: DType) -> Array:
    if isinstance(value, int):
        return lax.full(shape, min(value, greatest), dtype)
    own = value.dtype
    if int(info(own).max) > greatest:
        value = lax.min(value, own.type(greatest))
    return spread_to("randint", value, shape, dtype)


def bernoulli(key: KeyLike, p: ArrayLike = 0.5, shape: Shape | None = None, mode: str = "low") -> Array:
    """True with probability p.

    p: float, or float array, in [0, 1]; mode: "low", or "high" for twice the random bits.
    Raises DTypeError for a p that is no float, InputError for another mode.  Source: jax.random.bernoulli.
    """
    if mode not in ("low", "high"):
        raise InputError(f"bernoulli: wanted 'low' or 'high' for mode, got {mode!r}")
    sizes = shape_like("bernoulli", shape, p=p)
    dtype = default_float() if is_weak(p) else argument(p).dtype
    if dtype not in FLOAT or isinstance(p, bool) or (is_weak(p) and not isinstance(p, float)):
        raise DTypeError(f"bernoulli: wanted a float probability, got {p if is_weak(p) else dtype}")
    bound = spread_to("bernoulli", p, sizes, dtype)
    single = one_key("bernoulli", key)
    if mode == "low":
        return lax.lt(draw_uniform("bernoulli", single, sizes, dtype), bound)
    both = draw_uniform("bernoulli", single, (2, *sizes), dtype)
    first, second = (lax.index_in_dim(both, at, keepdims=False) for at in range(2))
    fine = lax.mul(second, number(2.0 ** -int(info(dtype).nmant), dtype))
    return lax.lt(fine, lax.sub(bound, first))


def rademacher(key: KeyLike, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """-1 or 1, each with probability 1/2; an int64 array unless `dtype` says otherwise.

    Source: jax.random.rademacher.
    """
    element = default_of(int) if dtype is None else canonical(dtype)
    signs = lax.convert_element_type(bernoulli(key, 0.5, shape), element)
    two, one = number(2, element), number(1, element)
    return lax.sub(lax.mul(signs, two), one)


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
    _check_mode("gumbel", mode)
    tiny = float(info(element).tiny)
    if mode != "high":
        u = draw_uniform("gumbel", single, sizes, element, tiny, 1.0)
        return lax.neg(lax.log(lax.neg(lax.log(u))))
    both = draw_uniform("gumbel", single, (2, *sizes), element)
    high, low = (lax.index_in_dim(both, at, keepdims=False) for at in range(2))
    fine = lax.mul(low, number(2.0 ** -int(info(element).nmant), element))
    u = lax.select(lax.ge(high, 0.5), high, lax.add(lax.add(high, fine), number(tiny, element)))
    return lax.neg(lax.log(lax.neg(log1p(lax.neg(u)))))


def _check_mode(name: str, mode: Any) -> None:
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


def cauchy(key: KeyLike, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """Numbers of the density 1 / (pi (1 + x²)).  Source: jax.random.cauchy."""
    u, element = _draw_uniform("cauchy", key, shape, dtype, "eps")
    return lax.tan(lax.mul(number(math.pi, element), lax.sub(u, number(0.5, element))))


def pareto(key: KeyLike, b: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None) -> Array:
    """Numbers of the density b / x**(b + 1), x >= 1.  Source: jax.random.pareto."""
    element = float_type("pareto", dtype)
    sizes = shape_like("pareto", shape, b=b)
    return lax.exp(lax.div(exponential(key, sizes, element), spread_to("pareto", b, sizes, element)))


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


def geometric(
    key: KeyLike, p: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None
) -> Array:
    """Draw how many trials of success probability p it takes to succeed: 1, 2 …; int64 unless `dtype` says so.

    Source: jax.random.geometric.
    """
    element = default_of(int) if dtype is None else canonical(dtype)
    sizes = shape_like("geometric", shape, p=p)
    real = default_float() if is_weak(p) else argument(p).dtype
    u = draw_uniform("geometric", one_key("geometric", key), sizes, float_type("geometric", real))
    u = lax.select(lax.eq(u, 0.0), lax.full_like(u, 1), u)
    chance = log1p(lax.neg(spread_to("geometric", p, sizes, real)))
    trials = lax.add(lax.floor(lax.div(lax.log(u), chance)), number(1, real))
    return lax.convert_element_type(trials, element)


# --- choosing ----------------------------------------------------------------------------------------


def permutation(key: KeyLike, x: ArrayLike, axis: int = 0, independent: bool = False) -> Array:
    """The elements of `x` along `axis` in random order; of range(x) for an int.

    independent: shuffle each line along the axis on its own, instead of all in the same way.
    Source: jax.random.permutation.
    """
    single = one_key("permutation", key)
    if is_weak(x):
        return _shuffle(single, lax.iota(_INT64, max(integer("permutation", "x", x), 0)), 0)
    array = argument(x)
    if not array.ndim:
        raise InputError("permutation: wanted an int or an array with dimensions, got an array of rank 0")
    along = normalize_axis(axis, array.ndim)
    refuse_dynamic("permutation", array, "sort_key_val with random numbers as keys", (along,))
    if independent or array.ndim == 1:
        return _shuffle(single, array, along)
    return lax.take(array, _shuffle(single, lax.iota(_INT64, array.shape[along]), 0), axis=along)


def _shuffle(single: Key, x: Array, axis: int) -> Array:
    """Sorted by random numbers, as often as it takes to make equal ones unlikely."""
    rounds = math.ceil(3 * math.log(max(1, x.size)) / math.log(2**32 - 1))
    for _ in range(rounds):
        single, drawn = pair(single)
        _, x = lax.sort_key_val(random_bits(drawn, 32, x.shape), x, axis)
    return x


def choice(
    key: KeyLike,
    a: ArrayLike,
    shape: Shape = (),
    replace: bool = True,
    p: ArrayLike | None = None,
    axis: int = 0,
    mode: str | None = None,
) -> Array:
    """Random elements of `a` along `axis`, or of range(a) for an int.

    shape: of the choice; replace: whether an element may be chosen again; p: probabilities, one each; mode: as of
    `gumbel`, which chooses where there is a p and no replacement.
    Raises ValueRangeError for more elements than there are, ShapeError for a p of another shape.
    Source: jax.random.choice.
    """
    single, sizes, replace = (
        one_key("choice", key),
        sizes_of("choice", shape),
        flag("choice", "replace", replace),
    )
    _check_mode("choice", mode)
    array = None if is_weak(a) else argument(a)
    if array is not None and not array.ndim:
        raise InputError("choice: wanted an int or an array with dimensions for a, got an array of rank 0")
    along = 0 if array is None else normalize_axis(axis, array.ndim)
    if array is not None:
        below = "lax.take(x, randint(key, shape, 0, lax.get_dimension_size(x, axis)), axis)"
        refuse_dynamic("choice", array, below, (along,))
    count = integer("choice", "a", a) if array is None else array.shape[along]
    draws = math.prod(sizes)
    if draws and count <= 0:
        raise ValueRangeError(f"choice: wanted something to choose from, got {counted(count, 'element')}")
    if not replace and draws > count:
        raise ValueRangeError(
            f"choice: wanted at most {counted(count, 'element')} without replacement, got {draws}"
        )
    if p is None and not replace and draws:
        whole = permutation(single, count if array is None else array, along)
        drawn = lax.slice_in_dim(whole, 0, draws, axis=along)
        return lax.reshape(drawn, (*drawn.shape[:along], *sizes, *drawn.shape[along + 1 :]))
    indices = _drawn_indices(single, count, sizes, replace, p, mode) if draws else lax.full(sizes, 0, _INT64)
    return indices if array is None else lax.take(array, indices, axis=along)


def _drawn_indices(
    single: Key, count: int, shape: Sizes, replace: bool, p: ArrayLike | None, mode: str | None
) -> Array:
    """Draw the indices of the elements that are chosen."""
    if p is None:
        return _randint(single, shape, _INT64, 0, count)
    weights = argument(p)
    refuse_dynamic("the p of choice", weights, "categorical(key, log(p))")
    if weights.dtype not in FLOAT:
        weights = lax.convert_element_type(weights, default_float())
    if weights.shape != (count,):
        raise ShapeError(f"choice: wanted a probability for each of {count} elements, got {weights.shape}")
    dtype = weights.dtype
    if not replace:
        draws = math.prod(shape)
        scores = lax.add(gumbel(single, (count,), dtype, mode), lax.log(weights))
        order = lax.sort_key_val(lax.neg(scores), lax.iota(_INT64, count))[1]
        return lax.reshape(lax.slice_in_dim(order, 0, draws), shape)
    total = lax.cumsum(weights)
    u = lax.sub(number(1, dtype), draw_uniform("choice", single, shape, dtype))
    last = lax.index_in_dim(total, count - 1, keepdims=False)
    return _first_not_below(total, lax.mul(lax.broadcast_in_dim(last, shape, ()), u))


def _first_not_below(ordered: Array, values: Array) -> Array:
    """The index of the first element of `ordered` that is not below each value, by halving."""
    count = ordered.shape[0]
    low, high = (lax.full(values.shape, end, _INT64) for end in (0, count))
    for _ in range(count.bit_length()):
        middle = lax.div(lax.add(low, high), _INT64.type(2))
        open_ = lax.lt(low, high)
        below = lax.bitwise_and(open_, lax.lt(lax.take(ordered, middle, axis=0), values))
        low = lax.select(below, lax.add(middle, _INT64.type(1)), low)
        high = lax.select(lax.bitwise_and(open_, lax.bitwise_not(below)), middle, high)
    return low


def categorical(
    key: KeyLike,
    logits: ArrayLike,
    axis: int = -1,
    shape: Shape | None = None,
    replace: bool = True,
    mode: str | None = None,
) -> Array:
    """Numbers of categories, whose logarithms of (not normalised) probabilities lie along `axis`.

    shape: of the result; its last dimensions must be those of `logits` without `axis`.
    replace: whether draws in the leading dimensions of `shape` may repeat a category.
    Raises ShapeError for another shape, ValueRangeError for more draws than categories.
    Source: jax.random.categorical.
    """
    array, single = argument(logits), one_key("categorical", key)
    if array.dtype not in FLOAT:
        raise DTypeError(f"categorical: wanted float logits, got {array._node.tensor_type.short()}")
    along = normalize_axis(axis, array.ndim)
    batch = tuple(size for at, size in enumerate(array.shape) if at != along)
    sizes = batch if shape is None else sizes_of("categorical", shape)
    check_fits("categorical", sizes, batch)
    lead = sizes[: len(sizes) - len(batch)]
    if sizes[len(lead) :] != batch:
        raise ShapeError(f"categorical: wanted a shape that ends in {batch}, got {sizes}")
    if not replace:
        return _without_replacement(single, array, along, lead, batch, mode)
    drawn = gumbel(single, (*lead, *array.shape), array.dtype, mode)
    own = lax.broadcast_in_dim(array, drawn.shape, range(len(lead), drawn.ndim))
    return lax.argmax(lax.add(drawn, own), len(lead) + along, _INT64)


def _without_replacement(
    single: Key, logits: Array, axis: int, lead: Sizes, batch: Sizes, mode: str | None
) -> Array:
    count, draws = logits.shape[axis], math.prod(lead)
    if draws > count:
        raise ValueRangeError(f"categorical: wanted at most {count} draws without replacement, got {draws}")
    scores = lax.neg(lax.add(logits, gumbel(single, logits.shape, logits.dtype, mode)))
    numbers = lax.broadcasted_iota(np.int32, logits.shape, axis)
    order = lax.sort_key_val(scores, numbers, axis)[1]
    best = lax.slice_in_dim(order, 0, draws, axis=axis)
    front: Sequence[int] = (axis, *[dim for dim in range(logits.ndim) if dim != axis])
    return lax.reshape(lax.transpose(best, front), (*lead, *batch))
