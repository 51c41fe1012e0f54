"""Arrays in parts: put, joined, and refused where they would have to be guessed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xarr
from xarr.distributed import NamedSharding, PartitionSpec as P, ShardedArray, device_put, make_mesh, simulate
from xarr.errors import ArgumentError, InputError, ShapeError

MESH = make_mesh((2, 2), ("x", "y"))
WHOLE = np.arange(24.0).reshape(4, 6)


@pytest.mark.parametrize("spec", [P(), P("x"), P("y", "x"), P(("x", "y")), P(None, "x")])
def test_parts_are_joined_to_the_whole(spec: P) -> None:
    sharded = device_put(WHOLE, NamedSharding(MESH, spec))
    np.testing.assert_array_equal(np.asarray(sharded), WHOLE)
    assert (sharded.shape, sharded.dtype, sharded.ndim, sharded.size) == ((4, 6), np.float64, 2, 24)
    for shard in sharded.addressable_shards:
        np.testing.assert_array_equal(np.asarray(shard.data), WHOLE[shard.index])
    assert len(sharded.addressable_shards) == 4
    assert np.asarray(sharded, np.float32).dtype == np.float32
    assert repr(sharded) == f"<ShardedArray float64[4,6], {spec} over Mesh('x': 2, 'y': 2)>"


def test_in_a_world_each_replica_has_one_part_and_joining_is_a_collective() -> None:
    def program() -> tuple[int, list[float]]:
        sharded = device_put(WHOLE, NamedSharding(make_mesh((2, 2), ("x", "y")), P("y", "x")))
        return len(sharded.addressable_shards), np.asarray(sharded).ravel().tolist()

    assert simulate(4, program) == [(1, WHOLE.ravel().tolist())] * 4


def test_a_mesh_of_another_world_is_refused() -> None:
    with pytest.raises(ArgumentError, match="wanted a mesh of all 2 replicas of a simulation by threads"):
        simulate(2, device_put, WHOLE, NamedSharding(MESH, P()))


Use = Callable[[Any], Any]


@pytest.mark.parametrize(
    "use",
    [
        lambda x: x + 1, lambda x: 1 - x, lambda x: x @ x, lambda x: -x, lambda x: x[0], lambda x: x < 2,
        bool, float, len, iter, np.sin, lambda x: np.concatenate([x, x]), xarr.sin, xarr.asarray,
        lambda x: xarr.ones(3) + x,
    ],
    ids=iter(map(str, range(100))),
)  # fmt: skip
def test_arithmetic_is_refused_with_what_works(use: Use) -> None:
    sharded = device_put(np.ones(4), NamedSharding(MESH, P("x")))
    with pytest.raises(InputError, match=r"in a function under shard_map, or join its parts by np\.asarray"):
        use(sharded)


def test_what_cannot_be_put_is_refused() -> None:
    with pytest.raises(InputError, match="wanted a NamedSharding, got 'x'"):
        device_put(WHOLE, "x")  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match="divisible by 2"):
        device_put(np.ones(3), NamedSharding(MESH, P("x")))
    with pytest.raises(ValueError, match="copy=False is not possible"):
        np.asarray(device_put(WHOLE, NamedSharding(MESH, P())), copy=False)


def test_the_memory_of_a_joined_array_is_its_own() -> None:
    sharded = device_put(WHOLE, NamedSharding(MESH, P()))
    joined = np.asarray(sharded)
    joined[...] = 0
    assert isinstance(sharded, ShardedArray)
    np.testing.assert_array_equal(np.asarray(sharded), WHOLE)


def test_parts_by_number_and_waiting_for_them() -> None:
    sharded = device_put(np.arange(4.0), NamedSharding(MESH, P("x")))
    np.testing.assert_array_equal(sharded.addressable_data(1), sharded.addressable_shards[1].data)
    assert sharded.block_until_ready() is sharded
    with pytest.raises(IndexError):
        sharded.addressable_data(99)
