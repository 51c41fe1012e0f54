"""Reading StableHLO text: what is printed is read back, what JAX exports runs, what is wrong is refused."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from tests.compare import assert_same
from tests.jax_programs import PROGRAMS, export
from tests.support.mutations import mutations
from tests.xla import context, parse as mlir_parse
from xarr import lax, stablehlo
from xarr.dtypes import TABLE
from xarr.errors import InputError, ParseError, XarrError
from xarr.ir import ops
from xarr.ir.graph import Graph, Node, parameter
from xarr.ir.types import TensorType
from xarr.lazy import Handle, trace

F32, I32, BOOL = (np.dtype(name) for name in ("float32", "int32", "bool"))


def tensor(*shape: int, dtype: Any = F32) -> TensorType:
    return TensorType(shape, np.dtype(dtype))


def traced(function: Any, *types: TensorType) -> Graph:
    """What a function of lax records."""

    def flat(*arguments: Handle) -> list[Any]:
        results = function(*arguments)
        return list(results) if isinstance(results, tuple | list) else [results]

    return trace(flat, types, None, "test")[0]


def constants(dtype: np.dtype[Any]) -> Graph:
    raw = np.random.default_rng(0).bytes(3 * 64 * dtype.itemsize)
    array = np.frombuffer(raw, dtype) if dtype != BOOL else np.frombuffer(raw, np.uint8) > 99
    parts = (
        array[:1].reshape(()),
        array[:6].reshape(2, 3),
        array[:0].reshape(0, 3),
        array[:192].reshape(3, 64),
    )
    splat = np.full((5, 2), array[0])
    return Graph((), [Node(ops.Constant.of(part)) for part in (*parts, splat)])


# --- round trips ------------------------------------------------------------------------------------

GRAPHS: dict[str, Graph] = {
    "arithmetic": traced(lambda x, y: lax.tanh(lax.add(x, y)), tensor(2, 3), tensor(2, 3)),
    "compare": traced(lambda x, y: (lax.lt(x, y), lax.select(lax.ge(x, y), x, y)), tensor(4), tensor(4)),
    "unsigned": traced(lambda x, y: lax.lt(x, y), tensor(4, dtype=np.uint8), tensor(4, dtype=np.uint8)),
    "clamp": traced(lambda a, x, b: lax.clamp(a, x, b), tensor(3), tensor(3), tensor(3)),
    "complex": traced(lambda x: (lax.real(lax.complex(x, x)), lax.abs(lax.complex(x, x))), tensor(3)),
    "convert": traced(lambda x: lax.convert_element_type(x, np.int8), tensor(3)),
    "bitcast": traced(lambda x: lax.bitcast_convert_type(x, np.uint8), tensor(3)),
    "precision": traced(lambda x: lax.reduce_precision(x, 5, 10), tensor(3)),
    "movement": traced(lambda x: lax.rev(lax.transpose(lax.reshape(x, (3, 2)), (1, 0)), (0,)), tensor(6)),
    "slice_pad": traced(
        lambda x: lax.pad(lax.slice(x, (1,), (9,), (3,)), np.float32(0), [(1, -1, 2)]), tensor(9)
    ),
    "broadcast": traced(lambda x: lax.broadcast_in_dim(x, (4, 3, 2), (1,)), tensor(3)),
    "concatenate": traced(lambda x, y: lax.concatenate([x, y, x], 1), tensor(2, 3), tensor(2, 1)),
    "iota": traced(lambda: lax.broadcasted_iota(np.int32, (2, 5), 1)),
    "reduce": traced(lambda x: lax.reduce(x, np.float32(0), lax.add, (0, 2)), tensor(2, 3, 4)),
    "argmax": traced(lambda x: lax.argmax(x, 1, np.int32), tensor(2, 3)),
    "sort": traced(lambda x, y: lax.sort((x, y), num_keys=1), tensor(2, 3), tensor(2, 3, dtype=I32)),
    "dot": traced(
        lambda x, y: lax.dot_general(x, y, (((2,), (1,)), ((0,), (0,)))), tensor(2, 3, 4), tensor(2, 4, 5)
    ),
    "while": traced(
        lambda x, y: lax.while_loop(lambda c: lax.lt(c, y), lambda c: lax.add(c, x), x), tensor(), tensor()
    ),
    "loop": traced(lambda x: lax.fori_loop(0, 5, lambda i, c: lax.mul(c, x), x), tensor(3)),
    "cond": traced(lambda p, x: lax.cond(p, lax.sin, lax.cos, x), tensor(dtype=BOOL), tensor(3)),
    "switch": traced(
        lambda i, x: lax.switch(i, [lax.sin, lax.cos, lax.tan], x), tensor(dtype=I32), tensor(3)
    ),
    "call": traced(lambda x: lax.call(lambda y: (lax.sin(y), lax.call(lax.cos, y)), x), tensor(3)),
    "map": traced(lambda x: lax.map_elements(lambda a: lax.mul(a, a), x), tensor(2, 3)),
    "barrier": traced(lambda x, y: lax.optimization_barrier((x, y)), tensor(3), tensor()),
    **{f"constant_{row.mlir}": constants(row.dtype) for row in TABLE},
}


@pytest.mark.parametrize("name", GRAPHS)
def test_reads_back_what_is_printed(name: str) -> None:
    text = GRAPHS[name].to_text()
    assert stablehlo.parse(text).main == GRAPHS[name]
    assert stablehlo.parse(text).main.to_text() == text


@pytest.mark.parametrize("name", GRAPHS)
def test_generic_form_means_the_same(name: str) -> None:
    with context():
        generic = mlir_parse(GRAPHS[name].to_text()).operation.get_asm(print_generic_op_form=True)
    assert '"func.return"(' in generic
    assert stablehlo.parse(generic).main == GRAPHS[name]


def test_tuples() -> None:
    x = parameter(tensor(2))
    pair = Node(ops.Tuple(), (x, Node(ops.Tuple(), (x,))))
    inner = Node(ops.GetTupleElement(1), (pair,))
    graph = Graph((x,), [Node(ops.GetTupleElement(0), (inner,)), pair])
    module = stablehlo.parse(graph.to_text())
    assert module.main == graph
    results = stablehlo.run(module, np.float32([1, 2]))
    assert [np.asarray(result).tolist() for result in results] == [[1, 2]] * 3


UNARY = (ops.Negate(), ops.Abs(), ops.Sine(), ops.Tanh(), ops.Sign(), ops.Asinh())
BINARY = (ops.Add(), ops.Multiply(), ops.Maximum(), ops.Atan2(), ops.Compare("LE", True), ops.NextAfter())


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Graphs over arrays of one rank-2 shape, with constants, reductions, loops and calls."""
    type = tensor(draw(st.integers(0, 3)), draw(st.integers(1, 3)))
    parameters = [parameter(type) for _ in range(draw(st.integers(0, 2)))]
    value = draw(st.floats(width=32))
    pool = [*parameters, Node(ops.Constant.of(np.full(type.shape, value, F32)))]
    for _ in range(draw(st.integers(1, 12))):
        pool.append(_step(draw, pool, type))
    results = draw(st.lists(st.sampled_from(pool), min_size=1, max_size=3))
    return Graph(parameters, results)


def _step(draw: st.DrawFn, pool: list[Node], type: TensorType) -> Node:
    x, y = draw(st.sampled_from(pool)), draw(st.sampled_from(pool))
    kind = draw(
        st.sampled_from(("unary", "binary", "select", "transpose", "reduce", "while", "call", "sort"))
    )
    if kind == "binary":
        found = Node(draw(st.sampled_from(BINARY)), (x, y))
        return found if found.dtype == F32 else Node(ops.Select(), (found, x, y))
    if kind == "transpose":
        turned = Node(ops.Transpose((1, 0)), (x,))
        return Node(ops.Transpose((1, 0)), (Node(ops.Reverse((0,)), (turned,)),))
    if kind == "reduce":
        a, b = parameter(tensor()), parameter(tensor())
        body = Node(draw(st.sampled_from(BINARY[:4])), (a, b))
        total = Node(ops.Reduce((0,), Graph((a, b), [body])), (x, Node(ops.Constant.of(np.float32(1.5)))))
        return Node(ops.BroadcastInDim(type.shape, (1,)), (total,))
    if kind in ("while", "call"):
        return _loop(x, y, type) if kind == "while" else _call(x, y, type)
    if kind == "sort":
        a, b = parameter(tensor()), parameter(tensor())
        return Node(ops.Sort(1, True, Graph((a, b), [Node(ops.Compare("LT"), (a, b))])), (x,))
    return Node(draw(st.sampled_from(UNARY)), (x,))


def _loop(x: Node, y: Node, type: TensorType) -> Node:
    a, b, c, d = (parameter(type) for _ in range(4))
    never = Node(ops.Constant.of(np.array(False)))
    loop = ops.While(Graph((a, b), [never]), Graph((c, d), [Node(ops.Add(), (c, d)), c]))
    return Node(ops.GetTupleElement(1), (Node(loop, (x, y)),))


def _call(x: Node, y: Node, type: TensorType) -> Node:
    a, b = parameter(type), parameter(type)
    return Node(ops.Call(Graph((a, b), [Node(ops.Subtract(), (a, b))], "difference")), (x, y))


@given(graphs())
@settings(max_examples=150)
def test_reads_back_random_graphs(graph: Graph) -> None:
    assert stablehlo.parse(graph.to_text()).main == graph


# --- programs of JAX --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROGRAMS)
def test_runs_what_jax_exports(name: str) -> None:
    function, arguments = PROGRAMS[name]
    expected = jax.tree.leaves(jax.jit(function)(*arguments))
    results = stablehlo.run(export(function, arguments), *arguments)
    for result, wanted in zip(results, expected, strict=True):
        got, host = np.asarray(result), np.asarray(wanted)
        assert (got.dtype, got.shape) == (host.dtype, host.shape)
        np.testing.assert_allclose(got, host, rtol=1e-5, atol=1e-6)


def test_runs_on_the_chosen_backend() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    (result,) = stablehlo.run(GRAPHS["call"].to_text(), x[0], backend="reference")[:1]
    assert_same(result, np.sin(x[0]), ulp=1)
    assert result._backend is not None and result._backend.name == "reference"


def test_running_a_module_does_not_change_it() -> None:
    text = """
    func.func @main() -> (tensor<f32>, tensor<f32>) {
      %0:2 = call @two() : () -> (tensor<f32>, tensor<f32>)
      return %0#0, %0#1 : tensor<f32>, tensor<f32>
    }
    func.func @two() -> (tensor<f32>, tensor<f32>) {
      %0 = stablehlo.constant dense<1.0> : tensor<f32>
      %1 = stablehlo.sine %0 : tensor<f32>
      return %0, %1 : tensor<f32>, tensor<f32>
    }"""
    module = stablehlo.parse(text)
    for function in ("two", "main", "two", "main"):
        results = [float(result) for result in stablehlo.run(module, function=function)]
        assert results == [1.0, float(np.sin(np.float32(1)))]
    assert module.main == stablehlo.parse(text).main


# --- unknown sizes ----------------------------------------------------------------------------------


def _polymorphic(x: Any) -> Any:
    rows = jax.numpy.concatenate([x, x]).reshape(-1)
    return jax.numpy.tanh(x).sum(0) + x.shape[0] + rows.sum(), jax.numpy.zeros(
        (x.shape[0] + 1, 2)
    ) + rows.max()


def test_refines_unknown_sizes() -> None:
    shapes = jax.export.symbolic_shape("b, 4", constraints=["b >= 2"])
    text = export(_polymorphic, [jax.ShapeDtypeStruct(shapes, np.float32)])
    assert "?x4xf32" in text
    module = stablehlo.parse(text)
    for rows in (2, 5):
        x = np.arange(rows * 4, dtype=np.float32).reshape(rows, 4)
        for result, wanted in zip(stablehlo.run(module, x), _polymorphic(x), strict=True):
            np.testing.assert_allclose(np.asarray(result), wanted, rtol=1e-6)
    with pytest.raises(ParseError, match="takes sizes that are unknown"):
        _ = module.main
    with pytest.raises(XarrError, match="constraint b >= 2"):
        stablehlo.run(module, np.ones((1, 4), np.float32))


def test_refuses_a_size_that_is_a_value() -> None:
    text = """
    func.func @main(%x: tensor<4xf32>, %n: tensor<1xi32>) -> tensor<?xf32> {
      %0 = stablehlo.dynamic_reshape %x, %n : (tensor<4xf32>, tensor<1xi32>) -> tensor<?xf32>
      return %0 : tensor<?xf32>
    }"""
    with pytest.raises(ParseError, match=r"depends on the values of arguments(.|\n)*3:12"):
        stablehlo.parse(text)


# --- forms ------------------------------------------------------------------------------------------


def main(body: str, arguments: str = "", results: str = "tensor<3xf32>") -> str:
    return f"func.func @main({arguments}) -> {results} {{\n{body}\n}}"


def values_of(text: str, *inputs: Any) -> list[Any]:
    return [np.asarray(result).tolist() for result in stablehlo.run(text, *inputs)]


def test_aliases_locations_comments_and_resources() -> None:
    text = """
    // a comment
    #loc = loc("a.py":1:2)
    !vector3 = tensor<3xf32>
    #rows = array<i64: 0>
    module @m attributes {a.b = #rows, c = {d = [1, "x\\22", @f::@g], e}} {
      func.func public @main(%x: !vector3 {jax.arg_info = "x"} loc("x"(#loc))) -> (!vector3 {r = unit}) {
        %big = stablehlo.constant dense_resource<weights> : !vector3 loc(#loc)
        %0 = "stablehlo.broadcast_in_dim"(%big) {broadcast_dimensions = #rows} : (!vector3) -> !vector3 // more
        %1 = stablehlo.add %0, %x {mhlo.x = "y"} : !vector3 loc(callsite("f"(#loc) at fused<"g">[unknown]))
        return %1 : !vector3
      } loc(#loc)
    } loc(unknown)
    {-#
      dialect_resources: { builtin: { weights: "0x040000000000803F0000004000004040" } }
    #-}"""
    module = stablehlo.parse(text)
    assert module.name == "m"
    assert values_of(text, np.float32([1, 1, 1])) == [[2, 3, 4]]


@pytest.mark.parametrize(
    ("literal", "dtype", "expected"),
    [
        ("dense<[1.5, -0x3, 2.]>", "f32", None),
        ("dense<[1.5, 0x7F800000, -2.5e-1]>", "f32", [1.5, np.inf, -0.25]),
        ("dense<7>", "i8", [7, 7, 7]),
        ("dense<[255, -128, 0x10]>", "i8", [-1, -128, 16]),
        ("dense<[256, 0, 0]>", "i8", None),
        ("dense<[-1, 0, 0]>", "ui8", None),
        ("dense<[true, false, true]>", "i1", [True, False, True]),
        ('dense<"0x010001">', "i1", [True, False, True]),
        ('dense<"0x05">', "i1", [True, False, True]),
        (
            "dense<[(1.0,2.0), (0.0,-1.0), (0x7FC00000,0.0)]>",
            "complex<f32>",
            [1 + 2j, -1j, complex(np.nan, 0)],
        ),
        ('dense<"0x0000803F">', "f32", [1, 1, 1]),
        ('dense<"0x0000803F0000">', "f32", None),
        ("dense<[1.0, 2.0]>", "f32", None),
        ("dense<[[1.0, 2.0, 3.0]]>", "f32", None),
        ("dense<[1.0, [2.0], 3.0]>", "f32", None),
        ("dense<[1.0, 2.0, 3.0>", "f32", None),
        ("dense<[1.0 2.0, 3.0]>", "f32", None),
        ("dense<[1.0, 2.0, 3.0],>", "f32", None),
        ("dense<>", "f32", None),
        ("dense<nan>", "f32", None),
        ("dense<1_0.0>", "f32", None),
    ],
)
def test_elements(literal: str, dtype: str, expected: list[Any] | None) -> None:
    text = main(
        f"%0 = stablehlo.constant {literal} : tensor<3x{dtype}>\nreturn %0 : tensor<3x{dtype}>",
        "",
        f"tensor<3x{dtype}>",
    )
    if expected is None:
        with pytest.raises(ParseError, match=r"at <stablehlo>:2:\d+"):
            stablehlo.parse(text)
    else:
        np.testing.assert_array_equal(values_of(text)[0], expected)


def test_rounds_narrow_floats_once() -> None:
    # Just above the middle of two bfloat16: rounding to float32 first would land on the middle, then on even.
    text = main(
        "%0 = stablehlo.constant dense<1.00390625000001> : tensor<bf16>\nreturn %0 : tensor<bf16>",
        "",
        "tensor<bf16>",
    )
    assert values_of(text) == [float(np.array(1.0078125, ml_dtypes.bfloat16))]


def test_short_text_for_a_large_constant_takes_no_memory() -> None:
    large = "tensor<1000000x1000000xf32>"
    text = main(f"%0 = stablehlo.constant dense<1.0> : {large}\nreturn %0 : {large}", "", large)
    nodes = stablehlo.parse(text).main.nodes
    assert [type(node.op) for node in nodes] == [ops.Constant, ops.BroadcastInDim]


def test_regions_see_outer_values() -> None:
    text = main(
        """
        %two = stablehlo.constant dense<2.0> : tensor<3xf32>
        %y = stablehlo.multiply %x, %two : tensor<3xf32>
        %n = stablehlo.constant dense<3> : tensor<i32>
        %zero = stablehlo.constant dense<0> : tensor<i32>
        %one = stablehlo.constant dense<1> : tensor<i32>
        %r:2 = "stablehlo.while"(%zero, %x) ({
        ^bb0(%i: tensor<i32>, %c: tensor<3xf32>):
          %t = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
          stablehlo.return %t : tensor<i1>
        }, {
        ^bb0(%i: tensor<i32>, %c: tensor<3xf32>):
          %j = stablehlo.add %i, %one : tensor<i32>
          %d = "stablehlo.if"(%p) ({
            %e = stablehlo.add %c, %y : tensor<3xf32>
            stablehlo.return %e : tensor<3xf32>
          }, {
            stablehlo.return %c : tensor<3xf32>
          }) : (tensor<i1>) -> tensor<3xf32>
          stablehlo.return %j, %d : tensor<i32>, tensor<3xf32>
        }) : (tensor<i32>, tensor<3xf32>) -> (tensor<i32>, tensor<3xf32>)
        return %r#1 : tensor<3xf32>""",
        "%p: tensor<i1>, %x: tensor<3xf32>",
    )
    x = np.float32([1, 2, 3])
    assert values_of(text, True, x) == [[7, 14, 21]]
    assert values_of(text, False, x) == [[1, 2, 3]]
    (loop,) = (node for node in stablehlo.parse(text).main.nodes if isinstance(node.op, ops.While))
    assert len(loop.operands) == 4


def test_dimensions_in_any_order() -> None:
    text = main(
        "%0 = stablehlo.broadcast_in_dim %x, dims = [2, 0] : (tensor<2x3xf32>) -> tensor<3x1x2xf32>\n"
        "return %0 : tensor<3x1x2xf32>",
        "%x: tensor<2x3xf32>",
        "tensor<3x1x2xf32>",
    )
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert values_of(text, x) == [x.T[:, None, :].tolist()]


def test_composite_and_old_forms() -> None:
    text = """
    func.func private @impl(%a: tensor<2x2xf32>) -> tensor<2x2xf32> {
      %0 = stablehlo.dot %a, %a, precision = [DEFAULT, DEFAULT] : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
      func.return %0 : tensor<2x2xf32>
    }
    func.func @main(%a: tensor<2x2xf32>) -> tensor<2x2x2xf32> {
      %0 = stablehlo.composite "x.square" %a {composite_attributes = {n = 2 : i64}, decomposition = @impl} : (tensor<2x2xf32>) -> tensor<2x2xf32>
      %1 = stablehlo.broadcast %0, sizes = [2] : (tensor<2x2xf32>) -> tensor<2x2x2xf32>
      %2 = stablehlo.custom_call @Sharding(%1) {backend_config = ""} : (tensor<2x2x2xf32>) -> tensor<2x2x2xf32>
      return %2 : tensor<2x2x2xf32>
    }"""
    assert values_of(text, np.float32([[1, 1], [0, 1]])) == [[[[1, 2], [0, 1]]] * 2]


# --- refusals ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "message", "place"),
    [
        ("%0 = stablehlo.add %x %x : tensor<3xf32>", "expected ':' before the types", "2:23"),
        ("%0 = stablehlo.add %x, %y : tensor<3xf32>", "%y is not defined", "2:24"),
        ("%0 = stablehlo.add %x, %x : tensor<4xf32>", "operand 0 is tensor<3xf32>", "2:6"),
        ("%0 = stablehlo.add %x, %x : tensor<3xf32", "'<' is not closed", "2:35"),
        ("%0 = stablehlo.iota dim = 1 : tensor<3xf32>", r"\[C1\]", "2:6"),
        ("%0 = stablehlo.frob %x : tensor<3xf32>", "does not support", "2:6"),
        ("%0 = stablehlo.negate %x : tensor<3xi4>", "element type i4", "2:6"),
        ("%0 = stablehlo.transpose %x : (tensor<3xf32>) -> tensor<3xf32>", "permutation is missing", "2:6"),
        ('%0 = stablehlo.transpose %x, dims = ["a"] : (tensor<3xf32>) -> tensor<3xf32>', "an integer", "2:6"),
        ("%0:2 = stablehlo.negate %x : tensor<3xf32>", "has 1 results", "2:8"),
        ("%x = stablehlo.negate %x : tensor<3xf32>", "a second time", "2:6"),
        ("%0 = call @nobody(%x) : (tensor<3xf32>) -> tensor<3xf32>", "no function @nobody", "2:6"),
        ("%0 = call @main(%x) : (tensor<3xf32>) -> tensor<3xf32>", "calls itself", "1:1"),
        ("%0 = stablehlo.custom_call @foo(%x) : (tensor<3xf32>) -> tensor<3xf32>", "custom_call @foo", "2:6"),
        ('%0 = "stablehlo.negate(%x) : (tensor<3xf32>) -> tensor<3xf32>', "no end", "2:6"),
        ("%0 = stablehlo.negate %x : tensor<99999999999999999999xf32>", "no array can have", "2:28"),
        ("%0 = stablehlo.negate %x : tensor<3xf32>\n^bb1:", "a second block", "3:1"),
    ],
)
def test_refuses_with_a_position(body: str, message: str, place: str) -> None:
    text = main(f"{body}\nreturn %0 : tensor<3xf32>", "%x: tensor<3xf32>")
    with pytest.raises(ParseError, match=message) as caught:
        stablehlo.parse(text)
    assert f"at <stablehlo>:{place}" in str(caught.value)
    assert str(caught.value).endswith("^")


def test_shows_the_line_with_a_caret() -> None:
    with pytest.raises(ParseError) as caught:
        stablehlo.parse(
            main(
                "  %0 = stablehlo.negate %x, : tensor<3xf32>\n  return %0 tensor<3xf32>", "%x: tensor<3xf32>"
            )
        )
    assert str(caught.value).split("\n")[1:] == [
        "  at <stablehlo>:3:13",
        "      return %0 tensor<3xf32>",
        "                ^",
    ]


def test_lists_everything_unsupported() -> None:
    text = main(
        '%0 = stablehlo.frob %x : tensor<3xf32>\n%1 = "x.y"(%0) : (tensor<3xf32>) -> tensor<3xi4>\nreturn %0 : tensor<3xf32>',
        "%x: tensor<3xf32>",
    )
    with pytest.raises(
        ParseError, match=r"stablehlo.frob, at .*:2:6\n  x.y, at .*:3:6\n  the type tensor<3xi4>"
    ):
        stablehlo.parse(text)


def test_refuses_values_that_a_computation_may_not_use() -> None:
    text = main(
        """%0 = "stablehlo.reduce"(%x, %y) ({
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %c = stablehlo.add %a, %y : tensor<f32>
          stablehlo.return %c : tensor<f32>
        }) {dimensions = array<i64: 0>} : (tensor<3xf32>, tensor<f32>) -> tensor<f32>
        return %0 : tensor<f32>""",
        "%x: tensor<3xf32>, %y: tensor<f32>",
        "tensor<f32>",
    )
    with pytest.raises(ParseError, match="the computation uses %y"):
        stablehlo.parse(text)


@pytest.mark.parametrize(
    "opening", ["[", "{a = ", "(", "tuple<", "<"], ids=["list", "dict", "group", "tuple", "angle"]
)
def test_refuses_deep_nesting(opening: str) -> None:
    with pytest.raises(ParseError):
        stablehlo.parse(main(f"%0 = stablehlo.foo x = {opening * 5000}"))


def test_nesting_at_the_limit_runs_and_beyond_is_refused() -> None:
    def nested(levels: int) -> str:
        text = "stablehlo.return %x : tensor<3xf32>"
        for level in range(levels):
            other = "stablehlo.return %x : tensor<3xf32>"
            text = f'%{level} = "stablehlo.if"(%p) ({{ {text} }}, {{ {other} }}) : (tensor<i1>) -> tensor<3xf32>\n'
            text += f"{'stablehlo' if level < levels - 1 else 'func'}.return %{level} : tensor<3xf32>"
        return main(text, "%p: tensor<i1>, %x: tensor<3xf32>")

    assert values_of(nested(49), True, np.float32([1, 2, 3])) == [[1, 2, 3]]
    with pytest.raises(ParseError, match="nested deeper than 50"):
        stablehlo.parse(nested(51))


CORPUS = [graph.to_text() for graph in GRAPHS.values()]


@pytest.mark.parametrize("seed", range(5))
def test_damaged_modules_are_read_or_refused(seed: int) -> None:
    refused = 0
    for text in mutations(CORPUS, 100, seed):
        try:
            stablehlo.parse(text)
        except ParseError as error:
            refused += 1
            assert "\n  at <stablehlo>:" in str(error)
    assert refused > 50


# --- inputs and the command line --------------------------------------------------------------------


def test_refuses_wrong_inputs() -> None:
    module = stablehlo.parse(GRAPHS["arithmetic"].to_text())
    x = np.ones((2, 3), np.float32)
    with pytest.raises(InputError, match="takes 2 inputs"):
        stablehlo.run(module, x)
    with pytest.raises(XarrError, match=r"f32\[3,2\]|3x2xf32"):
        stablehlo.run(module, x, x.T)
    with pytest.raises(ParseError, match="no function @other; the module has main"):
        stablehlo.run(module, x, x, function="other")


def test_command_line(tmp_path: Path) -> None:
    (tmp_path / "m.mlir").write_text(GRAPHS["arithmetic"].to_text())
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.save(tmp_path / "x.npy", x)
    command = [
        sys.executable,
        "-m",
        "xarr",
        "run",
        "m.mlir",
        "--input",
        "x.npy",
        "x.npy",
        "--output",
        "y.npy",
    ]
    subprocess.run([*command, "--backend", "reference"], cwd=tmp_path, check=True, timeout=60)
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), np.tanh(x + x), rtol=1e-6)
    failed = subprocess.run(
        command[:-3], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert failed.returncode == 2
    assert "takes 2 inputs" in failed.stderr
