"""Programs in processes of their own, as users run them: what ends them, what they may not lose, who else is there.

Each runs under CuPy's wheel on memory of the host, and on a GPU.  A fault of a device is one for its whole process.
"""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import threading
import time
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.support.checkout import CHECKOUT
from xarr import lax

#: What puts memory of the host below CuPy.
ON_HOST = "from tests.cuda.host_wheel import wheel; wheel.load()[1].limit = 1 << 28\n"
START = """
import numpy as np, xarr
from xarr import lax
xarr.set_backend("cupy")
x = xarr.asarray(np.arange(1000, dtype=np.float32)).evaluate()
"""
FAULT = """
from tests.cuda.launching import launch
gpu = xarr.backend.get("cupy")._engine.driver
y = (x * 2 + 1).evaluate()
np.asarray(y)
bad = gpu.load('''extern "C" __global__ void write_nowhere(float *target) { target[threadIdx.x] = 1.0f; }''')
y = (x * 3 + 1).evaluate()
launch(gpu, bad, "write_nowhere", 1, [(64, 1024)])
for _ in range(2):
    try:
        np.asarray(y)
    except xarr.errors.BackendError as error:
        print(error, *getattr(error, "__notes__", ()), sep="\\n")
"""
MEMORY = """
try:
    print(xarr.zeros(2**38, dtype="int8").evaluate())
except xarr.errors.TooLargeError as error:
    print(error)
assert np.asarray(x + 1)[-1] == 1000
print("and goes on")
"""
#: Loops that nothing but Ctrl-C ends: of launches, and of an unknown length, whose condition the host reads.
ENDLESS = {
    "of known length": "lax.fori_loop(0, 10**9, lambda i, x: lax.cumsum(x) * 0.5, x)",
    "of unknown length": "lax.while_loop(lambda x: x[1] < 9, lambda x: lax.rev(lax.cumsum(x), (0,)) * 0, x)",
}
INTERRUPTED = """
print("begins", flush=True)
try:
    np.asarray(xarr.jit(lambda x: {loop})(x))
except KeyboardInterrupt:
    assert np.asarray(x + 1)[-1] == 1000
    print("interrupted", flush=True)
"""


@pytest.fixture
def prelude(device: str) -> str:
    """The beginning of a program for the device of the test."""
    return START if device == "gpu" else ON_HOST + START


def environment() -> dict[str, str]:
    path = [str(CHECKOUT), str(CHECKOUT / "backends"), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path), "PYTHONUNBUFFERED": "1"}


def run(text: str, folder: Path) -> str:
    """The output of a program, which must end well."""
    program = folder / "program.py"
    program.write_text(text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(program)],
        **{"env": environment(), "cwd": CHECKOUT, "timeout": 120},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_fault_of_the_device_is_told_with_what_was_launched(prelude: str, tmp_path: Path) -> None:
    told = run(prelude + FAULT, tmp_path)
    assert told.count("backend 'cupy': the device failed") == 2
    assert "the latest first: write_nowhere(float *target); " in told
    assert "No other call can use the device in this process." in told
    assert f"first built at {tmp_path / 'program.py'}:" in told


def test_what_no_device_has_memory_for_is_told_and_nothing_is_lost(prelude: str, tmp_path: Path) -> None:
    told = run(prelude + MEMORY, tmp_path)
    assert told.startswith("evaluate: out of memory for the result s8[274877906944] of 274.9 GB"), told
    assert told.endswith("and goes on\n")


@pytest.mark.parametrize("loop", ENDLESS.values(), ids=ENDLESS)
def test_an_interrupt_ends_a_loop_soon(loop: str, prelude: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    # A test may run where the signal is ignored.
    takes = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    program.write_text(takes + prelude + INTERRUPTED.format(loop=loop), encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, str(program)],
        **{"env": environment(), "cwd": CHECKOUT, "text": True},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "begins\n"
        time.sleep(2)
        assert process.poll() is None, "the loop ended by itself"
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=30)
    finally:
        process.kill()
    assert output == "interrupted\n", errors


def test_a_capture_of_the_caller_is_replayed_with_new_elements(device: str) -> None:
    cupy = importlib.import_module("cupy")
    stream = cupy.cuda.Stream(non_blocking=True)
    f = xarr.jit(lambda x: reduce(lambda x, _: lax.rev(lax.cumsum(x, 0), (0,)) * 0.5, range(5), x))
    with stream:
        own = cupy.empty(1000, "float64")
        x = xarr.from_dlpack(own, copy=False)
        first, second = np.arange(1000.0), np.arange(1000.0)[::-1] * 3
        own.set(first)
        for _ in range(3):
            f(x).block_until_ready()
        stream.begin_capture()
        y = f(x).evaluate()
        graph = stream.end_capture()
        for values in (first, second):
            own.set(values)
            graph.launch(stream)
            result = np.asarray(y)
            with xarr.use_backend("numpy"):
                np.testing.assert_allclose(result, np.asarray(f(xarr.asarray(values))), rtol=1e-12)


def test_threads_with_streams_of_their_own_do_not_mix(device: str) -> None:
    cupy = importlib.import_module("cupy")
    f = xarr.jit(lambda x, k: (lax.cumsum(x) + k, xarr.sum(x * k)))
    wrong: list[Any] = []

    def work(number: int) -> None:
        with cupy.cuda.Stream(non_blocking=True):
            x = xarr.asarray(np.full(5000, number, np.int64))
            for k in range(20):
                totals, total = f(x, k)
                if int(total) != 5000 * number * k or int(totals[-1]) != 5000 * number + k:
                    wrong.append((number, k))

    threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(100)
    assert not any(thread.is_alive() for thread in threads)
    assert wrong == []


@pytest.mark.gpu
def test_replays_allocate_nothing(cupy: Any) -> None:
    pool = importlib.import_module("cupy").get_default_memory_pool()
    f = xarr.jit(lambda x, k: xarr.sum(xarr.exp(x * k), axis=0))
    x = xarr.asarray(np.ones((1000, 100), np.float32))
    for k in range(3):
        f(x, np.float32(k)).block_until_ready()
    before = pool.total_bytes()
    for k in range(1000):
        result = f(x, np.float32(k % 7))
    assert_same(np.round(result), np.round(np.full(100, 1000 * np.exp(np.float32(999 % 7)), np.float32)))
    assert pool.total_bytes() == before


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64"])
def test_tensors_of_pytorch_go_in_and_out_without_a_copy(dtype: str, cupy: Any) -> None:
    torch = pytest.importorskip("torch")
    with xarr.use_backend("cupy"):
        tensor = torch.arange(24, device="cuda").reshape(4, 6).to(getattr(torch, dtype))
        x = xarr.from_dlpack(tensor, copy=False)
        assert (x.shape, str(x.dtype), x.device) == ((4, 6), dtype, "cupy")
        tensor += 1
        back = torch.from_dlpack((x * 2).evaluate())
        assert back.is_cuda
        assert torch.equal(back, tensor * 2)
