"""Loops that look up elements by indices which may be out of bounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr import lax
from xarr.errors import IndexingError

pytest.importorskip("llvmlite")

Loop = Callable[[Any, Any], Any]

X = np.array([3.0, 1.0, 4.0, 1.0, 5.0])


def reads(x: Any, n: Any) -> Any:
    return lax.fori_loop(0, 40, lambda i, s: s * 0.5 + x[(i * 7) % n], 0.0)


def reads_from_the_end(x: Any, n: Any) -> Any:
    return lax.fori_loop(0, 40, lambda i, s: s * 0.5 + x[i % n - 3], 0.0)


def reads_narrow(x: Any, n: Any) -> Any:
    def step(i: Any, s: Any) -> Any:
        return s * 0.5 + x[lax.convert_element_type(i % n, "uint8")]

    return lax.fori_loop(0, 40, step, 0.0)


def reads_for_points(x: Any, n: Any) -> Any:
    return lax.fori_loop(0, 40, lambda i, s: s * 0.5 + x[i % n], lax.full((7,), 1.0))


def reads_rows(x: Any, n: Any) -> Any:
    table = lax.reshape(lax.concatenate([x, x, x], 0), (5, 3))
    return lax.fori_loop(0, 40, lambda i, s: s * 0.5 + table[i % n], lax.full((3,), 1.0))


def writes(x: Any, n: Any) -> Any:
    return lax.fori_loop(0, 40, lambda i, s: s.at[(i * 7) % n].set(s[i % 3] * 0.5), x)


def carries_one_value(x: Any, n: Any) -> Any:
    steps = lax.convert_element_type(x, "int64")
    return lax.while_loop(lambda i: i < 30, lambda i: i + steps[i % n], np.int64(0))


LOOPS: dict[str, Loop] = {
    loop.__name__: loop
    for loop in (
        *(reads, reads_from_the_end, reads_narrow, reads_for_points, reads_rows),
        *(writes, carries_one_value),
    )
}


def outcome(function: Loop, x: Any, n: int) -> Any:
    return np.asarray(function(xarr.asarray(x), xarr.asarray(np.int64(n))))


def interpret(loop: Loop, n: int) -> Any:
    with xarr.config(fusion="off"):
        return outcome(loop, X, n)


@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.parametrize("is_jitted", [True, False], ids=["jit", "eager"])
def test_indices_in_bounds_change_nothing(name: str, is_jitted: bool) -> None:
    loop = LOOPS[name]
    function = xarr.jit(loop) if is_jitted else loop
    for n in (5, 3):
        assert_same(outcome(function, X, n), interpret(loop, n))


@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.parametrize("is_jitted", [True, False], ids=["jit", "eager"])
def test_an_index_out_of_bounds_is_the_same_error(name: str, is_jitted: bool) -> None:
    loop = LOOPS[name]
    function = xarr.jit(loop) if is_jitted else loop
    with pytest.raises(IndexingError) as wanted:
        interpret(loop, 11)
    with xarr.config(fusion="compiled"), pytest.raises(IndexingError) as error:
        outcome(function, X, 11)
    assert str(error.value) == str(wanted.value)
    (note,) = error.value.__notes__
    assert "while computing while_loop" in note and "test_bounds_check_hoisting.py:" in note


@pytest.mark.parametrize(
    "name", ["reads", "reads_from_the_end", "reads_narrow", "reads_for_points", "writes"]
)
def test_such_loops_are_native(name: str) -> None:
    with xarr.config(fusion="compiled"):
        program = str(xarr.jit(LOOPS[name]).lower("f64[5]", "s64[]").stage("program"))
    assert "native loop" in program and "custom_call" not in program


def test_the_first_step_that_fails_is_the_one_that_is_named() -> None:
    def loop(x: Any, n: Any) -> Any:
        return lax.fori_loop(0, 40, lambda i, s: s + x[i * n], 0.0)

    with pytest.raises(IndexingError, match="index 6 is out of bounds for axis 0 with size 5"):
        outcome(xarr.jit(loop), X, 3)
    with pytest.raises(IndexingError, match="index -6 is out of bounds for axis 0 with size 5"):
        outcome(xarr.jit(loop), X, -2)


def test_of_several_indices_the_one_that_fails_first_is_named() -> None:
    def loop(x: Any, n: Any) -> Any:
        return lax.fori_loop(0, 40, lambda i, s: s + x[i + n] * x[i * n], 0.0)

    for n in (1, 2, 4):
        with pytest.raises(IndexingError) as wanted:
            interpret(loop, n)
        with pytest.raises(IndexingError) as error:
            outcome(xarr.jit(loop), X, n)
        assert str(error.value) == str(wanted.value)


def test_a_loop_of_no_steps_looks_at_no_index() -> None:
    def loop(x: Any, n: Any) -> Any:
        return lax.while_loop(lambda s: s < 0, lambda s: s + x[n], 0.5)

    assert outcome(xarr.jit(loop), X, 100) == 0.5


def test_long_loops_go_on_in_machine_code() -> None:
    def loop(x: Any, n: Any) -> Any:
        def step(state: Any) -> Any:
            i, s = state
            return i + 1, s * 0.5 + x[i % n]

        return lax.while_loop(lambda state: state[0] < n * 4000, step, (np.int64(0), 0.0))[1]

    assert_same(outcome(loop, X, 5), outcome(xarr.jit(loop), X, 5))

    def leaves(x: Any, n: Any) -> Any:
        return lax.while_loop(
            lambda i: i >= 0, lambda i: i + 1 + lax.convert_element_type(x[i // n], "int64") * 0, n
        )

    with pytest.raises(IndexingError, match="index 5 is out of bounds for axis 0 with size 5"):
        outcome(leaves, X, 2000)
