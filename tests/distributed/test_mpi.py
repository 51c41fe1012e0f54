"""The communicator under MPI: the bits of threads, and faults that end in a table."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.support import fault_program, random_collectives
from tests.support.collectives import all_gather, all_reduce, call, fold_by, halve_and_add, rank
from tests.support.mpi import needs_mpi, run_script
from xarr.communication import algorithms
from xarr.communication.communicator import Array, current_communicator
from xarr.distributed.simulation import simulate

TYPES = (
    np.float32,
    np.int8,
    np.bool_,
    np.complex128,
    ml_dtypes.bfloat16,
    ml_dtypes.float8_e4m3fn,
    ml_dtypes.int4,
)


def _operand(number: int, dtype: Any, shape: tuple[int, ...]) -> Array:
    random = np.random.default_rng(10 * number + rank())
    values = random.integers(-3, 4, shape).astype(np.float64)
    return values.astype(dtype) if np.dtype(dtype).kind != "c" else (values + 1j * values[::-1]).astype(dtype)


def program() -> list[bytes]:
    """The bytes of results of many collectives, at one replica."""
    communicator = current_communicator()
    n, results = communicator.size, []
    backward = tuple(reversed(range(n)))
    for number, dtype in enumerate(TYPES):
        for shape in ((2, 0), (5,), (40, 30), (300, 500)):
            operand = _operand(number, dtype, shape)
            combine = (
                np.logical_or if dtype is np.bool_ else halve_and_add if dtype is np.float32 else np.maximum
            )
            if np.dtype(dtype).kind == "c":
                combine = np.multiply
            results.append(all_reduce(operand, combine, backward).tobytes())
            results.append(all_gather(operand, backward).tobytes())
    nan = np.where(rank() == 0, np.nan, np.ones(200_000))
    results.append(all_reduce(nan, np.maximum).tobytes())
    rows = _operand(3, np.float32, (n, 100_000))
    with communicator.collective(call("all_to_all", rows)):
        results.append(algorithms.all_to_all(communicator, backward, rows).tobytes())
    with communicator.collective(call("reduce_scatter", rows)):
        fold = fold_by(halve_and_add)
        results.append(algorithms.reduce_scatter(communicator, backward, rows, fold).tobytes())
    with communicator.collective(call("collective_broadcast", rows)):
        results.append(algorithms.broadcast(communicator, backward, rows).tobytes())
    with communicator.collective(call("collective_permute", rows)):
        pairs = [(each, (each + 1) % n) for each in range(n - 1)]
        results.append(algorithms.permute(communicator, rows, pairs).tobytes())
    for channel in (2**40, 3):
        communicator.send(rows[0] + channel, (rank() + 1) % n, channel)
    for channel in (3, 2**40):
        communicator.recv(received := np.empty_like(rows[0]), (rank() - 1) % n, channel)
        results.append(received.tobytes())
    communicator.feed([np.arange(3)])
    results += [each.tobytes() for each in communicator.take_infeed([(np.dtype(np.int64), (3,))])]
    return results


@needs_mpi
@pytest.mark.parametrize("n", [1, 2, 3, 4, pytest.param(8, marks=pytest.mark.thorough)])
def test_the_bits_are_those_of_threads(n: int, tmp_path: Path) -> None:
    done = run_script(n, Path(__file__), str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    for number, wanted in enumerate(simulate(n, program)):
        assert pickle.loads((tmp_path / str(number)).read_bytes()) == wanted


@needs_mpi
def test_random_programs_with_pauses_give_no_false_alarm(request: pytest.FixtureRequest) -> None:
    count = "15" if request.config.getoption("--thorough") else "5"
    done = run_script(3, Path(random_collectives.__file__), count, "mpi", "0.6")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("is done") == 3


#: Those of which a normal run sees that they end; docs/make_distributed.py lets all of them happen.
ENDINGS = {
    "exception": ("ValueError: boom", "Where the replicas were", "replica 1: raised ValueError, after #1"),
    "sys.exit(0) early": ("replica 1 has ended", "replica 1: has left by sys.exit(0), after #1 all_reduce"),
    "other op": ("meet in different collectives", "#2 all_gather(f64[1000], all_gather_dim=0"),
    "recv without send": (
        "every replica waits",
        "#2 recv(token[], result_types=[f64[3]], channel_id=7, source_target_pairs=((0, 1),)), built at",
    ),
    "endless loop": (
        "has waited for 1.5 s",
        "replica 1: runs at fault_program.py",
        "config.collective_timeout",
    ),
    "infeed that nobody feeds": ("infeed: wanted (float64[1000])", "replica 1: runs"),
    "killed": ("",),
}


@needs_mpi
@pytest.mark.parametrize("fault", ENDINGS)
def test_a_fault_ends_in_a_table(fault: str, tmp_path: Path) -> None:
    done = run_script(3, Path(fault_program.__file__), fault, str(tmp_path / "begin"), timeout=30)
    text = done.stdout + done.stderr
    assert done.returncode != 0, text
    for part in ENDINGS[fault]:
        assert part in text, text


@needs_mpi
def test_without_a_fault_the_program_ends_well(tmp_path: Path) -> None:
    done = run_script(3, Path(fault_program.__file__), "none", str(tmp_path / "begin"))
    assert done.returncode == 0, done.stdout + done.stderr


if __name__ == "__main__":
    (Path(sys.argv[1]) / str(rank())).write_bytes(pickle.dumps(program()))
