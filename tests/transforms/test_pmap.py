"""`pmap`: slices of arrays at replicas."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import xarr
from xarr import lax
from xarr.distributed import ShardedArray, simulate
from xarr.errors import ArgumentError, ShapeError

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
