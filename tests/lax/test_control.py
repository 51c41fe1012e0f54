"""Loops, branches, calls, maps, tuples and the barrier, against jax.lax on the CPU."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr import lax
from xarr.backend import AbstractBackend, get
from xarr.compiler.passes.decompose import decompose
from xarr.compiler.passes.simplify import simplify
from xarr.compiler.pipeline import make_program
from xarr.errors import BackendError, DTypeError, InputError, ShapeError, TracedValueError
from xarr.ir import ops
from xarr.ir.graph import Graph, Node, map_graphs, parameter
from xarr.ir.op import Op
from xarr.ir.types import TensorType, TupleType
from xarr.lax.tuples import TupleValue
from xarr.runtime import materialisation, trace_to_graph

jax.config.update("jax_enable_x64", True)


class State(NamedTuple):
    count: Any
    rest: Any


def value(array: Any) -> Any:
    return np.asarray(array)


def same(mine: Any, theirs: Any) -> None:
    got, wanted = value(mine), value(theirs)
    assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
    np.testing.assert_array_equal(got, wanted)


def is_below(limit: Any) -> Any:
    return lambda carry: lax.lt(carry, limit)


# --- loops -----------------------------------------------------------------------------------------


def collatz(module: Any, start: Any) -> Any:
    def step(carry: Any) -> Any:
        n, steps = carry["n"], carry["steps"]
        odd = module.eq(module.rem(n, np.int64(2)), np.int64(1))
        grown = module.add(module.mul(n, np.int64(3)), np.int64(1))
        return {
            "n": module.select(odd, grown, module.div(n, np.int64(2))),
            "steps": module.add(steps, np.int64(1)),
        }

    return module.while_loop(
        lambda c: module.gt(c["n"], np.int64(1)), step, {"n": np.int64(start), "steps": np.int64(0)}
    )


def test_while_loop_agrees_on_a_pytree() -> None:
    mine, theirs = collatz(lax, 27), collatz(jax.lax, 27)
    assert mine.keys() == theirs.keys()
    same(mine["steps"], theirs["steps"])
    same(mine["n"], theirs["n"])


def test_while_loop_of_one_array_of_none_and_of_no_iterations() -> None:
    assert int(value(lax.while_loop(is_below(10), lambda c: lax.add(c, 3), 0))) == 12
    assert int(value(lax.while_loop(is_below(10), lambda c: lax.add(c, 3), 50))) == 50
    assert lax.while_loop(lambda c: False, lambda c: c, None) is None
    result = lax.while_loop(
        lambda c: lax.lt(c.count, 2),
        lambda c: State(lax.add(c.count, 1), [c.rest[0]]),
        State(0, [np.zeros((0, 3))]),
    )
    assert isinstance(result, State)
    assert value(result.rest[0]).shape == (0, 3)


def test_body_may_return_python_scalars_of_a_kind_that_fits() -> None:
    results = lax.while_loop(
        lambda c: lax.gt(c[0], 0.5), lambda c: (0, lax.add(c[1], 1)), (np.float32(1), np.int8(3))
    )
    same(results[0], np.float32(0))
    same(results[1], np.int8(4))


def test_nested_loops_close_over_both_levels() -> None:
    outer = lax.add(np.arange(3.0), 1.0)
    hidden = np.array([10.0, 20.0, 30.0])

    def body(carry: Any) -> Any:
        i, total = carry
        level = lax.convert_element_type(i, np.float64)

        def inner(state: Any) -> Any:
            j, x = state
            return lax.add(j, 1), lax.add(lax.add(x, lax.mul(outer, level)), hidden)

        return lax.add(i, 1), lax.while_loop(lambda s: lax.lt(s[0], i), inner, (0, total))[1]

    i, total = lax.while_loop(lambda c: lax.lt(c[0], 4), body, (0, np.zeros(3)))
    wanted = np.zeros(3)
    for level in range(4):
        for _ in range(level):
            wanted += np.arange(1.0, 4.0) * level + hidden
    np.testing.assert_array_equal(value(total), wanted)
    assert int(value(i)) == 4


def test_condition_and_body_capture_different_values() -> None:
    limit, step = lax.add(np.int64(20), 1), lax.reduce_sum(np.array([3, 4]), (0,))
    limits = lax.add(np.full(1, 20), 1)
    result = lax.while_loop(
        lambda c: lax.lt(c, lax.reshape(limits, ())),
        lambda c: lax.add(lax.add(c, step), lax.sub(limit, limit)),
        0,
    )
    assert int(value(result)) == 21


def test_evaluating_one_result_keeps_the_others() -> None:
    runs = lax.while_loop(
        lambda c: lax.lt(c[0], 3), lambda c: (lax.add(c[0], 1), lax.mul(c[1], 2.0)), (0, np.ones(2))
    )
    first, second = runs
    assert int(value(first)) == 3
    assert second._node.operands[0].value is not None
    np.testing.assert_array_equal(value(second), [8.0, 8.0])


def test_fori_loop_agrees() -> None:
    def run(module: Any, lower: Any, upper: Any) -> Any:
        return module.fori_loop(
            lower,
            upper,
            lambda i, v: (module.add(v[0], i), module.mul(v[1], np.float32(2))),
            (np.int64(0), np.ones(2, np.float32)),
        )

    for bounds in ((2, 6), (3, 3), (5, 1), (np.int64(-2), 2)):
        mine, theirs = run(lax, *bounds), run(jax.lax, *bounds)
        same(mine[0], theirs[0])
        same(mine[1], theirs[1])
    same(lax.fori_loop(0, np.int8(5), lambda i, v: lax.add(v, i), np.int8(0)), np.int8(10))


def test_fori_loop_refuses_bounds_that_are_no_integers() -> None:
    for bound in (2.5, True):
        with pytest.raises(DTypeError, match=f"two integer scalars for lower and upper, got {bound}"):
            lax.fori_loop(0, bound, lambda i, v: v, 0)
    with pytest.raises(
        DTypeError, match=r"two integer scalars of one element type .* got s32\[\] and s64\[\]"
    ):
        lax.fori_loop(np.int32(0), np.int64(2), lambda i, v: v, 0)
    with pytest.raises(InputError, match="wanted a function for body_fun"):
        lax.fori_loop(0, 2, None, 0)  # type: ignore[arg-type]


def test_while_c1_condition() -> None:
    with pytest.raises(
        ShapeError, match=r"while_loop \[C1\]: wanted a bool scalar from cond_fun, got pred\[2\]"
    ):
        lax.while_loop(is_below(3.0), lambda c: c, np.ones(2))
    with pytest.raises(ShapeError, match=r"while_loop \[C1\].*got s64\[\]"):
        lax.while_loop(lambda c: c, lambda c: c, 0)
    with pytest.raises(ShapeError, match=r"while_loop \[C1\].*got \(\*, \*\)"):
        lax.while_loop(lambda c: (True, True), lambda c: c, 0)


def test_while_c2_python_scalar_that_becomes_another_type() -> None:
    message = r"while_loop \[C2\].*at \['x'\] is s64\[\] in init_val and f64\[\] after.*start from numpy.float64\(0\)"
    with pytest.raises(ShapeError, match=message):
        lax.while_loop(
            lambda c: True, lambda c: {"x": lax.add(lax.convert_element_type(c["x"], float), 0.5)}, {"x": 0}
        )


def test_while_c2_shape_dtype_and_structure() -> None:
    with pytest.raises(
        ShapeError, match=r"while_loop \[C2\].*f64\[2\] in init_val and f64\[1,2\].*shape \(1, 2\)"
    ):
        lax.while_loop(lambda c: True, lambda c: lax.broadcast(c, (1,)), np.ones(2))
    with pytest.raises(
        ShapeError, match=r"\[C2\].*end the body with convert_element_type\(result, numpy.float32\)"
    ):
        lax.while_loop(
            lambda c: True, lambda c: lax.convert_element_type(c, np.float64), np.ones(2, np.float32)
        )
    with pytest.raises(ShapeError, match=r"while_loop \[C2\].*wanted 2 elements, got 1"):
        lax.while_loop(lambda c: True, lambda c: (c[0],), (0, 1))


def test_reading_a_traced_value_is_refused() -> None:
    with pytest.raises(TracedValueError, match=r"use lax\.cond, lax\.select or lax\.while_loop"):
        lax.while_loop(is_below(3), lambda c: lax.add(c, int(value(c))), 0)
    leaked: list[Any] = []
    lax.cond(True, lambda x: leaked.append(x) or x, lambda x: x, 1.0)
    with pytest.raises(TracedValueError, match=r"became an argument at .*test_control"):
        value(leaked[0])


# --- branches --------------------------------------------------------------------------------------


@pytest.mark.parametrize("pred", [True, False, 0, 2, 0.0, -0.5, np.nan, np.bool_(True), np.int8(0)])
def test_cond_agrees_for_bools_and_numbers(pred: Any) -> None:
    def run(module: Any) -> Any:
        return module.cond(
            pred, lambda x, y: (module.add(x, y), [x]), lambda x, y: (module.sub(x, y), [y]), *operands
        )

    operands = (np.arange(3.0), np.full(3, 2.0))
    mine, theirs = run(lax), run(jax.lax)
    same(mine[0], theirs[0])
    same(mine[1][0], theirs[1][0])


def test_cond_captures_and_runs_one_branch_only() -> None:
    outer, other = lax.add(np.arange(3.0), 1.0), np.full(3, 7.0)

    def forever() -> Any:
        return lax.while_loop(lambda c: True, lambda c: c, other)

    np.testing.assert_array_equal(
        value(lax.cond(True, lambda: lax.mul(outer, 2.0), forever)), [2.0, 4.0, 6.0]
    )
    pred = lax.gt(lax.reduce_max(outer, (0,)), 100.0)
    np.testing.assert_array_equal(value(lax.cond(pred, forever, lambda: outer)), [1.0, 2.0, 3.0])


def test_python_scalar_in_a_branch_takes_the_other_branch_s_type() -> None:
    same(lax.cond(False, lambda x: x, lambda x: 2, np.float32(1)), np.float32(2))
    same(lax.cond(True, lambda: 1, lambda: 2), np.int64(1))


@pytest.mark.parametrize("index", [-5, 0, 1, 2, 9, np.int8(1), np.uint64(2**63), np.int64(2**32)])
def test_switch_moves_the_index_into_range(index: Any) -> None:
    branches = [lambda x: lax.add(x, 10), lambda x: lax.mul(x, 20), lambda x: lax.neg(x)]
    wanted = [11, 20, -1][min(max(int(index), 0), 2)]
    assert int(value(lax.switch(index, branches, 1))) == wanted
    assert int(value(lax.switch(index, branches[:1], 1))) == 11


@pytest.mark.parametrize("index", [-1, 0, 1, 2, np.uint8(7), np.uint64(2**32), np.int64(-(2**32))])
def test_conditional_by_index_takes_the_last_branch_out_of_range(index: Any) -> None:
    result = lax.conditional(index, [lambda x: x, lambda x: lax.neg(x)], [5, 6])
    assert int(value(result)) == (5 if int(index) == 0 else -6)


def test_conditional_by_predicate_gives_each_branch_its_own_operand() -> None:
    for pred, wanted in ((True, 4.0), (False, 2.0)):
        result = lax.conditional(
            pred, np.full(4, 1.0), lambda x: lax.reduce_sum(x, (0,)), {"a": 2.0}, lambda x: x["a"]
        )
        assert value(result) == wanted
    with pytest.raises(InputError, match="conditional: wanted"):
        lax.conditional(True, 1, 2, 3)
    with pytest.raises(InputError, match="wanted a function for computation 1, got 3"):
        lax.conditional(True, 1, lambda x: x, 2, 3)


def test_cond_c1_predicate() -> None:
    with pytest.raises(ShapeError, match=r"cond \[C1\]: wanted a scalar predicate, got pred\[2\].*select"):
        lax.cond(np.ones(2, bool), lambda: 1, lambda: 2)
    with pytest.raises(DTypeError, match=r"cond \[C1\]: wanted a bool or a real number, got c128\[\]"):
        lax.cond(1j, lambda: 1, lambda: 2)


def test_cond_c3_branches_that_differ() -> None:
    with pytest.raises(
        ShapeError, match=r"cond \[C3\].*true_fun gives f32\[\] and false_fun gives f64\[\] at \[0\]"
    ):
        lax.cond(True, lambda x: (x,), lambda x: (lax.convert_element_type(x, np.float64),), np.float32(1))
    with pytest.raises(ShapeError, match=r"cond \[C3\].*same structure: wanted \*, got \(\*, \*\)"):
        lax.cond(True, lambda x: x, lambda x: (x, x), 1)
    with pytest.raises(InputError, match="wanted a function for false_fun, got 3"):
        lax.cond(True, lambda x: x, 3, 1)  # type: ignore[arg-type]


def test_switch_c1_index_and_c3_branches() -> None:
    with pytest.raises(ShapeError, match=r"switch \[C1\]: wanted a scalar index, got s64\[1\]"):
        lax.switch(np.zeros(1, np.int64), [lambda: 1])
    with pytest.raises(DTypeError, match=r"switch \[C1\]: wanted an integer index, got f64\[\]"):
        lax.switch(0.5, [lambda: 1])
    with pytest.raises(ShapeError, match=r"switch \[C3\]: wanted at least one branch"):
        lax.switch(0, [])
    with pytest.raises(
        ShapeError, match=r"switch \[C3\].*branch 0 gives s64\[\] and branch 2 gives s64\[1\]"
    ):
        lax.switch(0, [lambda x: x, lambda x: x, lambda x: lax.broadcast(x, (1,))], 1)


# --- call, map, barrier, tuples ----------------------------------------------------------------------


def test_call_keeps_the_function_as_one_computation() -> None:
    outer = np.array([5.0, 6.0])
    result = lax.call(
        lambda x, y: {"sum": lax.add(x, y), "other": lax.mul(x, outer)}, np.ones(2), np.full(2, 2.0)
    )
    np.testing.assert_array_equal(value(result["sum"]), [3.0, 3.0])
    np.testing.assert_array_equal(value(result["other"]), outer)
    node = result["sum"]._node
    assert isinstance(lax.call(lambda x: x, node and 1.0)._node.op, ops.Call)


def test_map_elements_with_branches_and_loops() -> None:
    operand = np.array([[1.0, -4.0, 9.0], [np.nan, 0.0, -0.25]])

    def safe_root(x: Any) -> Any:
        return lax.cond(lax.ge(x, 0.0), lambda: lax.sqrt(x), lambda: 0.0)

    np.testing.assert_array_equal(
        value(lax.map_elements(safe_root, operand)), np.sqrt(np.where(operand >= 0, operand, 0))
    )

    def halvings(n: Any, limit: Any) -> Any:
        return lax.while_loop(
            lambda c: lax.gt(c[0], limit), lambda c: (lax.div(c[0], 2), lax.add(c[1], 1)), (n, 0)
        )[1]

    counts = lax.map_elements(halvings, np.array([[1, 8, 100], [0, 3, 17]]), np.full((2, 3), 1))
    np.testing.assert_array_equal(value(counts), [[0, 3, 6], [0, 1, 4]])


def test_a_branch_that_never_ends_harms_no_lane_that_takes_the_other() -> None:
    def wait_if_negative(x: Any) -> Any:
        return lax.cond(
            lax.lt(x, 0), lambda: lax.while_loop(lambda c: lax.lt(c, 0), lambda c: c, x), lambda: lax.neg(x)
        )

    np.testing.assert_array_equal(value(lax.map_elements(wait_if_negative, np.array([1, 0, 5]))), [-1, 0, -5])


def test_map_elements_with_a_switch_constants_tuples_and_scalars() -> None:
    branches = [lambda: 10, lambda: 20, lambda: 30]
    result = lax.map_elements(lambda i: lax.switch(i, branches), np.array([2, -1, 7, 1]))
    np.testing.assert_array_equal(value(result), [30, 10, 30, 20])
    last = lax.map_elements(lambda i: lax.conditional(i, branches_of_one, [0, 1]), np.array([0, -1, 5]))
    np.testing.assert_array_equal(value(last), [0, -1, -1])
    np.testing.assert_array_equal(value(lax.map_elements(lambda x: 3, np.zeros((2, 2)))), np.full((2, 2), 3))
    pair = lax.map_elements(lambda x: lax.get_tuple_element(lax.tuple(x, lax.neg(x)), 1), np.arange(3))
    np.testing.assert_array_equal(value(pair), [0, -1, -2])
    summed = lax.map_elements(
        lambda x, y: lax.dot_general(x, y, (((), ()), ((), ()))), np.arange(3), np.arange(3)
    )
    np.testing.assert_array_equal(value(summed), [0, 1, 4])
    assert value(lax.map_elements(lax.exp, np.zeros((0, 2)))).shape == (0, 2)
    same(lax.map_elements(lax.exp, 0.0), np.float64(1))


branches_of_one = [lambda x: x, lambda x: lax.neg(x)]


def test_map_c1_shapes_and_c3_computation() -> None:
    with pytest.raises(
        ShapeError, match=r"map_elements \[C1\]: wanted arrays of one shape, got f64\[2\], f64\[3\]"
    ):
        lax.map_elements(lax.add, np.ones(2), np.ones(3))
    with pytest.raises(ShapeError, match=r"map_elements \[C1\]"):
        lax.map_elements(lambda: 1)
    with pytest.raises(
        ShapeError, match=r"map_elements \[C3\]: wanted one scalar from the computation, got \(\*, \*\)"
    ):
        lax.map_elements(lambda x: (x, x), np.ones(2))
    with pytest.raises(ShapeError, match=r"map_elements \[C3\].*one scalar result, got f64\[2\]"):
        lax.map_elements(lambda x: lax.broadcast(x, (2,)), np.ones(2))
    with pytest.raises(ShapeError, match=r"map_elements \[C3\]: a computation may use its arguments only"):
        outer = lax.reduce_sum(np.ones(2), (0,))
        lax.map_elements(lambda x: lax.add(x, outer), np.ones(2))


@pytest.mark.usefixtures("on_numpy")
def test_arrays_inside_a_scalar_computation_are_refused_with_the_line() -> None:
    with pytest.raises(BackendError, match="move it out of the combiner, comparator or map"):
        value(lax.map_elements(lambda x: lax.reduce_sum(lax.broadcast(x, (2,)), (0,)), np.ones(2)))


def test_barrier_keeps_equal_work_apart() -> None:
    x = np.arange(3.0)
    result = lax.optimization_barrier({"a": x, "b": (lax.exp(x), 2)})
    np.testing.assert_array_equal(value(result["a"]), x)
    np.testing.assert_array_max_ulp(value(result["b"][0]), np.exp(x), 1)
    assert lax.optimization_barrier(()) == ()
    (graph, _) = trace_to_graph.trace(
        lambda p: [lax.add(lax.exp(lax.optimization_barrier(p)), lax.exp(lax.optimization_barrier(p)))],
        [f64(3)],
    )
    assert sum(isinstance(node.op, ops.Exponential) for node in simplify(graph)) == 2


@pytest.mark.parametrize("jitted", [False, True], ids=["plain", "jit"])
def test_barrier_hands_tokens_on(jitted: bool) -> None:
    def program(x: Any) -> Any:
        y, token = lax.optimization_barrier((x, lax.create_token()))
        alone = lax.optimization_barrier(lax.after_all(token))
        return lax.recv(((2,), "float32"), lax.send(y * 2, alone, 3, [(0, 0)]), 3, [(0, 0)])[0]

    result = (xarr.jit(program) if jitted else program)(xarr.asarray(np.float32([1, 2])))
    assert_same(result, np.float32([2, 4]))


@pytest.mark.parametrize("form", ["%x, %t", "%t, %x"])
def test_barrier_of_tokens_is_read_and_printed(form: str) -> None:
    types = ", ".join({"%x": "tensor<3xf32>", "%t": "!stablehlo.token"}[name] for name in form.split(", "))
    text = f"""func.func @main(%x: tensor<3xf32>, %t: !stablehlo.token) -> (tensor<3xf32>, !stablehlo.token) {{
      %0:2 = stablehlo.optimization_barrier {form} : {types}
      return {"%0#0, %0#1" if form[1] == "x" else "%0#1, %0#0"} : tensor<3xf32>, !stablehlo.token
    }}"""
    graph = xarr.stablehlo.parse(text).main
    assert f": {types}" in graph.to_text()
    assert xarr.stablehlo.parse(graph.to_text()).main == graph


def test_optimization_barrier_c0() -> None:
    pair = parameter(TupleType((f64(3),)))
    with pytest.raises(ShapeError, match=r"optimization_barrier \[C0\]: wanted arrays"):
        Node(ops.OptimizationBarrier(), (pair,))


def test_tuples_hold_arrays_and_tuples() -> None:
    whole = lax.tuple(np.ones(2), lax.tuple(3, np.zeros((0, 1))), 2.5)
    assert isinstance(whole, TupleValue)
    assert repr(whole) == "TupleValue((f64[2], (s64[], f64[0,1]), f64[]))"
    inner = whole[1]
    assert isinstance(inner, TupleValue)
    materialisation.evaluate(whole, inner)
    assert int(value(inner[0])) == 3
    assert [value(part).shape for part in inner] == [(), (0, 1)]
    assert value(lax.get_tuple_element(whole, 2)) == 2.5
    assert len(whole) == 3 and value(whole[-1]) == 2.5


def test_tuple_errors() -> None:
    pair = lax.tuple(1, 2)
    with pytest.raises(ShapeError, match=r"get_tuple_element \[C2\]: wanted an index in \[0, 2\), got 2"):
        lax.get_tuple_element(pair, 2)
    with pytest.raises(InputError, match=r"wanted a value made by lax\.tuple, got ndarray"):
        lax.get_tuple_element(np.ones(2), 0)  # type: ignore[arg-type]
    with pytest.raises(IndexError):
        pair[2]
    with pytest.raises(InputError, match="read its elements with get_tuple_element"):
        lax.call(lambda x: x, pair)


# --- the compiler looks into carried graphs ----------------------------------------------------------


def f64(*shape: int) -> TensorType:
    return TensorType(shape, np.dtype(np.float64))


def loop_graph(body: Any) -> Graph:
    graph, _ = trace_to_graph.trace(
        lambda x: [lax.while_loop(lambda c: lax.lt(lax.reduce_sum(c, (0,)), 9.0), body, x)], [f64(2)]
    )
    return graph


def test_simplify_reaches_carried_graphs() -> None:
    graph = loop_graph(lambda c: lax.add(lax.exp(lax.reshape(c, (2,))), lax.exp(c)))
    op = simplify(graph).nodes[-1].op
    assert isinstance(op, ops.While)
    assert [type(node.op) for node in op.body] == [ops.Exponential, ops.Add]
    assert simplify(simplify(graph)) == simplify(graph)


class WithoutExp(AbstractBackend):
    name = "partial"

    def __init__(self, missing: type[Op]) -> None:
        self.missing = missing

    def supports(self, op: type[Op]) -> bool:
        return op is not self.missing

    def compile(self, graph: Graph) -> Any:
        return get("numpy").compile(graph)

    def from_host(self, array: Any) -> Any:
        return array

    def to_host(self, buffer: Any) -> Any:
        return buffer


def test_decompose_reaches_carried_graphs() -> None:
    inner = lambda c: lax.while_loop(lambda d: lax.lt(lax.reduce_sum(d, (0,)), 1.0), lax.exp, c)  # noqa: E731
    graph = loop_graph(inner)
    assert decompose(graph, WithoutExp(ops.Sine)) is graph
    with pytest.raises(BackendError, match=r"'partial' has no stablehlo.exponential(.|\n)*test_control"):
        decompose(graph, WithoutExp(ops.Exponential))


def test_map_graphs_changes_every_graph_and_nothing_else() -> None:
    x = parameter(f64())
    branches = tuple(Graph([x], [Node(op, (x,))]) for op in (ops.Sine(), ops.Cosine()))
    case = ops.Case(branches)
    assert map_graphs(case, lambda graph: graph) is case
    swapped = map_graphs(case, lambda graph: branches[0])
    assert swapped == ops.Case((branches[0], branches[0]))
    reduction = ops.Reduce((1, 0), branches[0])
    assert map_graphs(reduction, lambda graph: branches[1]) == ops.Reduce((1, 0), branches[1])
    assert map_graphs(ops.Sine(), lambda graph: branches[0]) == ops.Sine()


@pytest.mark.usefixtures("unfused")
def test_program_text_shows_the_carried_programs() -> None:
    program: Any = make_program(loop_graph(lambda c: lax.map_elements(lax.exp, c)), get("numpy")).program
    assert re.search(r"while_loop\w*\((c0, )?f0, f1, a0\)", program.text)
    for header in ("def program(a0):", "def f0(a0):", "def f1(a0):", "def f1_0(a0):"):
        assert header in program.text
