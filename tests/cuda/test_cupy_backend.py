"""The backend `cupy` on the emulated device: plans, control, the host's share, and tests of the library on it.

All the tests that it is to pass, but for those of arrays too large for an emulator:

    XARR_BACKEND=cupy python -m pytest -n 2 -k "not (cost or large or wide or long or holes or folded)" \\
        tests/lax/test_{reduction,indexing,windows,movement,sorting,loops,control,convolution,contraction}.py \\
        tests/lax/test_windows_refusals.py
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
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
from xarr_cupy import block_kernels, driver, emitter, host, spelling, thread_kernels
from xarr_cupy.engine import DeviceArray

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")

#: Parts of test files that take some seconds together.
SELECTION = (
    "tests/lax/test_control.py",
    "tests/lax/test_indexing.py::test_gather_modes_as_jax",
    "tests/lax/test_loops.py::test_scan_carries_and_stacks_pytrees",
    "tests/lax/test_movement.py::test_agrees_with_xla[concatenate-bfloat16]",
    "tests/lax/test_movement.py::test_agrees_with_xla[pad-float16]",
    "tests/lax/test_reduction.py::test_bitwise_reductions_agree[reduce_xor]",
    "tests/lax/test_reduction.py::test_indices_of_extremes_agree[argmax]",
    "tests/lax/test_windows.py::test_ties_and_nan",
)


def values(results: Any) -> list[np.ndarray[Any, Any]]:
    return [np.asarray(each) for each in (results if isinstance(results, tuple | list) else [results])]


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


#: Elements of which sums depend on their order, and which updates go where: many to one element, some nowhere.
SCATTERED = {
    "one window each": lambda x, i, u, name: getattr(x.at[i], name)(u, mode="drop"),
    "windows that overlap": lambda x, i, u, name: SCATTERS[name](
        x, i[:, None], u[:, :1], lax.ScatterDimensionNumbers((1,), (1,), (0,))
    ),
    "elements of both axes": lambda x, i, u, name: getattr(x.at[i, i % 2], name)(u[:, 0], mode="drop"),
}
SCATTERS = {"add": lax.scatter_add, "multiply": lax.scatter_mul, "set": lax.scatter, "max": lax.scatter_max}


def scattered(how: str, name: str, dtype: str, count: int) -> tuple[Any, tuple[np.ndarray[Any, Any], ...]]:
    rng = np.random.default_rng(count)
    i = rng.integers(-2, 9, count)
    x, u = (rng.normal(size=(each, 2)) for each in (7, count))
    if how == "windows that overlap":
        u = np.concatenate([u, u], 1)[:, :1]

    def function(x: Any, i: Any, u: Any) -> Any:
        return SCATTERED[how](xarr.astype(x, dtype), i, xarr.astype(u, dtype), name)

    return function, (x, i, u)


ONE = "one window each"


@pytest.mark.parametrize(
    ("how", "name", "dtype"),
    [
        *(
            (ONE, name, dtype)
            for name in ("add", "multiply", "set")
            for dtype in ("float64", "bfloat16", "complex64")
        ),
        *((how, name, "float32") for how in SCATTERED for name in SCATTERS),
        (ONE, "max", "float16"),
    ],
)
def test_deterministic_scatters_have_the_bits_of_the_cpu(
    how: str, name: str, dtype: str, cupy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for count in (1, 300):
        function, arrays = scattered(how, name, dtype, count)
        with xarr.use_backend("numpy"):
            wanted = np.asarray(xarr.jit(function)(*map(xarr.asarray, arrays)))
        for order in ORDERS:
            monkeypatch.setattr(device(cupy), "order", order)
            result = np.asarray(xarr.jit(function)(*map(xarr.asarray, arrays)))
            assert result.tobytes() == wanted.tobytes(), (count, order)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16", "complex64", "complex128"])
def test_other_sums_of_scatters_depend_on_the_order_of_threads(
    dtype: str, cupy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    function, arrays = scattered(ONE, "add", dtype, 300)
    results = set()
    with xarr.config(deterministic=False):
        for order in ORDERS:
            monkeypatch.setattr(device(cupy), "order", order)
            results.add(np.asarray(xarr.jit(function)(*map(xarr.asarray, arrays))).tobytes())
        assert len(results) > 1
        exact = [np.round(each) % 3 for each in arrays]
        small = function(*map(xarr.asarray, [exact[0], exact[1].astype(int), exact[2]]))
    with xarr.use_backend("numpy"):
        assert_same(np.asarray(small), np.asarray(function(exact[0], exact[1].astype(int), exact[2])))


@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("deterministic", [True, False])
def test_extremes_of_scatters_keep_nan_and_the_digits_of_float64(
    name: str, deterministic: bool, cupy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    big = 2.0**53
    x = np.array([0.0, -0.0, 1.0, big, -np.inf])
    i = np.array([0, 0, 1, 1, 2, 2, 3, 3, 4, 4])
    u = np.array([-0.0, 0.0, -0.0, 0.0, np.nan, -np.nan, big + 2, big - 1, np.nan, np.inf])
    with xarr.use_backend("numpy"):
        wanted = np.asarray(getattr(xarr.asarray(x).at[i], name)(u))
    with xarr.config(deterministic=deterministic):
        for order in ORDERS:
            monkeypatch.setattr(device(cupy), "order", order)
            result = getattr(xarr.asarray(x).at[xarr.asarray(i)], name)(xarr.asarray(u), mode="drop")
            assert_same(np.asarray(result), wanted)


@pytest.mark.parametrize("deterministic", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex64"])
@pytest.mark.parametrize("how", SCATTERED)
def test_scatters_have_no_race(how: str, dtype: str, deterministic: bool, cupy: Any) -> None:
    device(cupy).races = True
    with xarr.config(deterministic=deterministic):
        for name in ("add", "set"):
            function, arrays = scattered(how, name, dtype, 300)
            np.asarray(xarr.jit(function)(*map(xarr.asarray, arrays)))


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
        y = lax.fori_loop(0, 5, lambda i, s: s + lax.cumsum(s) * i, x)
        return lax.cond(y[0] > 0, lambda y: y + 1, lambda y: -y, y)

    with xarr.use_backend("numpy"):
        wanted = np.asarray(function(xarr.arange(4)))
    host.CALLS.clear()
    assert_same(xarr.jit(function)(xarr.arange(4)), wanted)
    assert {reason for _, reason in host.CALLS} == {host.CONTROL["loop"], host.CONTROL["branch"]}


def test_a_loop_without_a_plan(cupy: Any) -> None:
    def step(state: Any) -> Any:
        n, count = state
        return lax.select(n % 2 == 0, n // 2, 3 * n + 1), count + 1

    collatz = xarr.jit(lambda n: lax.while_loop(lambda s: s[0] > 1, step, (n, 0))[1])
    assert int(collatz(xarr.asarray(27))) == 111


def test_what_the_host_computes_has_a_reason(cupy: Any) -> None:
    host.CALLS.clear()
    result = xarr.jit(lambda x: xarr.linalg.cholesky(x * 2.0) + 1)(xarr.eye(2) * 2)
    assert_same(result, np.array([[3.0, 1.0], [1.0, 3.0]]))
    assert list(host.CALLS.items()) == [(("stablehlo.cholesky", host.OPERATIONS[ops.Cholesky]), 1)]


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
    own = cupy.from_host(x)
    workspace = device(cupy).allocate(1024)
    cupy._engine.launch(kernel, [own, own], workspace.address)
    assert_same(cupy.to_host(own), np.cumsum(x[::-1]))


def test_a_sum_is_one_kernel(cupy: Any) -> None:
    x = xarr.asarray(np.arange(12.0).reshape(3, 4))
    result = xarr.jit(lambda x: lax.reduce_sum(x, (1,)))
    assert_same(result(x), np.array([6.0, 22.0, 38.0]))
    before = device(cupy).launches
    result(x)
    assert device(cupy).launches - before == 1


@pytest.mark.parametrize("dtype", ["float16", "complex64"])
def test_counts_in_types_without_a_formula(dtype: str, cupy: Any) -> None:
    host.CALLS.clear()
    assert_same(lax.iota(dtype, 3), np.arange(3, dtype=dtype))
    assert dict(host.CALLS) == {("stablehlo.iota", host.FORMULA): 1}


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


def bits_in_each_order(function: Any, arrays: Any, backend: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The result of a function, which has the same bits in each order of the threads."""
    results = []
    for order in ORDERS:
        monkeypatch.setattr(device(backend), "order", order)
        results.append(np.asarray(xarr.jit(function)(*map(xarr.asarray, arrays))))
    assert len({each.tobytes() for each in results}) == 1
    return results[0]


def normal(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(len(shape)).normal(size=shape)


#: A function of an array, and how many kernels it takes, with a copy that is not launched.
REDUCTIONS = {
    "a warp for each row": (lambda x: lax.reduce_sum(x, (1,)), normal(5, 40), 2),
    "a block for each row": (lambda x: lax.reduce_sum(x, (1,)), normal(3, 300), 2),
    "an index by a warp": (lambda x: lax.argmin(x, 1, "int32"), normal(3, 40), 2),
    "an index by blocks": (lambda x: lax.argmax(x, 0, "int64"), normal(9001), 3),
    "equal parts": (lambda x: lax.reduce_sum(x, (0,)), normal(8192), 3),
    "unequal parts of two axes": (lambda x: lax.reduce_max(x, (0, 1)), normal(3, 4099), 3),
    "columns": (lambda x: lax.reduce_sum(x, (0,)), normal(65, 33), 3),
    "columns in two axes": (lambda x: lax.reduce_prod(x, (0, 2)), 1 + normal(5, 2, 13, 32) / 99, 3),
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_have_the_same_bits_in_each_order(
    name: str, cupy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    function, array, kernels = REDUCTIONS[name]
    device(cupy).texts.clear()
    result = bits_in_each_order(function, [array], cupy, monkeypatch)
    (text,) = device(cupy).texts
    assert text.count("__global__") == kernels
    with xarr.use_backend("numpy"):
        np.testing.assert_allclose(result, np.asarray(function(xarr.asarray(array))), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_have_no_race(name: str, cupy: Any) -> None:
    device(cupy).races = True
    function, array, _ = REDUCTIONS[name]
    np.asarray(xarr.jit(function)(xarr.asarray(array)))


@pytest.mark.parametrize("size", [300, 8193])
def test_running_totals_have_no_race(size: int, cupy: Any) -> None:
    device(cupy).races = True
    np.asarray(xarr.jit(lambda x: lax.cumsum(x, 0))(xarr.ones(size)))


@pytest.mark.usefixtures("no_kept_kernels")
@pytest.mark.parametrize(
    "function", [lambda x: lax.cumsum(x, 1), lambda x: lax.reduce_sum(x, (1,))], ids=["totals", "sum"]
)
def test_a_missing_barrier_is_a_race(function: Any, cupy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    written = block_kernels.BlockPrinter.line

    def line(printer: Any, text: str) -> None:
        if text != "__syncthreads();":
            written(printer, text)

    monkeypatch.setattr(block_kernels.BlockPrinter, "line", line)
    device(cupy).races = True
    with pytest.raises(LaunchError, match=r"xarr_0: race: line \d+ (reads|writes) parts\d+\[\d\]"):
        np.asarray(xarr.jit(function)(xarr.asarray(normal(3, 300))))


#: Arrays that are read across, with sides that fill tiles and sides that do not.
ACROSS = {
    "a matrix": (lambda x: lax.transpose(x, (1, 0)), (40, 70)),
    "whole tiles, and arithmetic": (lambda x: lax.transpose(x, (1, 0)) * 2 + 1, (32, 64)),
    "first and last axis": (lambda x: lax.transpose(x, (2, 1, 0)), (33, 3, 20)),
    "inner axes": (lambda x: lax.transpose(x, (0, 2, 1)), (3, 33, 20)),
    "beside itself": (lambda x: x + lax.transpose(x, (1, 0)), (20, 20)),
    "two of them": (lambda x: lax.transpose(x, (1, 0)) * lax.transpose(lax.rev(x, (1,)), (1, 0)), (17, 40)),
}


@pytest.mark.parametrize("dtype", ["int8", "float64", "complex128"])
@pytest.mark.parametrize("name", ACROSS)
def test_arrays_that_are_read_across_are_read_in_tiles(
    name: str, dtype: str, cupy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    function, shape = ACROSS[name]
    array = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    device(cupy).races = True
    device(cupy).texts.clear()
    result = bits_in_each_order(function, [array], cupy, monkeypatch)
    (text,) = device(cupy).texts
    assert text.count("__global__") == 1 and "[1056]" in text
    with xarr.use_backend("numpy"):
        assert_same(result, np.asarray(function(xarr.asarray(array))))


@pytest.mark.parametrize("shape", [(15, 40), (40, 15), (3, 4)])
def test_narrow_arrays_are_read_across_without_tiles(shape: tuple[int, int], cupy: Any) -> None:
    device(cupy).texts.clear()
    array = np.arange(np.prod(shape)).reshape(shape)
    assert_same(xarr.jit(lambda x: lax.transpose(x, (1, 0)))(xarr.asarray(array)), array.T)
    assert not any("__shared__" in text for text in device(cupy).texts)


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint64", "float32", "bfloat16"])
def test_updates_of_few_elements_are_combined_in_tables(
    dtype: str, cupy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    i, u = rng.integers(-1, 9, 9000), rng.integers(0, 3, (9000, 2))
    device(cupy).races = True
    for name in ("add", "max"):

        def function(i: Any, u: Any, name: str = name) -> Any:
            x = xarr.astype(xarr.asarray(np.arange(16).reshape(8, 2)), dtype)
            return getattr(x.at[i], name)(xarr.astype(u, dtype), mode="drop")

        u = (
            u
            if dtype != "bfloat16" or name == "max"
            else u * (i == 0)[:, None] % 2 * (np.arange(9000) < 100)[:, None]
        )
        device(cupy).texts.clear()
        with xarr.config(deterministic="i" in dtype):
            result = bits_in_each_order(function, [i, u], cupy, monkeypatch)
        assert any("__shared__" in text for text in device(cupy).texts)
        with xarr.use_backend("numpy"):
            assert_same(result, np.asarray(function(xarr.asarray(i), xarr.asarray(u))))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    ("name", "axis", "shape", "kernels"),
    [
        ("cumsum", 1, (3, 20), 2),
        ("cumsum", 1, (3, 300), 2),
        ("cumlogsumexp", 1, (2, 40), 2),
        ("cummax", 0, (300, 3), 2),
        ("cumsum", 0, (8193,), 4),
        ("cumprod", 1, (1, 8200), 4),
    ],
)
def test_running_totals_have_the_same_bits_in_each_order(
    name: str,
    axis: int,
    shape: tuple[int, ...],
    kernels: int,
    reverse: bool,
    cupy: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def function(x: Any) -> Any:
        return getattr(lax, name)(x, axis, reverse=reverse)

    array = 1 + normal(*shape) / 99
    device(cupy).texts.clear()
    result = bits_in_each_order(function, [array], cupy, monkeypatch)
    (text,) = device(cupy).texts
    assert text.count("__global__") == kernels
    with xarr.use_backend("numpy"):
        np.testing.assert_allclose(result, np.asarray(function(xarr.asarray(array))), rtol=1e-12)


@pytest.mark.parametrize("dtype", ["bfloat16", "int8", "bool"])
def test_running_totals_of_narrow_types(dtype: str, cupy: Any) -> None:
    x = np.random.default_rng(0).integers(0, 3, (2, 300))
    function = lax.cummax if dtype == "bool" else lax.cumsum
    result = np.asarray(function(xarr.astype(xarr.asarray(x), dtype), 1))
    with xarr.use_backend("numpy"):
        assert_same(result, np.asarray(function(xarr.astype(xarr.asarray(x), dtype), 1)))


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
    named |= {host.EMPTY, host.SMALL, host.COMPUTATION, host.FORMULA}
    assert [reason for reason in sorted(named) if f"| {reason} |" not in page] == []
