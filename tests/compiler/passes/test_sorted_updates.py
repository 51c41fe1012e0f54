"""Scatters whose updates are sorted first: the graph computes what it did, to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xarr
from tests.compiler.schedules.serial.test_serial_loops import graph_of
from xarr import lax
from xarr.backend import get
from xarr.compiler.passes.sorted_updates import sort_updates
from xarr.ir import ops
from xarr.ir.graph import Graph

RNG = np.random.default_rng(7)
COUNT = 40


def normal(*shape: int) -> np.ndarray[Any, Any]:
    return RNG.normal(size=shape).astype("float32")


def indices(most: int, *shape: int, dtype: str = "int64") -> np.ndarray[Any, Any]:
    """Some of them are outside."""
    low = 0 if dtype.startswith("u") else -2
    return RNG.integers(low, most + 2, shape).astype(dtype)


def add(x: Any, i: Any, updates: Any, window: Any, inserted: Any, dims: Any) -> Any:
    return lax.scatter_add(x, i, updates, lax.ScatterDimensionNumbers(window, inserted, dims))


#: Scatters of windows that are the same or apart.
SCATTERS: dict[str, tuple[Any, tuple[np.ndarray[Any, Any], ...]]] = {
    "elements": (
        lambda x, i, u: add(x, i, u, (), (0,), (0,)),
        (normal(9), indices(9, COUNT, 1), normal(COUNT)),
    ),
    "rows": (
        lambda x, i, u: add(x, i, u, (1,), (0,), (0,)),
        (normal(9, 3), indices(9, COUNT, 1, dtype="int8"), normal(COUNT, 3)),
    ),
    "columns": (
        lambda x, i, u: add(x, i, u, (0,), (1,), (1,)),
        (normal(3, 9), indices(9, COUNT, 1, dtype="uint8"), normal(3, COUNT)),
    ),
    "two components": (
        lambda x, i, u: add(x, i, u, (), (0, 1), (1, 0)),
        (normal(5, 4), indices(5, COUNT, 2), normal(COUNT)),
    ),
    "two dimensions of updates": (
        lambda x, i, u: add(x, i, u, (1,), (0,), (0,)),
        (normal(9, 3), indices(9, 4, 10, 1), normal(4, 3, 10)),
    ),
    "vectors of indices along the first dimension": (
        lambda x, i, u: lax.scatter_add(
            x, xarr.moveaxis(i, 0, 1), u, lax.ScatterDimensionNumbers((), (0, 1), (0, 1))
        ),
        (normal(5, 4), indices(5, 2, COUNT), normal(COUNT)),
    ),
    "one start": (
        lambda x, i, u: add(x, i, u, (1,), (), (0,)),
        (normal(3), indices(1, COUNT, 1), normal(COUNT, 3)),
    ),
    "products": (
        lambda x, i, u: x.at[i].multiply(u, mode="drop"),
        (normal(9), indices(9, COUNT), normal(COUNT)),
    ),
}


def run(graph: Graph, arrays: Any) -> np.ndarray[Any, Any]:
    with xarr.use_backend("reference"):
        buffers = [get("reference").from_host(each) for each in arrays]
        (result,) = get("reference").compile(graph)(*buffers)
        return np.asarray(get("reference").to_host(result))


def scatters_of(graph: Graph) -> list[ops.Scatter]:
    return [node.op for each in graph.walk() for node in each.nodes if isinstance(node.op, ops.Scatter)]


@pytest.mark.implicit
@pytest.mark.parametrize("name", SCATTERS)
def test_sorted_updates_are_combined_to_the_same_bits(name: str) -> None:
    function, arrays = SCATTERS[name]
    graph = graph_of(function, *arrays)
    changed = sort_updates(graph, lambda node: True)
    assert any(isinstance(node.op, ops.Sort) for node in changed.nodes)
    assert all(op.indices_are_sorted for op in scatters_of(changed))
    changed.verify()
    assert run(changed, arrays).tobytes() == run(graph, arrays).tobytes()


@pytest.mark.parametrize(
    ("sizes", "wanted"),
    [
        *(((2**16 - 1,), "uint16"), ((2**16,), "uint32"), ((2**32 - 1,), "uint32"), ((2**32,), "uint64")),
        *(((2**8 - 1, 2**8), "uint16"), ((2**8, 2**8), "uint32")),
    ],
)
def test_keys_are_as_wide_as_they_must_be(sizes: tuple[int, ...], wanted: str) -> None:
    dims = lax.ScatterDimensionNumbers((), tuple(range(len(sizes))), tuple(range(len(sizes))))
    types = [f"u8[{','.join(map(str, sizes))}]", f"s64[100,{len(sizes)}]", "u8[100]"]
    graph: Any = xarr.jit(lambda x, i, u: lax.scatter_add(x, i, u, dims)).lower(*types)
    changed = sort_updates(graph.stage("decomposed"), lambda node: True)
    (sort,) = [node for node in changed.nodes if isinstance(node.op, ops.Sort)]
    assert [each.dtype.name for each in sort.operands] == [wanted, "int64"]


def test_windows_that_may_overlap_are_left() -> None:
    dims = lax.ScatterDimensionNumbers((1,), (), (0,))
    graph = graph_of(
        lambda x, i, u: lax.scatter_add(x, i, u, dims), normal(9), indices(9, COUNT, 1), normal(COUNT, 3)
    )
    assert sort_updates(graph, lambda node: True) is graph


def test_a_promise_of_users_is_not_relied_on() -> None:
    _, arrays = SCATTERS["elements"]
    dims = lax.ScatterDimensionNumbers((), (0,), (0,))
    promised = graph_of(lambda x, i, u: lax.scatter_add(x, i, u, dims, indices_are_sorted=True), *arrays)
    assert [op.indices_are_sorted for op in scatters_of(promised)] == [True]
    assert [op.indices_are_sorted for op in scatters_of(sort_updates(promised, lambda node: False))] == [
        False
    ]
    assert [op.indices_are_sorted for op in scatters_of(sort_updates(promised, lambda node: True))] == [True]


def test_scatters_inside_of_loops_are_sorted() -> None:
    def function(x: Any, i: Any, u: Any) -> Any:
        return lax.fori_loop(0, 3, lambda k, x: x.at[i].add(u, mode="drop"), x)

    arrays = normal(9), indices(9, COUNT), normal(COUNT)
    graph = graph_of(function, *arrays)
    changed = sort_updates(graph, lambda node: True)
    assert [op.indices_are_sorted for op in scatters_of(changed)] == [True]
    assert run(changed, arrays).tobytes() == run(graph, arrays).tobytes()
