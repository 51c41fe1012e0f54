"""What the fused stage says about memory: bytes read and written by each group, and the most in use at once."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xarr
from tests.support.graphs import add, graph, node, tensor
from tests.support.kernel_texts import CASES
from tests.xla import parse
from xarr import stablehlo
from xarr.base.configuration import current as config
from xarr.compiler.fusion import form_groups as form_groups_module, fuse, stage
from xarr.compiler.fusion.form_groups import form_groups
from xarr.compiler.memory_traffic import traffic
from xarr.compiler.plan.layout import Peak
from xarr.compiler.plan.planner import peak, plan
from xarr.compiler.schedule import Schedule
from xarr.ir import ops
from xarr.ir.graph import Graph, Node
from xarr.ir.memory_use import shown_bytes
from xarr_numpy.compiled.schedule import SCHEDULE

F32 = np.dtype(np.float32)


def fuse_groups(function: Callable[..., Any], *types: Any) -> Graph:
    return form_groups(graph(function, *types), SCHEDULE, lambda domain, cost: True)


def costs(function: Callable[..., Any], *types: Any) -> list[tuple[int, ...]]:
    """For each group: bytes read, of these the least, written, the least, scratch, local."""
    groups = [each.op for each in fuse_groups(function, *types).nodes if isinstance(each.op, ops.Fusion)]
    costs = [traffic(SCHEDULE.build(group), SCHEDULE.target.cache_bytes) for group in groups]
    return [(t.read, t.least_read, t.written, t.least_written, t.scratch, t.local) for t in costs]


def case(name: str, *shape: int) -> list[tuple[int, ...]]:
    return costs(CASES[name][0], tensor(F32, *shape))


def test_a_broadcast_operand_counts_once() -> None:
    matrix, row = 37 * 53 * 4, 53 * 4
    assert costs(*_record("row_and_matrix")) == [(matrix + row, matrix + row, matrix, matrix, 0, 0)]


def _record(name: str) -> tuple[Any, ...]:
    function, types = CASES[name]
    return (function, *types)


def test_a_stencil_reads_each_input_once() -> None:
    written = 38 * 39 * 4
    assert case("stencil", 40, 41) == [(40 * 41 * 4, 40 * 41 * 4, written, written, 0, 0)]


def test_what_a_slice_leaves_out_is_not_read() -> None:
    def every_other(x: Node) -> Node:
        return node(ops.Negate(), node(ops.Slice((0,), (100,), (2,)), x))

    assert costs(every_other, tensor(F32, 100)) == [(200, 200, 200, 200, 0, 0)]


def test_short_rows_are_read_from_memory_once() -> None:
    size = 37 * 53 * 4
    assert case("softmax", 37, 53) == [(size, size, size, size, 0, 53 * 4)]


def test_rows_beyond_the_cache_are_read_by_each_pass() -> None:
    row = SCHEDULE.target.cache_bytes // 4 + 8
    ((read, least, written, _, scratch, _),) = case("softmax", 64, row)
    assert least == 64 * row * 4 and written == least and scratch == 0
    assert read == 3 * least


def test_scratch_is_written_and_read() -> None:
    ((read, least, written, least_written, scratch, _),) = costs(*_record("sum_of_all"))
    assert (least, least_written) == (300_001 * 8, 8)
    assert 0 < scratch < 1000 and written == 8 + scratch and least < read <= least + scratch


# --- the whole program ---------------------------------------------------------------------------------------

SIZE = 4 * 1000


def most(function: Callable[..., Any]) -> int:
    return peak(graph(function, tensor(F32, 1000)), overwrites=False).total


def chain(count: int) -> Callable[[Node], Node]:
    def function(x: Node) -> Node:
        for _ in range(count):
            x = node(ops.Exponential(), x)
        return x

    return function


def test_what_is_not_used_any_more_does_not_count() -> None:
    assert most(chain(1)) == 2 * SIZE
    assert most(chain(2)) == most(chain(9)) == 3 * SIZE


def test_a_result_counts_to_the_end() -> None:
    def function(x: Node) -> tuple[Node, Node]:
        first = node(ops.Negate(), x)
        return first, chain(3)(first)

    assert most(function) == 4 * SIZE


def test_a_view_keeps_what_it_shows() -> None:
    def function(x: Node) -> Node:
        large = node(ops.Exponential(), x)
        return node(ops.Slice((0,), (1,), (1,)), large)

    assert most(function) == 2 * SIZE


def test_several_results_count_once() -> None:
    def function(x: Node) -> Node:
        pair = graph(lambda x: (node(ops.Negate(), x), node(ops.Exponential(), x)), tensor(F32, 1000))
        both = node(ops.Call(pair), x)
        return add(*(node(ops.GetTupleElement(k), both) for k in range(2)))

    assert most(function) == 4 * SIZE


def test_a_barrier_takes_no_memory() -> None:
    def function(x: Node) -> Node:
        both = node(ops.OptimizationBarrier(), x, x)
        return add(*(node(ops.GetTupleElement(k), both) for k in range(2)))

    assert most(function) == 2 * SIZE


def test_what_a_computation_needs_counts_and_what_a_group_has_inside_does_not() -> None:
    body = graph(chain(4), tensor(F32, 1000))
    assert most(lambda x: node(ops.Call(body), x)) == most(chain(4))
    assert peak(fuse_groups(chain(4), tensor(F32, 1000)), overwrites=False) == Peak(2 * SIZE, SIZE)


def siblings(x: Node, y: Node) -> tuple[Node, ...]:
    """Two operations over the same elements, and one with two users: three ways to group them."""
    root = node(ops.Exponential(), x)
    return node(ops.Negate(), root), root, node(ops.Cosine(), x), node(ops.Multiply(), x, y)


def test_small_programs_are_grouped_without_a_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    planned: list[Graph] = []
    monkeypatch.setattr(form_groups_module, "peak", lambda graph, **_: planned.append(graph) or peak(graph))
    for size, plans in ((1000, 0), (10**6, 2)):
        fuse_groups(siblings, tensor(F32, size), tensor(F32, size))
        assert len(planned) == plans


def test_groups_are_formed_once_however_much_memory_they_take(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs that forgo merged groups, and results, are made of the groups that are known already."""
    formed: list[Graph] = []
    tried: list[Graph] = []

    class Counting(fuse._Fuser):
        def __init__(self, graph: Graph, *rest: Any) -> None:
            formed.append(graph)
            super().__init__(graph, *rest)

    def never_enough(graph: Graph, overwrites: bool = True, **_: Any) -> Peak:
        tried.append(graph)
        return Peak(10**9 if overwrites else 10**7, 0)

    monkeypatch.setattr(fuse, "_Fuser", Counting)
    monkeypatch.setattr(form_groups_module, "peak", never_enough)
    plain = graph(siblings, tensor(F32, 10**6), tensor(F32, 10**6))
    assert form_groups(plain, SCHEDULE, lambda domain, cost: True) is plain
    counts = [
        sum(isinstance(each.op, ops.Fusion) for each in graph.nodes) for graph in tried if graph is not plain
    ]
    assert (len(formed), counts) == (1, [1, 3, 2])
    # What has no groups to give up is tried once.
    tried.clear()
    chained = graph(chain(3), tensor(F32, 10**6))
    assert form_groups(chained, SCHEDULE, lambda domain, cost: True) is chained
    assert (len(formed), len(tried)) == (2, 2)


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (2_550_000, "2.5 MB"), (3 * 10**9, "3.0 GB")],
)
def test_bytes_for_people(count: int, text: str) -> None:
    assert shown_bytes(count) == text


# --- as text -------------------------------------------------------------------------------------------------


@pytest.mark.implicit
def test_the_fused_stage_says_so_and_can_still_be_read() -> None:
    pytest.importorskip("llvmlite")
    x = np.ones((1000, 100), np.float32)
    with config(fusion="compiled"):
        lowered = xarr.lower(lambda x: x / xarr.sum(x, axis=1, keepdims=True), x)
        text, planned = str(lowered.stage("fused")), str(lowered.stage("plan"))
    assert "memory: arena of 0 B, at most 800.0 kB at once, 400.0 kB of it arguments" in planned
    assert re.findall(r"^ +// (.*)", text, re.MULTILINE) == [
        "fusion: reads 400.0 kB (least 400.0 kB), writes 400.0 kB (least 400.0 kB)",
    ]
    parse(text)
    (results,) = stablehlo.run(stablehlo.parse(text), x)
    assert float(results[0, 0]) == np.float32(0.01)


def test_a_group_inside_a_loop_is_remarked_on() -> None:
    once = fuse_groups(lambda x: node(ops.Exponential(), node(ops.Negate(), x)), tensor(F32, 100))
    whole = graph(lambda x: node(ops.Call(once), x), tensor(F32, 100))
    text = str(whole)
    assert "at most 800 B at once" in str(plan(whole)) and "// fusion: reads 400 B" in text
    parse(text)


def test_a_loop_holds_two_states() -> None:
    state = tensor(F32, 1000)
    condition = graph(lambda x: node(ops.Constant.of(np.array(False))), state)
    loop = ops.While(condition, graph(chain(1), state))
    assert most(lambda x: node(loop, x)) == 3 * SIZE


@pytest.mark.parametrize("fits", [True, False])
def test_a_body_may_need_more_memory_where_the_whole_does_not(
    monkeypatch: pytest.MonkeyPatch, fits: bool
) -> None:
    def repeat(x: Any) -> Any:
        return xarr.lax.fori_loop(0, 3, lambda i, y: xarr.sort(xarr.sin(y) + xarr.cos(y)), x)

    whole = xarr.jit(repeat).lower("f64[64]").stage("decomposed")
    assert isinstance(whole, Graph)
    target = SCHEDULE.target.replace(added_bytes=-(2**40), spare_bytes=0)
    schedule = Schedule(target, SCHEDULE.builders, SCHEDULE.limits)
    if fits:
        monkeypatch.setattr(stage, "_fits", lambda fused, graph, target: True)
    fused = stage.fuse(whole, target, lambda: schedule, hot=True)
    (loop,) = [node for node in fused.nodes if isinstance(node.op, ops.While)]
    assert isinstance(loop.op, ops.While)
    assert (ops.Fusion in {type(node.op) for node in loop.op.body.nodes}) == fits
