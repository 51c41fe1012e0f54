"""Graphs of short arrays as graphs of numbers: each kind of operation beside that on arrays, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr import lax
from xarr.compiler.fusion.stage import fuse
from xarr.compiler.schedule import Schedule
from xarr.compiler.schedules.gpu import builders as gpu
from xarr.compiler.schedules.serial import builders as serial
from xarr.compiler.target import Target
from xarr.ir import ops
from xarr.ir.constants import constant
from xarr.ir.graph import Graph, Node, parameter
from xarr.ir.single_elements import NotSplit, SingleElements, join, split
from xarr.ir.types import TensorType

pytestmark = pytest.mark.implicit

Function = Callable[..., Any]

X = np.array([[1.5, -2.0, 0.25], [np.nan, -0.0, np.inf]])
V = np.array([3, -1, 7, 2], np.int32)


def split_up(graph: Graph, most: int = 64, most_work: int = 400) -> Graph:
    """The graph with its nodes computed element by element."""
    known = SingleElements(most, most_work)
    for node in graph.parameters:
        known.give(node, split(node))
    known.compute(graph)
    return graph.derive({}, [join(known.elements(node), node.shape) for node in graph.results])


def results_of(graph: Graph, *arrays: Any) -> list[Any]:
    program = xarr.get_backend("reference").compile(graph)
    return [np.asarray(each) for each in program(*arrays)]


MOVES: dict[str, Function] = {
    "broadcast": lambda x: x[:, None, :] + x[None, 0, :],
    "transpose": lambda x: x.T,
    "slice": lambda x: x[:, ::2],
    "reverse": lambda x: x[::-1],
    "concatenate": lambda x: xarr.concatenate([x, x[:1]], axis=0),
    "pad": lambda x: lax.pad(x, 2.0, ((-1, 1, 0), (1, -1, 2))),
    "iota": lambda x: xarr.arange(3) * x,
    "reshape": lambda x: x.reshape(3, 2),
    "part": lambda x: lax.dynamic_slice(x, (xarr.argmax(x[0, :1]), xarr.argmin(x[0])), (1, 2)),
    "part beyond the end": lambda x: lax.dynamic_slice(
        x, (xarr.argmax(x[0]) + 9, xarr.argmax(x[0]) - 9), (1, 2)
    ),
    "update": lambda x: lax.dynamic_update_slice(x, x[:1, :2] * 2, (xarr.argmin(x[0]), xarr.argmin(x[0]))),
}
FOLDS: dict[str, Function] = {
    "sum": lambda x: xarr.sum(x, axis=0),
    "maximum": xarr.max,
    "argmax": lambda x: xarr.argmax(x, axis=1),
    "running sum": lambda x: xarr.cumsum(x, axis=1),
    "windows": lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 2), (1, 1), ((0, 0), (1, 1)), (1, 2), (1, 1)),
    "product": lambda x: x @ x.T,
    "any": lambda x: xarr.any(x > 0, axis=1),
}


@pytest.mark.parametrize("name", [*MOVES, *FOLDS])
def test_elements_are_those_of_arrays(name: str) -> None:
    graph = xarr.lower({**MOVES, **FOLDS}[name], xarr.asarray(X)).stage("decomposed")
    by_elements = split_up(graph)
    assert {node.shape for node in by_elements.nodes if node.op.is_elementwise} <= {()}
    for got, wanted in zip(results_of(by_elements, X), results_of(graph, X), strict=True):
        assert_same(got, wanted)


def test_sums_are_formed_by_halves() -> None:
    x = np.array([1.0, 1e16, -1e16, 3.0])
    graph = xarr.lower(xarr.sum, xarr.asarray(x)).stage("decomposed")
    assert results_of(split_up(graph), x)[0] == (1.0 + 1e16) + (-1e16 + 3.0)


def test_tables_are_read_and_written_element_by_element() -> None:
    table, row, at = (
        parameter(TensorType(shape, np.dtype(each)))
        for shape, each in (((50, 2), "f8"), ((1, 2), "f8"), ((), "i8"))
    )
    known = SingleElements(9, 100)
    known.give_table(table, table)
    known.give(row, split(row))
    known.give(at, [at])
    read = Node(ops.DynamicSlice((1, 2)), (table, at, at))
    written = Node(ops.DynamicUpdateSlice(), (table, Node(ops.Add(), (read, row)), at, at))
    graph = Graph((table, row, at), [written])
    known.compute(graph)
    single = graph.derive({}, [known.table(written)])
    assert [node.op for node in single.nodes].count(ops.DynamicUpdateSlice()) == 2
    values = np.arange(100.0).reshape(50, 2), np.array([[0.5, 0.25]]), np.array(60)
    assert_same(results_of(single, *values)[0], results_of(graph, *values)[0])


def test_one_number_is_reduced_over_no_dimension() -> None:
    graph = xarr.lower(lambda x: lax.reduce(x[0], x[1], lax.add, ()), xarr.asarray(V)).stage("decomposed")
    assert any(isinstance(node.op, ops.Reduce) for node in graph.nodes)
    assert_same(results_of(split_up(graph), V)[0], V[0] + V[1])


def test_tables_of_which_much_is_written_are_refused() -> None:
    table, row = (parameter(TensorType(shape, np.dtype("f8"))) for shape in ((50,), (5,)))
    known = SingleElements(9, 100)
    known.give_table(table, table)
    known.give(row, split(row))
    written = Node(ops.DynamicUpdateSlice(), (table, row, constant(0, np.dtype(np.int64))))
    with pytest.raises(NotSplit):
        known.compute(Graph((table, row), [written]))


def test_what_has_no_rule_or_is_too_much_is_refused() -> None:
    for function, most, most_work in (
        (xarr.sort, 64, 400),  # no rule
        (lambda x: x + x, 3, 400),  # too many elements
        (lambda x: xarr.exp(x) * xarr.exp(x[::-1]), 64, 20),  # too much work
        (lambda x: xarr.sum(x.astype("float16")), 64, 400),  # summed up in float32
        (lambda x: lax.dynamic_index_in_dim(xarr.tile(x, 3), x[0]), 64, 400),  # one of twelve
    ):
        with pytest.raises(NotSplit):
            split_up(xarr.lower(function, xarr.asarray(V)).stage("decomposed"), most, most_work)


def lorenz(state: Any) -> Any:
    x, y, z = state[0], state[1], state[2]
    return state + 0.01 * xarr.stack([10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z])


@pytest.mark.usefixtures("fused")
def test_loops_over_short_arrays_are_loops_over_numbers() -> None:
    pytest.importorskip("llvmlite")

    def run(start: Any, forces: Any) -> Any:
        def step(state: Any, force: Any) -> Any:
            state = lorenz(state) + force
            return state / xarr.sqrt(xarr.sum(state * state)), state

        return lax.scan(step, start, forces)

    start, forces = np.array([1.0, 2.0, 3.0]), np.linspace(0, 1, 60).reshape(20, 3)
    low = xarr.jit(run).lower(start, forces)
    assert "5 scalars" in str(low.stage("fused")), "a counter, its bound and three numbers"
    with xarr.use_backend("reference"):
        wanted = [np.asarray(each) for each in run(xarr.asarray(start), xarr.asarray(forces))]
    for got, each in zip(xarr.jit(run)(start, forces), wanted, strict=True):
        np.testing.assert_allclose(np.asarray(got), each, rtol=1e-13)


@pytest.mark.parametrize(
    ("schedule", "becomes_numbers"),
    [
        (Schedule(Target(), serial.BUILDERS), True),
        (Schedule(Target().replace(max_carried_elements=3), serial.BUILDERS), True),
        (Schedule(Target().replace(max_carried_elements=2), serial.BUILDERS), False),
        (Schedule(Target().replace(max_carried_elements=0), serial.BUILDERS), False),
        (gpu.SCHEDULES[True], False),
    ],
    ids=["default", "enough", "fewer", "none", "gpu"],
)
def test_a_target_says_whether_loops_carry_numbers(schedule: Schedule, becomes_numbers: bool) -> None:
    def function(x: Any) -> Any:
        return lax.fori_loop(0, 9, lambda k, state: lorenz(state), x)

    graph = xarr.lower(function, xarr.asarray(np.ones(3))).stage("decomposed")
    fused = fuse(graph, schedule.target, lambda: schedule, hot=True)
    (loop,) = (node.op for node in fused.nodes if isinstance(node.op, ops.While))
    shapes = {node.shape for node in loop.body.parameters}
    assert shapes == ({()} if becomes_numbers else {(), (3,)})


def test_loops_that_write_a_table_beside_what_they_read_there_are_right() -> None:
    def run(table: Any) -> Any:
        def step(k: Any, carry: Any) -> Any:
            table, two = carry
            row = lax.dynamic_slice(table, (k, 0), (1, 2))
            return lax.dynamic_update_slice(table, row[:, ::-1] + two, (k + 1, 0)), two + row[0]

        return lax.fori_loop(0, 30, step, (table, xarr.ones(2)))

    table = np.arange(64.0).reshape(32, 2)
    with xarr.use_backend("reference"):
        wanted = [np.asarray(each) for each in run(xarr.asarray(table))]
    for got, each in zip(xarr.jit(run)(table), wanted, strict=True):
        assert_same(np.asarray(got), each)


def test_long_reductions_are_left_to_lanes() -> None:
    def find(x: Any) -> Any:
        return xarr.argmin(x) + xarr.argmax(x)

    for size, is_split in ((4, True), (40, False)):
        graph = xarr.jit(find).lower(f"f64[{size}]").stage("decomposed")
        assert isinstance(graph, Graph)
        if is_split:
            split_up(graph)
        else:
            with pytest.raises(NotSplit):
                split_up(graph)
