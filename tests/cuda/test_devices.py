"""Several devices of the backend `cupy`: each has memory and kernels of its own, and values go from one to another.

On the emulator, whose two devices refuse a thread that calls the other one, and by CuPy's own code on memory of the
host, where memory, streams and modules belong to a device.
"""

from __future__ import annotations

import importlib
import shutil
import threading
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.cuda.host_wheel.device import HostDevice
from tests.programs import graph, type_of
from xarr import lax
from xarr.backend import get
from xarr.errors import BackendError

VALUES = np.arange(6.0)

both = pytest.mark.parametrize(
    "backend",
    [
        pytest.param("cupy", marks=pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")),
        "host",
    ],
    indirect=True,
)


@pytest.fixture
def backend(request: pytest.FixtureRequest) -> Any:
    """The first device of `cupy`, on the emulator or by CuPy on memory of the host."""
    request.getfixturevalue(request.param)
    return get("cupy")


@both
def test_each_device_computes_for_itself(backend: Any) -> None:
    for name in ("cuda:0", "cuda:1", "cupy:1"):
        x = xarr.asarray(VALUES, device=name)
        y = lax.cumsum(x * 2) + xarr.ones(6, device=name)
        assert y.device == name.replace("cuda", "cupy").removesuffix(":0")
        assert_same(y, np.cumsum(VALUES * 2) + 1)
    assert get("cuda:1") is get("cupy:1") is not get("cuda:0")
    assert backend.devices() == ("cupy", "cupy:1")
    assert get("cupy:1")._engine.driver is not backend._engine.driver


@both
def test_values_go_from_device_to_device(backend: Any) -> None:
    x = xarr.asarray(VALUES) + 1
    there = x.to("cuda:1")
    assert there.device == "cupy:1"
    assert_same(there * 2, (VALUES + 1) * 2)
    back = there.to_device("cupy")
    assert back.device == "cupy"
    assert_same(back, VALUES + 1)
    assert back.to("cuda") is back
    assert x.to("cpu").device == "cpu"
    assert_same(xarr.zeros((0, 3), device="cuda:1").to("cuda:0"), np.zeros((0, 3)))


def test_a_copy_between_emulated_devices_goes_by_no_host(cupy: Any) -> None:
    x = xarr.asarray(VALUES)
    first, second = cupy._engine.driver, get("cupy:1")._engine.driver
    before = first.downloads, second.uploads
    x.to("cuda:1")
    assert second.copies == 1
    assert (first.downloads, second.uploads) == before


def test_a_copy_between_devices_waits_for_both(host: HostDevice) -> None:
    cupy = importlib.import_module("cupy")
    x = (xarr.asarray(VALUES) + 1).evaluate()
    host.waits.clear()
    before = host.peer_copies
    with cupy.cuda.Device(1):
        other = cupy.cuda.Stream(non_blocking=True)
        with other:
            y = x.to("cuda:1")
    assert host.peer_copies == before + 1
    # The copy waits for what the first device computes; what that one does with the memory later waits for the copy.
    assert host.waits == [(other.ptr, 0), (0, other.ptr)]
    assert_same(y, VALUES + 1)


@both
def test_operands_of_two_devices_are_refused(backend: Any) -> None:
    x, y = xarr.asarray(VALUES), xarr.asarray(VALUES, device="cuda:1")
    with pytest.raises(
        BackendError, match=r"live on two devices, cupy and cupy:1; move one, e\.g\. x\.to\(\"cupy\"\)"
    ):
        x + y
    with pytest.raises(BackendError, match=r"live on two backends, cupy:1 and numpy; move one"):
        y + xarr.asarray(VALUES, device="cpu")
    assert_same(x + y.to("cupy"), VALUES * 2)


@both
def test_a_device_that_is_not_there_is_refused(backend: Any) -> None:
    for number in ("2", "17"):
        with pytest.raises(BackendError, match=f"backend 'cupy' has no device {number}, only cupy, cupy:1"):
            xarr.ones(3, device=f"cuda:{number}")
    with pytest.raises(BackendError, match="has no device 2, only cupy, cupy:1"):
        xarr.ones(3, device="cuda:1").to("cuda:2")


@both
def test_a_device_is_the_default_one_of_a_block(backend: Any) -> None:
    with xarr.use_backend("cuda:1"):
        x = xarr.arange(3) + 1
        assert x.device == "cupy:1"
        assert xarr.__array_namespace_info__().devices() == ("cupy", "cupy:1")
    assert_same(x, np.array([1, 2, 3]))
    assert xarr.jit(lambda x: x * 2)(x).device == "cupy:1"


def test_the_device_of_a_thread_is_put_back(host: HostDevice) -> None:
    cupy = importlib.import_module("cupy")
    current: list[tuple[int, int]] = []

    def compute(own: int, other: int) -> None:
        with cupy.cuda.Device(own):
            x = xarr.asarray(VALUES, device=f"cuda:{other}")
            assert_same(xarr.jit(lambda x: lax.cumsum(x) * 3)(x), np.cumsum(VALUES) * 3)
            current.append((own, cupy.cuda.runtime.getDevice()))

    pairs = [(0, 1), (1, 0), (0, 0), (1, 1)]
    threads = [threading.Thread(target=compute, args=pair) for pair in pairs]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(current) == [(0, 0), (0, 0), (1, 1), (1, 1)]
    compute(0, 1)
    assert cupy.cuda.runtime.getDevice() == 0


def test_memory_is_that_of_its_device(host: HostDevice) -> None:
    cupy = importlib.import_module("cupy")
    x = (xarr.asarray(VALUES, device="cuda:1") * 2).evaluate()
    address = x._node.value.address
    assert host.pointerGetAttributes(address).device == 1
    with cupy.cuda.Device(1):
        used = cupy.get_default_memory_pool().used_bytes()
        del x
        assert cupy.get_default_memory_pool().used_bytes() < used


def test_the_emulator_refuses_calls_of_another_device(cupy: Any) -> None:
    first, second = cupy._engine.driver, get("cupy:1")._engine.driver
    with first.active(), pytest.raises(AssertionError, match="another device is active"):
        second.allocate([8])


def test_the_host_device_refuses_memory_of_another_device(host: HostDevice) -> None:
    x = xarr.asarray(VALUES).evaluate()
    other = get("cupy:1")
    program = other.compile(graph(lambda x: [lax.add(x, x)], type_of(VALUES)))
    with pytest.raises(BackendError, match="the device failed"):
        other.to_host(program(x._node.value)[0])
