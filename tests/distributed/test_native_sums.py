"""Reductions that MPI computes between machines: of integers and bools, of floats on demand, never in silence."""

from __future__ import annotations

import functools
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import xarr
from tests.support.mpi import needs_mpi, run_script
from xarr import lax
from xarr.communication.communicator import current_communicator
from xarr.distributed import native_sums
from xarr.distributed.mpi import MpiCommunicator
from xarr.distributed.native_sums import NativeSums
from xarr.distributed.neighbors import Neighbors

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool")
BITWISE = {"and": (lax.bitwise_and, np.bitwise_and), "or": (lax.bitwise_or, np.bitwise_or)}
COMPUTATIONS: dict[str, tuple[Any, Any]] = {
    "add": (lax.add, np.add),
    "multiply": (lax.mul, np.multiply),
    "maximum": (lax.max, np.maximum),
    "minimum": (lax.min, np.minimum),
    **BITWISE,
    "xor": (lax.bitwise_xor, np.bitwise_xor),
}
SIZE = 150_000


def _values(rank: int, dtype: str) -> np.ndarray[Any, Any]:
    random = np.random.default_rng(rank)
    if dtype == "bool":
        return random.integers(0, 2, SIZE) == 1
    info = np.iinfo(dtype)
    return random.integers(info.min, info.max, SIZE, dtype, endpoint=True)  # so that sums wrap


def _world() -> MpiCommunicator:
    """The world, each process of which has a machine of its own."""
    world = current_communicator()
    assert isinstance(world, MpiCommunicator)
    world._neighbors = Neighbors()
    return world


def _reduce(x: Any, computation: Any, groups: Any = None) -> Any:
    return np.asarray(lax.all_reduce(xarr.asarray(x), computation, replica_groups=groups))


def check_integers() -> None:
    """Wrapping sums and the like have NumPy's bits, in groups too, and MPI computes them."""
    world = _world()
    started = world._native.start
    count = 0

    def start(*arguments: Any) -> Any:
        nonlocal count
        count += 1
        return started(*arguments)

    world._native.start = start  # type: ignore[method-assign]
    for dtype in INTEGERS:
        names = [*COMPUTATIONS] if dtype != "bool" else ["maximum", "minimum", "and", "or", "xor"]
        for name in names:
            ours, numpys = COMPUTATIONS[name]
            rows = [_values(rank, dtype) for rank in range(world.size)]
            wanted = functools.reduce(numpys, rows)
            assert _reduce(rows[world.rank], ours).tobytes() == wanted.tobytes(), (dtype, name)
    assert count == 8 * 7 + 5 - 4  # but sums of 8 and 16 bits
    ids = [[2, 0], [1]] if world.size == 3 else None
    rows = [_values(rank, "int64") for rank in range(world.size)]
    wanted = rows[1] if world.rank == 1 else rows[0] + rows[2]
    assert _reduce(rows[world.rank], lax.add, ids).tobytes() == wanted.tobytes()
    assert world._native._groups.keys() == {(0, 1, 2), (1,) if world.rank == 1 else (2, 0)}


def check_floats() -> None:
    """Floats are folded from the left unless that is asked for; NaN stays in extremes even then."""
    world = _world()
    x = np.where(np.arange(SIZE) % 3 == world.rank, np.nan, 0.1)
    _reduce(np.full(SIZE, 0.1 * (world.rank + 1)), lax.add)
    assert not world._native._groups
    with xarr.config(native_sums=True):
        assert np.isnan(_reduce(x, lax.max)).all()
        assert not world._native._groups
        for dtype in ("float32", "float64", "complex64", "complex128"):
            total = _reduce(np.full(SIZE, world.rank + 0.5, dtype), lax.add)
            assert (total == sum(rank + 0.5 for rank in range(world.size))).all()
        assert world._native._groups
        small = _reduce(np.full(SIZE, 0.5, np.float16), lax.add)  # MPI has no such type everywhere
        assert (small == 0.5 * world.size).all()


def check_room() -> None:
    """Where one process can keep no more communicators, none of the group goes on natively."""
    world = _world()
    if world.rank == 1:
        native_sums.MOST_GROUPS = 0  # type: ignore[misc]
    assert (_reduce(np.full(SIZE, 3), lax.add) == 3 * world.size).all()
    assert not world._native._groups


def check_mismatch() -> None:
    """Another operation at one replica, which MPI would take for the same."""
    world = _world()
    _reduce(np.full(SIZE, 3), lax.max if world.rank == 1 else lax.add)


CHECKS = {check.__name__: check for check in (check_integers, check_floats, check_room)}


@needs_mpi
@pytest.mark.parametrize("check", CHECKS)
def test_between_machines(check: str) -> None:
    done = run_script(3, Path(__file__), check)
    assert done.returncode == 0, done.stdout + done.stderr


@needs_mpi
def test_another_operation_is_told_before_anything_is_computed() -> None:
    done = run_script(3, Path(__file__), check_mismatch.__name__, timeout=30)
    text = done.stdout + done.stderr
    assert done.returncode != 0
    assert "meet in different collectives" in text, text
    assert "#1 all_reduce(s64[150000], max, replica_groups=all)" in text, text


def test_only_element_types_of_mpi_are_native() -> None:
    native = NativeSums(SimpleNamespace(), None)
    types = {"int8": True, "bool": True, "complex64": True, "float16": False}
    assert {each: native.can_reduce("maximum", np.dtype(each)) for each in types} == types


def test_sums_that_saturate_in_open_mpi_are_not_native() -> None:
    native = NativeSums(SimpleNamespace(), None)
    types = {"int8": False, "uint16": False, "int32": True, "bool": True, "float32": True}
    assert {each: native.can_reduce("add", np.dtype(each)) for each in types} == types
    assert native.can_reduce("multiply", np.dtype("int8"))


if __name__ == "__main__":
    {**CHECKS, check_mismatch.__name__: check_mismatch}[sys.argv[1]]()
