"""Reductions of terms of two operands by tiles, and what follows tiles in the same kernel, on the emulated device.

Distances, maxima of sums and their kin have the results of the CPU in each order of the threads, of each element type,
no two threads race, and nothing of the size of all pairs is stored where a reduction follows.
"""

from __future__ import annotations

import shutil
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compiler.schedules.serial.test_serial_loops import graph_of
from tests.cuda.emulator.module import ORDERS
from tests.cuda.test_cupy_backend import device
from xarr import lax
from xarr.compiler.loop_ir.loops import Kernel, Runs
from xarr.compiler.loop_ir.verifier import verify
from xarr.compiler.schedules.gpu.builders import program_of

pytestmark = [pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++"), pytest.mark.implicit]


def differences(x: Any, y: Any) -> Any:
    return x[:, None] - y[None]


def square_distances(x: Any, y: Any) -> Any:
    return (differences(x, y) ** 2).sum(2)


def nearest_with_index(x: Any, y: Any) -> Any:
    pairs = square_distances(x, y)
    return pairs.min(1), xarr.argmin(pairs, axis=1)


#: Functions of two arrays of rows, which reduce what they compute of pairs of rows.
REDUCED: dict[str, Any] = {
    "least squared distance": lambda x, y: square_distances(x, y).min(1),
    "least of each column": lambda x, y: square_distances(x, y).min(0),
    "the nearest": lambda x, y: xarr.argmin(square_distances(x, y), axis=1),
    "the farthest of each column": lambda x, y: xarr.argmax(square_distances(x, y), axis=0),
    "greatest difference": lambda x, y: xarr.abs(differences(x, y)).max(2).min(1),
    "sum of distances": lambda x, y: xarr.abs(differences(x, y)).sum(2).sum(1),
    "sum of all": lambda x, y: xarr.abs(differences(x, y)).sum(2).sum(),
    "least of all, by columns": lambda x, y: square_distances(x, y).min((0, 1)),
    "weights": lambda x, y: (xarr.arange(x.shape[1]) * differences(x, y) ** 2).sum(2).max(1),
    "sides computed": lambda x, y: ((x * x + 1)[:, None] * xarr.where(y > 0, y, -y)[None]).sum(2).max(1),
    "several of a side": lambda x, y: (x[:, None] * y[None] + abs(x)[:, None] - abs(y)[None]).max(2).min(1),
    "what follows": lambda x, y: (xarr.maximum(square_distances(x, y) * 2 - y[:, 0], 3) + x[:, 1:2]).sum(1),
    "products": lambda x, y: xarr.min((x * x).sum(1)[:, None] + (y * y).sum(1) - 2 * (x @ y.T), axis=1),
}
#: Those that store what they compute of pairs.
STORED: dict[str, Any] = {
    "squared distances": square_distances,
    "positions": lambda x, y: xarr.argmax(x[:, None] + y[None], axis=2),
    "both": lambda x, y: (square_distances(x, y), square_distances(x, y).sum(1)),
    "as a sum": lambda x, y: xarr.maximum(xarr.abs(differences(x, y)).sum(2) - y[:, 0], x[:, :1]),
}
CASES = {**REDUCED, **STORED}
#: Rows of both arrays, and columns: tiles that are full and that are not, several parts, few terms and odd numbers.
SIZES = {
    "full": (128, 1024, 16),
    "parts": (1024, 4480, 8),
    "odd": (70, 1030, 19),
    "few terms": (1025, 100, 3),
    "chunks": (64, 2100, 33),
}


def arrays_of(sizes: str, dtype: str) -> list[Any]:
    rows, columns, terms = SIZES[sizes]
    rng = np.random.default_rng(rows)
    return [rng.integers(-9, 9, (count, terms)).astype(dtype) for count in (rows, columns)]


def results_of(function: Any, arrays: list[Any]) -> list[Any]:
    results = function(*map(xarr.asarray, arrays))
    return [np.asarray(each) for each in (results if isinstance(results, tuple) else (results,))]


def on_the_cpu(function: Any, arrays: list[Any]) -> list[Any]:
    with xarr.use_backend("numpy"):
        return results_of(function, arrays)


@pytest.mark.parametrize("name", CASES)
def test_each_order_of_threads_has_the_results_of_the_cpu(
    name: str, cupy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrays, function = arrays_of("odd", "int32"), xarr.jit(CASES[name])
    wanted = on_the_cpu(function, arrays)
    for order in ORDERS:
        monkeypatch.setattr(device(cupy), "order", order)
        for got, each in zip(results_of(function, arrays), wanted, strict=True):
            assert got.tobytes() == each.tobytes(), order


@pytest.mark.thorough
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("name", ["the nearest", "what follows", "sum of all", "as a sum"])
def test_tiles_of_each_size(name: str, sizes: str, cupy: Any) -> None:
    arrays = arrays_of(sizes, "float64")
    for got, wanted in zip(
        results_of(xarr.jit(CASES[name]), arrays), on_the_cpu(CASES[name], arrays), strict=True
    ):
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.thorough
@pytest.mark.parametrize("dtype", ["int8", "uint64", "float16", "bfloat16", "float32", "complex64"])
@pytest.mark.parametrize("name", ["least squared distance", "sum of distances", "as a sum", "sides computed"])
def test_tiles_of_each_element_type(name: str, dtype: str, cupy: Any) -> None:
    if dtype == "complex64":
        name = "complex sums"
    functions = {**CASES, "complex sums": lambda x, y: (x[:, None] * y[None] + x[:, None]).sum(2).sum(1)}
    # Sums of these are exact in short floats, but for the sign of zero.
    arrays = [np.sign(each) for each in arrays_of("odd", "int8")]

    def compute() -> Any:
        short = [xarr.astype(xarr.asarray(each), dtype) for each in arrays]
        return np.asarray(xarr.astype(xarr.jit(functions[name])(*short), "complex128"))

    got = compute()
    with xarr.use_backend("numpy"):
        np.testing.assert_array_equal(got, compute())


@pytest.mark.thorough
@pytest.mark.parametrize("name", [*REDUCED, "as a sum"])
def test_tiles_have_no_race(name: str, cupy: Any) -> None:
    device(cupy).races = True
    results_of(xarr.jit(CASES[name]), arrays_of("odd", "int32"))


def has_tiles(kernel: Kernel) -> bool:
    return any(Runs.LOCKSTEP in loop.runs for phase in kernel.phases for loop in phase.walk())


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("sizes", SIZES)
def test_blocks_have_tiles_and_pairs_no_memory(name: str, sizes: str) -> None:
    arrays = arrays_of(sizes, "int32")
    kernel = verify(program_of(graph_of(CASES[name], *arrays)))
    is_short = sizes == "few terms" and name in STORED
    assert has_tiles(kernel) != is_short
    pairs = len(arrays[0]) * len(arrays[1])
    if name in REDUCED:
        assert all(16 * each.size <= pairs for each in (*kernel.scratch, *kernel.outputs))
    elif name == "as a sum" and not is_short:
        assert not kernel.scratch and len(kernel.phases) == 1


def test_nan_and_infinity_are_as_on_the_cpu(cupy: Any) -> None:
    arrays = arrays_of("odd", "float32")
    arrays[0][3, 5], arrays[0][4, 2], arrays[1][7, 1] = np.nan, np.inf, -np.inf
    for name in ("the nearest", "greatest difference", "least of each column", "sum of all"):
        for got, wanted in zip(
            results_of(xarr.jit(CASES[name]), arrays), on_the_cpu(CASES[name], arrays), strict=True
        ):
            np.testing.assert_array_equal(got, wanted)


def test_batches_and_several_axes_of_rows(cupy: Any) -> None:
    rng = np.random.default_rng(5)
    x, y = rng.integers(-9, 9, (8, 4, 17, 9)), rng.integers(-9, 9, (8, 200, 9))

    def function(x: Any, y: Any) -> Any:
        return xarr.abs(x[:, :, :, None] - y[:, None, None]).sum(4).min(3)

    assert has_tiles(program_of(graph_of(function, x, y)))
    (got,), (wanted,) = results_of(xarr.jit(function), [x, y]), on_the_cpu(function, [x, y])
    assert got.tobytes() == wanted.tobytes()


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: (x[:, None] * y[None]).sum((0, 2)),
        lambda x, y: (x[:, None] * x[:, None] * 2).max(2),
        lambda x, y: lax.reduce(differences(x, y), x[0, 0], lambda a, b: a + b + a * b, (2,)),
        lambda x, y: (xarr.cumsum(differences(x, y), 2) * 2).sum(2),
    ],
    ids=["terms of rows", "one side", "in order", "an array of pairs"],
)
def test_other_reductions_have_no_tiles(function: Any, cupy: Any) -> None:
    arrays = [each[:100] for each in arrays_of("odd", "int32")]
    assert not has_tiles(program_of(graph_of(function, *arrays)))
    (got,), (wanted,) = results_of(xarr.jit(function), arrays), on_the_cpu(function, arrays)
    assert got.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("name", ["the nearest", "as a sum", "products"])
def test_sizes_may_be_arguments(name: str, cupy: Any) -> None:
    for sizes in ("odd", "chunks"):
        arrays = arrays_of(sizes, "int32")
        (got,), (wanted,) = results_of(CASES[name], arrays), on_the_cpu(CASES[name], arrays)
        assert got.tobytes() == wanted.tobytes()
