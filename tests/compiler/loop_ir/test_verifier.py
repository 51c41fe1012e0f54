"""The rules of loop programs: each has a test that breaks it, named after its label."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tests.support.kernel_texts import CASES, groups
from xarr.base.configuration import current as config
from xarr.compiler.loop_ir.loops import (
    Accumulator,
    Affine,
    Atomic,
    Buffer,
    Carry,
    Kernel,
    Loop,
    LoopError,
    Prefix,
    Role,
    Runs,
    Search,
    Store,
    index_value,
    load,
    new_carry,
)
from xarr.compiler.loop_ir.scalars import BOOL, INT64, Value, Values
from xarr.compiler.loop_ir.verifier import check_local_bytes, verify
from xarr.compiler.schedule import Kind, Schedule
from xarr_numpy.compiled.schedule import PROCESSOR, SCHEDULE

F32, F64, I32 = (np.dtype(name) for name in ("float32", "float64", "int32"))


class Program:
    """A program to be broken: its rows are summed up, and each is stored less its sum.

    rows: the outermost loop, of 4 iterations; `sums` and `columns` inside it, of 8.
    """

    def __init__(self) -> None:
        self.values = Values()
        self.x, self.out = Buffer("in0", F32, 32, "in"), Buffer("out0", F32, 32, "out")
        self.rows = Loop(index_value(self.values, "row"), 4, Runs.THREADS)
        self.sums = Loop(index_value(self.values, "i"), 8, Runs.LANES)
        self.columns = Loop(index_value(self.values, "j"), 8, Runs.LANES)
        self.sums.accumulators.append(self.sum(load(self.values, self.x, self.at(self.sums))))
        (total,) = self.sums.accumulators[0].results
        element = load(self.values, self.x, self.at(self.columns))
        self.columns.body.append(Store(self.out, self.at(self.columns), element - total))
        self.rows.body += [self.sums, self.columns]
        self.kernel = Kernel((self.x,), (self.out,), (), (), [self.rows])

    def at(self, inner: Loop, constant: int = 0) -> Affine:
        return Affine(((self.rows.index, 8), (inner.index, 1)), constant)

    def name(self, name: str, dtype: np.dtype = F32, op: str = "argument") -> Value:
        return self.values.make(op, (), dtype, name, unique=True)

    def sum(self, term: Value) -> Accumulator:
        left, right = self.name("a", term.dtype), self.name("b", term.dtype)
        first = self.values.constant(0, term.dtype)
        return Accumulator(
            (first,), (term,), (left,), (right,), (left + right,), (self.name("r", term.dtype, "result"),)
        )

    def add(self, role: Role, size: int, dtype: np.dtype = F32) -> Buffer:
        """One more buffer of the program."""
        buffer = Buffer(f"more_{role}", dtype, size, role)
        field = {
            "in": "inputs",
            "out": "outputs",
            "scratch": "scratch",
            "local": "locals",
            "shared": "locals",
        }[role]
        setattr(self.kernel, field, (*getattr(self.kernel, field), buffer))
        return buffer

    def carry(self, loop: Loop, initial: Value) -> Carry:
        argument, result = new_carry(self.values, initial.dtype)
        loop.carries.append(Carry(initial, argument, argument, result))
        return loop.carries[-1]

    def breaks(self, label: str, words: str) -> None:
        """Check that the program breaks a rule, in these words."""
        with pytest.raises(LoopError, match=rf"^{label}: .*{words}"):
            verify(self.kernel)


@pytest.fixture
def program() -> Program:
    program = Program()
    assert verify(program.kernel) is program.kernel
    return program


def test_l1_an_index_outside_of_its_loop(program: Program) -> None:
    program.rows.body.append(Store(program.out, program.at(program.sums), program.values.constant(0, F32)))
    program.breaks("L1", "the index i: int64 is used where it is not known")


def test_l1_a_result_before_its_loop(program: Program) -> None:
    program.rows.body.reverse()
    program.breaks("L1", "the result r: float32 is used where it is not known")


def test_l1_a_result_of_another_phase(program: Program) -> None:
    (total,) = program.sums.accumulators[0].results
    once = Loop(index_value(program.values, "once"), 1)
    once.body.append(Store(program.out, Affine(), total))
    program.kernel.phases.append(once)
    program.breaks("L1", "the result r")


def test_l1_a_carry_behind_its_loop(program: Program) -> None:
    carry = program.carry(program.rows, program.values.constant(0, F32))
    once = Loop(index_value(program.values, "once"), 1)
    once.body.append(Store(program.out, Affine(), carry.argument))
    program.kernel.phases.append(once)
    program.breaks("L1", "the argument c")


def test_l1_an_index_of_two_loops(program: Program) -> None:
    program.columns.index = program.sums.index
    program.columns.body[:] = [Store(program.out, program.at(program.sums), program.values.constant(0, F32))]
    program.breaks("L1", "the index i: int64 is bound twice")


def test_l1_an_accumulator_that_uses_the_iteration(program: Program) -> None:
    accumulator = program.sums.accumulators[0]
    element = accumulator.terms[0]
    program.sums.accumulators[0] = replace(accumulator, combined=(accumulator.left[0] + element,))
    program.breaks("L1", "the index")


def test_l1_two_operands_of_a_name(program: Program) -> None:
    accumulator = program.sums.accumulators[0]
    program.sums.accumulators[0] = replace(accumulator, right=accumulator.left)
    program.breaks("L1", "two operands of a computation have one name")


def test_l1_a_name_that_is_computed(program: Program) -> None:
    zero = program.values.constant(0, INT64)
    program.columns.index = zero
    program.columns.body[:] = [
        Store(program.out, program.at(program.columns), program.values.constant(0, F32))
    ]
    program.breaks("L1", "the constant: int64 is not a name")


def test_l2_an_unknown_operation(program: Program) -> None:
    odd = program.values.make("frobnicate", (), F32)
    program.columns.body[:] = [Store(program.out, program.at(program.columns), odd)]
    program.breaks("L2", "frobnicate is not an operation")


@pytest.mark.parametrize(
    ("op", "operands", "result"),
    [
        ("add", (F32, F64), F32),
        ("add", (F32, F32), F64),
        ("add", (F32,), F32),
        ("add", (BOOL, BOOL), BOOL),
        ("and", (F32, F32), F32),
        ("sqrt", (I32,), I32),
        ("fma", (F32, F32), F32),
        ("lt", (F32, F64), BOOL),
        ("lt", (F32, F32), F32),
        ("select", (F32, F32, F32), F32),
        ("select", (BOOL, F32, F64), F32),
        ("bitcast", (F32,), F64),
        ("popcount", (F32,), F32),
        ("real", (np.dtype(np.complex64),), F64),
        ("imag", (F32,), F32),
        ("index", (INT64,), INT64),
    ],
)
def test_l2_operands_of_other_types(op: str, operands: tuple[np.dtype, ...], result: np.dtype) -> None:
    program = Program()
    zeros = tuple(program.values.constant(0, dtype) for dtype in operands)
    odd = program.values.make(op, zeros, result).ne(program.values.make(op, zeros, result))
    program.columns.body[:] = [
        Store(program.out, program.at(program.columns), odd.convert(F32)),
    ]
    program.breaks("L1" if op == "index" else "L2", op)


def test_l2_a_load_of_another_type(program: Program) -> None:
    element = load(program.values, program.x, program.at(program.columns))
    other = program.values.make("load", element.operands, F64, element.attribute)
    program.columns.body[:] = [Store(program.out, program.at(program.columns), other.convert(F32))]
    program.breaks("L2", "load of")


def test_l2_an_offset_of_another_type(program: Program) -> None:
    narrow = program.columns.index.convert(I32)
    element = load(program.values, program.x, Affine(((narrow, 1),)))
    program.columns.body[:] = [Store(program.out, program.at(program.columns), element)]
    program.breaks("L2", r"load of \(int32\)")


def _store(program: Program) -> None:
    program.columns.body[:] = [
        Store(program.out, program.at(program.columns), program.values.constant(0, F64))
    ]


def _offset(program: Program) -> None:
    narrow = program.columns.index.convert(I32)
    offset = Affine(((program.rows.index, 8), (narrow, 1)))
    program.columns.body[:] = [Store(program.out, offset, program.values.constant(0, F32))]


def _carry(program: Program) -> None:
    carry = program.carry(program.rows, program.values.constant(0, F32))
    program.rows.carries[:] = [replace(carry, following=program.values.constant(0, F64))]


def _terms(program: Program) -> None:
    accumulator = program.sums.accumulators[0]
    program.sums.accumulators[0] = replace(accumulator, terms=(accumulator.terms[0].convert(F64),))


def _identities(program: Program) -> None:
    accumulator = program.sums.accumulators[0]
    program.sums.accumulators[0] = replace(accumulator, identities=())


def _steps(program: Program) -> None:
    accumulator = program.sums.accumulators[0]
    factor = program.name("f", F64)
    program.sums.accumulators[0] = replace(
        accumulator, arguments=(factor,), step=(accumulator.left[0] + factor.convert(F32),)
    )


def _running(program: Program) -> None:
    zero = program.values.constant(0, F32)
    left, right = program.name("a"), program.name("b")
    running = program.name("running", F64, "result")
    program.columns.prefixes.append(Prefix(zero, zero, left, right, left + right, running))


def _search(program: Program) -> None:
    program.rows.body.append(
        Loop(
            index_value(program.values, "k"),
            8,
            Runs.LANES,
            search=Search(program.values.constant(1, INT64), program.name("r", INT64, "result")),
        )
    )


def _index(program: Program) -> None:
    program.rows.body.append(Loop(program.name("k", I32, "index"), 8))


@pytest.mark.parametrize(
    "spoil", [_store, _offset, _carry, _terms, _identities, _steps, _running, _search, _index]
)
def test_l3_parts_of_another_type(program: Program, spoil: Callable[[Program], None]) -> None:
    spoil(program)
    program.breaks("L3", "wanted .*, got")


@pytest.mark.parametrize("extent", [0, -1])
def test_l4_no_iterations(program: Program, extent: int) -> None:
    program.columns.extent = extent
    program.breaks("L4", f"a loop runs {extent} times")
    program.rows.extent = extent
    program.breaks("L4", "an outermost loop runs a fixed number of times")


def test_l4_a_computed_extent_of_the_outermost_loop(program: Program) -> None:
    program.rows.extent = program.values.constant(4, INT64)
    program.breaks("L4", "an outermost loop runs a fixed number of times")


def test_l4_an_extent_without_an_end(program: Program) -> None:
    program.columns.extent = program.rows.index + 1
    program.breaks("L4", "has no constant that it does not exceed")


def test_l4_a_first_iteration_below_none(program: Program) -> None:
    program.columns.first = program.rows.index - 1
    program.breaks("L4", "a loop begins at -1")


def test_l4_bounds_of_an_inner_loop(program: Program) -> None:
    program.columns.bounds = (program.name("first", INT64), program.name("end", INT64))
    program.breaks("L4", "a loop inside another one has bounds")


def test_l5_a_buffer_of_another_program(program: Program) -> None:
    other = Buffer("in1", F32, 32, "in")
    element = load(program.values, other, program.at(program.columns))
    program.columns.body[:] = [Store(program.out, program.at(program.columns), element)]
    program.breaks("L5", "in1 is not a buffer of this program")


def test_l5_two_buffers_of_a_name(program: Program) -> None:
    program.kernel.scratch = (Buffer("in0", F32, 32, "scratch"),)
    program.breaks("L5", "two buffers are called in0")


def test_l5_a_buffer_of_another_role(program: Program) -> None:
    program.kernel.scratch = (Buffer("kept", F32, 32, "local"),)
    program.breaks("L5", "kept, a buffer of role local, stands as scratch")


def test_l5_an_empty_buffer(program: Program) -> None:
    program.add("scratch", 0)
    program.breaks("L5", "has 0 elements")


def test_l5_a_written_input(program: Program) -> None:
    program.columns.body.append(
        Store(program.x, program.at(program.columns), program.values.constant(0, F32))
    )
    program.breaks("L5", "the input in0 is written")


def test_l6_scratch_that_is_never_written(program: Program) -> None:
    scratch = program.add("scratch", 32)
    element = load(program.values, scratch, program.at(program.columns))
    program.columns.body[:] = [Store(program.out, program.at(program.columns), element)]
    program.breaks("L6", "more_scratch is read before it is written")


def test_l6_a_local_buffer_that_another_phase_wrote(program: Program) -> None:
    local = program.add("local", 8)
    fill = Loop(index_value(program.values, "once"), 1)
    inner = Loop(index_value(program.values, "k"), 8)
    inner.body.append(Store(local, Affine(((inner.index, 1),)), program.values.constant(0, F32)))
    fill.body.append(inner)
    element = load(program.values, local, Affine(((program.columns.index, 1),)))
    program.columns.body[:] = [Store(program.out, program.at(program.columns), element)]
    program.kernel.phases.insert(0, fill)
    program.breaks("L6", "more_local is read before it is written")
    program.kernel.phases.pop(0)
    inner.index, program.rows.body[:0] = index_value(program.values, "k"), [inner]
    inner.body[:] = [Store(local, Affine(((inner.index, 1),)), program.values.constant(0, F32))]
    verify(program.kernel)


def test_l6_an_output_that_is_never_written(program: Program) -> None:
    program.add("out", 32)
    program.breaks("L6", "nothing is stored in more_out")


def test_l7_a_store_behind_the_end(program: Program) -> None:
    zero = program.values.constant(0, F32)
    program.columns.body[:] = [Store(program.out, program.at(program.columns, 1), zero)]
    program.breaks("L7", r"out0\[32\] at 32")


def test_l7_a_load_before_the_beginning(program: Program) -> None:
    element = load(program.values, program.x, program.at(program.columns, -1))
    program.columns.body[:] = [Store(program.out, program.at(program.columns), element)]
    program.breaks("L7", r"in0\[32\] at -1")


def test_l7_a_load_of_a_loop_that_does_not_begin_at_0(program: Program) -> None:
    element = load(program.values, program.x, program.at(program.sums, -3))
    program.sums.accumulators[:] = [replace(program.sums.accumulators[0], terms=(element,))]
    for first in (3, 8):  # of 8 iterations: some, and none
        program.sums.first = program.values.constant(first, INT64)
        verify(program.kernel)
    program.sums.first = program.values.constant(2, INT64)
    program.breaks("L7", r"in0\[32\] at -1")


def test_l7_a_number_that_is_clamped_to_another_size(program: Program) -> None:
    table = program.add("in", 8, I32)
    number = load(program.values, table, Affine(((program.columns.index, 1),))).convert(INT64)

    def store(last: int) -> None:
        index = number.lt(0).select(0, number)
        index = index.gt(last).select(last, index)
        element = load(program.values, program.x, Affine(((index, 1),)))
        program.columns.body[:] = [Store(program.out, program.at(program.columns), element)]

    store(31)
    verify(program.kernel)
    store(32)
    program.breaks("L7", r"in0\[32\] at 0 … 32")


def test_l7_a_load_where_the_predicate_holds(program: Program) -> None:
    offset = program.at(program.columns, -1)
    number = offset.value(program.values)

    def store(first: int) -> None:
        element = load(program.values, program.x, offset, number.ge(first))
        program.columns.body[:] = [Store(program.out, program.at(program.columns), element)]

    store(0)
    verify(program.kernel)
    store(-1)
    program.breaks("L7", r"in0\[32\] at -1")


def test_l7_a_store_where_the_condition_of_its_loop_holds(program: Program) -> None:
    negative = load(program.values, program.x, program.at(program.columns)).lt(0)
    number = program.columns.index - negative.convert(INT64) * 9
    once = Loop(index_value(program.values, "once"), 1)
    once.body[:] = [Store(program.out, Affine(((number, 1),)), program.values.constant(0, F32))]
    program.columns.body[:] = [once]

    def guard(first: int) -> None:
        inside = number.ge(first) & number.lt(32)
        once.extent = inside.select(program.values.constant(1, INT64), 0)

    def at_most(extent: Value) -> None:
        once.extent = extent.gt(1).select(1, extent)

    program.columns.runs = Runs.SERIAL
    guard(0)
    verify(program.kernel)
    at_most(once.extent)
    verify(program.kernel)
    guard(-1)
    program.breaks("L7", r"out0\[32\] at -1 … 0")
    at_most(once.extent)
    program.breaks("L7", r"out0\[32\] at -1 … 0")


def test_l7_the_last_part_of_a_loop_in_parts(program: Program) -> None:
    def part(size: int, whole: int) -> None:
        left = program.rows.index * -size + whole
        program.columns.extent = left.lt(size).select(left, size)
        offset = Affine(((program.rows.index, size), (program.columns.index, 1)))
        program.columns.body[:] = [Store(program.out, offset, program.values.constant(0, F32))]

    part(10, 32)
    verify(program.kernel)
    part(10, 33)
    program.breaks("L7", r"out0\[32\] at 32")


def test_l8_one_offset_for_all_iterations(program: Program) -> None:
    program.columns.body.append(
        Store(program.out, Affine(((program.columns.index, 1),)), program.values.constant(0, F32))
    )
    program.breaks("L8", "all iterations of an outermost loop write to one element of out0")
    program.rows.extent = 1
    verify(program.kernel)
    program.rows.extent, program.rows.runs = 4, Runs.SERIAL
    verify(program.kernel)


def test_l8_iterations_that_combine_atomically(program: Program) -> None:
    """Rows are added up in one row: first zeros, by a phase of their own."""
    first = Loop(index_value(program.values, "k"), 32, Runs.THREADS)
    zero = program.values.constant(0, F32)
    first.body.append(Store(program.out, Affine(((first.index, 1),)), zero))
    element = load(program.values, program.x, program.at(program.columns))
    offset = Affine(((program.columns.index, 1),))
    program.columns.body[:] = [Store(program.out, offset, element, Atomic.ADD)]
    program.breaks("L6", "out0 is combined with before it is written")
    program.kernel.phases.insert(0, first)
    verify(program.kernel)
    assert "atomic add out0[" in str(program.kernel)
    program.columns.body[:] = [Store(program.out, offset, element)]
    program.breaks("L8", "all iterations of an outermost loop write to one element of out0")


@pytest.mark.parametrize(
    ("outer", "inner"),
    [
        (Runs.SERIAL, Runs.THREADS),
        (Runs.SERIAL, Runs.GRID),
        (Runs.GRID, Runs.GRID),
        (Runs.THREADS, Runs.BLOCK),
        (Runs.GRID, Runs.WARP),
        (Runs.BLOCK, Runs.BLOCK),
        (Runs.GRID | Runs.BLOCK, Runs.BLOCK),
        (Runs.GRID | Runs.BLOCK | Runs.LANES, Runs.WARP),
    ],
)
def test_l10_words_that_do_not_fit(program: Program, outer: Runs, inner: Runs) -> None:
    program.rows.runs, program.columns.runs, program.sums.runs = outer, inner, Runs.SERIAL
    program.breaks("L10", "a loop runs by")


def test_l10_words_of_a_grid(program: Program) -> None:
    program.rows.runs, program.columns.runs, program.sums.runs = Runs.GRID, Runs.BLOCK, Runs.BLOCK
    verify(program.kernel)
    assert "grid for" in str(program.kernel) and "block for" in str(program.kernel)
    program.rows.runs |= Runs.BLOCK
    program.columns.runs = program.sums.runs = Runs.WARP
    verify(program.kernel)
    assert "grid block for" in str(program.kernel)


def test_l10_a_shared_buffer_where_no_block_runs(program: Program) -> None:
    shared = program.add("shared", 8)
    fill = Loop(index_value(program.values, "k"), 8)
    fill.body.append(Store(shared, Affine(((fill.index, 1),)), program.values.constant(0, F32)))
    program.rows.body.insert(0, fill)
    program.breaks("L10", "more_shared is shared where no block runs")
    program.rows.runs, fill.runs = Runs.GRID, Runs.BLOCK
    program.columns.runs = program.sums.runs = Runs.BLOCK
    verify(program.kernel)
    assert "shared more_shared: float32[8]" in str(program.kernel)


def test_l9_lanes_inside_lanes(program: Program) -> None:
    program.rows.runs |= Runs.LANES
    program.breaks("L9", "a loop in lanes is inside another one")


def test_l9_lanes_that_carry(program: Program) -> None:
    program.carry(program.columns, program.values.constant(0, F32))
    program.breaks("L9", "a loop in lanes carries")


def test_l9_a_loop_that_differs_from_lane_to_lane(program: Program) -> None:
    inner = Loop(index_value(program.values, "k"), 1)
    inner.extent = program.columns.index.lt(3).select(program.columns.index, 3)
    inner.body, program.columns.body = program.columns.body, [inner]
    program.breaks("L9", "a loop inside lanes runs not equally often")


def test_l9_running_totals_without_lanes(program: Program) -> None:
    zero = program.values.constant(0, F32)
    left, right, running = program.name("a"), program.name("b"), program.name("running", F32, "result")
    program.columns.prefixes.append(Prefix(zero, zero, left, right, left + right, running))
    verify(program.kernel)
    program.columns.runs = Runs.SERIAL
    program.breaks("L9", "running totals of a loop that is not in lanes")


def test_l9_a_search_that_stores(program: Program) -> None:
    program.columns.search = Search(program.values.constant(True, BOOL), program.name("r", INT64, "result"))
    program.breaks("L9", "a loop that looks for an iteration")


def test_l11_too_much_local_memory(program: Program) -> None:
    program.add("local", 1000)
    assert check_local_bytes(program.kernel, 4000) is program.kernel
    with pytest.raises(LoopError, match=r"^L11: local buffers take 4000 bytes, more than the 3999"):
        check_local_bytes(program.kernel, 3999)


@pytest.mark.parametrize("name", CASES)
def test_typical_programs_keep_to_the_rules(name: str) -> None:
    with config(verify_graphs=False):
        (fusion,) = groups(name)
        verify(SCHEDULE.build(fusion))


def test_programs_are_checked_where_they_are_built() -> None:
    spoiled = Program()
    spoiled.rows.extent = 5
    schedule = Schedule(PROCESSOR, {Kind.NEST: lambda fusion, target: spoiled.kernel})
    (fusion,) = groups("chain")
    with config(verify_graphs=False):
        assert schedule.build(fusion) is spoiled.kernel
    # The schedule keeps the program, but not as one that was checked; a refused one is refused again.
    for _ in range(2):
        with pytest.raises(LoopError, match=r"^L7: .*at 32"):
            schedule.build(fusion)
