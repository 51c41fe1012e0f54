"""Clamped indices that grow or fall by one from lane to lane: elements side by side are loaded at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr.compiler.loop_ir.loops import Kernel, index_value
from xarr.compiler.loop_ir.scalars import INT64, Value, Values
from xarr.compiler.plan.loop_programs import LoopPrograms
from xarr_numpy.compiled.codegen.emitter import emit
from xarr_numpy.compiled.codegen.lane_lines import lane_line

pytest.importorskip("llvmlite")
pytestmark = pytest.mark.implicit

SIZE = 37

#: Indices of positions and a number, of which one follows a line of lanes where it is not clamped.
LINES: dict[str, Callable[[Any, Any], Any]] = {
    "down": lambda i, k: xarr.clip(k - i, 0, SIZE - 1),
    "up": lambda i, k: xarr.clip(i - k, 0, SIZE - 1),
    "up, into a part": lambda i, k: xarr.clip(i + k, 5, 20),
    "limits that cross": lambda i, k: xarr.clip(xarr.minimum(xarr.maximum(i + k, 20), 10), 0, SIZE - 1),
    "limits that are numbers": lambda i, k: xarr.clip(xarr.minimum(i + k, k * k), 0, SIZE - 1),
    "from the end": lambda i, k: xarr.clip(i, -SIZE, SIZE - 1) - SIZE,
    "at the ends of the type": lambda i, k: xarr.clip(i + (k + 2**62) * 2, 0, SIZE - 1),
    "by two": lambda i, k: xarr.clip(2 * i - k, 0, SIZE - 1),
    "as narrow numbers": lambda i, k: xarr.clip((i - k).astype("int8"), 0, SIZE - 1),
    "all the same": lambda i, k: xarr.clip(0 * i + k, 0, SIZE - 1),
    "modulo": lambda i, k: (i + k) % SIZE,
}


@pytest.mark.sampled
@pytest.mark.parametrize("name", LINES)
@pytest.mark.parametrize("dtype", ["float64", "float32", "bool", "int8", "int64", "complex128", "float16"])
def test_elements(name: str, dtype: str) -> None:
    x = np.random.default_rng(0).integers(0, 50, SIZE).astype(dtype)

    def function(x: Any, ks: Any) -> Any:
        i = xarr.arange(SIZE + 30)

        def step(out: Any, k: Any) -> Any:
            chosen = x[LINES[name](i, k)]
            return out, (chosen, xarr.where(i < k, chosen, x[0]).sum())

        return xarr.lax.scan(step, xarr.zeros(()), ks)[1]

    arguments = [xarr.asarray(x), xarr.asarray(np.array([-70, -3, 0, 1, 7, 19, 36, 40, 90]))]
    with xarr.config(fusion="off"):
        wanted = [np.asarray(each) for each in xarr.jit(function)(*arguments)]
    for got, expected in zip(xarr.jit(function)(*arguments), wanted, strict=True):
        assert_same(np.asarray(got), expected)


def line_of(make: Callable[[Value, Value], Value]) -> tuple[int, int, int] | None:
    """The step of a line, and how many limits it has below and above."""
    values = Values()
    lane, number = index_value(values, "i"), values.argument("k", INT64)
    varying = {lane}

    def varies(value: Value) -> bool:
        return value in varying or any(map(varies, value.operands))

    line = lane_line(make(lane, number), varying, varies)
    return line and (line.step, len(line.lows), len(line.highs))


def test_lines() -> None:
    rows: list[tuple[Callable[[Value, Value], Value], tuple[int, int, int] | None]] = [
        (lambda i, k: i, (1, 0, 0)),
        (lambda i, k: k - i, (-1, 0, 0)),
        (lambda i, k: -(i + 3), (-1, 0, 0)),
        (lambda i, k: i.lt(3).select(3, i), (1, 1, 0)),
        (lambda i, k: i.gt(k).select(k, i), (1, 0, 1)),
        (lambda i, k: k.lt(i).select(k, i), (1, 0, 1)),
        (lambda i, k: i.le(k).select(i, k), (1, 0, 1)),
        (lambda i, k: i.lt(0).select(i + 9, i), (1, 1, 0)),
        (lambda i, k: i.lt(1).select(i + 9, i), None),
        (lambda i, k: i.lt(3).select(4, i), None),
        (lambda i, k: i.eq(3).select(3, i), None),
        (lambda i, k: k.lt(3).select(3, i), None),
        (lambda i, k: i + i, None),
        (lambda i, k: i - i, None),
        (lambda i, k: i * 2, None),
        (lambda i, k: k, None),
        (lambda i, k: i.convert(np.int32).convert(INT64), None),
    ]
    for number, (make, wanted) in enumerate(rows):
        assert line_of(make) == wanted, number


FILLS: dict[str, Callable[[Any, Any], Any]] = {
    "the last that is marked": lambda marks, i: xarr.maximum.accumulate(xarr.where(marks, i, 0)),
    "clamped": lambda marks, i: xarr.clip(xarr.maximum.accumulate(xarr.where(marks, i, -3)), 2, 150),
    "the greatest number": lambda marks, i: xarr.maximum.accumulate((i * 7919) % 61),
    "narrow": lambda marks, i: xarr.maximum.accumulate(xarr.where(marks, i, 0).astype("int16")),
    "the least": lambda marks, i: xarr.minimum.accumulate(200 - i * marks),
    "a sum": lambda marks, i: xarr.cumsum(xarr.where(marks, 1, 0)) - 1,
}


@pytest.mark.parametrize("name", FILLS)
@pytest.mark.parametrize("dtype", ["float64", "float32", "bool", "int8", "complex128", "float16"])
def test_indices_that_never_fall(name: str, dtype: str) -> None:
    random = np.random.default_rng(1)
    x = xarr.asarray(random.integers(0, 50, 203).astype(dtype))

    def function(x: Any, marks: Any) -> Any:
        return x[FILLS[name](marks, xarr.arange(203))]

    for part in (0.0, 0.02, 0.3, 1.0):
        marks = xarr.asarray(random.random(203) < part)
        with xarr.config(fusion="off"):
            wanted = np.asarray(xarr.jit(function)(x, marks))
        assert_same(np.asarray(xarr.jit(function)(x, marks)), wanted)


@pytest.mark.parametrize("name", FILLS)
def test_which_indices_never_fall(name: str) -> None:
    def function(x: Any, marks: Any) -> Any:
        return x[FILLS[name](marks, xarr.arange(203))] * 2

    loops = xarr.jit(function).lower("f64[203]", "pred[203]").stage("loops")
    assert isinstance(loops, LoopPrograms)
    texts = [emit(each)[0] for _, each in loops.programs if isinstance(each, Kernel)]
    assert any("@line." in text for text in texts) == (name not in ("the least", "a sum", "narrow"))
