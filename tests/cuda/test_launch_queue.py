"""How far the host goes ahead of a device on which launches take time, under the CuPy wheel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xarr
from tests.cuda.host_wheel.device import HostDevice
from tests.cuda.launching import launch
from tests.cuda.test_replays import X, five_kernels
from xarr_cupy import driver
from xarr_cupy.runtime.launch_queue import LaunchQueue

KERNEL = """extern "C" __global__ void add(double *x) {
    if (threadIdx.x == 0) x[0] += 1;
}"""


def launch_many(host: HostDevice, seconds: float, count: int) -> tuple[float, int]:
    """Launch kernels that take so long: seconds of work that had not run, at most, and waits of the host."""
    gpu = driver.connect_cupy()
    module, x = gpu.load(KERNEL), gpu.allocate([8])[0]
    gpu.wait()
    host.launch_seconds, host.most_ahead = seconds, 0.0
    before = host.event_waits
    for _ in range(count):
        launch(gpu, module, "add", 1, [(x.address, 8)])
    return host.most_ahead, host.event_waits - before


@pytest.mark.parametrize("seconds", [1e-4, 1e-3, 0.02, 0.08])
def test_no_more_than_a_fifth_of_a_second_is_launched_ahead(seconds: float, host: HostDevice) -> None:
    ahead, waits = launch_many(host, seconds, 300)
    assert 0 < ahead <= 0.2 and waits > 0


def test_the_host_waits_rarely_for_small_kernels(host: HostDevice) -> None:
    ahead, waits = launch_many(host, 2e-6, 3000)
    assert ahead < 0.01
    assert waits < 3000 / 100


def test_a_device_that_keeps_up_is_not_waited_for(host: HostDevice) -> None:
    assert launch_many(host, 0.0, 3000)[1] == 0


def test_events_are_recorded_again(host: HostDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    create = host.eventCreateWithFlags
    monkeypatch.setattr(host, "eventCreateWithFlags", lambda flags: made.append(create(flags)) or made[-1])
    recorded, record = [], host.eventRecord
    monkeypatch.setattr(host, "eventRecord", lambda *each: recorded.append(each) or record(*each))
    launch_many(host, 1e-3, 300)
    assert len(made) == 3 < len(recorded) - 3


def test_replays_of_graphs_are_bounded_too(host: HostDevice) -> None:
    compiled, x = xarr.jit(five_kernels), xarr.asarray(X)
    for _ in range(5):
        y = compiled(x)
    y.block_until_ready()
    host.launch_seconds = 0.01
    waits, replays = len(host.synchronised), host.replays
    for number in range(40):
        if number == 10:
            # That launches take longer now the host sees when it waits for the first of them.
            assert host.most_ahead < 1
            host.most_ahead = 0.0
        y = compiled(x)
    assert host.replays - replays == 40
    assert host.most_ahead <= 0.2
    # By events: no stream was waited for.
    assert len(host.synchronised) == waits


def test_a_fault_shows_where_the_host_waits(host: HostDevice) -> None:
    host.launch_seconds = 0.05
    x = xarr.asarray(np.arange(31.0)).block_until_ready()
    host.fail()
    with pytest.raises(xarr.errors.BackendError, match=r"the device failed, cudaErrorIllegalAddress"):
        for _ in range(10):
            x = (x * 0.5).evaluate()


class Device:
    """A device on which work takes as long as it is said to, but for pauses of the host."""

    def __init__(self) -> None:
        self.launched = self.run = 0.0
        self.waits = 0

    def record(self, spare: Any) -> Any:
        device, time = self, self.launched

        class Event:
            seconds = time

            @property
            def done(self) -> bool:
                return device.run >= time

        return Event()

    def wait(self, event: Any) -> None:
        self.waits += 1
        self.run = max(self.run, event.seconds)


def test_pauses_of_the_host_do_not_count_as_work() -> None:
    device = Device()
    queue = LaunchQueue(device.record, device.wait, lambda start, end: 1000 * (end.seconds - start.seconds))
    for _ in range(200):
        # The device is done before the host launches the next.
        device.launched += 2.0
        device.run = device.launched
        queue.add(1e-5)
    assert device.waits == 0
    before = device.launched
    for _ in range(1000):
        device.launched += 1e-5
        queue.add(1e-5)
    assert device.launched - device.run < 0.1 and device.waits < 20 and before < device.launched
