"""What moves elements, as part of compiled loops: transpositions in tiles, reverses, pads, steps, concatenations."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from itertools import permutations
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr import lax
from xarr.base.configuration import current as config
from xarr.ir import ops
from xarr.ir.graph import Graph
from xarr_numpy import engine
from xarr_numpy.compiled.codegen.emitter import emit

pytest.importorskip("llvmlite")
pytestmark = pytest.mark.implicit

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(6)
DTYPES = ["bool", "int8", "uint16", "int32", "int64", "float16", "bfloat16", "float32", "float64"]


def numbers(shape: tuple[int, ...], dtype: str) -> xarr.Array:
    return xarr.asarray(RNG.integers(0, 2 if dtype == "bool" else 50, shape), dtype=dtype)


def assert_same_bits(function: Callable[..., Any], *arrays: Any, kernels: int = 1) -> str:
    """Compiled as op by op; the loops as text."""
    with config(fusion="off"):
        wanted = np.asarray(function(*arrays))
    with config(fusion="compiled"):
        fused = xarr.lower(function, *arrays).stage("fused")
        assert isinstance(fused, Graph)
        assert sum(isinstance(node.op, ops.Fusion) for node in fused.nodes) == kernels, fused.to_text()
        assert_same(np.asarray(function(*arrays)), wanted)
        return str(xarr.lower(function, *arrays).stage("program"))


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(200, 300), (256, 256), (33, 1000), (1000, 33), (191, 257)], ids=str)
def test_transposed_matrices(shape: tuple[int, int], dtype: str) -> None:
    x, y = numbers(shape, dtype), numbers(shape[::-1], dtype)
    text = assert_same_bits(lambda x, y: xarr.maximum(x.T, y), x, y)
    assert "tile0" in text


@pytest.mark.sampled
@pytest.mark.parametrize("axes", list(permutations(range(3)))[1:], ids=str)
@pytest.mark.parametrize("shape", [(40, 50, 60), (3, 130, 140), (130, 3, 140), (130, 140, 3)], ids=str)
def test_every_order_of_three_dimensions(shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    x, v = numbers(shape, "float32"), numbers((shape[axes[2]],), "float32")
    assert xarr.transpose(x, axes).shape[2] == v.shape[0]
    both = (lambda x, v: xarr.transpose(x, axes) + v, x, v)
    with config(fusion="off"):
        wanted = np.asarray(both[0](*both[1:]))
    with config(fusion="compiled"):
        assert_same(np.asarray(both[0](*both[1:])), wanted)


def test_channels_last_to_first_with_what_is_computed_on_both_sides() -> None:
    x, y = numbers((4, 20, 30, 64), "float32"), numbers((4, 64, 20, 30), "float32")
    text = assert_same_bits(lambda x, y: xarr.transpose(x * 2, (0, 3, 1, 2)) - y, x, y)
    assert "tile0" in text


def test_two_operands_in_tiles_of_their_own() -> None:
    x, y, z = numbers((100, 400), "float64"), numbers((100, 400), "float64"), numbers((400, 100), "float64")
    text = assert_same_bits(lambda x, y, z: (x.T + z) * (y.T - x.T), x, y, z)
    assert "tile1" in text and "tile2" not in text


def test_a_transposition_of_what_is_padded_or_cut_is_not_read_in_tiles() -> None:
    x = numbers((200, 300), "float32")
    assert_same_bits(lambda x: xarr.transpose(lax.pad(x, np.float32(1), [(1, 2, 0), (3, 0, 0)])) + 1, x)
    assert_same_bits(lambda x: x[5:, ::2].T + 1, x)


@pytest.mark.parametrize("dtype", DTYPES)
def test_reverses_steps_pads_and_concatenations(dtype: str) -> None:
    x, y = numbers((70, 90), dtype), numbers((70, 45), dtype)
    zero = np.zeros((), x.dtype)
    assert_same_bits(lambda x: xarr.maximum(x[::-1, ::-1], x), x)
    assert_same_bits(lambda x, y: xarr.maximum(x[:, ::2], y), x, y)
    assert_same_bits(lambda x: xarr.maximum(x[3::3], x[:23]), x)
    assert_same_bits(lambda x: xarr.maximum(lax.pad(x, zero, [(2, 1, 0), (-3, 40, 0)])[:70, :90], x), x)
    assert_same_bits(lambda x, y: xarr.maximum(xarr.concatenate([y, y[:, ::-1]], axis=1), x), x, y)
    assert_same_bits(lambda x: xarr.max(x[::-1, 1::4], axis=0), x)
    assert_same_bits(lambda x: xarr.max(xarr.concatenate([x, x[::-1]]), axis=1), x)


@pytest.mark.parametrize("dtype", [*DTYPES, "complex64", "complex128"])
def test_elements_far_apart_are_loaded_one_by_one(dtype: str) -> None:
    x, y = numbers((67, 9), dtype), numbers((9, 67), dtype)
    for function in (
        lambda x, y: y == x.T,
        lambda x, y: x.T[::-1, ::-1] == y,
        lambda x, y: x[:, 3] == y[0],
        lambda x, y: (y == x.T).sum(axis=1),
        lambda x, y: x.reshape(-1)[:580:7] == x.reshape(-1)[580:0:-7],
    ):
        assert_same_bits(function, x, y)
    with config(fusion="compiled"):
        group = xarr.lower(lambda x, y: y == x.T, x, y).stage("fused").nodes[-1].op
    text = emit(engine.schedule().build(group))[0]
    assert ("@strided." in text) == (dtype != "complex128")


@pytest.mark.parametrize(
    "shape", [(3, 150_001), (2, 131_072), (2, 3, 60_000), (3, 900, 150), (1, 5, 70_000)], ids=str
)
def test_few_rows_are_cut_for_several_processors(shape: tuple[int, ...]) -> None:
    x, v = numbers(shape, "float32"), numbers(shape[:-1], "float32")
    text = assert_same_bits(lambda x, v: x * v[..., None] + 1, x, v)
    outermost = re.search(r"parallel (?:vector )?for i0 < (\d+):", text)
    assert outermost and int(outermost[1]) >= 8
    assert_same_bits(lambda x, v: xarr.max(x * v[..., None], axis=-1), x, v)


#: The last operand ends where the memory of the process does.
AT_THE_END = """
import ctypes, mmap
import numpy as np
import xarr
from xarr.ir import ops
from xarr_numpy import engine

def function(x, y):
    joined = xarr.concat((xarr.pad(x, ((1, 1), (0, 0), (1, 0)))[:, :, :6], y), axis=1)
    return xarr.sin(joined) * joined

shape, page = (9, 8, 6), mmap.PAGESIZE
held = mmap.mmap(-1, 2 * page)
address = ctypes.addressof(ctypes.c_char.from_buffer(held))
assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(address + page), page, 0) == 0
last = np.frombuffer(held, np.float32, 432, page - 4 * 432).reshape(shape)
with xarr.config(fusion="compiled"):
    fused = xarr.jit(function).lower("f32[7,5,6]", "f32[9,8,6]").stage("fused")
    (group,) = [node.op for node in fused.nodes if isinstance(node.op, ops.Fusion)]
kernel = engine.kernel(engine.schedule().build(group), group.computation.result_types)
assert np.count_nonzero(kernel.call(np.ones((7, 5, 6), np.float32), last)) == 7 * 5 * 5
"""


@pytest.mark.skipif(os.name != "posix", reason="pages are guarded by mprotect")
def test_short_rows_read_under_a_condition_are_not_read_past_their_end() -> None:
    path = os.pathsep.join(filter(None, sys.path))
    done = subprocess.run([sys.executable, "-c", AT_THE_END], env={**os.environ, "PYTHONPATH": path})
    assert done.returncode == 0
