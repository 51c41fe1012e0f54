"""Groups of operations as compiled loops: the results of one NumPy call for each operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.support.graphs import graph as graph_of, node, tensor
from xarr import lax
from xarr.backend import get
from xarr.compiler.pipeline import make_program
from xarr.ir import ops
from xarr.ir.graph import Graph, Node

pytestmark = pytest.mark.implicit

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(11)


def softmax(x: Any, axis: int = -1) -> Any:
    e = xarr.exp(x - xarr.max(x, axis=axis, keepdims=True))
    return e / xarr.sum(e, axis=axis, keepdims=True)


def layer_norm(x: Any) -> Any:
    centred = x - xarr.mean(x, axis=-1, keepdims=True)
    return centred / xarr.sqrt(xarr.mean(centred * centred, axis=-1, keepdims=True) + 1e-5)


def distances(a: Any, b: Any) -> Any:
    difference = a[:, None, :] - b[None]
    return xarr.min(xarr.sum(difference * difference, axis=-1), axis=1)


def stencil(u: Any) -> Any:
    return (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]) * 0.25


def pad(u: Any) -> Any:
    return lax.pad(u * 2, np.asarray(1.5, u.dtype), [(2, 3, 0), (-1, 4, 0)]) + 1


#: name: function, shapes of its operands, how many kernels it becomes
PROGRAMS: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]], int]] = {
    "row and matrix": (lambda x, v: x + v * 2, [(37, 53), (53,)], 1),
    "column and matrix": (lambda x, v: x * v[:, None], [(37, 53), (37,)], 1),
    "chain": (lambda x: xarr.where(xarr.tanh(x) > 0, xarr.exp(-x * x), x * 0.5), [(1001,)], 1),
    "one element": (lambda x: xarr.exp(x) + 1, [(1, 1)], 1),
    "sum of rows": (lambda x: xarr.sum(x, axis=1), [(37, 53)], 1),
    "sum of columns": (lambda x: xarr.sum(x, axis=0), [(37, 53)], 1),
    "sum of tall columns": (lambda x: xarr.sum(x, axis=0), [(9001, 13)], 1),
    "sum of a middle axis": (lambda x: xarr.sum(x * 2, axis=1), [(5, 33, 7)], 1),
    "sum of outer axes": (lambda x: xarr.sum(x, axis=(0, 2)), [(5, 33, 7)], 1),
    "sum of all": (lambda x: xarr.sum(x), [(300_001,)], 1),
    "maximum of all": (lambda x: xarr.max(xarr.abs(x) * -1), [(500, 333)], 1),
    "mean and variance": (lambda x: (xarr.mean(x), xarr.max(x, axis=0)), [(70, 33)], 2),
    "softmax": (softmax, [(37, 53)], 1),
    "softmax of long rows": (softmax, [(3, 70_001)], 1),
    "softmax of columns": (lambda x: softmax(x, 0), [(37, 53)], 1),
    "softmax of tall columns": (lambda x: softmax(x, 0), [(9001, 13)], 1),
    "softmax of all": (lambda x: softmax(x, None), [(300, 301)], 1),  # type: ignore[arg-type]
    "layer norm": (layer_norm, [(37, 53)], 1),
    "row minima of distances": (distances, [(50, 3), (70, 3)], 1),
    "stencil": (stencil, [(40, 41)], 1),
    "concatenation": (lambda u: xarr.concatenate([u * 2, u + 1], axis=1) + 1, [(20, 31)], 1),
    "padding": (pad, [(20, 31)], 1),
    "both axes reversed": (lambda u: u[::-1, ::-1] * 2, [(20, 31)], 1),
    "steps": (lambda u: u[1::3, ::2] * 2, [(20, 31)], 1),
    "transposed": (lambda u: u.T + 1, [(20, 31)], 1),
    "split axis": (lambda u: u.reshape(20, 31, 2) + 1, [(20, 62)], 1),
    "indices": (lambda u: u * xarr.arange(31), [(20, 31)], 1),
    "count": (lambda u: xarr.sum(u > 0, axis=0), [(20, 31)], 1),
    "any": (lambda u: xarr.any(u > 1, axis=1), [(20, 31)], 1),
    "two results": (lambda u: (xarr.exp(u), xarr.exp(u) * 2), [(20, 31)], 1),
    "result of a step before": (lambda u: (xarr.exp(u), xarr.sum(xarr.exp(u), axis=1)), [(20, 31)], 1),
}


def kernels(graph: Graph) -> int:
    return sum(isinstance(node.op, ops.Fusion) for node in graph.nodes)


def operands_of(shapes: list[tuple[int, ...]], dtype: str) -> list[Array]:
    return [(RNG.normal(size=shape) * (9 if dtype[0] == "i" else 1)).astype(dtype) for shape in shapes]


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "float16", "bfloat16"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_fused_agrees_with_numpy(name: str, dtype: str) -> None:
    pytest.importorskip("llvmlite")
    function, shapes, count = PROGRAMS[name]
    arrays = [
        xarr.asarray(array, dtype=dtype)
        for array in operands_of(shapes, "float64" if dtype == "bfloat16" else dtype)
    ]
    with xarr.config(fusion="off"):
        wanted = function(*arrays)
        xarr.evaluate(*(wanted if isinstance(wanted, tuple) else (wanted,)))
    with xarr.config(fusion="compiled"):
        results = function(*arrays)
        xarr.evaluate(*(results if isinstance(results, tuple) else (results,)))
        if dtype in ("float32", "float64"):
            fused = xarr.lower(function, *arrays).stage("fused")
            assert isinstance(fused, Graph)
            assert kernels(fused) == count, fused.to_text()
    both = (results, wanted) if isinstance(results, tuple) else ((results,), (wanted,))
    for mine, exact in zip(*both, strict=True):
        assert mine.dtype == exact.dtype and mine.shape == exact.shape
        if exact.dtype.kind in "bi":
            assert_same(mine, np.asarray(exact))
        else:
            eps = float(xarr.finfo(exact.dtype).eps)
            scale = max(1.0, float(np.nanmax(np.abs(np.asarray(exact, np.float64)))))
            np.testing.assert_allclose(
                np.asarray(mine, np.float64), np.asarray(exact, np.float64), rtol=0, atol=300 * eps * scale
            )


def test_groups_do_not_wait_for_each_other() -> None:
    """x feeds a late user in the group of something early that x's own group reads."""

    def function(a: Any, b: Any) -> Any:
        early = xarr.sum(a * 2, axis=1)
        x = xarr.exp(b + early)
        late = xarr.sum(a * 3, axis=1) + xarr.sum(xarr.sort(x))
        return early + late, x * 2

    a, b = (xarr.asarray(array) for array in operands_of([(30, 40), (30,)], "float64"))
    with xarr.config(fusion="off"):
        wanted = [np.asarray(each) for each in function(a, b)]
    with xarr.config(fusion="compiled"):
        results = function(a, b)
        for mine, exact in zip(results, wanted, strict=True):
            np.testing.assert_allclose(np.asarray(mine), exact, rtol=1e-12)


def test_a_group_reads_what_two_of_its_users_share_once() -> None:
    x = xarr.asarray(RNG.normal(size=(30, 40)))

    def function(x: Any) -> Any:
        return xarr.sum(x, axis=1), xarr.max(x, axis=1), xarr.sum(x * x, axis=1)

    with xarr.config(fusion="compiled"):
        fused = xarr.lower(function, x).stage("fused")
        assert isinstance(fused, Graph)
        assert kernels(fused) == 1
        for mine, exact in zip(
            function(x), (np.sum, np.max, lambda a, axis: np.sum(a * a, axis)), strict=True
        ):
            np.testing.assert_allclose(np.asarray(mine), exact(np.asarray(x), axis=1), rtol=1e-12)


def both_ways(graph: Graph, *inputs: Array) -> None:
    """Compiled and op by op: the same bits."""
    backend = get("numpy")
    with xarr.config(fusion="off"):
        wanted = make_program(graph, backend).program(*inputs)
    with xarr.config(fusion="compiled"):
        mine = make_program(graph, backend).program(*inputs)
    for a, b in zip(mine, wanted, strict=True):
        assert_same(a, b)


def maxima(x: Node, first: Node, dims: tuple[int, ...]) -> Node:
    return Node(
        ops.Reduce(dims, graph_of(lambda a, b: node(ops.Maximum(), a, b), tensor(x.dtype), tensor(x.dtype))),
        (x, first),
    )


def test_what_a_copied_slice_reads_is_an_array_if_the_slice_is_a_result() -> None:
    def function(x: Node, y: Node) -> tuple[Node, Node]:
        part = node(ops.Slice((1, 2), (2, 3), (1, 1)), node(ops.Convert(np.dtype(np.int16)), x))
        one = node(ops.Reshape(()), part)
        return one, node(ops.Xor(), one, y)

    graph = graph_of(function, tensor(np.int64, 3, 4), tensor(np.int16))
    both_ways(graph, np.arange(12).reshape(3, 4), np.array(5, np.int16))


def test_a_copied_slice_that_a_group_needs_by_way_of_another_operation() -> None:
    """The group must not wait for what waits for the group."""

    def function(x: Node, matrix: Node) -> Node:
        row = node(ops.Reshape((1, 3)), node(ops.Exponential(), x))
        product = node(ops.DotGeneral((), (), (1,), (0,), np.dtype(np.float32)), row, matrix)
        return node(ops.Add(), node(ops.Negate(), row), product)

    graph = graph_of(function, tensor(np.float32, 3), tensor(np.float32, 3, 3))
    both_ways(graph, np.zeros(3, np.float32), np.eye(3, dtype=np.float32))


def test_an_output_that_needs_no_reduction_beside_reductions() -> None:
    def function(x: Node, y: Node) -> tuple[Node, Node]:
        scalar = node(ops.Or(), y, y)
        wide = node(ops.Maximum(), x, node(ops.BroadcastInDim((8,), ()), scalar))
        return maxima(wide, scalar, (0,)), scalar

    graph = graph_of(function, tensor(np.int32, 8), tensor(np.int32))
    both_ways(graph, np.arange(8, dtype=np.int32), np.array(3, np.int32))


def test_a_reduction_over_no_dimension_after_another_reduction() -> None:
    graph = graph_of(
        lambda x, y: maxima(maxima(x, y, (0,)), y, ()), tensor(np.float32, 1), tensor(np.float32)
    )
    both_ways(graph, np.array([2.0], np.float32), np.array(1.0, np.float32))


def test_what_one_stage_keeps_for_the_next_is_read_after_it_is_written() -> None:
    def function(x: Node, first: Node) -> Node:
        rest = node(ops.Remainder(), x, x)
        return node(ops.Add(), rest, node(ops.BroadcastInDim((1,), ()), maxima(rest, first, (0,))))

    graph = graph_of(function, tensor(np.uint8, 1), tensor(np.uint8))
    both_ways(graph, np.array([7], np.uint8), np.array(5, np.uint8))
