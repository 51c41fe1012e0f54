"""The serial schedule: which operations it computes, that its programs are plain loops, and what they compute.

The programs run as C, by the toy engine of tests/support/c_engine.py.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.support import c_library
from tests.support.checkout import CHECKOUT
from xarr import Array, lax
from xarr.compiler.loop_ir.loops import Kernel, Runs
from xarr.compiler.loop_ir.verifier import verify
from xarr.compiler.schedule import Kind
from xarr.compiler.schedules.serial.builders import BUILDERS, RULES, computes, program_of
from xarr.ir import ops
from xarr.ir.graph import Graph, Node, parameter
from xarr.ir.types import TensorType

needs_c = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")

Function = Callable[..., Any]
ROWS: Final = lax.ScatterDimensionNumbers((), (0,), (0,))
LAYOUT: Final = lax.ConvDimensionNumbers((0, 1, 2), (0, 1, 2), (0, 1, 2))


def numbers(*shape: int, dtype: str = "float32") -> Any:
    """Small whole numbers, of which sums and products are exact in any order."""
    values = np.random.default_rng(len(shape)).integers(-4, 5, shape)
    return values.astype(dtype)


def smallest(x: Array) -> Any:
    """Where the smallest elements are, and which: a reduction of two arrays in order."""

    def earlier(value: Any, index: Any, other: Any, other_index: Any) -> tuple[Any, Any]:
        better = lax.lt(other, value)
        return lax.select(better, other, value), lax.select(better, other_index, index)

    indices = lax.broadcasted_iota("int32", x.shape, 1)
    first = (np.float32(100), np.int32(-1))
    return lax.reduce((x, indices), first, lambda a, b: earlier(*a, *b), (1,))


def windows(x: Array) -> Any:
    return lax.reduce_window(
        x,
        np.float32(1),
        lambda a, b: lax.sub(lax.mul(a, 2), b),
        (2, 3),
        (1, 2),
        ((1, 0), (2, 1)),
        (1, 2),
        (2, 1),
    )


def pool(x: Array) -> Any:
    source = lax.reduce_window(x, np.float32(0), lax.add, (2, 2), (1, 1), "VALID")
    return lax.select_and_scatter(x, lax.ge, (2, 2), (1, 1), ((0, 0), (0, 0)), source, np.float32(0), lax.add)


def grouped_convolution(x: Array, kernel: Array, **counts: int) -> Any:
    return lax.conv_general_dilated(
        x, kernel, (2,), [(2, 1)], lhs_dilation=(2,), rhs_dilation=(3,), dimension_numbers=LAYOUT, **counts
    )


#: What to compute of which arrays: each needs a rule, and all of them are used.
CASES: Final[dict[str, tuple[Function, list[Any]]]] = {
    "reduce": (lambda x: lax.reduce_sum(x, (0, 2)), [numbers(2, 3, 4)]),
    "reduce of complex numbers": (lambda x: lax.reduce_prod(x, (1,)), [numbers(2, 3, dtype="complex64")]),
    "reduce of two arrays": (smallest, [numbers(3, 5)]),
    "reduce of two dimensions in order": (
        lambda x: lax.reduce(x, np.float32(1), lambda a, b: lax.sub(lax.mul(a, 2), b), (0, 2)),
        [numbers(2, 3, 4)],
    ),
    "windows with holes": (windows, [numbers(5, 6)]),
    "running totals": (lambda x: lax.cumsum(x, 1, reverse=True), [numbers(3, 5)]),
    "running totals of narrow floats": (lambda x: lax.cumsum(x, 1), [numbers(3, 5, dtype="bfloat16")]),
    "select and scatter": (pool, [numbers(4, 5)]),
    "scatter": (
        lambda x, i, u: lax.scatter_add(x, i, u, ROWS),
        [numbers(4), np.array([[1], [-1], [4], [1], [3]]), numbers(5)],
    ),
    "gather": (lambda x, i: x.at[i].get(mode="clip"), [numbers(4, 3), np.array([2, -1, 9])]),
    "dynamic slice": (lambda x, i: lax.dynamic_slice(x, (i, 7), (2, 2)), [numbers(4, 3), np.int64(-2)]),
    "dynamic update": (
        lambda x, u, i: lax.dynamic_update_slice(x, u, (i, 1)),
        [numbers(4, 3), numbers(2, 2), np.int64(9)],
    ),
    "reshape": (lambda x: lax.reshape(x, (4, 3, 2)), [numbers(2, 3, 4)]),
    "bitcast to narrower elements": (lambda x: lax.bitcast_convert_type(x, "int16"), [numbers(3, 2)]),
    "bitcast to wider elements": (lambda x: lax.bitcast_convert_type(x, "int64"), [numbers(3, 2)]),
    "padding with holes": (
        lambda x: lax.pad(x, np.float32(7), ((1, -1, 2), (-1, 2, 0))),
        [numbers(4, 3)],
    ),
    "product": (
        lambda x, y: lax.dot_general(x, y, (((2,), (1,)), ((0,), (0,)))),
        [numbers(2, 3, 4), numbers(2, 4, 5)],
    ),
    "product of bools": (lambda x, y: lax.dot(x, y), [numbers(2, 3) > 2, numbers(3, 2) > 2]),
    "convolution of groups of features": (
        lambda x, y: grouped_convolution(x, y, feature_group_count=2),
        [numbers(2, 4, 5), numbers(6, 2, 2)],
    ),
    "convolution of groups of the batch": (
        lambda x, y: grouped_convolution(x, y, batch_group_count=2),
        [numbers(4, 3, 5), numbers(2, 3, 2)],
    ),
    "call": (lambda x: xarr.jit(lambda x: lax.cumsum(x) * 2)(x) + 1, [numbers(5)]),
}


def graph_of(function: Function, *arrays: Any) -> Graph:
    """The graph of a function, in operations that have no definition by others."""
    graph = xarr.jit(function).lower(*map(xarr.asarray, arrays)).stage("decomposed")
    assert isinstance(graph, Graph)
    return graph


def test_every_kind_of_group_has_a_builder() -> None:
    assert set(BUILDERS) == {*Kind} - {Kind.SYSTEMS}  # which want lanes


@pytest.mark.parametrize("name", CASES)
def test_programs_keep_the_rules_and_use_plain_loops_alone(name: str) -> None:
    function, arrays = CASES[name]
    graph = graph_of(function, *arrays)
    assert all(map(computes, graph.nodes))
    program = verify(program_of(graph))
    for loop in (loop for phase in program.phases for loop in phase.walk()):
        assert loop.runs is Runs.SERIAL
        assert not (loop.accumulators or loop.carries or loop.prefixes or loop.search or loop.bounds)
    assert not program.locals


@needs_c
@pytest.mark.parametrize("name", CASES)
def test_programs_compute_what_the_reference_does(name: str, toy_c: Any) -> None:
    function, arrays = CASES[name]
    c_library.CALLS.clear()
    results = function(*map(xarr.asarray, arrays))
    results = [np.asarray(each) for each in (results if isinstance(results, tuple | list) else [results])]
    assert not c_library.CALLS
    with xarr.use_backend("reference"):
        wanted = function(*map(xarr.asarray, arrays))
        wanted = [np.asarray(each) for each in (wanted if isinstance(wanted, tuple | list) else [wanted])]
    for each, other in zip(results, wanted, strict=True):
        assert_same(each, other)


def test_every_rule_is_tried() -> None:
    used = {
        type(node.op) for function, arrays in CASES.values() for node in graph_of(function, *arrays).nodes
    }
    assert set(RULES) - used <= {ops.Fusion, ops.Map}


def scatter() -> Kernel:
    function, arrays = CASES["scatter"]
    return program_of(graph_of(function, *arrays))


def test_a_scatter_is_a_copy_and_a_loop_over_updates() -> None:
    assert (
        str(scatter())
        == """\
in in0: float32[4]
in in1: int64[5]
in in2: float32[5]
out out0: float32[4]
scratch scratch0: float32[4]
for i0 < 4:
    v1 = in0[i0]
    scratch0[i0] = v1
for i2 < 1:
    for i3 < 5:
        for i4 < 1:
            v6 = in1[i3]
            v8 = v6 >= 0
            v10 = v6 <= 3
            v11 = v8 & v10
            v13 = v11 ? 1 : 0
            for i5 < v13:
                v14 = scratch0[v6 + i4]
                v15 = in2[i3]
                v16 = v14 + v15
                scratch0[v6 + i4] = v16
for i17 < 4:
    v18 = scratch0[i17]
    out0[i17] = v18\
"""
    )


def test_the_page_for_backends_shows_a_program_as_it_is() -> None:
    text = str(program_of(graph_of(lambda x: lax.reduce_sum(x, (1,)), np.zeros((3, 4), np.float32))))
    assert text in (CHECKOUT / "docs" / "backend_in_an_afternoon.md").read_text()


def outermost_are_independent(program: Kernel) -> bool:
    """Whether each iteration of an outermost loop stores at an index of its own, or is the only one."""
    for phase in program.phases:
        stores = [store for loop in phase.walk() for store in loop.stores()]
        for store in stores:
            if phase.extent != 1 and phase.index not in dict(store.offset.terms):
                return False
    return True


@pytest.mark.parametrize("name", CASES)
def test_outermost_loops_may_be_handed_out(name: str) -> None:
    function, arrays = CASES[name]
    assert outermost_are_independent(program_of(graph_of(function, *arrays)))


def test_refuses_what_no_loop_holds() -> None:
    def negate(*shape: int, dtype: str = "float32") -> Node:
        return Node(ops.Negate(), (parameter(TensorType(shape, np.dtype(dtype))),))

    assert computes(negate(2, 3))
    assert not computes(negate(2, 0))
    x = parameter(TensorType((3,), np.dtype("float32")))
    assert not computes(Node(ops.Fft("FFT", (3,)), (Node(ops.Convert(np.dtype("complex64")), (x,)),)))
