"""Nodes, graphs and the stages they go through."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr.backend import AbstractBackend
from xarr.compiler.passes.decompose import decompose
from xarr.compiler.passes.simplify import simplify
from xarr.errors import BackendError, InputError, ShapeError
from xarr.ir import ops
from xarr.ir.device import Device
from xarr.ir.graph import Graph, GraphError, Node, data, parameter, postorder
from xarr.ir.op import Op, operation
from xarr.ir.ops.elementwise import Unary
from xarr.ir.types import TensorType, TupleType
from xarr_numpy.backend import NumpyBackend

F64 = np.dtype(np.float64)
VECTOR = TensorType((3,), F64)
SCALAR = TensorType((), F64)


def constant(value: Any, dtype: Any = np.float64) -> Node:
    return Node(ops.Constant.of(np.array(value, dtype)))


def graph(build: Callable[..., Node], *types: TensorType) -> Graph:
    nodes = [parameter(type) for type in types]
    return Graph(nodes, [build(*nodes)])


def binary(op: Op, x: Node, y: Node) -> Node:
    return Node(op, (x, y))


# --- equality and hash -----------------------------------------------------------------------------------


def test_equal_graphs() -> None:
    first, second = (graph(lambda x, y: binary(ops.Add(), x, y), VECTOR, VECTOR) for _ in range(2))
    assert first == second
    assert hash(first) == hash(second)
    assert first == second.with_name("other")
    assert first != "graph"


def test_a_pickled_op_leaves_its_hash_behind() -> None:
    """Hashes of texts differ from process to process."""
    op = ops.Compare("LT")
    assert hash(op) == hash(ops.Compare("LT"))
    copy = pickle.loads(pickle.dumps(op))
    assert copy == op
    assert "_hash" in vars(op) and "_hash" not in vars(copy)


DIFFERENT: dict[str, tuple[Graph, Graph]] = {
    "op": (
        graph(lambda x: binary(ops.Add(), x, x), VECTOR),
        graph(lambda x: binary(ops.Multiply(), x, x), VECTOR),
    ),
    "order of operands": (
        graph(lambda x, y: binary(ops.Subtract(), x, y), VECTOR, VECTOR),
        graph(lambda x, y: binary(ops.Subtract(), y, x), VECTOR, VECTOR),
    ),
    "parameter type": (graph(lambda x: x, VECTOR), graph(lambda x: x, SCALAR)),
    "unused parameter": (graph(lambda x: x, VECTOR), graph(lambda x, y: x, VECTOR, VECTOR)),
    "which result": (
        graph(lambda x, y: x, VECTOR, VECTOR),
        graph(lambda x, y: y, VECTOR, VECTOR),
    ),
    "attribute": (
        graph(lambda x: Node(ops.Reverse((0,)), (x,)), VECTOR),
        graph(lambda x: Node(ops.Reverse(()), (x,)), VECTOR),
    ),
    "direction": (
        graph(lambda x: binary(ops.Compare("LT"), x, x), VECTOR),
        graph(lambda x: binary(ops.Compare("LE"), x, x), VECTOR),
    ),
    "total order": (
        graph(lambda x: binary(ops.Compare("LT"), x, x), VECTOR),
        graph(lambda x: binary(ops.Compare("LT", total_order=True), x, x), VECTOR),
    ),
    "signed zeros": (graph(lambda: constant(0.0)), graph(lambda: constant(-0.0))),
    "kinds of NaN": (graph(lambda: constant(np.nan)), graph(lambda: constant(-np.nan))),
    "literal dtype": (graph(lambda: constant(1, np.int32)), graph(lambda: constant(1, np.uint32))),
    "literal shape": (graph(lambda: constant([1.0])), graph(lambda: constant([[1.0]]))),
    "carried graph": (
        graph(lambda x: Node(ops.Call(graph(lambda y: binary(ops.Add(), y, y), VECTOR)), (x,)), VECTOR),
        graph(lambda x: Node(ops.Call(graph(lambda y: y, VECTOR)), (x,)), VECTOR),
    ),
}


@pytest.mark.parametrize("what", DIFFERENT)
def test_graphs_that_differ(what: str) -> None:
    first, second = DIFFERENT[what]
    assert first != second
    assert first.key != second.key
    assert first == first


def test_nan_equals_itself_by_its_bits() -> None:
    assert graph(lambda: constant(np.nan)) == graph(lambda: constant(np.nan))


def test_sharing_is_structure() -> None:
    def share(x: Node) -> Node:
        y = Node(ops.Negate(), (x,))
        return binary(ops.Add(), y, y)

    def repeat(x: Node) -> Node:
        return binary(ops.Add(), Node(ops.Negate(), (x,)), Node(ops.Negate(), (x,)))

    assert graph(share, VECTOR) != graph(repeat, VECTOR)
    assert simplify(graph(repeat, VECTOR)) == graph(share, VECTOR)


def test_types_are_interned() -> None:
    assert TensorType((3,), F64) is VECTOR
    assert TupleType((VECTOR, SCALAR)) is TupleType((VECTOR, SCALAR))
    assert Node(ops.Negate(), (parameter(VECTOR),)).type is VECTOR


def test_types_have_the_element_types_that_operations_compare_by_identity() -> None:
    """NumPy's pickles of arrays make another object of a dtype, which may be the first of its shape in a process."""
    other: np.dtype[Any] = pickle.loads(pickle.dumps(np.ones(3))).dtype
    assert other is not F64
    assert TensorType((3, 977), other).dtype is F64


# --- verify ----------------------------------------------------------------------------------------------


def test_verify_accepts_what_is_sound() -> None:
    result = graph(
        lambda x, y: binary(ops.Add(), x, binary(ops.Multiply(), y, constant([1.0, 2, 3]))), VECTOR, VECTOR
    )
    assert result.verify() is result


def stray_parameter() -> Graph:
    return Graph([], [Node(ops.Negate(), (parameter(VECTOR),))])


def wrong_type() -> Graph:
    x = parameter(VECTOR)
    return Graph([x], [Node(ops.Negate(), (x,), SCALAR)])


def mixed_shapes() -> Graph:
    x, y = parameter(VECTOR), parameter(SCALAR)
    return Graph([x, y], [Node(ops.Add(), (x, y), VECTOR)])


def twice() -> Graph:
    x = parameter(VECTOR)
    return Graph([x, x], [x])


def bad_body() -> Graph:
    x = parameter(VECTOR)
    return Graph([x], [Node(ops.Call(wrong_type()), (x,), SCALAR)])


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (stray_parameter, GraphError, "is a parameter of another graph"),
        (wrong_type, GraphError, "has a type other than inferred, tensor<3xf64>"),
        (mixed_shapes, ShapeError, r"add \[C3\]: wanted operands of one shape"),
        (twice, GraphError, "a parameter is listed twice"),
        (bad_body, GraphError, "has a type other than inferred"),
    ],
    ids=["stray parameter", "wrong type", "mixed shapes", "twice", "bad body"],
)
def test_verify_finds(build: Callable[[], Graph], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        build().verify()


# --- walks -----------------------------------------------------------------------------------------------


def test_postorder_puts_operands_first_and_lists_each_node_once() -> None:
    x, y = parameter(VECTOR), parameter(VECTOR)
    a = binary(ops.Add(), x, y)
    b = binary(ops.Multiply(), a, a)
    c = binary(ops.Subtract(), b, x)
    assert postorder([c, a]) == [x, y, a, b, c]
    assert postorder([c], stop=lambda node: node is b) == [b, x, c]
    assert postorder([]) == []


def test_deep_graphs_need_no_recursion() -> None:
    x = parameter(SCALAR)
    y = x
    for _ in range(20_000):
        y = Node(ops.Negate(), (y,))
    deep = Graph([x], [y])
    other = parameter(SCALAR)
    (copied,) = deep.inline(other)
    assert Graph([other], [copied]) == deep
    assert len(simplify(deep).nodes) == 20_000
    assert len(deep.verify().nodes) == 20_000
    assert decompose(deep, NumpyBackend()) is deep
    assert isinstance(hash(deep), int)


def test_inline_wants_as_many_operands() -> None:
    with pytest.raises(ShapeError, match="takes 1 argument, got 2"):
        graph(lambda x: x, VECTOR).inline(parameter(VECTOR), parameter(VECTOR))


def test_nodes_know_depth_trace_and_source() -> None:
    x, value = parameter(VECTOR), data(VECTOR, np.ones(3), NumpyBackend().device())
    y = binary(ops.Add(), x, value)
    assert (x.depth, value.depth, y.depth) == (0, 0, 1)
    assert (x.traced, value.traced, y.traced) == (True, False, True)
    assert y.source is not None
    assert y.source.filename == __file__
    y.settle(np.zeros(3), NumpyBackend().device())
    assert (y.depth, y.operands, y.type) == (0, (), VECTOR)


def test_a_node_lives_where_its_operands_do() -> None:
    here, there = NumpyBackend().device(), Device(NumpyBackend(), 1)
    one, x, y = constant([1.0, 1.0, 1.0]), data(VECTOR, np.ones(3), here), data(VECTOR, np.ones(3), there)
    listed = data(VECTOR, np.ones(3), there.uncommitted)
    assert one.device is None
    assert binary(ops.Add(), one, one).device is None
    assert binary(ops.Add(), one, x).device is binary(ops.Add(), x, one).device is here
    assert binary(ops.Add(), one, listed).device is there.uncommitted
    assert binary(ops.Add(), listed, x).device is binary(ops.Add(), x, listed).device is here
    assert binary(ops.Add(), listed, y).device is there
    assert Node(ops.Iota(VECTOR, 0), device=here).device is here
    with pytest.raises(
        BackendError, match=r'two devices, numpy and numpy:1; move one, e\.g\. x\.to\("numpy"\)'
    ):
        binary(ops.Add(), x, y)
    with pytest.raises(BackendError, match="two devices"):
        Node(ops.Negate(), (x,), device=there)


def test_a_value_of_constants_alone_stays_uncommitted() -> None:
    device = NumpyBackend().device()
    one, x = constant([1.0, 1.0, 1.0]), data(VECTOR, np.ones(3), device)
    alone, beside = binary(ops.Add(), one, one), binary(ops.Add(), one, x)
    for node in (alone, beside):
        node.settle(np.full(3, 2.0), device)
    assert (alone.device, beside.device) == (device.uncommitted, device)
    assert (device.uncommitted.committed, device.uncommitted.is_committed) == (device, False)
    assert device.uncommitted.uncommitted is device.uncommitted


# --- simplify --------------------------------------------------------------------------------------------


def test_simplify_merges_repeated_work() -> None:
    def program(x: Any) -> Any:
        return xarr.exp(x + 1) * xarr.exp(x + 1) + (x + 1)

    lowered = xarr.lower(program, "f64[3]")
    simple = lowered.stage("simplified")
    assert isinstance(simple, Graph)
    names = [node.op.lax_name for node in simple]
    assert sorted(names) == ["add", "add", "broadcast_in_dim", "constant", "exp", "mul"]
    simple.verify()


@pytest.mark.parametrize(
    "move",
    [
        lambda x: Node(ops.Reshape((3,)), (x,)),
        lambda x: Node(ops.Transpose((0,)), (x,)),
        lambda x: Node(ops.Convert(F64), (x,)),
        lambda x: Node(ops.BroadcastInDim((3,), (0,)), (x,)),
        lambda x: Node(ops.Slice((0,), (3,), (1,)), (x,)),
        lambda x: Node(ops.GetTupleElement(1), (Node(ops.Tuple(), (Node(ops.Negate(), (x,)), x)),)),
    ],
    ids=["reshape", "transpose", "convert", "broadcast", "slice", "tuple"],
)
def test_simplify_drops_moves_that_move_nothing(move: Callable[[Node], Node]) -> None:
    assert simplify(graph(lambda x: Node(ops.Negate(), (move(x),)), VECTOR)) == graph(
        lambda x: Node(ops.Negate(), (x,)), VECTOR
    )


def test_simplify_keeps_moves_that_move() -> None:
    square = TensorType((2, 2), F64)
    result = graph(lambda x: Node(ops.Transpose((1, 0)), (x,)), square)
    assert simplify(result) == result


def test_barriers_stay() -> None:
    def program(x: Any) -> Any:
        return xarr.lax.optimization_barrier(x + x) * xarr.lax.optimization_barrier(x + x)

    simple = xarr.lower(program, "f64[3]").stage("simplified")
    assert isinstance(simple, Graph)
    names = [node.op.lax_name for node in simple]
    assert names.count("optimization_barrier") == 2
    assert names.count("add") == 1


def test_literals_that_differ_in_sign_are_not_merged() -> None:
    simple = simplify(graph(lambda: binary(ops.Divide(), constant(0.0), constant(-0.0))))
    assert len([node for node in simple if isinstance(node.op, ops.Constant)]) == 2


# --- decompose -------------------------------------------------------------------------------------------


@operation
class Cube(Unary):
    """x * x * x: a composite op."""

    name = "xarr.cube"
    lax_name = "cube"
    accepts = frozenset({F64})

    def decompose(self, *operands: Node) -> Node:
        (x,) = operands
        return binary(ops.Multiply(), Node(Square(), (x,)), x)


@operation
class Square(Unary):
    """x * x: a composite op inside another."""

    name = "xarr.square"
    lax_name = "square"
    accepts = frozenset({F64})

    def decompose(self, *operands: Node) -> Node:
        (x,) = operands
        return binary(ops.Multiply(), x, x)


class Limited(NumpyBackend):
    """Multiplies, and nothing else."""

    name = "limited"

    def supports(self, op: type[Op]) -> bool:
        return op is ops.Multiply


def test_decompose_replaces_what_a_backend_lacks() -> None:
    results = decompose(graph(lambda x: binary(ops.Multiply(), Node(Cube(), (x,)), x), VECTOR), Limited())
    assert {type(node.op) for node in results} == {ops.Multiply}
    results.verify()
    (result,) = NumpyBackend().compile(results)(np.array([1.0, 2.0, 3.0]))
    assert_same(result, np.array([1.0, 16.0, 81.0]))


def test_decompose_refuses_what_has_no_definition() -> None:
    backend: AbstractBackend = Limited()
    with pytest.raises(BackendError, match=r"backend 'limited' has no stablehlo\.negate") as caught:
        decompose(graph(lambda x: Node(ops.Negate(), (x,)), VECTOR), backend)
    assert f"{__file__}:" in str(caught.value)


# --- lower -----------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("unfused")
def test_every_stage() -> None:
    lowered = xarr.lower(lambda x: x * 2.0 + x * 2.0, xarr.asarray(np.ones(3)).to("numpy"))
    traced, simplified, decomposed = (lowered.stage(name) for name in ("traced", "simplified", "decomposed"))
    for stage in (traced, simplified, decomposed):
        assert isinstance(stage, Graph)
        assert "stablehlo.multiply" in str(stage)
    assert isinstance(traced, Graph)
    assert isinstance(simplified, Graph)
    assert len(traced.nodes) > len(simplified.nodes)
    assert str(lowered) == str(traced)
    program = lowered.stage("program")
    assert not isinstance(program, Graph)
    assert "np.multiply" in program.text
    assert_same(program(np.ones(3))[0], np.full(3, 4.0))
    with pytest.raises(
        ValueError,
        match="wanted one of the stages traced, simplified, static, decomposed, fused, loops, plan, program",
    ):
        lowered.stage("fused?")


def test_lower_captures_and_returns_several() -> None:
    outside = xarr.asarray([1.0, 2.0])
    lowered = xarr.lower(lambda x: [x + outside, x], "f64[2]")
    assert len(lowered.captured) == 1
    assert [type.short() for type in lowered.graph.parameter_types] == ["f64[2]", "f64[2]"]
    assert len(lowered.graph.results) == 2
    with pytest.raises(InputError, match="got NoneType"):
        xarr.lower(lambda x: None, "f64[2]")


def test_numbers_stay_weak_when_lowered() -> None:
    lowered = xarr.lower(lambda x, rate: x * rate, "f32[2]", 0.5)
    assert [type.short() for type in lowered.graph.result_types] == ["f32[2]"]
    assert len(lowered.graph.parameters) == 1
