"""The backend `cupy` on the emulated device: plans, control, the host's share, and tests of the library on it.

All the tests of the library that it is to pass: `nox -s thorough -- cupy`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.compiler.schedules.serial.test_serial_loops import CASES, graph_of
from tests.cuda.emulator.driver import EmulatedDriver
from tests.cuda.emulator.module import ORDERS, LaunchError
from tests.support.checkout import CHECKOUT
from xarr import lax
from xarr.compiler.schedules.gpu.builders import program_of
from xarr.errors import BackendError
from xarr.ir import ops
from xarr.ir.graph import Node, parameter
from xarr.ir.types import TensorType
from xarr_cupy import driver, host
from xarr_cupy.codegen import emitter, spelling, thread_kernels
from xarr_cupy.runtime.arrays import DeviceArray
from xarr_cupy.runtime.command_builder import CommandList, launches_of
from xarr_cupy.runtime.commands import Frame, LocatedArray, run_all
from xarr_cupy.runtime.device import LoadedDevice
from xarr_cupy.runtime.launches import Location

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")

#: Parts of test files that take some seconds together.
SELECTION = (
    "tests/lax/test_control.py",
    "tests/lax/test_loops.py::test_scan_carries_and_stacks_pytrees",
    "tests/lax/test_movement.py::test_agrees_with_xla[pad-float16]",
    "tests/lax/test_reduction.py::test_bitwise_reductions_agree[reduce_xor]",
    "tests/lax/test_windows.py::test_ties_and_nan",
)


def values(results: Any) -> list[np.ndarray[Any, Any]]:
    return [np.asarray(each) for each in (results if isinstance(results, tuple | list) else [results])]


@pytest.mark.sampled
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", CASES)
def test_each_kind_of_group_in_each_order_of_threads(
    name: str, order: str, cupy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    function, arrays = CASES[name]
    monkeypatch.setattr(device(cupy), "order", order)
    host.CALLS.clear()
    result = values(function(*map(xarr.asarray, arrays)))
    assert not host.CALLS
    with xarr.use_backend("reference"):
        wanted = values(function(*map(xarr.asarray, arrays)))
    for each, other in zip(result, wanted, strict=True):
        assert_same(each, other)


def run_reference(function: Any, arrays: list[Any]) -> Any:
    """Compute on the reference backend, from host arrays to a host array."""
    with xarr.use_backend("reference"):
        return np.asarray(function(*map(xarr.asarray, arrays)))


def device(backend: Any) -> EmulatedDriver:
    """The emulated device below a backend."""
    result = backend._engine.driver
    assert isinstance(result, EmulatedDriver)
    return result


@pytest.mark.parametrize(
    "dtype", ["float16", "bfloat16", "float8_e5m2", "int8", "uint64", "complex64", "bool"]
)
def test_chains_equal_those_of_compiled_loops(dtype: str, cupy: Any) -> None:
    def chain(x: Any) -> Any:
        y = lax.select(lax.eq(x, x), lax.rev(x, (0,)), x)
        return y if dtype == "bool" else lax.mul(lax.add(x, y), y)

    x = np.random.default_rng(0).normal(size=100).astype("complex64" if dtype == "complex64" else "f4") * 10
    result = xarr.jit(chain)(xarr.astype(xarr.asarray(x), dtype))
    with xarr.use_backend("numpy"):
        assert_same(result, xarr.jit(chain)(xarr.astype(xarr.asarray(x), dtype)))


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "uint64", "int64"])
@pytest.mark.parametrize("order", ORDERS)
def test_atomics_of_every_integer(dtype: str, order: str, cupy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device(cupy), "order", order)
    rng = np.random.default_rng(0)
    x, i, u = (
        rng.integers(0, 99, 7).astype(dtype),
        rng.integers(0, 7, 40),
        rng.integers(0, 99, 40).astype(dtype),
    )
    for name, function in (("add", np.add), ("max", np.maximum), ("min", np.minimum)):
        result = getattr(xarr.asarray(x).at[xarr.asarray(i)], name)(xarr.asarray(u), mode="drop")
        wanted = x.copy()
        function.at(wanted, i, u)
        assert_same(result, wanted)


@pytest.mark.thorough
@pytest.mark.parametrize("name", CASES)
def test_kernels_of_each_kind_have_no_race(name: str, cupy: Any) -> None:
    device(cupy).races = True
    function, arrays = CASES[name]
    values(function(*map(xarr.asarray, arrays)))


def test_deterministic_is_a_part_of_keys(cupy: Any) -> None:
    compiled = xarr.jit(lambda x: x * 3)
    for setting in (True, False, True):
        with xarr.config(deterministic=setting):
            compiled(xarr.asarray([1.0]))
            assert cupy.schedule().target.deterministic == setting
    assert compiled.compilations == 2
    with xarr.use_backend("numpy"):
        compiled(xarr.asarray([1.0]))
        with xarr.config(deterministic=False):
            compiled(xarr.asarray([1.0]))
    assert compiled.compilations == 3


def test_a_chain_is_one_kernel_and_nothing_is_copied(cupy: Any) -> None:
    x = xarr.asarray(np.arange(6.0))
    compiled = xarr.jit(lambda x: (x * 2 + 1) / (x + 3) - x)
    np.asarray(compiled(x))
    result = device(cupy)
    before = result.launches, result.uploads, result.downloads
    y = compiled(x)
    y.block_until_ready()
    assert (result.launches - before[0], result.uploads - before[1], result.downloads - before[2]) == (
        1,
        0,
        0,
    )


def test_loops_and_branches_ask_the_host_by_name(cupy: Any) -> None:
    def function(x: Any) -> Any:
        y = lax.while_loop(lambda s: s[0] < 99, lambda s: s + lax.cumsum(s) + 1, x)
        return lax.cond(y[0] > 0, lambda y: lax.cumsum(y), lambda y: -y, y)

    with xarr.use_backend("numpy"):
        wanted = np.asarray(function(xarr.arange(4)))
    host.CALLS.clear()
    assert_same(xarr.jit(function)(xarr.arange(4)), wanted)
    assert {reason for _, reason in host.CALLS} == {host.BATCHES, host.CONTROL["branch"]}


def test_a_loop_without_a_plan(cupy: Any) -> None:
    def step(state: Any) -> Any:
        n, count = state
        return lax.select(n % 2 == 0, n // 2, 3 * n + 1), count + 1

    collatz = xarr.jit(lambda n: lax.while_loop(lambda s: s[0] > 1, step, (n, 0))[1])
    assert int(collatz(xarr.asarray(27))) == 111


def test_what_the_host_computes_has_a_reason(cupy: Any) -> None:
    host.CALLS.clear()
    x = xarr.eye(2, dtype="float16") * 2
    result = xarr.jit(lambda x: lax.linalg.triangular_solve(x * 2.0, x) + 1)(x)
    assert_same(result, np.array([[1.5, 1.0], [1.0, 1.5]], "float16"))
    reason = host.OPERATIONS[ops.TriangularSolve]
    assert list(host.CALLS.items()) == [(("stablehlo.triangular_solve", reason), 1)]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("shape", [(7, 3), (64, 2), (1, 4)])
def test_sorts_are_stable_in_each_order(
    shape: tuple[int, ...], order: str, cupy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device(cupy), "order", order)
    x = np.random.default_rng(0).integers(0, 5, shape)
    host.CALLS.clear()
    keys, numbers = lax.sort(
        (xarr.asarray(x), lax.broadcasted_iota("int64", shape, 0)), dimension=0, num_keys=1
    )
    wanted = np.argsort(x, axis=0, kind="stable")
    assert_same(numbers, wanted)
    assert_same(keys, np.take_along_axis(x, wanted, axis=0))
    assert not host.CALLS


def test_results_written_over_an_input_are_right(cupy: Any) -> None:
    x = np.arange(6)
    kernel = program_of(graph_of(lambda x: lax.cumsum(lax.rev(x, (0,))), x))
    own, loaded = cupy.from_host(x), cupy._engine
    workspace = loaded.new(TensorType((1024,), np.dtype(np.uint8)))
    array, out = LocatedArray(Location(0), own.type), CommandList(loaded)
    out.launch(
        parameter(own.type),
        launches_of(loaded.driver, kernel, emitter.emit(kernel), [array, array], Location(1)),
    )
    run_all(out.commands(), Frame(loaded, [own, workspace]))
    assert_same(cupy.to_host(own), np.cumsum(x[::-1]))


def test_a_sum_is_one_kernel(cupy: Any) -> None:
    x = xarr.asarray(np.arange(12.0).reshape(3, 4))
    result = xarr.jit(lambda x: lax.reduce_sum(x, (1,)))
    assert_same(result(x), np.array([6.0, 22.0, 38.0]))
    before = device(cupy).launches
    result(x)
    assert device(cupy).launches - before == 1


@pytest.mark.parametrize("dtype", ["float16", "complex64", "bfloat16"])
def test_counts_of_each_type_take_no_host(dtype: str, cupy: Any) -> None:
    host.CALLS.clear()
    assert_same(lax.iota(dtype, 3), np.arange(3).astype(xarr.dtype(dtype)))
    assert not host.CALLS


def test_indices_are_shifted_as_numbers_of_64_bits(cupy: Any) -> None:
    # They are ints in CUDA C++, which shifts those by less than 32.
    shifts = np.array([0, 1, 31, 32, 33, 63])
    shifted = xarr.jit(lambda by: lax.shift_right_arithmetic(lax.iota("int64", 6) - 6, by))
    assert_same(shifted(xarr.asarray(shifts)), (np.arange(6) - 6) >> shifts)


def test_a_number_that_another_thread_keeps_meanwhile(cupy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    store = LoadedDevice.store_numbers

    def store_as_another_thread(self: LoadedDevice, numbers: Any) -> Any:
        if len(numbers) > 1:
            (numbers[0].array,) = store(self, numbers[:1])
        return store(self, numbers)

    monkeypatch.setattr(LoadedDevice, "store_numbers", store_as_another_thread)
    assert_same(xarr.asarray(np.arange(3.0)) * 2.5 + 1.25 - 3.0, np.array([-1.75, 0.75, 3.25]))


def test_nothing_else_goes_to_the_host() -> None:
    x = parameter(TensorType((4,), np.dtype("int64")))
    with pytest.raises(BackendError, match=r"no kernel for stablehlo.reverse of \(s64\[4\]\)"):
        host.compute(Node(ops.Reverse((0,)), (x,)), [np.arange(4)])


def test_buffers_are_no_arrays_of_the_host(cupy: Any) -> None:
    buffer = cupy.from_host(np.arange(3))
    assert type(buffer) is DeviceArray
    with pytest.raises(BackendError, match="wanted arrays of backend 'cupy', got ndarray"):
        program = cupy.compile(xarr.jit(lambda x: x + 1).lower("s64[3]").stage("fused"))
        program(np.arange(3))


@pytest.fixture
def no_kept_kernels() -> Iterator[None]:
    emitter.emit.cache_clear()
    yield
    emitter.emit.cache_clear()


@pytest.mark.usefixtures("no_kept_kernels")
def test_a_wrong_operation_is_seen(cupy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(spelling.INFIX, "add", "-")
    result = xarr.jit(lambda x: x * 2 + 1.25)(xarr.asarray([1.0, 2.0]))
    assert_same(np.asarray(result), np.array([0.75, 2.75]))


@pytest.mark.usefixtures("no_kept_kernels")
def test_an_index_outside_is_seen(cupy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    merged = thread_kernels.ThreadPrinter.merge_terms
    monkeypatch.setattr(
        thread_kernels.ThreadPrinter,
        "merge_terms",
        lambda self, offset: [*merged(self, offset), (None, "1000", 1)],
    )
    with pytest.raises(LaunchError, match=r"xarr_0: in0\[1000\] is outside of its 2 elements, block"):
        np.asarray(xarr.jit(lambda x: x * 5 + 1.75)(xarr.asarray([1.0, 2.0])))


@pytest.mark.thorough
def test_parts_of_the_tests_of_the_library_pass() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0", *SELECTION],
        cwd=CHECKOUT,
        env={**os.environ, "XARR_BACKEND": "cupy"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    assert "passed" in done.stdout.splitlines()[-1] and "skipped" not in done.stdout.splitlines()[-1]


ROWS = {
    "sum": lambda x: lax.reduce_sum(x, (0, 2)),
    "product": lambda x: lax.reduce_prod(x, (0, 2)),
    "greatest": lambda x: lax.reduce_max(x, (2,)) if x.dtype.kind != "c" else x,
    "index": lambda x: lax.argmax(x, 2, "int32") if x.dtype.kind != "c" else x,
    "all": lambda x: lax.reduce_sum(x, (0, 1, 2)),
}


@pytest.mark.sampled
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("dtype", ["float32", "int64", "complex64", "bfloat16"])
@pytest.mark.parametrize("name", ROWS)
def test_a_block_reduces_a_row(
    name: str, dtype: str, order: str, cupy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device(cupy), "order", order)
    x = np.random.default_rng(0).integers(-2, 3, (3, 2, 300)).astype(np.float32)
    x[x == 0] = 1
    device(cupy).texts.clear()
    result = xarr.jit(ROWS[name])(xarr.astype(xarr.asarray(x), dtype))
    result.block_until_ready()
    is_block = any("__shared__" in text for text in device(cupy).texts)
    assert is_block == (dtype != "complex64" or name in ("sum", "all"))
    with xarr.use_backend("numpy"):
        assert_same(np.asarray(result), ROWS[name](xarr.astype(xarr.asarray(x), dtype)))


def test_nan_and_ties_of_a_block(cupy: Any) -> None:
    x = np.zeros((3, 1000), np.float32)
    x[0, [7, 900]] = np.nan
    x[1, [300, 999]] = 5
    index = xarr.jit(lambda x: lax.argmax(x, 1, "int32"))
    assert_same(index(xarr.asarray(x)), np.array([7, 300, 0], np.int32))
    assert_same(lax.reduce_max(xarr.asarray(x), (1,)), np.array([np.nan, 5, 0], np.float32))


# --- where there is no device ----------------------------------------------------------------------------------


class CupyOf:
    """The part of CuPy that `connect_cupy` asks for: its version, and those of CUDA that driver and CuPy have."""

    def __init__(self, version: str, available: bool, has: int = 13000) -> None:
        self.__version__ = version
        self.cuda = self.runtime = self.nvrtc = self
        self.is_available = lambda: available
        self.driverGetVersion = lambda: has
        self.runtimeGetVersion = lambda: 13020

    def getVersion(self) -> tuple[int, int]:
        raise RuntimeError("No such file: libnvrtc.so.13")


@pytest.mark.parametrize(
    ("cupy_module", "message"),
    [
        (CupyOf("13.6.0", True), r"needs CuPy 14 or later, got 13.6.0: pip install 'xarr\[cuda13\]'"),
        (
            CupyOf("14.2.0", False, 0),
            "CuPy 14.2.0 is installed, but there is no NVIDIA driver: install it, so that",
        ),
        (
            CupyOf("14.2.0", False, 12040),
            r"is one for CUDA 12, and .* CUDA 13: update the driver, or pip uninstall",
        ),
        (
            CupyOf("14.2.0", False, 11080),
            r"is one for CUDA 11, and .* CUDA 13: update the driver\.  The backend",
        ),
        (
            CupyOf("14.2.0", False),
            "the NVIDIA driver lists no GPU: nvidia-smi must list one, and CUDA_VISIBLE",
        ),
        (
            CupyOf("14.2.0", True),
            "needs NVRTC.*not installed: pip install nvidia-cuda-nvrtc, .*says: No such file",
        ),
    ],
)
def test_no_device(cupy_module: Any, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", cupy_module)
    monkeypatch.setattr(driver, "find_spec", lambda name: object())
    with pytest.raises(BackendError, match=message):
        driver.connect_cupy()


def test_two_wheels_of_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "find_spec", lambda name: object())
    monkeypatch.setattr(driver.metadata, "distributions", lambda name: [name] if name != "cupy" else [])
    with pytest.raises(
        BackendError,
        match=r"cupy-cuda12x and cupy-cuda13x are both installed.*: pip uninstall cupy-cuda12x cupy-cuda13x",
    ):
        driver.connect_cupy()


def test_the_page_names_all_that_leaves_the_device() -> None:
    page = (CHECKOUT / "docs" / "backends.md").read_text(encoding="utf-8")
    named = {*host.OPERATIONS.values(), *host.CONTROL.values()}
    named |= {host.EMPTY, host.COMPUTATION, host.FORMULA}
    assert [reason for reason in sorted(named) if f"| {reason} |" not in page] == []


LEAST = -(2**31)
QUOTIENTS: dict[str, Callable[[Any, Any], Any]] = {
    "divide": lax.div,
    "remainder": lax.rem,
    "floor": lambda x, y: x // y,
    "modulo": lambda x, y: x % y,
    "by a constant": lambda x, y: lax.div(x, lax.full_like(x, -1)) + lax.rem(x, lax.full_like(x, -1)),
    # Numbers of 64 bits that are computed as int: their quotient is not one.
    "of wide numbers": lambda x, y: lax.div(x.astype("int64"), y.astype("int64")),
    "of clamped numbers": lambda x, y: lax.div(
        lax.clamp(np.int64(LEAST), x.astype("int64"), np.int64(-1)),
        lax.clamp(np.int64(-1), y.astype("int64"), np.int64(1)),
    ),
    "of indices": lambda x, y: lax.div(lax.iota("int64", 9) + LEAST, lax.iota("int64", 9) - 1),
}


@pytest.mark.thorough
@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
@pytest.mark.parametrize("name", QUOTIENTS)
def test_the_least_integer_divided_by_minus_one(name: str, dtype: str, cupy: Any) -> None:
    least, greatest = np.iinfo(dtype).min, np.iinfo(dtype).max
    x = np.array([least, least, least, least + 1, greatest, greatest, 0, -7, least], dtype)
    y = np.array([-1, 0, 1, -1, -1, 0, 0, -2, least], dtype)
    function = QUOTIENTS[name]
    with xarr.use_backend("reference"):
        wanted = np.asarray(function(xarr.asarray(x), xarr.asarray(y)))
    if name == "divide":
        assert wanted[0] == least
    if name == "remainder":
        assert wanted[0] == 0
    for call in (function, xarr.jit(function)):
        assert_same(call(xarr.asarray(x), xarr.asarray(y)), wanted)


def test_steps_of_an_automaton_by_roll_are_not_computed_for_each_path_to_them(cupy: Any) -> None:
    def step(grid: Any, roll: Any) -> Any:
        offsets = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j]
        count = sum(roll(roll(grid, i, 0), j, 1) for i, j in offsets)
        return (count == 3) | (grid & (count == 2))

    present = np.arange(42).reshape(6, 7) % 2
    grid, wanted = xarr.asarray(present), present
    for _ in range(3):
        grid, wanted = step(grid, xarr.roll), step(wanted, np.roll)
    # A step asks for each of 8 neighbours by 4 parts: 32 times the step before, 1,024 times the one before that.
    lowered = xarr.lower(lambda x: step(step(step(x, xarr.roll), xarr.roll), xarr.roll), present)
    kernels = str(lowered.stage("program").text)
    assert max(map(len, kernels.split('extern "C"'))) < 100_000
    assert_same(grid, wanted)
