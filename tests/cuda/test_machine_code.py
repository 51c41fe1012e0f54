"""Machine code of kernels in the kernel cache, by NVRTC and the CuPy wheel on memory of the host."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.cuda.host_wheel.device import HostDevice
from tests.support.checkout import CHECKOUT
from xarr import doctor, lax
from xarr.base.configuration import current as config
from xarr.compiler.object_cache import ObjectCache
from xarr.errors import BackendError
from xarr.runtime import evaluation
from xarr_cupy import driver, machine_code


@pytest.fixture
def files(host: HostDevice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectCache]:
    """The files of the kernel cache, in a directory of the test."""
    monkeypatch.setenv("XARR_CACHE_DIR", str(tmp_path))
    host.compiled.clear()
    with config(kernel_cache="on"):
        yield ObjectCache(tmp_path)


def compute() -> None:
    """Two kernels, outside of `jit`, without programs or modules of before."""
    x = np.arange(7.0)
    evaluation._programs._programs.clear()
    xarr.backend.get("cupy")._engine.driver._modules.module.cache_clear()
    assert_same(np.asarray(xarr.asarray(x) * xarr.asarray(x)), x * x)
    assert_same(np.asarray(lax.rev(xarr.asarray(x), (0,))), x[::-1])


class CountingNvrtc:
    """As much of CuPy's module `nvrtc` as `machine_code` calls; machine code is the text with the options."""

    class NVRTCError(Exception): ...

    def __init__(self) -> None:
        self.compiled: list[str] = []
        self.destroyed = 0

    def getVersion(self) -> tuple[int, int]:
        return 13, 0

    def createProgram(
        self, text: str, name: str, headers: tuple[str, ...], names: tuple[str, ...]
    ) -> list[str]:
        return [text]

    def compileProgram(self, program: list[str], options: tuple[str, ...]) -> None:
        if "error" in program[0]:
            raise self.NVRTCError("NVRTC_ERROR_COMPILATION")
        self.compiled.append(program[0])
        program.append(" ".join(options))

    def getCUBIN(self, program: list[str]) -> bytes:
        return "\n".join(program).encode()

    def getProgramLog(self, program: list[str]) -> str:
        return "xarr.cu(1): error: this is no kernel"

    def destroyProgram(self, program: list[str]) -> None:
        self.destroyed += 1


def test_without_cupy_a_text_is_compiled_once_for_each_architecture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XARR_CACHE_DIR", str(tmp_path))
    nvrtc = CountingNvrtc()

    def load(code: bytes) -> bytes:
        return code

    with config(kernel_cache="on"):
        first = machine_code.load_text("kernel", "sm_90", nvrtc, load)
        assert machine_code.load_text("kernel", "sm_90", nvrtc, load) == first
        assert first.endswith(b"-arch=sm_90") and nvrtc.compiled == ["kernel"]
        assert machine_code.load_text("kernel", "sm_80", nvrtc, load).endswith(b"-arch=sm_80")
        with pytest.raises(BackendError, match="this is no kernel"):
            machine_code.load_text("error", "sm_90", nvrtc, load)
    assert nvrtc.compiled == ["kernel"] * 2 and nvrtc.destroyed == 3
    assert len(list(tmp_path.rglob("*.kernel"))) == 2


def test_a_text_is_compiled_once(files: ObjectCache, host: HostDevice) -> None:
    compute()
    assert len(host.compiled) == 2 == len(list(files.path.iterdir()))
    compute()
    assert len(host.compiled) == 2
    assert "2 kernels" in doctor.report()


def test_nothing_is_kept_where_the_cache_is_off(files: ObjectCache, host: HostDevice) -> None:
    with config(kernel_cache="off"):
        compute()
        compute()
    assert len(host.compiled) == 4 and not list(files.path.iterdir())


@pytest.mark.parametrize("content", [b"", b"no machine code"])
def test_a_damaged_file_is_none(content: bytes, files: ObjectCache, host: HostDevice) -> None:
    compute()
    paths = list(files.path.iterdir())
    whole = [path.read_bytes() for path in paths]
    for path in paths:
        path.write_bytes(content)
    compute()
    assert len(host.compiled) == 4 and [path.read_bytes() for path in paths] == whole


def test_code_that_the_device_refuses_is_made_anew(files: ObjectCache, host: HostDevice) -> None:
    compute()
    paths = list(files.path.iterdir())
    whole = [path.read_bytes() for path in paths]
    for path in paths:
        files.put(path.stem, b"code of another device")
    compute()
    assert len(host.compiled) == 4 and [path.read_bytes() for path in paths] == whole


def test_a_file_that_others_may_write_is_not_run(files: ObjectCache, host: HostDevice) -> None:
    compute()
    for path in files.path.iterdir():
        path.chmod(0o666)
    compute()
    assert len(host.compiled) == 4


def test_another_architecture_version_or_option_is_another_file(
    files: ObjectCache, host: HostDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    compute()
    gpu, load_text = xarr.backend.get("cupy")._engine.driver, machine_code.load_text
    with monkeypatch.context() as patches:
        patches.setattr(driver, "load_text", lambda text, _, *rest: load_text(text, "sm_80", *rest))
        compute()
    with monkeypatch.context() as patches:
        patches.setattr(gpu._cuda.nvrtc, "getVersion", lambda: (99, 0))
        compute()
    with monkeypatch.context() as patches:
        patches.setattr(machine_code, "OPTIONS", (*machine_code.OPTIONS, "-lineinfo"))
        compute()
    assert len(host.compiled) == 8 == len(list(files.path.iterdir()))


OTHER_PROCESS = """
from tests.cuda.host_wheel import wheel
_, device = wheel.load()
import xarr
from tests.cuda.test_machine_code import compute
with xarr.use_backend("cupy"):
    compute()
print(len(device.compiled))
"""


def start(directory: Path) -> subprocess.Popen[str]:
    path = os.pathsep.join([*filter(None, sys.path), str(CHECKOUT)])
    environment = {
        **os.environ,
        "XARR_KERNEL_CACHE": "on",
        "PYTHONPATH": path,
        "XARR_CACHE_DIR": str(directory),
    }
    command = [sys.executable, "-c", OTHER_PROCESS]
    return subprocess.Popen(command, cwd=CHECKOUT, env=environment, stdout=subprocess.PIPE, text=True)


def test_a_second_process_compiles_nothing(files: ObjectCache, host: HostDevice, tmp_path: Path) -> None:
    # Two at once write the same files.
    first = [start(tmp_path), start(tmp_path)]
    for process in first:
        assert process.communicate()[0].strip() in ("0", "1", "2") and process.returncode == 0
    second = start(tmp_path)
    assert second.communicate()[0].strip() == "0" and second.returncode == 0
    assert len(list(files.path.iterdir())) == 2
    compute()
    assert not host.compiled


def test_what_nvrtc_refuses_is_not_kept(files: ObjectCache, host: HostDevice) -> None:
    gpu = driver.connect_cupy()
    for _ in range(2):
        with pytest.raises(xarr.errors.BackendError, match="NVRTC refuses a kernel"):
            gpu.load("no CUDA")
    assert len(host.compiled) == 2 and not list(files.path.iterdir())
