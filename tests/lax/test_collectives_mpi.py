"""Every collective of each element type under MPI: the bytes of threads, which are those that are expected.

Processes of one machine reduce in shared memory; here they also do as if each had a machine of its own: then they
send messages, and MPI reduces integers itself.
"""

from __future__ import annotations

import pickle
import random
import sys
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import xarr
from tests.lax.test_collectives import BACKENDS, DTYPES, MORE_DTYPES, collectives, expect, values
from tests.support.mpi import needs_mpi, run_script
from xarr import lax
from xarr.communication.communicator import current_communicator
from xarr.distributed import simulate
from xarr.distributed.mpi import MpiCommunicator
from xarr.distributed.neighbors import Neighbors

#: Backends, element types, sizes or shapes, and names of results.
Key = tuple[str, str, Any, str]
Results = dict[Key, list[bytes]]
#: Computations of two scalars.  Those of floats neither commute nor associate, but for the extremes.
OF_NUMBERS: dict[str, Callable[[Any, Any], Any]] = {
    "sum": lambda a, b: a + b,
    "product": lambda a, b: a * b,
    "difference": lambda a, b: a - b,
    "mixed": lambda a, b: a * a - b,
    "second": lambda a, b: b,
}
OF_ORDERED: dict[str, Callable[[Any, Any], Any]] = {"max": lax.max, "min": lax.min}
OF_BITS: dict[str, Callable[[Any, Any], Any]] = {
    "and": lax.bitwise_and,
    "or": lax.bitwise_or,
    "xor": lax.bitwise_xor,
}
SHAPES = ((), (0,), (2, 0), (5,), (3, 4), (300, 500))


def _sizes(backend: str, count: int) -> tuple[int, ...]:
    return 0, 2 * count, 1200 * count if backend == "numpy" else count


def _kind(dtype: str) -> np.dtype[Any]:
    return np.dtype(getattr(ml_dtypes, dtype, dtype))


def program(types: tuple[str, ...] = DTYPES, programs: int = 12) -> Results:
    """The bytes of all results at one replica."""
    rank, count = current_communicator().rank, current_communicator().size
    results: Results = {}
    for backend in BACKENDS:
        for dtype in types:
            for size in _sizes(backend, count):
                with xarr.use_backend(backend):
                    x = xarr.asarray(values(rank, _kind(dtype), (size,)))
                    for name, value in collectives(x, count).items():
                        leaves = xarr.tree.leaves(value)
                        results[backend, dtype, size, name] = [np.asarray(leaf).tobytes() for leaf in leaves]
        for seed in range(programs):
            with xarr.use_backend(backend):
                results.update(_random_program(backend, seed, types))
    return results


def _computations(kind: np.dtype[Any]) -> dict[str, Callable[[Any, Any], Any]]:
    if kind.kind == "b":
        return {**OF_BITS, **OF_ORDERED, "second": OF_NUMBERS["second"]}
    if kind.kind == "c":
        return OF_NUMBERS
    is_integer = kind.kind in "iu" or "int" in kind.name
    return {**OF_NUMBERS, **OF_ORDERED, **(OF_BITS if is_integer else {})}


def _groups(chosen: random.Random, count: int) -> list[list[int]]:
    """Random groups of one size, in random order."""
    size = chosen.choice([each for each in range(1, count + 1) if count % each == 0])
    ids = chosen.sample(range(count), count)
    return [ids[start : start + size] for start in range(0, count, size)]


def _random_program(backend: str, seed: int, types: tuple[str, ...]) -> Results:
    """Collectives of random groups, shapes and computations, the same at all replicas."""
    rank, count = current_communicator().rank, current_communicator().size
    chosen, results = random.Random(f"{seed} {count}"), {}
    for dtype in types:
        kind, shape, groups = _kind(dtype), chosen.choice(SHAPES), _groups(chosen, count)
        if backend == "reference" and shape == SHAPES[-1]:
            shape = (7, 9)
        name, computation = chosen.choice([*_computations(kind).items()])
        ragged = [*groups, []] if len(groups) == 1 else [groups[0] + groups[1], *groups[2:]]
        x = xarr.asarray(values(rank, kind, shape))
        rows = xarr.asarray(values(rank, kind, (len(groups[0]) * 2, *shape)))
        pairs = [*zip(chosen.sample(range(count), count), chosen.sample(range(count), count), strict=True)]
        got = {
            f"reduce by {name}": lax.all_reduce(x, computation, [each for each in ragged if each]),
            f"scatter by {name}": lax.reduce_scatter(rows, computation, 0, replica_groups=groups),
            "gather": lax.all_gather(rows, axis=0, tiled=True, replica_groups=groups),
            "exchange": lax.all_to_all(rows, None, 0, 0, tiled=True, replica_groups=groups),
            "broadcast": lax.collective_broadcast(x, groups),
            "permute": lax.collective_permute(x, pairs[: chosen.randrange(count + 1)]),
            "several": lax.all_reduce([x, rows, x], computation, groups),
        }
        for label, value in got.items():
            leaves = [_digest(np.asarray(leaf)) for leaf in xarr.tree.leaves(value)]
            results[backend, dtype, (seed, shape, str(groups)), label] = leaves
    return results


def _digest(array: np.ndarray[Any, Any]) -> bytes:
    """The bytes of an array, or what stands for those of a large one."""
    memory = array.tobytes()
    return memory if len(memory) < 2**12 else blake2b(memory).digest()


def _expected_bytes(rank: int, count: int, key: Key) -> list[bytes]:
    _, dtype, size, name = key
    want: Any = expect([values(each, _kind(dtype), (size,)) for each in range(count)], rank)[name]
    return [each.tobytes() for each in (want if isinstance(want, list) else [want])]


@needs_mpi
@pytest.mark.parametrize("where", ["together", "apart"])
@pytest.mark.parametrize("n", [3, *[pytest.param(n, marks=pytest.mark.thorough) for n in (1, 2, 4, 8)]])
def test_each_collective_and_element_type_has_the_bytes_of_threads(
    n: int, where: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    is_thorough = request.config.getoption("--thorough")
    half = DTYPES[("together", "apart").index(where) :: 2]
    types, programs = ((*DTYPES, *MORE_DTYPES), 40) if is_thorough else (half, 3)
    done = run_script(n, Path(__file__), str(tmp_path), where, str(programs), *types, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    for rank, threads in enumerate(simulate(n, program, types, programs)):
        processes: Results = pickle.loads((tmp_path / str(rank)).read_bytes())
        assert len(processes) == len(BACKENDS) * len(types) * (3 * 6 + 7 * programs)
        assert processes.keys() == threads.keys()
        for key, got in processes.items():
            assert got == threads[key], (rank, key)
            assert isinstance(key[2], tuple) or got == _expected_bytes(rank, n, key), (rank, key)


@pytest.mark.parametrize("n", [1, 2, 3, 4, pytest.param(8, marks=pytest.mark.thorough)])
def test_random_collectives_have_the_bytes_of_the_reference(n: int) -> None:
    for results in simulate(n, program, DTYPES, 3):
        pairs = [
            (key, got) for key, got in results.items() if isinstance(key[2], tuple) and key[0] == "numpy"
        ]
        assert pairs
        for key, got in pairs:
            if key[2][1] != SHAPES[-1]:
                assert got == results["reference", *key[1:]], key


if __name__ == "__main__":
    folder, where, programs, *types = sys.argv[1:]
    own = current_communicator()
    assert isinstance(own, MpiCommunicator)
    if where == "apart":
        own._neighbors = Neighbors()
    (Path(folder) / str(own.rank)).write_bytes(pickle.dumps(program(tuple(types), int(programs))))
