"""Machine code on the device: how much is kept, and when it is unloaded, under the CuPy wheel."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.cuda.emulator.module import Module
from tests.cuda.host_wheel.device import HostDevice
from tests.cuda.launching import launch
from tests.cuda.test_replays import X, compute_expected, five_kernels
from xarr_cupy import driver, modules

KERNEL = """extern "C" __global__ void add(double *x) {{
    if (threadIdx.x == 0) x[0] += {};
}}"""


def count_modules(host: HostDevice) -> int:
    """Count the modules on the device."""
    return sum(isinstance(each, Module) for each in host._objects.values())


@pytest.fixture
def few(host: HostDevice, monkeypatch: pytest.MonkeyPatch) -> HostDevice:
    """Few modules are kept of drivers that are made from now on; those of tests before are gone."""
    monkeypatch.setattr(modules, "MOST_MODULES", 4)
    monkeypatch.setattr(modules, "MOST_UNUSED", 3)
    gc.collect()
    return host


def test_modules_that_nobody_holds_are_bounded(few: HostDevice) -> None:
    before, gpu = count_modules(few), driver.connect_cupy()
    x = gpu.allocate([8])[0]
    gpu.upload(x.address, np.zeros(1))
    for k in range(20):
        launch(gpu, gpu.load(KERNEL.format(k)), "add", 1, [(x.address, 8)])
        # The error of a fault names the last eight.
        assert count_modules(few) - before <= 4 + 3 + 8 + 1
    result = np.empty(1)
    gpu.download(result, x.address)
    assert_same(result, np.array([190.0]))


def test_what_may_run_is_not_unloaded(few: HostDevice) -> None:
    gpu = driver.connect_cupy()
    x, waits, early = gpu.allocate([8])[0], few.device_waits, few.early_unloads
    gpu.upload(x.address, np.zeros(1))
    for k in range(40):
        launch(gpu, gpu.load(KERNEL.format(100 + k)), "add", 1, [(x.address, 8)])
    assert few.early_unloads == early
    # Once for several of them.
    assert 0 < few.device_waits - waits <= 40 // 3


def test_the_modules_asked_for_last_are_kept(few: HostDevice) -> None:
    gpu = driver.connect_cupy()
    first = gpu.load(KERNEL.format(200))
    for k in range(10):
        gpu.load(KERNEL.format(201 + k))
        assert gpu.load(KERNEL.format(200)) is first


def test_a_program_keeps_what_its_graphs_launch(few: HostDevice) -> None:
    compiled, x = xarr.jit(five_kernels), xarr.asarray(X)
    others: list[Any] = [xarr.jit(lambda x, k=k: xarr.sin(x) + k) for k in range(12)]
    # Until the pool gives the same addresses again.
    for _ in range(6):
        before = few.replays
        assert_same(compiled(x), compute_expected(X))
        replays = few.replays - before
        for k, other in enumerate(others):
            assert_same(other(x), np.sin(X) + k)
    assert replays == 1
