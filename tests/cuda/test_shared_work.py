"""Work that threads share, on the emulated device: scatters, reductions, running totals, tiles, rows.

Everywhere the bits are the same in each order of the threads, and no two threads race.
"""

from __future__ import annotations

import shutil
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.cuda.emulator.module import ORDERS, LaunchError
from tests.cuda.test_cupy_backend import device
from xarr import lax, random
from xarr.compiler.plan.program_plan import Launch
from xarr_cupy import libraries
from xarr_cupy.codegen import block_kernels, emitter
from xarr_cupy.runtime import command_builder

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")

#: Elements of which sums depend on their order, and which updates go where: many to one element, some nowhere.
SCATTERED = {
    "one window each": lambda x, i, u, name: getattr(x.at[i], name)(u, mode="drop"),
    "windows that overlap": lambda x, i, u, name: SCATTERS[name](
        x, i[:, None], u[:, :1], lax.ScatterDimensionNumbers((1,), (1,), (0,))
    ),
    "elements of both axes": lambda x, i, u, name: getattr(x.at[i, i % 2], name)(u[:, 0], mode="drop"),
}
SCATTERS = {"add": lax.scatter_add, "multiply": lax.scatter_mul, "set": lax.scatter, "max": lax.scatter_max}


def scatter_case(how: str, name: str, dtype: str, count: int) -> tuple[Any, tuple[np.ndarray[Any, Any], ...]]:
    rng = np.random.default_rng(count)
    i = rng.integers(-2, 9, count)
    x, u = (rng.normal(size=(each, 2)) for each in (7, count))
    if how == "windows that overlap":
        u = np.concatenate([u, u], 1)[:, :1]

    def function(x: Any, i: Any, u: Any) -> Any:
        return SCATTERED[how](xarr.astype(x, dtype), i, xarr.astype(u, dtype), name)

    return function, (x, i, u)


ONE = "one window each"


@pytest.mark.thorough
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
        function, arrays = scatter_case(how, name, dtype, count)
        with xarr.use_backend("numpy"):
            wanted = np.asarray(xarr.jit(function)(*map(xarr.asarray, arrays)))
        for order in ORDERS:
            monkeypatch.setattr(device(cupy), "order", order)
            result = np.asarray(xarr.jit(function)(*map(xarr.asarray, arrays)))
            assert result.tobytes() == wanted.tobytes(), (count, order)


#: Sums and orders that depend on that of the threads, unless it is one.
SHARED = {
    "scatter": lambda x, i: x.at[i].add(x[::-1] * 1e-3, mode="drop"),
    "histogram": lambda x, i: xarr.zeros(5).at[i % 5].add(x, mode="drop"),
    "sum": lambda x, i: lax.reduce_sum(x, (0,)),
    "running total": lambda x, i: lax.cumsum(x, 0),
    "sort": lambda x, i: lax.sort((i % 7, x), num_keys=1)[1],
    "argmax": lambda x, i: lax.argmax(lax.round(x), 0, "int64"),
    "norm": lambda x, i: x / lax.sqrt(lax.reduce_sum(x * x, (0,))),
}


def bits_of_twenty_runs(name: str, backend: Any, monkeypatch: pytest.MonkeyPatch) -> set[bytes]:
    """The results of a function of `SHARED` in 20 orders of the threads."""
    rng = np.random.default_rng(0)
    arrays = [xarr.asarray(each) for each in (rng.normal(size=600), rng.integers(0, 9, 600))]
    function, results = xarr.jit(SHARED[name]), set()
    monkeypatch.setattr(device(backend), "order", "shuffled")
    for seed in range(1, 21):
        monkeypatch.setattr(device(backend), "seed", seed)
        results.add(np.asarray(function(*arrays)).tobytes())
    return results


@pytest.mark.thorough
@pytest.mark.parametrize("name", SHARED)
def test_twenty_runs_have_the_same_bits(name: str, cupy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert xarr.config.deterministic
    assert len(bits_of_twenty_runs(name, cupy, monkeypatch)) == 1


def test_twenty_runs_of_atomics_have_others(cupy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with xarr.config(deterministic=False):
        assert len(bits_of_twenty_runs("scatter", cupy, monkeypatch)) > 2


@pytest.mark.parametrize("dtype", ["int8", "bool", "complex64", "complex128"])
def test_sums_of_types_that_cupy_does_not_add(dtype: str, cupy: Any) -> None:
    """CuPy 14.2 refuses scatter_add of these."""
    x, i = np.arange(6) % 3, np.array([0, 0, 5, 5, 5, -7, 6])
    for deterministic in (True, False):
        with xarr.config(deterministic=deterministic):
            target, updates = (xarr.astype(xarr.asarray(each), dtype) for each in (x, np.arange(7) - 1))
            result = np.asarray(target.at[xarr.asarray(i)].add(updates, mode="drop"))
        wanted = x.astype(dtype)
        np.add.at(wanted, i[:5], (np.arange(5) - 1).astype(dtype))
        assert_same(result, wanted)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16", "complex64", "complex128"])
def test_other_sums_of_scatters_depend_on_the_order_of_threads(
    dtype: str, cupy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    function, arrays = scatter_case(ONE, "add", dtype, 300)
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


@pytest.mark.thorough
@pytest.mark.parametrize("deterministic", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex64"])
@pytest.mark.parametrize("how", SCATTERED)
def test_scatters_have_no_race(how: str, dtype: str, deterministic: bool, cupy: Any) -> None:
    device(cupy).races = True
    with xarr.config(deterministic=deterministic):
        for name in ("add", "set"):
            function, arrays = scatter_case(how, name, dtype, 300)
            np.asarray(xarr.jit(function)(*map(xarr.asarray, arrays)))


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
    device(cupy).races = True
    result = bits_in_each_order(function, [array], cupy, monkeypatch)
    (text,) = device(cupy).texts
    assert text.count("__global__") == kernels
    with xarr.use_backend("numpy"):
        np.testing.assert_allclose(result, np.asarray(function(xarr.asarray(array))), rtol=1e-12, atol=1e-12)


@pytest.mark.thorough
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_have_no_race(name: str, cupy: Any) -> None:
    device(cupy).races = True
    function, array, _ = REDUCTIONS[name]
    np.asarray(xarr.jit(function)(xarr.asarray(array)))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: lax.cumsum(x, 1),
        lambda x: lax.reduce_sum(x, (1,)),
        lambda x: lax.cumsum(lax.reshape(x, (180, 5)), 0),
    ],
    ids=["totals", "sum", "columns"],
)
def test_a_missing_barrier_is_a_race(function: Any, cupy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    written = block_kernels.BlockPrinter.line

    def line(printer: Any, text: str) -> None:
        if text != "__syncthreads();":
            written(printer, text)

    monkeypatch.setattr(block_kernels.BlockPrinter, "line", line)
    monkeypatch.setattr(command_builder, "emit", emitter.emit.__wrapped__)
    device(cupy).races = True
    with pytest.raises(LaunchError, match=r"xarr_0: race: line \d+ (reads|writes) (parts|shared)\d*\[\d+\]"):
        np.asarray(xarr.jit(function)(xarr.asarray(normal(3, 300))))


def softmax(x: Any) -> Any:
    e = lax.exp(lax.sub(x, wide(lax.reduce_max(x, (1,)), x)))
    return lax.div(e, wide(lax.reduce_sum(e, (1,)), x))


def layer_norm(x: Any) -> Any:
    mean = lax.div(lax.reduce_sum(x, (1,)), float(x.shape[1]))
    centred = lax.sub(x, wide(mean, x))
    variance = lax.div(lax.reduce_sum(lax.mul(centred, centred), (1,)), float(x.shape[1]))
    return lax.mul(centred, wide(lax.rsqrt(lax.add(variance, 1e-5)), x))


def wide(column: Any, x: Any) -> Any:
    return lax.broadcast_in_dim(column, x.shape, (0,))


def pool_with_relu(x: Any) -> Any:
    pooled = lax.reduce_window(x, -np.inf, lax.max, (3, 3), (2, 2), "SAME")
    return lax.select(lax.gt(pooled, lax.full_like(pooled, 0.0)), pooled, lax.full_like(pooled, 0.0))


#: Patterns of one kernel, and the shapes of their arrays.
PATTERNS = {
    "six operations": (lambda x: lax.exp(lax.neg(lax.div(lax.add(lax.mul(x, x), x), lax.abs(x)))), (40, 300)),
    "softmax": (softmax, (5, 300)),
    "softmax of short rows": (softmax, (20, 64)),
    "layer norm": (layer_norm, (5, 300)),
    "layer norm of short rows": (layer_norm, (20, 64)),
    "gather with arithmetic": (
        lambda x: lax.add(lax.mul(x, x).at[np.array([3, 1, 2, 9])].get(mode="clip"), lax.exp(x)[:4]),
        (5, 300),
    ),
    "gather of a smaller table with arithmetic": (
        lambda x: lax.add(lax.mul(x, x).at[np.arange(40) % 5].get(mode="clip"), 1.0),
        (5, 30),
    ),
    "pooling with relu": (pool_with_relu, (20, 30)),
}


@pytest.mark.parametrize("name", PATTERNS)
def test_patterns_are_one_kernel_without_a_race(
    name: str, cupy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    function, shape = PATTERNS[name]
    array = normal(*shape)
    device(cupy).races = True
    device(cupy).texts.clear()
    result = bits_in_each_order(function, [array], cupy, monkeypatch)
    (text,) = device(cupy).texts
    assert text.count("__global__") == 1
    with xarr.use_backend("numpy"):
        np.testing.assert_allclose(result, np.asarray(function(xarr.asarray(array))), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(
    "table",
    [lax.exp, lambda x: sum([x * k for k in range(2, 12)], x), lambda x: lax.cumsum(x, 1)],
    ids=["costly", "many operations", "totals"],
)
def test_gathers_compute_what_takes_long_once(table: Any, cupy: Any) -> None:
    x, i = normal(5, 30), np.arange(400) % 5
    function = xarr.jit(lambda x: table(x).at[i].get(mode="clip"))
    before = device(cupy).launches
    result = np.asarray(function(xarr.asarray(x)))
    assert device(cupy).launches - before == 2
    with xarr.use_backend("numpy"):
        np.testing.assert_allclose(result, np.asarray(table(xarr.asarray(x)))[i], rtol=1e-12)


def test_rows_of_others_are_not_read_before_they_are_done(cupy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sum of each row, and beside it that of the row behind: the second needs another block's result."""

    def function(x: Any) -> Any:
        total = lax.reduce_sum(x, (1,))
        return lax.add(x, wide(lax.rev(total, (0,)), x))

    array = normal(5, 300)
    device(cupy).races = True
    result = bits_in_each_order(function, [array], cupy, monkeypatch)
    np.testing.assert_allclose(result, array + array.sum(1)[::-1, None], rtol=1e-12, atol=1e-12)


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


BESIDE = "numbers beside many operations"
#: Random numbers, of keys that are arguments, and a chain of more operations than a group may have.
REGISTERS = {
    **{
        f"{name} by {impl}": (
            lambda data, name=name, impl=impl: RANDOM[name](random.wrap_key_data(data, impl=impl)),
            np.arange(7, 7 + words, dtype="uint32"),
        )
        for impl, words in (("threefry2x32", 2), ("philox4x32", 2))
        for name in ("bits", "uniform", "normal")
    },
    BESIDE: (lambda x: numbers_beside(x), np.arange(300, dtype="uint32")),
}
RANDOM = {
    "bits": lambda key: random.bits(key, (300,), "uint32"),
    "uniform": lambda key: random.uniform(key, (300,), "float32"),
    "normal": lambda key: random.normal(key, (300,), "float32"),
}


def numbers_beside(x: Any) -> Any:
    """More operations than one group holds, each with an element of `x`."""
    y = x
    for k in range(160):
        y = ((y + x[k]) * x[k + 1]) ^ x[k + 2]
    return y


@pytest.mark.parametrize("name", REGISTERS)
def test_numbers_and_rounds_of_ciphers_are_registers(
    name: str, cupy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    function, array = REGISTERS[name]
    plan = xarr.jit(function).lower(xarr.asarray(array)).stage("plan")
    # Nothing but the argument and what one launch leaves for the next lies in memory.
    launches = [step for step in plan.steps if isinstance(step, Launch)]
    assert len(launches) == len(plan.steps) and all(len(step.outputs) == 1 for step in launches)
    assert all(len(step.inputs) <= 2 for step in launches)
    assert (len(launches) > 1) == (name == BESIDE)
    result = bits_in_each_order(function, [array], cupy, monkeypatch)
    with xarr.use_backend("numpy"):
        assert_same(result, np.asarray(xarr.jit(function)(xarr.asarray(array))))


#: Scatters whose updates a library sorts.
LIBRARY_SCATTERS = {
    "elements": (lambda x, i, u: x.at[i].add(u[:, 0], mode="drop"), (40,)),
    "rows": (lambda x, i, u: x.at[i].add(u, mode="drop"), (40, 3)),
    "few elements": (lambda x, i, u: x.at[i].multiply(u[:, 0], mode="drop"), (6,)),
    "more elements than updates": (lambda x, i, u: x.at[i % 90].add(u[:, 0], mode="drop"), (1000,)),
    "elements of both axes": (lambda x, i, u: x.at[i, i % 3].add(u[:, 0], mode="drop"), (40, 3)),
}


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex128"])
@pytest.mark.parametrize("name", LIBRARY_SCATTERS)
def test_updates_that_a_library_sorts_have_the_bits_of_the_cpu(
    name: str, dtype: str, cupy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(libraries, "MIN_SORTED", 64)
    function, shape = LIBRARY_SCATTERS[name]
    rng = np.random.default_rng(3)
    arrays = (rng.normal(size=shape), rng.integers(-2, shape[0] + 2, 900), rng.normal(size=(900, 3)))

    def program(x: Any, i: Any, u: Any) -> Any:
        return function(xarr.astype(x, dtype), i, xarr.astype(u, dtype))

    with xarr.use_backend("numpy"):
        wanted = np.asarray(xarr.jit(program)(*map(xarr.asarray, arrays)))
    device(cupy).races = True
    compiled = xarr.jit(program)
    for order in ORDERS:
        monkeypatch.setattr(device(cupy), "order", order)
        before = device(cupy).launches
        result = np.asarray(compiled(*map(xarr.asarray, arrays)))
        assert result.tobytes() == wanted.tobytes(), order
        # Keys, a copy, where segments are, those of a thread, parts of others, and these; zeros, if not with the copy.
        assert device(cupy).launches - before == 6 + (len(shape) > 1)


#: Index vectors whose components are in another order than the dimensions, of elements, and of parts of rows.
SWAPPED = {
    "elements": (lax.ScatterDimensionNumbers((), (0, 1), (1, 0)), (3, 4), ()),
    "windows": (lax.ScatterDimensionNumbers((1,), (0, 2), (2, 0)), (3, 2, 4), (2,)),
}


@pytest.mark.parametrize("name", SWAPPED)
def test_updates_are_found_whatever_the_order_of_components(
    name: str, cupy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(libraries, "MIN_SORTED", 64)
    dims, shape, window = SWAPPED[name]
    rng, count = np.random.default_rng(8), 600
    index = np.stack([rng.integers(-1, size + 1, count) for size in (shape[-1], shape[0])], 1)
    arrays = rng.normal(size=shape), index, rng.normal(size=(count, *window))

    def function(x: Any, i: Any, u: Any) -> Any:
        return lax.scatter_add(x, i, u, dims)

    with xarr.use_backend("numpy"):
        wanted = np.asarray(xarr.jit(function)(*map(xarr.asarray, arrays)))
    device(cupy).races = True
    assert np.asarray(xarr.jit(function)(*map(xarr.asarray, arrays))).tobytes() == wanted.tobytes()


def test_updates_in_loops_are_sorted_by_a_library(cupy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libraries, "MIN_SORTED", 64)
    rng = np.random.default_rng(4)
    arrays = rng.normal(size=9), rng.integers(-2, 11, 100), rng.normal(size=100)

    def function(x: Any, i: Any, u: Any) -> Any:
        return lax.fori_loop(0, 3, lambda k, x: x.at[i].add(u, mode="drop"), x)

    with xarr.use_backend("numpy"):
        wanted = np.asarray(xarr.jit(function)(*map(xarr.asarray, arrays)))
    assert np.asarray(xarr.jit(function)(*map(xarr.asarray, arrays))).tobytes() == wanted.tobytes()


def test_sums_of_rows_join_the_differences_before_them(cupy: Any) -> None:
    def function(x: Any) -> Any:
        for _ in range(3):
            x = x - lax.broadcast_in_dim(lax.reduce_sum(x, (0,)), x.shape, (1,)) * 0.01
            x = x - wide(lax.reduce_sum(x, (1,)), x) * 0.01
        return x

    x = normal(64, 64).astype("float32")
    device(cupy).races = True
    compiled = xarr.jit(function)
    with xarr.use_backend("numpy"):
        wanted = np.asarray(function(xarr.asarray(x)))
    before = device(cupy).launches
    np.testing.assert_allclose(np.asarray(compiled(xarr.asarray(x))), wanted, rtol=1e-3, atol=1e-4)
    # Sums of columns are two, those of rows join what comes before or after, and all differences but the last are one.
    assert device(cupy).launches - before <= 4 * 3 - 1


def test_results_over_operands_that_other_rows_read_are_not_joined(cupy: Any) -> None:
    """A result may have the memory of an operand, of which a row reads all: then no phase joins another."""
    size = 128

    def function(x: Any, y: Any) -> Any:
        total = lax.reduce_sum(x * y, (1,))
        return x + lax.broadcast_in_dim(total, x.shape, (1,))

    x = normal(size, size)
    compiled = xarr.jit(function, donate_argnums=0)
    with xarr.use_backend("numpy"):
        wanted = np.asarray(function(xarr.asarray(x), xarr.asarray(x)))
    for order in ORDERS:
        device(cupy).order = order
        result = np.asarray(compiled(xarr.asarray(x) * 1.0, xarr.asarray(x)))
        np.testing.assert_allclose(result, wanted, rtol=1e-12, atol=1e-12)


def test_updates_of_several_arrays_are_not_sorted_by_a_library(
    cupy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(libraries, "MIN_SORTED", 2)
    dims = lax.ScatterDimensionNumbers((), (0,), (0,))
    arrays = normal(9), np.arange(20)[:, None] % 11, normal(20)

    def function(x: Any, i: Any, u: Any) -> Any:
        return lax.scatter_with((x, x), i, (u, u), lambda a, b: (a[0] + b[0], a[1] * b[1]), dims)

    with xarr.use_backend("numpy"):
        wanted = [np.asarray(each) for each in function(*map(xarr.asarray, arrays))]
    for each, other in zip(xarr.jit(function)(*map(xarr.asarray, arrays)), wanted, strict=True):
        assert_same(np.asarray(each), other)
