"""Rows (a), (b): chains of element-wise operations, (m) of complex numbers; (j): small arrays, where the call costs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from measure import Call, Contenders
from overhead import twenty_operations

import xarr
from cpu_rows.contenders import (
    SIZES,
    Function,
    Row,
    by_numba,
    by_xarr,
    contenders,
    is_installed,
    jax,
    numba_kernels,
    random,
)
from xarr.dtypes import complex_of

CHAIN = "where(tanh(2*x + 1) > 0, exp(-x**2), x/2)"


def chain_program(xp: Any, _: Any, offset: float = 1) -> Function:
    return lambda x: xp.where(xp.tanh(2 * x + offset) > 0, xp.exp(-(x**2)), x / 2)


def chain(dtype: np.dtype, size: int) -> Contenders:
    x = random(dtype, size)
    return contenders(chain_program, x, numba_kernel="chain", expression=CHAIN, names={"x": x}, by_torch=True)


def complex_numbers(dtype: np.dtype, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Two arrays of complex numbers whose parts have this type."""
    x, y = (random(dtype, 2 * size, seed=seed).view(complex_of(dtype)) for seed in (0, 1))
    return x, y


def complex_chain(dtype: np.dtype, size: int) -> Contenders:
    return contenders(lambda xp, _: lambda x, y: (x * y + x) * xp.conj(y) - x, *complex_numbers(dtype, size))


def magnitudes(dtype: np.dtype, size: int) -> Contenders:
    return contenders(lambda xp, _: lambda x: xp.abs(x), complex_numbers(dtype, size)[0])


def black_scholes_program(
    xp: Any, erf: Callable[[Any], Any], rate: float = 0.02, sigma: float = 0.3
) -> Function:
    """The price of a European call option."""

    def normal_cdf(x: Any) -> Any:
        return 0.5 * (1 + erf(x * math.sqrt(0.5)))

    def function(s: Any, k: Any, t: Any) -> Any:
        spread = sigma * xp.sqrt(t)
        d1 = (xp.log(s / k) + (rate + 0.5 * sigma**2) * t) / spread
        return s * normal_cdf(d1) - k * xp.exp(-rate * t) * normal_cdf(d1 - spread)

    return function


def numpy_erf() -> Callable[[Any], Any]:
    """SciPy's, or one call of `math.erf` for each element."""
    if is_installed("scipy"):
        from scipy.special import erf

        return lambda x: erf(x)
    each = np.vectorize(math.erf, otypes=[np.float64])
    return lambda x: each(x).astype(x.dtype)


def black_scholes(dtype: np.dtype, size: int) -> Contenders:
    draw = np.random.default_rng(0)
    s, k, t = (draw.uniform(low, high, size).astype(dtype) for low, high in ((10, 50), (10, 50), (0.1, 2)))

    def program(xp: Any, lax: Any) -> Function:
        if lax is not None:
            return black_scholes_program(xp, lax.erf)
        return black_scholes_program(xp, numpy_erf() if xp is np else xp.erf)

    return contenders(program, s, k, t, numba_kernel="black_scholes", by_torch=True)


def adding(dtype: np.dtype, _: int) -> Contenders:
    """x + y of 4×4, each call as short as a user can write it."""
    x = np.ones((4, 4), dtype)
    held = xarr.asarray(x).evaluate()
    add = xarr.jit(lambda x, y: x + y)
    calls: Contenders = {
        "xarr": lambda: add(held, held),
        "lazy": lambda: (held + held).evaluate(),
        "numpy": lambda: x + x,
    }
    if is_installed("jax"):
        there, jax_add = jax().device_put(x), jax().jit(lambda x, y: x + y)
        calls["jax"] = lambda: jax_add(there, there).block_until_ready()
    kernels = numba_kernels()
    if kernels:
        fast, exact = kernels.add, kernels.exactly(kernels.add)
        calls |= {"numba": lambda: exact(x, x), "numba fast": lambda: fast(x, x)}
    return calls


def seven_program(xp: Any, _: Any) -> Function:
    return lambda x, y: xp.maximum(xp.sqrt(abs((x * y + x) * 0.5 - y)), x)


def seven_operations(dtype: np.dtype, _: int) -> Contenders:
    x, y = np.linspace(0.1, 1, 10, dtype=dtype), np.linspace(1, 2, 10, dtype=dtype)
    calls = contenders(seven_program, x, y)
    function, held = xarr.jit(seven_program(xarr, None)), [xarr.asarray(each).evaluate() for each in (x, y)]
    left, right = held
    calls["xarr"] = lambda: function(left, right)
    return calls | by_numba("seven_operations", x, y)


def twenty(dtype: np.dtype, _: int) -> Contenders:
    x = np.linspace(0.1, 1, 10, dtype=dtype)
    return contenders(lambda xp, _: lambda x: twenty_operations(xp, x), x, numba_kernel="twenty_operations")


def compiling() -> dict[str, Callable[[float], Call]]:
    """Contender -> offset -> a call of the chain with this offset, which nothing has compiled yet."""
    x = random(np.dtype(np.float32), 10**5)

    def with_xarr(offset: float) -> Call:
        return by_xarr(chain_program(xarr, None, offset), x)["xarr"]

    def with_jax(offset: float) -> Call:
        held, compiled = jax().device_put(x), jax().jit(chain_program(jax().numpy, None, offset))
        return lambda: compiled(held).block_until_ready()

    return {"xarr": with_xarr, **({"jax": with_jax} if is_installed("jax") else {})}


ROWS = (
    Row("a", "chain", chain, SIZES, one_dimensional=True, traffic=lambda size: 2 * size),
    Row("m", "chain of complex numbers", complex_chain, (10**6,), True, traffic=lambda size: 6 * size),
    Row("m", "abs of complex numbers", magnitudes, (10**6,), True, traffic=lambda size: 3 * size),
    Row("b", "Black-Scholes", black_scholes, SIZES, one_dimensional=True, traffic=lambda size: 4 * size),
    Row("j", "4×4 add", adding),
    Row("j", "7 operations, 10 elements", seven_operations),
    Row("j", "20 operations, 10 elements", twenty),
)
