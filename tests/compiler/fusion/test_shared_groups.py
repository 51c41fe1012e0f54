"""Groups that differ only in the parts and the numbers that they read run by one loop program, with the same bits."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.support import fuzz
from tests.support.compiled_modules import note_modules
from tests.support.graphs import add, graph, tensor
from tests.support.line_counts import count_lines
from xarr.compiler.fusion import stage
from xarr.compiler.fusion.form_groups import form_groups
from xarr.compiler.fusion.shared_groups import share_groups
from xarr.compiler.plan import program_plan
from xarr.compiler.plan.ownership import exposed_parameters
from xarr.compiler.plan.planner import plan
from xarr.compiler.plan.program_plan import Plan
from xarr.compiler.plan.verifier import verify
from xarr.ir import ops
from xarr.ir.constants import constant
from xarr.ir.graph import Graph, Node
from xarr.ir.types import TensorType
from xarr_numpy.compiled.schedule import SCHEDULE
from xarr_numpy.processor import PROCESSOR

F64 = np.dtype(np.float64)
LEAST = PROCESSOR.min_alike_groups
#: Arrays that are all different: in a process a kernel is compiled once.
_LENGTHS = iter(range(1001, 2000))


def fuse(function: Callable[..., Any], *types: Any, least: int = 2) -> Graph:
    return share_groups(form_groups(graph(function, *types), SCHEDULE, lambda domain, cost: True), least)


def groups(graph: Graph) -> list[Node]:
    return [node for node in graph.nodes if isinstance(node.op, ops.Fusion)]


def programs(graph: Graph) -> int:
    return len({node.op for node in groups(graph)})


def element(x: Node, index: int) -> Node:
    return Node(ops.Reshape(()), (Node(ops.Slice((index,), (index + 1,), (1,)), (x,)),))


def scale(count: int) -> Callable[[Node], tuple[Node, ...]]:
    """Each element of an array times its index."""
    return lambda x: tuple([Node(ops.Multiply(), (element(x, k), constant(k, F64))) for k in range(count)])


def count_modules(monkeypatch: pytest.MonkeyPatch, call: Callable[[], object]) -> int:
    with monkeypatch.context() as patch:
        texts = note_modules(patch)
        call()
    # Of kernels, and of programs that are one function; not those of the functions that call kernels.
    return sum("@phase0" in text or "@k0.0(" in text for text in texts)


# --- what is shared ------------------------------------------------------------------------------------------


def test_groups_of_different_elements_and_numbers_share_a_program() -> None:
    shared = fuse(scale(10), tensor(F64, 10))
    assert len(groups(shared)) == 10
    assert programs(shared) == 1
    assert sum(isinstance(node.op, ops.Slice) for node in shared.nodes) == 10


def test_few_groups_stay_as_they_are() -> None:
    plain = form_groups(graph(scale(9), tensor(F64, 10)), SCHEDULE, lambda domain, cost: True)
    assert share_groups(plain, 10) is plain
    assert programs(share_groups(plain, 9)) == 1


def test_numbers_that_all_groups_have_stay_constants() -> None:
    def halves(x: Node) -> tuple[Node, ...]:
        return tuple([Node(ops.Multiply(), (element(x, k), constant(0.5, F64))) for k in range(4)])

    shared = fuse(halves, tensor(F64, 10))
    assert programs(shared) == 1
    assert all(len(node.operands) == 1 for node in groups(shared))


def test_divisors_are_arguments_where_they_are_floats() -> None:
    def quotients(dtype: Any) -> Callable[[Node], tuple[Node, ...]]:
        return lambda x: tuple(
            [Node(ops.Divide(), (element(x, k), constant(k + 2, np.dtype(dtype)))) for k in range(4)]
        )

    assert programs(fuse(quotients(np.float64), tensor(F64, 10))) == 1
    assert programs(fuse(quotients(np.int64), tensor(np.dtype(np.int64), 10))) == 4


def test_an_exponent_stays_a_constant() -> None:
    def powers(x: Node) -> tuple[Node, ...]:
        return tuple([Node(ops.Power(), (element(x, k), constant(k, F64))) for k in range(4)])

    assert programs(fuse(powers, tensor(F64, 10))) == 4


def test_columns_stay_inside_since_they_are_no_addresses() -> None:
    def columns(*arrays: Node) -> tuple[Node, ...]:
        parts = [Node(ops.Slice((0, k), (5, k + 1), (1, 1)), (x,)) for k, x in enumerate(arrays)]
        return tuple([Node(ops.Negate(), (part,)) for part in parts])

    def rows(*arrays: Node) -> tuple[Node, ...]:
        parts = [Node(ops.Slice((k, 0), (k + 1, 5), (1, 1)), (x,)) for k, x in enumerate(arrays)]
        return tuple([Node(ops.Negate(), (part,)) for part in parts])

    arrays = [tensor(F64, 5, 5)] * 4
    assert programs(fuse(columns, *arrays)) == 4
    assert programs(fuse(rows, *arrays)) == 1


def test_a_group_that_reads_two_parts_at_any_distance_is_shared() -> None:
    def products(x: Node) -> tuple[Node, ...]:
        return tuple([Node(ops.Multiply(), (element(x, k), element(x, k * k))) for k in range(2, 6)])

    assert programs(fuse(products, tensor(F64, 30))) == 1


def rows(x: Node, index: int) -> Node:
    return Node(
        ops.Reshape((x.shape[1],)), (Node(ops.Slice((index, 0), (index + 1, x.shape[1]), (1, 1)), (x,)),)
    )


def total(x: Node, dimensions: tuple[int, ...] = (0,)) -> Node:
    zero = constant(0.0, F64)
    body = graph(lambda a, b: Node(ops.Add(), (a, b)), tensor(F64), tensor(F64))
    return Node(ops.Reduce(dimensions, body), (x, zero))


def test_reductions_of_different_rows_and_by_different_numbers_are_shared() -> None:
    def sums(x: Node) -> tuple[Node, ...]:
        spread = [Node(ops.BroadcastInDim((8,), ()), (constant(k + 0.5, F64),)) for k in range(4)]
        return tuple([total(Node(ops.Multiply(), (rows(x, k), each))) for k, each in enumerate(spread)])

    shared = fuse(sums, tensor(F64, 5, 8))
    assert programs(shared) == 1
    assert [node.operands[0].op.start_indices for node in groups(shared)] == [(k, 0) for k in range(4)]


def test_whole_numbers_stay_in_reductions_of_which_they_may_be_bounds() -> None:
    def sums(x: Node) -> tuple[Node, ...]:
        results = []
        for k in range(4):
            bound = Node(ops.BroadcastInDim((8,), ()), (constant(k + 2, np.dtype(np.int64)),))
            inside = Node(
                ops.Compare("LT"), (Node(ops.Iota(TensorType((8,), np.dtype(np.int64)), 0), ()), bound)
            )
            none = Node(ops.BroadcastInDim((8,), ()), (constant(0.0, F64),))
            results.append(total(Node(ops.Select(), (inside, x, none))))
        return tuple(results)

    assert programs(fuse(sums, tensor(F64, 8))) == 4


def test_parts_stay_in_groups_with_a_reduction_inside_of_another() -> None:
    """There the order depends on how large the operands are."""

    def sums(x: Node) -> tuple[Node, ...]:
        results = []
        for k in range(4):
            part = Node(ops.Slice((k, 0, 0), (k + 1, 6, 8), (1, 1, 1)), (x,))
            least = total(Node(ops.Reshape((6, 8)), (part,)), (1,))
            results.append(total(Node(ops.Multiply(), (least, least))))
        return tuple(results)

    assert programs(fuse(sums, tensor(F64, 5, 6, 8))) == 4


# --- what is computed ----------------------------------------------------------------------------------------


def _draw_program(seed: int) -> Callable[..., Any]:
    """A loop that Python unrolls, of exact operations in a random order on random parts."""
    random = np.random.default_rng(seed)
    which = random.integers(0, 6, 6)
    shifts = random.integers(0, 4, (6, 2))
    scale = random.integers(-3, 4)

    def step(np: Any, x: Any, y: Any, k: int) -> Any:
        values = [x[k], y[k % 5], x[2 * k : 2 * k + 7], y[k : k + 1]]
        for op, (a, b) in zip(which, shifts, strict=True):
            left, right = values[-1 - a], values[-1 - b]
            operations = (np.add, np.subtract, np.multiply, np.minimum, np.maximum)
            if op == 5:
                values.append(np.where(left < right, left * float(k), right - float(scale)))
            else:
                values.append(operations[op](left, right) + float(k))
        return values[-1]

    def program(np: Any, x: Any, y: Any) -> Any:
        return [step(np, x, y, k) for k in range(LEAST + 4)]

    return program


@pytest.mark.implicit
@pytest.mark.parametrize("seed", range(12))
def test_random_programs_have_the_bits_of_numpy(seed: int) -> None:
    program = _draw_program(seed)
    random = np.random.default_rng(seed)
    x, y = random.standard_normal(60), random.standard_normal(60)
    x[seed], y[seed % 5] = [np.nan, -0.0, np.inf][seed % 3], -0.0
    jitted = xarr.jit(lambda x, y: program(xarr, x, y))
    with np.errstate(invalid="ignore"):
        wanted = program(np, x, y)
    for _ in range(2):
        for got, right in zip(jitted(x, y), wanted, strict=True):
            np.testing.assert_array_equal(np.asarray(got), right, strict=True)
            assert (np.signbit(np.asarray(got)) == np.signbit(right))[~np.isnan(right)].all()


@pytest.mark.parametrize("dtype", ["?", "i1", "u8", "f2", "f4", "c16"])
def test_elements_of_any_type(dtype: str) -> None:
    x = np.arange(40).astype(dtype)
    got = xarr.jit(lambda x: [xarr.maximum(x[k], x[2 * k]) for k in range(20)])(x)
    for k, value in enumerate(got):
        np.testing.assert_array_equal(np.asarray(value), np.maximum(x[k], x[2 * k]), strict=True)


def _draw_reductions(seed: int) -> tuple[Callable[..., Any], tuple[Any, Any]]:
    """Reductions of parts of arrays, by numbers some of which change nothing, and what may be done with a result."""
    random = np.random.default_rng(seed)
    shape = [(90, 7, 33), (90, 300), (90, 1, 3), (90, 40, 2)][seed % 4]
    dtype = ["f8", "f4", "f8", "f2"][seed // 4 % 4]
    numbers = random.choice([0.5, 1.0, -1.0, 0.0, -0.0, 0.3, np.inf], 2 * LEAST + 8)
    reduce = [xarr.sum, xarr.max, xarr.prod, xarr.mean][random.integers(4)]
    axis = [None, -1, 0][random.integers(3)]
    which, normalises = random.integers(4), bool(random.integers(2))

    def step(x: Any, y: Any, k: int, before: Any) -> Any:
        c = float(numbers[k])
        a = x[k : k + 2] if which == 3 else x[k]
        value = [a * y[k + 1], a * c + y[2 * k], xarr.maximum(a - c, 0.25), a * a * c][which] + before
        result = reduce(value, axis=axis)
        return (
            (value - xarr.sum(value, axis=-1, keepdims=True)) * c if normalises else result * c / (k + 0.75)
        )

    def program(x: Any, y: Any) -> Any:
        results = [y[0, 0]]
        for k in range(2 * LEAST + 8):  # each is a group, since it needs what the one before gives
            results.append(step(x, y, k, xarr.min(results[-1]) * 0.25))
        return results

    operands = tuple(random.standard_normal(shape).astype(dtype) for _ in range(2))
    return program, operands


@pytest.mark.usefixtures("fused")
@pytest.mark.parametrize("seed", fuzz.seeds(4, 16))
@pytest.mark.implicit
def test_shared_reductions_have_the_bits_of_their_own_programs(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, operands = _draw_reductions(seed)
    got = [np.asarray(each) for each in xarr.jit(program)(*operands)]
    own = _count_programs(program, operands)
    monkeypatch.setattr(stage, "share_groups", lambda graph, min_groups: graph)
    wanted = [np.asarray(each) for each in xarr.jit(program)(*operands)]
    for one, other in zip(got, wanted, strict=True):
        assert_same(one, other)
    alone = _count_programs(program, operands)
    assert own < alone or alone < LEAST


def _count_programs(program: Callable[..., Any], operands: tuple[Any, Any]) -> int:
    fused = xarr.jit(program).lower(*operands).stage("fused")
    assert isinstance(fused, Graph)
    return programs(fused)


# --- what it is for ------------------------------------------------------------------------------------------


def test_a_thousand_repeated_steps_compile_few_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    def distances(x: Any) -> Any:
        table = xarr.zeros(1000)
        for k in range(1, 1000):
            table = table.at[k].set(xarr.minimum(table[k - 1], x[k]) * 0.5 + float(k))
        return table

    x = np.random.default_rng(0).random(next(_LENGTHS))
    jitted = xarr.jit(distances)
    assert count_modules(monkeypatch, lambda: jitted(x)) <= 3
    wanted = np.zeros(1000)
    for k in range(1, 1000):
        wanted[k] = np.minimum(wanted[k - 1], x[k]) * 0.5 + k
    np.testing.assert_array_equal(np.asarray(jitted(x)), wanted)


def test_a_thousand_results_are_one_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(0).random(next(_LENGTHS))
    jitted = xarr.jit(lambda x: [x[k] * (k + 1.0) for k in range(1000)])
    assert count_modules(monkeypatch, lambda: jitted(x)) == 1
    np.testing.assert_array_equal(np.array(jitted(x)), x[:1000] * (np.arange(1000) + 1))


# --- views of what is written over ---------------------------------------------------------------------------


def _updates(is_read_late: bool) -> Plan:
    """A large array of which each step reads an element and writes one; the first array is read at the end, or not."""
    steps = 20

    def run(x: Node) -> tuple[Node, ...]:
        first = table = Node(ops.Negate(), (x,))
        for k in range(steps):
            value = Node(ops.Reshape((1,)), (Node(ops.Multiply(), (element(table, k), element(x, k))),))
            table = Node(ops.DynamicUpdateSlice(), (table, value, constant(k + 1, np.dtype(np.int64))))
        return (table, element(first, 3)) if is_read_late else (table,)

    return verify(plan(fuse(run, tensor(F64, 5000)), target=PROCESSOR))


def test_an_array_is_written_over_when_its_views_are_done_with() -> None:
    made = _updates(is_read_late=False)
    updates = [step for step in made.steps if isinstance(step, program_plan.Update)]
    assert all(made.input_output_aliases(step) for step in updates)


def test_an_array_whose_view_is_read_later_is_not_written_over() -> None:
    made = _updates(is_read_late=True)
    updates = [step for step in made.steps if isinstance(step, program_plan.Update)]
    assert not made.input_output_aliases(updates[0])
    assert all(made.input_output_aliases(step) for step in updates[1:])


def test_views_for_groups_do_not_expose_an_argument() -> None:
    shared = fuse(lambda x: add(*scale(2)(x)), tensor(F64, 10), least=1)
    sliced = [node for node in shared.nodes if isinstance(node.op, ops.Slice)]
    assert sliced
    assert exposed_parameters(shared, plan(shared)) == (False,)
    seen = Graph(shared.parameters, [*shared.results, sliced[0]])
    assert exposed_parameters(seen, plan(seen)) == (True,)


# --- the work of making groups -------------------------------------------------------------------------------


def _filter(x: Any, steps: int) -> Any:
    a, b = x[0], x[1]
    for k in range(steps):
        a, b = 0.5 * b + 0.25 * a + x[k], a - 0.125 * x[k]
    return a + b


def _stencil(x: Any, steps: int) -> Any:
    u = x.reshape(25, 40)
    for _ in range(steps):
        inner = 0.25 * (u[1:-1, :-2] + u[1:-1, 2:] + u[:-2, 1:-1])
        u = u.at[1:-1, 1:-1].set(inner)
        u = u.at[0].set(u[1] / xarr.sum(u[2]))
    return u


def _elements(x: Any, steps: int) -> Any:
    for k in range(steps):
        x = x.at[k + 1].set(xarr.minimum(x[k], 2.0) * x[k + 1])
    return x


@pytest.mark.parametrize("program", [_filter, _stencil, _elements])
def test_groups_are_made_in_time_that_is_linear(program: Callable[[Any, int], Any]) -> None:
    counts = []
    for steps in (20, 80, 320):
        made = xarr.jit(lambda x, steps=steps: program(x, steps)).lower("f64[1000]").stage("decomposed")
        assert isinstance(made, Graph)
        counts.append(count_lines(lambda made=made: stage.fuse(made, PROCESSOR, lambda: SCHEDULE, hot=True)))
    assert all(after < 6 * before for before, after in pairwise(counts)), counts
