"""`shard_map`: what jax.shard_map computes, on threads of one process and in a world."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xarr
from xarr import lax
from xarr.distributed import NamedSharding, PartitionSpec as P, ShardedArray, make_mesh, simulate
from xarr.errors import ArgumentError, DeadlockError, InputError, NotANumberError, ShapeError, XarrError

MESH = make_mesh((2, 2), ("x", "y"))
A, B = np.arange(24.0).reshape(4, 6), np.arange(18.0).reshape(6, 3)


def matmul(a: xarr.Array, b: xarr.Array) -> xarr.Array:
    return lax.psum(a @ b, "y")


def _map_product(mesh: Any = MESH) -> Any:
    return xarr.shard_map(matmul, mesh=mesh, in_specs=(P("x", "y"), P("y")), out_specs=P("x"))


def test_a_product_of_parts() -> None:
    result = _map_product()(A, B)
    assert isinstance(result, ShardedArray)
    assert result.sharding == NamedSharding(MESH, P("x"))
    np.testing.assert_array_equal(np.asarray(result), A @ B)


def test_the_same_in_a_world() -> None:
    def program() -> list[float]:
        return np.asarray(_map_product(make_mesh((2, 2), ("x", "y")))(A, B)).ravel().tolist()

    assert simulate(4, program) == [(A @ B).ravel().tolist()] * 4


def test_parts_go_into_the_next_call_as_they_are() -> None:
    grow = xarr.shard_map(lambda x: x * 2, mesh=MESH, in_specs=P("x"), out_specs=P("x"))
    first = grow(A)
    second = grow(first)
    np.testing.assert_array_equal(np.asarray(second), A * 4)
    assert grow(first).part(0) is not second.part(0)
    with pytest.raises(ArgumentError, match=r"wanted an array split by PartitionSpec.'y'.*by device_put"):
        xarr.shard_map(lambda x: x, mesh=MESH, in_specs=P("y"), out_specs=P("y"))(first)


def test_the_function_is_recorded_once_for_the_shapes_of_parts() -> None:
    shapes: list[tuple[int, ...]] = []

    @xarr.shard_map(mesh=MESH, in_specs=P("x", "y"), out_specs=P("x", "y"))
    def f(x: xarr.Array) -> xarr.Array:
        shapes.append(tuple(x.shape))
        return x + lax.axis_index("x")

    for _ in range(3):
        np.testing.assert_array_equal(np.asarray(f(A)), A + np.array([0, 0, 1, 1])[:, None])
    assert shapes == [(2, 3)]
    f(A[:2])
    assert shapes == [(2, 3), (1, 3)]
    assert "replica_id" in str(f.lower(A))


def test_nested_arguments_and_results_with_prefixes() -> None:
    @xarr.shard_map(mesh=MESH, in_specs=({"a": P("x"), "b": None}, P()), out_specs=(P(), {"sum": P("x")}))
    def f(tree: dict[str, Any], scale: xarr.Array) -> Any:
        a, (b, c) = tree["a"], tree["b"]
        return lax.pmax(a.sum(), ("x", "y")), {"sum": a * scale + b + c}

    most, sums = f({"a": np.arange(4.0), "b": [1.0, np.float64(2.0)]}, 10.0)
    assert float(np.asarray(most)) == 5.0
    np.testing.assert_array_equal(np.asarray(sums["sum"]), np.arange(4.0) * 10 + 3)


def test_a_result_that_differs_where_its_specification_says_not() -> None:
    def wrong(x: xarr.Array) -> xarr.Array:
        return x * 2

    with pytest.raises(ArgumentError) as caught:
        xarr.shard_map(wrong, mesh=MESH, in_specs=P("x"), out_specs=P())(A)
    text = str(caught.value)
    assert "wrong: the result may differ along 'x', and its specification PartitionSpec()" in text
    assert "lax.psum(…, 'x')" in text
    assert "return x * 2" in text
    unchecked = xarr.shard_map(wrong, mesh=MESH, in_specs=P("x"), out_specs=P(), check_vma=False)
    np.testing.assert_array_equal(np.asarray(unchecked(A)), A[:2] * 2)


def test_what_is_wrong_with_arguments() -> None:
    with pytest.raises(ShapeError, match=r"matmul\[0\]: wanted a size of dimension 0 that is divisible by 2"):
        _map_product()(A[:3], B)
    with pytest.raises(ArgumentError, match="in_specs is no prefix of the arguments, a tuple: "):
        _map_product()(A)
    with pytest.raises(ArgumentError, match="wanted a PartitionSpec, or None, in in_specs, got 'x'"):
        xarr.shard_map(matmul, mesh=MESH, in_specs="x", out_specs=P())(A, B)
    with pytest.raises(ArgumentError, match="out_specs is no prefix of the results"):
        xarr.shard_map(lambda x: x, mesh=MESH, in_specs=P("x"), out_specs=(P(), P()))(A)
    with pytest.raises(ShapeError, match="the result: wanted an array of at least 1 dimensions"):
        xarr.shard_map(lambda x: x.sum(), mesh=MESH, in_specs=P("x"), out_specs=P("x"))(A)


def test_what_is_wrong_with_shard_map_itself() -> None:
    with pytest.raises(InputError, match="wanted a function, got 3"):
        xarr.shard_map(3, mesh=MESH, in_specs=P(), out_specs=P())
    with pytest.raises(InputError, match="wanted a Mesh, as"):
        xarr.shard_map(matmul, mesh="x", in_specs=P(), out_specs=P())


def test_an_error_of_a_replica_is_raised() -> None:
    def refuse(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        raise ValueError("not today")

    @xarr.shard_map(mesh=MESH, in_specs=P("x"), out_specs=P("x"))
    def f(x: xarr.Array) -> xarr.Array:
        return xarr.pure_callback(refuse, x, x)

    with pytest.raises(ValueError, match="not today") as caught:
        f(A)
    assert any("raised at replica" in note for note in caught.value.__notes__)


def test_a_recv_that_nobody_sends_to() -> None:
    @xarr.shard_map(mesh=make_mesh(2, "x"), in_specs=P("x"), out_specs=P("x"))
    def f(x: xarr.Array) -> xarr.Array:
        received, _ = lax.recv(x, None, 7, [(0, 1)])
        return received

    with pytest.raises(DeadlockError, match="replica 1: waits"):
        f(np.ones(4))


Program = Callable[[xarr.Array], xarr.Array]


@pytest.mark.parametrize(
    ("program", "wanted"),
    [
        (lambda x: lax.psum(x, "x"), A[:2] + A[2:]),
        (lambda x: lax.all_gather(x, "x", tiled=True), A),
        (lambda x: lax.pmean(lax.pmean(x, "x"), "y"), (A[:2] + A[2:]) / 2),
        (lambda x: lax.fori_loop(0, 2, lambda _, c: lax.psum(c, "x") / 2, lax.pmax(x, "x")), A[2:]),
    ],
)
def test_results_that_are_the_same_at_all_replicas(program: Program, wanted: Any) -> None:
    mapped = xarr.shard_map(program, mesh=MESH, in_specs=P("x"), out_specs=P())
    np.testing.assert_allclose(np.asarray(mapped(A)), wanted)


def test_a_number_takes_the_element_type_of_what_it_meets() -> None:
    x = np.arange(4, dtype=np.float32)
    mesh = make_mesh((2,), ("i",))
    scale = xarr.shard_map(lambda a, b: a * b, mesh=mesh, in_specs=(P("i"), P()), out_specs=P("i"))
    for number in (2.0, 3, True):
        result = np.asarray(scale(x, number))
        assert result.dtype == np.float32
        np.testing.assert_array_equal(result, x * np.float32(number))
    assert np.asarray(xarr.pmap(lambda a, b: a * b, in_axes=(0, None))(x, 2.0)).dtype == np.float32
    assert np.asarray(scale(x, np.float64(2.0))).dtype == np.float64


def test_nan_is_looked_for_at_each_replica() -> None:
    def f(a: xarr.Array, scale: Any) -> Any:
        return {
            "logs": xarr.log(a) * scale,
            "sum": lax.psum(a.sum(), "i"),
            "index": lax.axis_index("i")[None],
        }

    mesh = make_mesh((2,), ("i",))
    specs = {"logs": P("i"), "sum": P(), "index": P("i")}
    logs = xarr.shard_map(f, mesh=mesh, in_specs=(P("i"), P()), out_specs=specs)
    wanted = logs(np.array([1.0, 2.0]), 2.0)
    with xarr.config(debug_nans=True):
        got = logs(np.array([1.0, 2.0]), 2.0)
        with pytest.raises(NotANumberError, match="log"):
            logs(np.array([1.0, -1.0]), 2.0)
    for name, array in wanted.items():
        np.testing.assert_array_equal(np.asarray(array), np.asarray(got[name]))


def test_what_is_no_array_is_passed_as_it_is() -> None:
    recorded: list[Any] = []

    @xarr.shard_map(mesh=MESH, in_specs=(P("x"), None, {"a": None, "b": P()}), out_specs=P("x"))
    def f(x: xarr.Array, how: str, rest: dict[str, Any]) -> xarr.Array:
        recorded.append(how)
        return getattr(lax, how)(x, "y") * rest["a"] + (rest["b"] is not None)

    for _ in range(2):
        np.testing.assert_array_equal(np.asarray(f(A, "psum", {"a": 2.0, "b": 1.0})), A * 4 + 1)
        np.testing.assert_array_equal(xarr.jit(lambda x: f(x, "pmax", {"a": x[0, 1], "b": 1.0}))(A), A + 1)
    assert recorded[:2] == ["psum", "pmax"] and recorded.count("psum") == 1
    with pytest.raises(InputError, match="must be hashable"):
        f(A, bytearray(b"x"), {"a": 2.0, "b": 1.0})


def test_what_is_no_array_is_not_split() -> None:
    f = xarr.shard_map(lambda x, how: x, mesh=MESH, in_specs=(P("x"), P("x")), out_specs=P("x"))
    with pytest.raises(XarrError, match="an array of"):
        f(A, object())
