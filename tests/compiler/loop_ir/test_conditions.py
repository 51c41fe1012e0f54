"""Loops of loop programs that end by a condition: the rules that they keep to, and who refuses them."""

from __future__ import annotations

import numpy as np
import pytest

from xarr.compiler.loop_ir.loops import (
    Affine,
    Buffer,
    Carry,
    Kernel,
    Loop,
    LoopError,
    Runs,
    Store,
    index_value,
    load,
    new_carry,
)
from xarr.compiler.loop_ir.scalars import Values
from xarr.compiler.loop_ir.verifier import verify
from xarr_numpy.compiled.codegen import emitter

F32 = np.dtype(np.float32)


def serial_program() -> tuple[Kernel, Loop]:
    """A program with a loop that doubles a number until it is 100 at least, and that loop."""
    values = Values()
    x, out = Buffer("in0", F32, 4, "in"), Buffer("out0", F32, 4, "out")
    rows = Loop(index_value(values, "row"), 4, Runs.THREADS)
    at = Affine(((rows.index, 1),))
    steps, (argument, result) = Loop(index_value(values, "step"), 9), new_carry(values, F32)
    steps.carries.append(Carry(load(values, x, at), argument, argument + argument, result))
    steps.condition = argument.lt(100)
    rows.body += [steps, Store(out, at, result)]
    return Kernel((x,), (out,), (), (), [rows]), steps


def test_a_loop_that_ends_by_a_condition() -> None:
    kernel, _ = serial_program()
    assert "ends unless" in str(verify(kernel))
    with pytest.raises(LoopError, match="no LLVM IR for a loop that runs by a condition"):
        emitter.emit(kernel)


def test_l3_a_condition_of_another_type() -> None:
    kernel, steps = serial_program()
    steps.condition = steps.carries[0].argument
    with pytest.raises(LoopError, match=r"^L3: a condition: wanted \(bool\), got \(float32\)"):
        verify(kernel)


def test_l9_a_condition_of_a_loop_that_is_not_serial() -> None:
    kernel, steps = serial_program()
    steps.runs = Runs.BLOCK
    kernel.phases[0].runs = Runs.GRID
    with pytest.raises(LoopError, match=r"^L9: a loop with a condition is shared"):
        verify(kernel)
