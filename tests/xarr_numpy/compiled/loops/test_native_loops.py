"""Loops in machine code: which there are, and that their bits are those of one NumPy call for each operation."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import xarr
from tests.compare import assert_same
from tests.support.jitting import assert_compiled_loops_agree
from xarr import lax
from xarr.ir import ops
from xarr.ir.graph import Graph

pytest.importorskip("llvmlite")

from xarr.compiler.while_loops.fully_written import fully_written_tables
from xarr.compiler.while_loops.lowering import native_form
from xarr_numpy.compiled.loops.loop_code import emit
from xarr_numpy.processor import PROCESSOR

pytestmark = pytest.mark.implicit

RNG = np.random.default_rng(3)


def fuse(function: Callable[..., Any], *arguments: Any) -> Graph:
    with xarr.config(fusion="compiled"):
        result = xarr.jit(function).lower(*arguments).stage("fused")
    assert isinstance(result, Graph)
    return result


def is_native(function: Callable[..., Any], *arguments: Any) -> bool:
    loops = [node.op for node in fuse(function, *arguments).nodes if isinstance(node.op, ops.While)]
    assert loops
    return all(isinstance(op, ops.NativeWhile) for op in loops)


def agree(function: Callable[..., Any], *arrays: Any, native: bool = True) -> None:
    """The compiled loop gives the bits of the loop step by step."""
    assert is_native(function, *arrays) == native
    assert_compiled_loops_agree(function, *arrays)


def escape(limit: int, dtype: str = "float64") -> Callable[[Any, Any], Any]:
    """Mandelbrot's counts."""

    def step(real: Any, imaginary: Any, state: Any) -> Any:
        i, a, b, counts = state
        inside = a * a + b * b <= 4
        return (
            i + 1,
            xarr.where(inside, a * a - b * b + real, a),
            xarr.where(inside, a * b + a * b + imaginary, b),
            xarr.where(inside, counts + 1, counts),
        )

    def function(real: Any, imaginary: Any) -> Any:
        zero = xarr.zeros_like(real)
        state = (np.int32(0), zero, zero, xarr.zeros(real.shape, dtype="int32"))
        return lax.while_loop(lambda s: s[0] < limit, lambda s: step(real, imaginary, s), state)[3]

    return function


@pytest.mark.parametrize("shape", [(1,), (7,), (64, 33), (1000,)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_points_that_stop_on_their_own(shape: tuple[int, ...], dtype: str) -> None:
    real, imaginary = (RNG.uniform(-2, 2, shape).astype(dtype) for _ in range(2))
    agree(escape(50), real, imaginary)


def test_the_whole_loop_ends_with_its_last_point() -> None:
    def function(x: Any) -> Any:
        def going(state: Any) -> Any:
            return (state[0] < 1000) & xarr.any(xarr.abs(state[1]) < 2)

        def step(state: Any) -> Any:
            return state[0] + 1, xarr.where(xarr.abs(state[1]) < 2, state[1] * state[1] + x, state[1])

        return lax.while_loop(going, step, (0, x))

    agree(function, np.linspace(0.3, 1.0, 777))  # all of them end
    agree(function, np.linspace(-1.0, 1.0, 777))  # some never do
    agree(function, np.full(5, 3.0))  # no step at all


def test_a_mask_by_which_the_body_does_not_choose_needs_all_points_together() -> None:
    def function(x: Any) -> Any:
        return lax.while_loop(lambda s: xarr.any(s < 100), lambda s: s * 1.5 + 1, x)

    agree(function, np.linspace(0, 50, 33), native=False)


def test_a_mask_that_depends_on_the_counter_does_not_settle() -> None:
    def function(x: Any) -> Any:
        def step(i: Any, s: Any) -> Any:
            return xarr.where((i % 2 == 0) & (s < 100), s * 1.5 + 1, s)

        return lax.fori_loop(0, 10, step, x)

    agree(function, np.linspace(0, 50, 33))
    assert "until" not in fuse(function, "f64[33]").to_text()


def test_negative_zero_is_changed_by_adding_zero() -> None:
    """x + 0.0 is not x for -0.0: such a step does change its point."""

    def function(x: Any) -> Any:
        return lax.fori_loop(0, 3, lambda i, s: s + xarr.astype(s > 1, "float64"), x)

    agree(function, np.array([-0.0, 0.0, 2.0, np.nan, -np.inf]))
    assert "until" not in fuse(function, "f64[5]").to_text()


def test_counting_by_a_converted_mask_settles() -> None:
    def function(x: Any) -> Any:
        def step(i: Any, state: Any) -> Any:
            inside = xarr.abs(state[0]) < 2
            return xarr.where(inside, state[0] * state[0] + x, state[0]), state[1] + inside

        return lax.fori_loop(0, 40, step, (x, xarr.zeros(x.shape, dtype="int64")))

    agree(function, np.linspace(-2, 1, 301))
    assert "until no step changes it" in fuse(function, "f64[301]").to_text()


def test_scalars() -> None:
    agree(lambda n: lax.fori_loop(0, n, lambda i, s: s * 1.0001 + i, 0.0), np.int64(1000))
    agree(lambda n: lax.fori_loop(n, 0, lambda i, s: s * 1.0001 + i, 0.0), np.int64(1000))
    agree(
        lambda x: lax.while_loop(lambda s: s[0] * s[0] > 2, lambda s: ((s[0] + 2 / s[0]) / 2, s[0]), (x, x)),
        9.0,
    )
    agree(
        lambda a, b: lax.while_loop(lambda s: s[1] != 0, lambda s: (s[1], s[0] % s[1]), (a, b))[0], 1071, 462
    )


def test_a_hundred_fibonacci_numbers_wrap_around() -> None:
    agree(lambda n: lax.fori_loop(0, n, lambda i, s: (s[1], s[0] + s[1]), (np.int32(0), np.int32(1))), 100)


@pytest.mark.parametrize("reverse", [False, True])
def test_scans(reverse: bool) -> None:
    def step(carry: Any, x: Any) -> Any:
        return carry * 0.9 + x, carry

    agree(lambda x: lax.scan(step, 0.0, x, reverse=reverse), RNG.normal(size=100))
    for shape in ((50, 37), (37, 37), (3, 4, 5), (2, 1, 1)):
        agree(
            lambda x, s=shape: lax.scan(step, xarr.zeros(s[1:]), x, reverse=reverse), RNG.normal(size=shape)
        )


def test_scans_of_bools_and_of_bits() -> None:
    def step(carry: Any, x: Any) -> Any:
        return carry ^ x, (~carry, carry & x)

    agree(lambda x: lax.scan(step, xarr.zeros(33, dtype=bool), x), RNG.normal(size=(20, 33)) > 0)
    agree(lambda x: lax.scan(step, xarr.asarray(False), x), RNG.normal(size=20) > 0)
    agree(lambda x: lax.scan(step, np.uint8(3), x), np.arange(20, dtype=np.uint8))


def test_a_table_that_is_written_is_read_in_order() -> None:
    def step(i: Any, table: Any) -> Any:
        last = lax.dynamic_index_in_dim(table, i - 1, keepdims=False)
        return lax.dynamic_update_index_in_dim(table, last * 3 + 1, i, 0)

    agree(lambda x: lax.fori_loop(1, x.shape[0], step, x), np.arange(30))
    agree(lambda x: lax.fori_loop(1, x.shape[0], step, x), np.arange(30.0).reshape(10, 3))
    agree(lambda x: lax.fori_loop(1, x.shape[0], step, x), np.arange(150.0).reshape(3, 50))


@pytest.mark.parametrize("size", [3, 8, 20])
@pytest.mark.parametrize("seed", range(6))
def test_elements_of_tables_are_read_after_they_are_written_in_the_same_step(size: int, seed: int) -> None:
    """At equal, other and clamped indices, and by what else was read: as stacks, heaps and caches are."""
    rng = np.random.default_rng((size, seed))
    accesses = [(rng.integers(3), *map(int, rng.integers(2, size=2))) for _ in range(rng.integers(2, 7))]
    factors = [int(each) for each in rng.integers(1, 9, len(accesses))]

    def step(i: Any, state: Any) -> Any:
        tables, total = [*state[:2]], state[2]
        for (kind, number, moves), factor in zip(accesses, factors, strict=True):
            index = (i * factor + (total if moves else 0)) % (size + 3) - 1
            read = lax.dynamic_index_in_dim(tables[number], index, keepdims=False)
            if kind == 0:
                total = (total + read * factor) % 101
            else:
                new = xarr.where(read % 3 == 0, total, read) if kind == 1 else total + factor
                tables[number] = lax.dynamic_update_index_in_dim(tables[number], new, index, 0)
        return *tables, total

    def function(x: Any, y: Any) -> Any:
        return lax.fori_loop(0, 40, step, (x, y, xarr.asarray(1)))

    agree(function, rng.integers(0, 50, size), rng.integers(0, 50, size))


def test_a_stack_is_a_table_however_short() -> None:
    def step(state: Any) -> Any:
        stack, left, total = state
        top = stack[left - 1]
        stack = stack.at[left - 1].set(top // 2).at[left].set(top // 3)
        return stack, xarr.where(top > 4, left + 1, left - 1), total + top

    def function(x: Any) -> Any:
        stack = xarr.zeros(8, dtype="int64").at[0].set(x)
        return lax.while_loop(lambda state: state[1] > 0, step, (stack, xarr.asarray(1), xarr.asarray(0)))[2]

    agree(function, np.int64(1000))
    (loop,) = [node.op for node in fuse(function, "s64[]").nodes if isinstance(node.op, ops.NativeWhile)]
    form = native_form(loop, PROCESSOR)
    assert form is not None and [each.size for each in form.carried if each.kind == "table"] == [8]


@pytest.mark.parametrize("size", [5, 20], ids=["numbers", "points"])
@pytest.mark.parametrize("element_first", [True, False])
def test_rows_and_elements_of_a_table_are_written_in_order(size: int, element_first: bool) -> None:
    def step(k: Any, state: Any) -> Any:
        table, row = state
        for is_row in (not element_first, element_first):
            part = row[None] if is_row else xarr.full((1, 1), k * 0.5)
            table = lax.dynamic_update_slice(table, part, (k, 0))
        return table, row * 2

    arrays = np.zeros((6, size)), np.arange(1.0, size + 1)
    agree(lambda x, row: lax.fori_loop(0, 4, step, (x, row)), *arrays, native=size == 5)


def test_a_table_that_is_written_and_goes_into_a_loop_inside() -> None:
    def function(x: Any) -> Any:
        def step(i: Any, state: Any) -> Any:
            table, rows = state
            turned = lax.fori_loop(0, 2, lambda j, part: lax.cumsum(part[::-1]), table)
            return lax.dynamic_update_slice(table, turned, (i,)), rows.at[i].set(table)

        return lax.fori_loop(0, 4, step, (x, xarr.zeros((4, 5))))

    agree(function, np.array([3.0, 1.0, 5.0, 2.0, 7.0]), native=False)


def test_what_no_step_changes_is_computed_before_the_loop() -> None:
    def function(x: Any, n: Any) -> Any:
        column = x[:, 1]

        def step(state: Any, i: Any) -> Any:
            row = lax.dynamic_index_in_dim(x.T * 2.0, i % 2, keepdims=False)
            one = lax.dynamic_index_in_dim(column, i % n, keepdims=False)
            return state * 0.5 + row + one * x[2, 0] + lax.reduce_max(x, (0, 1)), i * one

        return lax.scan(step, lax.full((6,), 1.0), xarr.arange(9))

    agree(function, RNG.normal(size=(6, 3)), np.int64(5))


def test_loops_of_no_steps_that_read_a_part_of_what_never_changes() -> None:
    def step(state: Any, i: Any) -> Any:
        return lax.sort(state) + i, None

    def function(x: Any) -> Any:
        return lax.scan(step, x, xarr.arange(100) * 2)[0]

    agree(function, RNG.normal(size=7), native=False)
    agree(
        lambda x: lax.while_loop(lambda s: s[0] < 0, lambda s: s + (x * 2)[1:13], x[:12]),
        np.ones(30),
        native=False,
    )


def test_what_few_points_need_is_computed_for_them_alone() -> None:
    def step(z: Any) -> Any:
        return z - (z * z * z - 1) / (3 * z * z)

    def function(z: Any) -> Any:
        return lax.fori_loop(0, 5, lambda i, z: step(z), z)

    corners = [0.0, -0.0, np.nan, np.inf, -np.inf, 1e300, 1e-300, 5e-324]
    agree(function, np.asarray([complex(x, y) for x in corners for y in corners]))
    (loop,) = [node.op for node in fuse(function, "c128[64]").nodes if isinstance(node.op, ops.NativeWhile)]
    form = native_form(loop, PROCESSOR)
    assert form is not None
    (points,) = [part for part in emit(form).split("define ") if "@points(" in part]
    assert points.count("fdiv") == 2


def test_starts_outside_of_a_table_are_clamped() -> None:
    def step(i: Any, state: Any) -> Any:
        return state + lax.dynamic_index_in_dim(xarr.asarray([1.0, 10.0, 100.0]), i, keepdims=False)

    for low, high in ((-5, 8), (0, 2)):
        agree(lambda a, b: lax.fori_loop(a, b, step, 0.0), np.int8(low), np.int8(high))


def test_a_scan_over_as_many_rows_as_points() -> None:
    """A carried array may be read by row and by point alike."""

    def function(x: Any, v: Any) -> Any:
        def step(i: Any, s: Any) -> Any:
            return s + v * lax.dynamic_index_in_dim(v, i, keepdims=False)

        return lax.fori_loop(0, v.shape[0], step, x)

    agree(function, RNG.normal(size=9), RNG.normal(size=9))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8", "uint64", "bool"])
def test_element_types(dtype: str) -> None:
    def step(i: Any, s: Any) -> Any:
        return ~s if dtype == "bool" else s * s + s

    x = xarr.asarray(np.arange(50) % 3, dtype=dtype)
    agree(lambda x: lax.fori_loop(0, 3, step, x), x)


def test_other_loops_go_on_step_by_step() -> None:
    agree(lambda x: lax.fori_loop(0, 3, lambda i, s: xarr.sort(s) * 2, x), np.arange(12.0), native=False)
    agree(lambda x: lax.fori_loop(0, 3, lambda i, s: s[::-1] * i, x), np.arange(12.0), native=False)
    agree(lambda x: lax.fori_loop(0, 3, lambda i, s: s * 2, x), np.zeros((0, 3)), native=False)
    agree(lambda x: lax.fori_loop(0, 3, lambda i, s: (s[1], s[0]), (x, x + 1)), np.arange(12.0))


def test_a_loop_inside_a_loop() -> None:
    def inner(x: Any) -> Any:
        return lax.fori_loop(0, 3, lambda i, s: s * 2 + i, x)

    function = lambda x: lax.fori_loop(0, 4, lambda i, s: inner(s) - 1, x)  # noqa: E731
    agree(function, np.arange(5.0), native=False)
    (outer,) = (node.op for node in fuse(function, "f64[5]").nodes if isinstance(node.op, ops.While))
    assert any(isinstance(node.op, ops.NativeWhile) for node in outer.body.nodes)


def test_the_program_shows_one_step() -> None:
    with xarr.config(fusion="compiled"):
        text = (
            xarr.jit(lambda x: lax.fori_loop(0, 3, lambda i, s: s * 2 + x, x))
            .lower("f32[9]")
            .stage("program")
        )
    assert "native loop: 2 scalars, 2 arrays of 9 points, 0 tables" in text.text
    assert "= mul(p2, 2.0)" in text.text


def test_a_loop_too_short_to_compile_for_stays() -> None:
    with xarr.config(fusion="auto"):
        few = xarr.lower(lambda x: lax.fori_loop(0, 30, lambda i, s: s * 2, x), 1.0).stage("fused")
        many = xarr.lower(lambda x: lax.fori_loop(0, 10**8, lambda i, s: s * 2, x), 1.0).stage("fused")
    assert not any(isinstance(node.op, ops.NativeWhile) for node in few.nodes)
    assert any(isinstance(node.op, ops.NativeWhile) for node in many.nodes)


def test_a_loop_that_turns_out_long_goes_on_in_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    from xarr_numpy.ops import control

    monkeypatch.setattr(control, "PROCESSOR", PROCESSOR.replace(max_python_iterations=10))
    for steps in (9, 10, 11, 50):
        with xarr.config(fusion="auto"):
            result = lax.fori_loop(0, steps, lambda i, s: s * 3 + i, np.int64(1))
            stack = lax.scan(lambda c, x: (c + x, c * 2), np.int64(0), np.arange(steps))[1]
            sums = lax.fori_loop(0, steps, lambda i, s: s + xarr.sum(s), np.arange(3))
            xarr.evaluate(result, stack, sums)
        with xarr.config(fusion="off"):
            assert_same(result, lax.fori_loop(0, steps, lambda i, s: s * 3 + i, np.int64(1)))
            assert_same(stack, lax.scan(lambda c, x: (c + x, c * 2), np.int64(0), np.arange(steps))[1])
            assert_same(sums, lax.fori_loop(0, steps, lambda i, s: s + xarr.sum(s), np.arange(3)))


# --- random bodies --------------------------------------------------------------------------------------


@st.composite
def bodies(draw: st.DrawFn) -> tuple[Callable[..., Any], list[Any]]:
    """A loop over a counter, a scalar and two arrays, with and without masks."""
    count = draw(st.sampled_from([1, 2, 17, 130]))
    dtype = draw(st.sampled_from(["float32", "float64", "int32", "uint8"]))
    choices = draw(
        st.lists(st.tuples(st.integers(0, 6), st.integers(0, 9), st.integers(0, 9)), min_size=2, max_size=8)
    )
    masked = draw(st.sampled_from(["no", "all", "some", "counter"]))
    ends = draw(st.sampled_from(["counter", "any", "both"]))
    steps = draw(st.integers(0, 20))

    def expressions(pool: list[Any]) -> list[Any]:
        for kind, left, right in choices:
            x, y = pool[left % len(pool)], pool[right % len(pool)]
            pool.append(
                [x + y, x * y, x - y, xarr.maximum(x, y), xarr.where(x > y, x, y), abs(x) + 1, -x][kind]
            )
        return pool

    def function(a: Any, b: Any, fixed: Any) -> Any:
        def alive(state: Any) -> Any:
            return (state[2] > 3) & (state[3] < 90)

        def going(state: Any) -> Any:
            counted = state[0] < steps
            if ends == "counter":
                return counted
            return (
                xarr.any(alive(state)) & counted
                if ends == "both"
                else xarr.any(alive(state)) & (state[0] < 25)
            )

        def body(state: Any) -> Any:
            i, s, x, y = state
            one = s * np.asarray(3, dtype) + np.asarray(1, dtype)
            *_, u, v = expressions([x, y, fixed, x + s, y - xarr.astype(i, dtype)])
            mask = alive(state) & (i % 3 > 0) if masked == "counter" else alive(state)
            if masked in ("all", "counter"):
                u = xarr.where(mask, u, x)
            if masked != "no":
                v = xarr.where(mask, v, y)
            return i + 1, one, u, v

        return lax.while_loop(going, body, (np.int64(0), np.asarray(2, dtype), a, b))

    arrays = [xarr.asarray(RNG.integers(0, 100, count), dtype=dtype) for _ in range(3)]
    return function, arrays


@given(bodies())
@settings(max_examples=60, deadline=None)
def test_random_bodies(body: tuple[Callable[..., Any], list[Any]]) -> None:
    function, arrays = body
    with xarr.config(fusion="off"):
        wanted = function(*arrays)
        xarr.evaluate(*wanted)
    with xarr.config(fusion="compiled"):
        results = xarr.jit(function)(*arrays)
    for left, right in zip(results, wanted, strict=True):
        assert_same(left, right)


@given(bodies())
@settings(max_examples=5, deadline=None)
def test_random_bodies_against_the_reference(body: tuple[Callable[..., Any], list[Any]]) -> None:
    function, arrays = body
    small = [each[:3] for each in arrays]
    with xarr.config(fusion="compiled"):
        results = [np.asarray(each) for each in xarr.jit(function)(*small)]
    with xarr.use_backend("reference"):
        wanted = [np.asarray(each) for each in function(*[xarr.asarray(np.asarray(each)) for each in small])]
    for left, right in zip(results, wanted, strict=True):
        assert_same(left, right)


# --- while it runs --------------------------------------------------------------------------------------


def test_chunks_of_steps_join(monkeypatch: pytest.MonkeyPatch) -> None:
    from xarr_numpy.compiled.loops import loop_kernel

    monkeypatch.setattr(loop_kernel, "PROCESSOR", PROCESSOR.replace(first_chunk_operations=1))
    monkeypatch.setattr(loop_kernel, "adapt_chunk", lambda most, seconds: most % 3 + 1)
    real, imaginary = (RNG.uniform(-2, 2, 300) for _ in range(2))
    agree(escape(41), real, imaginary)
    test_the_whole_loop_ends_with_its_last_point()
    test_scalars()
    test_scans(True)
    test_a_table_that_is_written_is_read_in_order()


def test_a_bar_counts_the_steps(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from xarr.base import progress

    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    monkeypatch.setattr(progress, "_LOG", 0.0)

    def function(n: Any) -> Any:
        return lax.fori_loop(0, n, lambda i, s: s * 1.5, 1.0, progress="halving")

    assert is_native(function, np.int64(3))
    with xarr.config(fusion="compiled"):
        float(xarr.jit(function)(np.int64(1234)))
    text = capsys.readouterr().err
    assert "halving" in text
    assert "1,234/1,234" in text


def test_a_bar_counts_on_in_machine_code(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from xarr.base import progress
    from xarr_numpy.ops import control

    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    monkeypatch.setattr(progress, "_LOG", 0.0)
    monkeypatch.setattr(control, "PROCESSOR", PROCESSOR.replace(max_python_iterations=10))
    with xarr.config(fusion="auto"):
        tripled = lax.fori_loop(0, 500, lambda i, s: s * 3 + i, np.int64(1), progress="tripling")
        xarr.evaluate(tripled)
    lines = capsys.readouterr().err.splitlines()
    assert "500/500" in lines[-1]
    assert len(lines) < 50, "a chunk of many iterations is told at once"
    with xarr.config(fusion="off"):
        assert_same(tripled, lax.fori_loop(0, 500, lambda i, s: s * 3 + i, np.int64(1)))


@pytest.mark.skipif(os.name == "nt", reason="signals come otherwise there")
@pytest.mark.usefixtures("interruptible")
def test_a_loop_without_end_is_interrupted() -> None:
    with xarr.config(fusion="compiled"):
        function = xarr.jit(lambda x: lax.while_loop(lambda s: s < 2, lambda s: s * 1.0, x))
        assert float(function(3.0)) == 3.0
        timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):
            timer.start()
            float(function(1.0))


# --- tables that are written over ----------------------------------------------------------------------------


def rows_written(function: Callable[..., Any], *arguments: Any) -> list[int]:
    """The number of rows of each table that need not be there when the loop begins."""
    loops = [node.op for node in fuse(function, *arguments).nodes if isinstance(node.op, ops.NativeWhile)]
    results = [fully_written_tables(loop) for op in loops if (loop := native_form(op, PROCESSOR)) is not None]
    return [each.rows for tables in results for each in tables.values()]


def totals(reverse: bool) -> Callable[..., Any]:
    return lambda x, r: lax.scan(lambda c, v: (c * r + v,) * 2, xarr.zeros_like(r), x, reverse=reverse)


def fill(start: int, stop: int, *, of: int = 1, read: bool = False) -> Callable[..., Any]:
    """A table of -1 in which steps write their numbers, or those plus what they find there."""

    def step(i: Any, table: Any) -> Any:
        before = lax.dynamic_slice(table, [i], [1]) if read else 0
        return lax.dynamic_update_slice(table, xarr.full((1,), i * of, dtype="int64") + before, [i])

    return lambda x: lax.fori_loop(start, stop, step, xarr.full(x.shape, -1, dtype="int64"))


@pytest.mark.parametrize("reverse", [False, True])
def test_what_a_scan_stacks_is_not_filled_before(reverse: bool) -> None:
    x = RNG.normal(size=(20_000,)).astype(np.float64)  # of more bytes than memory has that is not used again
    rows = RNG.normal(size=(500, 40))
    for values, rate in ((x, np.float64(0.5)), (rows, np.full(40, 0.5))):
        assert rows_written(totals(reverse), values, rate) == [len(values)]
        dirty = [xarr.full(values.shape, np.nan) * 1 for _ in range(3)]
        xarr.evaluate(*dirty)
        del dirty
        agree(totals(reverse), values, rate)


@pytest.mark.parametrize(
    ("function", "rows"),
    [
        (fill(0, 1000), [1000]),
        (fill(0, 1000, of=3), [1000]),
        (fill(0, 2000), [1000]),
        (fill(0, 900), [1000]),
        (fill(3, 1000), [1000]),
        (fill(-5, 1000), [1000]),
        (fill(0, 1000, read=True), []),
        (lambda x: lax.fori_loop(0, 500, lambda i, t: t.at[2 * i].set(i), x), []),
    ],
    ids=["all", "other values", "too many", "too few", "late", "early", "read", "every other"],
)
def test_a_table_keeps_what_no_step_writes(function: Callable[..., Any], rows: list[int]) -> None:
    x = np.full(1000, -1, np.int64)
    assert rows_written(function, x) == rows
    agree(function, x)


def test_a_counter_may_have_a_dimension() -> None:
    def rows(limit: Any, row: Any) -> Any:
        def step(state: Any) -> Any:
            number, most, table = state
            start = (lax.reshape(number, ()), np.int64(0))
            return number + 1, most, lax.dynamic_update_slice(table, (row * 2)[None], start)

        start_state = (xarr.zeros(1, dtype="int64"), limit, xarr.zeros((4, 3)))
        return lax.while_loop(lambda state: lax.reshape(state[0] < state[1], ()), step, start_state)[2]

    agree(rows, np.array([4]), RNG.normal(size=3))
