"""Arrays and jitted functions in the workers of `dask.distributed`: two processes."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import xarr
from tests.support.checkout import CHECKOUT
from xarr import backend as backends
from xarr.base.configuration import current as config
from xarr.compiler import processors
from xarr.errors import BackendError

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
from xarr.chunks.workers import WorkerDevice

pytestmark = [pytest.mark.usefixtures("on_numpy"), pytest.mark.implicit]

X = np.random.default_rng(0).standard_normal((600, 400))


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """A client of two processes with a thread each, which know no backend of the tests."""
    before = {name: os.environ.pop(name, None) for name in ("XARR_BACKEND", "XARR_BROADCASTING")}
    # Processes that this one starts have its path, by which they find the functions below.
    path = sys.path[:]
    sys.path.append(str(CHECKOUT))
    try:
        with (
            # A task that wants a process that has ended fails: by default it waits for ever.
            dask.config.set({"distributed.scheduler.no-workers-timeout": "60s"}),
            distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
            distributed.Client(cluster) as client,
        ):
            yield client
    finally:
        sys.path[:] = path
        os.environ.update({name: value for name, value in before.items() if value is not None})


def workers_of(client: Any) -> list[str]:
    """The addresses of the workers."""
    return list(client.scheduler_info()["workers"])


CALLS = {
    "sum": lambda d: (d + 1).sum(axis=0),
    "broadcast": lambda d: (d - d.mean(axis=0)) / d.std(axis=0),
    "matmul": lambda d: d.T @ d,
    "mask": lambda d: d[d > 0].sum(),
    "svd": lambda d: da.linalg.svd(d.rechunk((200, -1)))[1],
    "map_overlap": lambda d: d.map_overlap(lambda b: xarr.roll(b, 1, 0), depth=1, boundary="periodic"),
    "jitted": lambda d: d.map_blocks(xarr.jit(lambda b: xarr.sin(b) * 2 + 1)),
    "percentile": lambda d: da.percentile(d.ravel(), [10, 90]),
    "store": lambda d: d.rechunk((50, 400)),
}


@pytest.mark.parametrize("name", CALLS)
def test_arrays_from_end_to_end(name: str, client: Any) -> None:
    got = CALLS[name](da.from_array(xarr.asarray(X), chunks=(100, 200))).compute()
    assert type(got) is xarr.Array
    wanted = CALLS[name](da.from_array(X, chunks=(100, 200))).compute(scheduler="synchronous")
    np.testing.assert_allclose(np.asarray(got), np.asarray(wanted), rtol=1e-9)


def count_compilations(f: Any, x: Any) -> tuple[int, int, list[float]]:
    """The process, how often a function was recorded in it after a call, and the result."""
    result = f(x).tolist()
    return os.getpid(), f.compilations, result


def test_a_jitted_function_is_recorded_once_in_each_process(client: Any) -> None:
    scale = xarr.asarray([1.0, 2.0, 3.0])
    f = xarr.jit(lambda x: x * scale + 1)
    tasks = [
        client.submit(count_compilations, f, np.full(3, float(k)), workers=[worker], pure=False)
        for k in range(4)
        for worker in workers_of(client)
    ]
    told = client.gather(tasks)
    assert len({process for process, _, _ in told} - {os.getpid()}) == 2
    assert {count for _, count, _ in told} == {1}
    assert [each[2] for each in told[::2]] == [[k + 1.0, 2 * k + 1.0, 3 * k + 1.0] for k in range(4)]


def describe(x: Any) -> tuple[bool, str, int]:
    """Whether an Array has its value, where, and how many threads a call in this task may use."""
    return x.is_evaluated, x.backend, processors.count()


def leave_unevaluated(n: int) -> Any:
    """A large sum that is recorded only."""
    return xarr.asarray(np.ones((n, n))) + 1


def test_lazy_results_are_evaluated_in_their_tasks_which_use_one_thread(client: Any) -> None:
    assert not leave_unevaluated(300).is_evaluated
    first, second = workers_of(client)
    result = client.submit(leave_unevaluated, 300, workers=[first])
    assert client.submit(describe, result, workers=[first]).result() == (True, "numpy", 1)
    assert client.submit(describe, result, workers=[second]).result() == (True, "numpy", 1)
    assert client.who_has(result) and sum(client.nbytes(summary=False).values()) >= 300 * 300 * 8


def test_the_threads_of_other_code_in_a_client_are_as_many_as_before() -> None:
    assert processors.count() == processors.available()


def test_errors_of_values_come_from_the_task(client: Any) -> None:
    index = client.submit(lambda: xarr.arange(5)[xarr.asarray([9])])
    with pytest.raises(IndexError, match="out of bounds"):
        client.submit(lambda x: x.tolist(), index).result()


def test_a_device_for_each_worker(client: Any) -> None:
    client.register_plugin(WorkerDevice("reference"))
    try:
        x = client.submit(lambda: xarr.ones(3))
        assert client.submit(lambda x: x.backend, x).result() == "reference"
        assert client.submit(lambda x: (x + xarr.ones(3)).backend, xarr.ones(3)).result() == "reference"
        total = da.from_array(xarr.asarray(X[:6]), chunks=3).sum(axis=0).compute()
        assert total.backend == "reference"
        np.testing.assert_allclose(np.asarray(total), X[:6].sum(axis=0), rtol=1e-12)
    finally:
        client.unregister_worker_plugin("xarr-device")
    assert client.submit(lambda x: x.backend, xarr.arange(3)).result() == "numpy"


class SeveralDevices:
    """A backend of four devices."""

    name = "several"

    def devices(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(f"several:{number}" for number in range(4))


@pytest.mark.parametrize(
    ("backend", "worker", "device"),
    [
        ("several", "2", "several:2"),
        ("several", "5", "several:1"),
        ("several", "SLURMCluster-3", "several:3"),
        ("several:1", "tcp://host", "several:1"),
        ("numpy", "anything", "numpy"),
    ],
)
def test_workers_are_dealt_devices_by_their_names(
    backend: str, worker: str, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    several: Any = SeveralDevices()
    monkeypatch.setitem(backends._loaded, "several", several)
    monkeypatch.setitem(backends._loaded, "several:1", several)
    assert WorkerDevice(backend)._device_name(worker) == device


def test_a_worker_without_a_number_is_refused_where_there_are_several(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    several: Any = SeveralDevices()
    monkeypatch.setitem(backends._loaded, "several", several)
    with pytest.raises(
        BackendError, match=r"one of 4 devices of 'several', got 'a'.*WorkerDevice\(\"several:0"
    ):
        WorkerDevice("several")._device_name("a")


def test_what_held_before_a_device_holds_after_it() -> None:
    plugin, worker = WorkerDevice("reference"), SimpleNamespace(name=0)
    plugin.setup(worker)
    with config(backend="reference"):  # as `on_numpy` holds for the test alone
        assert xarr.ones(3).backend == "reference"
    plugin.teardown(worker)
    assert xarr.ones(3).backend == config.backend == "numpy"
