"""`pmap`: slices of arrays at replicas."""

from __future__ import annotations

import functools
import re
from typing import Any

import numpy as np
import pytest

import xarr
from xarr import lax
from xarr.distributed import ShardedArray, simulate
from xarr.errors import ArgumentError, InputError, ShapeError, ValueRangeError, XarrError

X = np.arange(12.0).reshape(4, 3)


def test_each_slice_at_a_replica() -> None:
    result = xarr.pmap(lambda x: x / lax.psum(x, "i"), "i")(X + 1)
    assert isinstance(result, ShardedArray)
    np.testing.assert_array_equal(np.asarray(result), (X + 1) / (X + 1).sum(0))


def test_axes_of_arguments_and_results() -> None:
    mapped = xarr.pmap(lambda x, scale: (x * scale, x.sum()), in_axes=(1, None), out_axes=(1, 0))
    first, second = mapped(X, 10.0)
    np.testing.assert_array_equal(np.asarray(first), X * 10)
    np.testing.assert_array_equal(np.asarray(second), X.sum(0))
    np.testing.assert_array_equal(np.asarray(xarr.pmap(lambda x: x * 2, in_axes=-1)(X)), X.T * 2)


def test_what_is_the_same_at_all_replicas_may_have_no_axis() -> None:
    total = xarr.pmap(lambda x: lax.psum(x, "i"), axis_name="i", out_axes=None)(X)
    np.testing.assert_array_equal(np.asarray(total), X.sum(0))
    with pytest.raises(ArgumentError, match="may differ along 'i'"):
        xarr.pmap(lambda x: x, "i", out_axes=None)(X)


def test_as_decorator_with_nested_arguments() -> None:
    @xarr.pmap(axis_name="i", in_axes=({"a": 0, "b": None},))
    def f(tree: dict[str, xarr.Array]) -> dict[str, xarr.Array]:
        return {"c": tree["a"] + tree["b"] + lax.axis_index("i")}

    result = f({"a": X, "b": np.float64(1.0)})
    np.testing.assert_array_equal(np.asarray(result["c"]), X + 1 + np.arange(4)[:, None])


def test_in_a_world() -> None:
    wanted = (X * 3).tolist()
    assert simulate(4, lambda: np.asarray(xarr.pmap(lambda x: x * 3)(X)).tolist()) == [wanted] * 4


def test_sizes_that_differ_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"wanted one size of the mapped axes of all arguments .*got 3, 4"):
        xarr.pmap(lambda x, y: x)(X, np.ones(3))
    with pytest.raises(ShapeError, match="got none"):
        xarr.pmap(lambda x: x, in_axes=None)(X)
    with pytest.raises(ArgumentError, match="wanted ints or None in in_axes, got 'i'"):
        xarr.pmap(lambda x: x, in_axes="i")(X)
    with pytest.raises(ArgumentError, match="wanted out_axes >= 0, or None, got -1"):
        xarr.pmap(lambda x: x, out_axes=-1)(X)
    with pytest.raises(ShapeError, match="at least 1, got 0"):
        xarr.pmap(lambda x: x)(X[:0])


def test_what_has_no_axis_to_map_is_refused() -> None:
    wanted = re.escape(
        "pmap: args[1]['rate']: wanted an array with axis 0, which is mapped, got one of shape ()"
    )
    with pytest.raises(ShapeError, match=wanted):
        xarr.pmap(lambda x, y: x * y["rate"])(X, {"rate": 3.0})
    with pytest.raises(ShapeError, match=re.escape("args[0]: wanted an array with axis -3")):
        xarr.pmap(lambda x: x, in_axes=-3)(X)
    with pytest.raises(ArgumentError, match="pmap: in_axes is no prefix of the arguments"):
        xarr.pmap(lambda x: x, in_axes=(0, 0))(X)
    with pytest.raises(ArgumentError, match="pmap: out_axes is no prefix of the results"):
        xarr.pmap(lambda x: (x, x), out_axes=(0,))(X)


def test_the_function_is_recorded_once_for_arguments_of_a_kind() -> None:
    recorded = []

    @xarr.pmap(axis_name="i", in_axes=(0, None))
    def f(x: xarr.Array, scale: Any) -> xarr.Array:
        recorded.append(x.shape)
        return x * scale

    for scale in (2.0, 3.0):
        np.testing.assert_array_equal(np.asarray(f(X, scale)), X * scale)
    np.testing.assert_array_equal(np.asarray(f(X[:, :2], 2.0)), X[:, :2] * 2)
    np.testing.assert_array_equal(np.asarray(f(X[:2], 2.0)), X[:2] * 2)
    assert recorded == [(3,), (2,), (3,)]
    np.testing.assert_array_equal(np.asarray(f(X, {"a": 2.0}["a"])), X * 2)
    assert len(recorded) == 3


def test_keyword_arguments_are_mapped_along_their_first_axis() -> None:
    f = xarr.pmap(lambda x, *, y: {"sum": x + y["z"]}, in_axes=1)
    np.testing.assert_array_equal(np.asarray(f(X.T, y={"z": X})["sum"]), X * 2)
    with pytest.raises(ShapeError, match=re.escape("pmap: kwargs['y']: wanted an array with axis 0")):
        f(X.T, y=3.0)


def test_static_arguments_go_to_all_replicas_as_they_are() -> None:
    recorded: list[Any] = []

    def f(how: str, x: xarr.Array, power: int) -> xarr.Array:
        recorded.append((how, power))
        return getattr(lax, how)(x, "i") ** power

    mapped = xarr.pmap(f, "i", static_broadcasted_argnums=(2, 0))
    for _ in range(2):
        np.testing.assert_array_equal(np.asarray(mapped("psum", X, 2)), np.tile(X.sum(0) ** 2, (4, 1)))
        np.testing.assert_array_equal(np.asarray(mapped("pmax", X, 1)), np.tile(X.max(0), (4, 1)))
    assert recorded == [("psum", 2), ("pmax", 1)]
    by_axes = xarr.pmap(f, "i", in_axes=(None, 1, None), static_broadcasted_argnums=(0, 2))
    np.testing.assert_array_equal(np.asarray(by_axes("psum", X.T, 1)), np.tile(X.sum(0), (4, 1)))


def test_static_arguments_that_cannot_be() -> None:
    f = xarr.pmap(lambda x, y: x, static_broadcasted_argnums=1)
    with pytest.raises(InputError, match="wanted values with a hash at static_broadcasted_argnums"):
        f(X, [1])
    with pytest.raises(ArgumentError, match=r"got \(1,\), and 1 positional argument"):
        f(X)
    with pytest.raises(ArgumentError, match="counted from 0, in static_broadcasted_argnums, got -1"):
        xarr.pmap(lambda x: x, static_broadcasted_argnums=-1)
    with pytest.raises(ArgumentError, match="in donate_argnums, got 'x'"):
        xarr.pmap(lambda x: x, donate_argnums="x")


def test_donated_arguments_stay_as_they_are() -> None:
    x = xarr.asarray(X)
    np.testing.assert_array_equal(np.asarray(xarr.pmap(lambda x: x + 1, donate_argnums=0)(x)), X + 1)
    np.testing.assert_array_equal(x, X)


def test_the_order_of_the_replicas() -> None:
    f = xarr.pmap(lambda x: x * 10 + lax.axis_index("i"), "i", devices=[2, 0, 3, 1])
    result = f(np.arange(4))
    np.testing.assert_array_equal(np.asarray(result), [0, 11, 22, 33])
    assert [int(np.asarray(shard.data)[0]) for shard in result.addressable_shards] == [11, 33, 0, 22]
    with pytest.raises(ValueRangeError, match="once in devices, got"):
        xarr.pmap(lambda x: x, devices=[2, 3])(X[:2])
    with pytest.raises(ValueRangeError, match="at least one replica in devices"):
        xarr.pmap(lambda x: x, devices=[])


def test_the_number_of_slices_without_any() -> None:
    f = xarr.pmap(lambda x: x + lax.axis_index("i"), "i", in_axes=None, axis_size=3)
    np.testing.assert_array_equal(np.asarray(f(1)), [1, 2, 3])
    np.testing.assert_array_equal(
        np.asarray(xarr.pmap(lambda: lax.axis_index("i"), "i", axis_size=2)()), [0, 1]
    )
    with pytest.raises(ShapeError, match="got 2, 4; axis_size is 2"):
        xarr.pmap(lambda x: x, axis_size=2)(X)


def test_in_functions_under_jit() -> None:
    def run() -> list[Any]:
        f = xarr.pmap(lambda x: x / lax.psum(x, "i"), "i")
        return np.asarray(xarr.jit(lambda x: f(x + 1) * 2)(X)).tolist()

    wanted = (2 * (X + 1) / (X + 1).sum(0)).tolist()
    assert [run(), *simulate(4, run)] == [wanted] * 5


def test_a_graph_of_whole_arrays() -> None:
    lowered = xarr.pmap(lambda x, k: x * k, static_broadcasted_argnums=1).lower(X, 2)
    assert "sdy.manual_computation" in str(lowered.stage("traced"))
    np.testing.assert_array_equal(lowered.compile()(X, 2), X * 2)


def test_as_a_method() -> None:
    class Model:
        factor = 3.0

        @functools.partial(xarr.pmap, static_broadcasted_argnums=0)
        def scale(self, x: xarr.Array) -> xarr.Array:
            return x * self.factor

    np.testing.assert_array_equal(np.asarray(Model().scale(X)), X * 3)


def test_one_inside_of_another_is_refused() -> None:
    inner = xarr.pmap(lambda x: x)
    with pytest.raises(XarrError, match="let a function under shard_map have a mesh of two axes"):
        xarr.pmap(lambda x: inner(x))(np.ones((2, 2)))
    with pytest.raises(InputError, match="wanted a function, got 3"):
        xarr.pmap(3)
