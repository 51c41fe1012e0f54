"""Neighbouring elements that a thread loads and stores at once, on the emulated device, which refuses others."""

from __future__ import annotations

import re
import shutil
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.compiler.schedules.serial.test_serial_loops import graph_of
from tests.cuda import nvrtc
from tests.cuda.emulator.module import ORDERS, LaunchError, Module
from tests.cuda.test_cupy_backend import device
from xarr import lax
from xarr.compiler.schedules.gpu.builders import program_of
from xarr.compiler.schedules.gpu.target import TARGET
from xarr_cupy.codegen.emitter import emit
from xarr_cupy.machine_code import OPTIONS

needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")

#: Threads that keep a device busy: with fewer ones no vectors pay.
BUSY = TARGET.busy_threads


def numbers(*shape: int, dtype: str = "float32") -> Any:
    x = np.random.default_rng(len(shape)).integers(-100, 100, shape)
    return xarr.asarray(x.astype("int8" if dtype == "bfloat16" else dtype)).astype(dtype)


def indices(*shape: int, most: int) -> np.ndarray[Any, Any]:
    """Some of them are outside of an axis of `most` elements."""
    return np.random.default_rng(most).integers(-2 * most, 2 * most, shape).astype("int32")


ROWS = BUSY // 4
#: A function of an array, the array, and the width of the vectors that it stores.
MOVES: dict[str, tuple[Any, tuple[int, ...], str, int]] = {
    "rows, clamped": (lambda x: x.at[indices(ROWS, most=50)].get(mode="clip"), (50, 16), "float32", 4),
    "rows, filled": (lambda x: x.at[indices(ROWS, most=50)].get(mode="fill"), (50, 16), "float32", 4),
    "rows of pairs": (lambda x: x.at[indices(4 * ROWS, most=50)].get(mode="clip"), (50, 2), "float32", 2),
    "rows of bfloat16": (lambda x: x.at[indices(ROWS, most=50)].get(mode="clip"), (50, 32), "bfloat16", 8),
    "rows of bytes": (lambda x: x.at[indices(ROWS, most=50)].get(mode="clip"), (50, 64), "int8", 16),
    "single elements": (lambda x: x.at[indices(16 * ROWS, most=50)].get(mode="fill"), (50,), "float32", 2),
    "rows of each batch": (
        lambda x: lax.gather(
            x,
            indices(3, ROWS, 1, most=50),
            lax.GatherDimensionNumbers((2,), (1,), (1,), (0,), (0,)),
            (1, 1, 8),
            mode="clip",
        ),
        (3, 50, 8),
        "float32",
        4,
    ),
    "rows with arithmetic": (
        lambda x: xarr.maximum((x * 2).at[indices(ROWS, most=50)].get(mode="clip") + 1, 0),
        (50, 16),
        "float32",
        4,
    ),
    "a slice": (lambda x: lax.dynamic_slice(x, (7, 0), (ROWS, 16)), (ROWS + 9, 16), "float32", 4),
    "rows one after the other": (lambda x: xarr.concatenate([x, x + 1], axis=0), (ROWS, 8), "float32", 4),
    "padded rows": (
        lambda x: lax.pad(x, xarr.asarray(5, dtype="float32"), ((3, 5, 0), (0, 0, 0))),
        (ROWS, 16),
        "float32",
        4,
    ),
    "padded columns": (
        lambda x: lax.pad(x, xarr.asarray(5, dtype="float32"), ((0, 0, 0), (3, 5, 0))),
        (ROWS, 16),
        "float32",
        4,
    ),
    "columns side by side": (
        lambda x: xarr.concatenate([x[:, 1:], x * 2, x[:, :9]], axis=1),
        (ROWS, 16),
        "float32",
        4,
    ),
    "bytes behind others": (lambda x: lax.slice(x, (5,), (5 + 16 * BUSY,)), (16 * BUSY + 16,), "int8", 16),
    "columns with their numbers": (
        lambda x: xarr.where(xarr.arange(16, dtype="int32") % 3 == 1, x, xarr.arange(16, dtype="float32")),
        (ROWS, 16),
        "float32",
        4,
    ),
    "a stencil": (
        lambda x: x.at[1:-1, 1:-1].set(x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]),
        (512, 2048),
        "float32",
        4,
    ),
    "a stencil of bfloat16": (
        lambda x: x.at[:, 2:-1].set(x[:, 1:-2] - x[:, 3:]),
        (512, 1024),
        "bfloat16",
        8,
    ),
    "reversed rows": (lambda x: lax.rev(x, (0,)), (ROWS, 16), "float32", 4),
    "repeated rows": (
        lambda x: xarr.astype(x, "float32") + xarr.broadcast_to(x[:1] * 2, (ROWS, 16)),
        (ROWS, 16),
        "float32",
        4,
    ),
    "axes of odd sizes": (lambda x: x * 2 + 1, (4, BUSY // 8, 13), "float32", 4),
    "float64": (lambda x: x * x, (2, BUSY), "float64", 2),
    "bfloat16": (lambda x: x * x, (BUSY, 8), "bfloat16", 8),
    "bytes": (lambda x: x * x, (BUSY, 16), "uint8", 16),
    "bools": (lambda x: x > 3, (BUSY, 4), "float32", 4),
    "two widths": (lambda x: xarr.astype(x, "float64"), (BUSY, 4), "float32", 2),
}


@pytest.mark.sampled
@needs_compiler
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", MOVES)
def test_neighbours_are_stored_at_once(
    name: str, order: str, cupy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    function, shape, dtype, width = MOVES[name]
    monkeypatch.setattr(device(cupy), "order", order)
    device(cupy).texts.clear()
    compiled = xarr.jit(function)
    result = np.asarray(compiled(numbers(*shape, dtype=dtype)))
    with xarr.use_backend("numpy"):
        assert_same(result, np.asarray(function(numbers(*shape, dtype=dtype))))
    assert any(f"vectors<{width}>(out0)[" in text for text in device(cupy).texts)


@needs_compiler
@pytest.mark.parametrize(
    "name", ["rows, filled", "rows one after the other", "axes of odd sizes", "padded columns"]
)
def test_vectors_do_not_race(name: str, cupy: Any) -> None:
    function, shape, dtype, _ = MOVES[name]
    device(cupy).races = True
    np.asarray(xarr.jit(function)(numbers(*shape, dtype=dtype)))
    assert any("vectors<" in text for text in device(cupy).texts)


@pytest.mark.parametrize(
    ("function", "types"),
    [
        (lambda x: x + 1, ["f32[65536]"]),
        (lambda x: x + 1, ["f32[1048577]"]),
        (lambda x: x + 1, ["c128[1048576]"]),
        (lambda x, i: x.at[i].get(mode="clip"), ["f32[50,15]", "s32[262144]"]),
        (lambda x, i: lax.dynamic_slice(x, (i,), (2**20,)), ["f32[1048580]", "s32[]"]),
        (lambda x: lax.slice(x, (1,), (2**20 + 1,)), ["f32[1048581]"]),
        (lambda x: lax.rev(x, (0,)), ["f32[1048576]"]),
    ],
    ids=["few", "odd", "wide elements", "odd rows", "any offset", "odd offset", "backwards"],
)
def test_what_does_not_lie_side_by_side_is_stored_alone(function: Any, types: list[str]) -> None:
    graph: Any = xarr.jit(function).lower(*types).stage("decomposed")
    assert "vectors<" not in emit(program_of(graph)).text


@needs_compiler
@pytest.mark.parametrize("axis", [0, 1])
def test_an_index_that_is_stored_keeps_its_axis(axis: int, cupy: Any) -> None:
    shape = (4, BUSY)
    result = np.asarray(lax.broadcasted_iota("int64", shape, axis))
    np.testing.assert_array_equal(result, np.indices(shape)[axis])


def test_the_index_of_a_row_is_read_once_for_a_vector() -> None:
    graph: Any = (
        xarr.jit(lambda x, i: x.at[i].get(mode="clip")).lower("bf16[50,64]", "s32[65536]").stage("decomposed")
    )
    text = emit(program_of(graph)).text
    assert len(re.findall(r"in1\[", text)) == 1 and "i < 524288" in text
    assert "vectors<" not in emit(program_of(graph), has_vectors=False).text
    assert "vectors<" not in emit(program_of(graph), any_sizes=True).text


def take(x: Any, i: Any) -> Any:
    return x.at[i].get(mode="clip")


@pytest.mark.parametrize(
    ("function", "types", "options", "wanted"),
    [
        (take, ["f32[200000000,16]", "s32[1000]"], {}, "in0[16ll * v"),
        (take, ["f32[2000000000,16]", "s64[1000000]"], {}, "vectors<4>(in0)[4ll * v"),
        (take, ["f32[2000000000,16]", "s64[1000000]"], {"has_vectors": False}, "in0[16ll * v"),
        (take, ["f32[2000000000,16]", "s64[1000000]"], {"any_sizes": True}, "int64 stride"),
        (take, ["f32[50,16]", "s32[300000000]"], {}, "for (int64 i = (int64)blockIdx.x"),
        (take, ["f32[50,16]", "s32[300000000]"], {"any_sizes": True}, "for (int64 i = (int64)blockIdx.x"),
        (take, ["f32[4000000000]", "s64[10]"], {}, "> 3999999999ll ? 3999999999ll : v"),
        (
            lambda x, i: lax.dynamic_slice(x, (i, 0), (1000, 16)),
            ["f32[200000000,16]", "s32[]"],
            {},
            "in0[i + 16ll * v",
        ),
        (
            lambda x, i: xarr.concatenate([x, x[: 2**20]], axis=0),
            ["f32[2000000000,2]", "s32[]"],
            {},
            "for (int64 i = (int64)blockIdx.x",
        ),
    ],
)
def test_offsets_behind_2_to_the_31_are_long(
    function: Any, types: list[str], options: dict[str, bool], wanted: str
) -> None:
    graph: Any = xarr.jit(function).lower(*types).stage("decomposed")
    assert wanted in emit(program_of(graph), **options).text


class LentMemory:
    """An array as another library shows it to CUDA."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array
        self.__cuda_array_interface__ = {**array.__array_interface__, "version": 3}


@needs_compiler
@pytest.mark.parametrize("offset", [0, 1, 2, 4])
def test_arrays_of_others_lie_at_any_multiple_of_their_elements(offset: int, cupy: Any) -> None:
    bytes = np.empty(4 * (4 * BUSY + 8) + 16, np.uint8)
    start = -bytes.ctypes.data % 16
    memory = bytes[start:][: 4 * (4 * BUSY + 8)].view("float32")
    memory[:] = np.arange(memory.size)
    own = memory[offset : offset + 4 * BUSY]
    compiled = xarr.jit(lambda x, y: x * 2 + y)
    y = numbers(4 * BUSY)
    lent = xarr.asarray(LentMemory(own), copy=False)
    for x in (lent, xarr.asarray(own), lent):
        assert_same(np.asarray(compiled(x, y)), own * 2 + np.asarray(y))
    texts = [text for text in device(cupy).texts if "+ in1" in text or "at[lane]" in text]
    assert len(texts) == (1 if offset % 4 == 0 else 2)


# --- the emulator and the compiler -------------------------------------------------------------------------------

HELPERS = emit(program_of(graph_of(lambda x: x + 1, np.zeros(4 * BUSY, "float32")))).text.split('extern "C"')[
    0
]


def launch(body: str, x: np.ndarray[Any, Any], y: np.ndarray[Any, Any], races: bool = False) -> None:
    text = f'{HELPERS}\nextern "C" __global__ void k(const float *x, float *y) {{\n{body}\n}}\n'
    arguments = [(each.ctypes.data, each.nbytes) for each in (x, y)]
    Module(text, races).launch("k", [1], [2], arguments)


def aligned_zeros(count: int) -> np.ndarray[Any, Any]:
    bytes = np.zeros(4 * count + 32, np.uint8)
    return bytes[-bytes.ctypes.data % 16 :][: 4 * count].view("float32")


@needs_compiler
@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("vectors<4>(y)[threadIdx.x] = vectors<4>(x)[0];", r"y\[1\] is outside of its 1 elements"),
        ("vectors<4>(y)[0] = vectors<4>(x)[2];", r"x\[2\] is outside of its 2 elements"),
        ("vectors<4>(y)[0] = vectors<4>(x + 1)[0];", "x is not aligned to the 16 bytes of a vector"),
    ],
)
def test_the_emulator_checks_vectors(body: str, message: str) -> None:
    with pytest.raises(LaunchError, match=message):
        launch(body, aligned_zeros(8), aligned_zeros(4))


@needs_compiler
def test_the_emulator_finds_a_race_with_one_element_of_a_vector() -> None:
    body = "if (threadIdx.x == 0) vectors<4>(y)[0] = vectors<4>(x)[0];\nif (threadIdx.x == 1)\ny[2] = 1.0f;"
    with pytest.raises(LaunchError, match=r"race: .*y\[2\]"):
        launch(body, aligned_zeros(8), aligned_zeros(4), races=True)


@nvrtc.needed
@pytest.mark.parametrize("name", MOVES)
def test_vectors_are_single_instructions_in_registers(name: str) -> None:
    function, shape, dtype, _ = MOVES[name]
    text = emit(program_of(graph_of(function, numbers(*shape, dtype=dtype)))).text
    for architecture in ("sm_75", "sm_90"):
        for usage in nvrtc.usage_of(text, architecture, OPTIONS):
            assert usage.stack == usage.spills == 0, f"{architecture}: {usage}\n{text}"
    assert re.search(r"st\.global\.v[24]\.", nvrtc.ptx_of(text, OPTIONS))
