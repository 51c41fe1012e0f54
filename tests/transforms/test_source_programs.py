"""Random programs of text, in loops of depth four, give the same bits compiled and operation by operation.

`python -m tests.support.source_programs 0 100` runs them outside of pytest and makes those smaller that fail.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.support import fuzz
from tests.support.source_programs import running
from tests.support.source_programs.__main__ import find_error
from tests.support.source_programs.running import check, draw
from tests.support.source_programs.shrinking import minimise
from tests.support.source_programs.text import Compound, Expr, Let, Program, Type
from xarr.backend import AbstractBackend
from xarr.base.configuration import current as config
from xarr.compiler import pipeline
from xarr.compiler.plan.planner import peak
from xarr.ir import ops
from xarr.ir.graph import Graph
from xarr_numpy.compiled import schedule
from xarr_numpy.processor import PROCESSOR

pytest.importorskip("llvmlite")
pytestmark = pytest.mark.implicit

#: Programs of one seed.
EACH = 10


@pytest.fixture(autouse=True)
def silent() -> Iterator[None]:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("seed", fuzz.seeds(2, 1000))
def test_results_are_those_of_single_operations(seed: int) -> None:
    for number in range(EACH * seed, EACH * (seed + 1)):
        program, way, oracle = draw(number)
        with fuzz.showing(lambda number=number, way=way, program=program: f"{way}, {number}:\n{program}"):
            check(program, number, way, oracle)


@pytest.mark.parametrize("seed", fuzz.seeds(2, 50))
def test_no_program_needs_more_memory_than_numpy(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    forgetful = replace(schedule.SCHEDULE, target=PROCESSOR.replace(spare_bytes=0, added_bytes=0))
    monkeypatch.setattr(schedule, "SCHEDULE", forgetful)
    for number in range(EACH * seed, EACH * (seed + 1)):
        program, _, _ = draw(number)
        values = running.draw_values(program, number, 3)
        low = xarr.jit(running.load(program, print)).lower(*map(xarr.asarray, values))
        with config(fusion="compiled"):
            plain, fused = low.stage("decomposed"), low.stage("fused")
        assert isinstance(plain, Graph) and isinstance(fused, Graph)
        with fuzz.showing(lambda program=program: str(program)):
            assert peak(fused).total <= peak(plain, overwrites=False).total


# --- the checker, and what it shows ------------------------------------------------------------------

VECTOR = Type("int64", (5,))
MATRIX = Type("float32", (3, 5))


def name(text: str, kind: Type) -> Expr:
    return Expr(text, kind)


def update(kind: Type, *indices: str) -> Expr:
    """An array of which elements are set one after the other."""
    made = name("a", kind)
    for value, index in enumerate(indices):
        made = Expr(f"{{0}}.at[{index}].set({value})", kind, (made,))
    return made


def program_of_updates() -> Program:
    """A loop inside of a loop, of which one statement sets the same element twice, and much else."""
    loop = Compound(
        "fori",
        (
            (
                Let("b", Expr("({0} * 2)", MATRIX, (name("b", MATRIX),))),
                Let("a", update(VECTOR, "1", "(n + j) % 5", "(n + j * j) % 5")),
            ),
        ),
        (name("0", VECTOR), name("2", VECTOR)),
        ("j",),
    )
    outer = Compound("fori", ((loop, loop),), (name("0", VECTOR), name("3", VECTOR)), ("i",))
    first = Let("b", Expr("{0}[::-1]", MATRIX, (name("b", MATRIX),)))
    arguments = (("n", Type("int64", ())), ("a", VECTOR), ("b", MATRIX))
    return Program(arguments, (first, outer, first), ("a", "b"))


def swap_updates(graph: Graph) -> Graph:
    """The defect: of two updates one after the other, the second is done first."""
    new: dict[Any, Any] = {}
    for node in graph.nodes:
        operands = [new.get(operand, operand) for operand in node.operands]
        if isinstance(node.op, ops.While):
            body = replace(node.op, body=swap_updates(node.op.body))
            new[node] = node.rebuilt(tuple(operands), body)
            continue
        first = node.operands[0] if node.operands else None
        if isinstance(node.op, ops.DynamicUpdateSlice) and first is not None and first.op == node.op:
            before = node.rebuilt((new.get(first.operands[0], first.operands[0]), *operands[1:]))
            others = [new.get(operand, operand) for operand in first.operands[1:]]
            new[node] = first.rebuilt((before, *others))
        else:
            new[node] = node.rebuilt(tuple(operands))
    return graph.derive({**{node: node for node in graph.parameters}, **new})


@pytest.mark.usefixtures("fused")
def test_a_compiler_that_swaps_two_updates_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    program, decompose = program_of_updates(), pipeline.decompose

    def decompose_wrongly(graph: Graph, backend: AbstractBackend) -> Graph:
        made = decompose(graph, backend)
        return made if config.fusion == "off" else swap_updates(made)

    monkeypatch.setattr(pipeline, "decompose", decompose_wrongly)

    def fails(each: Program) -> bool:
        return isinstance(find_error(each, 1, "jitted", "plain"), AssertionError)

    assert fails(program)
    least = minimise(program, fails, seconds=math.inf)
    assert least.results == ("a",) and len(str(least).splitlines()) <= 5 and str(least).count(".set(") == 2


def test_a_program_is_text_that_anybody_can_run() -> None:
    text = f"{running.PREAMBLE}\n{program_of_updates()}"
    scope: dict[str, Any] = {}
    exec(text, scope)
    values = [np.asarray(1), np.arange(5), np.ones((3, 5), np.float32)]
    a, b = scope["program"](*map(xarr.asarray, values))
    wanted, _ = running.make_stepped(program_of_updates())(values)
    assert_same(np.asarray(a), wanted[0])
    assert_same(np.asarray(b), wanted[1])
    assert re.search(r"^# n: int64\[\], a: int64\[5\]", text, re.MULTILINE)


def test_a_scan_of_no_rows_has_a_type_step_by_step() -> None:
    rows = Type("int64", (0, 2))
    number = Type("int64", ())
    inside = Compound("cond", ((Let("n", name("n + 1", number)),), ()), (name("n > 0", number),))
    scan = Compound("scan", ((inside,),), (name("a", rows), name("row0[0] * 1.5", number)), ("a", "row0"))
    program = Program((("n", number), ("a", rows)), (scan,), ("n", "a"))
    results, _ = running.make_stepped(program)([np.asarray(1), np.zeros((0, 2), np.int64)])
    assert_same(results[0], np.asarray(1))
    assert_same(results[1], np.zeros(0))


def test_programs_have_all_that_they_are_meant_to_have() -> None:
    texts = [draw(seed)[0].text() for seed in range(400)]
    deepest = max(len(line) - len(line.lstrip()) for text in texts for line in text.splitlines())
    assert deepest >= 4 * 5
    for word in (
        *("fori_loop", "while_loop", "lax.scan", "lax.cond", "lax.switch", "xp.vmap", "xp.jit", "lax.map"),
        *("bfloat16", "complex64", "uint8", "xp.nan", "-0.0", "dynamic_update_slice", ".at[", "mode='wrap'"),
        *("reduce_window", "xp.sort", "cumsum", "lax.pad", "take_along_axis", " @ ", "pure_callback"),
        *("custom_call", "debug.callback", "all_reduce", " // ", " % ", "xp.where(", "[::2]", "lax.div"),
    ):
        assert any(word in text for text in texts), word


def test_what_differs_is_shown() -> None:
    one, other = ([np.arange(3.0)], []), ([np.arange(3.0) * -1], [])
    with pytest.raises(AssertionError, match="results: number 0"):
        running.compare(one, other)
    with pytest.raises(AssertionError, match="what callbacks saw: got 0, wanted 1"):
        running.compare(([], []), ([], [np.zeros(1)]))
    with pytest.raises(AssertionError, match="raises index 7"):
        running.compare("index 7", one)
