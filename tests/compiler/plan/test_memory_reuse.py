"""Donated arguments and dead intermediates whose memory results take, and the peak that follows."""

from __future__ import annotations

import threading
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import xarr
from tests.compare import assert_same
from tests.support.random_graphs import check, sample
from xarr import lax
from xarr.backend import get
from xarr.base import python_build
from xarr.base.host.memory import pool
from xarr.compiler.pipeline import lower, make_program
from xarr.compiler.plan.planner import peak, plan
from xarr.errors import DonationError
from xarr.ir.graph import Graph
from xarr_numpy.processor import PROCESSOR

pytest.importorskip("llvmlite")
pytestmark = [pytest.mark.implicit, pytest.mark.usefixtures("on_numpy")]

SIZE = 20_000
RNG = np.random.default_rng(21)


@pytest.fixture(autouse=True)
def compiled_loops() -> Iterator[None]:
    with xarr.config(fusion="compiled"):
        yield


Array = np.ndarray[Any, Any]


def address(x: xarr.Array) -> int:
    return int(x._node.value.ctypes.data)


def compute(array: Any) -> xarr.Array:
    result = xarr.asarray(array) + xarr.asarray(0, dtype=array.dtype)
    xarr.evaluate(result)
    return result


def smooth(u: Any) -> Any:
    return u.at[1:-1].set((u[:-2] + u[2:]) * 0.5)


IN_PLACE: dict[str, Callable[[Any], Any]] = {
    "a chain": lambda x: xarr.tanh(x) * 2 + 1,
    "an integer of as many bytes": lambda x: xarr.astype(x * 2, "int64"),
    "a native loop": lambda x: lax.fori_loop(0, 5, lambda i, s: s * 0.5 + i, x),
    "an array that a loop fills": lambda x: lax.fori_loop(
        0, SIZE, lambda i, s: lax.dynamic_update_index_in_dim(s, i * 0.5, i, 0), x
    ),
    "an element": lambda x: x.at[3].set(7.0),
    "updates one after the other": lambda x: x.at[3].set(7.0).at[5:9].set(1.0),
}


@pytest.mark.parametrize("name", IN_PLACE)
def test_a_donated_argument_becomes_the_result(name: str) -> None:
    function = IN_PLACE[name]
    values = np.linspace(-1, 1, SIZE)
    step = xarr.jit(function, donate_argnums=0)
    for _ in range(3):
        x = compute(values)
        before = address(x)
        y = step(x)
        assert address(y) == before
        with xarr.config(fusion="off"):
            wanted = np.asarray(function(xarr.asarray(values)))
        if y.dtype.kind == "i" or name != "a chain":
            assert_same(y, wanted)
        assert not np.asarray(y).flags.writeable


@pytest.mark.parametrize(
    "function",
    [lambda x: x + x[::-1], lambda x: xarr.sum(x) + x, smooth, lambda x: (x + 1)[1:], lambda x: x],
    ids=["reversed", "needed after its sum", "stencil", "view", "itself"],
)
def test_what_is_read_elsewhere_keeps_its_memory(function: Callable[[Any], Any]) -> None:
    values = np.linspace(1, 2, SIZE)
    step = xarr.jit(function, donate_argnums=0)
    for _ in range(2):
        with xarr.config(fusion="off"):
            wanted = np.asarray(function(xarr.asarray(values)))
        assert np.allclose(np.asarray(step(compute(values))), wanted, rtol=1e-13, atol=0)


def test_two_results_take_two_arguments() -> None:
    step = xarr.jit(lambda x, v: (x + v * 0.1, v - x * 0.1), donate_argnums=(0, 1))
    x, v = compute(np.ones(SIZE)), compute(np.zeros(SIZE))
    for _ in range(3):
        before = {address(x), address(v)}
        x, v = step(x, v)
        assert {address(x), address(v)} == before
    wanted = [np.ones(SIZE), np.zeros(SIZE)]
    for _ in range(3):
        wanted = [wanted[0] + wanted[1] * 0.1, wanted[1] - wanted[0] * 0.1]
    assert_same(x, wanted[0])
    assert_same(v, wanted[1])


def test_a_free_threaded_python_keeps_donated_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(python_build, "is_free_threaded", lambda: True)
    step = xarr.jit(lambda x: x * 2 + 1, donate_argnums=0)
    for _ in range(2):
        x = compute(np.ones(SIZE))
        memory = x._node.value
        assert_same(step(x), np.full(SIZE, 3.0))
        assert_same(memory, np.ones(SIZE))
        with pytest.raises(DonationError):
            float(x[0])


STEP = xarr.jit(lambda x: x * 2 + 1, donate_argnums=0)


def _as_numpy(x: xarr.Array) -> tuple[Any, Callable[[Any], Any]]:
    return np.asarray(x), lambda view: view


def _as_view(x: xarr.Array) -> tuple[Any, Callable[[Any], Any]]:
    return np.asarray(x)[5:], lambda view: np.concatenate([np.ones(5), view])


def _as_buffer(x: xarr.Array) -> tuple[Any, Callable[[Any], Any]]:
    return memoryview(np.asarray(x)), np.asarray


def _as_other_array(x: xarr.Array) -> tuple[Any, Callable[[Any], Any]]:
    other = x.copy()
    other._node = x._node
    return other, np.asarray


def _give_as_recorded(x: xarr.Array) -> tuple[Any, Callable[[Any], Any]]:
    return x * 1, np.asarray


@pytest.mark.parametrize("look", [_as_numpy, _as_view, _as_buffer, _as_other_array, _give_as_recorded])
def test_who_looks_at_a_donated_array_sees_no_change(look: Callable[..., Any]) -> None:
    for _ in range(3):
        x = compute(np.ones(SIZE))
        view, values = look(x)
        y = STEP(x)
        assert_same(y, np.full(SIZE, 3.0))
        assert_same(np.asarray(values(view)), np.ones(SIZE))


def test_memory_of_the_caller_is_never_written() -> None:
    host = np.ones(SIZE)
    for given_array in (xarr.asarray(host, copy=False), xarr.asarray(host), host):
        for _ in range(2):
            if isinstance(given_array, xarr.Array):
                x = given_array.copy()
                xarr.evaluate(x)
            assert_same(STEP(given_array if given_array is host else x), np.full(SIZE, 3.0))
            assert (host == 1).all()


def test_the_error_names_the_call() -> None:
    x = compute(np.ones(SIZE))
    y = STEP(x)
    STEP(y)  # the line that the message names
    with pytest.raises(DonationError, match=r"this time at (.|\n)*STEP\(y\)"):
        np.asarray(y)


def test_a_call_that_fails_has_taken_its_argument() -> None:
    def refuse(*arrays: Any) -> Any:
        raise RuntimeError("no")

    with xarr.config(fusion="compiled"):
        step = xarr.jit(lambda x: x * 2, donate_argnums=0)
        step(compute(np.ones(SIZE)))
        traced = next(iter(step._cache.values()))
        object.__setattr__(traced, "_compiled", replace(traced.compile(), program=refuse))
        x = compute(np.ones(SIZE))
        with pytest.raises(RuntimeError, match="no"):
            traced.run([x])
    with pytest.raises(DonationError):
        np.asarray(x)


@pytest.mark.parametrize("is_evaluated", [False, True])
def test_an_array_that_is_another_argument_too_is_not_written_over(is_evaluated: bool) -> None:
    step = xarr.jit(lambda x, y: (x.at[0].set(5.0), y * 1), donate_argnums=0)
    for _ in range(3):
        x = xarr.zeros(SIZE) + 1
        if is_evaluated:
            xarr.evaluate(x)
        first, second = step(x, x)
        assert_same(first[:2], np.array([5.0, 1.0]))
        assert_same(second, np.ones(SIZE))


def test_threads_do_not_share_a_donated_array() -> None:
    results: list[Array] = []

    def work(start: float) -> None:
        x = compute(np.full(SIZE, start))
        for _ in range(20):
            x = STEP(x)
        results.append(np.asarray(x))

    threads = [threading.Thread(target=work, args=(float(k),)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(float(each[0]) for each in results) == [2.0**20 * k + 2.0**20 - 1 for k in range(4)]
    assert all((each == each[0]).all() for each in results)


# --- within a program ------------------------------------------------------------------------------------


def layers(x: Any, w: Any) -> Any:
    for _ in range(4):
        x = xarr.tanh(xarr.matmul(x, w) + 1)
    return x


PROGRAMS: dict[str, tuple[Callable[..., Any], list[str]]] = {
    "chain": (lambda x: xarr.exp(-x * x) * 2, ["f64[200,200]"]),
    "layers": (layers, ["f64[200,200]", "f64[200,200]"]),
    "softmax": (lambda x: xarr.exp(x) / xarr.sum(xarr.exp(x), axis=1, keepdims=True), ["f32[200,200]"]),
    "two results": (lambda x: (xarr.sin(x), xarr.cos(x) * xarr.sum(x)), ["f64[200,200]"]),
    "one early and one late": (
        lambda x, y: (xarr.exp(x) @ y) * xarr.sum(xarr.sin(x)) + xarr.sqrt(x) @ y,
        ["f64[200,200]", "f64[200,200]"],
    ),
    "stencils": (lambda u: smooth(smooth(smooth(u))), ["f64[20000]"]),
    "sorted": (lambda x: xarr.sort(x * 2, axis=0) + xarr.sort(-x, axis=1), ["f64[200,200]"]),
    "loop": (lambda x: lax.fori_loop(0, 3, lambda i, s: xarr.sin(s) + s, x), ["f64[20000]"]),
}


def stages(function: Callable[..., Any], *types: str) -> tuple[Graph, Graph]:
    with xarr.config(fusion="compiled"):
        lowered = xarr.jit(function).lower(*types)
        plain, fused = lowered.stage("decomposed"), lowered.stage("fused")
    assert isinstance(plain, Graph) and isinstance(fused, Graph)
    return plain, fused


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_peak_is_never_above_that_of_numpy(name: str) -> None:
    function, types = PROGRAMS[name]
    plain, fused = stages(function, *types)
    assert peak(fused).total <= peak(plain, overwrites=False).total


#: One that runs point by point, and one that repeats a group.
STEPS: dict[str, Callable[[Any, Any], Any]] = {
    "points": lambda u, held: u * 0.5 + held,
    "rows": lambda u, held: u.at[1:-1, 1:-1].set(u[:-2, 1:-1] + u[2:, 1:-1] + held[1:-1, 1:-1]),
}


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
@pytest.mark.parametrize("steps", [0, 3])
def test_what_a_loop_carries_through_is_not_written_over(step: Callable[..., Any], steps: int) -> None:
    def program(x: Any, count: Any) -> Any:
        held = x * 2 + 1
        u, same = lax.fori_loop(0, count, lambda i, s: (step(*s), s[1]), (x, held))
        return held * 2 + u[0], same

    x = np.linspace(0, 1, SIZE).reshape(100, 200)
    with xarr.config(fusion="off"):
        wanted = program(xarr.asarray(x), xarr.asarray(steps))
        xarr.evaluate(*wanted)
    for donated in ((), (0,)):
        results = xarr.jit(program, donate_argnums=donated)(compute(x), compute(np.array(steps)))
        for one, other in zip(results, wanted, strict=True):
            assert_same(one, other)


def test_what_a_kept_tuple_holds_is_not_written_over() -> None:
    def stack(x: Any) -> tuple[Any, Any]:
        last, rows = lax.scan(lambda carry, row: (carry - row, carry), x[0], x)
        return x + rows, rows * 2 - last

    x = np.linspace(0, 1, SIZE).reshape(200, 100)
    with xarr.config(fusion="off"):
        wanted = stack(xarr.asarray(x))
        xarr.evaluate(*wanted)
    for number in (0, 1):
        results = stack(compute(x))
        xarr.evaluate(results[number])  # the loop is kept for the other one
        for one, other in zip(results, wanted, strict=True):
            assert_same(one, other)


def test_an_activation_is_written_over_its_product() -> None:
    plain, fused = stages(*(PROGRAMS["sorted"][0], *PROGRAMS["sorted"][1]))
    made = plan(fused)
    aliases = [made.input_output_aliases(step) for step in made.steps]
    assert all(pair[0] == 0 for pairs in aliases for pair in pairs)
    assert peak(fused).total <= peak(plain, overwrites=False).total


def test_the_peak_is_that_of_the_process() -> None:
    """The stage says what the program takes, to a tenth."""
    function = xarr.jit(lambda x: xarr.tanh((xarr.tanh(x @ x.T) + 1) @ x) * 3)
    x = compute(np.linspace(0, 1, 50_000).reshape(250, 200))
    function(x)
    tracemalloc.start()
    function(x)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    with xarr.config(fusion="compiled"):
        fused = function.lower(x).stage("fused")
    assert isinstance(fused, Graph)
    said = peak(fused)
    assert most <= 1.1 * (said.total - said.arguments)


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_random_programs_need_no_more_than_numpy(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from xarr_numpy.compiled import schedule

    forgetful = replace(schedule.SCHEDULE, target=PROCESSOR.replace(spare_bytes=0, added_bytes=0))
    monkeypatch.setattr(schedule, "SCHEDULE", forgetful)
    for seed in range(first, first + 10):
        drawing, backend = sample(Random(seed), most=4096), get("numpy")
        with xarr.config(fusion="compiled"):
            plain, fused = (lower(drawing.graph, backend, name) for name in ("decomposed", "fused"))
        assert peak(fused).total <= peak(plain, overwrites=False).total


def leapfrog(i: Any, state: Any) -> Any:
    """A wave between borders that are open: the grid before becomes the one of now."""
    before, now = state
    after = smooth(now) * 2 - before
    for edge, inner in ((0, 1), (-1, -2)):
        after = after.at[edge].set(now[inner]).at[:, edge].set(now[:, inner])
    return now, after


def relax(i: Any, state: Any) -> Any:
    """A grid with its border, and what is left of it, which needs grids that are gone when the results are written."""
    x, rest = state
    rows, columns = (xarr.cumsum(x, axis=axis) for axis in (0, 1))
    rest = xarr.flip(rows) * 0.5 + xarr.flip(columns)
    x = (xarr.cumsum(rest, axis=0) - x).at[0].set(0.0)
    return x.at[-1].set(x[1]).at[:, 0].set(x[:, 2]), rest


def exchange(i: Any, state: Any) -> Any:
    x, y = state
    return y * xarr.sum(x), x


LOOPS = {"leapfrog": leapfrog, "relax": relax, "exchange": exchange}


@pytest.mark.parametrize("name", LOOPS)
def test_loops_take_what_the_plan_says(name: str) -> None:
    """But for rows and numbers that are kept beside grids."""
    function = xarr.jit(lambda x, y: lax.fori_loop(0, 5, LOOPS[name], (x, y)))
    x, y = (compute(np.linspace(0, 1, 400 * 500).reshape(400, 500) * k) for k in (1, 2))
    text = str(function.lower(x, y).stage("program"))
    assert "while_loop" not in text
    peak = function.lower(x, y).stage("plan").layout.peak  # type: ignore[union-attr]
    xarr.evaluate(*function(x, y))
    pool.clear()
    tracemalloc.start()
    xarr.evaluate(*function(x, y))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most <= peak.total - peak.arguments + PROCESSOR.min_reused_bytes
    with xarr.config(fusion="off"):
        wanted = lax.fori_loop(0, 5, LOOPS[name], (x, y))
    for one, other in zip(function(x, y), wanted, strict=True):
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-12)


@pytest.mark.parametrize(("rows", "calls_back"), [(40, True), (2000, False)])
def test_what_python_makes_when_it_is_called_back_counts(rows: int, calls_back: bool) -> None:
    """Large results of a sort are not copied to where the loop wants them: then the loop is stepped by Python."""
    function = xarr.jit(lambda x: lax.fori_loop(0, 3, lambda i, c: xarr.sort(xarr.sin(c) + i) * 0.5, x))
    x = compute(np.linspace(0, 1, rows * 500).reshape(rows, 500))
    made = function.lower(x).stage("plan")
    peak = made.layout.peak  # type: ignore[union-attr]
    xarr.evaluate(function(x))
    pool.clear()
    tracemalloc.start()
    xarr.evaluate(function(x))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most <= peak.total - peak.arguments + PROCESSOR.added_bytes
    assert ("called back in Python" in str(made)) == calls_back


def test_a_loop_that_would_take_more_memory_stays_in_python() -> None:
    def step(i: Any, state: Any) -> Any:
        # In machine code the columns lie in a copy while they are sorted, and what Python sorted is copied again.
        x, total = state
        return x * 0.5, xarr.sum(xarr.sort(x.T), axis=0) + total

    function = xarr.jit(lambda x, y: lax.fori_loop(0, 3, step, (x, y)))
    for size, is_native in ((400, True), (900, False)):
        text = str(function.lower(f"f64[{size},{size}]", f"f64[{size}]").stage("plan"))
        assert ("less memory" not in text) == is_native
        assert is_native or "in Python: takes 12.8 MB less memory" in text


def updates_beside(x: Any) -> Any:
    x = x * 2
    for edge, inner in ((0, 1), (-1, -2)):
        x = x.at[edge].set(x[inner])
        x = x.at[:, edge].set(x[:, inner])
    return x


def test_an_update_by_another_part_of_an_array_is_written_in_place() -> None:
    _, fused = stages(updates_beside, "f64[200,200]")
    made = plan(fused)
    updates = [step for step in made.steps if step.word == "update"]
    assert len(updates) == 4
    assert all(made.input_output_aliases(step) == ((0, 0),) for step in updates)
    x = RNG.normal(size=(200, 200))
    with xarr.config(fusion="off"):
        wanted = updates_beside(xarr.asarray(x))
    assert_same(xarr.jit(updates_beside)(x), wanted)


def test_an_update_by_a_part_that_it_writes_to_is_not() -> None:
    def overlapping(x: Any) -> Any:
        return (x * 2).at[1:].set((x * 2)[:-1])

    for program in (overlapping, lambda x: lax.dynamic_update_slice(x * 2, (x * 2)[:50], (30, 0))):
        x = RNG.normal(size=(200, 200))
        with xarr.config(fusion="off"):
            wanted = program(xarr.asarray(x))
        assert_same(xarr.jit(program)(x), wanted)


def test_a_few_more_bytes_beside_large_arrays_keep_no_group_away() -> None:
    def walk(moves: xarr.Array, draws: xarr.Array) -> Any:
        def step(carry: Any, drawn: Any) -> Any:
            (x, now, total), (move, draw) = carry, drawn
            proposed = x + 0.5 * move
            new = (1 - proposed[:, 0]) ** 2 / 2 + 2 * (proposed[:, 1] - proposed[:, 0] ** 2) ** 2
            accepted = draw < now - new
            x = xarr.where(accepted[:, None], proposed, x)
            return (x, xarr.where(accepted, new, now), total + x), None

        zeros = xarr.zeros((32, 2))
        return xarr.lax.scan(step, (zeros, xarr.full(32, 0.5), zeros), (moves, draws))[0][2]

    counts = [
        str(xarr.lower(walk, f"f64[{steps},32,2]", f"f64[{steps},32]").stage("fused")).count("call @fusion")
        for steps in (300, 3000)  # the latter of more than `spare_bytes`
    ]
    assert counts[0] == counts[1] > 3


@given(st.integers(0, 2**32))
@settings(max_examples=25, deadline=None)
def test_random_programs_write_over_arguments(seed: int) -> None:
    """All arguments are given away: the results are the same."""
    drawing = sample(Random(seed), most=40_000)
    backend = get("numpy")
    with xarr.config(fusion="off"):
        wanted = make_program(drawing.graph, backend).program(*drawing.inputs)
    with xarr.config(fusion="compiled"):
        graph = lower(drawing.graph, backend)
        program = backend.compile_owning(graph, range(len(graph.parameters)))
        results = program(*[np.array(array) for array in drawing.inputs])
    check([np.asarray(each) for each in results], [np.asarray(each) for each in wanted], drawing.bounds)
