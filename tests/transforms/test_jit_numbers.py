"""Python numbers as arguments of jitted functions: they promote and compute as outside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.support.jitting import assert_same_tree, twice
from xarr import lax
from xarr.errors import (
    TracedValueError,
    ValueRangeError,
    XarrError,
)

OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "x + n": lambda x, n: x + n,
    "n - x": lambda x, n: n - x,
    "x * (n + 1)": lambda x, n: x * (n + 1),
    "x + n * n": lambda x, n: x + n * n,
    "maximum": lambda x, n: xarr.maximum(x, n),
    "where": lambda x, n: xarr.where(x == x, x, n),
    "asarray": lambda x, n: x + xarr.asarray(n),
    "set": lambda x, n: x.at[0].set(n),
    "-n": lambda x, n: x + -n,
    "n": lambda x, n: (n, n + n, n * 2.5, n / 2, abs(n)),
    "n == 3": lambda x, n: (n == 3, x * (n != 1), (n == 3) + x),
}


@pytest.mark.sampled
@pytest.mark.implicit
@pytest.mark.parametrize("default", ["float64", "float32"])
@pytest.mark.parametrize("number", [3, 0.1, True, 1 + 2j], ids=lambda n: type(n).__name__)
@pytest.mark.parametrize("name", OPERATIONS)
def test_python_numbers_promote_as_outside(name: str, number: Any, default: str) -> None:
    function = OPERATIONS[name]
    with xarr.config(default_dtype=default):
        for dtype in ("uint8", "int64", "float16", "bfloat16", "float32", "float64", "complex64"):
            x = xarr.asarray(np.arange(3), dtype)
            try:
                wanted = function(x, number)
            except XarrError as error:
                with pytest.raises(type(error)):
                    xarr.jit(function)(x, number)
                continue
            for result in twice(xarr.jit(function), x, number):
                assert_same_tree(result, wanted)


def test_the_value_of_a_number_is_no_part_of_the_signature() -> None:
    x = xarr.asarray(np.arange(3, dtype=np.float32))
    jitted = xarr.jit(lambda x, rate: x * rate)
    for rate in (0.1, 0.2, np.inf, -0.0, 1e300, np.nan):
        assert_same(jitted(x, rate), x * rate)
    assert jitted.compilations == 1
    assert_same(jitted(x, 3), x * 3)
    assert jitted.compilations == 2


def test_an_int_that_does_not_fit_is_refused_in_every_call() -> None:
    x = xarr.asarray(np.arange(3, dtype=np.uint8))
    jitted = xarr.jit(lambda x, n: x + n)
    with pytest.raises(ValueRangeError, match="300"):
        jitted(x, 300)
    assert_same(jitted(x, 200), x + 200)
    for wrong in (300, -1, 2**70):
        with pytest.raises(ValueRangeError):
            jitted(x, wrong)
    assert_same(jitted(x, 5), x + 5)


def test_an_int_is_compared_exactly() -> None:
    x = xarr.asarray(np.array([0, 255], np.uint8))
    jitted = xarr.jit(lambda x, n: (x < n, n <= x, x == n))
    for n in (-1, 0, 255, 256, 10**12):
        assert_same_tree(jitted(x, n), (x < n, n <= x, x == n))


def test_integers_above_int64() -> None:
    x = xarr.asarray(np.array([1], np.uint64))
    assert_same(xarr.jit(lambda x, n: x + n)(x, 2**63), x + 2**63)


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e5m2", "float16", "float32"])
def test_integers_above_int64_become_floats_in_later_calls(dtype: str) -> None:
    x = xarr.ones(2, dtype=dtype)
    add = xarr.jit(lambda x, n: x + n)
    for n in (2, 3, 2**63, 2**64, -(2**63) - 1):
        assert_same(add(x, n), x + n)


@pytest.mark.parametrize(("base", "exponent"), [(2, 3), (2.0, 3), (2, 0.5), (2.0, -1)])
def test_powers_of_numbers(base: Any, exponent: Any) -> None:
    assert_same(xarr.jit(lambda n: n**exponent)(base), xarr.asarray(base**exponent))


def test_an_int_to_a_traced_int_is_refused() -> None:
    with pytest.raises(TracedValueError, match="depends on the sign of the exponent"):
        xarr.jit(lambda n: 2**n)(3)
    assert_same(xarr.jit(lambda n: n**-2)(4), xarr.asarray(4**-2))


def test_rebinding_a_number_changes_no_argument() -> None:
    def function(n: int) -> Any:
        total = n
        total += 1
        total *= n
        return total, divmod(total, 4), n

    for result in twice(xarr.jit(function), 5):
        assert_same_tree(result, function(5))


def test_numbers_in_loops_and_inner_functions() -> None:
    x = xarr.asarray(np.arange(3, dtype=np.float32))

    @xarr.jit
    def function(x: Any, rate: Any) -> Any:
        @xarr.jit
        def inner(x: Any, r: Any) -> Any:
            return x * r

        y, _ = lax.scan(lambda c, _: (c * rate + inner(c, rate), None), x, None, length=2)
        return lax.while_loop(lambda c: xarr.sum(c) < 10, lambda c: c + inner(c, 2.0), y)

    for result in twice(function, x, 0.25):
        assert_same(result, np.arange(3, dtype=np.float32) * np.float32(0.25 * 27))


def test_numbers_of_many_steps() -> None:
    def step(x: Any, t: Any, h: Any) -> Any:
        for _ in range(300):
            x, t = x + h, t + h
        return x, t, x * (t - h)

    x = xarr.asarray(np.arange(3, dtype=np.float32))
    jitted = xarr.jit(step)
    outer = xarr.jit(lambda x, t: jitted(x, t, t / 4))
    for t in (0.5, 7, 0.1):
        for result in twice(jitted, x, t, 0.125):
            assert_same_tree(result, step(x, t, 0.125))
        for result in twice(outer, x, t):
            assert_same_tree(result, step(x, t, t / 4))


def test_numbers_that_are_used_twice_in_each_of_many_steps() -> None:
    def fibonacci(first: Any, second: Any) -> Any:
        for _ in range(80):
            first, second = second, first + second
        return second, -second, abs(first - 2 * second)

    jitted = xarr.jit(fibonacci)
    for pair in ((1, 1), (2, 3.5), (0.1, 0.7), (1j, 2)):
        for result in twice(jitted, *pair):
            assert_same_tree(result, fibonacci(*pair))
