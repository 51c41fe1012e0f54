"""Graphs printed as StableHLO: parsed by MLIR, printed by it as by us, run by XLA and compared."""

import inspect
import re
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

import xarr
from tests.support.completeness import TRIED_ELSEWHERE, classes_in
from tests.support.graphs import (
    CASES,
    DOUBLE,
    F32,
    MATRIX,
    ROW,
    Case,
    M,
    V,
    add,
    constant,
    data,
    graph,
    less,
    node,
    on_numpy,
    part,
    scalars,
    tensor,
)
from tests.support.operations import own_operations
from tests.xla import TOLERANCE, assert_close, parse, run_stablehlo, squeeze_spaces
from xarr import backend, lax
from xarr.ir import ops
from xarr.ir.graph import Graph, Node, parameter
from xarr.ir.op import Op

Array = np.ndarray[Any, Any]


# --- MLIR and XLA -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_mlir_prints_the_same_text(name: str) -> None:
    text = str(CASES[name].graph)
    assert squeeze_spaces(str(parse(text))) == squeeze_spaces(text)


@pytest.mark.parametrize("name", CASES)
def test_xla_computes_the_same_values(name: str) -> None:
    case = CASES[name]
    got = run_stablehlo(str(case.graph), *case.inputs)
    assert [value.dtype for value in got] == [result.dtype for result in case.graph.results]
    for value, want in zip(got, _expect(case, got), strict=True):
        assert_close(value, want, TOLERANCE.get(value.dtype.name, 0))


def _expect(case: Case, got: list[Array]) -> list[Array]:
    if case.expected is None:
        return on_numpy(case.graph, *case.inputs)
    return [np.array(want, value.dtype) for want, value in zip(case.expected, got, strict=True)]


def test_a_wrong_result_is_noticed() -> None:
    (got,) = run_stablehlo(str(DOUBLE), ROW)
    with pytest.raises(AssertionError):
        assert_close(got, ROW * np.float32(2.001), TOLERANCE["float32"])


# --- every op -----------------------------------------------------------------------------------------------


def without_assembly(classes: Iterable[type[Op]]) -> list[str]:
    return [op.__name__ for op in classes if op.assembly is Op.assembly and not op.is_leaf]


LIBRARY = own_operations()


def test_every_op_has_assembly() -> None:
    assert len(LIBRARY) > 70
    assert without_assembly(LIBRARY) == []


def test_every_op_is_parsed_and_run() -> None:
    run = set().union(*(classes_in(case.graph) for case in CASES.values()))
    elsewhere = {op for op in LIBRARY if op.__name__ in TRIED_ELSEWHERE}
    assert [op.__name__ for op in LIBRARY if op not in run | elsewhere and not op.is_leaf] == []


def test_an_op_without_assembly_is_noticed() -> None:
    class Unprintable(Op):
        name = "stablehlo.unprintable"

    assert without_assembly([ops.Add, Unprintable]) == ["Unprintable"]
    assert Unprintable not in LIBRARY


# --- parameters, results, leaves ----------------------------------------------------------------------------


def test_results_without_computation() -> None:
    unused_and_repeated = graph(lambda x, unused, y: (y, add(x, x), x, y), V, M, V)
    got = run_stablehlo(str(unused_and_repeated), ROW, MATRIX, -ROW)
    assert [value.tolist() for value in got] == [
        (-ROW).tolist(),
        (ROW + ROW).tolist(),
        ROW.tolist(),
        (-ROW).tolist(),
    ]


def test_the_same_node_twice() -> None:
    def twice(x: Node) -> tuple[Node, Node]:
        double = add(x, x)
        return double, double

    text = str(graph(twice, V))
    assert text.count("stablehlo.add") == 1
    assert [value.tolist() for value in run_stablehlo(text, ROW)] == [(ROW + ROW).tolist()] * 2


def test_no_results() -> None:
    text = str(graph(lambda x: (), V))
    assert "@main(%arg0: tensor<3xf32>) {\n    return\n" in text
    assert run_stablehlo(text, ROW) == []


def test_ops_without_results() -> None:
    nothing = graph(lambda x: (), V, name="nothing")
    never = graph(lambda: constant(False, bool))
    unit = [
        node(ops.Call(nothing), constant(ROW)),
        node(ops.While(never, graph(lambda: ()))),
        node(ops.Tuple()),
    ]
    unit += [
        node(ops.OptimizationBarrier()),
        node(ops.If(graph(lambda: ()), graph(lambda: ())), constant(True, bool)),
    ]
    text = str(Graph((), unit))
    assert "    call @nothing(%cst) : (tensor<3xf32>) -> ()\n    %0 = stablehlo.tuple : tuple<>\n" in text
    assert squeeze_spaces(str(parse(text))) == squeeze_spaces(text)


def test_data_leaves_are_arguments() -> None:
    x = parameter(V)
    leaf = data(V, ROW)
    text = str(Graph((x,), (node(ops.Subtract(), leaf, x), leaf)))
    assert "@main(%arg0: tensor<3xf32>, %arg1: tensor<3xf32>)" in text
    got = run_stablehlo(text, np.ones(3, np.float32), ROW)
    assert [value.tolist() for value in got] == [(ROW - 1).tolist(), ROW.tolist()]


def test_a_settled_node_is_an_argument() -> None:
    double = add(data(V, ROW), data(V, ROW))
    negated = node(ops.Negate(), double)
    double.settle(ROW + ROW, backend.get("numpy").device())
    (got,) = run_stablehlo(str(Graph((), (negated,))), ROW + ROW)
    np.testing.assert_array_equal(got, -(ROW + ROW))


def test_data_leaves_inside_computations() -> None:
    """Regions see the arguments of main; functions get them as further arguments."""
    limit, start = data(tensor(F32), np.float32(5)), data(tensor(F32), np.float32(-2))
    shift = scalars(lambda x: node(ops.Subtract(), x, start), F32, name="shift")
    loop = ops.While(scalars(lambda x: less(x, limit), F32), scalars(lambda x: node(ops.Call(shift), x), F32))
    text = str(Graph((), (node(loop, node(ops.Call(shift), start)),)))
    assert text.count("func.func private @shift(%arg0: tensor<f32>, %arg1: tensor<f32>)") == 1
    assert squeeze_spaces(str(parse(text))) == squeeze_spaces(text)
    # The call gives 0; from there in steps of 2 to the first number that is not below 5.
    assert run_stablehlo(text, start.value, limit.value) == [6]


def test_equal_graphs_with_different_leaves() -> None:
    """One uses a single leaf twice, at two levels; the other one uses two: they need different functions."""
    first, second = data(V, ROW), data(V, -ROW)
    inner, other = (graph(lambda x, leaf=leaf: add(x, leaf), V, name="inner") for leaf in (first, second))
    shared = graph(lambda x: node(ops.Call(inner), add(x, first)), V)
    apart = graph(lambda x: node(ops.Call(other), add(x, first)), V)
    assert shared == apart
    x = parameter(V)
    text = str(Graph((x,), (node(ops.Call(shared), x), node(ops.Call(apart), x))))
    got = run_stablehlo(text, ROW, ROW, -ROW)
    assert [value.tolist() for value in got] == [(ROW * 3).tolist(), ROW.tolist()]


def test_one_result_that_is_a_tuple() -> None:
    """It is taken apart by an op, unlike several results."""
    pair = graph(lambda v: node(ops.Tuple(), v, node(ops.Negate(), v)), V, name="pair")
    graph_of_part = graph(lambda v: part(1, node(ops.Call(pair), v)), V)
    assert "stablehlo.get_tuple_element %0[1]" in str(graph_of_part)
    np.testing.assert_array_equal(run_stablehlo(str(graph_of_part), ROW), [-ROW])


def test_a_tuple_cannot_leave_main() -> None:
    with pytest.raises(ValueError, match="cannot take or return a tuple"):
        run_stablehlo(str(graph(lambda v: node(ops.Tuple(), v), V)), ROW)


# --- names --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "legal"),
    [
        ("main", "main"),
        ("<lambda>", "_lambda_"),
        ("f.<locals>.g", "f._locals_.g"),
        ("3rd", "_3rd"),
        ("größe 度", "gr__e__"),
        ("", "_"),
        ('a"b\n', "a_b_"),
    ],
)
def test_symbols_are_legal(name: str, legal: str) -> None:
    called = graph(lambda v: node(ops.Call(DOUBLE.with_name(name)), v), V, name=name)
    text = str(called)
    assert text.startswith(f"module @{legal} {{")
    assert f"func.func private @{legal if legal != 'main' else 'main_0'}(" in text
    np.testing.assert_array_equal(run_stablehlo(text, ROW), [ROW + ROW])


def test_symbols_are_unique() -> None:
    x = parameter(V)
    f, g = DOUBLE.with_name("f"), graph(lambda x: node(ops.Negate(), x), V, name="f")
    h = graph(lambda x: node(ops.Sine(), x), V, name="f_0")
    nested = graph(lambda x: node(ops.Call(g), node(ops.Call(h), node(ops.Call(f), x))), V, name="f")
    text = str(Graph((x,), (node(ops.Call(nested), x),)))
    assert re.findall(r"func private @(\w+)", text) == ["f", "f_0", "f_0_0", "f_1"]
    np.testing.assert_allclose(run_stablehlo(text, ROW), [-np.sin(ROW + ROW)], rtol=1e-5)


# --- locations ----------------------------------------------------------------------------------------------


def test_locations_name_the_line_that_built_the_node() -> None:
    x = parameter(V)
    line = inspect.currentframe().f_lineno + 1  # type: ignore[union-attr]
    result = Node(ops.Negate(), (x,))
    printed = Graph((x,), (result,))
    assert "loc(" not in printed.to_text()
    assert f'stablehlo.negate %arg0 : tensor<3xf32> loc("{__file__}":{line}:14)\n' in printed.to_text(
        locations=True
    )


@pytest.mark.parametrize("name", ["Reduce pairs", "Sort", "While", "Call", "Map", "DotGeneral", "Select"])
def test_mlir_reads_the_locations(name: str) -> None:
    text = CASES[name].graph.to_text(locations=True)
    assert "graph_parts.py" in text
    assert squeeze_spaces(str(parse(text))) == squeeze_spaces(CASES[name].graph.to_text())


def test_a_strange_file_name_is_quoted() -> None:
    scope: dict[str, Any] = {"Node": Node, "ops": ops, "x": parameter(V)}
    exec(compile("result = Node(ops.Negate(), (x,))", 'C:\\my "größe".py', "exec"), scope)
    text = Graph((scope["x"],), (scope["result"],)).to_text(locations=True)
    assert r'loc("C:\5Cmy \22gr\C3\B6\C3\9Fe\22.py":1:10)' in text
    parse(text)


# --- size ---------------------------------------------------------------------------------------------------


def test_a_hundred_thousand_nodes() -> None:
    x = parameter(tensor(F32))
    last = x
    for _ in range(50_000):
        last = add(last, constant(1))
    text = str(Graph((x,), (last,)))
    assert text.count("\n") == 100_004
    assert "%cst_49998 = stablehlo.constant" in text
    assert "    return %49999 : tensor<f32>" in text


def test_many_regions_among_many_constants() -> None:
    """Each region starts from the names around it; copying those would make this quadratic."""
    x = parameter(tensor(F32))
    body = scalars(lambda x: add(x, constant(1)), F32)
    loop = ops.While(scalars(lambda x: less(x, constant(3)), F32), body)
    last: Node = x
    for _ in range(5_000):
        last = add(node(loop, last), constant(2))
    assert str(Graph((x,), (last,))).count("stablehlo.while") == 5_000


def test_the_bar_of_a_loop_is_an_attribute_of_a_fixed_name() -> None:
    """Modules that were written before are read with their bars."""
    loop = xarr.lower(lambda x: lax.fori_loop(0, 3, lambda i, y: lax.add(y, x), x, progress="steps"), "f32[]")
    assert re.search(r'xarr\.counter = "\d+ \d+", xarr\.progress = "steps"', str(loop))
