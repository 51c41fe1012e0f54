"""Discrete distributions: integers in a range, coins; counts, which loop until enough was drawn.  From jax.random."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import DTypeLike

from xarr import lax
from xarr.base.host_arrays import is_weak
from xarr.base.tracebacks import names_errors
from xarr.base.typing import Array
from xarr.dtypes import FLOAT, INTEGER, canonical, default_float, default_of, info
from xarr.errors import DTypeError, InputError, ShapeError
from xarr.lax.core import ArrayLike, integer
from xarr.numpy_api.creation.arrays import argument
from xarr.random.keys import Key, KeyLike, Shape, check_fits, one_key, random_bits, sizes_of, split
from xarr.random.uniform_and_normal import (
    DType,
    Sizes,
    draw_uniform,
    float_type,
    log1p,
    number,
    pair,
    shape_like,
    split_up,
    spread_to,
    widest_float,
)

_F32: Final = np.dtype(np.float32)


def poisson(
    key: KeyLike, lam: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None
) -> Array:
    """Whole numbers of the probability lam**k exp(-lam) / k!; int64 unless `dtype` says otherwise.

    lam: the mean, a number or an array that broadcasts to `shape`, rounded to float32 as in JAX; a negative
    one or NaN gives -1.  Below 10 uniform numbers are multiplied (Knuth), from there on candidates are
    rejected (Hörmann, 1993).  Raises DTypeError for a type of no integers.  Source: jax.random.poisson.
    """
    element = default_of(int) if dtype is None else canonical(dtype)
    if element not in INTEGER:
        raise DTypeError(f"poisson: wanted an integer type, got {element}")
    sizes, single = shape_like("poisson", shape, lam=lam), one_key("poisson", key)
    mean = spread_to("poisson", lam, sizes, _F32)
    is_small = lax.bitwise_or(lax.ne(mean, mean), lax.lt(mean, _F32.type(10)))
    small = _knuth(single, lax.select(is_small, mean, lax.full_like(mean, 0)), element)
    large = _sample_by_rejection(single, lax.select(is_small, lax.full_like(mean, 1e5), mean), element)
    counts = lax.select(is_small, small, large)
    return lax.select(lax.eq(mean, _F32.type(0)), lax.full_like(counts, 0), counts)


def _any(where: Array) -> Array:
    return lax.reduce_or(where, tuple(range(where.ndim)))


def _knuth(single: Key, mean: Array, dtype: DType) -> Array:
    """Count uniform numbers until their product is below exp(-mean), less one."""
    bound = lax.neg(mean)

    def is_open(state: Any) -> Array:
        return _any(lax.gt(state[2], bound))

    def step(state: Any) -> Any:
        count, key, logs = state
        key, own = split_up(key, 2)
        more = lax.select(lax.gt(logs, bound), lax.add(count, dtype.type(1)), count)
        return more, key, lax.add(logs, lax.log(draw_uniform("poisson", own, mean.shape, _F32)))

    first = (lax.full(mean.shape, 0, dtype), single, lax.full_like(mean, 0))
    return lax.sub(lax.while_loop(is_open, step, first)[0], dtype.type(1))


def _sample_by_rejection(single: Key, mean: Array, dtype: DType) -> Array:
    """Transformed rejection."""
    x = _Arithmetic(_F32)
    logarithm = lax.log(mean)
    b = x.add(0.931, x.mul(2.53, lax.sqrt(mean)))
    a = x.add(-0.059, x.mul(0.02483, b))
    inverse = x.add(1.1239, x.div(1.1328, x.sub(b, 3.4)))
    limit = x.sub(0.9277, x.div(3.6224, x.sub(b, 2)))

    def is_open(state: Any) -> Array:
        return _any(lax.bitwise_not(state[1]))

    def step(state: Any) -> Any:
        sample, accepted, key = state
        key, first, second = split_up(key, 3)
        u = x.sub(draw_uniform("poisson", first, mean.shape, _F32), 0.5)
        v = draw_uniform("poisson", second, mean.shape, _F32)
        shifted = x.sub(0.5, lax.abs(u))
        slope = x.add(x.div(x.mul(2, a), shifted), b)
        k = lax.floor(x.add(x.add(x.mul(slope, u), mean), 0.43))
        s = lax.log(x.div(x.mul(v, inverse), x.add(x.div(a, x.mul(shifted, shifted)), b)))
        t = x.sub(x.add(lax.neg(mean), x.mul(k, logarithm)), lax.lgamma(x.add(k, 1)))
        at_once = lax.bitwise_and(lax.ge(shifted, x.of(0.07)), lax.le(v, limit))
        edge = lax.bitwise_and(lax.lt(shifted, x.of(0.013)), lax.gt(v, shifted))
        never = lax.bitwise_or(lax.lt(k, x.of(0)), edge)
        good = lax.bitwise_or(at_once, lax.bitwise_and(lax.bitwise_not(never), lax.le(s, t)))
        return lax.select(good, k, sample), lax.bitwise_or(accepted, good), key

    first = (lax.full_like(mean, -1), lax.full(mean.shape, False, np.bool_), single)
    return lax.convert_element_type(lax.while_loop(is_open, step, first)[0], dtype)


class _Arithmetic:
    """Arithmetic in which numbers take the element type of the arrays."""

    def __init__(self, dtype: DType) -> None:
        self.dtype = dtype

    def of(self, value: Any) -> Any:
        return number(value, self.dtype) if isinstance(value, int | float) else value

    def add(self, x: Any, y: Any) -> Array:
        return lax.add(self.of(x), self.of(y))

    def sub(self, x: Any, y: Any) -> Array:
        return lax.sub(self.of(x), self.of(y))

    def mul(self, x: Any, y: Any) -> Array:
        return lax.mul(self.of(x), self.of(y))

    def div(self, x: Any, y: Any) -> Array:
        return lax.div(self.of(x), self.of(y))


# --- trials ------------------------------------------------------------------------------------------


def binomial(
    key: KeyLike, n: ArrayLike, p: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None
) -> Array:
    """Draw how many of `n` trials of success probability `p` succeed, as floats.

    n, p: numbers or arrays that broadcast to `shape`; NaN where n is negative or p is, or either is NaN.
    Raises DTypeError for a type that is no float.  Source: jax.random.binomial.
    """
    element = float_type("binomial", dtype)
    sizes = shape_like("binomial", shape, n=n, p=p)
    real = default_float() if is_weak(p) or argument(p).dtype not in FLOAT else argument(p).dtype
    count, chance = (spread_to("binomial", value, sizes, real) for value in (n, p))
    return lax.convert_element_type(_binomial(one_key("binomial", key), count, chance), element)


def _binomial(single: Key, count: Array, p: Array) -> Array:
    x = _Arithmetic(count.dtype)
    is_below = lax.lt(p, x.of(0.5))
    q = lax.select(is_below, p, x.sub(1, p))
    bad_count = lax.bitwise_or(lax.ne(count, count), lax.lt(count, x.of(0)))
    bad_chance, is_nan = lax.bitwise_or(lax.ne(q, q), lax.lt(q, x.of(0))), lax.ne(q, q)
    q = lax.select(bad_chance, lax.full_like(q, 0.01), q)
    is_endless = lax.eq(count, x.of(np.inf))
    inverting = lax.bitwise_or(bad_count, lax.le(x.mul(count, q), x.of(10)))
    count = lax.floor(count)
    few = _inversion(single, lax.select(inverting, count, lax.full_like(count, 0)), q)
    many = _sample_by_transformed_rejection(
        single,
        lax.select(inverting, lax.full_like(count, 1e4), count),
        lax.select(inverting, lax.full_like(q, 0.5), q),
    )
    invalid = lax.bitwise_or(bad_chance, bad_count)
    successes = lax.select(invalid, lax.full_like(q, np.nan), lax.select(inverting, few, many))
    successes = lax.select(
        lax.bitwise_and(is_endless, lax.bitwise_not(invalid)), lax.full_like(q, np.inf), successes
    )
    keeping = lax.bitwise_or(lax.bitwise_or(is_below, bad_count), lax.bitwise_or(is_nan, is_endless))
    return lax.select(keeping, successes, x.sub(count, successes))


def _inversion(single: Key, count: Array, q: Array) -> Array:
    """Count how many waiting times, each geometric, fit into `count` trials."""
    x = _Arithmetic(q.dtype)
    # -0 for q = 0: a waiting time must be +infinity there, not -infinity, which would never be long enough.
    chance = lax.min(log1p(lax.neg(q)), x.of(-0.0))

    def is_open(state: Any) -> Array:
        return _any(lax.le(state[1], count))

    def step(state: Any) -> Any:
        sample, total, key = state
        own, key = split_up(key, 2)
        more = lax.select(lax.le(total, count), x.add(sample, 1), sample)
        waiting = lax.ceil(lax.div(lax.log(draw_uniform("binomial", own, q.shape, q.dtype)), chance))
        return more, lax.add(total, waiting), key

    first = (lax.full_like(q, 0), lax.full_like(q, 0), single)
    return x.sub(lax.while_loop(is_open, step, first)[0], 1)


def _sample_by_transformed_rejection(single: Key, count: Array, q: Array) -> Array:
    """Transformed rejection with squeeze (Hörmann, 1993)."""
    x = _Arithmetic(q.dtype)
    deviation = lax.sqrt(x.mul(x.mul(count, q), x.sub(1, q)))
    b = x.add(1.15, x.mul(2.53, deviation))
    a = x.add(x.add(-0.0873, x.mul(0.0248, b)), x.mul(0.01, q))
    c = x.add(x.mul(count, q), 0.5)
    limit = x.sub(0.92, x.div(4.2, b))
    r = x.div(q, x.sub(1, q))
    alpha = x.mul(x.add(2.83, x.div(5.1, b)), deviation)
    m = lax.floor(x.mul(x.add(count, 1), q))
    rest = x.add(x.sub(count, m), 1)

    def bound(k: Array) -> Array:
        left = x.add(x.sub(count, k), 1)
        logarithm = x.mul(x.add(m, 0.5), lax.log(x.div(x.add(m, 1), x.mul(r, rest))))
        logarithm = x.add(logarithm, x.mul(x.add(count, 1), lax.log(x.div(rest, left))))
        logarithm = x.add(logarithm, x.mul(x.add(k, 0.5), lax.log(x.div(x.mul(r, left), x.add(k, 1)))))
        logarithm = x.add(x.add(logarithm, _stirling_tail(m)), _stirling_tail(x.sub(count, m)))
        return x.sub(x.sub(logarithm, _stirling_tail(k)), _stirling_tail(x.sub(count, k)))

    def is_open(state: Any) -> Array:
        return _any(lax.bitwise_not(state[1]))

    def step(state: Any) -> Any:
        sample, accepted, key = state
        key, first, second = split_up(key, 3)
        u = x.sub(draw_uniform("binomial", first, q.shape, q.dtype), 0.5)
        v = draw_uniform("binomial", second, q.shape, q.dtype)
        shifted = x.sub(0.5, lax.abs(u))
        at_once = lax.bitwise_and(lax.ge(shifted, x.of(0.07)), lax.le(v, limit))
        k = lax.floor(x.add(x.mul(x.add(x.div(x.mul(2, a), shifted), b), u), c))
        outside = lax.bitwise_or(lax.lt(k, x.of(0)), lax.gt(k, count))
        v = lax.log(x.div(x.mul(v, alpha), x.add(x.div(a, x.mul(shifted, shifted)), b)))
        good = lax.bitwise_or(at_once, lax.bitwise_and(lax.bitwise_not(outside), lax.le(v, bound(k))))
        return lax.select(good, k, sample), lax.bitwise_or(accepted, good), key

    first = (lax.full_like(q, -1), lax.full(q.shape, False, np.bool_), single)
    sample: Array = lax.while_loop(is_open, step, first)[0]
    return sample


#: log k! less Stirling's formula for k + 1, for k = 0 … 9.
_TAILS: Final = (
    *(0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509, 0.0166446911898211),
    *(0.0138761288230707, 0.0118967099458917, 0.0104112652619720, 0.00925546218271273, 0.00833056343336287),
)


def _stirling_tail(k: Array) -> Array:
    """The error of Stirling's formula for log k!."""
    x = _Arithmetic(k.dtype)
    is_listed = lax.le(k, x.of(9))
    k = lax.clamp(x.of(0), k, x.of(9))
    square = x.mul(x.add(k, 1), x.add(k, 1))
    inner = x.sub(1 / 360, x.div(1 / 1260, square))
    series = x.div(x.sub(1 / 12, x.div(inner, square)), x.add(k, 1))
    table = np.asarray(_TAILS, k.dtype)
    return lax.select(is_listed, lax.take(table, lax.convert_element_type(k, np.int32), axis=0), series)


def multinomial(
    key: KeyLike,
    n: ArrayLike,
    p: ArrayLike,
    *,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Draw how often each outcome along the last dimension of `p` comes up in `n` trials, as floats.

    n: broadcasts to p.shape[:-1]; shape: of the result, by default that of p.
    Raises ShapeError for a p of rank 0 and for parameters that do not fit.  Source: jax.random.multinomial.
    """
    element, chances = float_type("multinomial", dtype), argument(p)
    if not chances.ndim:
        raise ShapeError(
            "multinomial: wanted a p of rank 1 or more, got a scalar; binomial(key, n, p) takes one"
        )
    real = widest_float(chances.dtype, *([] if is_weak(n) else [argument(n).dtype]))
    sizes = chances.shape if shape is None else sizes_of("multinomial", shape)
    check_fits("multinomial", sizes, chances.shape)
    count = spread_to("multinomial", n, sizes[:-1], real)
    along = len(sizes) - 1
    front = (along, *range(along))
    p_first = lax.transpose(spread_to("multinomial", chances, sizes, real), front)
    rest = lax.cumsum(p_first, 0, reverse=True)
    ratios = lax.div(p_first, lax.select(lax.eq(rest, number(0, real)), lax.full_like(rest, 1), rest))

    def step(left: Array, entry: Any) -> Any:
        ratio, own = entry
        sample = _binomial(own, left, lax.clamp(number(0, real), ratio, number(1, real)))
        return lax.sub(left, sample), sample

    keys = split(one_key("multinomial", key), sizes[along])
    counts = lax.scan(step, count, (ratios, keys))[1]
    return lax.convert_element_type(lax.transpose(counts, (*range(1, along + 1), 0)), element)


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
    numbers = draw_integers(single, sizes, sampled, low, high)
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


def draw_integers(single: Key, shape: Sizes, dtype: DType, low: Any, high: Any) -> Array:
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


@names_errors
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


@names_errors
def rademacher(key: KeyLike, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """-1 or 1, each with probability 1/2; an int64 array unless `dtype` says otherwise.

    Source: jax.random.rademacher.
    """
    element = default_of(int) if dtype is None else canonical(dtype)
    signs = lax.convert_element_type(bernoulli(key, 0.5, shape), element)
    two, one = number(2, element), number(1, element)
    return lax.sub(lax.mul(signs, two), one)


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
