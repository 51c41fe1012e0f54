"""Sizes as arguments of kernels: outside of `jit` a new shape compiles nothing."""

from __future__ import annotations

import re
import shutil
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.cuda.test_cupy_backend import device
from xarr import lax
from xarr.compiler.loop_ir.loops import Buffer
from xarr.compiler.schedules.gpu.builders import program_of
from xarr_cupy.codegen import sizes
from xarr_cupy.codegen.emitter import emit
from xarr_cupy.codegen.kernel_calls import SHARED_BYTES

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")

ROWS = lax.ScatterDimensionNumbers((1,), (0,), (0,))


def programs(cupy: Any) -> list[str]:
    """The texts of loop programs that a device has loaded."""
    return [text for text in device(cupy).texts if "xarr_0(" in text]


def softmax(x: Any) -> Any:
    shifted = xarr.exp(x - x.max(axis=-1, keepdims=True))
    return shifted / shifted.sum(axis=-1, keepdims=True)


def pool(x: Any) -> Any:
    return lax.reduce_window(x, -np.inf, lax.max, (2, 3), (1, 2), ((1, 0), (0, 1)))


def integer_product(x: Any) -> Any:
    y = xarr.astype(x, "int32")
    return lax.dot_general(y, y, (((1,), (1,)), ((), ())))


#: Functions of an array of two axes and a vector of indices, by the least size of an axis.
CALLS: dict[str, tuple[Any, int]] = {
    "x + v": (lambda x, i: x * 2 + x[0], 3),
    "softmax of few": (lambda x, i: softmax(x), 3),
    "softmax of many": (lambda x, i: softmax(x), 32),
    "sum along 0": (lambda x, i: x.sum(0), 32),
    "sum along 1": (lambda x, i: x.sum(1), 3),
    "sum of all": (lambda x, i: x.sum(), 17),
    "argmax": (lambda x, i: xarr.argmax(x, axis=1), 3),
    "gather": (lambda x, i: lax.gather(x, i[:, None], ROWS_READ, (1, x.shape[1])), 3),
    "scatter-add": (lambda x, i: lax.scatter_add(x, i[:, None], x[: i.size], ROWS), 17),
    "cumsum along 0": (lambda x, i: xarr.cumsum(x, 0), 3),
    "cumsum along 1": (lambda x, i: xarr.cumsum(x, 1), 3),
    "transpose": (lambda x, i: x.T * 2, 16),
    "transpose of little": (lambda x, i: x.T * 2, 3),
    "reverse": (lambda x, i: x[::-1, 1:] + 1, 3),
    "pad": (lambda x, i: lax.pad(x, xarr.zeros(()), ((1, 2, 0), (0, 3, 0))) * 2, 3),
    "concatenate": (lambda x, i: xarr.concatenate([x, x * 2], 1), 3),
    "pooling": (lambda x, i: pool(x), 4),
    "conv": (lambda x, i: lax.conv(x[None, None], xarr.ones((2, 1, 3, 3)), (1, 1), "SAME"), 4),
    "sort": (lambda x, i: xarr.sort(x, 1), 17),
    "integer product": (lambda x, i: integer_product(x), 3),
    "outer": (lambda x, i: xarr.arange(x.shape[0])[:, None] * 3 + xarr.arange(x.shape[1]), 3),
}
#: Where not all shapes have one structure, how many there are: windows that stick out of the array or not, parts of a
#: sort that are full or not, an even or odd number of merges, the shared memory of these; powers of two of the elements
#: of a row that a thread keeps, here 4 of rows of 32 and 8 of longer ones.
CLASSES = {"pooling": 2, "scatter-add": 3, "sort": 6, "softmax of many": 2}
ROWS_READ = lax.GatherDimensionNumbers((1,), (0,), (0,))


def arrays(shape: tuple[int, int], rng: np.random.Generator) -> list[Any]:
    return [rng.integers(-9, 9, shape).astype(np.float64), rng.integers(0, shape[0], shape[0] - 1)]


@pytest.mark.thorough
@pytest.mark.implicit
@pytest.mark.parametrize("name", CALLS)
def test_new_shapes_compile_nothing_and_are_right(name: str, cupy: Any) -> None:
    function, least = CALLS[name]
    known: list[int] = []
    rng = np.random.default_rng(len(name))
    # Among them a square, odd and even sizes, and the same sizes the other way round.
    first = [(least + 5, least + 2), (least + 3, least + 3), (least + 2, least + 4), (least + 4, least + 2)]
    drawn = [tuple(rng.integers(least, least + 14, 2).tolist()) for _ in range(16)]
    for shape in [*first, *drawn]:
        operands = arrays(shape, rng)
        result = function(*map(xarr.asarray, operands))
        with xarr.use_backend("reference"):
            wanted = np.asarray(function(*map(xarr.asarray, operands)))
        assert_same(np.asarray(result), wanted, ulp=20 if "softmax" in name else 0)
        known.append(len(programs(cupy)))
    assert known[-1] - known[0] < CLASSES.get(name, 1), known


def test_a_literal_size_is_seen(cupy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes.Sizes, "number", lambda self, number, *_: str(number))
    emit.cache_clear()
    with pytest.raises(AssertionError):
        test_new_shapes_compile_nothing_and_are_right("sum along 1", cupy)
    emit.cache_clear()


def test_a_new_number_compiles_nothing(cupy: Any) -> None:
    x = np.arange(5.0)
    for rate in (0.5, 2.0, 1e300):
        assert_same(np.asarray(xarr.asarray(x) * rate), x * rate)
    assert len(programs(cupy)) == 1


def test_sizes_are_literals_under_jit(cupy: Any) -> None:
    compiled = xarr.jit(lambda x: x.T * 2)
    for shape in ((3, 5), (4, 6)):
        compiled(xarr.asarray(np.ones(shape)))
    assert len(programs(cupy)) == 2
    assert "i / 3" in programs(cupy)[0]


def test_steps_of_a_sort_are_few_kernels(cupy: Any) -> None:
    x = np.random.default_rng(0).normal(size=100)
    # By what is no order where there are NaNs, a network sorts.
    result = xarr.jit(lambda x: lax.sort_with(x, lax.lt, dimension=0))(xarr.asarray(x))
    assert_same(np.asarray(result), np.sort(x))
    (text,) = programs(cupy)
    assert device(cupy).launches > 20 and text.count("__global__") < 10


@pytest.mark.parametrize(("rows", "size"), [(1, 1100), (1, 1500), (7, 300), (40, 90), (3, 511)])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_tiles_of_recorded_sorts_fit_into_a_block(dtype: str, rows: int, size: int, cupy: Any) -> None:
    x = np.random.default_rng(size).integers(0, 50, (rows, size)).astype(dtype)
    assert_same(xarr.argsort(xarr.asarray(x), axis=1, stable=True), np.argsort(x, axis=1, kind="stable"))
    kernels = [kernel for text in programs(cupy) for kernel in text.split("__global__")[1:]]
    assert all(shared_bytes(kernel) <= SHARED_BYTES for kernel in kernels)


def shared_bytes(kernel: str) -> int:
    """The bytes of shared memory that the text of a kernel declares, with names of types that end with their bits."""
    bits = {"double": 64, "float": 32, "bool": 8}
    declared = re.findall(r"__shared__ __align__\(16\) ([a-z]+)(\d*) \w+\[(\d+)\]", kernel)
    return sum(int(number or bits[name]) // 8 * int(count) for name, number, count in declared)


@pytest.mark.parametrize(
    "counts", [(1, 1), (2049, 2049), (3072, 3072), (2200, 2500), (3000, 3100), (3071, 3073)]
)
def test_arrays_of_a_block_have_room_and_fit(counts: tuple[int, int]) -> None:
    buffers = [Buffer("a", np.dtype(np.int64), size, "shared") for size in counts]
    elements = sizes.Sizes(True).elements_of(buffers)
    assert all(count >= size for count, size in zip(elements, counts, strict=True))
    assert sum(elements) * 8 <= SHARED_BYTES
    assert sizes.Sizes(False).elements_of(buffers) == list(counts)


def test_arrays_that_a_power_of_two_makes_too_large_are_one_text() -> None:
    made = {
        tuple(sizes.Sizes(True).elements_of([Buffer("a", np.dtype(np.float64), size, "shared")] * 2))
        for size in range(2049, 3073)
    }
    assert made == {(3072, 3072)}


def test_sizes_that_do_not_fit_are_long() -> None:
    graph: Any = xarr.jit(lambda x: x.T + 1).lower("f32[65536,65538]").stage("decomposed")
    (call,) = emit(program_of(graph), any_sizes=True).calls
    assert {type(each) for each in call.sizes} == {np.int32, np.int64}


def test_a_lowered_program_prints_its_sizes_as_arguments(cupy: Any) -> None:
    x = xarr.asarray(np.ones((3, 4)))
    text = str(xarr.lower(lambda x: x.sum(1), x).stage("program"))
    assert "int points" in text and "int extent" in text
