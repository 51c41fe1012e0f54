"""Small programs as one function of machine code, which takes and fills NumPy arrays."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr import lax
from xarr.base.host.memory import Lease
from xarr.compiler.plan.native_steps import is_small
from xarr.compiler.plan.program_plan import Plan, View

pytest.importorskip("llvmlite")

from xarr_numpy.compiled.cpython_abi import struct_offsets
from xarr_numpy.processor import PROCESSOR, Processor

pytestmark = [
    pytest.mark.usefixtures("on_numpy", "fused"),
    pytest.mark.skipif(not struct_offsets.works(), reason="machine code may not read array objects here"),
]

RNG = np.random.default_rng(23)


@pytest.fixture(autouse=True)
def _optimised_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Quick code is not called as a built-in function."""
    monkeypatch.setattr(Processor, "min_quick_lines", 10**9)


def whole(*shape: int) -> np.ndarray[Any, Any]:
    """Small whole numbers, whose sums are exact in any order."""
    return RNG.integers(-9, 9, shape).astype(np.float64)


def agree(function: Callable[..., Any], *arguments: Any, direct: bool = True) -> Any:
    """Compare calls, the first and those that are repeated, with separate operations; the compiled function."""
    with xarr.config(fusion="off"):
        wanted = xarr.jit(function)(*map(xarr.asarray, arguments))
    compiled = xarr.jit(function)
    for _ in range(3):
        inputs = [xarr.asarray(each).evaluate() for each in arguments]
        results = compiled(*inputs)
        one, other = (each if isinstance(each, tuple) else (each,) for each in (results, wanted))
        for result, value in zip(one, other, strict=True):
            assert_same(result, value)
            assert not result._node.value.flags.writeable
        for each, argument in zip(inputs, arguments, strict=True):
            assert_same(each, argument)
    assert ("if not F0(" in compiled.replay_text) == direct
    return compiled


def several_groups(x: Any, y: Any) -> Any:
    rows = xarr.cumsum(x, axis=0)[1:, ::-1]
    return xarr.sum(rows, axis=1) + xarr.sum(y), xarr.max(x, axis=0) * y


def test_several_groups_are_one_function() -> None:
    agree(several_groups, whole(4, 5), whole(5))
    agree(several_groups, whole(70, 60), whole(60))  # an arena that is not on the stack


def test_a_loop_between_groups() -> None:
    def function(x: Any, y: Any) -> Any:
        x = x - xarr.sum(x)
        x, y = lax.fori_loop(0, 3, lambda i, s: (s[0] % 32 + xarr.sum(s[1]), s[1] - s[0][0]), (x, y))
        return xarr.matmul(x, y[: len(x)]), lax.cond(x[0] > y[0], lambda: x, lambda: x * 2)

    agree(function, whole(4), whole(6))


def test_loops_that_hand_values_on_through_others() -> None:
    def inner(i: Any, state: Any) -> Any:
        x, y, z = state
        return lax.fori_loop(0, 2, lambda j, s: ((s[0] + xarr.sum(s[1])) % 64, s[1], s[2]), (x + y, y, z))

    agree(lambda x, y: lax.fori_loop(0, 3, inner, (x, y, x)), whole(4), whole(4))
    agree(lambda x, y: lax.fori_loop(0, 0, inner, (x, y, x))[::-1], whole(4), whole(4))


def test_views_with_strides() -> None:
    def function(x: Any) -> Any:
        every_other = lax.slice(x.reshape(-1), (1,), (8,), (3,))
        return every_other, xarr.sum(xarr.cumsum(every_other)) + x[::2, 0] - x[:, 1][::2]

    agree(function, whole(3, 3))


def test_a_loop_over_a_group_whose_output_lies_over_its_input() -> None:
    def shift(i: Any, state: Any) -> Any:
        x, y = state
        return x.at[1:-1, 1:-1].set((x[:-2, 1:-1] - x[2:, 1:-1] + y[1:-1, 1:-1]) % 64), y

    def function(count: Any, x: Any, y: Any) -> Any:
        first = lax.fori_loop(0, count, shift, (x * 2, y))[0]
        return lax.fori_loop(0, count, shift, (first, y))[0], xarr.sum(y)

    for count in (0, 1, 3):
        agree(function, np.array(count), whole(90, 60), whole(90, 60))


def test_results_that_are_arguments_or_twice_there() -> None:
    def function(x: Any, y: Any) -> Any:
        total = xarr.sum(xarr.cumsum(x) * 2) + y
        return y, total, total, x.reshape(2, 3), xarr.sum(total)

    agree(function, whole(6), whole(6))


def test_arguments_of_any_layout() -> None:
    x, y = whole(5, 5), whole(5)
    compiled = agree(several_groups, x, y)
    for other in (np.asfortranarray(x), np.broadcast_to(y, (5, 5)), x[::-1, ::-1]):
        with xarr.config(fusion="off"):
            wanted = several_groups(xarr.asarray(other), xarr.asarray(y))
        for result, value in zip(compiled(xarr.asarray(other), xarr.asarray(y)), wanted, strict=True):
            assert_same(result, value)


def test_results_share_no_memory() -> None:
    compiled = agree(several_groups, whole(4, 5), whole(5))
    x, y = xarr.asarray(whole(4, 5)).evaluate(), xarr.asarray(whole(5)).evaluate()
    results = [each._node.value for _ in range(2) for each in compiled(x, y)]
    for k, one in enumerate(results):
        assert one.flags.owndata
        assert not any(np.shares_memory(one, other) for other in (*results[:k], x._node.value, y._node.value))


def test_donated_arguments_are_left_to_python() -> None:
    compiled = xarr.jit(several_groups, donate_argnums=0)
    for _ in range(3):
        compiled((xarr.asarray(whole(4, 5)) * 1).evaluate(), xarr.asarray(whole(5)).evaluate())
    assert "if not F0(" not in compiled.replay_text


def pick(x: Any, index: Any) -> Any:
    total = xarr.sum(xarr.cumsum(x))
    return x[index] + total


def test_a_check_that_fails_names_the_line() -> None:
    x = whole(5)
    compiled = agree(pick, x, np.array([0, 4, -5]))
    index = xarr.asarray(np.array([0, 5, 1])).evaluate()
    errors = []
    for fusion in ("off", "auto"):
        with xarr.config(fusion=fusion), pytest.raises(IndexError) as caught:
            xarr.evaluate((xarr.jit(pick) if fusion == "off" else compiled)(xarr.asarray(x), index))
        errors.append((str(caught.value), getattr(caught.value, "__notes__", None)))
    assert "index 5 is out of bounds" in errors[0][0]
    assert errors[0] == errors[1]


def test_references_are_counted() -> None:
    compiled = agree(pick, whole(5), np.array([0, 4, -5]))
    x, good, bad = (
        xarr.asarray(each).evaluate() for each in (whole(5), np.array([1, 1, 1]), np.array([9, 9, 9]))
    )
    arrays = [each._node.value for each in (x, good, bad)]
    before = [sys.getrefcount(each) for each in (*arrays, True, False, None)]
    for _ in range(500):
        compiled(x, good)
        with pytest.raises(IndexError):
            compiled(x, bad)
    after = [sys.getrefcount(each) for each in (*arrays, True, False, None)]
    assert all(abs(one - other) < 100 for one, other in zip(before, after, strict=True))


def count_up(start: Any, stop: Any) -> Any:
    """The sum of three numbers that count until one comes to `stop`."""
    return lax.while_loop(lambda x: xarr.max(x) < stop, lambda x: x + 1, start)


@pytest.mark.skipif(os.name == "nt", reason="signals come otherwise there")
@pytest.mark.usefixtures("interruptible")
def test_a_repeated_call_without_end_is_interrupted() -> None:
    compiled = agree(count_up, np.zeros(3), np.array(9.0))
    zero, stop, never = (
        xarr.asarray(each).evaluate() for each in (np.zeros(3), np.array(9.0), np.array(np.inf))
    )
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        timer.start()
        compiled(zero, never)
    assert_same(compiled(zero, stop), np.full(3, 9.0))


def test_other_threads_run_during_a_long_loop() -> None:
    compiled = agree(count_up, np.zeros(3), np.array(9.0))
    zero, far = xarr.asarray(np.zeros(3)).evaluate(), xarr.asarray(np.array(2e7)).evaluate()
    seen: list[bool] = []
    thread = threading.Thread(target=lambda: seen.append(bool(compiled(zero, far)[0] == 2e7)))
    thread.start()
    rounds = 0
    while thread.is_alive():
        time.sleep(0)
        rounds += 1
    assert seen == [True]
    assert rounds > 10


def test_an_argument_stays_while_a_call_reads_it() -> None:
    """Another thread that donates the argument meanwhile gets no memory that is being read."""
    compiled = agree(count_up, np.zeros(3), np.array(9.0))
    taking = xarr.jit(lambda x: x * 0 - 5, donate_argnums=0)
    start, far = (xarr.zeros(3) * 1).evaluate(), xarr.asarray(np.array(2e7)).evaluate()
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(compiled(start, far)))
    thread.start()
    time.sleep(0.01)
    taking(start)
    thread.join()
    assert_same(results[0], np.full(3, 2e7))


def test_a_long_sort_keeps_a_program_in_python() -> None:
    def sorts(x: Any) -> Any:
        return xarr.sort(xarr.cumsum(x)) + xarr.sum(x)

    def in_a_loop(x: Any) -> Any:
        return lax.fori_loop(0, 3, lambda i, y: sorts(y) % 64, x)

    for function in (sorts, in_a_loop):
        agree(function, whole(1000), direct=False)
        agree(function, whole(6))
    text = str(xarr.jit(sorts).lower("f64[1000]").stage("plan"))
    (line,) = [line for line in text.splitlines() if "library sort" in line]
    assert line.endswith("; in Python: has no loop program")
    text = str(xarr.jit(in_a_loop).lower("f64[1000]").stage("plan"))
    (line,) = [line for line in text.splitlines() if "library sort" in line]
    assert line.endswith("; called back in Python: has no loop program")
    assert "in Python, since" not in text
    assert "in Python" not in str(xarr.jit(several_groups).lower("f64[4,5]", "f64[5]").stage("plan"))


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("shape", [(4, 4, 1), (2, 3, 5, 2), (1, 1, 3)])
def test_small_systems_are_solved_by_lapack_to_the_bits_of_numpy(dtype: str, shape: tuple[int, ...]) -> None:
    def solve(a: Any, b: Any) -> Any:
        return xarr.linalg.solve(a, b)

    *batch, n, columns = shape
    a, b = (RNG.normal(size=(*batch, n, size)).astype(dtype) for size in (n, columns))
    if dtype == "complex128":
        a = a + 1j * RNG.normal(size=a.shape)
    text = str(xarr.jit(solve).lower(xarr.asarray(a), xarr.asarray(b)).stage("plan"))
    assert "library solve" in text and "Python" not in text
    for _ in range(2):
        assert_same(xarr.jit(solve)(a, b), np.linalg.solve(a, b))
    a[..., -1, :] = 0
    with pytest.raises(xarr.linalg.LinAlgError, match=r"Singular matrix"):
        xarr.evaluate(xarr.jit(solve)(a, b))


def test_singular_systems_have_no_solution() -> None:
    def function(a: Any, b: Any) -> Any:
        x, singular = lax.lapack.solve(a, b)
        return x * 2, singular

    a, b = RNG.normal(size=(4, 3, 3)), RNG.normal(size=(4, 3, 2))
    a[2] = 1
    x, singular = xarr.jit(function)(a, b)
    assert_same(singular, np.array([False, False, True, False]))
    assert np.isnan(np.asarray(x)[2]).all()
    assert_same(np.asarray(x)[[0, 1, 3]], np.linalg.solve(a[[0, 1, 3]], b[[0, 1, 3]]) * 2)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("shape", [(4, 4), (2, 3, 7, 3), (3, 5), (1, 1), (40, 33)])
def test_small_factors_are_those_of_numpy(dtype: str, shape: tuple[int, ...]) -> None:
    def factor(a: Any) -> Any:
        return xarr.linalg.qr(a)

    a = RNG.normal(size=shape).astype(dtype)
    if dtype == "complex128":
        a = a + 1j * RNG.normal(size=shape)
    text = str(xarr.jit(factor).lower(xarr.asarray(a)).stage("plan"))
    assert "library geqrf" in text and ("Python" not in text or shape == (40, 33))
    with xarr.config(fusion="off"):
        alone = factor(xarr.asarray(a))
    for wanted in (np.linalg.qr(a), alone):
        for one, other in zip(xarr.jit(factor)(a), wanted, strict=True):
            assert_same(one, np.asarray(other))


DTYPES = ["float32", "float64", "complex64", "complex128"]


def draw(dtype: str, *shape: int) -> np.ndarray[Any, Any]:
    numbers = RNG.normal(size=shape)
    return (numbers + 1j * RNG.normal(size=shape) if "complex" in dtype else numbers).astype(dtype)


def alike(function: Callable[..., Any], *arguments: Any) -> Any:
    """The results of a function that is machine code alone, which have the bits of separate operations."""
    assert "Python" not in text_of(function, *arguments, stage="plan")
    with xarr.config(fusion="off"):
        wanted = xarr.jit(function)(*map(xarr.asarray, arguments))
    results = xarr.jit(function)(*arguments)
    for one, other in zip(results, wanted, strict=True):
        assert_same(one, np.asarray(other))
    return results


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", [(), (3,), (2, 1)])
def test_lapack_factors_and_solves_in_machine_code(dtype: str, batch: tuple[int, ...]) -> None:
    for size in (1, 4):
        a = draw(dtype, *batch, size, size)
        definite = a @ a.swapaxes(-1, -2).conj() + np.eye(size, dtype=dtype)
        spoilt = definite.copy()
        spoilt.reshape(-1, size, size)[-1, -1, -1] = -1
        for lower in (True, False):

            def factor(x: Any, lower: bool = lower) -> Any:
                return (lax.linalg.cholesky_of_triangle(x, lower) * 2,)

            alike(factor, definite)
            (result,) = alike(factor, spoilt)
            assert np.isnan(np.asarray(result).reshape(-1, size, size)[-1]).all()
        alike(lambda x: (*lax.linalg.lu(x)[:2], x * 2), a)
        alike(lambda x: (*lax.linalg.lu(x[..., :1])[:2], x * 2), a)
        alike(lambda x: (*lax.linalg.lu(x[..., :1, :])[:2], x * 2), np.zeros_like(a))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("unit", [True, False])
def test_triangular_systems_are_solved_in_machine_code(dtype: str, left: bool, unit: bool) -> None:
    a = draw(dtype, 2, 4, 4) + 3 * np.eye(4, dtype=dtype)
    b = draw(dtype, 2, 4, 3) if left else draw(dtype, 2, 3, 4)
    for lower in (True, False):
        for transposed, conjugate in ((False, False), (True, False), (True, True)):

            def solve(
                a: Any,
                b: Any,
                lower: bool = lower,
                transposed: bool = transposed,
                conjugate: bool = conjugate,
            ) -> Any:
                x = lax.linalg.triangular_solve(
                    *(a, b),
                    left_side=left,
                    lower=lower,
                    transpose_a=transposed,
                    conjugate_a=conjugate,
                    unit_diagonal=unit,
                )
                return x * 2, b + 1

            alike(solve, a, b)


def test_arrays_without_elements_keep_no_program_in_python() -> None:
    def function(x: Any, y: Any) -> Any:
        return xarr.cumsum(lax.concatenate([x, lax.add(y, y)], 0) * 2, axis=0), xarr.sum(x, axis=0)

    alike(function, whole(5, 3), np.zeros((0, 3)))


def test_programs_of_many_small_steps_are_one_function() -> None:
    def function(x: Any) -> Any:
        for _ in range(150):
            x = xarr.cumsum(x, axis=0)[::-1] % 7
        return (x,)

    alike(function, whole(5))


def test_loops_factor_matrices_in_machine_code() -> None:
    def iterate(a: Any) -> Any:
        def step(_: Any, state: Any) -> Any:
            q, r = xarr.linalg.qr(state[0])
            return r @ q, state[1] @ q

        return lax.fori_loop(0, 3, step, (a, xarr.eye(4)))

    a = RNG.normal(size=(4, 4))
    assert "Python" not in str(xarr.jit(iterate).lower(xarr.asarray(a)).stage("plan"))
    rotated, product = np.asarray(a), np.eye(4)
    for _ in range(3):
        q, r = np.linalg.qr(rotated)
        rotated, product = r @ q, product @ q
    for one, other in zip(xarr.jit(iterate)(a), (rotated, product), strict=True):
        np.testing.assert_allclose(np.asarray(one), other, rtol=1e-11, atol=1e-11)


def test_factors_are_python_s_without_the_routines(monkeypatch: pytest.MonkeyPatch) -> None:
    from xarr_numpy import blas

    monkeypatch.setattr(blas, "routine", lambda name: None)
    a = RNG.normal(size=(4, 3))
    assert "in Python" in str(xarr.jit(lambda a: xarr.linalg.qr(a)).lower("f64[4,3]").stage("plan"))
    q, r = map(np.asarray, xarr.jit(lambda a: xarr.linalg.qr(a))(a))
    np.testing.assert_allclose(q @ r, a, rtol=1e-13, atol=1e-14)


def running(rows: Any, reverse: bool = False) -> Any:
    def step(before: Any, row: Any) -> Any:
        row = xarr.minimum(row, before + 1)
        return row, row

    return lax.scan(step, xarr.zeros(rows.shape[1]), rows, reverse=reverse)[1]


def text_of(function: Callable[..., Any], *arguments: Any, stage: str = "program") -> str:
    return str(xarr.jit(function).lower(*map(xarr.asarray, arguments)).stage(stage))


def test_scans_of_megabytes_one_after_the_other_are_one_function() -> None:
    x = whole(1200, 300)
    compiled = agree(lambda x: running(running(x), reverse=True), x, direct=False)
    assert "machine code of all steps" in text_of(compiled, x)
    # The memory of each scan is there when that begins, and the first result is gone before the last.
    lines = text_of(compiled, x, stage="plan").splitlines()
    steps = ["allocate" in line for line in lines if "allocate" in line or "launch loop" in line]
    assert steps == [True, False, True, False]


def test_transposed_arrays_are_copied_through_tiles_for_who_reads_them() -> None:
    for shape in ((300, 400), (200, 177), (40, 30)):
        x = whole(*shape)
        compiled = agree(lambda x: running(x.T), x, direct=shape == (40, 30))
        assert ("tile0" in text_of(compiled, x)) == (shape != (40, 30))


def test_results_that_are_views_of_megabytes_are_no_copies() -> None:
    x = whole(1200, 300)
    compiled = agree(lambda x: running(running(x)).T, x, direct=False)
    assert "in Python: shows 2.9 MB without a copy" in text_of(compiled, x, stage="plan")


def test_large_results_lie_in_memory_that_is_used_again() -> None:
    x = whole(100, 300)
    compiled = agree(running, x)
    result = compiled(xarr.asarray(x).evaluate())
    base = result._node.value
    while isinstance(base.base, np.ndarray):
        base = base.base
    assert isinstance(base.base, Lease)


def test_views_are_no_steps_that_take_long_to_compile() -> None:
    plan = xarr.jit(lambda x, y: xarr.cumsum(x.T @ y, axis=0)).lower("f64[5,4]", "f64[5,3]").stage("plan")
    assert isinstance(plan, Plan)
    steps = [step for step in plan.steps if not isinstance(step, View)]
    assert 1 < len(steps) < len(plan.steps)
    for most in (len(steps), len(steps) - 1):
        assert is_small(plan, PROCESSOR.replace(max_native_steps=most)) == (most == len(steps))
