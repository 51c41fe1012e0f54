"""Reductions as compiled loops: indices of extrema, several arrays at once, any computation, one inside another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.support.graphs import constant, graph as graph_of, node, part, scalars, tensor
from xarr import lax
from xarr.backend import get
from xarr.base.configuration import current as config
from xarr.compiler.pipeline import make_program
from xarr.ir import ops
from xarr.ir.computations import arg_direction, arg_extremum
from xarr.ir.graph import Graph, Node
from xarr.ir.types import TensorType

pytest.importorskip("llvmlite")

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(4)
FLOATS = ["float16", "bfloat16", "float32", "float64"]
OTHERS = ["bool", "int8", "int32", "int64", "uint8", "uint64"]


def kernels(graph: Graph) -> int:
    return sum(isinstance(node.op, ops.Fusion) for node in graph.nodes)


def both(function: Callable[..., Any], *arrays: Any, count: int = 1) -> list[tuple[Array, Array]]:
    """The results by compiled loops, in `count` groups, and op by op."""
    with config(fusion="off"):
        wanted = function(*arrays)
        wanted = wanted if isinstance(wanted, tuple) else (wanted,)
        xarr.evaluate(*wanted)
    with config(fusion="compiled"):
        fused = xarr.lower(function, *arrays).stage("fused")
        assert isinstance(fused, Graph)
        assert kernels(fused) == count, fused.to_text()
        results = function(*arrays)
        results = results if isinstance(results, tuple) else (results,)
        xarr.evaluate(*results)
    return [(np.asarray(a), np.asarray(b)) for a, b in zip(results, wanted, strict=True)]


def numbers(shape: tuple[int, ...], dtype: str, few: bool = True) -> xarr.Array:
    """Numbers with many that are equal, and for floats zeros of both signs."""
    values = RNG.integers(-2 if few else -100, 3 if few else 100, shape).astype(np.float64)
    if dtype in FLOATS:
        values = np.where(RNG.integers(0, 2, shape) > 0, values, -values)
    return xarr.asarray(np.abs(values) if dtype[0] in "ub" and dtype != "bfloat16" else values, dtype=dtype)


SHAPES = [(1, 0), (7, 0), (1000, 0), (70_001, 0), (40, 33, 1), (40, 33, 0), (3, 50_000, 1), (50_000, 3, 0)]
SHAPES += [(5, 6, 7, 1), (300, 2, 1), (3, 40_000, 0), (1, 1, 1), (4, 1, 1), (1, 30, 1), (2, 30, 1, 1)]


@pytest.mark.parametrize("dtype", FLOATS + OTHERS)
@pytest.mark.parametrize("case", SHAPES, ids=str)
@pytest.mark.parametrize("find", [lax.argmax, lax.argmin], ids=["argmax", "argmin"])
def test_indices_of_extrema(find: Callable[..., Any], case: tuple[int, ...], dtype: str) -> None:
    *shape, axis = case
    x = numbers(tuple(shape), dtype)
    for mine, exact in both(lambda x: find(x, axis, np.int32), x):
        assert_same(mine, exact)


@pytest.mark.parametrize("shape", [(1,), (1, 1)], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "bool", "uint8"])
def test_the_index_of_the_only_element(shape: tuple[int, ...], dtype: str) -> None:
    x = xarr.asarray(np.ones(shape), dtype=dtype)
    with config(fusion="compiled"):
        for find in (lax.argmax, lax.argmin):
            indices = xarr.jit(lambda x, find=find: find(x, 0, np.int32))(x)
            assert_same(indices, np.zeros(shape[1:], np.int32))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("axis", [0, 1])
def test_the_first_nan_is_ahead(axis: int, dtype: str) -> None:
    values = RNG.normal(size=(37, 5000))
    values[RNG.integers(0, 37, 40), RNG.integers(0, 5000, 40)] = np.nan
    values[5] = -np.inf
    values[6] = np.inf
    values[7, 9:] = np.nan
    x = xarr.asarray(values, dtype=dtype)
    for find in (lax.argmax, lax.argmin):
        for mine, exact in both(lambda x, find=find: find(x, axis, np.int64), x):
            assert_same(mine, exact)


@pytest.mark.parametrize("value", [-np.inf, np.inf, np.nan])
def test_rows_of_nothing_else(value: float) -> None:
    x = xarr.asarray(np.full((4, 70), value, np.float32))
    for find in (lax.argmax, lax.argmin):
        for mine, exact in both(lambda x, find=find: find(x, 1, np.int32), x):
            assert_same(mine, exact)


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int8", "bool"])
@pytest.mark.parametrize("count", [5, 64, 77, 1000, 70_001])
def test_the_index_of_one_extremum(count: int, dtype: str) -> None:
    """At the ends, in each part of a vector loop, in the last block, and before an equal one."""
    for index in {
        min(each, count - 1) for each in (0, 3, 4, count // 2, count // 2 + 7, count - 2, count - 1)
    }:
        values = np.zeros((2, count))
        values[0, index:] = values[1, 0] = 1
        for x, find in ((values, lax.argmax), (1 - values, lax.argmin)):
            array = xarr.asarray(x, dtype=dtype)
            with config(fusion="compiled"):
                indices = xarr.jit(lambda x, find=find: find(x, 1, np.int64))(array)
            assert indices.tolist() == [index, 0]


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool"])
@pytest.mark.parametrize("shape", [(1,), (1, 1), (4, 1), (1, 4), (1, 1, 3)], ids=str)
def test_indices_along_dimensions_of_one_element(shape: tuple[int, ...], dtype: str) -> None:
    x = numbers(shape, dtype)
    for axis in range(len(shape)):
        for find in (lax.argmax, lax.argmin):
            with config(fusion="off"):
                wanted = np.asarray(find(x, axis, np.int32))
            with config(fusion="compiled"):
                indices = xarr.jit(lambda x, find=find, axis=axis: find(x, axis, np.int32) + 1)(x)
            assert_same(np.asarray(indices), wanted + np.int32(1))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_zeros_are_equal_and_neighbours_are_not(dtype: str) -> None:
    tiny, most = np.finfo(dtype).smallest_subnormal, np.finfo(dtype).max
    rows = [[-0.0, 0.0, -0.0], [0.0, -0.0, 0.0], [-tiny, tiny, 0.0], [-most, most, -np.inf], [1, -1, np.nan]]
    x = np.tile(np.array(rows, dtype), (1, 30))
    for find, exact in ((xarr.argmax, x.argmax(1)), (xarr.argmin, x.argmin(1))):
        with config(fusion="compiled"):
            assert xarr.jit(lambda x, find=find: find(x, axis=1))(xarr.asarray(x)).tolist() == exact.tolist()


@pytest.mark.parametrize("dtype", ["float32", "int32", "bool"])
def test_indices_beside_other_results(dtype: str) -> None:
    """Of elements that are computed, in turned arrays, with the extrema themselves and what needs both."""

    def program(x: xarr.Array) -> tuple[xarr.Array, ...]:
        turned = xarr.where(x == 1, x, x)[::-1]
        index = lax.argmax(turned, 1, np.int32)
        return (
            index,
            lax.argmin(x, 1, np.int32),
            lax.reduce_max(x, [1]),
            index * 2,
            lax.argmax(x.T, 0, np.int32),
        )

    for shape in ((30, 100), (2, 40_000)):
        for mine, exact in both(program, numbers(shape, dtype), count=3):
            assert_same(mine, exact)


def run(graph: Graph, fusion: str, *arrays: Array) -> list[Array]:
    with config(fusion=fusion):
        return [np.asarray(each) for each in make_program(graph, get("numpy")).program(*arrays)]


def assert_both_ways(graph: Graph, *arrays: Array, rtol: float = 0) -> None:
    with config(fusion="compiled"):
        text = make_program(graph, get("numpy")).program.text
    assert "k0" in text, text
    for mine, exact in zip(run(graph, "compiled", *arrays), run(graph, "off", *arrays), strict=True):
        if rtol and exact.dtype.kind == "f":
            np.testing.assert_allclose(mine, exact, rtol=rtol)
        else:
            assert_same(mine, exact)


def reduce(x: Node, dims: tuple[int, ...], computation: Graph, *others: Node) -> Node:
    return node(ops.Reduce(dims, computation), x, *others)


def indices(x: Node, axis: int, dtype: Any = np.int32) -> Node:
    return node(ops.Iota(TensorType(x.shape, np.dtype(dtype)), axis))


def with_initial(first: float, index: int) -> Callable[[Node], tuple[Node, Node]]:
    def function(x: Node) -> tuple[Node, Node]:
        computation = arg_extremum("GT", x.dtype, np.dtype(np.int32))
        start = (constant(first, x.dtype), constant(index, np.int32))
        result = node(ops.Reduce((1,), computation), x, indices(x, 1), *start)
        return part(0, result), part(1, result)

    return function


@pytest.mark.parametrize("first", [-np.inf, 0.5, np.inf, np.nan])
@pytest.mark.parametrize("index", [0, 3, 1000])
def test_initial_values_of_extrema_take_part(first: float, index: int) -> None:
    values = RNG.normal(size=(40, 70)).astype(np.float32)
    values[1] = -np.inf
    values[2] = np.inf
    assert_both_ways(graph_of(with_initial(first, index), tensor(np.float32, 40, 70)), values)


@pytest.mark.parametrize("size", [127, 128])
def test_indices_of_extrema_may_fill_their_type(size: int) -> None:
    computation = arg_extremum("GT", np.dtype(np.float32), np.dtype(np.int8))

    def function(x: Node) -> Node:
        start = (constant(-np.inf), constant(0, np.int8))
        result = node(ops.Reduce((1,), computation), x, indices(x, 1, np.int8), *start)
        assert arg_direction(result) == "GT"
        return part(1, result)

    x = np.zeros((40, size), np.float32)
    x[:, -1] = 1
    x[3] = -np.inf
    assert_both_ways(graph_of(function, tensor(np.float32, 40, size)), x)


def test_the_value_alone_or_used_by_what_comes_after() -> None:
    computation = arg_extremum("LT", np.dtype(np.float64), np.dtype(np.int64))

    def function(x: Node) -> tuple[Node, Node]:
        doubled = node(ops.Add(), x, x)
        start = (constant(np.inf, np.float64), constant(0, np.int64))
        result = node(ops.Reduce((1,), computation), doubled, indices(x, 1, np.int64), *start)
        wide = node(ops.BroadcastInDim(x.shape, (0,)), part(0, result))
        return node(ops.Subtract(), doubled, wide), node(ops.Negate(), part(1, result))

    assert_both_ways(graph_of(function, tensor(np.float64, 50, 33)), RNG.normal(size=(50, 33)))


def test_a_tuple_that_is_used_whole_stays_a_tuple() -> None:
    computation = arg_extremum("LT", np.dtype(np.float32), np.dtype(np.int32))

    def function(x: Node) -> tuple[Node, Node]:
        doubled = node(ops.Add(), x, x)
        start = (constant(np.inf), constant(0, np.int32))
        result = node(ops.Reduce((0,), computation), doubled, indices(x, 0), *start)
        return result, node(ops.Negate(), part(1, result))

    graph = graph_of(function, tensor(np.float32, 50))
    x = RNG.normal(size=50).astype(np.float32)
    with config(fusion="compiled"):
        (value, index), other = make_program(graph, get("numpy")).program(x)
    assert (value, index, other) == (2 * x.min(), x.argmin(), -x.argmin())


def both_sums(x: Node, dims: tuple[int, ...]) -> tuple[Node, Node]:
    """The sum and the sum of squares in one reduction."""
    computation = scalars(lambda a, b, c, d: (node(ops.Add(), a, c), node(ops.Add(), b, d)), *[x.dtype] * 4)
    zero = constant(0, x.dtype)
    result = node(ops.Reduce(dims, computation), x, node(ops.Multiply(), x, x), zero, zero)
    return part(0, result), part(1, result)


@pytest.mark.parametrize("shape", [(40, 33), (3, 70_000), (70_000, 3)], ids=str)
@pytest.mark.parametrize("dims", [(0,), (1,), (0, 1)], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_two_sums_at_once(dtype: str, dims: tuple[int, ...], shape: tuple[int, ...]) -> None:
    x = (RNG.uniform(1, 3, shape)).astype(dtype)
    graph = graph_of(lambda x: both_sums(x, dims), tensor(dtype, *shape))
    assert_both_ways(graph, x, rtol=1e-4 if dtype == "float32" else 1e-12)


def log_sum(x: Node, dim: int) -> tuple[Node, Node]:
    """The maximum, and the sum of powers below it."""

    def combine(m: Node, s: Node, n: Node, t: Node) -> tuple[Node, Node]:
        top = node(ops.Maximum(), m, n)
        left = node(ops.Multiply(), s, node(ops.Exponential(), node(ops.Subtract(), m, top)))
        right = node(ops.Multiply(), t, node(ops.Exponential(), node(ops.Subtract(), n, top)))
        return top, node(ops.Add(), left, right)

    ones = node(ops.BroadcastInDim(x.shape, ()), constant(1, x.dtype))
    start = (constant(-1e30, x.dtype), constant(0, x.dtype))
    result = node(ops.Reduce((dim,), scalars(combine, *[x.dtype] * 4)), x, ones, *start)
    return part(0, result), part(1, result)


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("shape", [(40, 33), (5, 3000), (3000, 5)], ids=str)
def test_a_computation_of_two_that_need_each_other(shape: tuple[int, ...], dim: int) -> None:
    graph = graph_of(lambda x: log_sum(x, dim), tensor(np.float64, *shape))
    assert_both_ways(graph, RNG.normal(size=shape), rtol=1e-10)


@pytest.mark.parametrize("dim", [0, 1])
def test_a_computation_without_a_name_meets_elements_in_order(dim: int) -> None:
    """The last element that is not zero: associative, and no more."""

    def function(x: Node) -> Node:
        def combine(a: Node, b: Node) -> Node:
            return node(ops.Select(), node(ops.Compare("NE"), b, constant(0, b.dtype)), b, a)

        doubled = node(ops.Add(), x, x)
        return reduce(doubled, (dim,), scalars(combine, x.dtype, x.dtype), constant(0, x.dtype))

    x = (RNG.integers(0, 1000, (70, 300)) * (RNG.random((70, 300)) < 0.05)).astype(np.int32)
    assert_both_ways(graph_of(function, tensor(np.int32, 70, 300)), x)


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize("op", [ops.Add, ops.Maximum, ops.Minimum, ops.Multiply], ids=lambda op: op.__name__)
@pytest.mark.parametrize("dims", [(0,), (1,), (0, 1)], ids=str)
def test_narrow_floats_are_accumulated_in_float32(dims: tuple[int, ...], op: type[Any], dtype: str) -> None:
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    x = RNG.choice([0.5, 1, 2, -1], (30, 40), p=[0.1, 0.7, 0.1, 0.1]).astype(kind)

    def function(x: Node) -> Node:
        computation = scalars(lambda a, b: node(op(), a, b), kind, kind)
        start = {ops.Multiply: 1.0, ops.Maximum: -4.0, ops.Minimum: 4.0}.get(op, 0.0)
        return reduce(node(ops.Negate(), x), dims, computation, constant(start, kind))

    assert_both_ways(graph_of(function, tensor(kind, 30, 40)), x)


@pytest.mark.parametrize("dtype", ["uint8", "uint32", "uint64"])
def test_the_largest_of_numbers_without_signs_wraps_around_as_one_with_a_sign(dtype: str) -> None:
    """A maximum is 0 at least, and the number that it becomes may be negative."""
    x = np.array([3, np.iinfo(dtype).max], dtype)
    signed = dtype[1:]

    def function(x: Any) -> Any:
        return xarr.abs(xarr.max(x).astype(signed)), xarr.max(x).astype(signed) < 0

    size, is_negative = xarr.jit(function)(x)
    assert int(size) == 1
    assert bool(is_negative)
