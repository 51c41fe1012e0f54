"""The backend `cupy` under the unmodified CuPy wheel, whose memory is the host's and whose kernels the emulator runs.

NVRTC compiles each kernel for sm_90 first, with the options of the backend.  Skipped where the wheels are not
installed; `.ci/run` installs them.  Tests of both devices run on a GPU too, with the marker `gpu`.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.compiler.schedules.serial.test_serial_loops import CASES
from tests.cuda.host_wheel import wheel
from tests.cuda.host_wheel.device import HostDevice
from tests.cuda.launching import launch
from tests.support.checkout import CHECKOUT
from xarr import lax
from xarr.errors import BackendError, TooLargeError
from xarr_cupy import driver
from xarr_cupy.driver import CupyDriver

#: Files of tests of the library that a GPU passes; those with large arrays too, which an emulator is too slow for.
FILES = (
    "reduction",
    "indexing",
    "movement",
    "sorting",
    "windows",
    "loops",
    "control",
    "convolution",
    "contraction",
)


@pytest.fixture
def gpu(device: str) -> CupyDriver:
    connected = driver.connect_cupy()
    assert isinstance(connected, CupyDriver)
    return connected


ADD = """extern "C" __global__ void add(const double *x, double *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < 3) y[i] = x[i] + 1;
}"""


def test_arrays_go_to_the_device_and_back(gpu: CupyDriver) -> None:
    x = np.arange(6.0)
    memory, other = gpu.allocate([x.nbytes])[0], gpu.allocate([x.nbytes])[0]
    gpu.upload(memory.address, x)
    gpu.copy(other.address + 16, memory.address, 32)
    result = np.empty(4)
    gpu.download(result, other.address + 16)
    assert_same(result, x[:4])


def test_freed_memory_goes_back_to_the_pool(gpu: CupyDriver) -> None:
    memory = gpu.allocate([1000])[0]
    address = memory.address
    del memory
    assert gpu.allocate([1000])[0].address == address


def test_a_kernel_is_compiled_once_and_launched(gpu: CupyDriver) -> None:
    x, y = gpu.allocate([24])[0], gpu.allocate([24])[0]
    gpu.upload(x.address, np.arange(3.0))
    module = gpu.load(ADD)
    assert gpu.load(ADD) is module
    launch(gpu, module, "add", 1, [(x.address, 24), (y.address, 24)])
    result = np.empty(3)
    gpu.download(result, y.address)
    assert_same(result, np.array([1.0, 2.0, 3.0]))


def test_all_is_done_on_the_stream_of_the_caller(host: HostDevice) -> None:
    cupy, gpu = importlib.import_module("cupy"), driver.connect_cupy()
    host.streams.clear()
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        x = gpu.allocate([24])[0]
        gpu.upload(x.address, np.arange(3.0))
        launch(gpu, gpu.load(ADD), "add", 1, [(x.address, 24), (x.address, 24)])
        gpu.copy(x.address, x.address + 8, 8)
        gpu.download(np.empty(3), x.address)
    assert set(host.streams) == {stream.ptr} and len(host.streams) == 5


def test_a_call_of_one_kernel_looks_for_its_stream_once(
    host: HostDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By `submit_beside` it is as short as CuPy's own calls: one allocation and one launch beside that."""
    cupy, asked = importlib.import_module("cupy"), [0]
    function, x = xarr.jit(lambda x, y: x * y + 1), xarr.asarray(np.arange(5.0)).evaluate()
    wanted = np.asarray(function(x, x))
    find = cupy.cuda.get_current_stream

    def count_and_find() -> object:
        asked[-1] += 1
        return find()

    monkeypatch.setattr(cupy.cuda, "get_current_stream", count_and_find)
    launches, results = host.launches, []
    for _ in range(5):
        asked.append(0)
        results.append(function(x, x))
    monkeypatch.undo()
    # More than once where an event is recorded.
    assert (min(asked[1:]), host.launches - launches) == (1, 5)
    # On another stream it waits for the one that the array is of.
    waits = len(host.waits)
    with cupy.cuda.Stream(non_blocking=True):
        results.append(function(x, x))
    assert len(host.waits) > waits
    for each in results:
        assert_same(np.asarray(each), wanted)


@pytest.mark.parametrize("name", CASES)
def test_each_kind_of_group(name: str, device: str) -> None:
    function, arrays = CASES[name]
    result = function(*map(xarr.asarray, arrays))
    result = [np.asarray(each) for each in (result if isinstance(result, tuple | list) else [result])]
    with xarr.use_backend("reference"):
        wanted = function(*map(xarr.asarray, arrays))
        wanted = [np.asarray(each) for each in (wanted if isinstance(wanted, tuple | list) else [wanted])]
    for each, other in zip(result, wanted, strict=True):
        assert_same(each, other)


def test_no_memory_is_left_behind(device: str) -> None:
    pool = importlib.import_module("cupy").get_default_memory_pool()
    chain = xarr.jit(lambda x: lax.cumsum(x * 2 + 1))
    x = xarr.asarray(np.arange(1000.0))
    chain(x).block_until_ready()
    before = pool.used_bytes(), pool.total_bytes()
    for _ in range(5):
        chain(x).block_until_ready()
    assert (pool.used_bytes(), pool.total_bytes()) == before


@pytest.mark.parametrize("device", [pytest.param("gpu", marks=pytest.mark.gpu)], indirect=True)
def test_streams_do_not_mix(device: str) -> None:
    cupy = importlib.import_module("cupy")
    streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(4)]
    results = []
    for k, stream in enumerate(streams):
        with stream:
            x = xarr.asarray(np.arange(10_000.0) + k)
            for _ in range(5):
                x = (x * 2 + 1).block_until_ready()
            results.append(np.asarray(x))
    for k, result in enumerate(results):
        assert_same(result, (np.arange(10_000.0) + k) * 32 + 31)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex128"])
def test_products(dtype: str, device: str) -> None:
    def product() -> np.ndarray:
        x = xarr.astype(xarr.asarray(np.arange(24).reshape(2, 3, 4) % 5), dtype)
        return np.asarray(lax.dot_general(x, x, (((2,), (2,)), ((0,), (0,)))))

    result = product()
    with xarr.use_backend("reference"):
        assert_same(result, product())


@pytest.mark.parametrize("dtype", ["uint16", "int64", "float32", "float64"])
def test_long_rows_are_sorted_with_their_numbers(dtype: str, device: str) -> None:
    rng, size = np.random.default_rng(0), 2**16 + 5
    x = rng.integers(0, 999, size).astype(dtype)
    if x.dtype.kind == "f":
        x = np.where(rng.random(size) < 0.2, rng.choice([0.0, -0.0, np.nan, -np.nan], size), x).astype(dtype)
    order = np.argsort(x, kind="stable")
    assert_same(np.asarray(xarr.argsort(xarr.asarray(x))), order)
    keys, numbers = lax.sort((xarr.asarray(x), lax.iota("int64", size)), num_keys=1)
    assert_same(np.asarray(keys), x[order])
    assert_same(np.asarray(numbers), order)
    assert_same(np.asarray(lax.sort(xarr.asarray(x))), x[order])


@pytest.mark.parametrize("targets", [400, 70_000])
def test_sorted_updates_have_the_bits_of_the_cpu(targets: int, device: str) -> None:
    rng, count = np.random.default_rng(1), 2**16 + 5
    # Fewer than 256 for each, so that none is folded in parts.
    arrays = np.zeros(targets, "f4"), rng.integers(0, targets + 1, count), rng.normal(size=count).astype("f4")

    def result() -> np.ndarray:
        x, i, updates = map(xarr.asarray, arrays)
        return np.asarray(xarr.jit(lambda *x: x[0].at[x[1]].add(x[2], mode="drop"))(x, i, updates))

    made = result()
    with xarr.use_backend("numpy"):
        assert made.tobytes() == result().tobytes()


def test_triangular_systems(device: str) -> None:
    a, b = np.tril(np.arange(1.0, 10.0).reshape(3, 3)), np.arange(6.0).reshape(3, 2)
    x = np.asarray(lax.linalg.triangular_solve(xarr.asarray(a), xarr.asarray(b), left_side=True, lower=True))
    np.testing.assert_allclose(a @ x, b, atol=1e-12)


def test_no_library_of_products(host: HostDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    def find(name: str) -> None:
        raise ImportError('Failure finding "libcublas.so.13"')

    modules = importlib.import_module("cupy_backends.cuda.libs")
    monkeypatch.delattr(modules, "cublas")
    monkeypatch.setattr(modules, "__getattr__", find)
    x = xarr.asarray(np.eye(3))
    with pytest.raises(
        BackendError, match=r"a library of CUDA failed, or is not installed: .*pip install 'xarr"
    ):
        np.asarray(lax.dot(x, x))


def test_subnormal_numbers_are_kept(device: str) -> None:
    x = np.array([1e-40, -3e-45, 1.5], np.float32)
    assert_same(xarr.asarray(x) * np.float32(0.5), x * np.float32(0.5))


@pytest.mark.gpu
@pytest.mark.parametrize("name", FILES)
def test_the_tests_of_the_library_pass(name: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0", "--cuda=gpu"]
    done = subprocess.run(
        [*command, f"tests/lax/test_{name}.py"],
        cwd=CHECKOUT,
        env={**os.environ, "XARR_BACKEND": "cupy"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout


# --- errors ------------------------------------------------------------------------------------------------------


def test_out_of_memory_is_told_after_the_pool_was_freed(host: HostDevice) -> None:
    gpu = driver.connect_cupy()
    host.limit = host.used + (1 << 20)
    memory = gpu.allocate([600_000])[0]
    del memory
    # What the pool keeps is in the way: it is freed once.
    held = gpu.allocate([700_000])[0]
    with pytest.raises(
        TooLargeError,
        match=r"wanted 800.0 kB of CuPy .*, of whose .* are free: arrays of this process hold 7.*kB, "
        r"CuPy's pool keeps .*B, other programs and libraries hold 0 B",
    ) as caught:
        gpu.allocate([800_000])[0]
    assert isinstance(caught.value, MemoryError)
    del held
    gpu.allocate([800_000])[0]


def test_an_array_that_is_too_large_says_so_and_what_to_do(host: HostDevice) -> None:
    host.limit = host.used + (1 << 20)
    x = xarr.asarray(np.zeros(50_000)).evaluate()
    for move in (
        lambda: xarr.asarray(np.zeros((1000, 1000))),
        lambda: xarr.zeros(10**6, device="numpy").to("cupy"),
    ):
        with pytest.raises(
            TooLargeError,
            match=r"out of memory for f64\[1.*\] \(wanted 8.0 MB of CuPy .*\); move it in parts, or free",
        ):
            move().evaluate()
    assert_same(x + 1, np.ones(50_000))


def test_a_program_without_memory_says_what_it_wanted_and_who_holds_it(host: HostDevice) -> None:
    host.limit = host.used + (1 << 20)
    x = xarr.asarray(np.zeros(50_000))
    with pytest.raises(
        TooLargeError,
        match=r"out of memory for the result f64\[1000,1000\] of 8.0 MB and its temporaries "
        r"\(wanted 8.0 MB of CuPy .* arrays of this process hold 4.* kB, .*Built at .*test_cupy_wheel.py",
    ):
        np.asarray(xarr.broadcast_to(x[:1000], (1000, 1000)) * 2.0)


def test_a_library_without_memory_says_what_it_wanted_and_who_holds_it(host: HostDevice) -> None:
    gpu = driver.connect_cupy()
    assert isinstance(gpu, CupyDriver)
    host.limit = host.used + (1 << 20)
    with (
        pytest.raises(
            TooLargeError,
            match=r"wanted memory for a library of CUDA \(.*8,000,\d* bytes.*\) of CuPy .* arrays of this process hold",
        ),
        gpu.library_calls(),
    ):
        gpu.arrays.empty(10**6)


def test_machine_code_gets_the_memory_that_the_pool_keeps(
    host: HostDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu, pool = driver.connect_cupy(), importlib.import_module("cupy").get_default_memory_pool()
    load = host.moduleLoadData
    monkeypatch.setattr(
        host,
        "moduleLoadData",
        lambda image: host._raise_of_driver(2) if pool.free_bytes() else load(image),
    )
    memory = gpu.allocate([1000])[0]
    del memory
    assert pool.free_bytes() >= 1000
    gpu.load(ADD + "// with what the pool keeps")
    assert pool.free_bytes() == 0


def test_a_kernel_without_memory_is_no_fault_of_the_device(
    host: HostDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = xarr.asarray(np.arange(3.0))
    with monkeypatch.context() as patch:
        cuda = importlib.import_module("cupy").cuda
        patch.setattr(cuda.driver, "launchKernel", lambda *arguments: host._raise_of_driver(2))
        with pytest.raises(
            TooLargeError,
            match=r"out of memory for the result f64\[3\] .*\(wanted memory for a kernel of CuPy",
        ):
            (x * 2.0 - 5.0).evaluate()
    assert_same(x * 2.0 - 5.0, np.arange(3.0) * 2 - 5)


FORK = """
import os, sys
from tests.cuda.host_wheel import wheel
wheel.load()
import xarr
from xarr.errors import BackendError

xarr.set_backend("cupy")
x = (xarr.arange(3.0) + 1.0).evaluate()
child = os.fork()
if child:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
for call in (x.tolist, lambda: xarr.zeros(3).evaluate(), lambda: (x * 2).evaluate()):
    try:
        call()
    except BackendError as error:
        print(error)
with xarr.use_backend("numpy"):
    print(xarr.arange(3) + 1, flush=True)
os._exit(0)
"""


@pytest.mark.skipif(not wheel.is_installed(), reason=wheel.MISSING)
def test_a_forked_process_says_how_to_start_one_that_can_use_the_device() -> None:
    # The checkout comes last: it has the tests, but what they test may be installed.
    paths = os.pathsep.join([*filter(None, sys.path), str(CHECKOUT)])
    environment = {**os.environ, "PYTHONPATH": paths}
    done = subprocess.run([sys.executable, "-c", FORK], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    *said, last = done.stdout.splitlines()
    assert len(said) == 3 and last == "[1 2 3]"
    assert {each.partition(": start processes by")[2] for each in said} == {
        ' multiprocessing.get_context("spawn"), or use the GPU in them alone'
    }


OUTSIDE = ADD.replace("y[i] =", "y[i + 100000000] =")


def test_a_fault_names_the_kernels_that_may_have_done_it(host: HostDevice) -> None:
    gpu = driver.connect_cupy()
    x = gpu.allocate([24])[0]
    gpu.upload(x.address, np.arange(3.0))
    launch(gpu, gpu.load(ADD), "add", 1, [(x.address, 24), (x.address, 24)])
    gpu.download(np.empty(3), x.address)
    launch(gpu, gpu.load(OUTSIDE), "add", 1, [(x.address, 24), (x.address, 24)])
    with pytest.raises(
        BackendError,
        match=r"the device failed, cudaErrorIllegalAddress.*: add\(const double \*x, double \*y\)",
    ) as caught:
        gpu.download(np.empty(3), x.address)
    assert caught.value.__notes__ == [OUTSIDE]


def test_a_fault_names_the_line_of_the_program(host: HostDevice) -> None:
    x = xarr.asarray(np.arange(3.0))
    np.asarray(x)
    y = (x * 2.5).evaluate()
    host.fail()
    with pytest.raises(BackendError, match="the device failed, cudaErrorIllegalAddress") as caught:
        np.asarray(y)
    assert any("launched before: mul" in note and __file__ in note for note in caught.value.__notes__)


def test_a_kernel_that_nvrtc_refuses(gpu: CupyDriver) -> None:
    with pytest.raises(BackendError, match=r'NVRTC refuses .*(.|\n)*identifier "wide_of" is undefined'):
        gpu.load(ADD.replace("x[i] + 1", "wide_of(x[i])"))


def test_other_machine_code_is_refused_by_the_device(host: HostDevice) -> None:
    cupy = importlib.import_module("cupy")
    with pytest.raises(cupy.cuda.driver.CUDADriverError, match="CUDA_ERROR_INVALID_IMAGE"):
        cupy.cuda.function.Module().load(b"no machine code")


# --- where CuPy cannot work: other processes, in which nothing stands below it ---------------------------------------


DOCTOR = """
import cupy
from importlib import metadata
from xarr import doctor

distributions, nvrtc, runtime = metadata.distributions, cupy.cuda.nvrtc, cupy.cuda.runtime
runtime.driverGetVersion = lambda: 0
print(doctor.report())
runtime.driverGetVersion = lambda: 11080
print(doctor.report())
def missing(): raise RuntimeError("No such file: libnvrtc.so.13")
cupy.cuda.is_available, nvrtc.getVersion = lambda: True, missing
print(doctor.report())
both = ("cupy-cuda12x", "cupy-cuda13x")
metadata.distributions = lambda **by: [1] if by.get("name") in both else distributions(**by)
print(doctor.report())
"""


@pytest.mark.skipif(not wheel.is_installed(), reason=wheel.MISSING)
def test_doctor_says_what_is_missing_and_what_to_install() -> None:
    done = subprocess.run(
        [sys.executable, "-c", DOCTOR],
        cwd=CHECKOUT,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    said = [line.partition("unavailable: ")[2] for line in done.stdout.splitlines() if " cupy  " in line]
    no_driver, old_driver, no_nvrtc, two_wheels = said
    assert "there is no NVIDIA driver: install it, so that nvidia-smi lists a GPU" in no_driver
    assert "the NVIDIA driver is one for CUDA 11, and this CuPy is built for CUDA 1" in old_driver
    assert "update the driver.  The backend" in old_driver
    assert "needs NVRTC, the compiler of its kernels, which is not installed: pip install nvidia-" in no_nvrtc
    assert "No such file: libnvrtc.so.13" in no_nvrtc
    assert "cupy-cuda12x and cupy-cuda13x are both installed, and write over each other's files" in two_wheels
