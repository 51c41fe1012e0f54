"""The schedule of GPUs: grids of threads that fold in registers, and atomics where the order does not matter.

tests/cuda runs its programs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.compiler.schedules.serial.test_serial_loops import CASES, graph_of
from xarr import lax
from xarr.compiler.loop_ir.loops import (
    Affine,
    Atomic,
    Buffer,
    Exchange,
    Kernel,
    Loop,
    Memory,
    Runs,
    Search,
    grid_loops,
    index_value,
)
from xarr.compiler.loop_ir.scalars import INT64, Values
from xarr.compiler.loop_ir.verifier import verify
from xarr.compiler.schedule import Kind
from xarr.compiler.schedules.gpu.builders import BUILDERS, RULES, program_of
from xarr.compiler.schedules.gpu.grid_loops import POINTS
from xarr.compiler.schedules.gpu.merges import SortTiles, tiles_of
from xarr.compiler.schedules.gpu.rows import merge_phases
from xarr.compiler.schedules.gpu.sorts import steps
from xarr.compiler.schedules.gpu.target import TARGET
from xarr.compiler.schedules.serial import builders as serial
from xarr.compiler.schedules.serial.serial_loops import Scratch
from xarr.compiler.sort_keys import is_order
from xarr.ir import ops


def program(function: Any, *arrays: Any) -> Kernel:
    return verify(program_of(graph_of(function, *arrays)))


def test_every_kind_of_group_has_a_builder() -> None:
    assert set(BUILDERS) == {*Kind} - {Kind.SYSTEMS}  # which are solved by cuSOLVER
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
    assert "grid for i0 < 3 held by 256:\n    block for i1 < 256:" in text
    few = str(program(lambda x: lax.reduce_sum(x, (1,)), np.zeros((3, 255), np.float32)))
    many = str(program(lambda x: lax.reduce_sum(x, (1,)), np.zeros((2**14 + 1, 256), np.float32)))
    assert "grid block for i0 < 3 held by 32:\n    warp for i1 < 255:" in few
    assert "grid block for i0 < 16385 held by 32:\n    warp for i1 < 256:" in many


def test_long_rows_are_reduced_in_parts() -> None:
    row = str(program(lambda x: lax.reduce_sum(x, (0,)), np.zeros(2**14, np.float32)))
    assert "grid for i0 < 4 held by 256:\n    block for i1 < 4096:" in row
    columns = str(program(lambda x: lax.reduce_sum(x, (0,)), np.zeros((64, 32), np.float32)))
    assert "grid block for i0 < 2:\n    grid block for i1 < 32:\n        for i2 < 32:" in columns


def test_running_totals_of_long_rows_have_three_phases() -> None:
    kernel = program(lambda x: lax.cumsum(x, 0), np.zeros(2**14, np.float32))
    text = str(kernel)
    assert text.count("grid for") == 3 and text.count("runs over") == 2


def test_running_totals_of_columns_are_one_phase_or_three() -> None:
    one = str(program(lambda x: lax.cumsum(x, 1), np.zeros((3, 64, 64), np.float32)))
    assert " < 2:\n        lockstep for" in one and one.count("lockstep") == 1
    three = program(lambda x: lax.cumsum(x, 0), np.zeros((2**13, 8), np.float32))
    assert len(three.phases) == 4 and str(three).count("lockstep") == 1


def test_keys_are_sorted_by_tiles_and_merges() -> None:
    kernel = scatter_of("add", "float32")
    assert len(kernel.phases) == 1 + 1 + 1 + 1
    count = 4 * tiles_of(TARGET, [INT64], 1, 2**20).length + 1
    arrays = np.zeros(5, np.float32), np.zeros(count, int), np.zeros(count, np.float32)
    large = program(lambda x, i, u: x.at[i].add(u, mode="drop"), *arrays)
    assert len(large.phases) == 1 + 1 + 2 * 3 + 2 + 1 + 2 + 1


def test_parts_of_long_segments_are_folded_by_threads_or_warps() -> None:
    def phases(count: int, inner: int) -> Any:
        shapes = (5, inner), (count,), (count, inner)
        arrays = [np.zeros(shape, dtype) for shape, dtype in zip(shapes, ("f4", "i8", "f4"), strict=True)]
        return program(lambda x, i, u: x.at[i].add(u, mode="drop"), *arrays).phases

    assert len(phases(TARGET.segment_part, 1)) == len(phases(TARGET.segment_part + 1, 1)) - 4
    for inner, count in ((TARGET.min_thread_window - 1, 2), (TARGET.min_thread_window, 1)):
        loops = [loop for phase in phases(1000, inner) for loop in phase.walk()]
        assert sum(loop.runs == Runs.WARP for loop in loops) == count


@pytest.mark.parametrize(
    ("size", "count", "copies"),
    [(400, 10**7, 8), (16, 10**7, 32), (5, 9000, 32), (2048, 10**6, 2), (4096, 10**6, 1)],
)
def test_lanes_have_tables_of_their_own(size: int, count: int, copies: int) -> None:
    arrays = np.zeros(size, np.int32), np.zeros(count, np.int32), np.zeros(count, np.int32)
    kernel = program(lambda x, i, u: x.at[i].add(u, mode="drop"), *arrays)
    (table,) = kernel.locals
    assert table.size == size * copies


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


def scatter_of(name: str, dtype: str, deterministic: bool = True) -> Kernel:
    target = TARGET.replace(deterministic=int(deterministic))
    x, i = np.zeros(5, dtype), np.zeros(3, np.int64)
    graph = graph_of(lambda x, i: getattr(x.at[i], name)(x[:3], mode="drop"), x, i)
    return verify(program_of(graph, target))


def atomics_of(kernel: Kernel) -> list[Atomic | Exchange]:
    loops = (loop for phase in kernel.phases for loop in phase.walk())
    return [store.atomic for loop in loops for store in loop.stores() if store.atomic is not None]


@pytest.mark.parametrize(
    ("name", "dtype"), [("add", "float32"), ("multiply", "complex64"), ("power", "int32")]
)
def test_updates_whose_order_matters_are_sorted(name: str, dtype: str) -> None:
    kernel = scatter_of(name, dtype)
    assert atomics_of(kernel) == []
    assert [buffer.dtype for buffer in kernel.scratch[1:]] == [np.int64]


def test_sums_of_floats_are_atomic_unless_deterministic() -> None:
    for dtype in ("float32", "float64", "complex64", "complex128"):
        assert atomics_of(scatter_of("add", dtype, deterministic=False)) == [Atomic.ADD]
    for name, dtype in (("add", "float16"), ("add", "bfloat16"), ("multiply", "float32")):
        (atomic,) = atomics_of(scatter_of(name, dtype, deterministic=False))
        assert isinstance(atomic, Exchange)
    assert atomics_of(scatter_of("multiply", "complex128", deterministic=False)) == []


@pytest.mark.parametrize("deterministic", [True, False])
def test_extremes_and_the_last_update_need_no_order(deterministic: bool) -> None:
    (atomic,) = atomics_of(scatter_of("max", "float64", deterministic))
    assert isinstance(atomic, Exchange)
    assert atomics_of(scatter_of("set", "float64", deterministic)) == [Atomic.MAXIMUM]


def test_unique_indices_need_no_atomics() -> None:
    rows = lax.ScatterDimensionNumbers((), (0,), (0,))
    arrays = np.zeros(5, np.float32), np.zeros((3, 1), int), np.zeros(3, np.float32)
    kernel = program(lambda x, i, u: lax.scatter_add(x, i, u, rows, unique_indices=True), *arrays)
    assert atomics_of(kernel) == [] and len(kernel.scratch) == 1


@pytest.mark.parametrize(
    ("dtypes", "count", "size", "tiles"),
    [
        (["float32"], 1, 10**8, SortTiles(7, 1, 3584)),
        (["float32"], 8192, 4096, SortTiles(7, 1, 4096)),
        (["float32"], 10**6, 64, SortTiles(7, 58, 64)),
        (["float32"], 2, 64, SortTiles(7, 2, 64)),
        (["float32", "float32", "int32"], 1, 10**7, SortTiles(7, 1, 1792)),
        (["float64"] * 3, 1, 10**7, SortTiles(5, 1, 640)),
        (["complex128"] * 100, 1, 100, SortTiles(1, 1, 8)),
    ],
)
def test_the_sizes_of_sorted_tiles(dtypes: list[str], count: int, size: int, tiles: SortTiles) -> None:
    assert tiles_of(TARGET, [np.dtype(each) for each in dtypes], count, size) == tiles


def test_a_sort_of_a_long_row_has_two_phases_for_each_doubling() -> None:
    def phases(*shape: int) -> int:
        return len(program(lambda x: lax.sort(x), np.zeros(shape, np.float32)).phases)

    # The last one only copies.
    assert phases(5, 7) == phases(100, 4096) == 1 + 1
    assert phases(3584 * 4) == 1 + 2 * 2 + 1
    assert phases(3584 * 4 + 1) == 1 + 2 * 3 + 1


def test_only_orders_are_merged_by() -> None:
    def comparator(function: Any, dtype: str) -> Any:
        graph = graph_of(lambda x: lax.sort_with(x, function), np.zeros(3, dtype))
        (node,) = [node for node in graph.nodes if isinstance(node.op, ops.Sort)]
        assert isinstance(node.op, ops.Sort)
        return node.op.comparator

    assert is_order(comparator(lax.lt, "int32")) and is_order(
        comparator(lambda a, b: abs(a) > abs(b), "int8")
    )
    assert not is_order(comparator(lax.lt, "float32")) and not is_order(comparator(lax.le, "int32"))
    ((node, *_),) = [graph_of(lambda x: lax.sort(x), np.zeros(3, np.float32)).results]
    while not isinstance(node.op, ops.Sort):
        (node,) = node.operands
    assert is_order(node.op.comparator)


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


@pytest.mark.parametrize("has_search", [False, True])
def test_phases_that_search_stay_apart(has_search: bool) -> None:
    values = Values()
    buffers = [Buffer(f"{role}0", np.dtype(np.float32), 4, role) for role in ("in", "scratch", "out")]
    source, middle, target = (Scratch(values, buffer, (4,)) for buffer in buffers)
    phases = []
    for read, write in ((source, middle), (middle, target)):
        loop = Loop(index_value(values, "row"), 4, POINTS)
        index = (Affine(((loop.index, 1),)),)
        value = read.load(index)
        loop.body.append(write.store(index, value + value))
        phases.append(loop)
    if has_search:
        inner = Loop(index_value(values, "lane"), 4)
        inner.search = Search(
            inner.index.lt(2), values.make("result", (), inner.index.dtype, "r", unique=True)
        )
        phases[1].body.append(inner)
    kernel = Kernel(
        inputs=(buffers[0],), outputs=(buffers[2],), scratch=(buffers[1],), phases=phases, locals=()
    )
    assert len(merge_phases(kernel, values)) == (2 if has_search else 1)
