"""Reading StableHLO text: what is printed is read back, what JAX exports runs, what is wrong is refused."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import ml_dtypes
import numpy as np
import pytest

from tests.compare import assert_same
from tests.jax_programs import PROGRAMS, export
from tests.support import fuzz
from tests.support.mutations import mutations
from tests.support.stablehlo_graphs import GRAPHS
from xarr import stablehlo
from xarr.errors import InputError, ParseError, XarrError
from xarr.ir import ops
from xarr.ir.stablehlo.parser import read_module

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
    assert result.backend == "reference"


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
        %0 = "stablehlo.broadcast_in_dim"(%big) {broadcast_dimensions = #rows} : (!vector3) -> !vector3 // x
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


def test_an_error_about_deep_lists_stays_short() -> None:
    literal = f"dense<{'[' * 10**5}1.0{']' * 10**5}>"
    text = main(
        f"%0 = stablehlo.constant {literal} : tensor<f32>\nreturn %0 : tensor<f32>", "", "tensor<f32>"
    )
    with pytest.raises(ParseError, match=r"of shape \(\), got lists that nest 100000 deep") as caught:
        stablehlo.parse(text)
    assert len(str(caught.value)) < 1000


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
    !m = tensor<2x2xf32>
    func.func private @impl(%a: tensor<2x2xf32>) -> tensor<2x2xf32> {
      %0 = stablehlo.dot %a, %a, precision = [DEFAULT, DEFAULT] : (!m, !m) -> !m
      func.return %0 : tensor<2x2xf32>
    }
    func.func @main(%a: tensor<2x2xf32>) -> tensor<2x2x2xf32> {
      %0 = stablehlo.composite "x.y" %a {composite_attributes = {n = 2}, decomposition = @impl} : (!m) -> !m
      %1 = stablehlo.broadcast %0, sizes = [2] : (tensor<2x2xf32>) -> tensor<2x2x2xf32>
      %2 = stablehlo.custom_call @Sharding(%1) {x = ""} : (tensor<2x2x2xf32>) -> tensor<2x2x2xf32>
      return %2 : tensor<2x2x2xf32>
    }"""
    assert values_of(text, np.float32([[1, 1], [0, 1]])) == [[[[1, 2], [0, 1]]] * 2]


def test_attributes_of_every_syntax() -> None:
    text = """
    !kernel = tensor<2x2x2x2xf32>
    func.func @main(%a: tensor<1x4x4x2xf32>, %b: !kernel, %i: tensor<3x1xi64>, %u: tensor<3xf32>) {
      %0 = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[f, 1, 0, b],
        window = {stride = [2, 1], pad = [[1, 1], [0, 0]], reverse = [true, false]}
        {batch_group_count = 1 : i64} : (tensor<1x4x4x2xf32>, !kernel) -> tensor<2x3x3x1xf32>
      %1 = "stablehlo.gather"(%u, %i) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0],
        start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>}>
        : (tensor<3xf32>, tensor<3x1xi64>) -> tensor<3xf32>
      %2:2 = "stablehlo.recv"(%u) {channel_handle = #stablehlo.channel_handle<handle = 5, type = 3>,
        way = #stablehlo<transpose ADJOINT>, grid = dense<[[1, 2]]> : tensor<1x2xi64>,
        other = #sdy.x<[{"a"}]>} : (tensor<3xf32>) -> (tensor<3xf32>, !stablehlo.token)
      %3 = stablehlo.dot_general %b, %b, batching_dims = [0] x [1], contracting_dims = [] x [],
        algorithm = <lhs_precision_type = tf32, num_primitive_operations = 3>
        : (!kernel, !kernel) -> tensor<2x2x2x2x2x2x2xf32>
      return
    }"""
    body = read_module(text).functions["main"].body
    assert body is not None
    convolution, gather, receive, dot = (operation.attributes for operation in body.operations[:4])
    numbers = convolution.pop("dimension_numbers")
    assert [numbers[f"{array}_spatial_dimensions"] for array in ("input", "kernel", "output")] == [
        (1, 2),
        (0, 1),
        (2, 1),
    ]
    assert (numbers["kernel_output_feature_dimension"], numbers["output_batch_dimension"]) == (3, 3)
    assert convolution == {
        "window_strides": (2, 1),
        "padding": ((1, 1), (0, 0)),
        "window_reversal": (True, False),
        "batch_group_count": 1,
    }
    assert gather == {
        "dimension_numbers": {"collapsed_slice_dims": (0,), "start_index_map": (0,), "index_vector_dim": 1},
        "slice_sizes": (1,),
    }
    assert receive["channel_handle"] == {"handle": 5, "type": 3}
    assert (receive["way"], receive["grid"].body, receive["other"]) == (
        "ADJOINT",
        "[[1, 2]]",
        '#sdy.x<[{"a"}]>',
    )
    assert dot["dot_dimension_numbers"]["rhs_batching_dimensions"] == (1,)
    assert dot["algorithm"]["num_primitive_operations"] == 3


# --- refusals ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "message", "position"),
    [
        ("%0 = stablehlo.add %x %x : tensor<3xf32>", "expected ':' before the types", "2:23"),
        ("%0 = stablehlo.add %x, %y : tensor<3xf32>", "%y is not defined", "2:24"),
        ("%0 = stablehlo.add %x, %x : tensor<4xf32>", "operand 0 is tensor<3xf32>", "2:6"),
        ("%0 = stablehlo.add %x, %x : tensor<3xf32", "'<' is not closed", "2:35"),
        ("%0 = stablehlo.iota dim = 1 : tensor<3xf32>", r"\[C1\]", "2:6"),
        ("%0 = stablehlo.frob %x : tensor<3xf32>", "does not support", "2:6"),
        ("%0 = stablehlo.negate %x : tensor<3xi3>", "element type i3", "2:6"),
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
def test_refuses_with_a_position(body: str, message: str, position: str) -> None:
    text = main(f"{body}\nreturn %0 : tensor<3xf32>", "%x: tensor<3xf32>")
    with pytest.raises(ParseError, match=message) as caught:
        stablehlo.parse(text)
    assert f"at <stablehlo>:{position}" in str(caught.value)
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
        "%0 = stablehlo.frob %x : tensor<3xf32>\n"
        '%1 = "x.y"(%0) : (tensor<3xf32>) -> tensor<3xi3>\n'
        "return %0 : tensor<3xf32>",
        "%x: tensor<3xf32>",
    )
    with pytest.raises(
        ParseError, match=r"stablehlo.frob, at .*:2:6\n  x.y, at .*:3:6\n  the type tensor<3xi3>"
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
    def nest(levels: int) -> str:
        text = "stablehlo.return %x : tensor<3xf32>"
        for level in range(levels):
            other = "stablehlo.return %x : tensor<3xf32>"
            regions = f"{{ {text} }}, {{ {other} }}"
            text = f'%{level} = "stablehlo.if"(%p) ({regions}) : (tensor<i1>) -> tensor<3xf32>\n'
            text += f"{'stablehlo' if level < levels - 1 else 'func'}.return %{level} : tensor<3xf32>"
        return main(text, "%p: tensor<i1>, %x: tensor<3xf32>")

    assert values_of(nest(49), True, np.float32([1, 2, 3])) == [[1, 2, 3]]
    with pytest.raises(ParseError, match="nested deeper than 50"):
        stablehlo.parse(nest(51))


def test_refuses_more_results_than_the_operation_has() -> None:
    text = main("%0:2 = stablehlo.optimization_barrier %x : tensor<3xf32>, tensor<f32>", "%x: tensor<3xf32>")
    with pytest.raises(ParseError, match=r"expected 2 results, got 1\n  at <stablehlo>:"):
        stablehlo.parse(text)


CORPUS = [graph.to_text() for graph in GRAPHS.values()]
#: Modules that are damaged with each seed.
DAMAGED = 100


@pytest.mark.parametrize("seed", fuzz.seeds(5, 100))
def test_damaged_modules_are_read_or_refused(seed: int) -> None:
    resource = pytest.importorskip("resource", reason="wants Unix, which says how much memory was used")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    refused = 0
    for text in mutations(CORPUS, DAMAGED, fuzz.generator("reader", seed)):
        try:
            stablehlo.parse(text)
        except ParseError as error:
            refused += 1
            assert "\n  at <stablehlo>:" in str(error)
    assert refused > DAMAGED // 2
    kilobytes = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / (
        1024 if sys.platform == "darwin" else 1
    )
    assert kilobytes < 2**20


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


@pytest.mark.usefixtures("on_numpy")
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
