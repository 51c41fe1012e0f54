"""The emulated device: right kernels give right results in every order, and each kind of bug is found."""

from __future__ import annotations

import shutil
import threading
from typing import Any

import numpy as np
import pytest

from tests.cuda.emulator.module import ORDERS, CompileError, LaunchError, Module

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")

SCALE = """
extern "C" __global__ void scale(const float *x, float *y, int count) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) y[i] = 2.0f * x[i];
}
"""
TOTAL = """
extern "C" __global__ void total(const float *x, float *y, int count) {
  __shared__ float parts[64];
  float sum = 0.0f;
  for (int i = threadIdx.x; i < count; i += blockDim.x) sum += x[i];
  parts[threadIdx.x] = sum;
  __syncthreads();
  for (int half = 32; half > 0; half /= 2) {
    if (threadIdx.x < half) parts[threadIdx.x] += parts[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) y[0] = parts[0];
}
"""
WARP = """
extern "C" __global__ void warp_total(const int *x, int *y) {
  int sum = x[threadIdx.x];
  for (int delta = 16; delta > 0; delta /= 2) sum += __shfl_down_sync(0xffffffffu, sum, delta);
  if (threadIdx.x % 32 == 0) atomicAdd(&y[0], sum);
}
"""


def launch(
    text: str, name: str, grid: int, block: int, *arguments: Any, order: str = "forward", races: bool = False
) -> None:
    arrays = [np.asarray(each) for each in arguments]
    addresses = [(each.ctypes.data, each.nbytes) for each in arrays]
    Module(text, races).launch(name, [grid], [block], addresses, order)


@pytest.mark.parametrize("order", ORDERS)
def test_a_kernel_computes_what_it_says(order: str) -> None:
    x, y = np.arange(1000, dtype=np.float32), np.zeros(1000, np.float32)
    launch(SCALE, "scale", 3, 64, x, y, np.int32(1000), order=order)
    np.testing.assert_array_equal(y, 2 * x)


def test_a_launch_of_no_blocks_is_refused() -> None:
    x = np.zeros(1, np.float32)
    with pytest.raises(LaunchError, match="scale is launched in no blocks"):
        launch(SCALE, "scale", 0, 64, x, x, np.int32(0))


@pytest.mark.parametrize("order", ORDERS)
def test_threads_of_a_block_meet_at_barriers(order: str) -> None:
    x, y = np.arange(1000, dtype=np.float32), np.zeros(1, np.float32)
    launch(TOTAL, "total", 1, 64, x, y, np.int32(1000), order=order)
    assert y[0] == x.sum()


@pytest.mark.parametrize("order", ORDERS)
def test_lanes_exchange_values_and_atomics_add(order: str) -> None:
    x, y = np.arange(128, dtype=np.int32), np.zeros(1, np.int32)
    launch(WARP, "warp_total", 1, 128, x, y, order=order)
    assert y[0] == x.sum()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            SCALE.replace("x[i]", "x[i + 1]"),
            r"x\[1000\] is outside of its 1000 elements, block \(0, 0, 0\), thread \(39,",
        ),
        (
            SCALE.replace("x[i]", "x[i - 1]"),
            r"x\[-1\] is outside of its 1000 elements, block \(0, 0, 0\), thread \(0,",
        ),
        (SCALE.replace("y[i]", "y[i + count]"), r"y\[1000\] is outside"),
        (SCALE.replace("float", "double"), r"x\[576\] is outside of its 500 elements"),
    ],
)
def test_an_index_outside_of_an_argument_is_found(text: str, message: str) -> None:
    with pytest.raises(LaunchError, match=message):
        launch(text, "scale", 3, 64, np.zeros(1000, "f4"), np.zeros(1000, "f4"), np.int32(1000))


def test_an_index_outside_of_shared_memory_is_found() -> None:
    text = TOTAL.replace("parts[64]", "parts[32]")
    with pytest.raises(LaunchError, match=r"parts\[32\] is outside of its 32 elements"):
        launch(text, "total", 1, 64, np.zeros(64, "f4"), np.zeros(1, "f4"), np.int32(64))


def test_shared_memory_has_no_value_before_it_is_written() -> None:
    text = TOTAL.replace("  parts[threadIdx.x] = sum;", "  if (threadIdx.x != 5) parts[threadIdx.x] = sum;")
    y = np.zeros(1, np.float32)
    launch(text, "total", 1, 64, np.zeros(64, "f4"), y, np.int32(64))
    assert np.isnan(y[0])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            TOTAL.replace("  __syncthreads();\n  for", "  if (threadIdx.x < 8) __syncthreads();\n  for"),
            "divergent barrier: a thread waits at line 10, another at line 7",
        ),
        (
            TOTAL.replace("  parts[threadIdx.x] = sum;", "  if (threadIdx.x > 55) return;"),
            r"the barrier of line 7 is reached by 56 of 64 threads",
        ),
        (
            TOTAL.replace("if (threadIdx.x == 0)", "if (threadIdx.x == 0) __syncthreads();\n"),
            "the barrier of line 12 is reached by 1 of 64 threads",
        ),
    ],
)
def test_a_barrier_that_not_all_threads_reach_is_found(text: str, message: str) -> None:
    with pytest.raises(LaunchError, match=message):
        launch(text, "total", 1, 64, np.ones(64, "f4"), np.zeros(1, "f4"), np.int32(64))


def test_a_lane_outside_of_its_mask_is_found() -> None:
    text = WARP.replace("0xffffffffu", "0xffffu")
    with pytest.raises(LaunchError, match="lane 16 is not in the mask 0000ffff of line 4"):
        launch(text, "warp_total", 1, 32, np.ones(32, "i4"), np.zeros(1, "i4"))


def test_a_missing_barrier_gives_another_result_in_some_order() -> None:
    text = TOTAL.replace("  parts[threadIdx.x] = sum;\n  __syncthreads();", "  parts[threadIdx.x] = sum;")
    x, results = np.arange(64, dtype=np.float32), []
    for order in ORDERS:
        y = np.zeros(1, np.float32)
        launch(text, "total", 1, 64, x, y, np.int32(64), order=order)
        results.append(float(y[0]))
    assert any(each != x.sum() for each in results)


def test_a_race_gives_another_result_in_some_order() -> None:
    text = SCALE.replace("y[i]", "y[0]")
    results = []
    for order in ORDERS:
        y = np.zeros(1, np.float32)
        launch(text, "scale", 3, 64, np.arange(200, dtype="f4"), y, np.int32(200), order=order)
        results.append(float(y[0]))
    assert len(set(results)) > 1


#: A lane leaves a value for another one of its warp.
LANES = """
extern "C" __global__ void lanes(const int *x, int *y) {
  __shared__ int parts[64];
  parts[threadIdx.x] = x[threadIdx.x];
  __syncwarp();
  y[threadIdx.x] = parts[threadIdx.x ^ 1];
}
"""
HISTOGRAM = """
extern "C" __global__ void histogram(const int *x, int *y) {
  const int at = x[threadIdx.x];
  atomicAdd(&y[at], 1);
}
"""
RACES = [
    (
        TOTAL.replace("  parts[threadIdx.x] = sum;\n  __syncthreads();", "  parts[threadIdx.x] = sum;\n"),
        "total",
        r"race: line (6|9) (reads|writes) parts\[\d+\], which thread \d+ of block 0 (reads|writes) in line (6|9)",
    ),
    (
        TOTAL.replace("    __syncthreads();\n  }", "  }"),
        "total",
        r"race: line 9 (reads|writes) parts\[\d+\], which thread \d+ of block 0 (reads|writes) in line 9",
    ),
    (
        SCALE.replace("y[i]", "y[0]").replace("int count) {\n", "int count) {\n  "),
        "scale",
        r"race: line 3 writes y\[0\], which thread \d+ of block \d writes in line 3, with no barrier between, block",
    ),
    (
        SCALE.replace("2.0f * x[i]", "y[count - 1 - i]"),
        "scale",
        r"race: line 3 (reads|writes) y\[\d+\], which thread \d+ of block \d+ (reads|writes) in line 3",
    ),
    (
        LANES.replace("  __syncwarp();\n", ""),
        "lanes",
        r"race: line (4|5) (reads|writes) parts\[\d+\], which thread \d+ of block 0 (reads|writes) in line (4|5)",
    ),
    (
        LANES.replace("^ 1", "^ 32"),
        "lanes",
        r"race: line (4|6) (reads|writes) parts\[\d+\], which thread \d+ of block 0 (reads|writes) in line (4|6)",
    ),
    (
        HISTOGRAM.replace("atomicAdd(&y[at], 1)", "y[at] += 1"),
        "histogram",
        r"race: line 4 (reads|writes) y\[\d\], which thread \d+ of block 0 writes in line 4",
    ),
    (
        HISTOGRAM.replace("int at", "int before = y[0]; const int at"),
        "histogram",
        r"race: line (3|4) (reads|writes) y\[0\], which thread \d+ of block 0 (reads|writes) in line (3|4)",
    ),
]


def arguments_of(name: str) -> list[Any]:
    if name in ("lanes", "histogram"):
        return [np.arange(64, dtype="i4") % (64 if name == "lanes" else 4), np.zeros(64, "i4")]
    return [np.arange(200, dtype="f4"), np.zeros(200, "f4"), np.int32(200)]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("text", "name", "message"), RACES)
def test_a_race_is_found_in_each_order(text: str, name: str, message: str, order: str) -> None:
    with pytest.raises(LaunchError, match=message):
        launch(text, name, 3 if name == "scale" else 1, 64, *arguments_of(name), order=order, races=True)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    ("text", "name"), [(SCALE, "scale"), (TOTAL, "total"), (LANES, "lanes"), (HISTOGRAM, "histogram")]
)
def test_kernels_without_a_race_have_none(text: str, name: str, order: str) -> None:
    for blocks in (1, 3):
        if blocks == 1 or name == "scale":
            launch(text, name, blocks, 64, *arguments_of(name), order=order, races=True)


def test_a_warp_without_a_race_computes_the_same() -> None:
    x, y = np.arange(128, dtype=np.int32), np.zeros(1, np.int32)
    launch(WARP, "warp_total", 1, 128, x, y, races=True)
    assert y[0] == x.sum()


def test_threads_of_python_launch_one_after_the_other() -> None:
    module, failures = Module(TOTAL), []

    def launch_often(factor: int) -> None:
        x, y, count = np.full(5000, factor, np.float32), np.zeros(1, np.float32), np.int32(5000)
        arrays = [np.asarray(each) for each in (x, y, count)]
        for _ in range(300):
            y[0] = 0
            module.launch("total", [1], [64], [(each.ctypes.data, each.nbytes) for each in arrays])
            if y[0] != 5000 * factor:
                failures.append((factor, y[0]))

    threads = [threading.Thread(target=launch_often, args=(factor,)) for factor in (1, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(LaunchError, match="scale takes 3 arguments, got 2"):
        launch(SCALE, "scale", 1, 1, np.zeros(1, "f4"), np.zeros(1, "f4"))
    odd = np.zeros(9, "u1")[1:]
    with pytest.raises(LaunchError, match="x is not aligned to 4 bytes"):
        launch(SCALE, "scale", 1, 1, odd, np.zeros(1, "f4"), np.int32(1))


def test_shuffles_that_cuda_lacks_are_refused() -> None:
    pair = "struct pair { float re, im; };\n"
    text = 'extern "C" __global__ void f(pair *x) { x[0] = __shfl_sync(0xffffffffu, x[0], 1); }'
    with pytest.raises(CompileError, match="CUDA shuffles numbers alone"):
        Module(pair + text)


def test_atomics_that_cuda_lacks_are_refused() -> None:
    text = WARP.replace("int *y", "signed char *y")
    with pytest.raises(CompileError, match=r"no matching function for call to .atomicAdd\(signed char\*"):
        Module(text)
