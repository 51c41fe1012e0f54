"""The rules of loops that a grid runs as one: L8, L10 and L12, with the tests of the others in test_verifier.py."""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import xarr
from xarr.compiler.loop_ir.loops import (
    Affine,
    Buffer,
    Kernel,
    Loop,
    LoopError,
    Runs,
    Store,
    grid_loops,
    index_value,
)
from xarr.compiler.loop_ir.scalars import Values
from xarr.compiler.loop_ir.vector_accesses import VectorAccesses, vector_accesses
from xarr.compiler.loop_ir.verifier import verify

POINTS = Runs.GRID | Runs.BLOCK


class Filled:
    """A program that fills a buffer: rows of a grid, and columns in them of the same one."""

    def __init__(self) -> None:
        values = Values()
        self.out = Buffer("out0", np.dtype(np.float32), 12, "out")
        self.rows = Loop(index_value(values, "i"), 3, POINTS)
        self.columns = Loop(index_value(values, "j"), 4, POINTS)
        self.spare = Loop(index_value(values, "k"), 2)
        self.one = values.constant(1, np.float32)
        at = Affine(((self.rows.index, 4), (self.columns.index, 1)))
        self.columns.body.append(Store(self.out, at, self.one))
        self.rows.body.append(self.columns)
        self.kernel = Kernel((), (self.out,), (), (), [self.rows])


def test_loops_that_hold_nothing_but_the_next_are_one_grid() -> None:
    program = Filled()
    verify(program.kernel)
    assert grid_loops(program.rows) == [program.rows, program.columns]


def test_l10_a_grid_in_a_loop_that_holds_more() -> None:
    program = Filled()
    program.rows.body.append(program.spare)
    assert grid_loops(program.rows) == [program.rows]
    with pytest.raises(LoopError, match=r"^L10: a loop runs by grid block inside of grid block"):
        verify(program.kernel)


@pytest.mark.parametrize(("factors", "other"), [((1, 0), "columns"), ((0, 1), "rows")])
def test_l8_points_write_to_elements_of_their_own(factors: tuple[int, int], other: str) -> None:
    program = Filled()
    program.columns.body[:] = []
    terms = zip((program.rows.index, program.columns.index), factors, strict=True)
    at = Affine(tuple((index, factor) for index, factor in terms if factor))
    program.columns.body.append(Store(program.out, at, program.one))
    with pytest.raises(
        LoopError, match=r"^L8: all iterations of an outermost loop write to one element of out0"
    ):
        verify(program.kernel)
    getattr(program, other).extent = 1
    verify(program.kernel)


def test_l8_one_iteration_may_write_the_only_element() -> None:
    values = Values()
    out = Buffer("out0", np.dtype(np.float32), 1, "out")
    rows = Loop(index_value(values, "i"), 3, POINTS)
    once = rows.index.eq(0).select(values.constant(1, np.int64), values.constant(0, np.int64))
    store = Store(out, Affine(), values.constant(1, np.float32))
    guard = Loop(index_value(values, "j"), once)
    guard.body.append(store)
    rows.body.append(guard)
    kernel = Kernel((), (out,), (), (), [rows])
    verify(kernel)
    rows.body[:] = [store]
    with pytest.raises(
        LoopError, match=r"^L8: all iterations of an outermost loop write to one element of out0"
    ):
        verify(kernel)


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_updates_of_the_only_element_are_added_in_their_order(cupy: Any) -> None:
    steps = np.array([2**24, 1, -(2**24)], np.float32)
    x = xarr.asarray(np.array([1.0], np.float32))
    assert np.asarray(x.at[[0, 0, 0]].add(steps)).tolist() == [
        ((np.float32(1) + steps[0]) + steps[1]) + steps[2]
    ]


@pytest.mark.parametrize("width", [2, 4])
def test_l12_neighbours_of_the_innermost_axis_are_taken_together(width: int) -> None:
    program = Filled()
    program.columns.width = width
    assert f"for i1 < 4 by {width}:" in str(verify(program.kernel))
    assert vector_accesses(program.rows, width) == VectorAccesses((), (), frozenset())


def test_l12_neighbours_may_compute_with_their_numbers() -> None:
    program = Filled()
    index = program.columns.index
    (store,) = program.columns.stores()
    program.columns.body[:] = [replace(store, value=index.convert(np.float32))]
    program.columns.width = 2
    verify(program.kernel)
    accesses = vector_accesses(program.rows, 2)
    assert accesses is not None and accesses.needs_index and index in accesses.varying


@pytest.mark.parametrize("spoil", ["another axis", "an odd size", "an odd offset"])
def test_l12_iterations_that_cannot_be_taken_together(spoil: str) -> None:
    program = Filled()
    (store,) = program.columns.stores()
    loop, width = program.columns, 2
    if spoil == "another axis":
        loop = program.rows
    elif spoil == "an odd size":
        width = 3
    else:
        store = replace(store, offset=Affine(((program.rows.index, 3), (loop.index, 1))))
    program.columns.body[:] = [store]
    loop.width = width
    with pytest.raises(LoopError, match=rf"^L12: {width} iterations of a loop cannot be taken together"):
        verify(program.kernel)
