"""Loops on the emulated device: their results are the CPU's to the bit, in each order of threads, and who reads what.

A look of the host at a condition is counted by name in `host.CALLS`, and as a download by the driver.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.cuda import nvrtc
from tests.cuda.emulator.module import ORDERS
from tests.cuda.test_cupy_backend import device, values
from tests.cuda.test_gate import ARCHITECTURES, check
from xarr import lax
from xarr.compiler.plan.program_plan import LaunchLoop
from xarr.compiler.schedules.gpu import point_loops
from xarr.compiler.schedules.gpu.target import TARGET
from xarr.compiler.while_loops.native_loops import NativeLoop
from xarr_cupy import engine, host
from xarr_cupy.codegen.block_loops import shared_bytes
from xarr_cupy.codegen.emitter import emit
from xarr_cupy.codegen.kernel_calls import KernelCall
from xarr_cupy.runtime import loop_commands

pytestmark = [
    pytest.mark.implicit,
    pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++"),
]

RNG: Final = np.random.default_rng(0)
Function = Callable[..., Any]


def mandelbrot(ends_by_any: bool) -> Function:
    """Counts of the steps until a point escapes; the loop ends with the last one, or by its counter."""

    def function(c: Any) -> Any:
        def is_inside(z: Any) -> Any:
            return lax.real(z) * lax.real(z) + lax.imag(z) * lax.imag(z) < 4

        def going(state: Any) -> Any:
            counted = state[0] < 40
            return counted & xarr.any(is_inside(state[1])) if ends_by_any else counted

        def step(state: Any) -> Any:
            i, z, count = state
            inside = is_inside(z)
            return i + 1, xarr.where(inside, z * z + c, z), xarr.where(inside, count + 1, count)

        return lax.while_loop(going, step, (0, xarr.zeros_like(c), xarr.zeros(c.shape, dtype="int32")))

    return function


def newton(x: Any) -> Any:
    """Square roots, until each is exact."""

    def is_inexact(state: Any) -> Any:
        return abs(state[0] * state[0] - x) > 1e-4 * x

    def step(state: Any) -> Any:
        root, steps = state
        wrong = is_inexact(state)
        return xarr.where(wrong, (root + x / root) * np.float32(0.5), root), steps + wrong

    return lax.while_loop(lambda s: xarr.any(is_inexact(s)), step, (x, xarr.zeros(x.shape, dtype="int64")))


def collatz(n: Any) -> Any:
    """The steps of one number, whose end nobody knows beforehand."""

    def step(state: Any) -> Any:
        n, count = state
        return lax.select(n % 2 == 0, n // 2, 3 * n + 1), count + 1

    return lax.while_loop(lambda s: s[0] > 1, step, (n, 0))


def decay(reverse: bool) -> Function:
    """A recurrence for each column, and all that it was."""

    def function(x: Any) -> Any:
        return lax.scan(
            lambda c, x: (c * 0.9 + x, c), xarr.zeros(x.shape[1:], dtype=x.dtype), x, reverse=reverse
        )

    return function


def table(x: Any) -> Any:
    """Rows, each of the one before."""

    def step(i: Any, rows: Any) -> Any:
        last = lax.dynamic_index_in_dim(rows, i - 1, keepdims=False)
        return lax.dynamic_update_index_in_dim(rows, last * 3 + i, i, 0)

    return lax.fori_loop(1, x.shape[0], step, x)


def swaps(x: Any) -> Any:
    return lax.fori_loop(0, 5, lambda i, s: (s[1], s[0] + i), (x, x + 1))


def element(dtype: str) -> tuple[Function, list[Any]]:
    def function(x: Any) -> Any:
        return lax.fori_loop(0, 3, lambda i, s: ~s if dtype == "bool" else s * s + s, xarr.astype(x, dtype))

    return function, [np.arange(50) % 3]


SPECIAL: Final = np.array([-0.0, 0.0, 2.0, np.nan, -np.inf, 5e-324])
#: Loops of independent points: functions, arrays, and how often the host reads a condition.
POINTS: Final[dict[str, tuple[Function, list[Any], int]]] = {
    "mandelbrot": (mandelbrot(False), [RNG.uniform(-2, 2, (7, 90)) + 1j * RNG.uniform(-2, 2, (7, 90))], 0),
    "mandelbrot until all escaped": (
        mandelbrot(True),
        [RNG.uniform(1, 2, 40) + 1j * RNG.uniform(1, 2, 40)],
        0,
    ),
    "no step at all": (mandelbrot(True), [np.full(3, 9 + 9j)], 0),
    "newton": (newton, [RNG.uniform(1, 9, 700).astype("f4")], 1),
    "special numbers": (
        lambda x: lax.fori_loop(0, 3, lambda i, s: s + xarr.astype(s > 1, "float64"), x),
        [SPECIAL],
        0,
    ),
    "collatz": (collatz, [np.int64(27)], 1),
    "steps from an array": (
        lambda n, x: lax.fori_loop(0, n, lambda i, s: s * 2 + i, x),
        [5, np.arange(6.0)],
        1,
    ),
    "scan": (decay(False), [RNG.normal(size=(12, 37))], 0),
    "scan in reverse": (decay(True), [RNG.normal(size=(12, 3))], 0),
    "scan of numbers": (decay(False), [RNG.normal(size=20)], 0),
    "scan of as many rows as points": (decay(False), [RNG.normal(size=(9, 9))], 0),
    "rows of a table": (table, [np.arange(30.0).reshape(10, 3)], 0),
    "elements of a table": (table, [np.arange(30)], 0),
    "values that change places": (swaps, [np.arange(5.0)], 0),
    **{
        f"points of {dtype}": (*element(dtype), 0)
        for dtype in ("float16", "bfloat16", "int8", "uint64", "bool", "complex64")
    },
}


def assert_as_on_the_cpu(function: Function, arrays: list[Any]) -> None:
    """A jitted function gives the bits of the compiled engine of the CPU."""
    result = values(xarr.jit(function)(*map(xarr.asarray, arrays)))
    with xarr.use_backend("numpy"), xarr.config(fusion="compiled"):
        wanted = values(xarr.jit(function)(*map(xarr.asarray, arrays)))
    for each, other in zip(result, wanted, strict=True):
        assert_same(each, other)


def conditions_read() -> int:
    """The number of looks of the host at whether a loop goes on."""
    return sum(
        count for (_, reason), count in host.CALLS.items() if reason in {host.BATCHES, *host.CONTROL.values()}
    )


@pytest.mark.sampled
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", POINTS)
def test_a_thread_a_point_takes_all_steps(
    name: str, order: str, cupy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    function, arrays, reads = POINTS[name]
    monkeypatch.setattr(device(cupy), "order", order)
    host.CALLS.clear()
    assert_as_on_the_cpu(function, arrays)
    assert conditions_read() == host.CALLS.total() == reads


@pytest.mark.parametrize("launches", ["one", "several"])
@pytest.mark.parametrize(
    "name", ["mandelbrot", "mandelbrot until all escaped", "scan", "values that change places"]
)
def test_single_results_of_loops(
    name: str, launches: str, cupy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    function, arrays, _ = POINTS[name]
    if launches == "several":
        monkeypatch.setattr(
            point_loops, "TARGET", TARGET.replace(launch_operations=100, max_loop_launches=100)
        )
    count = len(xarr.eval_shape(function, *map(xarr.asarray, arrays)))
    for k in range(count):
        assert_as_on_the_cpu(lambda *arrays, k=k: function(*arrays)[k], arrays)


@pytest.mark.thorough
@pytest.mark.parametrize("name", POINTS)
def test_points_have_no_race(name: str, cupy: Any) -> None:
    device(cupy).races = True
    function, arrays, _ = POINTS[name]
    values(xarr.jit(function)(*map(xarr.asarray, arrays)))


@pytest.mark.thorough
@pytest.mark.parametrize("name", POINTS)
def test_launches_of_few_steps_join(name: str, cupy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    function, arrays, reads = POINTS[name]
    for launches in (1, 100):
        target = TARGET.replace(launch_operations=100, max_loop_launches=launches)
        monkeypatch.setattr(point_loops, "TARGET", target)
        host.CALLS.clear()
        assert_as_on_the_cpu(function, arrays)
        assert launches == 1 or conditions_read() >= reads
    assert bool(reads) == bool(host.CALLS)


def programs(function: Function, arrays: list[Any]) -> list[point_loops.PointLoop]:
    """The programs of the loops of independent points of a function."""
    stage = xarr.jit(function).lower(*map(xarr.asarray, arrays)).stage("plan")
    loops = [(plan, step) for plan in stage.walk() for step in plan.steps if isinstance(step, LaunchLoop)]
    return [
        point_loops.point_loop(step.program, step.node.operands, loop_commands.wanted_results(plan, step))
        for plan, step in loops
        if isinstance(step.program, NativeLoop)
    ]


@nvrtc.needed
@pytest.mark.parametrize("name", POINTS)
def test_loops_of_points_compile(name: str, cupy: Any) -> None:
    function, arrays, _ = POINTS[name]
    (program,) = programs(function, arrays)
    architectures = ARCHITECTURES if name in ("newton", "scan") else ["sm_90"]
    check(emit(program.kernel).text, architectures)


def test_a_mandelbrot_is_one_kernel_for_the_points(cupy: Any) -> None:
    c = xarr.asarray(np.ones(40) + 1j)
    compiled = xarr.jit(lambda c: mandelbrot(False)(c)[2])
    compiled(c).block_until_ready()
    before = device(cupy).launches, device(cupy).downloads
    compiled(c).block_until_ready()
    # What it begins with are constants, and nobody reads the counter.
    assert device(cupy).launches - before[0] == 1
    assert device(cupy).downloads == before[1]


def test_a_stack_that_each_step_fills_is_not_copied_before(cupy: Any) -> None:
    function, arrays, _ = POINTS["scan"]
    (program,) = programs(function, arrays)
    assert "for" in str(program.kernel)
    assert len(program.kernel.phases) == 1
    (program,) = programs(table, [np.ones((10, 3))])
    assert len(program.kernel.phases) == 2


# --- loops of groups and of plans --------------------------------------------------------------------------


def jacobi(count: int | None = None) -> Function:
    """Means of the neighbours, so many times, or until a step changes little."""

    def step(x: Any) -> Any:
        inner = (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]) * 0.25
        return x.at[1:-1, 1:-1].set(inner)

    def function(x: Any, *counts: Any) -> Any:
        if count is not None:
            return lax.fori_loop(0, count, lambda i, x: step(x), x)
        if counts:
            return lax.fori_loop(0, counts[0], lambda i, x: step(x), x)

        def body(state: Any) -> Any:
            new = step(state[0])
            return new, xarr.max(abs(new - state[0])), state[2] + 1

        return lax.while_loop(lambda s: s[1] > 0.05, body, (x, np.inf, 0))

    return function


def life(x: Any) -> Any:
    """Conway's game on a torus."""

    def step(i: Any, x: Any) -> Any:
        shifts = [(a, b) for a in (-1, 0, 1) for b in (-1, 0, 1) if a or b]
        count = sum(xarr.roll(x, shift, (0, 1)) for shift in shifts)
        return xarr.astype((count == 3) | ((count == 2) & (x == 1)), x.dtype)

    return lax.fori_loop(0, 6, step, x)


def several_groups(count: int) -> Function:
    """A counted loop of running totals and a reduction."""

    def step(i: Any, v: Any) -> Any:
        w = xarr.cumsum(v)[::-1] + i
        return w % xarr.max(abs(w)) + 1

    return lambda v: lax.fori_loop(0, count, step, v)


def recurrent(x: Any) -> Any:
    """A recurrent network of small width."""
    weights = xarr.asarray(np.arange(9).reshape(3, 3))

    def step(state: Any, row: Any) -> Any:
        new = (xarr.sum(weights * state[None, :], axis=1) + row) % 7
        return new, new

    return lax.scan(step, xarr.zeros(3, dtype="int64"), x)


def grow_until(limit: Any) -> Function:
    """A loop whose end depends on its arrays."""

    def function(x: Any) -> Any:
        def step(state: Any) -> Any:
            x, i = state
            return xarr.cumsum(x)[::-1], i + 1

        return lax.while_loop(lambda s: xarr.sum(s[0]) < limit, step, (x, 0))

    return function


def in_place(x: Any) -> Any:
    """Rows that are written into, until one is large."""

    def step(state: Any) -> Any:
        rows, i = state
        new = xarr.cumsum(rows[i])
        return rows.at[i + 1].set(new), i + 1

    return lax.while_loop(lambda s: (xarr.max(s[0]) < 300.0) & (s[1] < x.shape[0] - 1), step, (x, 0))


def loops_in_a_loop(x: Any) -> Any:
    """Counted loops, of points and of plans, in a loop until something holds."""

    def step(state: Any) -> Any:
        y, i = state
        y = lax.fori_loop(0, 3, lambda k, y: y * 2 + k, y)
        y = lax.fori_loop(0, 3, lambda k, y: xarr.cumsum(y)[::-1], y)
        return y, i + 1

    return lax.while_loop(lambda s: xarr.max(s[0]) < 10**6, step, (x, 0))


def swap_and_pass(x: Any) -> Any:
    """Values that are swapped, one that is only an argument, and a condition that is carried."""

    def step(state: Any) -> Any:
        _, a, b, total, fixed = state
        return xarr.sum(total) < 60, b, a, xarr.cumsum(total) + fixed, fixed

    return lax.while_loop(lambda s: s[0], step, (True, x, x * 2, x, x + 1))


def branch_in_a_loop(x: Any) -> Any:
    """A loop whose steps are one of two."""

    def step(state: Any) -> Any:
        x, i = state
        return lax.cond(i % 2 == 0, lambda x: x + 1, lambda x: x * 2, xarr.cumsum(x)), i + 1

    return lax.while_loop(lambda s: xarr.max(s[0]) < 10**6, step, (x, 0))


GRID: Final = RNG.normal(size=(9, 12))
#: Loops of groups or plans: functions, arrays, and how often the host reads a condition; the batches are of 1, 2, 4 …
#: pairs of iterations.
LOOPS: Final[dict[str, tuple[Function, list[Any], int]]] = {
    **{f"jacobi, {count} steps": (jacobi(count), [GRID], 0) for count in (0, 1, 2, 5, 8)},
    "jacobi, steps from an array": (jacobi(), [GRID, np.int64(7)], 3),
    "jacobi, no step": (jacobi(), [GRID, np.int64(0)], 1),
    "jacobi until little changes": (jacobi(), [GRID], 5),
    "life": (life, [RNG.integers(0, 2, (11, 7)).astype("int32")], 0),
    **{
        f"several groups, {count} steps": (several_groups(count), [np.arange(1, 40)], 0) for count in range(6)
    },
    "recurrent": (recurrent, [RNG.integers(0, 9, (7, 3))], 0),
    "until a sum is large": (grow_until(10**9), [np.arange(1, 9)], 3),
    "no iteration": (grow_until(-1), [np.arange(1, 9)], 1),
    "one iteration": (grow_until(37), [np.arange(1, 9)], 1),
    "in place": (in_place, [np.ones((9, 5))], 3),
    "nested": (loops_in_a_loop, [np.arange(6)], 2),
    "branch": (branch_in_a_loop, [np.arange(6)], 4),
    "passed on": (swap_and_pass, [np.arange(4.0)], 2),
}


@pytest.mark.sampled
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", LOOPS)
def test_loops_read_few_conditions(name: str, order: str, cupy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    function, arrays, reads = LOOPS[name]
    monkeypatch.setattr(device(cupy), "order", order)
    host.CALLS.clear()
    assert_as_on_the_cpu(function, arrays)
    assert conditions_read() == host.CALLS.total() == reads


@pytest.mark.thorough
@pytest.mark.parametrize("name", LOOPS)
def test_loops_have_no_race(name: str, cupy: Any) -> None:
    device(cupy).races = True
    function, arrays, _ = LOOPS[name]
    values(xarr.jit(function)(*map(xarr.asarray, arrays)))


def with_library(x: Any) -> Any:
    """A loop with a product, which cuBLAS computes."""
    return lax.while_loop(lambda s: xarr.sum(s) < 1000.0, lambda s: s @ (s * 0.0 + 1.0), x)


@pytest.mark.parametrize(
    ("function", "deterministic"), [(with_library, True), (in_place, False)], ids=["library", "atomics"]
)
def test_loops_with_what_no_condition_keeps_from_go_step_by_step(
    function: Function, deterministic: bool, cupy: Any
) -> None:
    host.CALLS.clear()
    with xarr.config(deterministic=deterministic):
        assert_as_on_the_cpu(function, [np.ones((6, 6))])
    assert set(host.CALLS) == {("stablehlo.while", host.CONTROL["loop"])}


def test_iterations_in_vain_are_no_more_than_those_that_were_needed(cupy: Any) -> None:
    launches = {}
    for count in (14, 15, 29):
        compiled = xarr.jit(jacobi())
        arrays = xarr.asarray(GRID), xarr.asarray(np.int64(count))
        compiled(*arrays).block_until_ready()
        before = device(cupy).launches
        compiled(*arrays).block_until_ready()
        launches[count] = device(cupy).launches - before
    # 1 + 2 + 4 + 8 pairs of iterations of two kernels each; the last iteration of 29 finds that it is the last.
    assert launches == {14: 60, 15: 60, 29: 60}


def count_launches(function: Function, x: Any, cupy: Any) -> int:
    """The kernels of a second call, in which nothing is downloaded."""
    compiled, x = xarr.jit(function), xarr.asarray(x)
    compiled(x).block_until_ready()
    before = device(cupy).launches, device(cupy).downloads
    compiled(x).block_until_ready()
    assert device(cupy).downloads == before[1]
    return int(device(cupy).launches - before[0])


def test_a_counted_loop_is_a_launch_a_step(cupy: Any) -> None:
    assert count_launches(jacobi(40), np.ones((60, 60)), cupy) == 40


def test_a_loop_in_which_little_is_done_is_one_kernel_of_one_block(
    cupy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The first iteration, all pairs behind it, and what is left over.
    assert count_launches(jacobi(1000), GRID, cupy) == 3
    in_the_loop = count_launches(lambda x: recurrent(x)[1], np.ones((101, 3), int), cupy)
    assert in_the_loop < 12
    text = next(text for text in device(cupy).texts if "xarr_loop" in text)
    assert "step < times" in text
    assert "__syncthreads();" in text
    monkeypatch.setattr(loop_commands, "MOST_TIMES", 10)
    assert count_launches(lambda x: recurrent(x)[1], np.ones((101, 3), int), cupy) == in_the_loop + 4
    monkeypatch.setattr(loop_commands, "MOST_WORK", 1)
    assert count_launches(lambda x: recurrent(x)[1], np.ones((101, 3), int), cupy) > in_the_loop + 40
    monkeypatch.setattr(loop_commands, "MOST_KERNELS", 1)
    assert count_launches(lambda x: recurrent(x)[1], np.ones((101, 3), int), cupy) > 300


@pytest.mark.parametrize("times", [19, 20, 21, 41, 60])
def test_loops_of_several_launches_do_each_iteration_once(
    times: int, cupy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop_commands, "MOST_TIMES", 5)
    assert_as_on_the_cpu(
        lambda x: lax.fori_loop(0, times, lambda k, s: lax.sort(s * -1 + k), x), [np.arange(5)]
    )


def test_the_commands_of_a_loop_do_not_grow_with_its_iterations(
    cupy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Recorded(Exception):
        """In place of a run."""

    def record(commands: Any, frame: Any) -> None:
        raise Recorded(len(commands))

    monkeypatch.setattr(engine, "run_all", record)
    function = xarr.jit(lambda x: lax.fori_loop(0, 10**12, lambda k, s: lax.sort(s * -1), x))
    with pytest.raises(Recorded, match=r"^\d$"):
        function(xarr.asarray(np.arange(5.0)))


def test_outside_of_jit_no_loop_is_compiled_for_its_shape(cupy: Any) -> None:
    np.asarray(recurrent(xarr.asarray(np.ones((50, 3), int)))[1])
    assert not any("xarr_loop" in text for text in device(cupy).texts)


@pytest.mark.parametrize("name", [name for name, (_, _, reads) in LOOPS.items() if not reads])
def test_counted_loops_as_launches(name: str, cupy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_commands, "MOST_BLOCKS", 0)
    device(cupy).races = True
    function, arrays, _ = LOOPS[name]
    assert_as_on_the_cpu(function, arrays)
    assert not any("xarr_loop" in text for text in device(cupy).texts)


@pytest.mark.parametrize("order", ORDERS)
def test_kernels_with_shared_memory_in_a_loop(order: str, cupy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def function(x: Any) -> Any:
        return lax.fori_loop(0, 9, lambda i, x: lax.cumsum(x[::-1]) % 9 + xarr.sum(x) + i, x)

    monkeypatch.setattr(device(cupy), "order", order)
    assert_as_on_the_cpu(function, [np.arange(900)])
    assert any("xarr_loop" in text and "__shared__" in text for text in device(cupy).texts)


def test_points_in_a_loop_that_is_one_kernel(cupy: Any) -> None:
    def step(k: Any, state: Any) -> Any:
        z, c = state
        _, z, halved, total = lax.while_loop(
            lambda t: t[0] < 5,
            lambda t: (t[0] + 1, t[1] * t[1] + t[2], t[2] * 0.5, t[3] + t[1]),
            (0, z, c, z),
        )
        return total * 0.25, halved + c

    rng = np.random.default_rng(0)
    assert_as_on_the_cpu(
        lambda z, c: lax.fori_loop(0, 11, step, (z, c)), [rng.normal(size=50), rng.normal(size=50)]
    )
    text = next(text for text in device(cupy).texts if "xarr_loop" in text)
    assert "const bool v1 = carry < 5;" in text


def test_a_loop_that_shares_more_memory_than_a_block_has_is_launches(
    cupy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop_commands, "shared_bytes", lambda calls: 2**20)
    assert_as_on_the_cpu(recurrent, [np.ones((9, 3), int)])
    assert not any("xarr_loop" in text for text in device(cupy).texts)


def test_results_over_a_donated_argument(cupy: Any) -> None:
    grid = RNG.normal(size=(80, 90))
    for count in (1, 2, 3):
        compiled = xarr.jit(jacobi(count), donate_argnums=0)
        plan = compiled.lower(xarr.asarray(grid)).stage("plan")
        assert any(plan.input_output_aliases(step) for step in plan.steps)
        result = compiled(xarr.asarray(grid))
        with xarr.use_backend("numpy"), xarr.config(fusion="compiled"):
            assert_same(result, xarr.jit(jacobi(count))(xarr.asarray(grid)))


@nvrtc.needed
@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("jacobi until little changes", "going[1]"),
        ("in place", "going[1]"),
        ("life", "xarr_loop"),
        ("recurrent", "xarr_loop"),
        ("several groups, 5 steps", "xarr_loop"),
    ],
)
def test_kernels_of_loops_compile(name: str, word: str, cupy: Any) -> None:
    function, arrays, _ = LOOPS[name]
    values(xarr.jit(function)(*map(xarr.asarray, arrays)))
    texts = [text for text in device(cupy).texts if word in text]
    assert texts
    for text in texts:
        check(text, ["sm_75", "sm_90"])


def test_shared_memory_of_kernels_is_added_up() -> None:
    calls = [
        KernelCall("k", (), 1, definition=text)
        for text in ("__shared__ double x[3];", "__shared__ int8 y[5];")
    ]
    assert shared_bytes(calls) == 29
    assert shared_bytes([]) == 0
