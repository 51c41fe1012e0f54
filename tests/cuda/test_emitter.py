"""The text of kernels: readable, with indices as narrow as they may be, and nothing that the emitter does not know."""

from __future__ import annotations

import shutil
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.compiler.schedules.serial.test_serial_loops import CASES, graph_of
from tests.cuda.emulator.module import Module
from xarr import lax
from xarr.compiler.loop_ir.loops import (
    Affine,
    Atomic,
    Buffer,
    Kernel,
    Loop,
    LoopError,
    Runs,
    Store,
    index_value,
)
from xarr.compiler.loop_ir.scalars import Values
from xarr.compiler.schedules.gpu.builders import program_of
from xarr.compiler.schedules.gpu.grid_loops import POINTS
from xarr.compiler.schedules.serial import builders as serial
from xarr_cupy.codegen.emitter import emit

needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")


def text(function: Any, *types: str) -> str:
    """The kernels of a function of arrays of these types, without what stands before them."""
    graph: Any = xarr.jit(function).lower(*types).stage("decomposed")
    return emit(program_of(graph)).text.partition('extern "C" __global__ ')[2]


@pytest.mark.implicit
def test_a_thread_takes_points_of_the_grid_and_a_value_is_a_variable() -> None:
    assert (
        text(lambda x, v: x * 2 + v[None, :], "f32[3,4]", "f32[4]")
        == """\
void xarr_0(const float *in0, const float *in1, float *out0) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < 12; i += gridDim.x * blockDim.x) {
        const int i1 = i % 4;
        out0[i] = in0[i] * 2.0f + in1[i1];
    }
}
"""
    )


def test_bounds_are_one_instruction_unless_zeros_meet_or_doubles() -> None:
    def clip(x: Any, bound: float) -> Any:
        low = xarr.full_like(x, bound)
        return lax.select(lax.lt(x, low), low, x), lax.select(lax.gt(x, low), low, x)

    both = text(lambda x: clip(x, 2.0), "f32[3]")
    assert "= at_least(v1, 2.0f);" in both and "= at_most(v1, 2.0f);" in both
    for bound, dtype in ((0.0, "f32"), (-0.0, "f32"), (2.0, "f64"), (float("nan"), "f32")):
        assert "at_" not in text(lambda x, bound=bound: clip(x, bound), f"{dtype}[3]")
    # A selection of something else.
    assert "at_" not in text(lambda x, y: lax.select(lax.lt(x, y), y, x), "f32[3]", "f32[3]")
    assert "at_" not in text(lambda x: lax.select(lax.lt(x, x * 0 + 2), x, x * 0 + 2), "f32[3]")


def test_rounding_to_bfloat16_is_one_function() -> None:
    printed = text(lambda x: x * x, "bf16[3]")
    assert printed.count("narrow_bfloat16(") == 1 and "32767" not in printed
    assert "narrow" not in text(lambda x: x.astype("float8_e4m3fn").astype("float32"), "f32[3]")
    assert "narrow" not in text(lambda x: x.astype("uint16"), "u32[3]")
    assert "narrow" not in text(lambda x: x + lax.convert_element_type(np.uint32(70000), "uint16"), "u16[3]")


@needs_compiler
def test_every_kind_of_float32_is_rounded_to_bfloat16(cupy: Any) -> None:
    """All numbers on either side of a tie, of the ends and of subnormal numbers, and NaN."""
    high = np.arange(2**16, dtype=np.uint32)[::7] << 16
    x = np.concatenate([high + low for low in (0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF)]).view(np.float32)
    result = np.asarray(xarr.asarray(x).astype("bfloat16").astype("float32"))
    with xarr.use_backend("numpy"):
        wanted = np.asarray(xarr.asarray(x).astype("bfloat16").astype("float32"))
    assert_same(result, wanted)
    assert np.isnan(result).any() and np.isinf(result).any()


def test_indices_are_long_where_an_offset_does_not_fit() -> None:
    assert "int64 i = (int64)blockIdx.x" in text(lambda x: x + 1, "f32[65535,65537]")
    assert "vectors<4>(out0)[i]" in text(lambda x: x + 1, "f32[65535,65536]")
    moved = text(lambda x: lax.slice(x, (0, 0), (65536, 2)), "f32[65536,65536]")
    assert "int i = blockIdx.x" in moved and "vectors<2>(in0)[32768ll * i" in moved
    parts = [text(lambda x: lax.concatenate([x[3:], x[:3]], 0), f"s8[{size}]") for size in (2**31, 2**32)]
    assert (
        "const int v1 = 16 * i + lane;" in parts[0] and "const int64 v1 = 16 * (int64)i + lane;" in parts[1]
    )


def test_indices_that_are_read_are_long_where_they_must() -> None:
    """CuPy 14.2 takes wrong elements of so long an array: cupy#10290."""
    gather = text(lambda x, i: x.at[i].get(mode="clip"), "s8[3000000000]", "s64[5]")
    assert "const int64 v1 = in1[i];" in gather and "in0[v3 > 2999999999ll ? 2999999999ll : v3]" in gather


def test_an_index_of_one_number_does_not_hide_another() -> None:
    groups = {"dimension_numbers": ("CN", "OI", "NC"), "batch_group_count": 2}
    convolution = text(lambda x, y: lax.conv_general_dilated(x, y, (), [], **groups), "f32[1,2]", "f32[4,1]")
    assert "in0[i / 2]" in convolution and "in1[i]" in convolution


def test_special_constants_keep_their_bits() -> None:
    result = text(lambda x: lax.select(x > 0, x * np.float32(-0.0), lax.full_like(x, np.nan)), "f32[3]")
    assert "-0.0f" in result and "bits<float>(0x7fc00000u)" in result


def test_integers_wrap() -> None:
    assert "(int32)((uint32)v1 * (uint32)v1)" in text(lambda x: x * x, "s32[3]")
    assert "out0[i] = v1 * v1" in text(lambda x: x * x, "u32[3]")


@needs_compiler
@pytest.mark.parametrize("name", CASES)
def test_texts_of_each_kind_compile(name: str) -> None:
    function, arrays = CASES[name]
    source = emit(program_of(graph_of(function, *arrays)))
    assert list(Module(source.text).kernels) == list(dict.fromkeys(call.name for call in source.calls))


def fill(runs: Runs, inner: Runs = Runs.SERIAL, atomic: Atomic | None = None, count: int = 3) -> Kernel:
    """A program that fills a buffer of float32, of so many rows."""
    values = Values()
    out = Buffer("out0", np.dtype(np.float32), 4 * count, "out")
    rows, columns = Loop(index_value(values, "i"), count, runs), Loop(index_value(values, "j"), 4, inner)
    at = Affine(((rows.index, 4), (columns.index, 1)))
    columns.body.append(Store(out, at, values.constant(1, out.dtype), atomic))
    rows.body.append(columns)
    return Kernel((), (out,), (), (), [rows])


@pytest.mark.parametrize(
    ("runs", "inner", "message"),
    [
        (Runs.SERIAL, Runs.SERIAL, "an outermost loop that runs by serial; wanted grid, or grid block"),
        (Runs.THREADS, Runs.SERIAL, "an outermost loop that runs by threads; wanted grid, or grid block"),
        (Runs.GRID, Runs.WARP, "a loop that runs by warp"),
        (POINTS, Runs.LANES, "a loop that runs by lanes"),
        (Runs.GRID, Runs.LANES, "a loop that runs by lanes"),
    ],
)
def test_words_that_it_does_not_know_are_refused(runs: Runs, inner: Runs, message: str) -> None:
    with pytest.raises(LoopError, match=message):
        emit(fill(runs, inner))


@pytest.mark.parametrize("any_sizes", [False, True])
@pytest.mark.parametrize(
    ("rows", "head"),
    [
        (2**30, "for (int i = blockIdx.x; "),
        (2**31 - 1, "for (int64 i = blockIdx.x; "),
        (2**35, "for (int64 i = blockIdx.x; "),
    ],
)
def test_rows_of_blocks_are_counted_in_long_where_they_are_many(
    rows: int, head: str, any_sizes: bool
) -> None:
    texts = emit(fill(Runs.GRID, Runs.BLOCK, count=rows), any_sizes).text
    assert head in texts and texts.count("i += gridDim.x") == 1


def test_atomics_of_floats_and_local_buffers_are_refused() -> None:
    with pytest.raises(LoopError, match=r"no CUDA C\+\+ for an atomic maximum of float32"):
        emit(fill(POINTS, atomic=Atomic.MAXIMUM))
    kernel = fill(POINTS)
    kernel.locals = (Buffer("kept", np.dtype(np.float32), 4, "local"),)
    with pytest.raises(LoopError, match="no local buffers, wanted kept"):
        emit(kernel)


def test_a_loop_that_begins_at_a_computed_iteration_is_refused() -> None:
    kernel = fill(POINTS)
    rows, columns = kernel.phases[0].walk()
    columns.first = rows.index
    with pytest.raises(LoopError, match="begins at a computed iteration"):
        emit(kernel)


def test_programs_of_another_schedule_are_refused() -> None:
    function, arrays = CASES["reduce"]
    with pytest.raises(LoopError, match="wanted grid, or grid block"):
        emit(serial.program_of(graph_of(function, *arrays)))


def test_a_program_is_printed_with_the_lines_that_built_it(cupy: Any) -> None:
    def softmax(x: Any) -> Any:
        e = lax.exp(lax.sub(x, lax.broadcast_in_dim(lax.reduce_max(x, (1,)), x.shape, (0,))))
        return lax.div(e, lax.broadcast_in_dim(lax.reduce_sum(e, (1,)), x.shape, (0,)))

    printed = xarr.jit(softmax).lower("f32[7,40]").stage("program").text
    first = softmax.__code__.co_firstlineno
    lines = {f"test_emitter.py:{first + k}" for k in (1, 2)}
    (comment,) = [line for line in printed.split("\n") if line.startswith("// div -> f32[7,40], built at ")]
    assert set(comment.partition("built at ")[2].split(", ")) == lines
    assert '// reduce, div\nextern "C" __global__ void xarr_0(' in printed
    np.asarray(xarr.jit(softmax)(xarr.asarray(np.ones((7, 40), np.float32))))
    # Comments are no part of what is compiled, so that the same operations on other lines are the same text.
    texts = [each for each in cupy._engine.driver.texts if "xarr_0" in each]
    assert len(texts) == 1 and "//" not in texts[0] and "int term4" in texts[0]


def test_launches_of_one_kernel_are_counted(cupy: Any) -> None:
    x = np.arange(100.0)
    source = emit(program_of(graph_of(lambda x: lax.sort_with(x, lax.lt), x)))
    printed = xarr.jit(lambda x: lax.sort_with(x, lax.lt)).lower(x).stage("program").text
    assert "// sort; 6 launches\n" in printed
    assert printed.count("// sort") == source.text.count("__global__") < len(source.calls)


def test_operands_stand_in_parentheses_only_where_they_must() -> None:
    printed = text(lambda x: (x - (x - 1) * 2) / (x * x * 3) - -x, "f32[3]")
    assert "out0[i] = (v1 - (v1 - 1.0f) * 2.0f) / (v1 * v1 * 3.0f) - -v1;" in printed
    printed = text(lambda x: lax.select((x > 1) & ~((x < 5) | (x == 2)), x, x + 3), "f32[3]")
    assert "v1 > 1.0f && !(v1 < 5.0f || v1 == 2.0f)" in printed
    printed = text(lambda x: (x & 3) << 1 | (x ^ 5), "u32[3]")
    assert "((v1 & 3u) << 1u) | (v1 ^ 5u)" in printed


def test_kernels_of_single_operations_are_printed(cupy: Any) -> None:
    printed = xarr.jit(lambda x: lax.sort(x, dimension=0)).lower("f32[40,3]").stage("program").text
    assert "// sort\n" in printed and "xarr_0(const float *in0" in printed
    assert "__global__" not in xarr.jit(lambda x: lax.dot(x, x)).lower("f32[4,4]").stage("program").text
