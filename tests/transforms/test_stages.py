"""The stages of compilation: their names, what each prints, and the checks between them."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

import xarr
from tests.support.checkout import CHECKOUT
from tests.support.operations import own_operations
from xarr import lax
from xarr.backend import AbstractBackend, get
from xarr.compiler import pipeline
from xarr.compiler.pipeline import STAGE_NAMES, STAGES, lower, make_program
from xarr.compiler.plan import program_plan
from xarr.compiler.plan.loop_programs import LoopPrograms
from xarr.compiler.plan.planner import plan_for
from xarr.compiler.plan.program_plan import Plan
from xarr.compiler.programs import Programs
from xarr.errors import InputError, ValueRangeError
from xarr.ir import ops
from xarr.ir.graph import Graph, GraphError, Node, data, parameter
from xarr.ir.op import Op
from xarr.ir.types import TensorType
from xarr.runtime import evaluation
from xarr_null.backend import NullBackend

pytestmark = pytest.mark.usefixtures("on_numpy")

NATIVE = pytest.mark.skipif(not find_spec("llvmlite"), reason="needs llvmlite")
VECTOR = TensorType((3,), np.dtype(np.float32))


def double() -> Graph:
    x = parameter(VECTOR)
    return Graph([x], [Node(ops.Add(), (x, x))])


@pytest.mark.parametrize("name", ["", "Fused", "compiled", None, 3], ids=repr)
def test_unknown_stage(name: Any) -> None:
    wanted = (
        r"wanted one of the stages traced, simplified, static, decomposed, fused, loops, plan, program, got "
    )
    with pytest.raises(ValueRangeError, match=wanted):
        lower(double(), get("numpy"), name)
    with pytest.raises(ValueRangeError, match=wanted):
        xarr.lower(lambda x: -x, "f32[3]").stage(name)


@pytest.mark.parametrize("backend", ["numpy", "reference", "null"])
def test_every_stage_prints(backend: str) -> None:
    with xarr.use_backend(backend):
        lowered = xarr.lower(lambda x: x + x, "f32[3]")
    for name in STAGES:
        assert "stablehlo.add" in str(lowered.stage(name))
    assert "b0: f32[3], until 0 = argument 0" in str(lowered.stage("plan"))
    assert "def program" in str(lowered.stage("program")) or backend != "numpy"


def test_the_module_and_the_page_list_the_stages_in_order() -> None:
    assert pipeline.__doc__ is not None
    assert " -> ".join(STAGE_NAMES) in pipeline.__doc__
    page = (CHECKOUT / "docs/architecture.md").read_text(encoding="utf-8")
    assert ", ".join(f"`{name}`" for name in STAGE_NAMES) in page


@pytest.mark.parametrize("backend", ["reference", "null"])
def test_a_backend_without_a_schedule_has_no_loop_programs(backend: str) -> None:
    with xarr.use_backend(backend):
        loops = xarr.lower(lambda x: xarr.exp(x) * 2, "f32[3]").stage("loops")
    assert isinstance(loops, LoopPrograms)
    assert loops.programs == ()
    title = f"loop programs of <lambda> on {backend}: none"
    assert str(loops).startswith(f"{title}, since backend '{backend}' runs operation by operation")


@NATIVE
@pytest.mark.usefixtures("unfused")
def test_a_program_without_groups_has_no_loop_programs() -> None:
    text = str(xarr.lower(lambda x: xarr.exp(x) * 2, "f32[3]").stage("loops"))
    assert text.startswith(
        "loop programs of <lambda> on numpy: none, since no operations of it run as one (engine: "
    )
    assert "config.fusion = 'off'" in text


def repeat(x: Any) -> Any:
    """Groups in a branch and in the body of a loop; loops over points and over a group; a product."""
    chosen = lax.cond(x[0] > 0, lambda x: xarr.exp(x) * 2, lambda x: xarr.sin(x) / 3, x)
    sorted_ones = lax.fori_loop(0, 3, lambda i, s: xarr.sort(s * 2 + i), chosen)
    points = lax.fori_loop(0, 5, lambda i, s: s * s + x, x)
    stencil = lax.fori_loop(0, 9, lambda i, s: s.at[1:-1].set((s[:-2] + s[2:]) / 2), x)
    return sorted_ones + points + stencil @ x


@NATIVE
def test_the_loops_are_those_that_the_plan_launches() -> None:
    with xarr.config(fusion="compiled"):
        lowered = xarr.jit(repeat).lower("f64[50]")
        loops, plan = lowered.stage("loops"), lowered.stage("plan")
    assert isinstance(loops, LoopPrograms) and isinstance(plan, Plan)
    steps = [step for each in plan.walk() for step in each.steps]
    launched = [
        step.program for step in steps if isinstance(step, program_plan.Launch | program_plan.LaunchLoop)
    ]
    listed = [program for _, program in loops.programs]
    assert {type(each).__name__ for each in listed} == {"Kernel", "NativeLoop", "IteratedGroup"}
    assert len(listed) == len(set(listed)) == len(set(launched)) > 4
    assert set(listed) == set(launched)
    text = str(loops)
    assert text.startswith("loop programs of repeat on numpy:\n")
    for node, program in loops.programs:
        assert f"-> {node.type.short()}:\n    {str(program).splitlines()[0]}" in text


# --- the plan that runs -------------------------------------------------------------------------------------

PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "group": (lambda x: xarr.exp(x) * 2, ("f64[10000]",)),
    "product": (lambda x, y: xarr.sin(x @ y), ("f64[5,7]", "f64[7,3]")),
    "branches": (
        lambda i, x: lax.switch(i, [lambda x: x, lambda x: xarr.sort(x) * 2], x),
        ("s32[]", "f64[10000]"),
    ),
    "loops": (repeat, ("f64[50]",)),
    "indices": (lambda x, i: x[i] + xarr.zeros((2, 4)).at[i].set(1.0), ("f64[3,4]", "s64[2]")),
    "update": (lambda x: x.at[3].set(1.0), ("f64[10000]",)),
}


def arrays(types: tuple[str, ...]) -> list[Any]:
    shapes = [xarr.transforms.lowering.argument_type(type) for type in types]
    return [xarr.asarray(np.ones(each.shape, each.dtype)) for each in shapes]  # type: ignore[union-attr]


def assert_it_runs_its_plan(name: str, is_donated: bool) -> None:
    """The plan printed ahead of the first call of a jitted function is what runs in the call."""
    function, types = PROGRAMS[name]
    donated = len(types) - 1
    jitted: Any = xarr.jit(function, donate_argnums=donated) if is_donated else xarr.jit(function)
    inputs = arrays(types)
    lowered = jitted.lower(*inputs)
    jitted(*inputs)
    (traced,) = jitted._cache.values()
    compiled = traced.compile()
    # The opaque backend hands its graphs on to NumPy's.
    assert str(lowered.stage("plan")) == str(compiled.plan).replace(
        " on numpy:", f" on {lowered.backend.name}:", 1
    )
    assert lowered.stage("program").text == compiled.program.text
    assert ("= donated argument" in str(compiled.plan)) == is_donated


@pytest.mark.parametrize("is_donated", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_plan_of_a_jitted_function_is_what_runs(name: str, is_donated: bool) -> None:
    assert_it_runs_its_plan(name, is_donated)


@pytest.mark.usefixtures("opaque")
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_plan_has_flags_for_checks_where_the_program_has(name: str) -> None:
    assert_it_runs_its_plan(name, is_donated=False)


def test_buffers_know_their_device(opaque: AbstractBackend) -> None:
    graph = lower(repeated_graph(), opaque)
    for backend, name in ((opaque, "opaque"), (opaque.at(1), "opaque:1")):
        made = plan_for(graph, backend)
        assert {buffer.device for each in made.walk() for buffer in each.buffers} == {name}
        assert str(made).startswith(f"plan repeat on {name}:\n")


def repeated_graph() -> Graph:
    return xarr.lower(repeat, "f64[50]").graph


@pytest.mark.usefixtures("recorded")
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_program_of_recorded_operations_is_written_from_a_plan(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Constants are arguments there, so that `lower` has another one."""
    function, types = PROGRAMS[name]
    kept: list[Any] = []
    monkeypatch.setattr(evaluation, "_programs", programs := Programs())
    monkeypatch.setattr(programs, "add", lambda key, compiled, nbytes: kept.append(compiled))
    inputs = arrays(types)
    xarr.evaluate(*inputs)
    kept.clear()
    xarr.evaluate(function(*inputs))
    (compiled,) = kept
    made = compiled.plan
    assert str(made) == str(plan_for(compiled.graph, get("numpy")))
    outputs = [number for step in made.steps for number in step.outputs if made.is_used(number)]
    assert outputs
    for number in outputs:
        assert f"v{number - len(made.parameters)}" in compiled.program.text


class Fusing(NullBackend):
    """Writes x + x as one multiplication, and keeps what it was given."""

    def __init__(self) -> None:
        self.graphs: list[Graph] = []

    def supports(self, op: type[Op]) -> bool:
        return op in own_operations()

    def fuse(self, graph: Graph, hot: bool = False) -> Graph:
        self.graphs.append(graph)
        (x,) = graph.parameters
        two = Node(ops.Constant.of(np.full(3, 2, np.float32)))
        return Graph([x], [Node(ops.Multiply(), (x, two))], graph.name)


def test_a_backend_fuses_what_is_decomposed_and_compiles_what_it_fused() -> None:
    backend = Fusing()
    decomposed = lower(double(), backend, "decomposed")
    assert backend.graphs == []
    assert "multiply" in lower(double(), backend, "fused").to_text()
    assert backend.graphs == [decomposed]
    assert "multiply" in make_program(double(), backend).program.text


@pytest.mark.usefixtures("unfused")
def test_a_backend_without_fusion_compiles_what_is_decomposed() -> None:
    backend = get("numpy")
    assert lower(double(), backend, "fused") == lower(double(), backend, "decomposed")


class Breaking(NullBackend):
    """Its fusion gives a node a type that is not the op's."""

    def fuse(self, graph: Graph, hot: bool = False) -> Graph:
        (x,) = graph.parameters
        return Graph([x], [Node(ops.Negate(), (x,), TensorType((2,), x.dtype))])


def lower_by(backend: AbstractBackend) -> Graph:
    return lower(double(), backend)


def test_a_pass_that_breaks_the_graph_is_caught_under_test() -> None:
    with pytest.raises(GraphError, match="a type other than inferred"):
        lower_by(Breaking())


def test_verification_is_a_setting() -> None:
    with xarr.config(verify_graphs=False):
        assert lower_by(Breaking()).results[0].shape == (2,)


@pytest.mark.parametrize("backend", ["numpy", "reference"])
def test_lowered_functions_are_pickled_with_what_they_close_over(backend: str) -> None:
    with xarr.use_backend(backend):
        outer = xarr.asarray(np.float32([1, 2, 3])) * 2

        def function(x: Any, y: Any) -> Any:
            looped = xarr.lax.fori_loop(0, 3, lambda i, value: value * outer, x)
            return looped, xarr.lax.reduce(y, 0.0, lambda a, b: a + b, (0, 1))

        lowered = xarr.lower(function, "f32[3]", "f64[<=2,3]")
    again = pickle.loads(pickle.dumps(lowered))
    assert again.graph == lowered.graph
    assert str(again) == str(lowered)
    assert again.backend is lowered.backend
    assert again.stage("program").text == lowered.stage("program").text
    (value,) = (node.value if node.value is not None else None for node in again.captured)
    np.testing.assert_array_equal(np.asarray(value), [2, 4, 6])


def test_long_graphs_are_pickled_without_recursion() -> None:
    def chain(x: Any) -> Any:
        for _ in range(5_000):
            x = x + 1
        return x

    lowered = xarr.lower(chain, "f64[2]")
    assert len(pickle.loads(pickle.dumps(lowered)).graph.nodes) == len(lowered.graph.nodes)


def test_graphs_that_hold_data_are_not_pickled() -> None:
    leaf = data(VECTOR, np.ones(3, np.float32), get("numpy").device())
    with pytest.raises(InputError, match="holds data, which cannot be pickled"):
        pickle.dumps(Graph([], [Node(ops.Negate(), (leaf,))]))
