"""The gamma distribution and what is made of it.  Source: jax.random, whose keys and steps are these."""

from __future__ import annotations

from collections.abc import Callable

from numpy.typing import DTypeLike

from xarr import lax
from xarr.base.tracebacks import names_errors
from xarr.base.typing import Array
from xarr.errors import InputError, ShapeError
from xarr.lax.core import ArrayLike, integer
from xarr.numpy_api.creation.arrays import argument
from xarr.random.continuous import exponential
from xarr.random.discrete import rademacher
from xarr.random.keys import (
    Key,
    KeyLike,
    Shape,
    check_fits,
    one_key,
    sizes_of,
    split,
    split_each,
)
from xarr.random.uniform_and_normal import (
    draw_normal,
    draw_uniform,
    float_type,
    log1p,
    number,
    pair,
    shape_like,
    spread_to,
)

#: Words of keys, and arrays with an element for each.
State = tuple["Array", ...]


def gamma(key: KeyLike, a: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None) -> Array:
    """Numbers of the density x**(a - 1) exp(-x) / gamma(a), x >= 0.

    a: positive, a number or an array that broadcasts to `shape`.  Each element has a key of its own, and
    tries until a number is accepted.  Source: Marsaglia and Tsang (2000).
    Raises DTypeError for a type that is no float, ShapeError for parameters that do not fit.
    """
    element = float_type("gamma", dtype)
    sizes = shape_like("gamma", shape, a=a)
    return _gamma("gamma", one_key("gamma", key), spread_to("gamma", a, sizes, element), False)


@names_errors
def loggamma(key: KeyLike, a: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None) -> Array:
    """Logarithms of the numbers of `gamma`, finite where those of small `a` underflow to 0.

    Source: jax.random.loggamma.
    """
    element = float_type("loggamma", dtype)
    sizes = shape_like("loggamma", shape, a=a)
    return _gamma("loggamma", one_key("loggamma", key), spread_to("loggamma", a, sizes, element), True)


def _gamma(name: str, single: Key, a: Array, is_log: bool) -> Array:
    dtype, sizes = a.dtype, a.shape
    one, third = (number(value, dtype) for value in (1, 1 / 3))
    keys, boosting = split_each(split(single, sizes))
    is_large = lax.ge(a, one)
    d = lax.sub(lax.select(is_large, a, lax.add(a, one)), third)
    v = _draw_accepted(keys, d, lax.div(third, lax.sqrt(d)))
    # gamma(a) is gamma(a + 1) times a uniform number to the power 1 / a.
    u = draw_uniform(name, boosting, sizes, dtype)
    if is_log:
        logs = log1p(lax.neg(u))
        is_plain = lax.bitwise_or(is_large, lax.eq(logs, number(0, dtype)))
        boost = lax.select(is_plain, lax.full_like(a, 0), lax.mul(logs, lax.div(one, a)))
        return lax.add(lax.add(lax.log(d), lax.log(v)), boost)
    boost = lax.select(is_large, lax.full_like(a, 1), lax.pow(lax.sub(one, u), lax.div(one, a)))
    return lax.mul(lax.mul(d, v), boost)


def _draw_accepted(keys: Key, d: Array, c: Array) -> Array:
    """(1 + c x)**3 of a normal x that passes Marsaglia's test, for each key."""
    sizes, dtype = d.shape, d.dtype
    one, half, squeeze = (number(value, dtype) for value in (1, 0.5, 0.0331))

    def is_open(state: State) -> Array:
        _, x, v, u = state
        quick = lax.ge(u, lax.sub(one, lax.mul(squeeze, lax.mul(x, x))))
        bound = lax.add(lax.mul(x, half), lax.mul(d, lax.add(lax.sub(one, v), lax.log(v))))
        return lax.bitwise_and(quick, lax.ge(lax.log(u), bound))

    def step(state: State) -> State:
        key, for_x, for_u = split_each(Key(state[0], keys.impl), 3)
        x, v = _positive(for_x, c)
        return key.data, lax.mul(x, x), lax.mul(lax.mul(v, v), v), draw_uniform("gamma", for_u, sizes, dtype)

    first = (keys.data, lax.full_like(d, 0), lax.full_like(d, 1), lax.full_like(d, 2))
    return _while_any(is_open, step, first)[2]


def _positive(keys: Key, c: Array) -> tuple[Array, Array]:
    """A normal x and 1 + c x, which is positive, for each key."""
    one, zero = (number(value, c.dtype) for value in (1, 0))

    def step(state: State) -> State:
        key, own = split_each(Key(state[0], keys.impl))
        x = draw_normal(own, c.shape, c.dtype)
        return key.data, x, lax.add(one, lax.mul(x, c))

    first = (keys.data, lax.full_like(c, 0), lax.full_like(c, -1))
    _, x, v = _while_any(lambda state: lax.le(state[2], zero), step, first)
    return x, v


def _while_any(is_open: Callable[[State], Array], step: Callable[[State], State], state: State) -> State:
    """Steps, of the elements that are still open, until none is.  A key's words lie in a further dimension."""
    axes = tuple(range(state[-1].ndim))

    def next_state(state: State) -> State:
        where = is_open(state)
        masks = [lax.broadcast_in_dim(where, old.shape, axes) for old in state]
        return tuple(map(lax.select, masks, step(state), state))

    last: State = lax.while_loop(lambda state: lax.reduce_or(is_open(state), axes), next_state, state)
    return last


# --- what is made of it ------------------------------------------------------------------------------


def beta(
    key: KeyLike, a: ArrayLike, b: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None
) -> Array:
    """Numbers of the density proportional to x**(a - 1) (1 - x)**(b - 1), 0 <= x <= 1.

    Source: jax.random.beta.
    """
    element = float_type("beta", dtype)
    sizes = shape_like("beta", shape, a=a, b=b)
    words = pair(one_key("beta", key))
    first, second = (
        loggamma(own, spread_to("beta", value, sizes, element), dtype=element)
        for own, value in zip(words, (a, b), strict=True)
    )
    larger = lax.max(first, second)
    x, y = (lax.exp(lax.sub(one, larger)) for one in (first, second))
    return lax.div(x, lax.add(x, y))


def dirichlet(
    key: KeyLike, alpha: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None
) -> Array:
    """Numbers along the last dimension that sum to 1, with concentrations `alpha` of shape (…, n).

    shape: of the result without its last dimension.  Raises ShapeError for an alpha of rank 0.
    Source: jax.random.dirichlet.
    """
    element = float_type("dirichlet", dtype)
    array = argument(alpha)
    if not array.ndim:
        raise ShapeError(
            "dirichlet: wanted an alpha of rank 1 or more, got a scalar; beta(key, a, b) takes two"
        )
    lead = array.shape[:-1] if shape is None else sizes_of("dirichlet", shape)
    check_fits("dirichlet", lead, array.shape[:-1])
    logs = loggamma(key, array, (*lead, array.shape[-1]), element)
    along, dims = (len(lead),), range(len(lead))
    largest = lax.broadcast_in_dim(lax.reduce_max(logs, along), logs.shape, dims)
    powers = lax.exp(lax.sub(logs, largest))
    return lax.div(powers, lax.broadcast_in_dim(lax.reduce_sum(powers, along), logs.shape, dims))


def chisquare(
    key: KeyLike, df: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None
) -> Array:
    """Numbers of the chi-square distribution of `df` degrees of freedom.  Source: jax.random.chisquare."""
    element = float_type("chisquare", dtype)
    sizes = shape_like("chisquare", shape, df=df)
    two = number(2, element)
    half = lax.div(spread_to("chisquare", df, sizes, element), two)
    return lax.mul(lax.exp(loggamma(key, half, sizes, element)), two)


def f(
    key: KeyLike,
    dfnum: ArrayLike,
    dfden: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Numbers of the F distribution: a quotient of two chi-square numbers over their degrees of freedom.

    Source: jax.random.f.
    """
    element = float_type("f", dtype)
    sizes = shape_like("f", shape, dfnum=dfnum, dfden=dfden)
    words = pair(one_key("f", key))
    freedoms = [spread_to("f", each, sizes, element) for each in (dfden, dfnum)]
    below, above = (
        lax.div(chisquare(own, freedom, dtype=element), freedom)
        for own, freedom in zip(words, freedoms, strict=True)
    )
    return lax.div(above, below)


@names_errors
def t(key: KeyLike, df: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None) -> Array:
    """Numbers of Student's t distribution of `df` degrees of freedom.  Source: jax.random.t."""
    element = float_type("t", dtype)
    sizes = shape_like("t", shape, df=df)
    for_normal, for_gamma = pair(one_key("t", key))
    half = lax.div(spread_to("t", df, sizes, element), number(2, element))
    spread = lax.sqrt(lax.div(half, gamma(for_gamma, half, sizes, element)))
    return lax.mul(draw_normal(for_normal, sizes, element), spread)


@names_errors
def generalized_normal(
    key: KeyLike, p: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None
) -> Array:
    """Numbers of the density proportional to exp(-|x|**p).  Source: jax.random.generalized_normal."""
    element = float_type("generalized_normal", dtype)
    sizes = sizes_of("generalized_normal", shape)
    for_gamma, for_sign = pair(one_key("generalized_normal", key))
    power = lax.div(number(1, element), spread_to("generalized_normal", p, sizes, element))
    drawn = lax.pow(gamma(for_gamma, power, sizes, element), power)
    return lax.mul(rademacher(for_sign, sizes, element), drawn)


@names_errors
def ball(key: KeyLike, d: int, p: ArrayLike = 2, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """Points of `d` coordinates, uniform in the unit ball of the p-norm: an array of shape (*shape, d).

    Raises InputError for a d that is no int of 0 or more.  Source: jax.random.ball.
    """
    element = float_type("ball", dtype)
    sizes, count = sizes_of("ball", shape), integer("ball", "d", d)
    if count < 0:
        raise InputError(f"ball: wanted a number of coordinates d >= 0, got {count}")
    for_points, for_radius = pair(one_key("ball", key))
    points = generalized_normal(for_points, p, (*sizes, count), element)
    powers = lax.pow(lax.abs(points), spread_to("ball", p, points.shape, element))
    total = lax.add(lax.reduce_sum(powers, (len(sizes),)), exponential(for_radius, sizes, element))
    norm = lax.pow(total, lax.div(number(1, element), spread_to("ball", p, sizes, element)))
    return lax.div(points, lax.broadcast_in_dim(norm, points.shape, range(len(sizes))))
