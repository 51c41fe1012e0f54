"""Functions under `xarr.jit` that call themselves or one another."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr.errors import EndlessCallError


def endless(x: Any) -> Any:
    return jitted_endless(x) + 1


def anew(x: Any) -> Any:
    return xarr.jit(anew)(x) + 1


def growing(x: Any) -> Any:
    return jitted_growing(xarr.concatenate([x, x]))


def count_down(x: Any, count: int) -> Any:
    return x if count == 0 else jitted_counted(x, count - 1) * 2


jitted_endless, jitted_growing = xarr.jit(endless), xarr.jit(growing)
jitted_counted = xarr.jit(count_down, static_argnums=1)


@pytest.mark.parametrize("function", [endless, anew, growing], ids=lambda f: f.__name__)
def test_a_jitted_function_that_calls_itself_without_end(function: Any) -> None:
    for _ in range(2):
        with pytest.raises(EndlessCallError, match=f"{function.__name__} calls itself endlessly: .* calls"):
            xarr.jit(function)(np.ones(2))
    assert_same(xarr.jit(lambda x: x + 1)(np.ones(2)), np.full(2, 2.0))


def test_a_recursion_that_a_static_argument_ends() -> None:
    assert_same(jitted_counted(np.ones(2), 6), np.full(2, 64.0))


def nest(depth: int) -> Any:
    """Functions under jit that call one another, `depth` of them."""
    if depth == 1:
        return xarr.jit(lambda x: x + 1)
    inner = nest(depth - 1)
    return xarr.jit(lambda x: inner(x) + 1)


def test_jit_inside_of_jit() -> None:
    assert_same(nest(60)(np.ones(2)), np.full(2, 61.0))
    with pytest.raises(
        EndlessCallError, match=r"<lambda>: \d+ functions under jit call one another, .* Apply jit to"
    ):
        nest(200)(np.ones(2))
    assert_same(nest(3)(np.ones(2)), np.full(2, 4.0))


def test_recursion_outside_of_jitted_functions_is_pythons_own_error() -> None:
    def own(x: Any) -> Any:
        return own(x) + 1

    with pytest.raises(RecursionError) as caught:
        xarr.jit(own)(np.ones(2))
    assert not isinstance(caught.value, EndlessCallError)
