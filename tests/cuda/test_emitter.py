"""The text of kernels: readable, with indices as narrow as they may be, and nothing that the emitter does not know."""

from __future__ import annotations

import shutil
from typing import Any

import numpy as np
import pytest

import xarr
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
from xarr_cupy.emitter import emit

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


def test_indices_are_long_where_an_offset_does_not_fit() -> None:
    assert "int64 i = (int64)blockIdx.x" in text(lambda x: x + 1, "f32[65536,65536]")
    moved = text(lambda x: lax.slice(x, (0, 0), (65536, 2)), "f32[65536,65536]")
    assert "int i = blockIdx.x" in moved and "in0[65536ll * i" in moved


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


def fill(runs: Runs, inner: Runs = Runs.SERIAL, atomic: Atomic | None = None) -> Kernel:
    """A program that fills a buffer of float32."""
    values = Values()
    out = Buffer("out0", np.dtype(np.float32), 12, "out")
    rows, columns = Loop(index_value(values, "i"), 3, runs), Loop(index_value(values, "j"), 4, inner)
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


def test_atomics_of_floats_and_local_buffers_are_refused() -> None:
    with pytest.raises(LoopError, match=r"no CUDA C\+\+ for an atomic maximum of float32"):
        emit(fill(POINTS, atomic=Atomic.MAXIMUM))
    kernel = fill(POINTS)
    kernel.locals = (Buffer("kept", np.dtype(np.float32), 4, "local"),)
    with pytest.raises(LoopError, match="no local buffers, wanted kept"):
        emit(kernel)


def test_programs_of_another_schedule_are_refused() -> None:
    function, arrays = CASES["reduce"]
    with pytest.raises(LoopError, match="wanted grid, or grid block"):
        emit(serial.program_of(graph_of(function, *arrays)))
