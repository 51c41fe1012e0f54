"""Values that few elements need: the right elements have them, and the others never run their code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from tests.compare import assert_same
from tests.support.elementwise_kernels import Kernel
from xarr.compiler.loop_ir.scalars import Value
from xarr_numpy.compiled.codegen import slow_paths

WIDTHS = (1, 8, 16)
F64 = np.dtype(np.float64)


def rare(count: int, where: Sequence[int]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """1, 2, 3, …, negative at some indices."""
    result = np.arange(1.0, count + 1)
    result[list(where)] *= -1
    return result


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(
    "where", [(), (0,), (7,), (8,), (15,), (0, 7), (3, 4, 5), tuple(range(48)), (47,)], ids=str
)
def test_elements_where_the_condition_holds(where: tuple[int, ...], width: int) -> None:
    x = rare(48, where)
    kernel = Kernel(lambda x: x.lt(0.0).rarely((-x).sqrt(), x + 1.0), [F64], width)
    assert_same(kernel(x), np.where(x < 0, np.sqrt(np.abs(x)), x + 1))


@pytest.mark.parametrize("width", WIDTHS)
def test_costly_code_reads_each_of_its_inputs(width: int) -> None:
    x, y, z = rare(32, (1, 9, 17, 31)), np.arange(100.0, 132), np.arange(32.0) / 8
    kernel = Kernel(lambda x, y, z: x.lt(0.0).rarely(y / z - x, z), [F64] * 3, width)
    assert_same(kernel(x, y, z), np.where(x < 0, y / np.where(z == 0, 1, z) - x, z))


@pytest.mark.parametrize("width", WIDTHS)
def test_one_costly_value_within_another(width: int) -> None:
    def function(x: Value) -> Value:
        return x.lt(0.0).rarely(x.lt(-20.0).rarely(x * 2.0, x * 3.0), x)

    x = rare(48, (2, 30, 31, 40))
    assert_same(Kernel(function, [F64], width)(x), np.where(x < 0, np.where(x < -20, x * 2, x * 3), x))


def test_costly_code_stays_out_of_the_loop() -> None:
    """The remainder of integers by 0 traps: the function must not run where the condition does not hold."""
    text = slow_paths.scalar("slow", "i32", ["i32"], ["%0 = sdiv i32 7, %a0"], "%0")
    assert text.splitlines()[0].endswith("noinline cold nounwind {")
    for width in WIDTHS:
        divide = Kernel(lambda x: x.ne(0).rarely(x.constant(7).rem(x), x), [np.int32], width)
        x = np.array([0, 1, 0, 2, -7, 0, 0, 3] * 4, np.int32)
        assert_same(divide(x), np.array([0, 0, 0, 1, 0, 0, 0, 1] * 4, np.int32))
