"""The unmodified CuPy wheel on memory of the host, and a GPU, as devices of the backend `cupy`."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.cuda import nvrtc

# xarr is imported after `tests/conftest.py` has set the environment, which it reads.


#: Files whose tests run on a GPU, those first that tell most: with --cuda=gpu the most important run first.
TELLING = (
    *("test_cupy_wheel.py", "test_on_gpu.py", "test_operations.py", "test_replays.py", "test_streams.py"),
    *("test_borrowed_memory.py", "test_lent_memory.py", "test_random_loops.py", "test_random_graphs.py"),
    *("test_whole_programs.py", "test_large_arrays.py"),
)
#: Those of them whose tests, by the fixture `cupy`, are the same on the emulator and on a GPU.
ON_EITHER = frozenset(
    {
        *("test_on_gpu.py", "test_operations.py", "test_random_loops.py", "test_random_graphs.py"),
        "test_large_arrays.py",
    }
)
#: What runs whole files of other folders.
LAST = "test_the_tests_of_the_library_pass"


def prepare_for_gpu(items: list[pytest.Item]) -> None:
    """Mark the tests that a GPU runs as the emulator does, and let those run first that tell most."""
    for item in items:
        if item.path.name in ON_EITHER and "cupy" in getattr(item, "fixturenames", ()):
            item.add_marker("gpu")
    items.sort(key=lambda item: (LAST in item.name, (*TELLING, item.path.name).index(item.path.name)))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests that need a wheel: `-m wheel` chooses what runs elsewhere too only where it is."""
    if config.getoption("--cuda") == "gpu":
        prepare_for_gpu(items)
    wheel = importlib.import_module("tests.cuda.host_wheel.wheel")
    for item in items:
        needs_host = "host" in getattr(item, "fixturenames", ()) or "host" in _parameters(item)
        reasons = {mark.kwargs.get("reason") for mark in item.iter_markers("skipif")}
        if needs_host or "wheel" in _parameters(item) or reasons & {nvrtc.MISSING, wheel.MISSING}:
            item.add_marker("wheel")


def _parameters(item: pytest.Item) -> list[Any]:
    call = getattr(item, "callspec", None)
    return [each for each in call.params.values() if isinstance(each, str)] if call else []


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["compiled"] = nvrtc.compiled


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Add what a worker of xdist compiled."""
    for architecture, rows in getattr(node, "workeroutput", {}).get("compiled", {}).items():
        nvrtc.compiled.setdefault(architecture, []).extend(rows)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print what the kernels take that NVRTC compiled."""
    if nvrtc.compiled:
        terminalreporter.section("kernels by NVRTC")
        terminalreporter.write_line(nvrtc.summary(nvrtc.compiled))


@pytest.fixture
def host(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The device below CuPy, with the backend `cupy` on it, and all that a test changes of it put back."""
    wheel = importlib.import_module("tests.cuda.host_wheel.wheel")
    assert request.node.get_closest_marker("wheel"), (
        "CI would not run this test: see pytest_collection_modifyitems"
    )
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
