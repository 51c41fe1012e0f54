"""The commands of plans: whether they are launches of kernels alone, what is printed of them, what loops ask for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import xarr
from tests.cuda.emulator.driver import EmulatedDriver
from tests.cuda.test_loops import (
    LOOPS,
    POINTS,
    RNG,
    assert_as_on_the_cpu,
    branch_in_a_loop,
    grow_until,
    jacobi,
    loops_in_a_loop,
    mandelbrot,
    newton,
    with_library,
)
from tests.support.graphs import CASES
from xarr import lax
from xarr.compiler.plan.planner import plan_for
from xarr.compiler.plan.program_plan import Plan
from xarr.ir.graph import Graph
from xarr_cupy import host, libraries
from xarr_cupy.runtime import loop_commands
from xarr_cupy.runtime.command_builder import ARENA, CodeOptions, CommandList, ProgramMemory
from xarr_cupy.runtime.commands import Commands, Launching
from xarr_cupy.runtime.launches import KernelLaunch, Location
from xarr_cupy.runtime.loop_commands import ProgramCommands, launches_alone
from xarr_cupy.runtime.repetitions import Repeating

pytestmark = pytest.mark.implicit


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no loop become one kernel, so that each is seen among the commands, and compile nothing: none runs."""
    monkeypatch.setattr(loop_commands, "MOST_KERNELS", -1)
    monkeypatch.setattr(EmulatedDriver, "load", lambda self, text: text)


def commands_of(plan: Plan, backend: Any) -> Commands:
    """The commands of a plan in which copies are kernels too."""
    device = backend._engine
    memory, out = ProgramMemory(plan, device), CommandList(device)
    own = {buffer.number: memory.result(index) for index, buffer in enumerate(memory.results)}
    options = CodeOptions(backend.schedule().target, has_kernels_alone=True)
    ProgramCommands(memory, options, out, plan, Location(ARENA), memory.arguments, own).add_all()
    return out.commands()


def are_launches(commands: Commands, repeats: bool) -> bool:
    """Whether commands are nothing but launches of kernels, or such that are repeated."""
    return all(_is_launch(each, repeats) for each in commands)


def _is_launch(command: Any, repeats: bool) -> bool:
    match command:
        case Launching():
            return all(isinstance(each, KernelLaunch) for each in command.prepared)
        case Repeating():
            return repeats and are_launches(command.commands, repeats)
    return False


def plans_of(graph: Graph, backend: Any) -> Iterator[Plan]:
    """The plan of a graph, and those inside of it."""
    return plan_for(backend.fuse(graph), backend).walk()


def answers(plan: Plan, backend: Any) -> list[tuple[bool, bool]]:
    """Pairs of what is said of a plan and what it becomes, without loops that repeat launches and with them."""
    target = backend.schedule().target
    commands = commands_of(plan, backend)
    return [
        (launches_alone(plan, target, repeats), are_launches(commands, repeats)) for repeats in (False, True)
    ]


@pytest.mark.usefixtures("listed")
@pytest.mark.parametrize("name", CASES)
def test_plans_of_each_operation(name: str, cupy: Any) -> None:
    for plan in plans_of(CASES[name].graph, cupy):
        for said, seen in answers(plan, cupy):
            assert said == seen, plan


@pytest.mark.usefixtures("listed")
@pytest.mark.parametrize("name", [*POINTS, *LOOPS])
def test_plans_of_loops(name: str, cupy: Any) -> None:
    function, arrays, _ = {**POINTS, **LOOPS}[name]
    plan = xarr.jit(function).lower(*map(xarr.asarray, arrays)).stage("plan")
    for each in plan.walk():
        for said, seen in answers(each, cupy):
            assert said == seen, each


def scatter(x: Any) -> Any:
    return x.at[xarr.astype(x, "int64")].add(x, mode="drop")


#: Functions, arrays, and whether they are launches without loops that repeat some, and with such loops.
SAID: dict[str, tuple[Callable[..., Any], list[Any], tuple[bool, bool]]] = {
    "groups": (lambda x: xarr.cumsum(x)[::-1], [np.arange(9)], (True, True)),
    "a product by cuBLAS": (lambda x: x @ x, [np.ones((3, 3))], (False, False)),
    "a product by tiles": (lambda x: x @ x, [np.ones((3, 3), "int32")], (True, True)),
    "a sort by CUB": (lambda x: lax.sort(x), [np.zeros(2**16)], (False, False)),
    "a short sort": (lambda x: lax.sort(x), [np.zeros(9)], (True, True)),
    "a scatter, sorted by CUB": (scatter, [np.zeros(2**16)], (False, False)),
    "a step of the host": (lambda x: lax.linalg.cholesky(x), [np.ones((2, 2), "float16")], (False, False)),
    "a check of indices": (lambda x, i: x[i], [np.ones(9), np.arange(3)], (True, True)),
    "no iteration": (jacobi(0), [np.ones((9, 9))], (True, True)),
    "two iterations": (jacobi(2), [np.ones((9, 9))], (True, True)),
    "three iterations": (jacobi(3), [np.ones((9, 9))], (False, True)),
    "an unknown number of them": (grow_until(99), [np.arange(9)], (False, False)),
    "points that count": (mandelbrot(False), [np.ones(9) + 1j], (True, True)),
    "points until all are done": (newton, [np.ones(9, "f4")], (False, False)),
    "a branch": (
        lambda n, x: lax.cond(n > 2, lambda x: xarr.cumsum(x), lambda x: xarr.flip(xarr.cumsum(x * 2)), x),
        [3, np.arange(9)],
        (False, False),
    ),
    "a branch in a loop": (branch_in_a_loop, [np.arange(6)], (False, False)),
    "loops in a loop": (loops_in_a_loop, [np.arange(6)], (False, False)),
    "a library in a loop": (with_library, [np.ones((6, 6))], (False, False)),
}


@pytest.mark.usefixtures("listed")
@pytest.mark.parametrize("name", SAID)
def test_what_is_said_of_plans(name: str, cupy: Any) -> None:
    function, arrays, wanted = SAID[name]
    plan = xarr.jit(function).lower(*map(xarr.asarray, arrays)).stage("plan")
    assert answers(plan, cupy) == [(each, each) for each in wanted]


@pytest.mark.parametrize("name", [*POINTS, *LOOPS])
def test_what_is_printed_is_what_is_loaded(name: str, cupy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []
    monkeypatch.setattr(EmulatedDriver, "load", lambda self, text: loaded.append(text) or text)
    function, arrays, _ = {**POINTS, **LOOPS}[name]
    program = xarr.jit(function).lower(*map(xarr.asarray, arrays)).stage("program")
    printed = "\n".join([line for line in program.text.splitlines() if not line.startswith("// ")])
    assert not loaded
    assert program._loaded is not None
    launched = [each for each in dict.fromkeys(loaded) if each.rstrip() in printed]
    assert printed.count("__global__") == sum(text.count("__global__") for text in launched)
    # Others are loaded only to see whether they fit in one block.
    assert all("xarr_loop" in printed for each in loaded if each not in launched)


def test_fills_that_nobody_reads_are_not_printed(cupy: Any) -> None:
    def function(c: Any) -> Any:
        return mandelbrot(False)(c)[2]

    text = xarr.jit(function).lower(np.ones(40) + 1j).stage("program").text
    assert text.count("__global__") == 1 and "broadcast_in_dim" not in text.partition("extern")[2]
    assert "not launched" not in text


def test_scatters_sorted_by_a_library_go_in_batches(cupy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libraries, "MIN_SORTED", 64)
    index, updates = RNG.integers(0, 9, 90), RNG.normal(size=90)

    def function(x: Any, count: Any) -> Any:
        def step(state: Any) -> Any:
            x, i = state
            return x.at[index].add(updates * xarr.max(x), mode="drop") * 0.125, i + 1

        return lax.while_loop(lambda s: (s[1] < count) & (xarr.sum(abs(s[0])) > -1), step, (x, 0))

    sorts: list[Any] = []
    sort = libraries.sort_in_place
    monkeypatch.setattr(libraries, "sort_in_place", lambda *args: sorts.append(1) or sort(*args))
    for count, reads, in_vain in ((0, 1, 2), (1, 1, 1), (5, 3, 1), (101, 41, 1)):
        host.CALLS.clear()
        sorts.clear()
        assert_as_on_the_cpu(function, [np.ones(9), np.int64(count)])
        assert {("stablehlo.while", host.BATCHES): reads} == host.CALLS
        assert len(sorts) == count + in_vain


def test_a_sort_of_what_a_loop_carries_is_done_only_while_it_goes_on(
    cupy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(libraries, "MIN_SORTED", 64)
    host.CALLS.clear()
    assert_as_on_the_cpu(
        lambda x: lax.while_loop(lambda x: x[0] < 9, lambda x: lax.sort(x[::-1] + 1), x), [np.arange(90) % 7]
    )
    assert set(host.CALLS) == {("stablehlo.while", host.CONTROL["loop"])}
