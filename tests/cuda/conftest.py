"""The unmodified CuPy wheel on memory of the host, and a GPU, as devices of the backend `cupy`."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

# xarr is imported after `tests/conftest.py` has set the environment, which it reads.


@pytest.fixture
def host(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The device below CuPy, with the backend `cupy` on it, and all that a test changes of it put back."""
    wheel = importlib.import_module("tests.cuda.host_wheel.wheel")
    if request.config.getoption("--cuda") == "gpu":
        pytest.skip("this process uses a GPU")
    if not wheel.is_installed():
        pytest.skip(wheel.MISSING)
    cupy, device = wheel.load()
    driver, backends = map(importlib.import_module, ("xarr_cupy.driver", "xarr.backend"))
    monkeypatch.setattr(driver, "connect", driver.connect_cupy)
    others = {k: v for k, v in backends._loaded.items() if not k.startswith("cupy")}
    monkeypatch.setattr(backends, "_loaded", others)
    monkeypatch.setattr(device, "limit", device.limit)
    with backends.use_backend("cupy"):
        yield device
    device.reset()
    cupy.get_default_memory_pool().free_all_blocks()


@pytest.fixture(params=["wheel", pytest.param("gpu", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest) -> Iterator[str]:
    """The backend of new arrays is `cupy`, on memory of the host, or on a GPU."""
    if request.param == "wheel":
        request.getfixturevalue("host")
    with importlib.import_module("xarr.backend").use_backend("cupy"):
        yield request.param


@pytest.fixture
def lend(request: pytest.FixtureRequest) -> Iterator[Callable[..., Any]]:
    """Make an array of another library, for which `lies_on_device` holds, of these values."""
    arrays = importlib.import_module("tests.cuda.gpu_arrays")
    if request.param == "gpu":
        with importlib.import_module("xarr.backend").use_backend("cupy"):
            yield arrays.make_by_cupy
    else:
        request.getfixturevalue(request.param)
        yield arrays.make_by_cupy if request.param == "host" else arrays.make_emulated
