"""The schedule of GPUs: grids of threads that fold in registers, and atomics where the order does not matter.

tests/cuda runs its programs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.compiler.schedules.serial.test_serial_loops import CASES, graph_of
from xarr import lax
from xarr.compiler.loop_ir.loops import Atomic, Kernel, Memory, Runs, grid_loops
from xarr.compiler.loop_ir.verifier import verify
from xarr.compiler.schedule import Kind
from xarr.compiler.schedules.gpu.builders import BUILDERS, RULES, program_of
from xarr.compiler.schedules.gpu.grid_loops import POINTS
from xarr.compiler.schedules.gpu.sorts import steps
from xarr.compiler.schedules.serial import builders as serial
from xarr.ir import ops


def program(function: Any, *arrays: Any) -> Kernel:
    return verify(program_of(graph_of(function, *arrays)))


def test_every_kind_of_group_has_a_builder() -> None:
    assert set(BUILDERS) == set(Kind)
    assert set(RULES) == {*serial.RULES, ops.Sort}


@pytest.mark.parametrize("name", CASES)
def test_grids_run_the_outermost_loops_and_nothing_else(name: str) -> None:
    function, arrays = CASES[name]
    kernel = program(function, *arrays)
    for phase in kernel.phases:
        grid = grid_loops(phase)
        for loop in phase.walk():
            assert loop.runs == (POINTS if loop in grid else Runs.SERIAL)
            assert not (loop.accumulators or loop.prefixes or loop.search or loop.bounds)
    assert all(buffer.memory is Memory.GLOBAL for buffer in kernel.scratch)
    assert not kernel.locals


def test_a_reduction_is_carried_in_registers() -> None:
    text = str(program(lambda x: lax.reduce_sum(x, (1,)), np.zeros((3, 4), np.float32)))
    assert (
        text
        == """\
in in0: float32[12]
out out0: float32[3]
scratch scratch0: float32[3]
grid block for i0 < 3:
    for i1 < 4:
        c3 carries -0.0
        v4 = in0[4*i0 + i1]
        v5 = c3 + v4
        c3 = v5
    v8 = 0.0 + c3
    scratch0[i0] = v8
grid block for i9 < 3:
    v10 = scratch0[i9]
    out0[i9] = v10"""
    )


def test_a_block_accumulates_a_long_row() -> None:
    text = str(program(lambda x: lax.reduce_sum(x, (1,)), np.zeros((3, 256), np.float32)))
    assert "grid for i0 < 3:\n    block for i1 < 256:" in text
    few = str(program(lambda x: lax.reduce_sum(x, (1,)), np.zeros((3, 255), np.float32)))
    many = str(program(lambda x: lax.reduce_sum(x, (1,)), np.zeros((2**14 + 1, 256), np.float32)))
    assert "block for i1" not in few + many


def test_a_computation_with_an_order_is_one_thread_s() -> None:
    def alternating(x: Any) -> Any:
        return lax.reduce(x, np.float32(0), lambda a, b: b - a, (1,))

    assert "block for i1" not in str(program(alternating, np.zeros((3, 1000), np.float32)))


def stores_of_scatter(function: Any, dtype: str) -> list[Atomic | None]:
    x, i = np.zeros(5, dtype), np.zeros(3, np.int64)
    kernel = program(lambda x, i: function(x.at[i], x[:3]), x, i)
    loops = [loop for phase in kernel.phases for loop in phase.walk() if loop.extent != 5]
    return [store.atomic for loop in loops for store in loop.stores()]


@pytest.mark.parametrize("dtype", ["int8", "uint64"])
def test_updates_of_integers_are_atomic(dtype: str) -> None:
    for name, atomic in (("add", Atomic.ADD), ("max", Atomic.MAXIMUM), ("min", Atomic.MINIMUM)):
        stores = stores_of_scatter(lambda at, x, name=name: getattr(at, name)(x, mode="drop"), dtype)
        assert stores == [atomic]


@pytest.mark.parametrize(("name", "dtype"), [("add", "float32"), ("set", "int32"), ("multiply", "int32")])
def test_updates_whose_order_matters_run_one_after_the_other(name: str, dtype: str) -> None:
    stores = stores_of_scatter(lambda at, x: getattr(at, name)(x, mode="drop"), dtype)
    assert stores == [None]


@pytest.mark.parametrize("count", [0, 1, 2, 3, 5, 8, 13])
def test_the_steps_of_a_sort_are_a_network_that_sorts(count: int) -> None:
    """By the principle of zeros and ones: a network that sorts these sorts everything."""
    for number in range(2**count):
        row = [number >> k & 1 for k in range(count)]
        for width, distance in steps(count):
            for left in range(count - distance):
                right, first = left + distance, distance % width
                is_left = left >= first and (left - first) // distance % 2 == 0
                if is_left and left // (2 * width) == right // (2 * width) and row[right] < row[left]:
                    row[left], row[right] = row[right], row[left]
        assert row == sorted(row)
