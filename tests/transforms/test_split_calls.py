"""Calls of functions under `jit` with arrays in parts: those that are split stay where they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xarr
from xarr import lax
from xarr.distributed import (
    NamedSharding,
    PartitionSpec as P,
    ReplicaMesh,
    ShardedArray,
    device_put,
    make_mesh,
    simulate,
)
from xarr.errors import ArgumentError, InputError, XarrError

A, B = np.arange(24.0).reshape(4, 6), np.arange(18.0).reshape(6, 3)


def make() -> ReplicaMesh:
    return make_mesh((2, 2), ("x", "y"))


def put(array: Any, *spec: Any, mesh: ReplicaMesh | None = None) -> ShardedArray:
    return device_put(array, NamedSharding(mesh or make(), P(*spec)))


def map_parts(f: Callable[..., Any], before: Any, after: Any, mesh: ReplicaMesh | None = None) -> Any:
    return xarr.shard_map(f, mesh=mesh or make(), in_specs=before, out_specs=after)


def run_everywhere(call: Callable[[], None]) -> None:
    """Run checks in a program of its own, and at each replica of a world."""
    call()
    simulate(4, call)


def test_what_is_split_stays_split_and_what_is_whole_is_an_array() -> None:
    def check() -> None:
        product = map_parts(lambda a, b: lax.psum(a @ b, "y"), (P("x", "y"), P("y")), P("x"))
        mean = map_parts(lambda part: lax.pmean(part.sum(), "x"), P("x"), P())
        counted: list[int] = []

        @xarr.jit
        def f(a: xarr.Array, b: xarr.Array, factor: float) -> Any:
            counted.append(1)
            c = product(a, b)
            return c, {"mean": mean(c) * factor + b.sum()}, c

        for factor in (2.0, 3.0, 4.0):
            c, rest, again = f(put(A, "x", "y"), B, factor)
            assert isinstance(c, ShardedArray) and isinstance(again, ShardedArray)
            assert c.sharding == NamedSharding(make(), P("x")) and c.shape == (4, 3)
            np.testing.assert_array_equal(np.asarray(c), A @ B)
            assert isinstance(rest["mean"], xarr.Array)
            assert float(rest["mean"]) == (A @ B).sum() / 2 * factor + B.sum()
        assert len(counted) == 1

    run_everywhere(check)


def test_parts_are_not_joined_between() -> None:
    f = xarr.jit(map_parts(lambda x: x + 1, P("x"), P("x")))
    x = put(np.zeros(4), "x")
    for _ in range(3):
        x = f(x)
    assert [shard.data.shape for shard in x.addressable_shards] == [(2,)] * 4
    np.testing.assert_array_equal(np.asarray(x), [3] * 4)
    assert "all_gather" not in str(f.lower(np.zeros(4)).stage("traced"))


def test_a_step_of_training_keeps_the_weights_whole() -> None:
    def check() -> None:
        @xarr.jit
        def step(weights: Any, x: xarr.Array, y: xarr.Array) -> Any:
            def slope(w: xarr.Array, x: xarr.Array, y: xarr.Array) -> xarr.Array:
                return lax.pmean(x.T @ (x @ w - y), "x")

            change = map_parts(slope, (P(), P("x"), P("x")), P())(weights["w"], x, y)
            return {"w": weights["w"] - 0.01 * change}

        weights: Any = {"w": np.zeros(6)}
        for _ in range(5):
            weights = step(weights, put(A, "x"), put(A.sum(1), "x"))
            assert isinstance(weights["w"], xarr.Array)
        w = np.zeros(6)
        for _ in range(5):
            w = w - 0.01 * (A.T @ (A @ w - A.sum(1)) / 2)
        np.testing.assert_allclose(weights["w"], w, rtol=1e-12)

    run_everywhere(check)


def test_jitted_functions_inside_and_results_that_are_arguments() -> None:
    def check() -> None:
        inner = xarr.jit(lambda x: (map_parts(lambda part: part * 2, P("x"), P("x"))(x), x))

        @xarr.jit
        def f(x: xarr.Array, w: xarr.Array) -> Any:
            double, same = inner(x)
            return double, same, w, inner(w)[0] + 1

        double, same, w, plain = f(put(np.arange(4.0), "x"), np.ones(2))
        np.testing.assert_array_equal(np.asarray(double), np.arange(4.0) * 2)
        np.testing.assert_array_equal(np.asarray(same), np.arange(4.0))
        assert isinstance(w, xarr.Array) and isinstance(same, ShardedArray)
        np.testing.assert_array_equal(w, [1, 1])
        np.testing.assert_array_equal(np.asarray(plain), [3, 3])

    run_everywhere(check)


def test_loops_over_what_is_whole_have_functions_of_parts_inside() -> None:
    def check() -> None:
        total = map_parts(lambda part: lax.psum(part, "x"), P("x"), P())

        @xarr.jit
        def f(x: xarr.Array) -> xarr.Array:
            return lax.fori_loop(0, 3, lambda _, each: xarr.concatenate([total(each)] * 2), total(x))

        np.testing.assert_array_equal(np.asarray(f(put(np.arange(8.0), "x"))), [48, 64, 48, 64])

    run_everywhere(check)


def test_ahead_of_time_too() -> None:
    f = xarr.jit(map_parts(lambda x: x + 1, P("x"), P("x"))).lower(np.zeros(4)).compile()
    result = f(put(np.zeros(4), "x"))
    assert isinstance(result, ShardedArray)
    np.testing.assert_array_equal(np.asarray(result), np.ones(4))


def test_on_the_backend_of_the_parts() -> None:
    with xarr.use_backend("reference"):
        x = put(np.arange(4.0), "x")
        result = xarr.jit(map_parts(lambda x: -x, P("x"), P("x")))(x)
        np.testing.assert_array_equal(np.asarray(result), -np.arange(4.0))


def test_empty_parts_and_element_types() -> None:
    f = xarr.jit(map_parts(lambda x, y: (x, y), (P("x"), P(("y", "x"))), (P("x"), P(("y", "x")))))
    x, y = f(put(np.zeros((0, 2), np.int8), "x"), put(np.array([1, 2, 3, 4j], np.complex64), ("y", "x")))
    assert x.shape == (0, 2) and x.dtype == np.int8
    np.testing.assert_array_equal(np.asarray(y), np.array([1, 2, 3, 4j], np.complex64))


def _other_mesh() -> Any:
    return xarr.jit(map_parts(lambda x: x, P("x"), P("x"), make_mesh(2, "x")))(put(A, "x"))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: xarr.jit(lambda a: a * 2)(put(A, "x")), r"mul wants a whole array, and an argument that is split"),
        (lambda: xarr.jit(map_parts(lambda x: x, P("y"), P("y")))(put(A, "x")), r"split by PartitionSpec\('y'\), got"),
        (_other_mesh, r"over Mesh\('x': 2, 'y': 2\), over which the arguments are split, got one over Mesh\('x': 2\)"),
        (
            lambda: xarr.jit(lambda a, b: a)(put(A, "x"), put(A, "x", mesh=make_mesh(2, "x"))),
            "wanted arrays over one mesh",
        ),
        (lambda: xarr.jit(lambda a: lax.cond(True, lambda: a, lambda: -a))(put(A, "x")), "wants a whole array"),
    ],
)  # fmt: skip
def test_what_would_have_to_guess_a_split_is_refused(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        call()


def test_in_a_function_that_is_recorded_it_must_be_an_argument() -> None:
    inner, x = xarr.jit(lambda a: a), put(A, "x")
    with pytest.raises(InputError, match="let it be an argument"):
        xarr.jit(lambda: inner(x))()
    with pytest.raises(XarrError):
        xarr.jit(lambda: x + 1)()
