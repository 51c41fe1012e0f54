"""Ordered nodes: they run in the order of the program, whether a result needs them or not, and none gets lost."""

from __future__ import annotations

import ast
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.support.checkout import CHECKOUT
from xarr import lax, stablehlo
from xarr.compiler.passes.simplify import simplify
from xarr.compiler.pipeline import lower
from xarr.errors import InputError
from xarr.ir import ops
from xarr.ir.graph import Graph, GraphError, Node, list_ordered, parameter
from xarr.ir.types import TensorType, TokenType, TupleType
from xarr_numpy.backend import NumpyBackend

VECTOR = TensorType((3,), np.dtype(np.float64))
SCALAR = TensorType((), np.dtype(np.float64))
BACKENDS = ("numpy", "reference")


def note(target: str, *operands: Node) -> Node:
    """A call with side effects."""
    return Node(ops.CustomCall(target, (SCALAR,), has_side_effect=True), operands)


def two_notes() -> tuple[Graph, Node, Node]:
    """A graph of two calls with side effects, the second of which alone is a part of the result."""
    x = parameter(VECTOR)
    first, second = note("a", x), note("b")
    return Graph([x], [Node(ops.Add(), (second, second))], ordered=(first, second)), first, second


# --- the graph ---------------------------------------------------------------------------------------------


def test_nodes_has_ordered_ones_in_their_order() -> None:
    graph, first, second = two_notes()
    assert graph.nodes == (first, second, graph.results[0])
    assert Graph(graph.parameters, graph.results, ordered=(second, first)).nodes[:2] == (second, first)
    assert graph.verify() is graph


def test_order_is_a_part_of_what_a_graph_means() -> None:
    graph, first, second = two_notes()
    turned = Graph(graph.parameters, graph.results, ordered=(second, first))
    assert graph != turned
    assert graph == two_notes()[0]


def test_a_pickled_graph_keeps_them() -> None:
    graph = two_notes()[0]
    copy = pickle.loads(pickle.dumps(graph))
    assert copy == graph
    assert [node.op for node in copy.ordered] == [node.op for node in graph.ordered]


def test_derive_keeps_them() -> None:
    graph, first, second = two_notes()
    other = note("c")
    derived = graph.derive({first: Node(ops.Negate(), (other,)), graph.results[0]: second})
    assert derived.ordered == (other, second)
    assert derived.results == (second,)
    assert graph.with_name("f").ordered == graph.ordered
    assert graph.derive({}, results=()).ordered == graph.ordered


def test_list_ordered_lists_none_twice() -> None:
    _, first, second = two_notes()
    above = Node(ops.Add(), (first, second))
    assert list_ordered([above, second, first], ()) == [first, second]
    assert list_ordered([], ()) == []


def test_copies_of_a_graph_must_keep_them_elsewhere() -> None:
    graph, *_ = two_notes()
    x, ordered = parameter(VECTOR), []
    with pytest.raises(GraphError, match="may run at another time"):
        graph.inline(x)
    (result,) = graph.inline(x, ordered=ordered)
    assert [node.op for node in ordered] == [node.op for node in graph.ordered]
    assert result.operands[0] is ordered[1]


def test_an_op_that_carries_some_is_ordered() -> None:
    graph, *_ = two_notes()
    assert ops.Call(graph).is_ordered
    assert not ops.Call(Graph(graph.parameters, graph.parameters)).is_ordered


def test_verify_finds_one_that_is_lost() -> None:
    graph, first, second = two_notes()
    with pytest.raises(GraphError, match="not in its position"):
        Graph(graph.parameters, graph.results, ordered=(first,)).verify()
    with pytest.raises(GraphError, match="not in its position"):
        Graph(graph.parameters, graph.results, ordered=(*graph.results, first)).verify()
    with pytest.raises(GraphError, match="2 ordered nodes became 1"):
        Graph(graph.parameters, [second], ordered=(second,)).verify(graph)
    user = note("c", second)
    with pytest.raises(GraphError, match="not in its position"):
        Graph(graph.parameters, (), ordered=(user, second)).verify()


def test_stages_are_looked_at_for_those_that_they_lose(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, _, second = two_notes()
    monkeypatch.setattr("xarr.compiler.pipeline.simplify", lambda graph: Graph((), [second], "f", [second]))
    with xarr.config(verify_graphs=True), pytest.raises(GraphError, match="2 ordered nodes became 1"):
        lower(graph, NumpyBackend(), "simplified")


def test_simplify_merges_none() -> None:
    x = parameter(VECTOR)
    pair = [note("a", x), note("a", x)]
    assert (
        len(simplify(Graph([x], [Node(ops.Negate(), (Node(ops.Negate(), (x,)),))], ordered=pair)).ordered)
        == 2
    )


def test_a_token_is_no_array_and_has_no_elements() -> None:
    token = TokenType()
    assert token is TokenType() is pickle.loads(pickle.dumps(token))
    assert (str(token), token.short(), token.nbytes, token.shape) == ("!stablehlo.token", "token[]", 0, (0,))
    assert token is not TensorType((0,), np.dtype(np.bool_))
    assert str(TupleType((token, SCALAR))) == "tuple<!stablehlo.token, tensor<f64>>"
    with pytest.raises(xarr.errors.ShapeError, match="wanted arrays"):
        Node(ops.Negate(), (parameter(token),))


# --- graphs of graphs are made by `derive` ------------------------------------------------------------------

#: Where there is nothing ordered: combiners, computed anew, and the parts of loops of groups.
MAY_TAKE_RESULTS = (
    "xarr/compiler/dynamic/op_rules.py",
    "xarr/compiler/dynamic/window_rules.py",
    "xarr/compiler/while_loops/iterated_groups.py",
)


def direct_graphs(paths: list[Path]) -> list[str]:
    """Calls of Graph with the results or the name of another graph, which lose what is ordered there."""
    calls = [
        (path, node)
        for path in paths
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Graph"
        if len(node.args) < 4 and not node.keywords
    ]
    return [
        f"{path}:{node.lineno} makes a Graph of another one: derive keeps what is ordered"
        for path, node in calls
        if any(isinstance(each, ast.Attribute) and each.attr == "results" for each in ast.walk(node))
        or (isinstance(node.args[-1], ast.Attribute) and node.args[-1].attr == "name")
    ]


def test_graphs_of_graphs_are_derived() -> None:
    packages = [CHECKOUT / "xarr", *(CHECKOUT / "backends").iterdir()]
    paths = [path for package in packages for path in package.rglob("*.py")]
    allowed = {CHECKOUT / path for path in MAY_TAKE_RESULTS}
    assert direct_graphs([path for path in paths if path not in allowed]) == []


def test_a_graph_of_the_results_of_another_is_found(tmp_path: Path) -> None:
    path = tmp_path / "pass.py"
    path.write_text("def f(g):\n    return Graph(g.parameters, [new[n] for n in g.results], g.name)\n")
    assert [line.partition(" ")[0] for line in direct_graphs([path])] == [f"{path}:2"]


# --- programs -----------------------------------------------------------------------------------------------


@pytest.fixture
def seen() -> Iterator[list[Any]]:
    """Registers `test.note`, which adds its operand to the list."""
    calls: list[Any] = []

    def keep(x: Any) -> Any:
        calls.append(np.asarray(x).tolist())
        return np.float64(len(calls))

    lax.register_custom_call("test.note", keep)
    yield calls
    lax.unregister_custom_call("test.note")


def record(x: Any) -> Any:
    return lax.custom_call("test.note", x, result_types=((), np.float64), has_side_effect=True)


@pytest.mark.parametrize("backend", BACKENDS)
def test_outside_of_a_trace_it_runs_where_it_is_called(seen: list[Any], backend: str) -> None:
    with xarr.use_backend(backend):
        x = xarr.arange(3.0) + 1
        record(x)
        assert seen == [[1, 2, 3]]
        lax.cond(xarr.sum(x) > 5, lambda: record(x * 2), lambda: xarr.asarray(0.0))
        assert seen == [[1, 2, 3], [2, 4, 6]]


def _in_order(x: Any) -> Any:
    later = x * 2
    record(later)
    record(x)
    record(xarr.sum(x))
    return x + 1


def _in_a_loop(x: Any) -> Any:
    def body(i: Any, x: Any) -> Any:
        record(x)
        return x + i

    return lax.fori_loop(0, 3, body, x)


def _in_a_loop_of_nothing(x: Any) -> Any:
    lax.fori_loop(0, 3, lambda i, state: (record(x + i), state)[1], ())
    return x + 1


def _in_a_condition(x: Any) -> Any:
    def goes_on(i: Any) -> Any:
        record(x)
        return i < 2

    lax.while_loop(goes_on, lambda i: i + 1, 0)
    return x


def _in_branches(x: Any) -> Any:
    for number in range(2):
        lax.switch(number, [lambda: (record(x), 1)[1], lambda: (record(-x), 2)[1]])
    return x


def _in_a_scan(x: Any) -> Any:
    return lax.scan(lambda carry, row: (carry + row, (record(row), carry)[1]), xarr.sum(x) * 0, x)[1]


def _in_a_call(x: Any) -> Any:
    inner = xarr.jit(lambda y: (record(y), record(y + 1), y)[2])
    inner(x)
    inner(x * 2)
    return xarr.jit(lambda: (record(x[0]), x)[1])()


def _without_operands(x: Any) -> Any:
    record(1.0)
    return xarr.jit(lambda: (record(2.0), 3)[1])() + x


def _between_groups(x: Any) -> Any:
    """Sums and products that one group could hold, if nothing were ordered."""
    first = record(xarr.sum(x))
    second = record(xarr.prod(x + 1))
    return x * second + xarr.exp(x - first)


PROGRAMS: list[tuple[Callable[[Any], Any], list[Any]]] = [
    (_in_order, [[2, 4, 6], [1, 2, 3], 6]),
    (_in_a_loop, [[1, 2, 3], [1, 2, 3], [2, 3, 4]]),
    (_in_a_loop_of_nothing, [[1, 2, 3], [2, 3, 4], [3, 4, 5]]),
    (_in_a_condition, [[1, 2, 3]] * 3),
    (_in_branches, [[1, 2, 3], [-1, -2, -3]]),
    (_in_a_scan, [1, 2, 3]),
    (_in_a_call, [[1, 2, 3], [2, 3, 4], [2, 4, 6], [3, 5, 7], 1]),
    (_without_operands, [1, 2]),
    (_between_groups, [6, 24]),
]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("jitted", [False, True], ids=["plain", "jit"])
@pytest.mark.parametrize(("program", "wanted"), PROGRAMS, ids=[row[0].__name__[1:] for row in PROGRAMS])
def test_programs_run_all_of_them_in_order(
    seen: list[Any], backend: str, jitted: bool, program: Callable[[Any], Any], wanted: list[Any]
) -> None:
    x = np.array([1.0, 2.0, 3.0])
    function = xarr.jit(program) if jitted else program
    with xarr.use_backend(backend):
        for _ in range(3):  # recorded, repeated, replayed
            seen.clear()
            np.asarray(function(xarr.asarray(x)))
            assert seen == wanted


def test_programs_that_are_read_run_all_of_them(seen: list[Any]) -> None:
    programs = _in_order, _in_a_loop_of_nothing, _in_branches
    text = str(xarr.lower(lambda x: tuple([program(x) for program in programs]), np.ones(3)))
    for result in stablehlo.run(text, np.array([1.0, 2.0, 3.0])):
        np.asarray(result)
    assert seen == [row for program in programs for row in dict(PROGRAMS)[program]]


def test_a_call_without_results_runs(seen: list[Any]) -> None:
    lax.register_custom_call("test.nothing", lambda x: seen.append(float(x)))
    try:
        call = lambda x: (lax.custom_call("test.nothing", x, result_types=(), has_side_effect=True), x)[1]  # noqa: E731
        call(xarr.asarray(1.0))
        np.asarray(xarr.jit(call)(xarr.asarray(2.0)))
        assert seen == [1, 2]
    finally:
        lax.unregister_custom_call("test.nothing")


def test_functions_of_single_elements_have_none(seen: list[Any]) -> None:
    with pytest.raises(InputError, match="cannot have side effects"):
        lax.reduce(xarr.arange(3.0), 0.0, lambda a, b: (record(a), a + b)[1], (0,))


def test_what_is_recorded_has_no_value(seen: list[Any]) -> None:
    with pytest.raises(xarr.errors.TracedValueError):
        xarr.jit(lambda x: float(record(1.0)))(xarr.asarray(1.0))


def test_graphs_without_them_stay_themselves() -> None:
    lowered = xarr.lower(lambda x: xarr.sin(x) + 1, np.ones(3))
    assert lowered.graph.ordered == ()
    assert_same(np.asarray(lowered.graph.ordered), np.zeros(0))
