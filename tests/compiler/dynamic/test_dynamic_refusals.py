"""What dynamic sizes are refused for, each by its label, and how an Array with dynamic sizes behaves."""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.support.dynamic import late
from xarr import lax
from xarr.compiler.dynamic.make_static import make_static
from xarr.compiler.dynamic.op_rules import ROWS
from xarr.errors import BackendError, DTypeError, InputError, ShapeError, ValueRangeError, XarrError
from xarr.ir import ops
from xarr.ir.graph import Graph, Node, parameter
from xarr.ir.op import DYNAMIC_RULES, Op, operation
from xarr.ir.ops import dynamic_rules
from xarr.ir.types import TensorType, TupleType, Type

F32 = np.dtype(np.float32)
SIZE = TensorType((), np.dtype(np.int32))
FIRST = lax.GatherDimensionNumbers((), (0,), (0,))


def dynamic(shape: tuple[int, ...], *dimensions: int, size: int = 2, dtype: Any = np.float32) -> Any:
    """An Array counting up, with live size `size` in `dimensions`."""
    array = xarr.asarray(np.arange(int(np.prod(shape))).reshape(shape).astype(dtype))
    for dim in dimensions:
        array = lax.set_dimension_size(array, late(size), dim)
    return array


# --- the labels of the two operations --------------------------------------------------------------------------


@pytest.mark.parametrize("dimension", [-1, 2])
def test_get_dimension_size_c1(dimension: int) -> None:
    with pytest.raises(ShapeError, match=r"get_dimension_size \[C1\]: wanted a dimension of f32\[2,3\]"):
        lax.get_dimension_size(np.ones((2, 3), np.float32), dimension)


def test_get_dimension_size_c2() -> None:
    with pytest.raises(ShapeError, match=r"get_dimension_size \[C2\]: sizes are int32"):
        ops.GetDimensionSize(0).infer(TensorType((2**31,), F32))


@pytest.mark.parametrize("dimension", [-1, 2])
def test_set_dimension_size_c1(dimension: int) -> None:
    with pytest.raises(ShapeError, match=r"set_dimension_size \[C1\]: wanted a dimension of f32\[2,3\]"):
        lax.set_dimension_size(np.ones((2, 3), np.float32), 1, dimension)


def test_set_dimension_size_c2() -> None:
    with pytest.raises(ShapeError, match=r"set_dimension_size \[C2\]: sizes are int32"):
        ops.SetDimensionSize(0).infer(TensorType((2**31,), F32), SIZE)


@pytest.mark.parametrize("size", [np.array(1), np.array([1], np.int32), np.array(1.0, np.float32)], ids=str)
def test_set_dimension_size_c3(size: Any) -> None:
    with pytest.raises(DTypeError, match=r"set_dimension_size \[C3\]: wanted an int32 scalar"):
        lax.set_dimension_size(np.ones(3), xarr.asarray(size), 0)


def test_operands_of_another_number_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"\[C0\]: wanted 2 operands"):
        ops.SetDimensionSize(0).infer(SIZE)
    with pytest.raises(ShapeError, match=r"\[C0\]: wanted 1 operands, the first an array"):
        ops.GetDimensionSize(0).infer(TupleType((SIZE,)))


@pytest.mark.parametrize("size", [-1, 4, np.int64(4), np.array(-1, np.int32)], ids=repr)
def test_a_constant_size_out_of_range_is_refused_at_once(size: Any) -> None:
    with pytest.raises(ValueRangeError, match=r"wanted a size in \[0, 3\] for dimension 0 of f64\[3\], got"):
        lax.set_dimension_size(np.ones(3), size, 0)


@pytest.mark.parametrize("size", [True, np.True_, "3", 1.0, None], ids=repr)
def test_a_size_that_is_no_integer_is_refused(size: Any) -> None:
    with pytest.raises(InputError, match="wanted an int or an int32 scalar as size"):
        lax.set_dimension_size(np.ones(3), size, 0)


def test_a_size_beyond_int32_is_refused() -> None:
    with pytest.raises(ValueRangeError, match="sizes are int32, got 4294967296"):
        lax.set_dimension_size(np.ones(3), 2**32, 0)


@pytest.mark.parametrize("backend", ["numpy", "reference"])
@pytest.mark.parametrize(("size", "live"), [(-1, 0), (-(2**31), 0), (4, 3), (2**31 - 1, 3)])
def test_a_late_size_is_held_to_the_range(size: int, live: int, backend: str) -> None:
    with xarr.use_backend(backend):
        result = lax.set_dimension_size(xarr.asarray(np.arange(3.0)), late(size), 0)
        assert_same(np.asarray(result), np.arange(live, dtype=np.float64))
        assert_same(lax.get_dimension_size(result, 0), np.array(live, np.int32))


# --- the labels of the rules -------------------------------------------------------------------------------------


@operation
class Unruly(Op):
    """An operation that nobody taught what to make of dynamic sizes."""

    name = "test.unruly"
    lax_name = "unruly"

    def infer(self, *operands: Type) -> Type:
        return self.tensors(operands)[0]


def test_dynamic_d0() -> None:
    with pytest.raises(ShapeError, match=r"unruly \[D0\]: no rule for dynamic dimensions, got f32\[<=5\]"):
        Node(Unruly(), (dynamic((5,), 0)._node,))


def test_dynamic_d1() -> None:
    with pytest.raises(ShapeError, match=r"broadcast_in_dim \[D1\]: dimension 0 of f32\[<=1\] may be empty"):
        lax.broadcast_in_dim(dynamic((1,), 0), (3,), (0,))


@pytest.mark.parametrize(
    ("shape", "dims", "wanted"),
    [
        pytest.param((4, 6), (0,), (8, 3), id="regrouped"),
        pytest.param((2, 6), (1,), (4, 3), id="regrouped-minor"),
        pytest.param((1, 5), (0,), (5,), id="bound-1"),
        pytest.param((1,), (0,), (), id="to-a-scalar"),
        pytest.param((5, 0), (0,), (0,), id="empty"),
    ],
)
def test_dynamic_d2(shape: tuple[int, ...], dims: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError, match=r"reshape \[D2\]: the live size of f32\[.*merge and split"):
        lax.reshape(dynamic(shape, *dims), wanted)


def test_dynamic_d3_of_a_bitcast() -> None:
    with pytest.raises(ShapeError, match=r"bitcast_convert_type \[D3\]: the last dimension of u8\[3,<=4\]"):
        lax.bitcast_convert_type(dynamic((3, 4), 1, dtype=np.uint8), np.float32)


def test_dynamic_d3_of_index_vectors() -> None:
    indices = dynamic((3, 1), 1, dtype=np.int32)
    numbers = lax.GatherDimensionNumbers((), (0,), (0,))
    with pytest.raises(ShapeError, match=r"gather \[D3\]: dimension 1 of s32\[3,<=1\] holds index vectors"):
        lax.gather(np.ones(5), indices, numbers, (1,))
    dimensions = lax.ScatterDimensionNumbers((), (0,), (0,))
    with pytest.raises(ShapeError, match=r"scatter \[D3\]: dimension 1 of s32\[3,<=1\]"):
        lax.scatter_add(np.ones(5), indices, np.ones(3), dimensions)


@pytest.mark.parametrize("numbers", [((0,), (), (0,)), ((0, 1), (), ())], ids=["placed", "smaller"])
def test_dynamic_d4(numbers: Any) -> None:
    window, inserted, index_map = numbers
    shape = (5,) if len(window) == 1 else (5, 4)
    updates = dynamic((5,) if len(window) == 1 else (5, 3), len(window) - 1)
    with pytest.raises(ShapeError, match=r"scatter \[D4\]: window dimension . of updates .* is dynamic"):
        lax.scatter_add(
            np.ones(shape, np.float32), np.zeros(len(index_map), np.int32), updates,
            lax.ScatterDimensionNumbers(window, inserted, index_map),
        )  # fmt: skip


def test_dynamic_d5() -> None:
    type = TensorType((3,), F32, (True,))
    with pytest.raises(ShapeError, match=r"broadcasted_iota \[D5\]: wanted static sizes, got f32\[<=3\]"):
        Node(ops.Iota(type, 0))
    with pytest.raises(ShapeError, match=r"constant \[D5\]: wanted static sizes"):
        Node(ops.Constant(type, bytes(12)))


def test_dynamic_d6() -> None:
    type = TensorType((2**30,), F32, (True,))
    nodes = tuple(parameter(type) for _ in range(2))
    with pytest.raises(ShapeError, match=r"concatenate \[D6\]: wanted a size below 2\*\*31"):
        Node(ops.Concatenate(0), nodes)


def test_bounds_must_fit_as_sizes_must() -> None:
    with pytest.raises(ShapeError, match=r"\[C3\]: wanted operands of one shape, got f32\[5\], f32\[6\]"):
        Node(ops.Add(), (dynamic((5,), 0)._node, dynamic((6,), 0)._node))


def test_loops_carry_and_capture_dynamic_arrays() -> None:
    x = dynamic((5,), 0, size=3)

    def step(carry: Any, _: Any) -> Any:
        return lax.add(lax.rev(carry, (0,)), x), lax.reduce_sum(carry, (0,))

    last, sums = lax.scan(step, x, None, 3)
    assert_same(np.asarray(last), np.full(3, 4, np.float32))
    assert_same(sums, np.array([3, 6, 9], np.float32))
    total = lax.fori_loop(
        0, lax.get_dimension_size(x, 0), lambda i, t: lax.add(t, lax.reduce_sum(x, (0,))), np.float32(0)
    )
    assert_same(total, np.array(9, np.float32))


def test_a_loop_keeps_what_is_dynamic() -> None:
    with pytest.raises(XarrError, match=r"f32\[<=5\]"):
        lax.while_loop(
            lambda x: lax.lt(lax.reduce_sum(x, (0,)), 1.0), lambda x: dynamic((5,), 0), np.ones(5, np.float32)
        )


# --- completeness ------------------------------------------------------------------------------------------------


def test_every_label_of_the_rules_has_a_negative_test() -> None:
    labels = set(re.findall(r"^\* (D\d+):", dynamic_rules.__doc__ or "", re.MULTILINE))
    texts = "".join(
        path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_dynamic*.py")
    )
    assert len(labels) >= 7
    assert [label for label in sorted(labels) if f"def test_dynamic_{label.lower()}" not in texts] == []


def test_every_rule_has_a_row() -> None:
    without = {ops.OptimizationBarrier}  # passed through in pieces
    sizes = {ops.GetDimensionSize, ops.SetDimensionSize}  # whose own shape rules know
    assert set(DYNAMIC_RULES) - set(ROWS) - without == set()
    assert set(ROWS) - set(DYNAMIC_RULES) == sizes


def test_a_rule_without_a_row_is_refused_when_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(DYNAMIC_RULES, Unruly, lambda op, types, result: types[0])
    node = Node(Unruly(), (parameter(TensorType((5,), F32, (True,))),))
    with pytest.raises(BackendError, match=r"unruly cannot compute on dynamic dimensions\nbuilt at"):
        make_static(Graph(node.operands, [node]))


def test_a_static_graph_passes_untouched() -> None:
    x = parameter(TensorType((5,), F32))
    graph = Graph([x], [Node(ops.Negate(), (x,))])
    assert make_static(graph) is graph


# --- types ---------------------------------------------------------------------------------------------------------


def test_types_with_and_without_dynamic_dimensions_differ() -> None:
    static, one = TensorType((5, 3), F32), TensorType((5, 3), F32, (True, False))
    assert TensorType((5, 3), F32, (False, False)) is static
    assert one is not static
    assert one.bounds is static
    assert one.with_dtype(np.dtype(np.int8)) is TensorType((5, 3), np.dtype(np.int8), (True, False))
    assert one.with_shape((5, 3)) is static
    assert one.short() == "f32[<=5,3]"
    assert str(one) == "tensor<?x3xf32, #stablehlo.bounds<5, ?>>"
    assert pickle.loads(pickle.dumps(one)) is one


def test_shapes_print_and_parse() -> None:
    type = xarr.lower(lambda x: x, "f32[<=10,3]").graph.parameter_types[0]
    assert type is TensorType((10, 3), F32, (True, False))
    assert type.short() == "f32[<=10,3]"


# --- Arrays ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["numpy", "reference"])
def test_an_array_is_its_live_part(backend: str) -> None:
    with xarr.use_backend(backend):
        x = dynamic((4, 3), 0, 1)
        live = np.arange(12, dtype=np.float32).reshape(4, 3)[:2, :2]
        assert x.shape == (4, 3)
        assert_same(np.asarray(x), live)
        assert x.tolist() == live.tolist()
        assert x.item(1, 0) == 3.0
        assert not np.asarray(x).flags.writeable or np.asarray(x).base is None
        assert_same(np.from_dlpack(x), live)


@pytest.mark.usefixtures("on_numpy")
def test_an_array_says_bound_and_live_size() -> None:
    x = dynamic((4,), 0)
    assert repr(x) == "Array([0., 1.], type=f32[<=4], live shape=(2,), dtype=float32)"
    assert str(x) == repr(x)
    assert repr(dynamic((4,), 0, size=0)) == "Array([], type=f32[<=4], live shape=(0,), dtype=float32)"
    seen: list[str] = []
    xarr.lower(lambda x: seen.append(repr(x)) or x, "f32[<=4]")
    assert seen == ["Array(<traced f32[<=4]>, dtype=float32)"]


@pytest.mark.parametrize(
    "change",
    [lambda x: x.to("reference"), lambda x: pickle.loads(pickle.dumps(x)), copy.copy, copy.deepcopy],
    ids=["to", "pickle", "copy", "deepcopy"],
)
def test_copies_stay_dynamic(change: Callable[[Any], Any]) -> None:
    x = dynamic((4, 3), 0).evaluate()
    result = change(x)
    assert result._node.type is x._node.type
    assert_same(np.asarray(result), np.asarray(x))
    assert_same(np.asarray(lax.reduce_sum(result, (0,))), np.asarray(x).sum(0))


@pytest.mark.parametrize(
    "use",
    [
        pytest.param(len, id="len"),
        pytest.param(list, id="iter"),
        pytest.param(bool, id="bool"),
        pytest.param(lambda x: x[0], id="getitem"),
        pytest.param(lambda x: x.__setitem__(0, 1.0), id="setitem"),
        pytest.param(lambda x: x.at[0].set(1.0), id="at"),
        pytest.param(xarr.unstack, id="unstack"),
        pytest.param(lambda x: xarr.roll(x, 1, 0), id="roll"),
        pytest.param(lambda x: xarr.roll(x, 1), id="roll-all"),
        pytest.param(lambda x: xarr.array_split(x, 2), id="array_split"),
        pytest.param(lambda x: xarr.broadcast_arrays(x, 1.0), id="broadcast_arrays"),
        pytest.param(xarr.diag, id="diag"),
        pytest.param(xarr.triu, id="triu"),
        pytest.param(lambda x: xarr.meshgrid(x, x), id="meshgrid"),
        pytest.param(lambda x: xarr.array_equal(x, x), id="array_equal"),
        pytest.param(lambda x: lax.split(x, [2, 2]), id="split"),
        pytest.param(lambda x: lax.slice_in_dim(x, -2, None), id="slice_in_dim"),
        pytest.param(lambda x: lax.index_in_dim(x, -1), id="index_in_dim"),
        pytest.param(lambda x: lax.gather(x, [[0]], FIRST, (1,), mode="fill"), id="fill"),
        pytest.param(lambda x: lax.scan(lambda c, row: (c, row), 0.0, x), id="scan"),
        pytest.param(lambda x: lax.scan(lambda c, _: (c, x), 0.0, None, 3), id="scan-ys"),
        pytest.param(lambda x: xarr.pad(x, 1, "edge"), id="pad-edge"),
        pytest.param(lambda x: xarr.pad(x, 1, "reflect"), id="pad-reflect"),
        pytest.param(lambda x: xarr.pad(x, 1, "wrap"), id="pad-wrap"),
    ],
)
def test_what_would_see_the_bound_is_refused(use: Callable[[Any], Any]) -> None:
    with pytest.raises(
        ShapeError, match=r"of a dynamic array f32\[<=4\] would see the bound, not the live size"
    ):
        use(dynamic((4,), 0))


def test_the_static_dimensions_of_a_dynamic_array_are_not_refused() -> None:
    x = dynamic((4, 3), 0)
    assert len(dynamic((4, 3), 1)) == 4
    assert [part.shape for part in xarr.unstack(x, axis=1)] == [(4,)] * 3
    assert_same(np.asarray(xarr.roll(x, 1, 1)), np.roll(np.asarray(x), 1, 1))
    assert_same(np.asarray(lax.index_in_dim(x, -1, 1)), np.asarray(x)[:, -1:])
    assert_same(np.asarray(lax.split(x, [1, 2], 1)[1]), np.asarray(x)[:, 1:])


def test_the_bound_makes_a_dimension_static_again() -> None:
    x = np.arange(5.0)
    late_size = lax.set_dimension_size(x, late(3), 0)
    result = lax.set_dimension_size(late_size, 5, 0)
    assert result._node.type is TensorType((5,), np.dtype(np.float64))
    assert_same(np.asarray(result), x)
    same = xarr.asarray(x)
    assert lax.set_dimension_size(same, 5, 0)._node is same._node


def test_growing_shows_what_the_buffer_holds() -> None:
    """As XLA does it, where set_dimension_size passes its operand through."""
    x = np.arange(5.0)
    result = lax.set_dimension_size(lax.set_dimension_size(x, late(2), 0), late(4), 0)
    assert_same(np.asarray(result), x[:4])


def test_the_size_of_a_static_dimension_is_a_constant() -> None:
    assert isinstance(lax.get_dimension_size(np.ones((2, 3)), 1)._node.op, ops.Constant)
    assert_same(lax.get_dimension_size(np.ones((2, 3)), 1), np.array(3, np.int32))


def test_values_computed_apart_know_they_may_differ() -> None:
    x, y = dynamic((4,), 0, size=1).evaluate(), dynamic((4,), 0, size=3).evaluate()
    assert_same(np.asarray(lax.add(x, y)), np.arange(3, dtype=np.float32))
    assert_same(np.asarray(lax.add(x, dynamic((4,), 0, size=3))), np.arange(3, dtype=np.float32))


def test_tuples_hold_dynamic_arrays_across_evaluations() -> None:
    x = dynamic((4,), 0)
    held = lax.tuple(np.ones(3), lax.tuple(lax.neg(x)))
    xarr.evaluate(held)
    assert_same(np.asarray(held[1][0]), -np.arange(2, dtype=np.float32))


def test_long_chains_run_in_parts() -> None:
    x = dynamic((4,), 0)
    for _ in range(2500):
        x = lax.add(x, 1.0)
    assert_same(np.asarray(lax.rev(x, (0,))), np.array([2501, 2500], np.float32))


def test_a_program_takes_and_gives_buffers_and_sizes() -> None:
    graph = xarr.lower(lambda x: (lax.neg(x), lax.get_dimension_size(x, 0)), "f32[<=4,2]").stage("static")
    assert isinstance(graph, Graph)
    graph.verify()
    assert [type.short() for type in graph.parameter_types] == ["(f32[4,2], s32[])"]
    assert [type.short() for type in graph.result_types] == ["(f32[4,2], s32[])", "s32[]"]
