"""Which nodes become parts of groups: those that loops can compute, unless the schedule leaves them to others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pytest

import xarr
from xarr import Array, lax
from xarr.compiler.fusion.form_groups import form_groups
from xarr.compiler.schedule import Kind, Schedule
from xarr.compiler.schedules.cpu.builders import LIMITS
from xarr.compiler.schedules.serial.builders import SCHEDULE as SERIAL
from xarr.compiler.target import Target
from xarr.ir import ops
from xarr.ir.graph import Graph, Node
from xarr_numpy.processor import PROCESSOR

#: Processors by the serial schedule's builders, so that no test rests on how loops are laid out.
CPU: Final = replace(SERIAL, target=PROCESSOR, limits=LIMITS)


def in_order(x: Array) -> Any:
    return lax.reduce(x, np.float32(1), lambda a, b: lax.sub(lax.mul(a, 2), b), (0, 2))


def pool(x: Array, side: int) -> Any:
    source = lax.reduce_window(x, np.float32(0), lax.add, (side, side), (1, 1), "VALID")
    return lax.select_and_scatter(
        x, lax.ge, (side, side), (1, 1), ((0, 0), (0, 0)), source, np.float32(0), lax.add
    )


#: What the CPU leaves to NumPy or a BLAS, and why: (kind, function, shapes, element type).
REFUSED: Final[dict[str, tuple[Kind, Callable[..., Any], list[tuple[int, ...]], str]]] = {
    "several loops in order": (Kind.NEST, in_order, [(2, 3, 4)], "float32"),
    "one of several NaN": (
        Kind.NEST,
        lambda x: lax.reduce(x, np.complex64(0), lax.max, (0,)),
        [(5, 4)],
        "complex64",
    ),
    "one product": (Kind.PRODUCT, lax.dot, [(8, 8), (8, 8)], "float32"),
    "products of integers": (Kind.PRODUCT, lax.batch_matmul, [(8, 8, 8), (8, 8, 8)], "int32"),
    "wide windows": (
        Kind.WINDOWS,
        lambda x: lax.reduce_window(x, np.float32(0), lax.add, (20,), (1,), "VALID"),
        [(40,)],
        "float32",
    ),
    "an array with holes": (
        Kind.WINDOWS,
        lambda x: lax.reduce_window(x, np.float32(0), lax.add, (2,), (1,), "VALID", (2,)),
        [(40,)],
        "float32",
    ),
    "choices of wide windows": (Kind.SELECT_AND_SCATTER, lambda x: pool(x, 17), [(20, 20)], "float32"),
    "few features": (
        Kind.CONVOLUTION,
        lambda x, y: lax.conv(x, y, (1, 1), "VALID"),
        [(1, 2, 6, 6), (2, 2, 3, 3)],
        "float32",
    ),
}


def graph_of(name: str) -> Graph:
    _, function, shapes, dtype = REFUSED[name]
    graph = xarr.jit(function).lower(*[xarr.zeros(shape, dtype) for shape in shapes]).stage("decomposed")
    assert isinstance(graph, Graph)
    return graph


def members(name: str, schedule: Schedule) -> set[type[ops.Op]]:
    """The classes of the operations in groups that a schedule makes of a graph."""
    fused = form_groups(graph_of(name), schedule, lambda domain, cost: True)
    groups = [node.op.computation for node in fused.nodes if isinstance(node.op, ops.Fusion)]
    return {type(node.op) for group in groups for node in group.nodes}


KINDS: Final = {
    Kind.NEST: ops.Reduce,
    Kind.PRODUCT: ops.DotGeneral,
    Kind.WINDOWS: ops.ReduceWindow,
    Kind.SELECT_AND_SCATTER: ops.SelectAndScatter,
    Kind.CONVOLUTION: ops.Convolution,
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_schedule_without_limits_takes_what_loops_can_compute(name: str) -> None:
    wanted = KINDS[REFUSED[name][0]]
    assert wanted in members(name, SERIAL)
    assert wanted not in members(name, CPU)


@pytest.mark.parametrize("name", REFUSED)
def test_a_limit_of_another_schedule_is_all_that_it_takes(name: str) -> None:
    kind = REFUSED[name][0]
    asked: list[Node] = []

    def refuse(node: Node, target: Target) -> bool:
        assert target is SERIAL.target
        asked.append(node)
        return not isinstance(node.op, KINDS[kind])

    assert KINDS[kind] not in members(name, replace(SERIAL, limits={kind: refuse}))
    assert KINDS[kind] in {type(node.op) for node in asked}


def test_a_kind_without_a_builder_is_never_taken() -> None:
    builders = {kind: build for kind, build in SERIAL.builders.items() if kind is not Kind.PRODUCT}
    assert ops.DotGeneral not in members("one product", replace(SERIAL, builders=builders))


def pull(x: Array, rows: int) -> Any:
    """The sum of differences times a power that all `rows` coordinates share."""
    apart = lax.sub(
        lax.broadcast_in_dim(x, (16, 16, rows), (1, 2)), lax.broadcast_in_dim(x, (16, 16, rows), (0, 2))
    )
    weight = lax.pow(lax.add(xarr.sum(lax.mul(apart, apart), axis=2), 0.01), -1.5)
    return xarr.sum(lax.mul(apart, lax.broadcast_in_dim(weight, apart.shape, (0, 1))), axis=1)


def normalise(x: Array) -> Any:
    return lax.mul(x, lax.broadcast_in_dim(lax.rsqrt(xarr.sum(lax.mul(x, x), axis=1)), x.shape, (0,)))


def groups_with(op: type[ops.Op], function: Callable[..., Any], *operands: Any) -> list[ops.Fusion]:
    """The groups that an operation is in."""
    graph = xarr.jit(function).lower(*operands).stage("decomposed")
    assert isinstance(graph, Graph)
    fused = form_groups(graph, CPU, lambda domain, cost: True)
    groups = [node.op for node in fused.nodes if isinstance(node.op, ops.Fusion)]
    return [group for group in groups if op in group.computation.op_classes]


def test_costly_operations_that_short_rows_share_are_computed_in_lanes_of_their_own() -> None:
    (group,) = groups_with(ops.Power, lambda x: pull(x, 3), xarr.zeros((16, 3)))
    assert group.domain == (16, 16)
    # A long row has lanes enough beside it.
    (group,) = groups_with(ops.Power, lambda x: pull(x, 64), xarr.zeros((16, 64)))
    assert group.domain == (16, 16, 64)


def test_what_follows_a_reduction_of_short_rows_stays_with_them() -> None:
    (group,) = groups_with(ops.Rsqrt, normalise, xarr.zeros((100, 24)))
    assert group.domain == (100, 24)


def test_groups_that_need_more_memory_are_formed_where_they_may_be_over() -> None:
    graph = xarr.jit(lambda x: xarr.sin(x) + 1).lower(xarr.zeros((8, 8))).stage("decomposed")
    assert isinstance(graph, Graph)
    nothing_fits = replace(CPU, target=CPU.target.replace(added_bytes=-(2**40), spare_bytes=0))
    assert form_groups(graph, nothing_fits, lambda domain, cost: True) is graph
    over: list[Graph] = []
    fused = form_groups(graph, nothing_fits, lambda domain, cost: True, over)
    assert [type(node.op) for node in fused.nodes] == [ops.Fusion]
    assert over == [fused]
    assert form_groups(graph, CPU, lambda domain, cost: True, over) is not graph
    assert over == [fused]


def test_a_stack_that_is_picked_from_is_made_first() -> None:
    def pick(x: Array, k: Array) -> Array:
        rows = xarr.stack([x, xarr.roll(x, 1), xarr.roll(x, 2)])
        return lax.mul(rows.at[k].get(mode="clip"), 2)

    graph = xarr.jit(pick).lower(np.zeros(500, np.float32), np.zeros(3, np.int64)).stage("fused")
    assert isinstance(graph, Graph)
    assert [node.shape for node in graph.nodes if isinstance(node.op, ops.Concatenate)][-1] == (3, 500)
