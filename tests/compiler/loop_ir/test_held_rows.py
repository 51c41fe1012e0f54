"""What threads keep of rows between the loops that they share, and rule L13."""

from __future__ import annotations

from typing import Any

import pytest

import xarr
from tests.cuda.test_shared_work import layer_norm, softmax
from xarr import lax
from xarr.compiler.loop_ir.held_rows import HeldLoop, can_hold, held_loops
from xarr.compiler.loop_ir.loops import Kernel, Loop, LoopError, Store, grid_loops
from xarr.compiler.loop_ir.verifier import verify
from xarr.compiler.schedules.gpu.builders import program_of
from xarr.compiler.schedules.gpu.target import TARGET


def program(function: Any, type: str = "f32[5,300]", **target: int) -> Kernel:
    graph: Any = xarr.jit(function).lower(type).stage("decomposed")
    return verify(program_of(graph, TARGET.replace(**target)))


def loops_held_by(function: Any, type: str = "f32[5,300]") -> list[HeldLoop]:
    (phase,) = program(function, type).phases
    return held_loops(phase)


def words(each: HeldLoop) -> list[list[str]]:
    """The operations of what a loop loads, keeps, and holds."""
    return [[value.op for value in values] for values in (each.loads, each.kept, each.held)]


def test_a_softmax_keeps_its_elements_and_then_their_exponentials() -> None:
    largest, total, quotient = loops_held_by(softmax)
    assert words(largest) == [["load"], ["load"], ["load"]]
    assert words(total) == [[], ["mul"], ["load", "mul"]]
    assert words(quotient) == [[], [], ["mul"]]
    # What a row has once: the maximum, from a neutral element on, and the sum.
    assert [value.op for value in total.common] == ["maximum"]
    assert [value.op for value in quotient.common] == ["add"]


def test_a_layer_norm_keeps_its_elements_and_then_their_differences() -> None:
    mean, variance, norm = loops_held_by(layer_norm)
    assert words(mean) == [["load"], ["load"], ["load"]]
    assert words(variance) == [[], ["sub"], ["load", "sub"]]
    assert words(norm) == [[], [], ["sub"]]


def test_numbers_of_elements_are_not_kept() -> None:
    """They cost less than a register."""

    def function(x: Any) -> Any:
        numbers = lax.mul(lax.convert_element_type(lax.broadcasted_iota("int32", x.shape, 1), "float32"), 2.0)
        total = lax.reduce_sum(lax.mul(x, numbers), (1,))
        return lax.add(numbers, lax.broadcast_in_dim(total, x.shape, (0,)))

    assert [words(each) for each in loops_held_by(function)] == [[["load"], [], []], [[], [], []]]


def test_it_is_printed_who_shares_a_row() -> None:
    assert "for i0 < 5 held by 256:" in str(program(softmax))
    assert "for i0 < 5 held by 8:" in str(program(softmax, "f32[5,64]"))
    assert "held" not in str(program(softmax, held_registers=0))


@pytest.mark.parametrize(
    ("function", "type"),
    [
        (softmax, "f32[2000,17000]"),
        (softmax, "f64[2000,9000]"),
        (lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 3), (1, 1), "VALID"), "f32[5,300]"),
        (lambda x: lax.reduce_sum(x, (0,)), "f32[300,64]"),
        (lambda x: lax.cumsum(x, 1), "f32[5,300]"),
        (lambda x: lax.sort(x, dimension=1), "f32[5,300]"),
    ],
    ids=["long rows", "rows of long numbers", "windows", "columns", "running totals", "sorts"],
)
def test_other_rows_are_not_held(function: Any, type: str) -> None:
    kernel = program(function, type)
    assert "held" not in str(kernel)


def loops_of(phase: Loop) -> list[Loop]:
    return [part for part in grid_loops(phase)[-1].body if isinstance(part, Loop)]


@pytest.mark.parametrize("spoil", ["an index", "an extent", "a loop inside", "who runs it", "what is read"])
def test_l13_loops_that_are_not_alike(spoil: str) -> None:
    kernel = program(softmax)
    (phase,) = kernel.phases
    _, second, last = loops_of(phase)
    if spoil == "an index":
        (spare,) = program(softmax, held_registers=0).phases
        second.index = loops_of(spare)[1].index
    elif spoil == "an extent":
        second.extent = 299
    elif spoil == "a loop inside":
        last.body.append(Loop(loops_of(program(softmax).phases[0])[0].index, 2))
    elif spoil == "who runs it":
        last.runs = type(last.runs).SERIAL
    else:
        (store,) = last.stores()
        last.body[:] = [Store(kernel.inputs[0], store.offset, store.value)]
    assert can_hold(phase) is (spoil == "an index")
    with pytest.raises(LoopError, match=r"^L13: loops between which rows are held are not alike"):
        verify(kernel)


def test_l13_a_loop_inside_holds_nothing() -> None:
    kernel = program(softmax)
    loops_of(kernel.phases[0])[0].sharers = 256
    with pytest.raises(LoopError, match=r"^L13: a loop whose rows are held is not the innermost one"):
        verify(kernel)


def test_l1_loops_that_hold_nothing_have_indices_of_their_own() -> None:
    kernel = program(softmax)
    grid_loops(kernel.phases[0])[-1].sharers = 0
    with pytest.raises(LoopError, match=r"^L1: the index term: int64 is bound twice"):
        verify(kernel)
