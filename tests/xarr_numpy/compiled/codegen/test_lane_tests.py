"""Comparisons of lanes' numbers with one number: of narrow integers, right at borders and at the ends of int64."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite")

import xarr
from xarr.compiler.loop_ir.loops import Affine, Buffer, Kernel, Loop, Runs, Store, index_value, load
from xarr.compiler.loop_ir.scalars import BOOL, INT64, Values
from xarr_numpy.compiled.codegen import emitter
from xarr_numpy.compiled.codegen.lane_lines import LaneTest, lane_test

Array = np.ndarray[Any, Any]
COMPARISONS = {name: getattr(operator, name) for name in ("lt", "le", "gt", "ge", "eq", "ne")}
ENDS = np.iinfo(np.int64)


def test_comparisons_of_an_index_are_seen_from_both_sides() -> None:
    values = Values()
    i, k = index_value(values, "i"), values.argument("k", INT64)
    assert lane_test((i + 2).lt(k), {i}) == LaneTest("lt", i, 2, k)
    assert lane_test(k.lt(3 + (i + 2)), {i}) == LaneTest("gt", i, 5, k)
    assert lane_test(i.eq(k), {i}) == LaneTest("eq", i, 0, k)


def test_other_comparisons_are_none() -> None:
    values = Values()
    i, k = index_value(values, "i"), values.argument("k", INT64)
    assert lane_test((i * 2).lt(k), {i}) is None
    assert lane_test((i + k).lt(k), {i}) is None
    assert lane_test((i + ENDS.max).lt(k), {i}) is None, "the sum may be no int64"
    assert lane_test(i.lt(k), ()) is None
    assert lane_test(i + k, {i}) is None


@pytest.mark.usefixtures("fused")
@pytest.mark.parametrize("name", COMPARISONS)
@pytest.mark.parametrize("dtype", ["bool", "int8", "float64"])
def test_masks_by_position(name: str, dtype: str) -> None:
    compare = COMPARISONS[name]
    x = np.ones(300, dtype)

    def mask(x: Any, k: Any) -> Any:
        return xarr.where(compare(xarr.arange(300) - 3, k), x, xarr.zeros_like(x))

    jitted = xarr.jit(mask)
    for k in (ENDS.min, ENDS.min + 3, -4, -3, 0, 13, 60, 61, 124, 125, 252, 296, 297, ENDS.max - 3, ENDS.max):
        wanted = np.where(compare(np.arange(300) - 3, k), x, np.zeros_like(x))
        assert np.array_equal(np.asarray(jitted(x, np.int64(k))), wanted), k


@pytest.mark.sampled
@pytest.mark.usefixtures("fused")
@pytest.mark.parametrize(
    "shape", [(1, 1), (3, 2), (4, 15), (5, 16), (2, 33), (3, 64), (2, 65), (3, 130), (2, 257)]
)
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "float32"])
def test_neighbours_inside_of_a_border_and_what_is_reduced_of_them(
    shape: tuple[int, int], dtype: str
) -> None:
    x = np.random.default_rng(3).integers(0, 5, shape).astype(dtype)

    def spread(xp: Any, x: Any) -> Any:
        p = xp.pad(x, 1)
        near = (p[:-2, 1:-1] != p[2:, 1:-1]) | (p[1:-1, :-2] != p[1:-1, 2:])
        return near, (near & (x != 0)).any(), xp.where(near, x, x * x).max()

    got = xarr.jit(lambda x: spread(xarr, x))(x)
    for mine, wanted in zip(got, spread(np, x), strict=True):
        assert np.array_equal(np.asarray(mine), wanted)


def _kernel_of_truths(bound: int) -> Kernel:
    """`out[i] = i + 1 < bound ? in[i] : false` for 640 bools."""
    values = Values()
    source, target = Buffer("in0", BOOL, 640, "in"), Buffer("out0", BOOL, 640, "out")
    loop = Loop(index_value(values, "i"), 640, Runs.THREADS | Runs.LANES)
    condition = (loop.index + 1).lt(bound)
    offset = Affine(((loop.index, 1),))
    loop.body.append(Store(target, offset, load(values, source, offset, condition)))
    return Kernel((source,), (target,), (), (), (loop,))


def test_bytes_fill_registers_and_so_do_the_numbers_of_their_lanes() -> None:
    text, _ = emitter.emit(_kernel_of_truths(300))
    assert "icmp slt <64 x i8>" in text
    assert "<64 x i64>" not in text


def test_what_holds_in_every_iteration_is_not_asked() -> None:
    text, _ = emitter.emit(_kernel_of_truths(641))
    assert "load <64 x i8>" in text
    assert "ssub.sat" not in text
