"""Gathers and scatters as compiled loops: the same bits as the reference backend, for indices of any kind."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import xarr
from tests.compare import assert_same
from tests.support.draws.indexing import gather, scatter
from tests.support.fuzz import Drawn
from tests.support.threads import threads
from xarr import lax
from xarr.base.configuration import current as config
from xarr.ir import ops
from xarr.ir.graph import Graph
from xarr.runtime.materialisation import to_host

pytest.importorskip("llvmlite")

RANDOMS = st.integers(0, 2**32).map(Random)


def agree(case: Drawn) -> None:
    """Compiled loops and the reference backend give the same."""
    with xarr.use_backend("reference"):
        wanted = to_host(case.call(lax, tuple(map(xarr.asarray, case.operands))))
    with config(fusion="compiled"):
        got = case.call(lax, tuple(map(xarr.asarray, case.operands)))
        got.evaluate()
    try:
        assert_same(got, wanted)
    except AssertionError as error:
        raise AssertionError(f"{case}\n{case.operands}\n{error}") from None


@settings(max_examples=150)
@given(RANDOMS.map(gather))
def test_gathers_as_the_reference(case: Drawn) -> None:
    agree(case)


def kernels(function: Callable[..., Any], *types: str) -> int:
    with config(fusion="compiled"):
        fused = xarr.lower(function, *types).stage("fused")
    assert isinstance(fused, Graph)
    others = [node for node in fused.nodes if not isinstance(node.op, ops.Fusion | ops.Constant)]
    assert not others, fused.to_text()
    return len(fused.nodes)


def scaled_rows(x: Any, i: Any, w: Any) -> Any:
    return lax.take(x, lax.add(i, 1), 0) * lax.broadcast_in_dim(w, (1000, 16), (0,))


def normalised_rows(x: Any, i: Any) -> Any:
    e = lax.exp(lax.take(x, i, 0))
    return e / xarr.sum(e, axis=1, keepdims=True)


#: name: function, the types of its operands
ONE_KERNEL: dict[str, tuple[Callable[..., Any], list[str]]] = {
    "row": (lambda x, i: lax.take(x, i, 0), ["f32[100,16]", "s64[1000]"]),
    "filled": (lambda x, i: lax.take(x, i, 0, mode="fill"), ["f32[100,16]", "s64[1000]"]),
    "column": (lambda x, i: lax.take(x, i, 1), ["f32[100,16]", "s64[100,3]"]),
    "scaled rows": (scaled_rows, ["f32[100,16]", "s32[1000]", "f32[1000]"]),
    "rows that add up to 1": (normalised_rows, ["f32[100,16]", "u8[1000]"]),
}


@pytest.mark.implicit
@pytest.mark.parametrize("name", ONE_KERNEL)
def test_gathers_run_with_what_surrounds_them(name: str) -> None:
    function, types = ONE_KERNEL[name]
    assert kernels(function, *types) == 1


def test_costly_rows_are_not_computed_for_each_index() -> None:
    assert kernels(lambda x, i: lax.take(lax.exp(x), i, 0), "f32[100,16]", "s64[1000]") == 2
    assert kernels(lambda x, i: lax.take(lax.mul(x, x), i, 0), "f32[100,16]", "s64[1000]") == 2
    assert kernels(lambda x, i: lax.take(lax.exp(x), i, 0), "f32[1000,16]", "s64[100]") == 1


@settings(max_examples=150)
@given(RANDOMS.map(scatter))
def test_scatters_as_the_reference(case: Drawn) -> None:
    agree(case)


def rows_into(shape: tuple[int, ...], window: tuple[int, ...], **promises: Any) -> Callable[..., Any]:
    rank = len(window)
    numbers = lax.ScatterDimensionNumbers(range(1, 1 + rank), range(len(shape) - rank), (0,))
    return lambda x, i, u: lax.scatter_add(x, i, u, numbers, index_vector_dim=1, **promises)


#: name: operand, window, what is promised.  Sums of these floats depend on their order.
SHARED: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, bool]]] = {
    "rows": ((300, 20), (20,), {}),
    "sorted rows": ((300, 20), (20,), {"indices_are_sorted": True}),
    "columns": ((3, 200), (200,), {}),
    "parts of rows": ((300, 20), (9,), {}),
    "numbers": ((300,), (), {}),
    "runs of numbers": ((300,), (5,), {}),
    "blocks": ((90, 80), (7, 9), {}),
    "wide rows": ((100, 3, 40), (3, 40), {}),
}


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("name", SHARED)
def test_sums_do_not_depend_on_the_number_of_threads(name: str, count: int) -> None:
    shape, window, promises = SHARED[name]
    generator = np.random.default_rng(1)
    indices = generator.integers(-2, shape[0] + 2, 3000).astype(np.int32)
    if promises:
        indices.sort()
    arrays = [generator.normal(size=shape), indices, generator.normal(size=(3000, *window))]
    function = rows_into(shape, window, **promises)
    with config(fusion="off"):
        wanted = to_host(function(*map(xarr.asarray, arrays)))
    with config(fusion="compiled"), threads(count):
        assert_same(function(*map(xarr.asarray, arrays)), wanted)


@pytest.mark.parametrize("window", [(8,), ()])
def test_scatters_are_written_over_what_nothing_needs(window: tuple[int, ...]) -> None:
    """A donated operand is not copied, also if its own updates are read from it; one that is needed afterwards is."""
    shape = (5000, *window)
    generator = np.random.default_rng(3)
    x, u = generator.normal(size=shape), generator.normal(size=(700, *window))
    indices = generator.integers(0, 5000, 700)
    add = rows_into(shape, window)
    steps: tuple[Callable[..., Any], ...] = (
        lambda x, i, u: add(add(x, i, u), i, u),
        lambda x, i, u: add(x, i, lax.take(x, i, 0)),
        lambda x, i, u: lax.sub(add(x, i, u), lax.rev(x, (0,))),
    )
    for step, stays in zip(steps, (True, True, False), strict=True):
        with config(fusion="compiled"):  # in memory that the library knows to be its own
            arguments: list[Any] = [lax.add(xarr.asarray(x), np.float64(1)).evaluate(), indices, u]
        wanted = to_host(step(*map(xarr.asarray, (x + 1, indices, u))))
        before = arguments[0]._node.value.ctypes.data
        with config(fusion="compiled"):
            result = xarr.jit(step, donate_argnums=0)(*arguments)
            assert_same(result, wanted)
        assert (result._node.value.ctypes.data == before) is stays


@pytest.mark.parametrize("start", ["given", "made"])
def test_loops_scatter_into_what_they_carry(start: str) -> None:
    generator = np.random.default_rng(4)
    x, u = generator.normal(size=9000), generator.normal(size=400)
    indices = generator.integers(0, 9000, 400)
    add = rows_into((9000,), ())

    def function(x: Any, i: Any, u: Any) -> Any:
        before = lax.mul(x, np.float64(2)) if start == "made" else x
        return lax.fori_loop(
            0, 5, lambda k, s: add(s, i, lax.mul(u, lax.convert_element_type(k, np.float64))), before
        )

    carried = x.copy()
    result = xarr.jit(function)(carried, indices, u)
    with config(fusion="off"):
        assert_same(result, to_host(function(*map(xarr.asarray, (x, indices, u)))))
    assert_same(carried, x)
