"""Loops in parts, by conditions that decide what is stored: sums that a part does not need are left out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from xarr.compiler.loop_ir.loops import (
    Accumulator,
    Affine,
    Buffer,
    Kernel,
    Loop,
    Runs,
    Store,
    index_value,
    load,
)
from xarr.compiler.loop_ir.scalars import INT64, Value, Values
from xarr.compiler.loop_ir.split_loops import split_by_conditions
from xarr.compiler.loop_ir.verifier import verify

ROWS, TERMS = 9, 5
FLOAT = np.dtype("float64")


def kernel_of(stored: Callable[[Value, Value, Value], Value]) -> Kernel:
    """Sums of rows; `stored` says what is stored, given the row, a number and the sum."""
    values = Values()
    matrix, number = Buffer("in0", FLOAT, ROWS * TERMS, "in"), Buffer("in1", INT64, 1, "in")
    out = Buffer("out0", FLOAT, ROWS, "out")
    row, column = index_value(values, "i0"), index_value(values, "i1")
    term = load(values, matrix, Affine(((row, TERMS), (column, 1))))
    x, y, total = (values.make(op, (), FLOAT, op, unique=True) for op in ("argument", "argument", "result"))
    zero = values.constant(0.0, FLOAT)
    inner = Loop(column, TERMS, accumulators=[Accumulator((zero,), (term,), (x,), (y,), (x + y,), (total,))])
    store = Store(out, Affine(((row, 1),)), stored(row, load(values, number, Affine()), total))
    return Kernel((matrix, number), (out,), (), (), [Loop(row, ROWS, body=[inner, store])])


#: What is stored of the row `i`, a number `k` and the sum `x`, and how many loops that makes.
STORED: dict[str, tuple[Callable[[Value, Value, Value], Value], int]] = {
    "behind": (lambda i, k, x: i.ge(k).select(x, 0.0), 2),
    "in front": (lambda i, k, x: i.ge(k).select(7.0, x), 2),
    "between": (lambda i, k, x: (i.ge(k) & i.lt(k + 2)).select(x, 0.0), 3),
    "not behind": (lambda i, k, x: (~i.ge(k)).select(x, 0.0), 2),
    "at": (lambda i, k, x: i.eq(k).select(x * 2.0, 0.0), 3),
    "of those that are large": (lambda i, k, x: (i.ge(k) & x.gt(3.0)).select(x, 0.0), 2),
    "chosen first": (lambda i, k, x: -(i.le(k).select(x, 0.0)), 2),
    "a number alone": (lambda i, k, x: k.ge(3).select(x, 0.0), 1),
    "all but": (lambda i, k, x: i.ne(k).select(x, 0.0), 1),
    "both of the sum": (lambda i, k, x: i.ge(k).select(x, x * 2.0), 1),
    "beside the sum": (lambda i, k, x: i.ge(k).select(x, 0.0) + x, 1),
    "outside": (lambda i, k, x: (i.ge(k) | i.lt(k - 2)).select(x, 0.0), 1),
}


@pytest.mark.parametrize("name", STORED)
def test_parts(name: str) -> None:
    stored, parts = STORED[name]
    kernel = verify(kernel_of(stored))
    split = verify(split_by_conditions(kernel, lambda phase: True))
    (phase,) = split.phases
    assert (split is kernel) is (parts == 1)
    if parts > 1:
        loops = [part for part in phase.body if isinstance(part, Loop)]
        inner = [part for loop in loops for part in loop.body if isinstance(part, Loop)]
        assert len(loops) == parts and len(inner) == 1


@pytest.mark.parametrize("name", ["behind", "between", "of those that are large"])
def test_iterations_that_threads_share_ask_each(name: str) -> None:
    kernel = kernel_of(STORED[name][0])
    (phase,) = verify(split_by_conditions(kernel, lambda phase: False)).phases
    assert phase.extent == ROWS and [isinstance(each, Loop) for each in phase.body] == [True, True]
    in_lanes = kernel_of(lambda i, k, x: i.ge(k).select(x, 0.0))
    in_lanes.phases[0].runs |= Runs.LANES
    assert split_by_conditions(in_lanes, lambda phase: False) is in_lanes
