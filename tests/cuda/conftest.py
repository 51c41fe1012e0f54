"""The unmodified CuPy wheel on memory of the host, and a GPU, as devices of the backend `cupy`."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

import xarr
from tests.cuda.host_wheel import wheel
from tests.cuda.host_wheel.device import HostDevice
from xarr_cupy import driver


@pytest.fixture
def host(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[HostDevice]:
    """The device below CuPy, with the backend `cupy` on it, and all that a test changes of it put back."""
    if request.config.getoption("--cuda") == "gpu":
        pytest.skip("this process uses a GPU")
    if not wheel.is_installed():
        pytest.skip(wheel.MISSING)
    cupy, device = wheel.load()
    backends = sys.modules["xarr.backend"]
    monkeypatch.setattr(driver, "connect", driver.connect_cupy)
    monkeypatch.setattr(
        backends, "_loaded", {k: v for k, v in backends._loaded.items() if not k.startswith("cupy")}
    )
    monkeypatch.setattr(device, "limit", device.limit)
    with xarr.use_backend("cupy"):
        yield device
    device.reset()
    cupy.get_default_memory_pool().free_all_blocks()


@pytest.fixture(params=["wheel", pytest.param("gpu", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest) -> Iterator[str]:
    """The backend of new arrays is `cupy`, on memory of the host, or on a GPU."""
    if request.param == "wheel":
        request.getfixturevalue("host")
    with xarr.use_backend("cupy"):
        yield request.param
