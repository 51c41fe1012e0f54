"""Plans: what they say is right, since a small engine that follows them gives the program's results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.util import find_spec
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import xarr
from tests.support.graphs import CASES, graph, node, tensor
from tests.support.plan_engine import PlanRun, flat_results, run_plan
from tests.support.point_engine import run_points
from tests.support.random_graphs import sample
from xarr import lax
from xarr.backend import get
from xarr.compiler.pipeline import lower
from xarr.compiler.plan.arena import ALIGNMENT, Arena, aligned_size
from xarr.compiler.plan.costs import Cost
from xarr.compiler.plan.layout import Workspace
from xarr.compiler.plan.planner import peak, plan
from xarr.compiler.plan.program_plan import (
    Branch,
    Copy,
    Launch,
    LaunchLoop,
    LibraryCall,
    LoopStep,
    Plan,
    PlanBuffer,
    PlanCall,
    Step,
    View,
)
from xarr.compiler.plan.verifier import PlanError, verify
from xarr.ir import ops
from xarr.ir.graph import Graph, Node

pytestmark = pytest.mark.implicit

F32 = np.dtype(np.float32)
ENGINES = [
    "off",
    pytest.param("compiled", marks=pytest.mark.skipif(not find_spec("llvmlite"), reason="needs llvmlite")),
]


def lower_graph(graph: Graph, engine: str) -> Graph:
    with xarr.config(fusion=engine):
        return lower(graph, get("numpy"))


def both(
    fused: Graph, engine: str, inputs: Any, donated: tuple[int, ...] = ()
) -> tuple[list[Any], list[Any]]:
    """The results of NumPy's program, and of its plan as the small engine runs it."""
    with xarr.config(fusion=engine):
        wanted = flat_results(get("numpy").compile(fused)(*inputs))
        made = verify(plan(fused, donated=donated, views=False))
        return wanted, list(run_plan(made, *[np.array(each) for each in inputs]))


def assert_equal_bits(wanted: list[Any], results: list[Any]) -> None:
    for one, other in zip(wanted, results, strict=True):
        assert np.asarray(one).tobytes() == other.tobytes()


# --- plans of programs -----------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
@given(st.integers(0, 2**32))
@settings(max_examples=15, deadline=None)
def test_random_programs_run_by_their_plan(engine: str, seed: int) -> None:
    """Every argument is donated: each buffer is written before it is read, and no memory is taken too early."""
    program = sample(Random(seed), most=40_000)
    fused = lower_graph(program.graph, engine)
    assert_equal_bits(*both(fused, engine, program.inputs, tuple(range(len(program.inputs)))))
    verify(plan(fused, donated=range(len(program.inputs))))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", CASES)
def test_every_operation_has_a_step(name: str, engine: str) -> None:
    case = CASES[name]
    fused = lower_graph(case.graph, engine)
    verify(plan(fused))
    assert_equal_bits(*both(fused, engine, case.inputs))


def state_machine(x: Any) -> Any:
    """A loop that swaps two values, sorts one, writes into one, and leaves one as it is."""

    def body(state: Any) -> Any:
        i, a, b, rows, fixed = state
        return i + 1, b, xarr.sort(a) + fixed, rows.at[i].set(a[0]), fixed

    rows = xarr.zeros((5, *x.shape[1:])) + x[0]
    results = lax.while_loop(lambda s: s[0] < 5, body, (0, x, x * 2, rows, x + 1))
    return *results[1:], rows


CONTROL: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "loop": (state_machine, ("f64[6,40]",)),
    "loop without an iteration": (
        lambda x: lax.while_loop(
            lambda s: s[0] < 0, lambda s: (s[0] + 1, xarr.sort(s[1]), s[2].at[0].set(1)), (0, x, x)
        ),
        ("f64[9]",),
    ),
    "branches": (
        lambda i, x: lax.switch(i, [lambda x: x, lambda x: xarr.sort(x) @ x, lambda x: x * 2], x) + x,
        ("s32[]", "f64[7,7]"),
    ),
    "condition": (
        lambda x: lax.cond(x[0, 0] > 0, lambda x: (x, x[0]), lambda x: (-x, x[1]), x),
        ("f64[7,7]",),
    ),
    "long loop of large rows": (
        lambda x: lax.fori_loop(0, 3, lambda i, s: s.at[i].set(xarr.sort(s[i + 1]) * 2), x * 2),
        ("f64[5,9000]",),
    ),
    "functions": (lambda x: xarr.jit(lambda y: (xarr.sort(y), y))(x)[0] * 2, ("f64[20]",)),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", CONTROL)
def test_plans_inside_of_steps_run_in_the_workspace(name: str, engine: str) -> None:
    function, types = CONTROL[name]
    random = np.random.default_rng(7)
    with xarr.config(fusion=engine):
        stage = xarr.lower(function, *types)
    fused = lower_graph(stage.graph, engine)
    for attempt in range(3):
        inputs = [
            np.asarray(attempt - 1, np.int32) if type == "s32[]" else random.normal(size=each.shape)
            for type, each in zip(types, fused.parameters, strict=True)
        ]
        assert_equal_bits(*both(fused, engine, inputs))


@pytest.mark.parametrize("first", range(0, 40, 10))
@pytest.mark.parametrize("engine", ENGINES)
def test_the_peak_is_at_most_the_sum_of_all_arrays(first: int, engine: str) -> None:
    for seed in range(first, first + 10):
        fused = lower_graph(sample(Random(seed), most=4096).graph, engine)
        made = plan(fused)
        own = [each for each in made.buffers if each.base is None and each.constant is None]
        assert made.layout.peak.arguments <= made.layout.peak.total <= sum(each.type.nbytes for each in own)
        assert peak(fused) == made.layout.peak


def test_an_arena_is_used_again() -> None:
    def chain(x: Node) -> Node:
        for _ in range(100):
            x = node(ops.Exponential(), x)
        return x

    made = plan(graph(chain, tensor(F32, 1000)))
    assert len(made.steps) == 100
    assert made.layout.arena == 2 * aligned_size(4000)
    assert made.layout.peak.total == 4000 * 3


def test_a_donated_argument_is_written_over() -> None:
    pytest.importorskip("llvmlite")
    fused = lower_graph(xarr.lower(lambda x: xarr.exp(x) * 2, "f64[10000]").graph, "compiled")
    (step,) = plan(fused, donated=(0,)).steps
    assert isinstance(step, Launch)
    assert plan(fused, donated=(0,)).input_output_aliases(step) == ((0, 0),)
    assert plan(fused).input_output_aliases(step) == ()


def test_a_loop_copies_what_others_need_and_nothing_else() -> None:
    def program(x: Any, keep: bool) -> Any:
        rows = x.at[0].set(1.0)
        result = lax.fori_loop(0, 3, lambda i, s: s.at[i].set(lax.sort(x[i])), rows)
        return (result, rows) if keep else result

    for keep in (False, True):
        fused = lower_graph(xarr.lower(lambda x, keep=keep: program(x, keep), "f64[5,9000]").graph, "off")
        made = plan(fused)
        assert sum(isinstance(step, Copy) for step in made.steps) == keep
        (loop,) = [step for step in made.steps if isinstance(step, LoopStep)]
        assert [loop.spares[k] for k in loop.body.donated] == [None]


def test_a_loop_copies_arguments_even_if_they_were_donated() -> None:
    """The caller may not have been able to give them away."""

    def program(x: Any) -> Any:
        return lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1].at[s[0]].set(s[0] * 5)), (0, x))[
            1
        ]

    fused = lower_graph(xarr.lower(program, "s64[9000]").graph, "off")
    made = plan(fused, donated=(0,))
    assert [type(step) for step in made.steps[-2:]] == [Copy, LoopStep]
    values = np.arange(9000)
    values.flags.writeable = False
    (result,) = get("numpy").compile_owning(fused, (0,))(values)
    assert (values == np.arange(9000)).all() and (result[:4] == [0, 5, 10, 3]).all()


def test_native_loops_say_which_results_are_wanted() -> None:
    pytest.importorskip("llvmlite")
    with xarr.config(fusion="compiled"):
        fused = (
            xarr.jit(lambda x: lax.fori_loop(0, 5, lambda i, s: (s[0] * 2, s[1] + s[0]), (x, x))[1])
            .lower("f64[30]")
            .stage("fused")
        )
    assert isinstance(fused, Graph)
    made = plan(fused)
    (loop,) = [step for step in made.steps if isinstance(step, LaunchLoop)]
    assert [made.is_used(number) for number in loop.outputs].count(True) == 1


POINTS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "counted": (
        lambda x: lax.fori_loop(0, 5, lambda i, s: (s[0] * 2, s[1] + s[0]), (x, x + 1))[1],
        ("f64[30]",),
    ),
    "until each mask is false": (
        lambda x: lax.while_loop(
            lambda s: (s[0] < 40) & xarr.any(xarr.abs(s[1]) < 2),
            lambda s: (s[0] + 1, xarr.where(xarr.abs(s[1]) < 2, s[1] * s[1] + x, s[1])),
            (0, x * 0),
        ),
        ("f64[30]",),
    ),
    "rows of a table": (
        lambda x: lax.fori_loop(0, 4, lambda i, s: (s[0] + x[i], s[1].at[i].set(s[0] / 2)), (x[0], x * 2)),
        ("f64[6,30]",),
    ),
    "scalars": (lambda x: lax.fori_loop(0, 7, lambda i, s: s * 3 - i, x), ("s64[]",)),
}


@pytest.mark.parametrize("name", POINTS)
def test_native_loops_run_point_by_point_from_what_the_plan_says(name: str) -> None:
    pytest.importorskip("llvmlite")
    function, types = POINTS[name]
    with xarr.config(fusion="compiled"):
        lowered = xarr.jit(function).lower(*types)
        fused = lowered.stage("fused")
        assert isinstance(fused, Graph)
        random = np.random.default_rng(3)
        inputs = [
            np.asarray(random.normal(size=node.shape) * 1.5).astype(node.dtype) for node in fused.parameters
        ]
        wanted = get("numpy").compile(fused)(*inputs)

    class Run(PlanRun):
        def compute(self, step: Step, inputs: list[Any]) -> Any:
            return run_points(step, inputs) if isinstance(step, LaunchLoop) else super().compute(step, inputs)

    plain = verify(plan(fused, views=False, schedule=get("numpy").schedule))
    assert any(isinstance(step, LaunchLoop) for step in plain.steps)
    assert_equal_bits(
        flat_results(wanted), list(Run(plain, inputs, np.empty(plain.layout.arena, np.uint8)).results())
    )


# --- the arena -------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 300)), max_size=60))
def test_blocks_of_an_arena_do_not_overlap(calls: list[tuple[bool, int]]) -> None:
    arena, blocks = Arena(), []
    for is_new, size in calls:
        if is_new or not blocks:
            offset = arena.allocate(size)
            assert offset % ALIGNMENT == 0 and offset + size <= arena.nbytes
            assert all(
                offset + size <= other or other + nbytes <= offset
                for other, nbytes in blocks
                if nbytes and size
            )
            blocks.append((offset, size))
        else:
            arena.release(*blocks.pop(size % len(blocks)))
    for block in blocks:
        arena.release(*block)
    assert arena.allocate(arena.nbytes) == 0


# --- the verifier ----------------------------------------------------------------------------------------


def softmax_of_product() -> Plan:
    def function(x: Any, w: Any) -> Any:
        e = xarr.exp(x @ w)
        return e / xarr.sum(e, axis=1, keepdims=True)

    return plan(lower_graph(xarr.lower(function, "f32[200,100]", "f32[100,50]").graph, "off"))


def with_buffer(made: Plan, number: int, **changes: Any) -> Plan:
    buffers = list(made.buffers)
    buffers[number] = buffers[number]._replace(**changes)
    return replace(made, buffers=tuple(buffers))


def with_step(made: Plan, number: int, **changes: Any) -> Plan:
    steps = list(made.steps)
    steps[number] = replace(steps[number], **changes)
    return replace(made, steps=tuple(steps))


def with_layout(made: Plan, **changes: Any) -> Plan:
    changed = replace(made)
    changed.__dict__["layout"] = replace(made.layout, **changes)
    return changed


def with_offset(made: Plan, number: int, offset: int) -> Plan:
    offsets = list(made.layout.offsets)
    offsets[number] = offset
    return with_layout(made, offsets=tuple(offsets))


def in_arena(made: Plan) -> list[PlanBuffer]:
    return [
        each for each in made.buffers if each.base is None and made.layout.offsets[each.number] is not None
    ]


def one_view(made: Plan) -> PlanBuffer:
    return next(each for each in made.buffers if each.is_view and made.layout.memory[each.number] == "arena")


def donating() -> Plan:
    def function(x: Node) -> Node:
        return node(
            ops.DynamicUpdateSlice(),
            x,
            node(ops.Constant.of(np.ones(1, F32))),
            node(ops.Constant.of(np.int32(0))),
        )

    return plan(graph(function, tensor(F32, 9000)), donated=(0,))


def make_loop() -> Plan:
    function = lambda x: lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, lax.sort(s[1] * 2)), (0, x))  # noqa: E731
    return plan(lower_graph(xarr.lower(function, "f64[20]").graph, "off"))


def loop_with(**changes: Any) -> Plan:
    made = make_loop()
    (number,) = [k for k, step in enumerate(made.steps) if isinstance(step, LoopStep)]
    return with_step(made, number, **{name: change(made.steps[number]) for name, change in changes.items()})


BROKEN: dict[str, tuple[str, Callable[[], Plan]]] = {
    "no such buffer": ("P1", lambda: with_step(softmax_of_product(), 0, inputs=(0, 99))),
    "numbers out of order": (
        "P1",
        lambda: replace(softmax_of_product(), buffers=softmax_of_product().buffers[::-1]),
    ),
    "written twice": (
        "P2",
        lambda: with_step(softmax_of_product(), 1, outputs=softmax_of_product().steps[0].outputs),
    ),
    "an argument written": ("P2", lambda: with_step(softmax_of_product(), 0, outputs=(0,))),
    "read too early": (
        "P3",
        lambda: with_step(softmax_of_product(), 0, inputs=softmax_of_product().steps[-1].outputs),
    ),
    "read too late": ("P3", lambda: with_buffer(softmax_of_product(), 0, end=-1)),
    "a result that is let go": (
        "P3",
        lambda: with_buffer(softmax_of_product(), softmax_of_product().results[0], end=0),
    ),
    "a view elsewhere": (
        "P4",
        lambda: with_offset(softmax_of_product(), one_view(softmax_of_product()).number, 640),
    ),
    "an offset outside of the arena": ("P4", lambda: with_offset(softmax_of_product(), 0, 0)),
    "a base that comes later": (
        "P4",
        lambda: with_buffer(
            softmax_of_product(), one_view(softmax_of_product()).number, base=softmax_of_product().results[0]
        ),
    ),
    "an argument that was not donated": ("P5", lambda: replace(donating(), donated=())),
    "still needed": ("P5", lambda: with_buffer(donating(), 0, end=1)),
    "another size": ("P5", lambda: with_buffer(donating(), 0, type=tensor(F32, 7))),
    "overlapping": ("P6", lambda: _move(softmax_of_product())),
    "beyond the arena": ("P7", lambda: with_layout(softmax_of_product(), arena=64)),
    "not aligned": (
        "P7",
        lambda: with_offset(softmax_of_product(), in_arena(softmax_of_product())[0].number, 4),
    ),
    "a body of other arguments": ("P8", lambda: loop_with(body=lambda step: step.cond)),
    "a workspace that is too small": ("P8", lambda: with_small_workspaces(make_loop())),
}


#: Plans of compiled groups and loops that break P9.
BROKEN_LAUNCHES: dict[str, Callable[[], Plan]] = {
    "a group of other arrays": lambda: with_step(
        make_launch(), 0, program=make_launch("f64[7]").steps[0].program
    ),  # type: ignore[attr-defined]
    "a loop of other points": lambda: with_step(looping(30), 0, program=looping(7).steps[0].program),  # type: ignore[attr-defined]
    "other outputs": lambda: with_step(looping(30), 0, carried=(0, 3)),
}


def looping(size: int) -> Plan:
    return make_launch(f"f64[{size}]", lambda x: lax.fori_loop(0, 5, lambda i, s: s * 2, x))


def make_launch(type: str = "f64[30]", function: Callable[..., Any] = lambda x: xarr.exp(x) * 2) -> Plan:
    with xarr.config(fusion="compiled"):
        made = xarr.jit(function).lower(type).stage("plan")
    assert isinstance(made, Plan)
    return made


@pytest.mark.parametrize("name", BROKEN_LAUNCHES)
def test_the_verifier_refuses_launches(name: str) -> None:
    pytest.importorskip("llvmlite")
    with pytest.raises(PlanError, match=r"plan \S+: P9: "):
        verify(BROKEN_LAUNCHES[name]())


def with_small_workspaces(made: Plan) -> Plan:
    """The plan with workspaces of one byte."""
    return with_layout(made, workspaces=tuple(each and Workspace(0, 1) for each in made.layout.workspaces))


def _move(made: Plan) -> Plan:
    """The plan with two arrays that live at once at one offset."""
    offsets = made.layout.offsets
    first, second = next(
        (a.number, b.number)
        for a in in_arena(made)
        for b in in_arena(made)
        if a.start < b.start <= a.end and offsets[a.number] != offsets[b.number]
    )
    return with_offset(made, second, offsets[first] or 0)


@pytest.mark.parametrize("name", BROKEN)
def test_the_verifier_refuses(name: str) -> None:
    label, broken = BROKEN[name]
    with pytest.raises(PlanError, match=rf"plan \S+: {label}: "):
        verify(broken())


@pytest.mark.parametrize("make", [softmax_of_product, donating, make_loop])
def test_the_verifier_accepts(make: Callable[[], Plan]) -> None:
    made = make()
    assert verify(made) is made


@pytest.fixture(autouse=True)
def plain_engine() -> Iterator[None]:
    with xarr.config(fusion="off"):
        yield


# --- as data and as text -----------------------------------------------------------------------------------


def test_steps_know_their_cost() -> None:
    product, *rest = softmax_of_product().steps
    assert isinstance(product, LibraryCall)
    assert (product.cost.operations, product.cost.nbytes) == (
        2 * 200 * 100 * 50,
        4 * (200 * 100 + 100 * 50 + 200 * 50),
    )
    assert all(step.cost.operations == 0 for step in rest if isinstance(step, View))


def test_loops_know_their_iterations() -> None:
    def loops(x: Any, n: Any) -> Any:
        counted = lax.fori_loop(2, 9, lambda i, s: lax.sort(s * 2), x)
        return lax.fori_loop(0, n, lambda i, s: lax.sort(s + i), counted)

    made = plan(lower_graph(xarr.lower(loops, "f64[20]", "s64[]").graph, "off"))
    counted, unknown = [step for step in made.steps if isinstance(step, LoopStep)]
    assert (counted.iterations, unknown.iterations) == (7, None)
    assert all(step.iterations == 1 for step in made.steps if not isinstance(step, LoopStep))
    lines = [line for line in str(made).splitlines() if "= loop " in line]
    # Comparison, next index, multiplication and sort of 20 elements.
    assert counted.cost == Cost(1 + 1 + 20 + 100, (8 + 8 + 1) + 3 * 8 + 3 * 160 + 2 * 160)
    assert lines[0].endswith("# 122 operations, 841 B an iteration, 7 iterations")
    # The index besides becomes a float.
    assert unknown.cost == counted.cost + Cost(1, 16)
    assert lines[1].endswith("# 123 operations, 857 B an iteration")
    assert made.cost == counted.cost * 7 + unknown.cost


def test_the_cost_of_branches_is_that_of_the_dearest() -> None:
    graph = xarr.lower(*(CONTROL["branches"][0], *CONTROL["branches"][1])).graph
    (branch,) = [step for step in plan(lower_graph(graph, "off")).steps if isinstance(step, Branch)]
    costs = [sum(step.cost.operations for step in inner.steps) for inner in branch.branches]
    assert branch.cost.operations == max(costs) > min(costs)


def test_a_plan_counts_the_steps_of_called_functions_and_of_no_loop() -> None:
    layer = xarr.jit(lambda v: lax.tanh(lax.sin(v)))

    def program(x: Any) -> Any:
        twice = lax.call(lambda v: lax.call(layer, lax.call(layer, v)), x)
        return lax.fori_loop(0, 9, lambda i, v: lax.sort(lax.call(layer, v)), twice)

    made = plan(lower_graph(xarr.lower(program, "f64[20]").graph, "off"))
    kinds = [type(step) for step in made.steps]
    # Each layer is a call within the call of the function that jit made; it has two steps.
    assert kinds.count(PlanCall) == kinds.count(LoopStep) == 1
    assert made.step_count == len(kinds) + 2 * (1 + 1 + 2)
    assert plan(lower_graph(xarr.lower(lambda x: x, "f64[20]").graph, "off")).step_count == 0


def test_a_plan_prints() -> None:
    made = make_loop()
    text, layout = str(made), made.layout
    assert text.splitlines()[:2] == [
        "plan <lambda>:",
        f"    memory: arena of {layout.arena} B, at most {layout.peak.total} B at once, 160 B of it arguments",
    ]
    assert "loop while_loop(" in text and "\n      condition:\n" in text and "\n      body:\n" in text
    assert text.splitlines()[-1] == f"    return b{made.results[0]}, b{made.results[1]}"
    branches = plan(lower_graph(xarr.lower(*(CONTROL["branches"][0], *CONTROL["branches"][1])).graph, "off"))
    assert any(isinstance(step, Branch) for step in branches.steps)
    assert "      branch 2:\n" in str(branches)
