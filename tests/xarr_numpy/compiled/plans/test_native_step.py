"""Loops of several groups, products, updates, branches and loops: their kernels, in one function of machine code."""

from __future__ import annotations

import gc
import os
import signal
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr import lax
from xarr.lax.lapack import check
from xarr_numpy.compiled.cpython_abi import struct_offsets
from xarr_numpy.processor import PROCESSOR

pytest.importorskip("llvmlite")

RNG = np.random.default_rng(19)


def whole(*shape: int) -> np.ndarray[Any, Any]:
    """Small whole numbers, whose sums are exact in any order."""
    return RNG.integers(-9, 9, shape).astype(np.float64)


def is_native(function: Callable[..., Any], *arguments: Any) -> bool:
    """Whether no loop of a function is stepped in Python."""
    with xarr.config(fusion="compiled"):
        text = str(xarr.jit(function).lower(*map(xarr.asarray, arguments)).stage("program"))
    return "while_loop_then(" not in text


def agree(function: Callable[..., Any], *arguments: Any, native: bool = True, **options: Any) -> None:
    """Compare with separate operations, bit by bit, twice."""
    assert is_native(function, *arguments) == native
    with xarr.config(fusion="off"):
        wanted = xarr.jit(function)(*map(xarr.asarray, arguments))
    with xarr.config(fusion="compiled"):
        compiled = xarr.jit(function, **options)
        for _ in range(2):
            inputs = [(xarr.asarray(each) * 1).evaluate() for each in arguments]
            results = compiled(*inputs)
            one, other = (each if isinstance(each, tuple) else (each,) for each in (results, wanted))
            for result, value in zip(one, other, strict=True):
                assert_same(result, value)
            if not options:
                for each, argument in zip(inputs, arguments, strict=True):
                    assert_same(each, argument)


def small(x: Any) -> Any:
    return lax.rem(x, 64.0)


def repeat(step: Callable[..., Any], steps: int = 5) -> Callable[..., Any]:
    return lambda *state: lax.fori_loop(0, steps, lambda i, s: step(i, *s), state)


def rows(i: Any, x: Any, y: Any) -> Any:
    """Each row of the sum of its neighbours, of which one is new."""
    above, below = (lax.dynamic_slice(x, (i + k, 0), (1, x.shape[1])) for k in (0, 2))
    return lax.dynamic_update_slice(x, small(above + below - y[i]), (i + 1, 0)), y


def sums(i: Any, x: Any, y: Any) -> Any:
    """A sum of all of one array, which changes the other one."""
    total = xarr.sum(x)
    return small(x + y), small(y - xarr.sum(small(y + total), axis=0))


def products(i: Any, x: Any, y: Any) -> Any:
    return small(xarr.matmul(x, y)), small(xarr.matmul(y.T, x[0])[:, None] + y)


@pytest.mark.parametrize("steps", [0, 1, 2, 5])
@pytest.mark.parametrize("step", [rows, sums, products])
def test_the_results_are_those_of_separate_operations(step: Callable[..., Any], steps: int) -> None:
    agree(repeat(step, steps), whole(7, 7), whole(7, 7))


def test_values_that_change_their_names_are_copied() -> None:
    agree(repeat(lambda i, x, y, z: (y, small(x + xarr.sum(z)), x)), whole(6), whole(6), whole(6))
    agree(repeat(lambda i, x, y: (y, x), 3), whole(6), whole(6))
    agree(repeat(lambda i, x, y: (x[::-1], small(y + xarr.sum(x))), 3), whole(6), whole(6))
    agree(repeat(lambda i, x, y: (y[1:3], small(y + xarr.sum(x))), 3), whole(2), whole(6))


def views(i: Any, x: Any, y: Any) -> Any:
    """Views of an array that is written over, and of one that was."""
    inner = lax.dynamic_update_slice(x, small(x[:3, 1:4] + xarr.sum(y)), (i, 1))
    return lax.dynamic_update_slice(inner, inner[2:5, :2].T[:, :3], (1, 2)), small(y + inner.reshape(-1)[3:8])


def test_views_show_what_they_showed() -> None:
    agree(repeat(views), whole(6, 6), whole(5))


def test_updates_read_the_old_value_first() -> None:
    def step(i: Any, x: Any, y: Any) -> Any:
        return lax.dynamic_update_slice(x, x[1:], (0,)), small(y + xarr.sum(x))

    agree(repeat(step), whole(9), whole(3))


def test_scatters_write_in_place_and_keep_the_argument() -> None:
    def step(i: Any, x: Any, y: Any) -> Any:
        indices = lax.clamp(0, xarr.astype(xarr.abs(y), "int64"), 8)
        return small(x.at[indices].add(y, mode="clip")), small(y * 2 - xarr.sum(x))

    agree(repeat(step), whole(9), whole(4))


def nest_loops(depth: int) -> Callable[..., Any]:
    def step(i: Any, x: Any, y: Any) -> Any:
        x = small(x + xarr.sum(y))
        if depth:
            return lax.fori_loop(0, i, lambda j, s: nest_loops(depth - 1)(j, *s), (x, y))
        return x, small(xarr.cumsum(y) - x[0])

    return step


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_loops_inside_of_loops(depth: int) -> None:
    agree(repeat(nest_loops(depth), 4), whole(4), whole(6))


def running_totals(i: Any, x: Any, y: Any) -> Any:
    """A loop over points that fills a table, behind a sum."""
    last, table = lax.scan(
        lambda c, row: (small(c + row), c), y, xarr.broadcast_to(small(x + xarr.sum(y)), (4, 5))
    )
    return small(x + xarr.sum(table)), last


def until_small(i: Any, x: Any, y: Any) -> Any:
    """A loop whose points end one after the other."""
    z = lax.while_loop(lambda z: (z > 3).any(), lambda z: xarr.where(z > 3, z - 2, z), xarr.abs(x + i))
    return small(z * 3 + xarr.sum(y)), small(y - xarr.sum(z))


def repeated_group(i: Any, x: Any, y: Any) -> Any:
    """A loop over one group, behind a sum."""
    x, y = small(x + xarr.sum(y)), small(y + i)
    return lax.fori_loop(0, 3, lambda j, z: small(z - xarr.sum(z) + j), x), y


@pytest.mark.parametrize("step", [running_totals, until_small, repeated_group])
@pytest.mark.parametrize("steps", [0, 1, 3])
def test_inner_loops_with_machine_code_of_their_own(step: Callable[..., Any], steps: int) -> None:
    agree(repeat(step, steps), whole(5), whole(5))


def pick(i: Any, x: Any, y: Any) -> Any:
    """Elements at indices that the loop computes."""
    indices = xarr.astype(lax.rem(y + i, 5.0), "int64")
    return small(x + x[indices] + x[xarr.astype(lax.rem(x[0] + i, 3.0), "int64")]), small(y + xarr.sum(x))


def test_indices_are_checked() -> None:
    agree(repeat(pick), whole(5), whole(5))

    def read_outside(i: Any, x: Any, y: Any) -> Any:
        return small(x[xarr.astype(y + i, "int64")] + xarr.sum(x)), y

    agree(repeat(read_outside, 3), whole(5), np.array([0.0, -5, 2, -1, 1]))
    assert is_native(repeat(read_outside, 4), whole(5), whole(5))
    errors = []
    for fusion in ("off", "compiled"):
        with xarr.config(fusion=fusion), pytest.raises(IndexError) as caught:
            xarr.evaluate(*xarr.jit(repeat(read_outside, 4))(whole(5), np.array([0.0, -5, 2, -1, 1])))
        errors.append(str(caught.value))
    assert "index 5 is out of bounds for axis 0 with size 5" in errors[0]
    assert errors[0] == errors[1]


def test_checks_of_values() -> None:
    def step(i: Any, x: Any, y: Any) -> Any:
        y = check(y, (xarr.sum(x) < 9) | (y > i), "wanted more")
        return x + xarr.sum(y), y

    agree(repeat(step, 2), np.zeros(3), np.full(3, 5.0))
    with xarr.config(fusion="compiled"), pytest.raises(xarr.linalg.LinAlgError, match=r"wanted more.*2"):
        xarr.evaluate(*xarr.jit(repeat(step, 9))(np.ones(3), np.array([9.0, 9.0, 2.0])))


def test_inner_loops_of_a_length_that_data_says() -> None:
    def step(i: Any, x: Any, y: Any) -> Any:
        def going(state: Any) -> Any:
            return (xarr.sum(state[0]) < 100) & (state[1] < 9)

        z, count = lax.while_loop(going, lambda s: (s[0] + xarr.abs(y), s[1] + 1), (xarr.abs(x), 0 * i))
        return small(z), small(y + count)

    agree(repeat(step), whole(4), whole(4))


def test_branches() -> None:
    def step(i: Any, x: Any, y: Any) -> Any:
        x = lax.cond(xarr.sum(x) > 0, lambda: small(x - xarr.sum(y)), lambda: x)
        y = lax.switch(i, [lambda: y, lambda: small(y + xarr.sum(x)), lambda: xarr.flip(x)])
        return x, y

    agree(repeat(step, 6), whole(5), whole(5))


def test_functions_that_are_called() -> None:
    @xarr.jit
    def call(x: Any, y: Any) -> Any:
        return y, small(x + xarr.sum(y))

    agree(repeat(lambda i, x, y: call(*call(x, y))), whole(5), whole(5))


def test_a_condition_that_is_not_a_number_ends_the_loop() -> None:
    def function(x: Any) -> Any:
        return lax.while_loop(lambda s: xarr.sum(s[0]) < 10, lambda s: (s[0] / s[1], xarr.sqrt(s[1] - 1)), x)

    with xarr.config(fusion="compiled"):
        x, y = xarr.jit(lambda a, b: function((a, b)))(xarr.asarray([2.0, 1.0]), xarr.asarray([1.0, 0.5]))
    assert np.isnan(np.asarray(x)).any()
    assert np.isnan(np.asarray(y)).any()


def test_arrays_without_elements() -> None:
    def step(i: Any, x: Any, empty: Any) -> Any:
        return small(x + xarr.sum(x)), lax.dynamic_update_slice(empty, empty[:1], (i, 0))

    agree(repeat(step), whole(4), whole(3, 0))


def test_broadcast_and_transposed_arguments() -> None:
    def function(x: Any, y: Any) -> Any:
        return repeat(sums, 3)(xarr.broadcast_to(x, (5, 5)), y.T)

    agree(function, whole(5), whole(5, 5))


def test_donated_arguments_are_used() -> None:
    agree(repeat(rows), whole(90, 90), whole(90, 90), donate_argnums=(0,))


def test_arrays_that_threads_share() -> None:
    x = whole(700, 700)
    agree(repeat(sums, 3), x, x)


def test_functions_of_python_keep_the_loop_in_python() -> None:
    def step(i: Any, x: Any, y: Any) -> Any:
        called = xarr.pure_callback(lambda z: np.asarray(z) + 1, y, y)
        return small(x + xarr.sum(y)), small(called)

    agree(repeat(step), whole(3), whole(3), native=False)


def test_a_bar_counts_the_iterations(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from xarr.base import progress

    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    monkeypatch.setattr(progress, "_LOG", 0.0)

    def function(x: Any, y: Any) -> Any:
        return lax.fori_loop(0, 1234, lambda i, s: sums(i, *s), (x, y), progress="summing")

    agree(function, whole(3, 3), whole(3, 3))
    assert "1,234/1,234" in capsys.readouterr().err


def test_chunks_join(monkeypatch: pytest.MonkeyPatch) -> None:
    from xarr_numpy.compiled.plans import native_step

    monkeypatch.setattr(native_step, "MOST_STEPS", 1)
    monkeypatch.setattr(native_step, "adapt_chunk", lambda most, seconds: most % 3 + 1)
    for steps in range(6):
        agree(repeat(sums, steps), whole(3, 3), whole(3, 3))


@pytest.mark.parametrize("step", [rows, sums, products, pick, until_small])
def test_a_loop_that_python_began_goes_on_in_machine_code(
    monkeypatch: pytest.MonkeyPatch, step: Callable[..., Any]
) -> None:
    from xarr_numpy import engine
    from xarr_numpy.ops import control

    monkeypatch.setattr(control, "PROCESSOR", PROCESSOR.replace(max_python_iterations=2))
    made, compile_loop = [], engine.native_loop_if_any

    def keep(op: Any) -> Any:
        made.append(compile_loop(op))
        return made[-1]

    monkeypatch.setattr(engine, "native_loop_if_any", keep)

    def function(steps: Any, x: Any, y: Any) -> Any:
        state = lax.while_loop(
            lambda s: s[0] < steps,
            lambda s: (s[0] + 1, *step(lax.min(s[0], 4), s[1], s[2])),
            (0 * steps, x, y),
        )
        return state[1:]

    shape = (7, 7) if step in (rows, products, sums) else (5,)
    x, y = whole(*shape), whole(*shape)
    for steps in (0, 1, 2, 3, 7):
        results = []
        for fusion in ("off", "auto"):
            with xarr.config(fusion=fusion):
                arguments = [xarr.asarray(each) for each in (steps, x, y)]
                results.append([np.asarray(each) for each in function(*arguments)])
        for one, other in zip(*results, strict=True):
            assert_same(one, other)
    assert step is rows or made  # rows are points
    assert all(each is not None for each in made)


def without_end(x: Any, y: Any) -> Any:
    return lax.while_loop(lambda s: xarr.sum(s[0]) < 100, lambda s: sums(0, *s), (x, y))


def inner_without_end(x: Any, y: Any) -> Any:
    return repeat(lambda i, x, y: without_end(xarr.sum(y) * 0 + x, y))(x, y)


def pad_rows(x: Any) -> Any:
    """`x` with rows behind it, whose columns a library sorts: loops sort short ones."""
    return xarr.concatenate([x, xarr.full((200, *x.shape[1:]), 1e3)])


def long_sort(x: Any) -> Any:
    return xarr.sort(pad_rows(x), axis=0)[: x.shape[0]]


def sorts_without_end(x: Any, y: Any) -> Any:
    return lax.while_loop(
        lambda s: xarr.sum(s[0]) < 100, lambda s: (long_sort(small(s[0])), s[1] + xarr.sum(s[0])), (x, y)
    )


@pytest.mark.skipif(os.name == "nt", reason="signals come otherwise there")
@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("function", [without_end, inner_without_end, sorts_without_end])
def test_a_loop_without_end_is_interrupted(function: Callable[..., Any]) -> None:
    zero = xarr.zeros((3, 3)).evaluate()
    assert is_native(function, zero, zero)
    with xarr.config(fusion="compiled"):
        compiled = xarr.jit(function)
        timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):
            timer.start()
            xarr.evaluate(*compiled(zero, zero))
        full = compiled(xarr.full((3, 3), 100.0), zero)
    assert_same(full[0], np.full((3, 3), 100.0))


def reasons(function: Callable[..., Any], *arguments: Any) -> list[str]:
    """The remarks of the stage `plan` on steps that Python computes."""
    with xarr.config(fusion="compiled"):
        text = str(xarr.jit(function).lower(*map(xarr.asarray, arguments)).stage("plan"))
    return [line.split("; ")[-1] for line in text.splitlines() if "in Python" in line]


def test_large_products_are_called_back(monkeypatch: pytest.MonkeyPatch) -> None:
    from xarr_numpy.compiled.plans import matrix_products, plan_code

    assert not reasons(repeat(products), whole(7, 7), whole(7, 7))
    limits = PROCESSOR.replace(max_native_products=7**3 - 1, max_native_lane_products=7**3 - 1)
    monkeypatch.setattr(plan_code, "PROCESSOR", limits)
    monkeypatch.setattr(matrix_products, "loop_of", lambda dtype: None)
    program = repeat(lambda i, x, y: products(i, x, y))
    agree(program, whole(7, 7), whole(7, 7))
    assert reasons(program, whole(7, 7), whole(7, 7)) == ["called back in Python: is done faster by a BLAS"]


def test_products_in_lanes_may_be_larger(monkeypatch: pytest.MonkeyPatch) -> None:
    from xarr_numpy.compiled.plans import matrix_products, plan_code

    def multiply_transposed(i: Any, x: Any, y: Any) -> Any:
        return small(lax.dot_general(x, y, (((0,), (1,)), ((), ())))), y

    monkeypatch.setattr(plan_code, "PROCESSOR", PROCESSOR.replace(max_native_products=7**3 - 1))
    monkeypatch.setattr(matrix_products, "loop_of", lambda dtype: None)
    assert not reasons(repeat(products), whole(7, 7), whole(7, 7))
    assert reasons(repeat(multiply_transposed), whole(7, 7), whole(7, 7))


def well_posed(x: Any) -> Any:
    return x @ x.T + 9 * xarr.eye(x.shape[0])


def in_half(x: Any) -> Any:
    """Cholesky factors that NumPy computes in double precision, and Python converts."""
    return lax.linalg.cholesky(well_posed(x).astype("float16")).astype("float64")


LIBRARY: dict[str, Callable[[Any, Any, Any], Any]] = {
    "sort": lambda i, x, y: (small(long_sort(x) - xarr.sum(y)), small(y + i)),
    "cholesky": lambda i, x, y: (in_half(x), small(y + 1)),
    "inside of a branch": lambda i, x, y: (
        lax.cond(i % 2 == 0, lambda: long_sort(x), lambda: small(x + xarr.sum(y))),
        small(y + xarr.sum(x)),
    ),
    "inside of a loop": lambda i, x, y: (
        lax.fori_loop(0, i, lambda j, s: long_sort(small(s + xarr.sum(s) + j)), x),
        small(y - x),
    ),
}


@pytest.mark.parametrize("steps", [0, 1, 4])
@pytest.mark.parametrize("step", LIBRARY.values(), ids=LIBRARY)
def test_what_has_no_machine_code_is_called_back(step: Callable[..., Any], steps: int) -> None:
    arguments = whole(5, 5), whole(5, 5)
    with xarr.config(fusion="off"):
        wanted = xarr.jit(repeat(step, steps))(*arguments)
    assert is_native(repeat(step, steps), *arguments)
    with xarr.config(fusion="compiled"):
        compiled = xarr.jit(repeat(step, steps))
        for _ in range(2):
            for one, other in zip(compiled(*arguments), wanted, strict=True):
                np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-11, atol=1e-11)
    assert all(each.startswith("called back in Python: ") for each in reasons(repeat(step, 4), *arguments))
    assert reasons(repeat(step, 4), *arguments)


def test_systems_are_solved_in_machine_code() -> None:
    def step(i: Any, x: Any, y: Any) -> Any:
        return small(xarr.linalg.solve(well_posed(x), y)), small(y + xarr.sum(x))

    arguments = whole(5, 5), whole(5, 5)
    assert is_native(repeat(step), *arguments)
    assert bool(reasons(repeat(step), *arguments)) != struct_offsets.works()  # by an inner loop of NumPy's
    with xarr.config(fusion="off"):
        wanted = xarr.jit(repeat(step))(*arguments)
    with xarr.config(fusion="compiled"):
        results = xarr.jit(repeat(step))(*arguments)
        for one, other in zip(results, wanted, strict=True):
            np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-11, atol=1e-11)
        with pytest.raises(xarr.linalg.LinAlgError, match=r"Singular matrix"):
            xarr.evaluate(
                *xarr.jit(repeat(lambda i, x, y: (xarr.linalg.solve(x, y), small(y - xarr.sum(x)))))(
                    np.ones((5, 5)), whole(5, 5)
                )
            )


@pytest.mark.parametrize("is_long", [False, True])
def test_threads_share_the_points_of_loops_in_machine_code(
    is_long: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from xarr_numpy.compiled.plans import point_loops
    from xarr_numpy.compiled.plans.function_code import FunctionCode
    from xarr_numpy.compiled.threads import phases

    limits = PROCESSOR.replace(min_waking_nanoseconds=1, min_shared_nanoseconds=1, min_range_nanoseconds=1)
    for module in (point_loops, phases):
        monkeypatch.setattr(module, "PROCESSOR", limits)
    if is_long:  # several chunks of steps
        monkeypatch.setattr(point_loops, "PROCESSOR", limits.replace(max_unpolled_nanoseconds=3000))
    shared, share = [], FunctionCode.share

    def note(self: FunctionCode, name: str, *arguments: Any, **options: Any) -> None:
        shared.append(name)
        share(self, name, *arguments, **options)

    monkeypatch.setattr(FunctionCode, "share", note)

    def step(i: Any, x: Any, y: Any) -> Any:
        rows = xarr.broadcast_to(small(x + xarr.sum(y)), (6, 300))
        last, table = lax.scan(lambda c, row: (small(c + row), c), x, rows)
        return small(last + xarr.sum(table)), small(y - xarr.sum(x))

    for function in (step, until_small):
        agree(repeat(function, 3), whole(300), whole(300))
        assert not reasons(repeat(function, 3), whole(300), whole(300))
    assert sum(name.endswith("points") for name in shared) >= 2


def scan_twice(x: Any) -> Any:
    """Running totals along rows and back, with columns of more than one type, of a table that is not in a cache."""

    def step(before: Any, row: Any) -> Any:
        total, count = before
        total = total * 0.5 + row
        return (total, count + (row > 0)), (total, count)

    start = xarr.zeros(x.shape[1]), xarr.zeros(x.shape[1], dtype="int32")
    (last, counts), (totals, before) = lax.scan(step, start, x)
    return lax.scan(step, (last, counts), totals, reverse=True), before


def fill_rows(x: Any, steps: Any) -> Any:
    """As many rows of a table as a number says, each of the one before."""

    def step(state: Any) -> Any:
        i, row, table = state
        row = row * 0.5 + x[i]
        return i + 1, row, table.at[i].set(row)

    first = xarr.asarray(0), xarr.zeros(x.shape[1]), xarr.zeros_like(x)
    return lax.while_loop(lambda state: state[0] < steps, step, first)


def test_points_take_steps_together_where_tables_leave_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    from xarr_numpy.compiled.plans import point_loops
    from xarr_numpy.compiled.threads import phases

    monkeypatch.setattr(phases, "works", lambda: False)  # no other threads
    together, steps_together = [], point_loops._steps_together

    def note(loop: Any) -> int:
        together.append(steps_together(loop))
        return together[-1]

    monkeypatch.setattr(point_loops, "_steps_together", note)
    x = np.random.default_rng(3).normal(size=(301, 300))

    def results() -> list[Any]:
        calls = [xarr.jit(repeat(lambda i, x, y: (scan_twice(x)[0][1][0], y), 2))(x, x)]
        calls += [xarr.jit(lambda x: scan_twice(x))(x)]
        filled = xarr.jit(lambda x, steps: fill_rows(x, steps))
        calls += [filled(x, steps) for steps in (0, 1, 13, 14, 15, 300, 301)]
        return [np.asarray(each) for call in calls for each in xarr.tree.leaves(call)]

    got = results()
    assert together
    assert all(1 < each < 30 for each in together)
    monkeypatch.setattr(point_loops, "PROCESSOR", PROCESSOR.replace(rows_bytes=2**50))
    for one, other in zip(got, results(), strict=True):
        assert_same(one, other)
    assert max(together) > len(x)


def test_an_error_of_what_is_called_back_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    from xarr_numpy import program

    def fails(*_: Any) -> Any:
        raise ArithmeticError("no more")

    monkeypatch.setitem(program.SCOPE, "cholesky", fails)
    with xarr.config(fusion="compiled"):
        compiled = xarr.jit(repeat(LIBRARY["cholesky"]))
        for _ in range(2):
            with pytest.raises(ArithmeticError, match=r"no more"):
                xarr.evaluate(*compiled(whole(5, 5), whole(5, 5)))


def test_threads_call_back_side_by_side() -> None:
    step = LIBRARY["sort"]
    x, y = whole(40, 40), whole(40, 40)
    with xarr.config(fusion="off"):
        wanted = xarr.jit(repeat(step, 300))(x, y)
    with xarr.config(fusion="compiled"):
        compiled = xarr.jit(repeat(step, 300))
        results: list[Any] = []
        threads = [
            threading.Thread(target=lambda: results.append(xarr.block_until_ready(compiled(x, y))))
            for _ in range(3)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(results) == 3
    for result in results:
        assert_same(result[0], wanted[0])


def test_a_matrix_times_a_vector_is_native_whatever_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    from xarr_numpy.compiled.plans import plan_code

    def step(i: Any, x: Any, y: Any) -> Any:
        return small(xarr.matmul(y, x)), small(y - xarr.sum(xarr.matmul(x, y)))

    limits = PROCESSOR.replace(max_native_products=8, max_native_lane_products=8)
    monkeypatch.setattr(plan_code, "PROCESSOR", limits)
    agree(repeat(step, 3), whole(7), whole(7, 7))


def test_a_loop_without_machine_code_leaves_no_frames_of_its_callers() -> None:
    def call() -> weakref.ref[xarr.Array]:
        local = xarr.zeros(5)
        xarr.jit(lambda x: lax.fori_loop(0, 3, lambda i, m: xarr.linalg.svd(m)[0] + i, x))(xarr.eye(5))
        return weakref.ref(local)

    gc.disable()
    try:
        with xarr.config(fusion="compiled"):
            assert call()() is None
    finally:
        gc.enable()
