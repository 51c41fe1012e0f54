"""Every collective of each element type under MPI: the bytes of threads, which are those that are expected."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import xarr
from tests.lax.test_collectives import BACKENDS, DTYPES, collectives, expect, values
from tests.support.mpi import needs_mpi, run_script
from xarr import lax
from xarr.communication.communicator import current_communicator
from xarr.distributed import simulate

#: Beside the operations of every element type, one that neither commutes nor associates.
MIXED = "mixed"
#: Backends, element types, and names of results.
Key = tuple[str, str, int, str]


def _sizes(backend: str, count: int) -> tuple[int, ...]:
    return 0, 2 * count, 1200 * count if backend == "numpy" else count


def program() -> dict[Key, list[bytes]]:
    """The bytes of all results at one replica."""
    rank, count = current_communicator().rank, current_communicator().size
    results: dict[Key, list[bytes]] = {}
    for backend in BACKENDS:
        for dtype in DTYPES:
            kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
            for size in _sizes(backend, count):
                with xarr.use_backend(backend):
                    x = xarr.asarray(values(rank, kind, (size,)))
                    got = collectives(x, count)
                    if kind == np.float64:
                        got[MIXED] = lax.all_reduce(x, lambda a, b: a * 0.3 - b)
                    for name, value in got.items():
                        leaves = xarr.tree.leaves(value)
                        results[backend, dtype, size, name] = [np.asarray(leaf).tobytes() for leaf in leaves]
    return results


def _expected_bytes(rank: int, count: int, key: Key) -> list[bytes]:
    _, dtype, size, name = key
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    want: Any = expect([values(each, kind, (size,)) for each in range(count)], rank)[name]
    return [each.tobytes() for each in (want if isinstance(want, list) else [want])]


@needs_mpi
@pytest.mark.parametrize("n", [3, *[pytest.param(n, marks=pytest.mark.thorough) for n in (1, 2, 4, 8)]])
def test_each_collective_and_element_type_has_the_bytes_of_threads(n: int, tmp_path: Path) -> None:
    done = run_script(n, Path(__file__), str(tmp_path), timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    for rank, threads in enumerate(simulate(n, program)):
        processes: dict[Key, list[bytes]] = pickle.loads((tmp_path / str(rank)).read_bytes())
        assert len(processes) == len(BACKENDS) * 3 * (6 * len(DTYPES) + 1)
        assert processes.keys() == threads.keys()
        for key, got in processes.items():
            assert got == threads[key], (rank, key)
            assert key[3] == MIXED or got == _expected_bytes(rank, n, key), (rank, key)


if __name__ == "__main__":
    (Path(sys.argv[1]) / str(current_communicator().rank)).write_bytes(pickle.dumps(program()))
